#include "suggestion.h"

/*
 * The names are those of Slurm, local-gpu-scheduler, mgpu, gpusched and GPU Job Scheduler, and
 * words that many queues have.
 */
/* clang-format off */
const struct foreign_name foreign_names[] = {
	{ "num-gpus", "-n N" },
	{ "time-limit timeout", "--time 600s (a bare number means minutes)" },
	{ "env-setup-cmd", "--setup" },
	{ "llm-config", "--models" },
	{ "state-file", "--dir" },
	{ "sbatch background detach", "--submit" },
	{ "sattach", "--attach" },
	{ "screens", "--sessions" },
	{ "monitor", "--follow" },
	{ "logs", "--log" },
	{ "wait", "--wait-for" },
	{ "scancel mgpu-cancel stop delete", "--cancel" },
	{ "squeue mgpu-queue list jobs", "--status, or --queue for what waits" },
	{ "sinfo show gpus", "--status" },
	{ "sacct", "--history" },
	{ "sreport", "--accounting" },
	{ "salloc", "--shell" },
	{ "gpusched start add-file jobs-file array", "--batch FILE" },
	{ "output-file", "--add FILE" },
	{ "begin", "start it with at(1), or with --after ID" },
	{ "deadline", "--max-wait DUR and --time LIMIT" },
	{ "constraint C", "--model TEXT or --min-vram SIZE" },
	{ "requeue", "--retries N" },
	{ "test-only", "--dry-run" },
	{ "reservation clusters licenses L tmp mincpus",
		"leave it out, gpulease leases the GPUs of this machine" },
	{ "args", "write the arguments after the command" },
	{ "wrap", "write the command itself, or sh -c 'LINE'" },
	{ "parsable", "leave it out, --submit prints only the id" },
	{ "interactive", "leave it out, the command has your terminal" },
	{ "distributed pytorch-distributed",
		"leave it out, and start torchrun as the command" },
	{ "poll monitor-interval state-interval max-assign-attempts assign-retry-wait",
		"leave it out, gpulease does not poll" },
	{ "mem-threshold load-threshold",
		"see idle-threshold and busy-utilization in gpulease.conf(5)" },
	{ "srun mgpu-srun run", "leave it out, and write the command" },

	/* what is no program here, but a word of the shell, or the second one of a value */
	{ "python", "did you mean python3?" },
	{ "GB GiB MB MiB", "write a size as one word: 8G" },
	{ "cd", "--chdir" },
	{ "source", "--setup 'source FILE'" },
	{ "export", "env NAME=VALUE" },
	{ NULL, NULL },
};
/* clang-format on */

/* Whether the @size bytes at @name are one of @names.  Other systems spell some names with `_`. */
static bool is_one_of(const char *names, const char *name, size_t size)
{
	for (size_t length; *names; names += length + (names[length] == ' ')) {
		size_t same = 0;

		length = strcspn(names, " ");
		while (same < size && same < length &&
			names[same] == (name[same] == '_' ? '-' : name[same]))
			same++;
		if (size && same == size && same == length)
			return true;
	}
	return false;
}

/* Adds the row for the @size bytes at @name.  Returns false if there is none. */
static bool suggestion_add_foreign(const char *name, size_t size, struct why *why)
{
	for (const struct foreign_name *row = foreign_names; row->names; row++) {
		bool is_option = row->instead[0] == '-';

		if (!is_one_of(row->names, name, size))
			continue;
		why_add_remedy(why, "%s%s%s", is_option ? "did you mean " : "",
			row->instead, is_option ? "?" : "");
		return true;
	}
	return false;
}

enum { NAME_MAX_SIZE = 32, NEAR = 2 };

/*
 * The fewest steps from @a to @b, each shorter than NAME_MAX_SIZE, where a step inserts, removes or
 * replaces a letter, or swaps two neighbours (Damerau's distance).
 */
static unsigned edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	unsigned rows[3][NAME_MAX_SIZE +
			 1]; /* rows[i % 3][j]: of the first i and j letters */

	for (unsigned i = 0; i <= a_size; i++) {
		unsigned *row = rows[i % 3], *last = rows[(i + 2) % 3];

		row[0] = i;
		for (unsigned j = 1; j <= b_size; j++) {
			unsigned best = row[j - 1] + 1;

			if (i == 0) {
				row[j] = best;
				continue;
			}
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (last[j - 1] + (a[i - 1] != b[j - 1]) < best)
				best = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
				a[i - 2] == b[j - 1] &&
				rows[(i + 1) % 3][j - 2] + 1 < best)
				best = rows[(i + 1) % 3][j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[a_size % 3][b_size];
}

/*
 * Finds the option that was probably meant by the @size bytes at @name: its name begins with them,
 * or differs by at most two edits, and by at most one for every three letters.  NULL: none.
 */
static const struct option_def *options_find_nearest(
	const struct option_def *table, const char *name, size_t size)
{
	const struct option_def *nearest = NULL;
	unsigned least = NEAR + 1;

	if (size >= NAME_MAX_SIZE)
		return NULL;
	for (const struct option_def *def = table; def->kind; def++) {
		size_t length = def->name ? strlen(def->name) : 0;
		unsigned distance;

		if (!length || length >= NAME_MAX_SIZE || def->kind == OPTION_REFUSED ||
			!def->help)
			continue;
		distance = edit_distance(name, size, def->name, length);
		if (size >= 3 && size < length && memcmp(name, def->name, size) == 0)
			distance = 1;
		if (distance < least && distance * 3 <= length) {
			least = distance;
			nearest = def;
		}
	}
	return nearest;
}

void suggestion_for_option(
	const struct option_def *table, const char *name, size_t size, struct why *why)
{
	const struct option_def *nearest;

	if (suggestion_add_foreign(name, size, why))
		return;
	nearest = options_find_nearest(table, name, size);
	if (nearest)
		why_add_remedy(why, "did you mean --%s?", nearest->name);
	else
		why_add_remedy(why, "see gpulease --help");
}

bool suggestion_for_word(
	const struct option_def *table, const char *word, struct why *why)
{
	const struct option_def *option = options_find(table, word, strlen(word));

	if (suggestion_add_foreign(word, strlen(word), why))
		return true;
	if (!option || !option->help) /* hidden options have no help */
		return false;
	why_add_remedy(why, "did you mean --%s?", option->name);
	return true;
}

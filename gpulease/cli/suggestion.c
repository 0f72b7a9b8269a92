#include "suggestion.h"

/*
 * The names are those of Slurm, local-gpu-scheduler, mgpu, gpusched and GPU Job Scheduler, and
 * words that many queues have.
 */
/* clang-format off */
#define ROW(names, instead) names "\0" instead "\0"
const char foreign_names[] =
	ROW("num-gpus ngpus ngpu gpu-count", "-n N")
	ROW("gpu g device devices", "--gpus N for so many, or --gpu-ids 0 for GPU 0")
	ROW("allowed-gpus gpu-list visible-devices", "--allow LIST")
	ROW("fraction share", "-n 0.5")
	ROW("memory gpu-memory gpu-mem vmem", "--vram SIZE")
	ROW("time-limit timeout walltime", "--time LIMIT (5 means minutes, 5s seconds)")
	ROW("context-switch", "--on-limit requeue")
	ROW("env-setup-cmd", "--setup")
	ROW("conda-env", "--conda")
	ROW("depends depends-on afterany", "--after ID, or --after-ok ID")
	ROW("llm-config", "--models")
	ROW("max-job-time", "see max-time in gpulease.conf(5)")
	ROW("state-file", "--dir")
	ROW("sbatch background detach", "--submit")
	ROW("sattach", "--attach")
	ROW("screens", "--sessions")
	ROW("monitor", "--follow")
	ROW("logs", "--log")
	ROW("log-file stdout", "--output FILE")
	ROW("wait", "--wait-for")
	ROW("scancel mgpu-cancel stop delete remove kill", "--cancel")
	ROW("squeue mgpu-queue list jobs", "--status, or --queue for what waits")
	ROW("sinfo show gpus", "--status")
	ROW("sacct", "--history")
	ROW("sreport", "--accounting")
	ROW("salloc", "--shell")
	ROW("pause-gpu", "--pause")
	ROW("resume-gpu", "--resume")
	ROW("gpusched start add-file jobs-file array", "--batch FILE")
	ROW("output-file", "--add FILE")
	ROW("retry max-retries", "--retries N")
	ROW("test-only", "--dry-run")
	ROW("container", "see gpulease-container(7)")
	ROW("args llm", "write the arguments after the command")
	ROW("wrap", "write the command itself, or sh -c 'LINE'")
	ROW("parsable", ", --submit prints only the id")
	ROW("interactive", ", the command has your terminal")
	ROW("distributed pytorch-distributed",
		", and start torchrun as the command")
	ROW("poll poll-interval interval monitor-interval state-interval max-assign-attempts "
		"assign-retry-wait",
		", gpulease does not poll")
	ROW("mem-threshold load-threshold",
		"see --idle-threshold, and busy-utilization in gpulease.conf(5)")
	ROW("srun mgpu-srun tgpu run", ", and write the command")

	/* words that are no programs here: words of the shell, or the second word of a value */
	ROW("python", "did you mean python3?")
	ROW("GB GiB MB MiB", "write a size as one word: 8G")
	ROW("cd cwd workdir", "--chdir")
	ROW("source", "--setup 'source FILE'")
	ROW("export", "env NAME=VALUE");
#undef ROW
/* clang-format on */

bool suggestion_is_one_of(const char *names, const char *name, size_t size)
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
	const char *names, *instead;

	for (names = foreign_names; *names; names = instead + strlen(instead) + 1) {
		const char *before = "", *after = "";

		instead = names + strlen(names) + 1;
		if (!suggestion_is_one_of(names, name, size))
			continue;
		if (*instead == '-') {
			before = "did you mean ";
			after = "?";
		} else if (*instead == ',') {
			before = "leave it out";
		}
		why_add_remedy(why, "%s%s%s", before, instead, after);
		return true;
	}
	return false;
}

enum { NAME_MAX_SIZE = 32 };

/*
 * Returns the fewest steps from @a to @b, each shorter than NAME_MAX_SIZE, where a step inserts,
 * removes or replaces a letter, or swaps two neighbours (Damerau's distance).
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

unsigned suggestion_distance(const char *name, size_t size, const char *known)
{
	size_t length = strlen(known);
	unsigned distance;

	if (size >= NAME_MAX_SIZE || length >= NAME_MAX_SIZE)
		return SUGGESTION_FAR;
	distance = edit_distance(name, size, known, length);
	if (size >= 3 && size < length && memcmp(name, known, size) == 0)
		distance = 1;
	return distance * 3 <= length ? distance : SUGGESTION_FAR;
}

/* Finds the option that was probably meant by the @size bytes at @name.  NULL: none. */
static const struct option_def *options_find_nearest(
	const struct option_def *table, const char *name, size_t size)
{
	const struct option_def *nearest = NULL;
	unsigned least = SUGGESTION_FAR;

	for (const struct option_def *def = table; def->kind; def++) {
		unsigned distance;

		if (!def->name || def->kind == OPTION_REFUSED || !def->help)
			continue;
		distance = suggestion_distance(name, size, def->name);
		if (distance < least) {
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

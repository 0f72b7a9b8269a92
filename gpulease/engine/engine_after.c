#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "diag.h"
#include "engine_after.h"
#include "engine_poll.h"
#include "exitcodes.h"
#include "operands.h"
#include "parse.h"

enum { LOOK_MS = 14 * 1000 };

static struct engine_poll known;

/* --- ids --------------------------------------------------------------------------------- */

int engine_after_each_id(const char *text, int (*each)(void *arg, uint64_t id), void *arg)
{
	for (const char *at = strchr(text, ':'); at; at = strchr(at, ':')) {
		size_t digits = strspn(++at, "0123456789");
		char number[24];
		uint64_t id;
		int r;

		(void)snprintf(number, sizeof(number), "%.*s", (int)digits, at);
		if (!digits || digits >= sizeof(number) ||
			parse_u64(number, UINT64_MAX, &id, NULL) < 0)
			continue;
		r = each(arg, id);
		if (r != 0)
			return r;
	}
	return 0;
}

/* The same for a checked list, "12,15". */
static int each_in_list(const char *list, int (*each)(void *arg, uint64_t id), void *arg)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_JOB);
	struct operand operand;
	int r = 0;

	while (list && r == 0 && operand_next(&walk, &operand, NULL) == 0)
		r = each(arg, operand.first);
	return r;
}

static int add_to_poll(void *arg, uint64_t id)
{
	return engine_poll_add(arg, id);
}

static int add_all(const struct engine_line *line)
{
	const struct run_request *request = &line->settings.request;
	const char *raw = engine_line_value(line, "dependency");
	int r = each_in_list(request->after, add_to_poll, &known);

	if (r == 0)
		r = each_in_list(request->after_ok, add_to_poll, &known);
	if (r == 0 && raw)
		r = engine_after_each_id(raw, add_to_poll, &known);
	return r;
}

/* --- what is known of them ------------------------------------------------------------------ */

/* Whether each job is known by now, or is known to be unknown. */
static bool is_all_known(void)
{
	for (size_t i = 0; i < known.count; i++)
		if (!known.jobs[i].state && !known.jobs[i].has_ended)
			return false;
	return true;
}

static int look_up(void)
{
	int64_t until_ms = clock_boot_ms() + LOOK_MS;

	while (!is_all_known()) {
		int r = engine_poll_wait(&known, until_ms, -1);

		if (r != 0)
			return r;
		if (known.silent_ms || clock_boot_ms() >= until_ms) {
			diag("Slurm does not answer, so it is not known whether the jobs "
			     "to wait for exist");
			return EXIT_MISUSE;
		}
	}
	return 0;
}

/* Whether Slurm has forgotten the job, so that it must not be named. */
static bool is_forgotten(uint64_t id)
{
	const struct polled_job *job = engine_poll_find(&known, id);

	return job && job->has_ended && job->gone_ms;
}

/* Refuses the job @id if the new job can never run after it. */
static int check_ok(void *arg, uint64_t id)
{
	const struct polled_job *job = engine_poll_find(&known, id);

	(void)arg;
	if (!job || !is_forgotten(id) || job->status == 0)
		return 0;
	if (job->status < 0)
		diag("gave up: job %llu has ended, but its exit status is not recorded",
			(unsigned long long)id);
	else
		diag("gave up: job %llu has ended with status %d", (unsigned long long)id,
			job->status);
	return EXIT_GAVE_UP;
}

/* Refuses the job @id if the new job can never run, because that one has ended well. */
static int check_not_ok(void *arg, uint64_t id)
{
	const struct polled_job *job = engine_poll_find(&known, id);

	(void)arg;
	if (!job || !is_forgotten(id) || job->status != 0)
		return 0;
	diag("gave up: job %llu has ended with status 0", (unsigned long long)id);
	return EXIT_GAVE_UP;
}

/* The same for the value of --dependency, unless one of its conditions is enough. */
static int check_raw(const char *text)
{
	static const char ok[] = "afterok:", not_ok[] = "afternotok:";
	int r = 0;

	if (!text || strchr(text, '?'))
		return 0;
	for (const char *next; *text && r == 0; text = next) {
		size_t size = strcspn(text, ",");
		autofree char *part = strndup(text, size);

		next = text + size + (text[size] == ',');
		if (!part)
			return EXIT_MISUSE;
		if (strncmp(part, ok, sizeof(ok) - 1) == 0)
			r = engine_after_each_id(part, check_ok, NULL);
		else if (strncmp(part, not_ok, sizeof(not_ok) - 1) == 0)
			r = engine_after_each_id(part, check_not_ok, NULL);
	}
	return r;
}

int engine_after_check(const struct engine_line *line)
{
	int r;

	known = ENGINE_POLL_NONE;
	r = add_all(line);
	if (r < 0) {
		diag("cannot look up the jobs to wait for: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	r = look_up();
	if (r != 0)
		return r;
	for (size_t i = 0; i < known.count; i++) {
		if (!known.jobs[i].is_unknown)
			continue;
		diag("job %llu is unknown; --status and --history list the jobs",
			(unsigned long long)known.jobs[i].id);
		return EXIT_MISUSE;
	}
	r = each_in_list(line->settings.request.after_ok, check_ok, NULL);
	return r ? r : check_raw(engine_line_value(line, "dependency"));
}

/* --- words ---------------------------------------------------------------------------------- */

struct list {
	char *bytes;
	size_t size;
	FILE *file;
	const char *kind; /* of the ids that follow */
	bool is_open;     /* ->kind is written */
};

static int add_id(void *arg, uint64_t id)
{
	struct list *list = arg;

	if (is_forgotten(id))
		return 0;
	if (!list->is_open)
		(void)fprintf(
			list->file, "%s%s", ftell(list->file) ? "," : "", list->kind);
	(void)fprintf(list->file, ":%llu", (unsigned long long)id);
	list->is_open = true;
	return 0;
}

static void add_ids(struct list *list, const char *kind, const char *ids)
{
	list->kind = kind;
	list->is_open = false;
	(void)!each_in_list(ids, add_id, list);
}

static void add_text(struct list *list, const char *text)
{
	(void)fprintf(list->file, "%s%s", ftell(list->file) ? "," : "", text);
}

void engine_after_words(const struct engine_line *line, struct slurm_words *words)
{
	const struct run_request *request = &line->settings.request;
	const char *raw = engine_line_value(line, "dependency");
	struct list list = { .bytes = NULL };

	list.file = open_memstream(&list.bytes, &list.size);
	if (!list.file) {
		slurm_words_add(words, NULL);
		return;
	}
	add_ids(&list, "afterany", request->after);
	add_ids(&list, "afterok", request->after_ok);
	if (request->singleton)
		add_text(&list, "singleton");
	if (raw)
		add_text(&list, raw);
	(void)fclose(list.file);
	if (list.size) {
		slurm_words_addf(words, "--dependency=%s", list.bytes);
		/* srun does not know it; a process waits for its job, and ends it */
		if (strcmp(words->list[0], "sbatch") == 0)
			slurm_words_add(words, "--kill-on-invalid-dep=yes");
	}
	free(list.bytes);
}

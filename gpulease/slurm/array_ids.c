#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/wait.h>

#include "array_ids.h"
#include "array_record.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "parse.h"
#include "run_gpulease.h"
#include "slurm_programs.h"

enum { IDS_SIZE = 16 * 1024 };

static struct {
	char gpulease[PATH_MAX];
	bool is_cancel, is_wait; /* what the command line does with the jobs */
	int64_t until_ms;        /* of --max-wait; INT64_MAX: no bound */
	bool has_found;          /* a task of an array */
	int status;              /* the highest of what was done here */
} ids;

static void note_status(int status)
{
	ids.status = status > ids.status ? status : ids.status;
}

/* --- one task -------------------------------------------------------------------------- */

static bool is_open(const struct array_task *task)
{
	return !task->job && !task->has_ended;
}

/*
 * Waits until the task @place has its job or has ended, or the array @array has ended.  If that was
 * cancelled before it could begin, its status is that of the task.
 */
static void await_task(struct array_record *record, uint64_t array, unsigned place)
{
	static char quiet[] = "-Q", option[] = "--wait-for", id[24];
	char *words[] = { ids.gpulease, quiet, option, id, NULL };
	autofd int changes = inotify_init1(IN_CLOEXEC), process = -1, its_stdout = -1;
	struct array_task *task = &record->tasks[place];
	int ends[2], status;
	bool is_over = false;
	pid_t child;

	/* the pipe shows the end of the process, also where the kernel has no pidfds */
	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	process = ends[0];
	its_stdout = ends[1];
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)array);
	if (changes >= 0)
		(void)inotify_add_watch(changes, record->path, IN_MODIFY);
	child = run_gpulease_start(words, its_stdout);
	if (child < 0)
		return;
	close_fd(&its_stdout);
	while (!is_over && array_record_read(record) == 0 && is_open(task)) {
		struct pollfd fds[] = { { process, POLLIN, 0 }, { changes, POLLIN, 0 } };
		char events[4096];
		int64_t left_ms = ids.until_ms - clock_boot_ms();
		int timeout_ms = left_ms > INT_MAX ? -1 : (int)left_ms;

		if (left_ms <= 0) {
			note_status(EXIT_GAVE_UP);
			break;
		}
		if (poll(fds, ARRAY_SIZE(fds), timeout_ms) < 0)
			break;
		is_over = fds[0].revents != 0;
		if (fds[1].revents && read(changes, events, sizeof(events)) < 0)
			break;
	}
	if (!is_over)
		(void)kill(child, SIGKILL);
	status = run_gpulease_await(child);
	(void)!array_record_read(record);
	/* the status 1 would also be that of an array that is unknown */
	if (is_over && is_open(task) && status > EXIT_NOT_DONE) {
		task->has_ended = true;
		task->status = status;
	}
}

/* Does what is to be done with a task that has no job.  Its name is for messages. */
static void settle_task(struct array_record *record, uint64_t array, unsigned place)
{
	struct array_task *task = &record->tasks[place];
	unsigned index = record->list.indices[place];
	char name[40];

	(void)snprintf(name, sizeof(name), "%llu_%u", (unsigned long long)array, index);
	if (task->has_ended) {
		if (ids.is_wait)
			note_status(task->status);
		else
			diag("job %s has ended before it was in the queue", name);
		note_status(ids.is_wait ? 0 : EXIT_NOT_DONE);
	} else if (ids.is_cancel) {
		if (array_record_add(record, ARRAY_CANCELLED, index, 0) < 0) {
			diag("cannot cancel job %s: %s", name, strerror(errno));
			note_status(EXIT_MISUSE);
		}
	} else if (ids.status != EXIT_GAVE_UP) {
		diag("job %s is not in the queue yet", name);
		note_status(EXIT_NOT_DONE);
	}
}

static void add_task(
	struct array_record *record, uint64_t array, unsigned place, struct text *out)
{
	struct array_task *task = &record->tasks[place];

	if (ids.is_wait && is_open(task))
		await_task(record, array, place);
	if (task->job)
		text_addf(out, "%s%llu", out->used ? "," : "",
			(unsigned long long)task->job);
	else
		settle_task(record, array, place);
}

/* --- the command line ------------------------------------------------------------------ */

/* Appends the ids for an item of a list.  Returns false if it names no task of a known array. */
static bool add_item(const char *item, size_t size, struct text *out)
{
	static struct array_record record;
	struct array_list list;
	uint64_t array;

	if (!array_list_read_id(item, size, &array, &list) ||
		array_record_open_id(array, &record) < 0)
		return false;
	for (unsigned i = 0; i < list.count; i++) {
		int place = array_list_find(&record.list, list.indices[i]);

		if (place >= 0) {
			add_task(&record, array, (unsigned)place, out);
			continue;
		}
		diag("array %llu has no task %u", (unsigned long long)array,
			list.indices[i]);
		note_status(EXIT_NOT_DONE);
	}
	close_fd(&record.fd);
	return true;
}

/* The size of the first item of a list: up to a comma that is not in brackets. */
static size_t item_size(const char *list)
{
	size_t size = 0;
	bool is_inside = false;

	for (; list[size] && (is_inside || list[size] != ','); size++)
		is_inside = list[size] == '[' || (is_inside && list[size] != ']');
	return size;
}

/* Returns what the word becomes: itself; with ids; or NULL, if nothing is left of it. */
static char *adapt(char *word)
{
	char bytes[IDS_SIZE], *value = word, *out = NULL;
	struct text text = TEXT_ON(bytes);
	bool has_found = false;

	if (strncmp(word, "--", 2) == 0) {
		value = strchr(word, '=');
		if (!value)
			return word;
		value++;
	}
	for (const char *at = value; *at;) {
		size_t size = item_size(at);

		if (add_item(at, size, &text)) {
			has_found = true;
		} else {
			text_add(&text, text.used ? "," : "");
			text_add_bytes(&text, at, size);
		}
		at += size + (at[size] == ',');
	}
	if (!has_found)
		return word;
	ids.has_found = true;
	/* --cancel=17_3 without an id is --cancel, and other operands may follow */
	if (!text.used && value == word)
		return NULL;
	return asprintf(&out, "%.*s%s", (int)(value - word - (text.used ? 0 : 1)), word,
		       bytes) < 0
		       ? NULL
		       : out;
}

static bool is_option(const char *word, const char *name)
{
	size_t size = strlen(name);

	return strncmp(word, name, size) == 0 && (!word[size] || word[size] == '=');
}

/* Whether @word, which follows @before, names jobs: the words of the options here are few. */
static bool is_operand(const char *before, const char *word)
{
	static const char *const with_value[] = { "--grace", "--max-wait", "--dir",
		"--config", "--sim" };

	for (size_t i = 0; i < ARRAY_SIZE(with_value); i++)
		if (strcmp(before, with_value[i]) == 0)
			return false;
	return word[0] != '-' ||
	       (strchr(word, '=') &&
		       (is_option(word, "--cancel") || is_option(word, "--wait-for")));
}

/* Runs gpulease with @words, unless these name no job any more.  Returns the exit status. */
static int go_on(char **words, bool has_jobs)
{
	pid_t child;

	if (!has_jobs)
		return ids.status;
	if (!ids.status) {
		(void)execv(words[0], words);
		diag("cannot execute '%s': %s", words[0], strerror(errno));
		return EXIT_MISUSE;
	}
	child = run_gpulease_start(words, -1);
	note_status(child < 0 ? EXIT_MISUSE : run_gpulease_await(child));
	return ids.status;
}

int array_ids_main(char **argv)
{
	char **words = argv + 1, **next = words + 1;
	bool has_jobs = false;

	if (getenv(ARRAY_IDS_OFF))
		return EXIT_NOT_DONE;
	if (!*words || slurm_programs_gpulease(ids.gpulease) < 0) {
		diag("cannot find gpulease; install it again: make install");
		return EXIT_MISUSE;
	}
	ids.until_ms = INT64_MAX;
	for (char **at = words; *at; at++) {
		const char *bound = strcmp(*at, "--max-wait") == 0 ? at[1]
				    : is_option(*at, "--max-wait") ? strchr(*at, '=') + 1
								   : NULL;
		int64_t wait_ms;

		if (bound && parse_duration_ms(bound, &wait_ms, NULL) == 0)
			ids.until_ms = clock_boot_ms() + wait_ms;
		ids.is_cancel = ids.is_cancel || is_option(*at, "--cancel");
		ids.is_wait = ids.is_wait || is_option(*at, "--wait-for");
	}
	for (char **at = words + 1; *at; at++) {
		char *word = adapt(*at);

		if (word)
			*next++ = word;
		has_jobs = has_jobs || (word && is_operand(at[-1], word));
	}
	*next = NULL;
	words[0] = ids.gpulease;
	if (ids.has_found)
		return go_on(words, has_jobs);
	diag("no such job waits or runs, and no array of yours has it; an id is written 12, or "
	     "17_3 and 17_[1-3] for tasks of array 17");
	return EXIT_NOT_DONE;
}

/*
 * Any bytes as a journal: a line that is an event is the same event when it is written and read
 * again, and its output for a terminal is printable.  No journal makes jobs that are impossible.
 */
#include "batch_jobs.h"
#include "fuzz.h"

enum { JOBS_MOST = 1000 };

static void must_be_printable(const char *string)
{
	char printable[BATCH_COMMAND_SIZE];
	struct text text = TEXT_ON(printable);

	text_add_printable(&text, string, strlen(string));
	MUST(strcmp(printable, string) == 0);
}

static void write_event(
	const struct batch_event *event, char *line, size_t size, struct text *ret)
{
	*ret = text_on(line, size);
	batch_event_write(event, ret);
	MUST(!ret->cut && ret->used && line[ret->used - 1] == '\n');
}

static void check_again(const struct batch_event *event)
{
	size_t size = BATCH_EVENT_SIZE + event->jobs_size;
	autofree char *first = malloc(size), *second = malloc(size);
	struct text first_text, second_text;
	struct batch_event again;

	MUST(first && second);
	write_event(event, first, size, &first_text);
	MUST(batch_event_parse(first, first_text.used - 1, &again) == 0);
	MUST(again.kind == event->kind && again.job == event->job &&
		again.status == event->status && again.cause == event->cause &&
		again.owner.inode == event->owner.inode &&
		strcmp(again.command, event->command) == 0 &&
		strcmp(again.text, event->text) == 0 &&
		again.jobs_size == event->jobs_size);
	write_event(&again, second, size, &second_text);
	MUST(strcmp(first, second) == 0);
}

static int count_one(void *arg, uint64_t number)
{
	MUST(number > 0);
	return ++*(unsigned *)arg == JOBS_MOST;
}

static void check_line(const char *line, size_t size, struct batch_jobs *jobs)
{
	struct batch_event event;
	unsigned count = 0;

	if (batch_event_parse(line, size, &event) < 0)
		return;
	must_be_printable(event.name);
	must_be_printable(event.text);
	must_be_printable(event.command);
	must_be_printable(event.gpus);
	MUST(!event.owner.token[0] || is_token(event.owner.token));
	if (event.kind == BATCH_EVENT_NONE)
		return;
	check_again(&event);
	MUST(batch_each_number(event.jobs, event.jobs_size, count_one, &count) >= 0);
	if (jobs->count < JOBS_MOST)
		(void)!batch_jobs_apply(jobs, &event);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct batch_jobs jobs = BATCH_JOBS_NONE;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		check_line(at, length, &jobs);
		at += length + 1;
	}
	for (size_t i = 0; i < jobs.count; i++)
		MUST(jobs.all[i].number == i + 1 &&
			!(batch_is_finished(&jobs.all[i]) &&
				batch_is_failed(&jobs.all[i])));
	batch_jobs_release(&jobs);
	return 0;
}

#include <errno.h>
#include <sys/stat.h>

#include "batch_journal.h"
#include "fdio.h"

enum {
	JOURNAL_MAX = 256 * 1024 * 1024,
	LONGEST = 1024 * 1024, /* of a list; all others are shorter */
	CHUNK = 64 * 1024,
};

/* --- lines ------------------------------------------------------------------------- */

struct lines {
	/* 0 or a negative errno, which ends it */
	int (*take)(void *arg, const char *line, size_t size);
	void *arg;
	char *buffer;
	size_t used, room;
	off_t at;         /* of the buffer in the file */
	bool is_too_long; /* the line that is being read */
	bool takes_rest;  /* what has no newline is a line as well */
	size_t skipped;   /* too long */
};

/* Takes the whole lines of the buffer; at the end of the file perhaps all that there is. */
static int take_lines(struct lines *lines, bool is_at_end)
{
	char *at = lines->buffer, *end = at + lines->used;
	int r = 0;

	while (r == 0 && at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline && !(is_at_end && lines->takes_rest))
			break;
		if (lines->is_too_long)
			lines->skipped++;
		else
			r = lines->take(
				lines->arg, at, (size_t)((newline ? newline : end) - at));
		if (!newline) /* it is read again when it is whole */
			break;
		lines->is_too_long = false;
		at = newline + 1;
	}
	lines->used = (size_t)(end - at);
	lines->at += at - lines->buffer;
	memmove(lines->buffer, at, lines->used);
	return r;
}

/* Room for more of a line than there is. */
static int make_room(struct lines *lines)
{
	char *grown;

	if (lines->used < lines->room)
		return 0;
	if (lines->room >= LONGEST) {
		lines->is_too_long = true;
		lines->at += (off_t)lines->used;
		lines->used = 0;
		return 0;
	}
	grown = realloc(lines->buffer, lines->room ? lines->room * 2 : CHUNK);
	if (!grown)
		return -ENOMEM;
	lines->buffer = grown;
	lines->room = lines->room ? lines->room * 2 : CHUNK;
	return 0;
}

/* From ->at on, up to @most bytes of the file; ->at is behind the last whole line then. */
static int read_lines(struct lines *lines, int fd, off_t most)
{
	size_t size;
	int r;

	do {
		off_t offset;

		r = make_room(lines);
		if (r < 0)
			break;
		offset = lines->at + (off_t)lines->used;
		r = fdio_pread(fd, lines->buffer + lines->used, lines->room - lines->used,
			offset, &size);
		if (r < 0)
			break;
		if (offset + (off_t)size > most) {
			r = -EFBIG;
			break;
		}
		lines->used += size;
		r = take_lines(lines, size == 0);
	} while (r == 0 && size > 0);
	free(lines->buffer);
	return r;
}

/* --- what they say ----------------------------------------------------------------- */

struct loading {
	struct batch_jobs *jobs;
	char *list; /* the text of the last list */
	size_t list_size;
	size_t skipped;
};

static int keep_list(struct loading *loading, const struct batch_event *event)
{
	char *list = malloc(event->jobs_size + 1);

	if (!list)
		return -ENOMEM;
	if (event->jobs_size)
		memcpy(list, event->jobs, event->jobs_size);
	free(loading->list);
	loading->list = list;
	loading->list_size = event->jobs_size;
	return 0;
}

/*
 * Behind a line that could not be read, or written, numbers may be missing.  Others have them all
 * the same, and those that follow stay who they are.
 */
static int fill_gap(struct loading *loading, uint64_t next)
{
	struct batch_jobs *jobs = loading->jobs;

	if (next > jobs->count + BATCH_LINES_MAX)
		return 0;
	while (jobs->count + 1 < next)
		if (!batch_jobs_add(jobs, 0, "", ""))
			return -ENOMEM;
	return 0;
}

/* 0 or -ENOMEM. */
static int take_line(void *arg, const char *line, size_t size)
{
	struct loading *loading = arg;
	struct batch_event event;
	int r;

	if (!size)
		return 0;
	r = batch_event_parse(line, size, &event);
	/* only the last list counts */
	if (r == 0 && event.kind == BATCH_LISTED)
		return keep_list(loading, &event);
	if (r == 0 && event.kind == BATCH_SEEN)
		r = fill_gap(loading, event.job);
	if (r == 0)
		r = batch_jobs_apply(loading->jobs, &event);
	if (r == -ENOMEM)
		return r;
	loading->skipped += r < 0;
	return 0;
}

/* --- the list ---------------------------------------------------------------------- */

struct numbers {
	const struct batch_jobs *jobs;
	uint64_t *all;
	size_t count;
};

/* Those that are not known are left out; more than there are jobs there cannot be. */
static int add_number(void *arg, uint64_t number)
{
	struct numbers *numbers = arg;
	struct batch_job *job = batch_jobs_find(numbers->jobs, number);

	if (!job || job->is_in_list)
		return number > numbers->jobs->count ? -ENOENT : 0;
	job->is_in_list = true;
	numbers->all[numbers->count++] = number;
	return 0;
}

/* The last list, as numbers and in the jobs.  0 or -ENOMEM. */
static int take_list(struct loading *loading, uint64_t **ret, size_t *ret_count)
{
	struct numbers numbers = { .jobs = loading->jobs };

	*ret = NULL;
	*ret_count = 0;
	if (!loading->list)
		return 0;
	numbers.all = calloc(loading->jobs->count + 1, sizeof(*numbers.all));
	if (!numbers.all)
		return -ENOMEM;
	if (batch_each_number(loading->list, loading->list_size, add_number, &numbers) <
		0)
		loading->skipped++;
	*ret = numbers.all;
	*ret_count = numbers.count;
	return 0;
}

/* --- all --------------------------------------------------------------------------- */

int batch_journal_load(struct batch_journal *journal, struct batch_jobs *jobs,
	uint64_t **ret_list, size_t *ret_list_count, size_t *ret_skipped, struct why *why)
{
	struct loading loading = { .jobs = jobs };
	struct lines lines = { .take = take_line, .arg = &loading, .takes_rest = true };
	int r = read_lines(&lines, journal->fd, JOURNAL_MAX);

	if (r == 0)
		r = take_list(&loading, ret_list, ret_list_count);
	free(loading.list);
	if (r < 0) {
		why_set(why, "cannot read '%s/journal.jsonl': %s%s", journal->folder,
			strerror(-r), r == -EFBIG ? "; --fresh begins a new one" : "");
		batch_jobs_release(jobs);
		return r;
	}
	for (size_t i = 0; i < jobs->count; i++)
		jobs->all[i].is_of_before = jobs->all[i].state == BATCH_ENDED;
	*ret_skipped = loading.skipped + lines.skipped;
	journal->read = lines.at;
	return 0;
}

struct hearing {
	void (*hear)(void *arg, const struct batch_event *event);
	void *arg;
};

static int hear_line(void *arg, const char *line, size_t size)
{
	const struct hearing *hearing = arg;
	struct batch_event event;

	if (size && batch_event_parse(line, size, &event) == 0)
		hearing->hear(hearing->arg, &event);
	return 0;
}

int batch_journal_read_on(struct batch_journal *journal,
	void (*hear)(void *arg, const struct batch_event *event), void *arg)
{
	struct hearing hearing = { hear, arg };
	struct lines lines = {
		.take = hear_line, .arg = &hearing, .at = (off_t)journal->read
	};
	int r = read_lines(&lines, journal->fd, INT64_MAX);

	journal->read = lines.at;
	return r;
}

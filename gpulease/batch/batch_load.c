#include <errno.h>
#include <sys/stat.h>

#include "batch_load.h"
#include "fdio.h"

enum {
	JOURNAL_MAX = 256 * 1024 * 1024,
	LONGEST = 1024 * 1024, /* bytes of a line; only BATCH_LISTED may be so long */
	CHUNK = 64 * 1024,
};

/* --- lines ------------------------------------------------------------------------- */

/* Reads a file line by line. */
struct lines {
	/* returns 0 or a negative errno, which ends the reading */
	int (*take)(void *arg, const char *line, size_t size);
	void *arg;
	char *buffer;
	size_t used, room;
	off_t at;         /* position of the buffer in the file */
	bool is_too_long; /* the line that is being read */
	bool takes_rest;  /* a last line without newline counts */
	size_t skipped;   /* lines that were too long */
};

/*
 * Calls ->take for the whole lines in the buffer, and with ->takes_rest at the end of the file for
 * the incomplete one as well.  The incomplete line stays in the buffer, and ->at before it, so that
 * a later call reads it again when it is complete.
 */
static int lines_take(struct lines *lines, bool is_at_end)
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
		if (!newline)
			break;
		lines->is_too_long = false;
		at = newline + 1;
	}
	lines->used = (size_t)(end - at);
	lines->at += at - lines->buffer;
	memmove(lines->buffer, at, lines->used);
	return r;
}

/* Makes room in the buffer for more of a line.  Drops the part read so far of a line too long. */
static int lines_make_room(struct lines *lines)
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

/*
 * Reads the lines from ->at on; afterwards ->at is the end of the last whole line.  Returns 0 or a
 * negative errno: -EFBIG if the file has more than @most bytes.
 */
static int lines_read(struct lines *lines, int fd, off_t most)
{
	size_t size;
	int r;

	do {
		off_t offset;

		r = lines_make_room(lines);
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
		r = lines_take(lines, size == 0);
	} while (r == 0 && size > 0);
	free(lines->buffer);
	return r;
}

/* --- events ------------------------------------------------------------------------ */

struct loading {
	struct batch_jobs *jobs;
	char *list; /* the text of the last BATCH_LISTED */
	size_t list_size;
	size_t skipped;
};

static int loading_keep_list(struct loading *loading, const struct batch_event *event)
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
 * Adds empty jobs up to the number before @next.  After a line that could not be read or written,
 * numbers may be missing; the jobs that follow keep theirs.
 */
static int loading_fill_gap(struct loading *loading, uint64_t next)
{
	struct batch_jobs *jobs = loading->jobs;

	if (next > jobs->count + BATCH_LINES_MAX)
		return 0;
	while (jobs->count + 1 < next)
		if (!batch_jobs_add(jobs, 0, "", ""))
			return -ENOMEM;
	return 0;
}

/* Applies one line; counts it if it cannot be read.  Returns 0 or -ENOMEM. */
static int loading_take_line(void *arg, const char *line, size_t size)
{
	struct loading *loading = arg;
	struct batch_event event;
	int r;

	if (!size)
		return 0;
	r = batch_event_parse(line, size, &event);
	/* only the last list counts, so do not apply each */
	if (r == 0 && event.kind == BATCH_LISTED)
		return loading_keep_list(loading, &event);
	if (r == 0 && event.kind == BATCH_SEEN)
		r = loading_fill_gap(loading, event.job);
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

/*
 * Adds one number of the list.  Skips a number that was there before; a number beyond the last job
 * ends the list, which keeps damaged lists short.
 */
static int numbers_add(void *arg, uint64_t number)
{
	struct numbers *numbers = arg;
	struct batch_job *job = batch_jobs_find(numbers->jobs, number);

	if (!job || job->is_in_list)
		return number > numbers->jobs->count ? -ENOENT : 0;
	job->is_in_list = true;
	numbers->all[numbers->count++] = number;
	return 0;
}

/* Turns the last list into numbers, and marks its jobs.  Returns 0 or -ENOMEM. */
static int loading_take_list(struct loading *loading, uint64_t **ret, size_t *ret_count)
{
	struct numbers numbers = { .jobs = loading->jobs };

	*ret = NULL;
	*ret_count = 0;
	if (!loading->list)
		return 0;
	numbers.all = calloc(loading->jobs->count + 1, sizeof(*numbers.all));
	if (!numbers.all)
		return -ENOMEM;
	if (batch_each_number(loading->list, loading->list_size, numbers_add, &numbers) <
		0)
		loading->skipped++;
	*ret = numbers.all;
	*ret_count = numbers.count;
	return 0;
}

/* --- the journal ------------------------------------------------------------------- */

int batch_journal_load(struct batch_journal *journal, struct batch_jobs *jobs,
	uint64_t **ret_list, size_t *ret_list_count, size_t *ret_skipped, struct why *why)
{
	struct loading loading = { .jobs = jobs };
	struct lines lines = {
		.take = loading_take_line, .arg = &loading, .takes_rest = true
	};
	int r = lines_read(&lines, journal->fd, JOURNAL_MAX);

	if (r == 0)
		r = loading_take_list(&loading, ret_list, ret_list_count);
	free(loading.list);
	if (r < 0) {
		why_set(why, "cannot read '%s/journal.jsonl': %s%s", journal->folder,
			strerror(-r), r == -EFBIG ? "; --fresh begins a new one" : "");
		batch_jobs_release(jobs);
		return r;
	}
	for (size_t i = 0; i < jobs->count; i++)
		jobs->all[i].is_from_earlier = jobs->all[i].state == BATCH_ENDED;
	*ret_skipped = loading.skipped + lines.skipped;
	journal->read = lines.at;
	return 0;
}

struct event_reader {
	void (*handle)(void *arg, const struct batch_event *event);
	void *arg;
};

static int reader_take_line(void *arg, const char *line, size_t size)
{
	const struct event_reader *reader = arg;
	struct batch_event event;

	if (size && batch_event_parse(line, size, &event) == 0)
		reader->handle(reader->arg, &event);
	return 0;
}

int batch_journal_read_on(struct batch_journal *journal,
	void (*handle)(void *arg, const struct batch_event *event), void *arg)
{
	struct event_reader reader = { handle, arg };
	struct lines lines = {
		.take = reader_take_line, .arg = &reader, .at = (off_t)journal->read
	};
	int r = lines_read(&lines, journal->fd, INT64_MAX);

	journal->read = lines.at;
	return r;
}

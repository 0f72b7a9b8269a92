#include <errno.h>
#include <sys/stat.h>

#include "batch_journal.h"
#include "fdio.h"

enum {
	JOURNAL_MAX = 256 * 1024 * 1024,
	LONGEST = 1024 * 1024, /* of a list; all others are shorter */
	CHUNK = 64 * 1024,
};

struct loading {
	struct batch_jobs *jobs;
	char *buffer;
	size_t used, room;
	bool is_too_long; /* the line that is being read */
	char *list;       /* the text of the last list */
	size_t list_size;
	size_t skipped;
};

/* --- lines ------------------------------------------------------------------------- */

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
 * Behind a line that could not be read, or written, numbers may be missing.  Others have them all the same,
 * and those that follow stay who they are.
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
static int take_line(struct loading *loading, const char *line, size_t size)
{
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

/* Takes the whole lines of the buffer; at the end of the file all that there is. */
static int take_lines(struct loading *loading, bool is_at_end)
{
	char *at = loading->buffer, *end = at + loading->used;
	int r = 0;

	while (r == 0 && at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));

		if (!newline && !is_at_end)
			break;
		if (!newline)
			newline = end;
		if (loading->is_too_long)
			loading->skipped++;
		else
			r = take_line(loading, at, (size_t)(newline - at));
		loading->is_too_long = false;
		at = newline < end ? newline + 1 : end;
	}
	loading->used = (size_t)(end - at);
	memmove(loading->buffer, at, loading->used);
	return r;
}

/* Room for more of a line than there is. */
static int make_room(struct loading *loading)
{
	char *grown;

	if (loading->used < loading->room)
		return 0;
	if (loading->room >= LONGEST) {
		loading->is_too_long = true;
		loading->used = 0;
		return 0;
	}
	grown = realloc(loading->buffer, loading->room ? loading->room * 2 : CHUNK);
	if (!grown)
		return -ENOMEM;
	loading->buffer = grown;
	loading->room = loading->room ? loading->room * 2 : CHUNK;
	return 0;
}

static int read_all(struct loading *loading, int fd)
{
	off_t offset = 0;
	size_t size;
	int r;

	do {
		r = make_room(loading);
		if (r < 0)
			return r;
		r = fdio_pread(fd, loading->buffer + loading->used,
			loading->room - loading->used, offset, &size);
		if (r < 0)
			return r;
		if (offset + (off_t)size > JOURNAL_MAX)
			return -EFBIG;
		offset += (off_t)size;
		loading->used += size;
		r = take_lines(loading, size == 0);
	} while (r == 0 && size > 0);
	return r;
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

int batch_journal_load(const struct batch_journal *journal, struct batch_jobs *jobs,
	uint64_t **ret_list, size_t *ret_list_count, size_t *ret_skipped, struct why *why)
{
	struct loading loading = { .jobs = jobs };
	int r = read_all(&loading, journal->fd);

	if (r == 0)
		r = take_list(&loading, ret_list, ret_list_count);
	free(loading.buffer);
	free(loading.list);
	if (r < 0) {
		why_set(why, "cannot read '%s/journal.jsonl': %s%s", journal->folder,
			strerror(-r), r == -EFBIG ? "; --fresh begins a new one" : "");
		batch_jobs_release(jobs);
		return r;
	}
	for (size_t i = 0; i < jobs->count; i++)
		jobs->all[i].is_of_before = jobs->all[i].state == BATCH_ENDED;
	*ret_skipped = loading.skipped;
	return 0;
}

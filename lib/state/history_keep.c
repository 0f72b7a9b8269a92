#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "array.h"
#include "fdio.h"
#include "history_keep.h"
#include "owner.h"
#include "record.h"

enum {
	CHUNK = 64,
	BEFORE_MOST = 8,     /* records that belong to one line */
	KEEP_MOST = 1 << 17, /* lines that are kept, whatever the size of the history */
	READ_MOST = 1 << 19, /* lines of a file that are looked at, the newest ones */
};

/* The lines of one user, and how many of them, the oldest, are left out. */
struct part {
	uint32_t uid;
	uint64_t lines, left_out;
};

struct keep {
	int fds[2]; /* the older file first; -1: there is none */
	uint64_t first[2], end[2];
	uint32_t *uids; /* of all lines, in their order, and then sorted */
	size_t count;
	struct part *parts; /* ascending by ->uid */
	size_t users;
	uint64_t most;
};

/* Is called for each line with its user.  Returns 0 or a negative errno. */
typedef int line_fn(struct keep *keep, void *arg, const char *raw, uint32_t uid);

uint32_t history_glance_uid(const char *raw)
{
	static const char key[] = " uid=";
	const char *at = memmem(raw, RECORD_SIZE, key, strlen(key));
	uint32_t uid = 0;

	if (!at)
		return 0;
	for (at += strlen(key); at < raw + RECORD_SIZE && *at >= '0' && *at <= '9'; at++)
		uid = uid * 10 + (uint32_t)(*at - '0');
	return uid;
}

/* Whether the line names its user.  A record of another kind belongs to the next line that does. */
static bool names_user(const char *raw)
{
	return memcmp(raw, "ended/", 6) == 0 || memcmp(raw, "event/", 6) == 0;
}

/* Calls @each for the @count records at @before and for the line that they belong to. */
static int emit(struct keep *keep, line_fn *each, void *arg, const char *before,
	unsigned count, const char *line)
{
	uint32_t uid = history_glance_uid(line);
	int r = 0;

	for (unsigned i = 0; i < count && r == 0; i++)
		r = each(keep, arg, before + i * RECORD_SIZE, uid);
	return r == 0 ? each(keep, arg, line, uid) : r;
}

static int each_line_of(struct keep *keep, unsigned file, line_fn *each, void *arg)
{
	static char raw[CHUNK * RECORD_SIZE], before[BEFORE_MOST * RECORD_SIZE];
	unsigned pending = 0; /* records in @before */

	for (uint64_t at = keep->first[file]; at < keep->end[file];) {
		size_t bytes = 0;
		int r = fdio_pread(keep->fds[file], raw, sizeof(raw),
			(off_t)(at * RECORD_SIZE), &bytes);

		for (size_t i = 0; i < bytes / RECORD_SIZE && r == 0; i++, at++) {
			const char *line = raw + i * RECORD_SIZE;

			if (!line[0] || at >= keep->end[file])
				continue;
			if (names_user(line)) {
				r = emit(keep, each, arg, before, pending, line);
				pending = 0;
			} else if (pending < BEFORE_MOST) {
				memcpy(before + pending++ * RECORD_SIZE, line,
					RECORD_SIZE);
			}
		}
		if (r < 0)
			return r;
		if (bytes < RECORD_SIZE)
			break; /* the file was cut meanwhile */
	}
	return 0;
}

static int each_line(struct keep *keep, line_fn *each, void *arg)
{
	int r = each_line_of(keep, 0, each, arg);

	return r < 0 ? r : each_line_of(keep, 1, each, arg);
}

/* --- the parts ----------------------------------------------------------------------- */

static int note_uid(struct keep *keep, void *arg, const char *raw, uint32_t uid)
{
	(void)arg;
	(void)raw;
	keep->uids[keep->count++] = uid;
	return 0;
}

static int by_uid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t history_fair_part(const uint64_t *counts, size_t users, uint64_t lines)
{
	/* who has less than an equal share leaves the rest of it to the others */
	for (size_t i = 0; i < users; i++) {
		if (counts[i] > lines / (users - i))
			return lines / (users - i);
		lines -= counts[i];
	}
	return UINT64_MAX;
}

/* Sets ->parts from the sorted ->uids.  Returns 0 or -ENOMEM. */
static int make_parts(struct keep *keep)
{
	autofree uint64_t *counts = NULL;
	uint64_t fair;

	keep->parts = calloc(keep->count + 1, sizeof(*keep->parts));
	counts = calloc(keep->count + 1, sizeof(*counts));
	if (!keep->parts || !counts)
		return -ENOMEM;
	qsort(keep->uids, keep->count, sizeof(*keep->uids), by_uid);
	for (size_t i = 0; i < keep->count; i++) {
		if (i == 0 || keep->uids[i] != keep->uids[i - 1])
			keep->parts[keep->users++].uid = keep->uids[i];
		keep->parts[keep->users - 1].lines++;
	}
	for (size_t i = 0; i < keep->users; i++)
		counts[i] = keep->parts[i].lines;
	qsort(counts, keep->users, sizeof(*counts), by_size);
	fair = history_fair_part(counts, keep->users, keep->most);
	for (size_t i = 0; i < keep->users; i++)
		if (keep->parts[i].lines > fair)
			keep->parts[i].left_out = keep->parts[i].lines - fair;
	return 0;
}

static bool is_before_uid(const void *item, const void *uid)
{
	return ((const struct part *)item)->uid < *(const uint32_t *)uid;
}

/* --- the new file --------------------------------------------------------------------- */

/* What was not written yet. */
struct output {
	int fd;
	size_t used;
	char bytes[CHUNK * RECORD_SIZE];
};

static int flush_output(struct output *output)
{
	int r = fdio_write(output->fd, output->bytes, output->used);

	output->used = 0;
	return r;
}

static int write_line(struct keep *keep, void *arg, const char *raw, uint32_t uid)
{
	struct output *output = arg;
	struct part *part =
		keep->parts + array_lower_bound(keep->parts, sizeof(*keep->parts),
				      keep->users, &uid, is_before_uid);

	if (part->left_out) {
		part->left_out--;
		return 0;
	}
	memcpy(output->bytes + output->used, raw, RECORD_SIZE);
	output->used += RECORD_SIZE;
	return output->used == sizeof(output->bytes) ? flush_output(output) : 0;
}

static int write_file(struct keep *keep, int dirfd, const char *name)
{
	static struct output output; /* too big for the stack */
	char temporary[64], token[TOKEN_SIZE];
	autofd int fd = -1;
	int r = token_make(token);

	if (r < 0)
		return r;
	(void)snprintf(temporary, sizeof(temporary), "tmp.history.%s", token);
	fd = openat(dirfd, temporary,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	output = (struct output){ .fd = fd };
	r = each_line(keep, write_line, &output);
	if (r == 0)
		r = flush_output(&output);
	if (r == 0 && (fchmod(fd, FDIO_MODE_SHARED) < 0 ||
			      renameat(dirfd, temporary, dirfd, name) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, temporary, 0);
	return r;
}

/* --- both --------------------------------------------------------------------------------- */

/* Opens one of the two files.  Returns 0, also if it is missing, or a negative errno. */
static int open_file(struct keep *keep, unsigned file, int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	keep->fds[file] = fd;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	keep->end[file] = (uint64_t)st.st_size / RECORD_SIZE;
	if (keep->end[file] > READ_MOST)
		keep->first[file] = keep->end[file] - READ_MOST;
	return 0;
}

/*
 * Whether the files end with the same line: then a process was killed after it had made the new
 * file.  The newest line of all is the newest of its user, so it is always kept.
 */
static bool is_done(const struct keep *keep)
{
	char last[2][RECORD_SIZE];

	for (unsigned i = 0; i < 2; i++)
		if (keep->fds[i] < 0 || !keep->end[i] ||
			pread(keep->fds[i], last[i], RECORD_SIZE,
				(off_t)((keep->end[i] - 1) * RECORD_SIZE)) != RECORD_SIZE)
			return false;
	return last[0][0] && memcmp(last[0], last[1], RECORD_SIZE) == 0;
}

static int keep_lines(struct keep *keep, int dirfd, const char *name)
{
	int r;

	if (!keep->end[1] || is_done(keep))
		return 0;
	keep->uids = calloc(keep->end[0] - keep->first[0] + keep->end[1] - keep->first[1],
		sizeof(*keep->uids));
	r = keep->uids ? each_line(keep, note_uid, NULL) : -ENOMEM;
	if (r == 0)
		r = make_parts(keep);
	return r == 0 ? write_file(keep, dirfd, name) : r;
}

int history_keep(int dirfd, const char *kept, const char *older, uint64_t lines)
{
	struct keep keep = { .fds = { -1, -1 } };
	int r;

	keep.most = lines < KEEP_MOST ? lines : KEEP_MOST;
	r = open_file(&keep, 0, dirfd, kept);
	if (r == 0)
		r = open_file(&keep, 1, dirfd, older);
	if (r == 0)
		r = keep_lines(&keep, dirfd, kept);
	close_fd(&keep.fds[0]);
	close_fd(&keep.fds[1]);
	free(keep.uids);
	free(keep.parts);
	return r;
}

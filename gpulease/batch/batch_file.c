#include <errno.h>
#include <fcntl.h>

#include "batch_file.h"
#include "batch_list.h"
#include "clock.h"
#include "rights.h"
#include "userfile.h"

enum { CHUNK = 64 * 1024, CHUNKS_AT_ONCE = 16 };

static int file_refuse(const struct batch_file *file, int error, struct why *why)
{
	const char *name = file->is_pipe ? "standard input" : file->path;

	if (error == -EINVAL)
		why_set(why, "'%s' is not a regular file; '-' reads standard input",
			name);
	else if (error == -EFBIG)
		why_set(why, "'%s' is larger than %dM", name,
			BATCH_FILE_MAX / 1024 / 1024);
	else
		why_set(why, "cannot read '%s': %s", name, strerror(-error));
	return error;
}

/* --- reading ----------------------------------------------------------------------- */

struct reading {
	char *text;
	size_t used, room;
};

/*
 * Makes room to read; at most one byte more than the file may have, which shows that it is too
 * large.
 */
static int reading_make_room(struct reading *in, size_t wanted)
{
	size_t room = in->room * 2 > wanted ? in->room * 2 : wanted;
	char *text;

	if (in->used > BATCH_FILE_MAX)
		return -EFBIG;
	if (in->used < in->room)
		return 0;
	if (room > BATCH_FILE_MAX + 1)
		room = BATCH_FILE_MAX + 1;
	text = realloc(in->text, room);
	if (!text)
		return -ENOMEM;
	in->text = text;
	in->room = room;
	return 0;
}

/* Reads once.  Returns the number of bytes, 0 at the end, or a negative errno. */
static ssize_t reading_read(int fd, size_t wanted, struct reading *in)
{
	ssize_t n, r = reading_make_room(in, wanted);

	if (r < 0)
		return r;
	do
		n = read(fd, in->text + in->used, in->room - in->used);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	in->used += (size_t)n;
	return n;
}

static bool is_same_state(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Returns the size of the whole lines at the beginning of @text. */
static size_t whole_lines_size(const char *text, size_t size)
{
	const char *end = size ? memrchr(text, '\n', size) : NULL;

	return end ? (size_t)(end - text) + 1 : 0;
}

/* Whether the file was not written for a while.  CLOCK_REALTIME, because mtime is. */
static bool is_file_settled(const struct stat *st)
{
	int64_t at_ms =
		(int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;

	return clock_age_ms(clock_real_ms(), at_ms) >= BATCH_QUIET_MS;
}

/* Whether the text is the same as before, and all of it counted. */
static bool is_known_text(const struct batch_file *file, const struct reading *in)
{
	return file->size == in->used &&
	       (!in->used || memcmp(file->text, in->text, in->used) == 0);
}

/*
 * Takes over the text that was read.  Returns whether it differs from the one before.  At the first
 * read a last line without a newline counts, because it was complete before the batch began.
 */
static bool file_take_over(struct batch_file *file, const struct stat *st,
	const struct reading *in, int64_t now_ms, bool is_first)
{
	size_t whole = whole_lines_size(in->text, in->used), size = whole;
	bool is_new;

	file->is_unsettled = !is_file_settled(st);
	if (!file->is_unsettled || is_first || is_known_text(file, in))
		size = in->used;
	else if (whole < in->used)
		file->look_ms = min_i64(file->look_ms, now_ms + BATCH_QUIET_MS);
	is_new = size != file->size || (size && memcmp(in->text, file->text, size) != 0);
	free(file->text);
	file->text = in->text;
	file->size = size;
	file->used = in->used;
	file->room = in->room;
	file->seen = file->looked = *st;
	file->reported_error = 0;
	return is_new;
}

/* Returns a descriptor of the file and sets *@st, or returns a negative errno. */
static int file_open_regular(const struct batch_file *file, struct stat *st)
{
	/* O_NONBLOCK: the path may be a FIFO, and opening it would wait for a writer */
	autofd int fd = userfile_open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	return st->st_size > BATCH_FILE_MAX ? -EFBIG : take_fd(&fd);
}

static int file_open_as_user(struct batch_file *file, struct stat *st)
{
	int fd;

	rights_as_user_begin();
	batch_watch_renew(&file->watch, file->path);
	fd = file_open_regular(file, st);
	rights_as_user_end();
	return fd;
}

/* Whether a writer has begun while the file was read, so that the text may be incomplete. */
static bool is_being_written(struct batch_file *file, int64_t now_ms)
{
	int64_t look_ms = batch_watch_read(&file->watch, now_ms, INT64_MAX);

	file->look_ms = min_i64(file->look_ms, look_ms);
	return look_ms > now_ms && look_ms != INT64_MAX;
}

/* Reads @fd whole.  Returns BATCH_FILE_CHANGED, 0 (nothing new), or a negative errno. */
static int file_load(struct batch_file *file, int fd, const struct stat *st,
	int64_t now_ms, bool is_first)
{
	struct reading in = { .text = NULL };
	ssize_t n;

	do
		n = reading_read(fd, (size_t)st->st_size + 1, &in);
	while (n > 0);
	if (n >= 0 && (is_first || !is_being_written(file, now_ms)))
		return file_take_over(file, st, &in, now_ms, is_first)
			       ? BATCH_FILE_CHANGED
			       : 0;
	free(in.text);
	return (int)n;
}

/* --- changes ----------------------------------------------------------------------- */

/* The file is missing.  An editor may remove it before it writes a new one, so look once more. */
static int file_note_missing(struct batch_file *file, int64_t now_ms)
{
	if (file->is_missing)
		return -ENOENT;
	file->is_missing = true;
	file->look_ms = now_ms + BATCH_QUIET_MS;
	return 0;
}

static int file_check(struct batch_file *file, int64_t now_ms)
{
	struct stat st;
	autofd int fd = file_open_as_user(file, &st);
	bool was_changing;

	file->look_ms = file->watch.needs_timer ? now_ms + BATCH_LOOK_MS : INT64_MAX;
	if (fd == -ENOENT)
		return file_note_missing(file, now_ms);
	file->is_missing = false;
	if (fd < 0)
		return fd;
	if (!file->is_unsettled && is_same_state(&st, &file->seen)) {
		file->reported_error = 0;
		return 0;
	}
	/* the timer does not say whether a writer is at work: read when two looks agree */
	was_changing = !is_same_state(&st, &file->looked);
	file->looked = st;
	if (was_changing)
		file->reported_error = 0;
	if (file->watch.needs_timer && was_changing)
		return 0;
	return file_load(file, fd, &st, now_ms, false);
}

/* Whether the file differs from what was read, and its state was not reported as an error. */
static bool has_unread_change(const struct batch_file *file)
{
	struct stat st;
	autofd int fd = -1;

	rights_as_user_begin();
	fd = file_open_regular(file, &st);
	rights_as_user_end();
	if (fd < 0)
		return file->reported_error != fd;
	if (file->reported_error && is_same_state(&st, &file->looked))
		return false;
	return file->size < file->used || !is_same_state(&st, &file->seen);
}

/* --- standard input ---------------------------------------------------------------- */

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	/* stdin is shared with other programs, so do not make it non-blocking */
	return poll(&poll_fd, 1, 0) == 1;
}

/* Reads what has arrived.  Returns BATCH_FILE_CHANGED if there are more lines, 0, or -errno. */
static int file_take_input(struct batch_file *file)
{
	struct reading in = { file->text, file->used, file->room };
	size_t size = file->size;
	ssize_t n = reading_make_room(&in, CHUNK); /* so that ->text is never NULL */

	n = n < 0 ? n : 1;
	for (int i = 0; i < CHUNKS_AT_ONCE && n > 0 && is_readable(STDIN_FILENO); i++)
		n = reading_read(STDIN_FILENO, CHUNK, &in);
	file->text = in.text;
	file->used = in.used;
	file->room = in.room;
	if (n == -EAGAIN) /* another reader of the same pipe was faster */
		n = 1;
	file->is_at_end = n <= 0;
	if (n >= 0)
		file->size = n ? whole_lines_size(in.text, in.used) : in.used;
	if (n < 0)
		return (int)n;
	return file->size > size ? BATCH_FILE_CHANGED : 0;
}

/* --- the interface ----------------------------------------------------------------- */

int batch_file_open(const char *path, struct batch_file *ret, struct why *why)
{
	autofd int fd = -1;
	struct stat st;

	*ret = BATCH_FILE_NONE;
	text_copy(ret->path, sizeof(ret->path), path);
	ret->is_pipe = strcmp(path, "-") == 0;
	if (ret->is_pipe)
		return 0;
	if (strlen(path) >= sizeof(ret->path))
		return file_refuse(ret, -ENAMETOOLONG, why);
	batch_watch_begin(&ret->watch);
	fd = file_open_as_user(ret, &st);
	if (fd >= 0)
		return 0;
	batch_file_release(ret);
	return file_refuse(ret, fd, why);
}

int batch_file_read(struct batch_file *file, struct why *why)
{
	int64_t now_ms = clock_boot_ms();
	struct stat st;
	autofd int fd = -1;
	int r;

	if (file->is_pipe) {
		r = file->is_at_end ? 0 : file_take_input(file);
	} else {
		file->look_ms = INT64_MAX;
		fd = file_open_as_user(file, &st);
		if (file->watch.needs_timer)
			file->look_ms = now_ms + BATCH_LOOK_MS;
		r = fd < 0 ? fd : file_load(file, fd, &st, now_ms, true);
	}
	return r < 0 ? file_refuse(file, r, why) : 0;
}

unsigned batch_file_poll(const struct batch_file *file, struct pollfd fds[BATCH_FILE_FDS])
{
	int fd = file->is_pipe ? STDIN_FILENO : file->watch.fd;

	if (fd < 0 || file->is_at_end)
		return 0;
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 1;
}

int64_t batch_file_wake_ms(const struct batch_file *file)
{
	return file->look_ms;
}

int batch_file_step(struct batch_file *file, int64_t now_ms, struct why *why)
{
	int r;

	if (file->is_pipe) {
		r = file->is_at_end ? 0 : file_take_input(file);
		return r < 0 ? file_refuse(file, r, why) : r;
	}
	file->look_ms = batch_watch_read(&file->watch, now_ms, file->look_ms);
	if (file->look_ms > now_ms)
		return 0;
	r = file_check(file, now_ms);
	if (r >= 0 || file->reported_error == r)
		return r < 0 ? 0 : r;
	file->reported_error = r;
	return file_refuse(file, r, why);
}

bool batch_file_has_more(struct batch_file *file, int64_t now_ms)
{
	if (file->is_pipe)
		return !file->is_at_end;
	if (!has_unread_change(file))
		return false;
	/* no event may come for this state, so look by timer */
	file->look_ms = min_i64(file->look_ms, now_ms + BATCH_QUIET_MS);
	return true;
}

void batch_file_release(struct batch_file *file)
{
	batch_watch_release(&file->watch);
	free(file->text);
	file->text = NULL;
	file->size = file->used = file->room = 0;
}

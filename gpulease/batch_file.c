#include <errno.h>
#include <fcntl.h>

#include "batch_file.h"
#include "batch_list.h"
#include "clock.h"
#include "rights.h"
#include "userfile.h"

enum { CHUNK = 64 * 1024, CHUNKS_AT_ONCE = 16 };

static int refuse(const struct batch_file *file, int error, struct why *why)
{
	const char *name = file->is_pipe ? "standard input" : file->path;

	if (error == -EINVAL)
		why_set(why, "'%s' is no regular file; '-' reads from a pipe", name);
	else if (error == -EFBIG)
		why_set(why, "'%s' is larger than %d MiB", name,
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

/* One byte more than the file may have shows that it has more. */
static int make_room(struct reading *in, size_t wanted)
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

/* Reads what @fd has now.  How many bytes, 0 at the end, or a negative errno. */
static ssize_t read_more(int fd, size_t wanted, struct reading *in)
{
	ssize_t n, r = make_room(in, wanted);

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

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* The size of what is whole lines. */
static size_t whole_lines(const char *text, size_t size)
{
	const char *end = size ? memrchr(text, '\n', size) : NULL;

	return end ? (size_t)(end - text) + 1 : 0;
}

/* Whether nobody has written for a while, by the clock that files are stamped with. */
static bool has_settled(const struct stat *st)
{
	int64_t at_ms =
		(int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;

	return clock_age_ms(clock_real_ms(), at_ms) >= BATCH_QUIET_MS;
}

/* Whether all of it has counted already. */
static bool is_known(const struct batch_file *file, const struct reading *in)
{
	return file->size == in->used &&
	       (!in->used || memcmp(file->text, in->text, in->used) == 0);
}

/*
 * Takes over what was read.  Whether it is something else than before.  A last line without its
 * newline counts where it was there before anybody began to look: an error in it is told then.
 */
static bool take_over(struct batch_file *file, const struct stat *st,
	const struct reading *in, int64_t now_ms, bool is_first)
{
	size_t whole = whole_lines(in->text, in->used), size = whole;
	bool is_new;

	file->is_unsettled = !has_settled(st);
	if (!file->is_unsettled || is_first || is_known(file, in))
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
	file->told = 0;
	return is_new;
}

/* The descriptor of the file, or a negative errno; sets *@st. */
static int open_regular(const struct batch_file *file, struct stat *st)
{
	/* somebody may have put a FIFO there, for which nobody is to wait */
	autofd int fd = userfile_open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	return st->st_size > BATCH_FILE_MAX ? -EFBIG : take_fd(&fd);
}

static int open_as_user(struct batch_file *file, struct stat *st)
{
	int fd;

	rights_as_user_begin();
	batch_watch_renew(&file->watch, file->path);
	fd = open_regular(file, st);
	rights_as_user_end();
	return fd;
}

/* Whether somebody has begun to write meanwhile, so that what was read may be half of it. */
static bool is_being_written(struct batch_file *file, int64_t now_ms)
{
	int64_t look_ms = batch_watch_read(&file->watch, now_ms, INT64_MAX);

	file->look_ms = min_i64(file->look_ms, look_ms);
	return look_ms > now_ms && look_ms != INT64_MAX;
}

/* Reads @fd whole.  1: that is something new; 0; or a negative errno. */
static int load(struct batch_file *file, int fd, const struct stat *st, int64_t now_ms,
	bool is_first)
{
	struct reading in = { .text = NULL };
	ssize_t n;

	do
		n = read_more(fd, (size_t)st->st_size + 1, &in);
	while (n > 0);
	if (n >= 0 && (is_first || !is_being_written(file, now_ms)))
		return take_over(file, st, &in, now_ms, is_first);
	free(in.text);
	return (int)n;
}

/* --- looking whether it has changed ------------------------------------------------ */

/* Who replaces a file may remove it first: gone it is when it still is a while later. */
static int miss(struct batch_file *file, int64_t now_ms)
{
	if (file->is_missed)
		return -ENOENT;
	file->is_missed = true;
	file->look_ms = now_ms + BATCH_QUIET_MS;
	return 0;
}

static int look(struct batch_file *file, int64_t now_ms)
{
	struct stat st;
	autofd int fd = open_as_user(file, &st);
	bool was_changing;

	file->look_ms = file->watch.needs_timer ? now_ms + BATCH_LOOK_MS : INT64_MAX;
	if (fd == -ENOENT)
		return miss(file, now_ms);
	file->is_missed = false;
	if (fd < 0)
		return fd;
	if (!file->is_unsettled && is_same(&st, &file->seen)) {
		file->told = 0;
		return 0;
	}
	/* by the timer alone nobody knows who still writes: twice the same is enough */
	was_changing = !is_same(&st, &file->looked);
	file->looked = st;
	if (was_changing)
		file->told = 0;
	if (file->watch.needs_timer && was_changing)
		return 0;
	return load(file, fd, &st, now_ms, false);
}

/* Whether what is in its place now was neither read, nor told to be what cannot be. */
static bool is_news(const struct batch_file *file)
{
	struct stat st;
	autofd int fd = -1;

	rights_as_user_begin();
	fd = open_regular(file, &st);
	rights_as_user_end();
	if (fd < 0)
		return file->told != fd;
	if (file->told && is_same(&st, &file->looked))
		return false;
	return file->size < file->used || !is_same(&st, &file->seen);
}

/* --- standard input ---------------------------------------------------------------- */

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	/* it is shared with other programs, so it stays as it is: blocking */
	return poll(&poll_fd, 1, 0) == 1;
}

/* Takes what has come.  1: there are lines more; 0; or a negative errno, once. */
static int take_input(struct batch_file *file)
{
	struct reading in = { file->text, file->used, file->room };
	size_t size = file->size;
	ssize_t n = make_room(&in, CHUNK); /* so that there is a text, if an empty one */

	n = n < 0 ? n : 1;
	for (int i = 0; i < CHUNKS_AT_ONCE && n > 0 && is_readable(STDIN_FILENO); i++)
		n = read_more(STDIN_FILENO, CHUNK, &in);
	file->text = in.text;
	file->used = in.used;
	file->room = in.room;
	if (n == -EAGAIN) /* somebody else has read it */
		n = 1;
	file->is_at_end = n <= 0;
	if (n >= 0)
		file->size = n ? whole_lines(in.text, in.used) : in.used;
	return n < 0 ? (int)n : file->size > size;
}

/* --- from outside ------------------------------------------------------------------ */

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
		return refuse(ret, -ENAMETOOLONG, why);
	batch_watch_begin(&ret->watch);
	fd = open_as_user(ret, &st);
	if (fd >= 0)
		return 0;
	batch_file_release(ret);
	return refuse(ret, fd, why);
}

int batch_file_read(struct batch_file *file, struct why *why)
{
	int64_t now_ms = clock_boot_ms();
	struct stat st;
	autofd int fd = -1;
	int r;

	if (file->is_pipe) {
		r = file->is_at_end ? 0 : take_input(file);
	} else {
		file->look_ms = INT64_MAX;
		fd = open_as_user(file, &st);
		if (file->watch.needs_timer)
			file->look_ms = now_ms + BATCH_LOOK_MS;
		r = fd < 0 ? fd : load(file, fd, &st, now_ms, true);
	}
	return r < 0 ? refuse(file, r, why) : 0;
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
		r = file->is_at_end ? 0 : take_input(file);
		return r < 0 ? refuse(file, r, why) : r;
	}
	file->look_ms = batch_watch_read(&file->watch, now_ms, file->look_ms);
	if (file->look_ms > now_ms)
		return 0;
	r = look(file, now_ms);
	if (r >= 0 || file->told == r)
		return r < 0 ? 0 : r;
	file->told = r;
	return refuse(file, r, why);
}

bool batch_file_is_behind(struct batch_file *file, int64_t now_ms)
{
	if (file->is_pipe)
		return !file->is_at_end;
	if (!is_news(file))
		return false;
	/* also where nothing has said so, or will */
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

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "clock.h"
#include "fdio.h"
#include "history.h"
#include "history_book.h"
#include "history_keep.h"
#include "parse.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

#define FILE_NAME "history"
#define OLDER_NAME "history.1"
#define KEPT_NAME "history.2"

static const char *const file_names[HISTORY_FILES] = { FILE_NAME, OLDER_NAME, KEPT_NAME };

enum {
	OPEN_TRIES = 8,
	WRITE_TRIES = 8,
	CLOCK_STEP_MS = 60000, /* how far the real-time clock may have been set */
	MARK_LOCK_MS = 50,     /* how long a process waits for the lock to mark a line */
	MARK_SEARCHED = 64,    /* the most lines that are tried until one can be read */
	MOST_STATUS = 255,
	FIND_SEARCHED = 4096, /* the most lines in which a recorder looks for its own */
	FIRST_BYTES = 4096,   /* allocated for a new file: room for its first lines */
	PART_SIZE = 401,      /* what a line keeps of a name, escaped, with a NUL */
	PARTS_MOST = 3,       /* lines that keep a name */
};

#define AT(field) offsetof(struct history_end, field)
static const struct record_field fields[] = {
	{ "ticket", RECORD_U64, AT(ticket), 0 },
	{ "attempt", RECORD_U32, AT(attempt), 0 },
	{ "uid", RECORD_U32, AT(uid), 0 },
	{ "boot", RECORD_TEXT, AT(boot), HISTORY_BOOT_SIZE },
	{ "at", RECORD_I64, AT(at_ms), 0 },
	{ "provisional", RECORD_U32, AT(is_provisional), 0 },
	{ "exact", RECORD_U32, AT(is_exact), 0 },
	{ "user", RECORD_TEXT, AT(user), USER_SIZE },
	{ "gpus", RECORD_TEXT, AT(gpus), 64 },
	{ "count", RECORD_U32, AT(gpu_count), 0 },
	{ "share", RECORD_U32, AT(share_percent), 0 },
	{ "vram", RECORD_U64, AT(vram_mib), 0 },
	{ "waited", RECORD_I64, AT(waited_ms), 0 },
	{ "since", RECORD_I64, AT(since_ms), 0 },
	{ "alive", RECORD_I64, AT(alive_ms), 0 },
	{ "gone", RECORD_I64, AT(gone_ms), 0 },
	{ "peaks", RECORD_TEXT, AT(peaks), HISTORY_PEAKS_SIZE },
	{ "spans", RECORD_U32, AT(spans_run), 0 },
	{ "busy", RECORD_TEXT, AT(utilization), 8 },
	{ "samples", RECORD_U32, AT(use_samples), 0 },
	{ "unused", RECORD_I64, AT(unused_ms), 0 },
	{ "zero", RECORD_I64, AT(unused_at_end_ms), 0 },
	{ "logfull", RECORD_U32, AT(log_is_full), 0 },
	{ "how", RECORD_TEXT, AT(how), 16 },
	{ "by", RECORD_TEXT, AT(by), USER_SIZE },
	{ "missing", RECORD_U32, AT(missing), 0 },
	{ "missed", RECORD_I64, AT(missing_ms), 0 },
	{ "status", RECORD_TEXT, AT(status), 4 },
	{ "until", RECORD_I64, AT(until_ms), 0 },
	{ "but", RECORD_TEXT, AT(but), WINDOW_USERS_SIZE },
	{ "name", RECORD_TEXT, AT(name), NAME_KEPT_SIZE },
	{ "nh", RECORD_HEX, AT(name_hash), 0 },
	{ "command", RECORD_REST, AT(command), COMMAND_SIZE_MAX },
};
#undef AT

/* A part of the name of the job in the next line that has the hash. */
struct name_part {
	uint64_t hash;
	uint32_t at; /* where the part begins */
	char text[NAME_SIZE_MAX];
};

static const struct record_field part_fields[] = {
	{ "hash", RECORD_HEX, offsetof(struct name_part, hash), 0 },
	{ "at", RECORD_U32, offsetof(struct name_part, at), 0 },
	{ "text", RECORD_TEXT, offsetof(struct name_part, text), PART_SIZE },
};

static const struct record_schema part_schema = RECORD_SCHEMA("name/1", part_fields);
static const struct record_schema schema = RECORD_SCHEMA("ended/1", fields);
static const struct record_schema event_schema = RECORD_SCHEMA("event/1", fields);

static int trouble; /* the errno of the last line that this process could not write */

int history_take_trouble(void)
{
	int r = trouble;

	trouble = 0;
	return r;
}

/* --- writing ----------------------------------------------------------------------- */

/* Makes an empty file, unless another process makes it first. */
static int history_make_file(int dirfd)
{
	char temporary[64], token[TOKEN_SIZE];
	int r = token_make(token);

	if (r < 0)
		return r;
	(void)snprintf(temporary, sizeof(temporary), "tmp." FILE_NAME ".%s", token);
	return fdio_publish(dirfd, FILE_NAME, temporary, "", 0, FDIO_MODE_SHARED);
}

/* Opens the file that has the name now; makes it if it is missing.  Returns it or -errno. */
static int history_open_fd(int dirfd)
{
	int fd = -ENOENT;

	/* a file that was just made may be renamed before it is opened: try again */
	for (int i = 0; i < OPEN_TRIES && fd == -ENOENT; i++) {
		int r = i ? history_make_file(dirfd) : 0;

		if (r < 0)
			return r;
		fd = openat(dirfd, FILE_NAME,
			O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			fd = -errno;
		else if (i)
			(void)!fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, FIRST_BYTES);
	}
	return fd;
}

int history_open(const struct statedir *dir, struct history_file *ret)
{
	int fd = history_open_fd(dir->fd);

	if (fd < 0) {
		trouble = fd;
		return fd;
	}
	*ret = (struct history_file){
		.dirfd = dir->fd,
		.fd = fd,
		.bytes = dir->history_bytes ? dir->history_bytes : HISTORY_BYTES,
	};
	return 0;
}

void history_release(struct history_file *file)
{
	close_fd(&file->fd);
}

/* Whether the name leads to @fd.  A negative @fd stands for no file. */
static bool history_is_named(int dirfd, int fd)
{
	struct stat named;

	if (fd >= 0)
		return fdio_is_named(dirfd, FILE_NAME, fd);
	return fstatat(dirfd, FILE_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

/* Opens the file that has the name now.  If that fails, the open file is good enough. */
static void history_follow_name(struct history_file *file)
{
	int fd;

	if (history_is_named(file->dirfd, file->fd))
		return;
	fd = history_open_fd(file->dirfd);
	if (fd < 0)
		return;
	close_fd(&file->fd);
	file->fd = fd;
}

/* Whether the file has reached the size at which it is renamed. */
static bool history_is_full(const struct history_file *file)
{
	struct stat st;

	return fstat(file->fd, &st) == 0 && (uint64_t)st.st_size >= file->bytes;
}

/*
 * Keeps a part of the older file.  Returns whether the older file may go.  If the part cannot be
 * kept, it may go once the file is twice as full: until then, another process may be able to.
 */
static bool history_keep_older(const struct history_file *file)
{
	struct history_file twice = *file;

	twice.bytes *= 2;
	return history_keep(file->dirfd, KEPT_NAME, OLDER_NAME,
		       file->bytes / RECORD_SIZE) == 0 ||
	       history_is_full(&twice);
}

/*
 * Lets the full file and the older one, which is emptied, change their names.  So their owners stay
 * the same, and no user's quota decides whether lines can be written.  Returns false if there is no
 * older file, or the file system cannot do it.
 */
static bool history_swap(int dirfd)
{
	autofd int older =
		openat(dirfd, OLDER_NAME, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (older < 0 || fstat(older, &st) < 0 || !S_ISREG(st.st_mode) ||
		ftruncate(older, 0) < 0)
		return false;
	(void)!fallocate(older, FALLOC_FL_KEEP_SIZE, 0, FIRST_BYTES);
	return syscall(SYS_renameat2, dirfd, FILE_NAME, dirfd, OLDER_NAME,
		       RENAME_EXCHANGE) == 0;
}

/*
 * Gives the full file the name of the older one.  Another process may have done so already, and the
 * name then leads to another file, which is almost empty.  So the process takes the lock of its
 * file and then checks that the file still has the name.
 */
static void history_put_aside(struct history_file *file)
{
	/* another process renames or marks it: leave the renaming to a later line */
	if (flock(file->fd, LOCK_EX | LOCK_NB) < 0)
		return;
	if (history_is_named(file->dirfd, file->fd) && history_keep_older(file) &&
		!history_swap(file->dirfd))
		(void)!renameat(file->dirfd, FILE_NAME, file->dirfd, OLDER_NAME);
	(void)flock(file->fd, LOCK_UN);
	history_follow_name(file);
}

/* The line is in a place or a file that no reader finds: write it again. */
enum { WRITE_LOST = 1 };

/*
 * Appends @count lines in one write.  If the last line was cut short (a full disk), zeros fill the
 * space up to the next multiple of a record's size.  WRITE_LOST: another process has appended in
 * between, so the lines are not at such multiples; or the file was unlinked.
 */
static int history_append_raw(int fd, const char *raw, size_t count)
{
	char bytes[(PARTS_MOST + 2) * RECORD_SIZE] = { 0 };
	size_t pad, size = count * RECORD_SIZE;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	pad = (size_t)(-st.st_size & (RECORD_SIZE - 1)); /* RECORD_SIZE is a power of 2 */
	memcpy(bytes + pad, raw, size);
	n = write(fd, bytes, pad + size);
	if (n < 0)
		return -errno;
	if ((size_t)n != pad + size)
		return -ENOSPC;
	if (lseek(fd, 0, SEEK_CUR) % RECORD_SIZE || fstat(fd, &st) < 0)
		return WRITE_LOST;
	return st.st_nlink ? 0 : WRITE_LOST;
}

/* Encodes the line.  If it is too long, shortens a long name and leaves out the peaks. */
static int history_encode(const struct history_end *end, char raw[RECORD_SIZE])
{
	const struct record_schema *as = history_is_event(end) ? &event_schema : &schema;
	struct history_end shorter = *end;
	int r = record_encode(as, end, raw);

	if (r == -EMSGSIZE && end->name_hash) {
		job_name_shorten(shorter.name);
		r = record_encode(as, &shorter, raw);
	}
	if (r != -EMSGSIZE)
		return r;
	shorter.peaks[0] = '\0';
	shorter.spans_run = 0;
	return record_encode(as, &shorter, raw);
}

/*
 * Encodes the name of @end, if that is long and known, as lines at @raw.  Returns how many there
 * are, or a negative errno.
 */
static int history_encode_name(const struct history_end *end, char *raw)
{
	size_t size = strlen(end->name);
	struct name_part part = { .hash = end->name_hash }, kept;
	int count = 0;

	if (!end->name_hash || !job_name_is_whole(end->name, end->name_hash))
		return 0;
	while (part.at < size) {
		int r = -EMSGSIZE;

		text_copy(part.text, sizeof(part.text), end->name + part.at);
		if (count < PARTS_MOST)
			r = record_encode(&part_schema, &part, raw + count * RECORD_SIZE);
		/* what had no room goes into the next line */
		if (r == 0)
			r = record_decode(&part_schema, raw + count * RECORD_SIZE, &kept);
		if (r < 0)
			return r;
		part.at += (uint32_t)strlen(kept.text);
		count++;
	}
	return count;
}

/* Appends the line to the file that has the name.  Returns 0 or a negative errno. */
static int history_write_line(struct history_file *file, const struct history_end *end)
{
	char raw[(PARTS_MOST + 1) * RECORD_SIZE];
	int parts = history_encode_name(end, raw), r = parts;

	if (r >= 0)
		r = history_encode(end, raw + parts * RECORD_SIZE);
	if (r < 0)
		return r;
	for (int i = 0; i < WRITE_TRIES; i++) {
		history_follow_name(file);
		if (history_is_full(file))
			history_put_aside(file);
		r = history_append_raw(file->fd, raw, (size_t)parts + 1);
		if (r != WRITE_LOST)
			return r;
	}
	return -ESTALE;
}

int history_write(struct history_file *file, const struct history_end *end)
{
	int r = history_write_line(file, end);

	if (r < 0)
		trouble = r;
	return r;
}

int history_append(const struct statedir *dir, const struct history_end *end)
{
	struct history_file file;
	int r = history_open(dir, &file);

	if (r < 0)
		return r;
	r = history_write(&file, end);
	if (r < 0) /* readers then learn from the line before it that one is missing */
		history_mark_missing(&file);
	history_release(&file);
	return r;
}

int history_find_in(
	const struct history_file *file, uint64_t ticket, struct history_end *ret)
{
	char raw[RECORD_SIZE];
	struct stat st;
	off_t at;

	if (fstat(file->fd, &st) < 0)
		return HISTORY_NONE;
	at = st.st_size / RECORD_SIZE * RECORD_SIZE;
	for (int i = 0; i < FIND_SEARCHED && at > 0; i++) {
		at -= RECORD_SIZE;
		if (pread(file->fd, raw, sizeof(raw), at) == sizeof(raw) &&
			record_decode(&schema, raw, ret) == 0 && ret->ticket == ticket)
			return 0;
	}
	return HISTORY_NONE;
}

/* --- what is missing --------------------------------------------------------------- */

/*
 * Counts one more missing line in the last line of @fd that can be read.  Returns false if there is
 * none.
 */
static bool history_mark_last_line(int fd)
{
	struct history_end end;
	char raw[RECORD_SIZE];
	struct stat st;
	off_t at;

	if (fstat(fd, &st) < 0)
		return false;
	at = st.st_size / RECORD_SIZE * RECORD_SIZE;
	for (int i = 0; i < MARK_SEARCHED && at > 0; i++) {
		at -= RECORD_SIZE;
		if (pread(fd, raw, sizeof(raw), at) != sizeof(raw) ||
			record_decode(&schema, raw, &end) != 0)
			continue;
		end.missing += end.missing < UINT32_MAX;
		end.missing_ms = clock_real_ms();
		return history_encode(&end, raw) == 0 &&
		       pwrite(fd, raw, sizeof(raw), at) == sizeof(raw);
	}
	return false;
}

/*
 * Marks the last line.  Clears O_APPEND meanwhile, because on Linux pwrite(2) appends with it.
 * Processes with an open file of their own go on appending.
 */
static bool history_mark_in_place(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	bool is_marked;

	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_APPEND) < 0)
		return false;
	is_marked = history_mark_last_line(fd);
	(void)fcntl(fd, F_SETFL, flags);
	return is_marked;
}

/*
 * Marks the last line under the lock, so that processes that mark at the same time count one after
 * the other.  If a stopped process holds the lock, it marks without it; then a count may be lost.
 */
static bool history_mark(int fd)
{
	int64_t until_ms = clock_boot_ms() + MARK_LOCK_MS;
	bool is_marked;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0 && clock_boot_ms() < until_ms)
		(void)poll(NULL, 0, 1);
	is_marked = history_mark_in_place(fd);
	(void)flock(fd, LOCK_UN);
	return is_marked;
}

void history_mark_missing(const struct history_file *file)
{
	int older;

	if (history_mark(file->fd))
		return;
	/* the new file has no line yet */
	older = openat(
		file->dirfd, OLDER_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (older >= 0)
		(void)history_mark(older);
	close_fd(&older);
}

/* --- reading ----------------------------------------------------------------------- */

/* Opens one of the two files.  A missing file has no records. */
static int reader_open_file(int dirfd, const char *name, int *ret_fd, size_t *ret_records)
{
	autofd int fd =
		openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	*ret_fd = -1;
	*ret_records = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_fd = take_fd(&fd);
	*ret_records = (size_t)st.st_size / RECORD_SIZE;
	return 0;
}

int history_reader_open(int dirfd, struct history_reader *reader)
{
	int r = 0;

	for (size_t i = 0; i < HISTORY_FILES; i++) {
		reader->fds[i] = -1;
		reader->left[i] = 0;
	}
	reader->ready = 0;
	reader->wants_events = false;
	reader->gap = (struct history_gap){ .missing = 0 };
	reader->book = NULL;
	/* a file that is renamed between the two opens would be read twice, or not at all */
	for (int i = 0; i < OPEN_TRIES; i++) {
		history_reader_release(reader);
		for (size_t file = 0; file < HISTORY_FILES && r == 0; file++)
			r = reader_open_file(dirfd, file_names[file], &reader->fds[file],
				&reader->left[file]);
		if (r < 0 || history_is_named(dirfd, reader->fds[0]))
			break;
	}
	if (r < 0)
		history_reader_release(reader);
	/* reader_fill_book() goes over all lines again, whatever was read meanwhile */
	for (size_t i = 0; i < ARRAY_SIZE(reader->all); i++)
		reader->all[i] = reader->left[i];
	return r;
}

void history_reader_release(struct history_reader *reader)
{
	for (size_t i = 0; i < HISTORY_FILES; i++)
		close_fd(&reader->fds[i]);
	if (reader->book)
		history_book_release(reader->book);
	free(reader->book);
	reader->book = NULL;
}

/*
 * Reads the newest records that were not read yet.  Returns 0, HISTORY_NONE, or a negative errno.
 */
static int reader_fill(struct history_reader *reader)
{
	size_t count, bytes = 0;
	unsigned file = 0; /* the newer file first */
	int r;

	while (file < HISTORY_FILES && !reader->left[file])
		file++;
	if (file == HISTORY_FILES)
		return HISTORY_NONE;
	count = reader->left[file] < HISTORY_CHUNK ? reader->left[file] : HISTORY_CHUNK;
	reader->left[file] -= count;
	r = fdio_pread(reader->fds[file], reader->raw, count * RECORD_SIZE,
		(off_t)(reader->left[file] * RECORD_SIZE), &bytes);
	reader->ready = bytes / RECORD_SIZE;
	return r;
}

/* Takes the next record, from the newest back, good or broken.  Returns as history_next(). */
static int reader_next_raw(struct history_reader *reader, const char **ret)
{
	while (!reader->ready) { /* again if the file was cut, and a chunk is empty */
		int r = reader_fill(reader);

		if (r != 0)
			return r;
	}
	*ret = reader->raw + --reader->ready * RECORD_SIZE;
	return 0;
}

/* Adds what the line says of missing lines. */
static void reader_note_missing(
	struct history_reader *reader, const struct history_end *end)
{
	if (!end->missing)
		return;
	reader->gap.missing += end->missing;
	reader->gap.last_ms = max_i64(reader->gap.last_ms, end->missing_ms);
}

/* Whether @raw is a line that the reader wants; sets *@ret then. */
static bool reader_decode(
	const struct history_reader *reader, const char *raw, struct history_end *ret)
{
	if (record_decode(&schema, raw, ret) == 0)
		return true;
	/* a later version may know other events */
	return reader->wants_events && record_decode(&event_schema, raw, ret) == 0 &&
	       history_is_event(ret);
}

/* Reads the name of @end from the lines before it, if it is long and they are there. */
static void reader_complete_name(struct history_reader *reader, struct history_end *end)
{
	char name[NAME_SIZE_MAX] = "";
	struct name_part part = { .at = 1 };
	const char *raw;

	if (!end->name_hash)
		return;
	for (int i = 0; i < PARTS_MOST && part.at; i++) {
		if (reader_next_raw(reader, &raw) != 0)
			return;
		if (record_decode(&part_schema, raw, &part) < 0 ||
			part.hash != end->name_hash || part.at >= sizeof(name) ||
			strlen(part.text) >= sizeof(name) - part.at) {
			reader->ready++; /* a line of its own: read it again */
			return;
		}
		memcpy(name + part.at, part.text, strlen(part.text));
	}
	if (job_name_is_whole(name, end->name_hash))
		memcpy(end->name, name, sizeof(name));
}

/* Reads the next line, even if other lines record the same end. */
static int reader_next_line(struct history_reader *reader, struct history_end *ret)
{
	const char *raw;
	int r;

	do
		r = reader_next_raw(reader, &raw);
	while (r == 0 && !reader_decode(reader, raw, ret));
	if (r != 0)
		return r;
	reader_note_missing(reader, ret);
	reader_complete_name(reader, ret);
	return 0;
}

int history_next_line_of(struct history_reader *reader, history_wants_fn *wants,
	const void *arg, size_t *left, struct history_end *ret)
{
	while (*left) {
		const char *raw;
		int r = reader_next_raw(reader, &raw);

		if (r != 0)
			return r;
		if (!wants(arg, history_glance_uid(raw)))
			continue;
		--*left;
		if (record_decode(&schema, raw, ret) == 0)
			return 0;
	}
	return HISTORY_NONE;
}

/*
 * Whether another line may record the same end as the line at @raw.  Only a glance, because
 * decoding is slow; the sum is not checked.
 */
static bool line_may_share_end(const char *raw)
{
	static const char provisional[] = " provisional=", exact[] = " exact=";

	return memmem(raw, RECORD_SIZE, provisional, strlen(provisional)) ||
	       memmem(raw, RECORD_SIZE, exact, strlen(exact));
}

/* Notes every line if another line may record its end, too.  Returns 0 or a negative errno. */
static int reader_fill_book(
	const struct history_reader *reader, struct history_book *book)
{
	static struct history_reader again; /* too big for the stack */
	struct history_end end;
	const char *raw;
	int r;

	memset(&again, 0, sizeof(again));
	memcpy(again.fds, reader->fds, sizeof(again.fds));
	memcpy(again.left, reader->all, sizeof(again.left));
	while ((r = reader_next_raw(&again, &raw)) == 0) {
		if (!line_may_share_end(raw) || record_decode(&schema, raw, &end) != 0)
			continue;
		r = history_book_note(book, &end);
		if (r < 0)
			return r;
	}
	history_book_settle(book);
	return r < 0 ? r : 0;
}

int history_find_gap(int dirfd, struct history_gap *ret)
{
	static struct history_reader reader; /* too big for the stack */
	static const char key[] = " missing=";
	struct history_end end;
	const char *raw;
	int r = history_reader_open(dirfd, &reader);

	if (r < 0)
		return r;
	while ((r = reader_next_raw(&reader, &raw)) == 0)
		if (memmem(raw, RECORD_SIZE, key, strlen(key)) &&
			record_decode(&schema, raw, &end) == 0)
			reader_note_missing(&reader, &end);
	*ret = reader.gap;
	history_reader_release(&reader);
	return r < 0 ? r : 0;
}

int history_next(struct history_reader *reader, struct history_end *ret)
{
	for (;;) {
		int r = reader_next_line(reader, ret);

		if (r != 0)
			return r;
		/*
		 * At the first line with an end that other lines may record, read the whole history
		 * into the book.  Most histories have no such line, and are read once.
		 */
		if ((ret->is_provisional || ret->is_exact) && !reader->book) {
			reader->book = calloc(1, sizeof(*reader->book));
			r = reader->book ? reader_fill_book(reader, reader->book)
					 : -ENOMEM;
		}
		if (r < 0)
			return r;
		if (!reader->book || history_book_merge(reader->book, ret))
			return 0;
	}
}

/* When a job began that is looked for. */
struct began {
	int64_t since_ms; /* CLOCK_REALTIME, for lines of earlier versions */
	const char *boot; /* and, unless it is NULL, in this boot … */
	int64_t boot_ms;  /* … at this time or later */
};

/* Whether the job of @end began then.  A job that never began has only the time of its end. */
static bool has_begun(const struct history_end *end, const struct began *began)
{
	if (began->boot && end->boot[0])
		return strncmp(end->boot, began->boot, HISTORY_BOOT_SIZE - 1) == 0 &&
		       end->at_ms >= began->boot_ms;
	return (end->since_ms ? end->since_ms : end->gone_ms) >= began->since_ms;
}

/* Does the search of history_find() in the open files. */
static int reader_find(struct history_reader *reader, uint64_t ticket,
	const struct began *began, struct history_end *ret)
{
	int found = HISTORY_NONE, r = 0;
	char beginning[64];
	const char *raw;

	(void)snprintf(beginning, sizeof(beginning), "%s ticket=%llu ", schema.type,
		(unsigned long long)ticket);
	for (size_t left = HISTORY_SEARCHED; left; left--) {
		struct history_end end;

		r = reader_next_raw(reader, &raw);
		if (r != 0)
			break;
		/*
		 * Decode only the lines of this ticket, which are few.  After the first one, only a
		 * line of the same attempt that has the status is better.
		 */
		if (memcmp(raw, beginning, strlen(beginning)) != 0 ||
			record_decode(&schema, raw, &end) != 0 ||
			!has_begun(&end, began) ||
			(found == 0 && (!end.status[0] || end.attempt != ret->attempt)))
			continue;
		*ret = end;
		found = 0;
		if (end.status[0])
			break;
	}
	return r < 0 ? r : found;
}

static int find_began(
	int dirfd, uint64_t ticket, const struct began *began, struct history_end *ret)
{
	struct history_reader reader;
	int r = history_reader_open(dirfd, &reader);

	if (r < 0)
		return r;
	r = reader_find(&reader, ticket, began, ret);
	history_reader_release(&reader);
	return r;
}

int history_find(int dirfd, uint64_t ticket, int64_t since_ms, struct history_end *ret)
{
	return find_began(dirfd, ticket, &(struct began){ .since_ms = since_ms }, ret);
}

int history_find_of_boot(const struct statedir *dir, uint64_t ticket, int64_t since_ms,
	struct history_end *ret)
{
	int64_t to_real = clock_real_ms() - clock_boot_ms();
	struct began began = { .since_ms = since_ms + to_real - CLOCK_STEP_MS,
		.boot = dir->boot,
		.boot_ms = since_ms };

	return find_began(dir->fd, ticket, &began, ret);
}

/* --- what an end is ---------------------------------------------------------------- */

const char *const end_state_names[END_WORDS] = {
	[END_UNKNOWN] = "ended",
	[END_FINISHED] = "finished",
	[END_FAILED] = "failed",
	[END_CANCELLED] = "cancelled",
	[END_TIMED_OUT] = "timed-out",
	[END_OOM] = "oom",
	[END_PREEMPTED] = "preempted",
	[END_REQUEUED] = "requeued",
	[END_LOST] = "lost",
	[END_PAUSED] = "paused",
	[END_RESUMED] = "resumed",
	[END_WINDOW_SET] = "window-set",
	[END_WINDOW_REMOVED] = "window-removed",
};

int history_command_status(const struct history_end *end)
{
	uint64_t status;

	if (!end->status[0] || parse_u64(end->status, MOST_STATUS, &status, NULL) < 0)
		return STATUS_UNKNOWN;
	return (int)status;
}

enum end_cause history_cause(const struct history_end *end)
{
	return end_cause_of_word(end->how);
}

int history_status(const struct history_end *end)
{
	return end_cause_status(history_cause(end), history_command_status(end));
}

enum end_state history_state(const struct history_end *end)
{
	static const struct {
		const char *how;
		enum end_state state;
	} events[] = {
		{ HISTORY_PAUSE, END_PAUSED },
		{ HISTORY_RESUME, END_RESUMED },
		{ HISTORY_WINDOW, END_WINDOW_SET },
		{ HISTORY_NO_WINDOW, END_WINDOW_REMOVED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (strcmp(end->how, events[i].how) == 0)
			return events[i].state;
	return end_cause_state(history_cause(end), history_command_status(end));
}

bool history_is_event(const struct history_end *end)
{
	return history_state(end) >= END_STATES;
}

struct history_key history_key(const struct history_end *end)
{
	struct history_key key = { .ticket = end->ticket,
		.attempt = end->attempt,
		.uid = end->uid,
		.at_ms = end->at_ms,
		.since_ms = end->since_ms };

	text_copy(key.boot, sizeof(key.boot), end->boot);
	return key;
}

bool history_key_is_same(const struct history_key *a, const struct history_key *b)
{
	int64_t apart_ms;

	if (a->ticket != b->ticket || a->attempt != b->attempt || a->uid != b->uid)
		return false;
	/* numbers begin anew with a new ticket file, so the time has to agree as well */
	if (a->boot[0] && b->boot[0])
		return strcmp(a->boot, b->boot) == 0 && a->at_ms == b->at_ms;
	return !__builtin_sub_overflow(a->since_ms, b->since_ms, &apart_ms) &&
	       apart_ms <= CLOCK_STEP_MS && apart_ms >= -CLOCK_STEP_MS;
}

uint32_t history_gpu_count(const struct history_end *end)
{
	uint32_t count = end->gpus[0] != '\0';

	if (end->gpu_count)
		return end->gpu_count;
	for (const char *at = end->gpus; (at = strchr(at, ',')); at++)
		count++;
	return count;
}

void history_describe(const struct lease *lease, int64_t alive_ms, int64_t gone_ms,
	struct history_end *end)
{
	int64_t to_real = clock_real_ms() - clock_boot_ms();

	*end = (struct history_end){
		.ticket = lease_job(lease),
		.attempt = lease->attempt,
		.uid = lease->owner.uid,
		.gpu_count = gpuset_count(&lease->gpus),
		.share_percent = lease->share_percent,
		.vram_mib = lease->vram_mib,
		.at_ms = lease->since_ms,
		.waited_ms = lease->waited_ms,
		.since_ms = lease->since_ms + to_real,
		.alive_ms = alive_ms + to_real,
		.gone_ms = gone_ms + to_real,
	};
	(void)snprintf(
		end->boot, sizeof(end->boot), "%.*s", HISTORY_BOOT_SIZE - 1, lease->boot);
	text_copy(end->user, sizeof(end->user), lease->user);
	text_copy(end->name, sizeof(end->name), lease->name);
	end->name_hash = lease->name_hash;
	text_copy(end->command, sizeof(end->command), lease->command);
}

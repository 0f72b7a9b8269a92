#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"
#include "fdio.h"
#include "history.h"

#define FILE_NAME "history"

/* Kept whole; what is older is given back once it is another KEEP. */
enum { KEEP_BYTES = 16 * 1024 * 1024, PAGE_BYTES = 4096 };

enum { CHUNK = 64 };

#define AT(field) offsetof(struct history_end, field)
static const struct record_field fields[] = {
	{ "ticket", RECORD_U64, AT(ticket), 0 },
	{ "uid", RECORD_U32, AT(uid), 0 },
	{ "user", RECORD_TEXT, AT(user), USER_SIZE },
	{ "gpus", RECORD_TEXT, AT(gpus), 64 },
	{ "since", RECORD_I64, AT(since_ms), 0 },
	{ "alive", RECORD_I64, AT(alive_ms), 0 },
	{ "gone", RECORD_I64, AT(gone_ms), 0 },
	{ "how", RECORD_TEXT, AT(how), 16 },
	{ "by", RECORD_TEXT, AT(by), USER_SIZE },
	{ "status", RECORD_TEXT, AT(status), 4 },
	{ "name", RECORD_TEXT, AT(name), NAME_SIZE_MAX },
	{ "command", RECORD_REST, AT(command), COMMAND_SIZE_MAX },
};
#undef AT

static const struct record_schema schema = RECORD_SCHEMA("ended/1", fields);

/*
 * Appends in one write; behind what was cut short (a full disk) on the next multiple of a
 * record's size.
 */
static int append(int fd, const char raw[RECORD_SIZE], off_t end)
{
	char bytes[2 * RECORD_SIZE] = { 0 };
	size_t pad = (size_t)(-end & (RECORD_SIZE - 1));
	ssize_t n;

	memcpy(bytes + pad, raw, RECORD_SIZE);
	n = write(fd, bytes, pad + RECORD_SIZE);
	if (n < 0)
		return -errno;
	return (size_t)n == pad + RECORD_SIZE ? 0 : -ENOSPC;
}

int history_open(int dirfd)
{
	return fdio_open_shared(dirfd, FILE_NAME, O_WRONLY | O_APPEND);
}

int history_write(int fd, const struct history_end *end)
{
	char raw[RECORD_SIZE];
	struct stat st;
	int r = record_encode(&schema, end, raw);

	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = append(fd, raw, st.st_size);
	if (r == 0 && st.st_size >= 2 * (off_t)KEEP_BYTES &&
		st.st_size % KEEP_BYTES < RECORD_SIZE)
		(void)!fdio_punch(
			fd, 0, (st.st_size - KEEP_BYTES) / PAGE_BYTES * PAGE_BYTES);
	return r;
}

int history_append(int dirfd, const struct history_end *end)
{
	autofd int fd = history_open(dirfd);

	return fd < 0 ? fd : history_write(fd, end);
}

/* Decodes the good records among the @count at @raw, in place of the caller's array. */
static size_t decode_all(const char *raw, size_t count, struct history_end *out)
{
	size_t good = 0;

	for (size_t i = 0; i < count; i++)
		if (record_decode(&schema, raw + i * RECORD_SIZE, &out[good]) == 0)
			good++;
	return good;
}

static int open_to_read(int dirfd)
{
	return openat(dirfd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

int history_read(int dirfd, size_t most, struct history_end **ret, size_t *ret_count)
{
	autofd int fd = open_to_read(dirfd);
	autofree char *raw = NULL;
	struct history_end *out;
	size_t records, bytes = 0;
	struct stat st;
	int r;

	*ret = NULL;
	*ret_count = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	records = (size_t)st.st_size / RECORD_SIZE;
	most = most < records ? most : records;
	raw = malloc(most * RECORD_SIZE + 1);
	out = calloc(most + 1, sizeof(*out));
	if (!raw || !out) {
		free(out);
		return -ENOMEM;
	}
	r = fdio_pread(fd, raw, most * RECORD_SIZE,
		(off_t)((records - most) * RECORD_SIZE), &bytes);
	if (r < 0) {
		free(out);
		return r;
	}
	*ret = out;
	*ret_count = decode_all(raw, bytes / RECORD_SIZE, out);
	return 0;
}

/* Searches the @count records at @raw, the newest first; as history_find() goes on. */
static int search(const char *raw, size_t count, const char *beginning, int64_t since_ms,
	struct history_end *ret, int r)
{
	while (count-- > 0) {
		const char *record = raw + count * RECORD_SIZE;
		struct history_end end;

		/* most are somebody else's: none of those is decoded */
		if (memcmp(record, beginning, strlen(beginning)) != 0 ||
			record_decode(&schema, record, &end) != 0 ||
			end.since_ms < since_ms || (r == 0 && !end.status[0]))
			continue;
		*ret = end;
		r = 0;
		if (end.status[0])
			break;
	}
	return r;
}

int history_find(int dirfd, uint64_t ticket, int64_t since_ms, struct history_end *ret)
{
	autofd int fd = open_to_read(dirfd);
	char raw[CHUNK * RECORD_SIZE], beginning[64];
	size_t left = HISTORY_SEARCHED, records;
	struct stat st;
	int r = HISTORY_NONE;

	if (fd < 0)
		return errno == ENOENT ? HISTORY_NONE : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	(void)snprintf(beginning, sizeof(beginning), "%s ticket=%llu ", schema.type,
		(unsigned long long)ticket);
	records = (size_t)st.st_size / RECORD_SIZE;
	while (records && left && !(r == 0 && ret->status[0])) {
		size_t count = records < CHUNK ? records : CHUNK, bytes = 0;
		int failed = fdio_pread(fd, raw, count * RECORD_SIZE,
			(off_t)((records - count) * RECORD_SIZE), &bytes);

		if (failed < 0)
			return failed;
		r = search(raw, bytes / RECORD_SIZE, beginning, since_ms, ret, r);
		records -= count;
		left -= count < left ? count : left;
	}
	return r;
}

void history_describe(const struct lease *lease, int64_t alive_ms, int64_t gone_ms,
	struct history_end *end)
{
	int64_t to_real = clock_real_ms() - clock_boot_ms();

	*end = (struct history_end){
		.ticket = lease->ticket,
		.uid = lease->owner.uid,
		.since_ms = lease->since_ms + to_real,
		.alive_ms = alive_ms + to_real,
		.gone_ms = gone_ms + to_real,
	};
	text_copy(end->user, sizeof(end->user), lease->user);
	text_copy(end->name, sizeof(end->name), lease->name);
	text_copy(end->command, sizeof(end->command), lease->command);
}

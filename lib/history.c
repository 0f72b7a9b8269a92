#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"
#include "fdio.h"
#include "history.h"

#define FILE_NAME "history"

/* Kept whole; what is older is given back once it is another KEEP. */
enum { KEEP_BYTES = 16 * 1024 * 1024, PAGE_BYTES = 4096 };

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

int history_read(int dirfd, size_t most, struct history_end **ret, size_t *ret_count)
{
	autofd int fd =
		openat(dirfd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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

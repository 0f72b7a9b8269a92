#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "clock.h"
#include "fdio.h"
#include "gpu_hours.h"
#include "statedir.h"

#define FILE_NAME "usage"

enum {
	CHUNK = 64,
	LOCK_TRIES = 10, /* of 1 ms each: the lock is held for less */
};

static const int64_t DAY_MS = 24 * 3600 * 1000;

/* One record. */
struct day {
	uint32_t uid;
	uint32_t day; /* since 1970 */
	uint64_t gpu_ms;
};

static const struct record_field fields[] = {
	{ "uid", RECORD_U32, offsetof(struct day, uid), 0 },
	{ "day", RECORD_U32, offsetof(struct day, day), 0 },
	{ "gpums", RECORD_U64, offsetof(struct day, gpu_ms), 0 },
};

static const struct record_schema schema = RECORD_SCHEMA("usage/1", fields);

uint64_t gpu_hours_weigh(unsigned gpus, unsigned share_percent, int64_t ms)
{
	if (!share_percent || share_percent > 100)
		share_percent = 100;
	if (gpus > GPUSET_MAX) /* a record may claim any number */
		gpus = GPUSET_MAX;
	return (uint64_t)max_i64(ms, 0) * gpus * share_percent / 100;
}

/* --- reading ----------------------------------------------------------------------- */

/* What a walk over the records looks for, and has found. */
struct search {
	uint32_t uid, day; /* the records of this user, from this day on */
	uint32_t latest;   /* and up to this one */
	struct gpu_hours sum;
	uint64_t first,
		free; /* the first of them; one that may be used again; or ->end */
	uint64_t end; /* the number after the last record */
};

static void search_record(struct search *search, uint64_t number, const char *raw)
{
	struct day day = { .uid = 0 };
	int r = record_decode(&schema, raw, &day);

	if (r < 0 && record_judge(raw) == RECORD_BROKEN)
		search->sum.broken++;
	if (r < 0 || day.day + GPU_HOURS_DAYS < search->latest) {
		/* void, damaged, or of a day that counts no more */
		if (search->free == search->end)
			search->free = number;
		return;
	}
	if (day.uid != search->uid || day.day < search->day || day.day > search->latest)
		return;
	search->sum.gpu_ms += day.gpu_ms;
	if (search->first == search->end)
		search->first = number;
}

static int search_file(int fd, struct search *search)
{
	static char raw[CHUNK * RECORD_SIZE];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	search->end = (uint64_t)min_i64(st.st_size / RECORD_SIZE, GPU_HOURS_RECORDS);
	search->first = search->free = search->end;
	for (uint64_t at = 0; at < search->end;) {
		size_t bytes = 0, count;
		int r = fdio_pread(fd, raw, sizeof(raw), (off_t)at * RECORD_SIZE, &bytes);

		if (r < 0)
			return r;
		count = bytes / RECORD_SIZE;
		if (!count)
			break;
		for (size_t i = 0; i < count && at < search->end; i++)
			search_record(search, at++, raw + i * RECORD_SIZE);
	}
	return 0;
}

static uint32_t today(void)
{
	return (uint32_t)max_i64(clock_real_ms() / DAY_MS, 0);
}

int gpu_hours_read(
	const struct statedir *dir, uint32_t uid, unsigned days, struct gpu_hours *ret)
{
	struct search search = { .uid = uid, .latest = today() };
	autofd int fd = openat(
		dir->fd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int r;

	*ret = (struct gpu_hours){ .gpu_ms = 0 };
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	search.day = search.latest - (days ? days - 1 : 0);
	r = search_file(fd, &search);
	*ret = search.sum;
	return r;
}

/* --- writing ----------------------------------------------------------------------- */

int gpu_hours_open(const struct statedir *dir)
{
	return fdio_open_shared(dir->fd, FILE_NAME, O_RDWR);
}

/* Writes @day as a further record.  Appends, because another process may do so at the same time. */
static int append_day(int fd, const char raw[RECORD_SIZE])
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size % RECORD_SIZE) /* cut short, as by a full disk */
		return -EBADMSG;
	if (st.st_size / RECORD_SIZE >= GPU_HOURS_RECORDS)
		return -EFBIG;
	if (fcntl(fd, F_SETFL, O_APPEND) < 0)
		return -errno;
	r = fdio_write(fd, raw, RECORD_SIZE);
	(void)fcntl(fd, F_SETFL, 0);
	return r;
}

/* With the lock: adds @day to the record of that user and day, or writes one. */
static int add_locked(int fd, const struct day *day)
{
	struct search search = { .uid = day->uid, .day = day->day, .latest = day->day };
	struct day sum = *day;
	char raw[RECORD_SIZE];
	size_t bytes = 0;
	uint64_t at;
	int r = search_file(fd, &search);

	if (r < 0)
		return r;
	at = search.first < search.end ? search.first : search.free;
	if (search.first < search.end &&
		fdio_pread(fd, raw, RECORD_SIZE, (off_t)at * RECORD_SIZE, &bytes) == 0 &&
		bytes == RECORD_SIZE && record_decode(&schema, raw, &sum) == 0)
		sum.gpu_ms += day->gpu_ms;
	r = record_encode(&schema, &sum, raw);
	if (r < 0)
		return r;
	return at < search.end
		       ? fdio_pwrite(fd, raw, RECORD_SIZE, (off_t)at * RECORD_SIZE)
		       : append_day(fd, raw);
}

static int add_day(int fd, const struct day *day)
{
	char raw[RECORD_SIZE];
	int r = -EWOULDBLOCK;

	for (int i = 0; i < LOCK_TRIES && r < 0; i++) {
		r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		if (r < 0)
			(void)poll(NULL, 0, 1);
	}
	if (r == 0) {
		r = add_locked(fd, day);
		(void)flock(fd, LOCK_UN);
		return r;
	}
	r = record_encode(&schema, day, raw);
	return r < 0 ? r : append_day(fd, raw);
}

int gpu_hours_add(int fd, const struct lease *lease, int64_t end_ms)
{
	int64_t to_ms = clock_real_ms() - clock_boot_ms() + end_ms;
	int64_t from_ms = to_ms - max_i64(end_ms - lease->since_ms, 0);
	int r = 0;

	from_ms = max_i64(from_ms, to_ms - GPU_HOURS_DAYS * DAY_MS);
	while (from_ms < to_ms && r == 0) {
		int64_t next_ms = min_i64((from_ms / DAY_MS + 1) * DAY_MS, to_ms);
		struct day day = { .uid = lease->owner.uid,
			.day = (uint32_t)(from_ms / DAY_MS),
			.gpu_ms = gpu_hours_weigh(gpuset_count(&lease->gpus),
				lease->share_percent, next_ms - from_ms) };

		r = add_day(fd, &day);
		from_ms = next_ms;
	}
	return r;
}

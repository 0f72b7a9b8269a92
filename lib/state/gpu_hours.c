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
	DAY_RECORDS = 8, /* that one user and day may have beside the first */
};

static const int64_t DAY_MS = 24 * 3600 * 1000;
/* The most that all leases there can be have on a day, whatever a record claims. */
static const uint64_t DAY_MOST_MS =
	(uint64_t)GPUSET_MAX * (LEASES_PER_GPU + 1) * 24 * 3600 * 1000;

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

uint64_t gpu_hours_weigh(unsigned gpus, unsigned percent, int64_t ms)
{
	if (!percent || percent > 100)
		percent = 100;
	if (gpus > GPUSET_MAX) /* a record may claim any number */
		gpus = GPUSET_MAX;
	return (uint64_t)max_i64(ms, 0) * gpus * percent / 100;
}

/* --- reading ----------------------------------------------------------------------- */

/* What a walk over the records looks for, and has found. */
struct search {
	uint32_t uid, day; /* the records of this user, from this day on */
	uint32_t latest;   /* and up to this one */
	struct gpu_hours sum;
	unsigned count;
	uint64_t first, last; /* of them, if ->count is not 0 */
	uint64_t free;        /* one that may be used again, or ->end */
	uint64_t end;         /* the number after the last record */
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
	search->sum.gpu_ms += day.gpu_ms < DAY_MOST_MS ? day.gpu_ms : DAY_MOST_MS;
	if (!search->count++)
		search->first = number;
	search->last = number;
}

static int search_file(int fd, struct search *search)
{
	static char raw[CHUNK * RECORD_SIZE];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	search->end = (uint64_t)min_i64(st.st_size / RECORD_SIZE, GPU_HOURS_RECORDS);
	search->free = search->end;
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

/* Adds @day to record @at, which is of that user and day, or of none. */
static int add_to(int fd, uint64_t at, const struct day *day)
{
	struct day sum = { .uid = 0 };
	char raw[RECORD_SIZE];
	size_t bytes = 0;
	off_t offset = (off_t)at * RECORD_SIZE;
	int r = fdio_pread(fd, raw, RECORD_SIZE, offset, &bytes);

	if (r == 0 && (bytes != RECORD_SIZE || record_decode(&schema, raw, &sum) < 0 ||
			      sum.uid != day->uid || sum.day != day->day))
		sum = (struct day){ .uid = day->uid, .day = day->day };
	sum.gpu_ms += day->gpu_ms;
	if (r == 0)
		r = record_encode(&schema, &sum, raw);
	return r == 0 ? fdio_pwrite(fd, raw, RECORD_SIZE, offset) : r;
}

static int add_day(int fd, const struct day *day)
{
	struct search found = { .uid = day->uid, .day = day->day, .latest = day->day };
	char raw[RECORD_SIZE];
	bool is_locked = false;
	int r;

	for (int i = 0; i < LOCK_TRIES && !is_locked; i++) {
		is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
		if (!is_locked)
			(void)poll(NULL, 0, 1);
	}
	r = search_file(fd, &found);
	if (r == 0 && is_locked && (found.count || found.free < found.end))
		r = add_to(fd, found.count ? found.first : found.free, day);
	else if (r == 0 && found.count > DAY_RECORDS)
		r = add_to(fd, found.last, day);
	else if (r == 0 && (r = record_encode(&schema, day, raw)) == 0)
		r = append_day(fd, raw);
	if (is_locked)
		(void)flock(fd, LOCK_UN);
	return r;
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
				lease_counts_percent(lease), next_ms - from_ms) };

		r = add_day(fd, &day);
		from_ms = next_ms;
	}
	return r;
}

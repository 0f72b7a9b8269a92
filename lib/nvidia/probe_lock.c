#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "fdio.h"
#include "probe_lock.h"
#include "record.h"

static const char *const NAMES[PROBE_LOCKS] = { "probe.lock", "probe.lock.2",
	"probe.lock.3", "probe.lock.4" };

/* --- the record ---------------------------------------------------------------------- */

struct holder {
	char boot[BOOT_SIZE];
	int64_t taken_ms; /* CLOCK_BOOTTIME; 0: the last probe came to an end */
};

static const struct record_field fields[] = {
	{ "boot", RECORD_TEXT, offsetof(struct holder, boot), BOOT_SIZE },
	{ "taken", RECORD_I64, offsetof(struct holder, taken_ms), 0 },
};

static const struct record_schema schema = RECORD_SCHEMA("plock/1", fields);

/* Returns since when the holder has been probing; 0: the record does not say. */
static int64_t read_taken_ms(const struct statedir *dir, int fd)
{
	struct holder holder = { .taken_ms = 0 };
	char raw[RECORD_SIZE];
	size_t size = 0;

	if (fdio_pread(fd, raw, sizeof(raw), 0, &size) < 0 || size < sizeof(raw) ||
		record_decode(&schema, raw, &holder) < 0 ||
		strcmp(holder.boot, dir->boot) != 0)
		return 0;
	return holder.taken_ms;
}

static void write_taken_ms(const struct statedir *dir, int fd, int64_t taken_ms)
{
	struct holder holder = { .taken_ms = taken_ms };
	char raw[RECORD_SIZE];

	text_copy(holder.boot, sizeof(holder.boot), dir->boot);
	if (record_encode(&schema, &holder, raw) == 0)
		(void)!fdio_pwrite(fd, raw, sizeof(raw), 0); /* a full disk: no record */
}

/* --- one lock ------------------------------------------------------------------------ */

static int open_lock_file(int dirfd, unsigned which)
{
	autofd int fd = fdio_open_shared(dirfd, NAMES[which], O_RDWR);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? take_fd(&fd) : -EINVAL;
}

static int lock_file(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? PROBE_LOCK_BUSY : -errno;
}

/* --- the row of locks ---------------------------------------------------------------- */

/*
 * Returns how long the lock has been held without a result.  That is the age in its record or, if
 * it is longer, the time for which this process has seen one brief holder after the other: holders
 * that are killed before they have a result, perhaps without end.  A holder that took the lock at
 * least @brief_ms after the one before it begins a new series.
 */
static int64_t held_for_ms(const struct statedir *dir, struct probe_lock *lock,
	unsigned which, int fd, int64_t brief_ms, int64_t now_ms)
{
	int64_t taken_ms = read_taken_ms(dir, fd), held_ms;

	if (!lock->seen_ms[which] || taken_ms - lock->taken_ms[which] >= brief_ms)
		lock->seen_ms[which] = now_ms;
	lock->taken_ms[which] = taken_ms;
	held_ms = now_ms - lock->seen_ms[which];
	/* a time in the future means that the record is damaged */
	if (taken_ms && taken_ms <= now_ms)
		held_ms = max_i64(held_ms, now_ms - taken_ms);
	return held_ms;
}

/* Returns 0: taken; PROBE_LOCK_BUSY: wait for its holder; -EAGAIN: try the next; or -errno. */
static int probe_lock_take_one(const struct statedir *dir, struct probe_lock *lock,
	unsigned which, const struct probe_patience *patience, int64_t now_ms)
{
	int64_t patience_ms = which ? patience->others_ms : patience->first_ms;
	autofd int fd = open_lock_file(dir->fd, which);
	int r = fd < 0 ? fd : lock_file(fd);

	if (r == PROBE_LOCK_BUSY)
		return held_for_ms(dir, lock, which, fd, patience->others_ms / 2,
			       now_ms) < patience_ms
			       ? PROBE_LOCK_BUSY
			       : -EAGAIN;
	if (r < 0)
		return r;
	/* the last holder has not cleared its time: its probe did not end, and may hang */
	lock->has_doubt = read_taken_ms(dir, fd) != 0;
	write_taken_ms(dir, fd, now_ms);
	lock->fd = take_fd(&fd);
	return 0;
}

int probe_lock_take(const struct statedir *dir, struct probe_lock *lock,
	const struct probe_patience *patience, int64_t now_ms)
{
	bool is_slow = false;

	if (lock->fd >= 0)
		return 0;
	if (!lock->busy_ms)
		lock->busy_ms = now_ms;
	for (unsigned which = 0; which < PROBE_LOCKS; which++) {
		int r = probe_lock_take_one(dir, lock, which, patience, now_ms);

		if (r == PROBE_LOCK_BUSY)
			return PROBE_LOCK_BUSY;
		is_slow = is_slow || r == -EAGAIN;
		/* taken; or this lock cannot be used, and then no other can: go on without one */
		if (r != -EAGAIN)
			break;
	}
	/* a holder that was skipped may have an nvidia-smi that hangs */
	lock->has_doubt = lock->has_doubt || is_slow;
	return 0;
}

void probe_lock_forget(struct probe_lock *lock)
{
	lock->busy_ms = 0;
	memset(lock->seen_ms, 0, sizeof(lock->seen_ms));
}

void probe_lock_release(
	const struct statedir *dir, struct probe_lock *lock, bool has_ended)
{
	if (lock->fd >= 0 && has_ended)
		write_taken_ms(dir, lock->fd, 0);
	close_fd(&lock->fd);
	lock->has_doubt = false;
	probe_lock_forget(lock);
}

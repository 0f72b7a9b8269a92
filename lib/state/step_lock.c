#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "clock.h"
#include "fdio.h"
#include "leftover.h"
#include "process_lease.h"
#include "statedir.h"
#include "step_lock.h"

enum {
	NAME_SIZE = 40,
	TURN_TRY_MS = 50,     /* for another step to choose; mostly that takes 0.1 ms */
	TURN_AGAIN_MS = 100,  /* then the caller waits so long */
	TURN_STUCK_MS = 1000, /* a step that has held the turn for so long is stopped */
	RECHECK_MS = 500, /* between two tries if no event shows the end of a holder */
};

/*
 * Opens the file @name in live/ and locks it with @how.  Returns 0, or STEP_LOCK_BUSY if another
 * process has locked it; *@ret_fd is the open file in both cases, and *@ret_size its size.  Else a
 * negative errno.
 */
static int step_lock_file(const struct step_lock *lock, const char *name, int how,
	int *ret_fd, off_t *ret_size)
{
	for (;;) {
		autofd int fd = fdio_open_shared(lock->dir->live_fd, name, O_RDWR);
		struct stat st;
		int r = 0;

		if (fd < 0)
			return fd;
		if (flock(fd, how) < 0)
			r = errno == EWOULDBLOCK ? STEP_LOCK_BUSY : -errno;
		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			r = -EINVAL;
		/* a sweep may have removed it before it was locked: then the lock guards nothing */
		if (r == 0 && !st.st_nlink)
			continue;
		*ret_size = st.st_size;
		*ret_fd = take_fd(&fd);
		return r;
	}
}

/*
 * Adds to ->watch the process that the file @fd names.  Returns whether that is an ancestor of this
 * process.
 */
static bool step_lock_watch(struct step_lock *lock, int fd)
{
	char text[LEFTOVER_TEXT_SIZE];
	struct owner holder;
	int pidfd = -1;
	bool lives = fdio_read_text_of(fd, text, sizeof(text)) == 0 &&
		     leftover_parse(text, &holder) == 0 &&
		     owner_judge(&holder, lock->dir->pidns, &pidfd) == OWNER_ALIVE;

	if (pidfd < 0 || watch_add(&lock->watch, pidfd, POLLIN) < 0) {
		close_fd(&pidfd);
		watch_until(&lock->watch, clock_boot_ms() + RECHECK_MS);
	}
	return lives && process_lease_is_descendant((uint32_t)getppid(), holder.pid);
}

/* Whether the unlocked file @fd names a step that runs, and is not around this process. */
static bool step_lock_names_other(const struct step_lock *lock, int fd)
{
	char text[LEFTOVER_TEXT_SIZE];
	struct owner other;

	return fdio_read_text_of(fd, text, sizeof(text)) == 0 &&
	       leftover_parse(text, &other) == 0 &&
	       owner_judge(&other, lock->dir->pidns, NULL) == OWNER_ALIVE &&
	       !process_lease_is_descendant((uint32_t)getppid(), other.pid);
}

/* Forgets the processes that the last try has found. */
static void step_lock_begin_watch(struct step_lock *lock)
{
	for (size_t i = 0; i < lock->watch.count; i++)
		(void)close(lock->watch.fds[i].fd);
	watch_begin(&lock->watch);
}

static void step_lock_drop(struct step_lock *lock)
{
	while (lock->count)
		(void)close(lock->fds[--lock->count]);
	lock->gpus = GPUSET_NONE;
}

/*
 * Locks the GPU in @slot for the process @text if more GPUs are wanted.  If another process has
 * locked it, adds that to ->watch, and the GPU to @around if the process is an ancestor.
 */
static int step_lock_gpu(
	struct step_lock *lock, unsigned slot, const char *text, struct gpuset *around)
{
	char name[NAME_SIZE];
	autofd int fd = -1;
	off_t size;
	int r;

	(void)snprintf(name, sizeof(name), "%s.%u", lock->token,
		slot + lock->level * GPUSET_MAX);
	r = step_lock_file(lock, name, LOCK_EX | LOCK_NB, &fd, &size);
	if (r == STEP_LOCK_BUSY) {
		if (step_lock_watch(lock, fd))
			gpuset_add(around, slot);
		return 0;
	}
	if (r < 0 || lock->count == lock->wanted)
		return r;
	lock->meets_other |= step_lock_names_other(lock, fd);
	r = fdio_pwrite(fd, text, LEFTOVER_TEXT_SIZE, 0);
	if (r < 0)
		return r;
	lock->fds[lock->count++] = take_fd(&fd);
	gpuset_add(&lock->gpus, slot);
	return 0;
}

/* Leaves only the GPUs in @around to choose from, which are locked once more by steps inside. */
static void step_lock_go_inside(struct step_lock *lock, const struct gpuset *around)
{
	unsigned count = 0;

	for (unsigned i = 0; i < lock->slot_count; i++)
		if (gpuset_has(around, lock->slots[i]))
			lock->slots[count++] = lock->slots[i];
	lock->slot_count = count;
	lock->level++;
}

/*
 * Takes the turn to choose: *@ret_fd is the locked file.  Returns 0; STEP_LOCK_BUSY: another step
 * has it, so call again; or a negative errno.  If another step has held it for TURN_STUCK_MS, that
 * step was stopped, and this one goes on without the turn: *@ret_fd is -1.
 */
static int step_lock_take_turn(struct step_lock *lock, int *ret_fd)
{
	int64_t begun_ms = clock_boot_ms(), now_ms = begun_ms;
	char name[NAME_SIZE];
	off_t size;
	int r;

	(void)snprintf(name, sizeof(name), "%s.steps", lock->token);
	for (;;) {
		r = step_lock_file(lock, name, LOCK_EX | LOCK_NB, ret_fd, &size);
		if (r != STEP_LOCK_BUSY)
			break;
		close_fd(ret_fd);
		now_ms = clock_boot_ms();
		if (now_ms >= begun_ms + TURN_TRY_MS)
			break;
		(void)poll(NULL, 0, 1);
	}
	if (r != STEP_LOCK_BUSY) {
		lock->stuck_since_ms = 0;
		return r;
	}
	if (!lock->stuck_since_ms)
		lock->stuck_since_ms = begun_ms;
	if (now_ms - lock->stuck_since_ms >= TURN_STUCK_MS)
		return 0;
	watch_until(&lock->watch, now_ms + TURN_AGAIN_MS);
	return STEP_LOCK_BUSY;
}

/*
 * Numbers the step.  The file grows by a byte for each, and the kernel orders the writes, so this
 * needs no lock.
 */
static void step_lock_number(struct step_lock *lock)
{
	char name[NAME_SIZE];
	autofd int fd = -1;
	off_t end;

	(void)snprintf(name, sizeof(name), "%s.steps", lock->token);
	fd = fdio_open_shared(lock->dir->live_fd, name, O_RDWR);
	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0)
		return;
	/* on a full disk, steps at the same time get one number */
	end = write(fd, "", 1) == 1 ? lseek(fd, 0, SEEK_CUR) : lseek(fd, 0, SEEK_END) + 1;
	lock->number = (unsigned)(end - 1);
}

int step_lock_try(struct step_lock *lock)
{
	char text[LEFTOVER_TEXT_SIZE] = "";
	struct gpuset around = GPUSET_NONE;
	struct owner self;
	autofd int turn = -1; /* locked until this function returns */
	int64_t begun_ms = clock_boot_ms();
	int r = owner_self(&self);

	step_lock_begin_watch(lock);
	leftover_format(&self, text);
	if (r == 0 && lock->slot_count)
		r = step_lock_take_turn(lock, &turn);
	/* also those behind the ->wanted ones, since an ancestor may have locked them */
	for (unsigned i = 0; r == 0 && i < lock->slot_count; i++)
		r = step_lock_gpu(lock, lock->slots[i], text, &around);
	if (r == 0 && lock->count < lock->wanted)
		r = STEP_LOCK_BUSY;
	/* some step chooses without the turn: a lock may have been that of one that waits by now */
	if (r == STEP_LOCK_BUSY &&
		(lock->stuck_since_ms || clock_boot_ms() - begun_ms >= TURN_STUCK_MS))
		watch_until(&lock->watch, clock_boot_ms() + RECHECK_MS);
	if (r >= 0 && !gpuset_is_empty(&around)) {
		step_lock_go_inside(lock, &around);
		r = STEP_LOCK_INSIDE;
	}
	if (r != 0) {
		step_lock_drop(lock);
		return r;
	}
	step_lock_number(lock);
	return 0;
}

void step_lock_share(struct step_lock *lock, const struct gpuset *gpus)
{
	char name[NAME_SIZE], text[LEFTOVER_TEXT_SIZE] = "";
	struct owner self;

	if (owner_self(&self) < 0)
		return;
	leftover_format(&self, text);
	gpuset_for_each (slot, gpus) {
		autofd int fd = -1;
		off_t size;
		int r;

		(void)snprintf(name, sizeof(name), "%s.%u", lock->token,
			(unsigned)slot + lock->level * GPUSET_MAX);
		r = step_lock_file(lock, name, LOCK_EX | LOCK_NB, &fd, &size);
		if (r == STEP_LOCK_BUSY || (r == 0 && step_lock_names_other(lock, fd)))
			lock->meets_other = true;
		else if (r == 0)
			(void)!fdio_pwrite(fd, text, LEFTOVER_TEXT_SIZE, 0);
	}
}

bool step_lock_is_shared(const struct step_lock *lock)
{
	char name[NAME_SIZE];
	autofd int fd = -1;
	off_t size;

	if (!lock->meets_other)
		return false;
	(void)snprintf(name, sizeof(name), "%s.shared", lock->token);
	/* a step that has it locked says so itself */
	return step_lock_file(lock, name, LOCK_EX | LOCK_NB, &fd, &size) == 0 && !size &&
	       ftruncate(fd, 1) == 0;
}

void step_lock_release(struct step_lock *lock)
{
	step_lock_drop(lock);
	step_lock_begin_watch(lock);
	watch_release(&lock->watch);
}

bool step_lock_is_name(const char *name)
{
	char token[TOKEN_SIZE];

	text_copy(token, sizeof(token), name);
	return is_token(token) && name[TOKEN_SIZE - 1] == '.';
}

void step_lock_sweep(int live_fd, const char *name)
{
	autofd int fd =
		openat(live_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	/* with the lock, so that no step takes it before the name is gone */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(live_fd, name, 0);
}

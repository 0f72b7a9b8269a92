/*
 * The oracle: finds a GPU that has been given to more jobs than it has room for.  It asks only the
 * jobs, and knows nothing of gpulease but its promises:
 *
 *	a job that wants a GPU of its own is alone there
 *	the shares of a GPU add up to at most 100 percent
 *	the memory that its jobs are counted with is no more than the card has; if all of them
 *	have declared memory, a margin of it stays free
 *	a GPU has at most 31 jobs
 *
 * Each GPU has a file with places.  A command takes a free place, writes into it what it uses, and
 * holds a lock on it as long as it lives.  The kernel drops the lock when the process dies, however
 * it dies.  Only a new job can make a sum too large, so the new job adds up all places, under a
 * lock on the whole file.
 *
 * Killed here: its places are free.  Stopped here: a later job on the same GPU waits for it.
 */
#ifndef GPULEASE_TESTS_ORACLE_H
#define GPULEASE_TESTS_ORACLE_H

#include "tool.h"

enum { ORACLE_PLACES = 48, ORACLE_LEASES = 31, ORACLE_MARGIN_MIB = 512 };

/* Above the descriptors that the command inherits. */
enum { ORACLE_FD_MIN = 200 };

/* The part of each of its GPUs that a job uses. */
struct oracle_use {
	uint32_t percent;      /* 100: all of it, alone; 0: declared memory alone */
	uint32_t has_declared; /* memory */
	uint64_t mib; /* declared, else its share of the card; alone: all of it */
	uint64_t job; /* to name it */
};

/* The sum of all jobs on one GPU. */
struct oracle_sum {
	unsigned jobs, alone, percent;
	bool all_declared;
	uint64_t mib;
};

/*
 * The use of a job that asks for this share or memory of a card of @card_mib; 0 and 0: all of it.
 */
static inline struct oracle_use oracle_use_of(
	uint64_t job, unsigned percent, uint64_t mib, uint64_t card_mib)
{
	struct oracle_use use = { .job = job, .has_declared = mib != 0 };

	use.percent = percent || mib ? percent : 100;
	use.mib = mib ? mib : card_mib * use.percent / 100;
	return use;
}

static inline struct flock oracle_bytes(short type, off_t start, off_t count)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = count
	};
}

/* Whether another process holds place @at; the lock on the whole file lies after the places. */
static inline bool oracle_is_held(int fd, unsigned at)
{
	struct flock lock = oracle_bytes(F_WRLCK, at, 1);

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static inline void oracle_add(struct oracle_sum *sum, const struct oracle_use *use)
{
	sum->jobs++;
	sum->alone += use->percent == 100;
	sum->percent += use->percent;
	sum->mib += use->mib;
	sum->all_declared = sum->all_declared && use->has_declared;
}

/*
 * Opens a file; its lock ends before the lease does.  A process that exits closes its descriptors
 * from the highest on, with pauses.  If its supervisor is dead, the FIFO of the lease, which has a
 * lower number, is all that keeps the lease.
 */
static inline int oracle_open(const char *name)
{
	int low = open(name, O_RDWR | O_CREAT, 0666);
	int fd = low < 0 ? -1 : fcntl(low, F_DUPFD, ORACLE_FD_MIN);

	if (fd < 0)
		return low;
	(void)close(low);
	return fd;
}

/* Takes the first free place for @use and adds up all places; -1: no place is free. */
static inline int oracle_enter(int fd, const struct oracle_use *use,
	struct oracle_sum *sum, char *others, size_t size)
{
	int mine = -1;
	size_t used = 0;

	*sum = (struct oracle_sum){ .all_declared = true };
	others[0] = '\0';
	for (unsigned at = 0; at < ORACLE_PLACES; at++) {
		struct oracle_use other = { 0 };

		if (!oracle_is_held(fd, at)) {
			mine = mine < 0 ? (int)at : mine;
			continue;
		}
		(void)!pread(fd, &other, sizeof(other), at * (off_t)sizeof(other));
		oracle_add(sum, &other);
		if (used < size)
			used += (size_t)snprintf(others + used, size - used, " %u(%u%%)",
				(unsigned)other.job, (unsigned)other.percent);
	}
	if (mine >= 0) {
		struct flock lock = oracle_bytes(F_WRLCK, mine, 1);

		(void)!pwrite(fd, use, sizeof(*use), mine * (off_t)sizeof(*use));
		if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
			mine = -1;
		oracle_add(sum, use);
	}
	return mine;
}

/*
 * Claims the part @use of the GPU called @gpu, of @card_mib, for as long as this process lives;
 * makes files in the working directory.  Returns how many jobs are on the GPU now; 0: their sum
 * is too large, and @why says so.
 */
static inline unsigned oracle_claim(const char *gpu, const struct oracle_use *use,
	uint64_t card_mib, char *why, size_t size)
{
	struct flock all = oracle_bytes(F_WRLCK, ORACLE_PLACES, 1);
	struct oracle_sum sum;
	char name[64], others[100];
	const char *what = NULL;
	int fd, mine;

	(void)snprintf(name, sizeof(name), "gpu.%.40s", gpu);
	fd = oracle_open(name);
	if (fd < 0 || fcntl(fd, F_OFD_SETLKW, &all) < 0) {
		(void)snprintf(why, size, "job %u: '%s': %s\n", (unsigned)use->job, name,
			strerror(errno));
		return 0;
	}
	mine = oracle_enter(fd, use, &sum, others, sizeof(others));
	all.l_type = F_UNLCK;
	(void)fcntl(fd, F_OFD_SETLK, &all);
	if (mine < 0 || sum.jobs > ORACLE_LEASES)
		what = "too many jobs";
	else if (sum.alone && sum.jobs > 1)
		what = "another job beside one that wants to be alone";
	else if (sum.percent > 100)
		what = "more than 100 percent";
	else if (sum.mib + (sum.all_declared ? ORACLE_MARGIN_MIB : 0) > card_mib)
		what = "more memory than there is";
	if (!what)
		return sum.jobs;
	(void)snprintf(why, size,
		"job %u (pid %d): GPU %s has %s: %u jobs, %u%%, %u MiB; beside%s\n",
		(unsigned)use->job, (int)getpid(), gpu, what, sum.jobs, sum.percent,
		(unsigned)sum.mib, others);
	return 0;
}

/* Adds a line to the file `violations`, which exists once a promise was broken. */
static inline void oracle_tell(const char *line)
{
	autofd int fd =
		open("violations", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	(void)!write(fd, line, strlen(line));
}

#endif

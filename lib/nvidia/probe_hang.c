#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"
#include "owner.h"
#include "probe_hang.h"
#include "proc.h"
#include "rights.h"
#include "text.h"

enum { COMM_MAX = 15 };

/* Whether the kernel gives the program @path the name @comm, of which it keeps 15 bytes. */
static bool is_program_name(const char *comm, const char *path)
{
	const char *name = text_base_name(path);

	return name[0] && strncmp(comm, name, COMM_MAX) == 0;
}

bool probe_is_hanging(const struct process_stat *stat, const char *path, uint64_t before)
{
	return stat->state == 'D' && stat->start < before &&
	       (is_program_name(stat->comm, path) ||
		       is_program_name(stat->comm, "nvidia-smi"));
}

/* Returns the start time in /proc/PID/stat, in ticks, of a process that is @age_ms old. */
static uint64_t start_tick(int64_t age_ms)
{
	int64_t then_ms = max_i64(clock_boot_ms() - age_ms, 0);

	return (uint64_t)then_ms * (uint64_t)sysconf(_SC_CLK_TCK) / 1000;
}

/*
 * Whether gpulease may have started process @pid.  Children of a set-group-ID gpulease have the
 * group that is lent to it, which no program of a user has.  Without this check, four processes
 * that a user has named nvidia-smi would keep all users from starting jobs.
 */
static bool may_be_from_gpulease(uint32_t pid)
{
	char path[PROC_PATH_SIZE];
	struct stat st;

	return !rights_are_lent() ||
	       (proc_path(pid, "", path) == 0 && fstatat(AT_FDCWD, path, &st, 0) == 0 &&
		       st.st_gid == rights_lent_group());
}

unsigned probe_count_hanging(const char *path, int64_t age_ms)
{
	autofree uint32_t *pids = NULL;
	uint64_t before = start_tick(age_ms);
	unsigned hanging = 0;
	size_t count = 0;

	if (proc_list(0, &pids, &count) < 0)
		return 0;
	for (size_t i = 0; i < count && hanging < PROBE_HANGING_MAX; i++) {
		struct process_stat stat;

		hanging += process_stat_read(pids[i], &stat) == 0 &&
			   probe_is_hanging(&stat, path, before) &&
			   may_be_from_gpulease(pids[i]);
	}
	return hanging;
}

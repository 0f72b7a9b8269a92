#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "namespaces.h"
#include "process_lease.h"
#include "leftover.h"
#include "proc.h"
#include "text.h"

/*
 * How many times /proc is read.  A process that ends while /proc is read may have started a child
 * that the list lacks, so /proc is read again.  Each further list has few new pids and takes a
 * fifth of a millisecond.
 */
enum { LISTS_MAX = 30 };

/*
 * When pids wrap around, the kernel goes on at this pid, not at 1 (kernel/pid.c).  So a process
 * with a lower pid is older than every process with a higher one.
 */
enum { RESERVED_PIDS = 300 };

/* --- as text ----------------------------------------------------------------------- */

void leftover_format(const struct owner *process, char out[LEFTOVER_TEXT_SIZE])
{
	(void)snprintf(out, LEFTOVER_TEXT_SIZE, "%u,%llu,%llu,%llu", process->pid,
		(unsigned long long)process->start, (unsigned long long)process->pidns,
		(unsigned long long)process->inode);
}

int leftover_parse(const char *text, struct owner *ret)
{
	unsigned long long start = 0, pidns = 0, inode = 0;
	unsigned pid = 0;

	if (sscanf(text, "%u,%llu,%llu,%llu", &pid, &start, &pidns, &inode) != 4 || !pid)
		return -EBADMSG;
	*ret = (struct owner){
		.pid = pid, .start = start, .pidns = pidns, .inode = inode
	};
	return 0;
}

/* --- one process ------------------------------------------------------------------- */

struct leftover_scan {
	struct leftover_search *searches;
	size_t count;
	uint64_t my_pidns;
	bool is_own; /* all leases belong to the user of this process, which is not root */
	bool is_thorough; /* read environments too, see leftover_find_of() */
	bool has_missed;  /* a process has ended before its signs were read */
};

/* Whether the process may have been started after the owner of the lease, by its pid. */
static bool is_younger(
	const struct leftover_scan *scan, uint32_t pid, const struct owner *owner)
{
	return owner->pidns != scan->my_pidns || pid > owner->pid;
}

/* Whether a process with files of @uid in /proc may belong to the user of a lease. */
static bool scan_has_user(const struct leftover_scan *scan, uint32_t pid, uint32_t uid)
{
	for (size_t i = 0; i < scan->count; i++) {
		const struct owner *owner = scan->searches[i].owner;

		/*
		 * Files of a process that is not dumpable belong to root.  The test by pid
		 * skips kernel threads and daemons that are older than the job.
		 */
		if (uid == owner->uid || (uid == 0 && is_younger(scan, pid, owner)))
			return true;
	}
	return false;
}

/* Whether to read the environment of a process that has @locks as its limit of file locks. */
static bool scan_wants_token(
	const struct leftover_scan *scan, uint32_t pid, const struct rlimit *locks)
{
	/* a user may have lowered the hard limit, and then gpulease could not set the tag */
	bool is_wanted = locks->rlim_max != RLIM_INFINITY;
	uint32_t uid;

	for (size_t i = 0; i < scan->count && scan->is_thorough && !is_wanted; i++)
		is_wanted = is_younger(scan, pid, scan->searches[i].owner);
	return is_wanted && proc_find_user(pid, &uid) == 0 &&
	       scan_has_user(scan, pid, uid);
}

/* Sets ->has_missed if process @pid has vanished. */
static void scan_note_vanished(struct leftover_scan *scan, uint32_t pid)
{
	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		scan->has_missed = true;
}

/* Reads the tag of a process with another user or group, for which prlimit(2) fails. */
static void scan_read_foreign_tag(
	struct leftover_scan *scan, uint32_t pid, struct process_lease *signs)
{
	uint32_t uid;

	/* all leases are this user's; kill(2) reaches all of the user's processes and is fast */
	if (scan->is_own && kill((pid_t)pid, 0) < 0) {
		scan->has_missed = scan->has_missed || errno == ESRCH;
		return;
	}
	if (proc_find_user(pid, &uid) == 0 && !scan_has_user(scan, pid, uid))
		return;
	signs->tag = process_lease_tag_of_process(pid);
	if (!signs->tag)
		scan_note_vanished(scan, pid);
}

/* Reads the signs of process @pid, but not its user. */
static void scan_read_signs(
	struct leftover_scan *scan, uint32_t pid, struct process_lease *signs)
{
	struct process_stat stat;
	struct rlimit locks;

	*signs = (struct process_lease){ .pid = pid };
	if (prlimit((pid_t)pid, RLIMIT_LOCKS, NULL, &locks) < 0) {
		scan->has_missed = scan->has_missed || errno == ESRCH;
		if (errno != ESRCH)
			scan_read_foreign_tag(scan, pid, signs);
		return;
	}
	if (locks.rlim_cur != RLIM_INFINITY)
		signs->tag = locks.rlim_cur;
	if (!scan_wants_token(scan, pid, &locks))
		return;
	process_lease_read_token(pid, signs);
	if (!signs->token[0] && process_stat_read(pid, &stat) == 0)
		scan->has_missed = scan->has_missed || process_has_ended(&stat);
	else if (!signs->token[0])
		scan_note_vanished(scan, pid);
}

/*
 * Notes the process in @search if it lives and belongs to that lease.  Sets ->has_missed if it has
 * just ended: the list may lack a child that it started.
 */
static void scan_note_process(struct leftover_scan *scan, struct leftover_search *search,
	struct process_lease *signs)
{
	const struct owner *owner = search->owner;
	struct process_stat stat;
	struct owner found;

	if (!signs->has_uid)
		signs->has_uid = proc_find_real_user(signs->pid, &signs->uid) == 0;
	if (signs->has_uid && !process_lease_belongs(signs, owner))
		return;
	if (process_stat_read(signs->pid, &stat) < 0) {
		scan_note_vanished(scan, signs->pid);
		return;
	}
	/* the owner, a zombie: it has ended, so all that it started existed before this search */
	if (signs->pid == owner->pid && owner->pidns == scan->my_pidns &&
		stat.start == owner->start)
		return;
	/*
	 * A zombie keeps its tag until it is reaped.  If the process has just ended, or its pid was
	 * reused while it was examined, a child of it may be missing from the list.
	 */
	if (!signs->has_uid || process_has_ended(&stat) ||
		owner_of_pid(signs->pid, &found) < 0 || found.start != stat.start) {
		scan->has_missed = true;
		return;
	}
	/* keep the oldest process: it probably lives longest */
	if (search->is_found && search->found.start <= found.start)
		return;
	search->is_found = true;
	search->found = found;
}

/* Examines one process for all searches. */
static void scan_process(struct leftover_scan *scan, uint32_t pid)
{
	struct process_lease signs;

	scan_read_signs(scan, pid, &signs);
	if (!signs.tag && !signs.token[0])
		return;
	for (size_t i = 0; i < scan->count; i++) {
		struct leftover_search *search = &scan->searches[i];

		if (process_lease_matches(&signs, search->owner->token))
			scan_note_process(scan, search, &signs);
	}
}

/* --- all --------------------------------------------------------------------------- */

/* Returns a pid below which no process is younger than the owner of a lease. */
static uint32_t scan_lowest_pid(const struct leftover_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		const struct owner *owner = scan->searches[i].owner;

		if (owner->pidns != scan->my_pidns || owner->pid <= RESERVED_PIDS)
			return 0;
	}
	return RESERVED_PIDS;
}

/*
 * Examines the processes that are not in the list *@seen of *@seen_count pids, and replaces that
 * list by the new one.  If /proc does not list pids in ascending order, some are examined twice.
 */
static int scan_new_processes(
	struct leftover_scan *scan, uint32_t **seen, size_t *seen_count)
{
	uint32_t self = (uint32_t)getpid();
	autofree uint32_t *before = *seen;
	size_t count, at = 0;
	int r;

	*seen = NULL;
	r = proc_list(scan_lowest_pid(scan), seen, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t pid = (*seen)[i];

		/* both lists ascend, so one walk finds which pids are new */
		while (at < *seen_count && before[at] < pid)
			at++;
		if (pid != self && !(at < *seen_count && before[at] == pid))
			scan_process(scan, pid);
	}
	*seen_count = r == 0 ? count : 0;
	return r;
}

/* Whether some lease still has no leftover process: only then a further list can matter. */
static bool scan_is_incomplete(const struct leftover_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		if (!scan->searches[i].is_found)
			return true;
	return false;
}

static int scan_all(struct leftover_scan *scan)
{
	uint32_t uid = namespaces_own_user();
	autofree uint32_t *pids = NULL;
	size_t pid_count = 0;
	int r = 0;

	scan->is_own = uid != 0;
	for (size_t i = 0; i < scan->count; i++) {
		scan->searches[i].is_found = false;
		scan->is_own = scan->is_own && scan->searches[i].owner->uid == uid;
	}
	for (int left = LISTS_MAX; left > 0; left--) {
		/* read /proc again only if a child may be missing and could matter */
		scan->has_missed = false;
		r = scan_new_processes(scan, &pids, &pid_count);
		if (r < 0 || !scan->has_missed || !scan_is_incomplete(scan))
			break;
	}
	return r;
}

int leftover_find(struct leftover_search searches[], size_t count, uint64_t my_pidns)
{
	struct leftover_scan scan = {
		.searches = searches, .count = count, .my_pidns = my_pidns
	};

	return scan_all(&scan);
}

int leftover_find_of(const struct owner *owner, uint64_t my_pidns, struct owner *ret)
{
	struct leftover_search search = LEFTOVER_OF(owner);
	struct leftover_scan scan = {
		.searches = &search, .count = 1, .my_pidns = my_pidns, .is_thorough = true
	};
	int r = scan_all(&scan);

	if (r < 0)
		return r;
	*ret = search.found;
	return search.is_found ? LEFTOVER_FOUND : 0;
}

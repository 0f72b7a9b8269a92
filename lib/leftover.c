#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "kin.h"
#include "leftover.h"
#include "proc.h"
#include "text.h"

/* A process that ends while others are listed may have started one that the list lacks. */
enum { LISTS_MAX = 3 };

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

struct look {
	struct leftover_search *searches;
	size_t count;
	uint64_t my_pidns;
	bool is_own; /* all leases belong to the user of this process, which is not root */
	bool is_thorough;
	bool has_missed; /* a process ended before it was looked at */
};

/* Whether the process may have been started after the owner of the lease, by its pid. */
static bool is_younger(const struct look *look, uint32_t pid, const struct owner *owner)
{
	return owner->pidns != look->my_pidns || pid > owner->pid;
}

/* Whether a process whose files in /proc belong to @uid may belong to the user of a lease. */
static bool is_candidate(const struct look *look, uint32_t pid, uint32_t uid)
{
	for (size_t i = 0; i < look->count; i++) {
		const struct owner *owner = look->searches[i].owner;

		/*
		 * The files of a process that is not dumpable belong to root.  Processes of the
		 * kernel, and those that the machine has started before the job, are skipped.
		 */
		if (uid == owner->uid || (uid == 0 && is_younger(look, pid, owner)))
			return true;
	}
	return false;
}

/* Whether to read the environment of a process whose limit of file locks is @locks. */
static bool wants_token(const struct look *look, uint32_t pid, const struct rlimit *locks)
{
	bool is_wanted = locks->rlim_max != RLIM_INFINITY;
	uint32_t uid;

	for (size_t i = 0; i < look->count && look->is_thorough && !is_wanted; i++)
		is_wanted = is_younger(look, pid, look->searches[i].owner);
	return is_wanted && proc_find_user(pid, &uid) == 0 &&
	       is_candidate(look, pid, uid);
}

/* Reads the tag of a process that prlimit(2) refuses: it has another user or group. */
static void read_refused(const struct look *look, uint32_t pid, struct kin *kin)
{
	uint32_t uid;

	/* kill(2) allows signals to all processes of the same user, and costs less than /proc */
	if (look->is_own && kill((pid_t)pid, 0) < 0)
		return;
	if (proc_find_user(pid, &uid) == 0 && is_candidate(look, pid, uid))
		kin->tag = kin_tag_of_process(pid);
}

/* Reads the signs of process @pid, but not its user. */
static void read_signs(struct look *look, uint32_t pid, struct kin *kin)
{
	struct rlimit locks;

	*kin = (struct kin){ .pid = pid };
	if (prlimit((pid_t)pid, RLIMIT_LOCKS, NULL, &locks) < 0) {
		look->has_missed = look->has_missed || errno == ESRCH;
		if (errno != ESRCH)
			read_refused(look, pid, kin);
		return;
	}
	if (locks.rlim_cur != RLIM_INFINITY)
		kin->tag = locks.rlim_cur;
	if (wants_token(look, pid, &locks))
		kin_read_token(pid, kin);
}

/* Notes the process in @search if it lives and belongs to that lease. */
static void note(struct leftover_search *search, struct kin *kin, uint64_t my_pidns)
{
	const struct owner *owner = search->owner;
	struct process_stat stat;
	struct owner found;

	if (!kin->has_uid)
		kin->has_uid = proc_find_real_user(kin->pid, &kin->uid) == 0;
	/* a zombie keeps its tag until it is reaped */
	if (!kin_belongs(kin, owner) || process_stat_read(kin->pid, &stat) < 0 ||
		process_has_ended(&stat) || owner_of_pid(kin->pid, &found) < 0 ||
		found.start != stat.start)
		return;
	if (kin->pid == owner->pid && owner->pidns == my_pidns &&
		found.start == owner->start)
		return;
	/* a process mostly outlives the processes that it starts */
	if (search->is_found && search->found.start <= found.start)
		return;
	search->is_found = true;
	search->found = found;
}

static void look_at(struct look *look, uint32_t pid)
{
	struct kin kin;

	read_signs(look, pid, &kin);
	if (!kin.tag && !kin.token[0])
		return;
	for (size_t i = 0; i < look->count; i++) {
		struct leftover_search *search = &look->searches[i];

		if (kin_matches(&kin, search->owner->token))
			note(search, &kin, look->my_pidns);
	}
}

/* --- all --------------------------------------------------------------------------- */

/* Whether the pids in /proc are those of this process's pid namespace. */
static bool is_own_proc(void)
{
	char text[16];
	unsigned pid = 0;
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return sscanf(text, "%u", &pid) == 1 && pid == (unsigned)getpid();
}

/*
 * Looks at the processes that are not in the list *@seen, *@seen_count long, and replaces it by the
 * new list.  If /proc does not list pids in ascending order, some are looked at again.
 */
static int look_at_new(struct look *look, uint32_t **seen, size_t *seen_count)
{
	uint32_t self = (uint32_t)getpid();
	autofree uint32_t *before = *seen;
	size_t count, at = 0;
	int r;

	*seen = NULL;
	r = proc_list(seen, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint32_t pid = (*seen)[i];

		while (at < *seen_count && before[at] < pid)
			at++;
		if (pid != self && !(at < *seen_count && before[at] == pid))
			look_at(look, pid);
	}
	*seen_count = r == 0 ? count : 0;
	return r;
}

static bool is_any_missing(const struct look *look)
{
	for (size_t i = 0; i < look->count; i++)
		if (!look->searches[i].is_found)
			return true;
	return false;
}

static int look_at_all(struct look *look)
{
	autofree uint32_t *pids = NULL;
	size_t pid_count = 0;
	int r = 0;

	look->is_own = getuid() != 0;
	for (size_t i = 0; i < look->count; i++) {
		look->searches[i].is_found = false;
		look->is_own = look->is_own && look->searches[i].owner->uid == getuid();
	}
	if (!is_own_proc())
		return -ENOTSUP;
	for (int left = LISTS_MAX; left > 0; left--) {
		look->has_missed = false;
		r = look_at_new(look, &pids, &pid_count);
		if (r < 0 || !look->has_missed || !is_any_missing(look))
			break;
	}
	return r;
}

int leftover_find(struct leftover_search searches[], size_t count, uint64_t my_pidns)
{
	struct look look = { .searches = searches, .count = count, .my_pidns = my_pidns };

	return look_at_all(&look);
}

int leftover_find_of(const struct owner *owner, uint64_t my_pidns, struct owner *ret)
{
	struct leftover_search search = LEFTOVER_OF(owner);
	struct look look = {
		.searches = &search, .count = 1, .my_pidns = my_pidns, .is_thorough = true
	};
	int r = look_at_all(&look);

	if (r < 0)
		return r;
	*ret = search.found;
	return search.is_found;
}

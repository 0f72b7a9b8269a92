#include "array.h"
#include "clock.h"
#include "live_fifo.h"
#include "liveness.h"
#include "watch.h"

enum {
	TRUST_MS = 10000,      /* for how long a ticket counts as alive without a look */
	LOOK_MS = 1000,        /* as ->look_ms says */
	UNWATCHABLE_MS = 1000, /* the longest time between two looks at such an owner */
	UNWATCHABLE_LEAST_MS = 5,
};

struct liveness *liveness_set_find(struct liveness_set *set, const char *token)
{
	const struct token_items items = { set->all, set->count, sizeof(*set->all),
		offsetof(struct liveness, owner.token) };
	size_t at = token_index_find(&set->index, &items, token);

	return at == SIZE_MAX ? NULL : &set->all[at];
}

static struct liveness *liveness_add(struct liveness_set *set, const struct owner *owner)
{
	struct liveness *all = array_grow(set->all, sizeof(*all), set->count, &set->room);

	if (!all)
		return NULL;
	set->all = all;
	set->all[set->count] = (struct liveness){
		.owner = *owner,
		.pidfd = -1,
		.fifo_fd = -1,
		.left_fd = -1,
		.ended_fd = -1,
		.status = -1,
		.fifo = owner->is_adopted == OWNER_UNWATCHED ? LIVENESS_ENDED
							     : LIVENESS_UNKNOWN,
	};
	return &set->all[set->count++];
}

/*
 * Learns how the process ended.  Only a pidfd that was opened before the end can tell, and only
 * once the parent has reaped the process.
 */
static void liveness_learn_status(struct liveness *job)
{
	if (job->ended_fd >= 0 &&
		pidfd_exit_status(job->ended_fd, &job->status) != PIDFD_NOT_REAPED)
		close_fd(&job->ended_fd);
}

bool liveness_may_tell(const struct liveness *job)
{
	return job->ended_fd >= 0;
}

/* Translates what owner_judge() returns. */
static enum liveness_half half_of(enum owner_state state)
{
	switch (state) {
	case OWNER_ALIVE:
		return LIVENESS_LIVES;
	case OWNER_DEAD:
		return LIVENESS_ENDED;
	case OWNER_UNDECIDED:
		break;
	}
	return LIVENESS_UNKNOWN;
}

/* --- descriptors ----------------------------------------------------------------- */

static unsigned liveness_count_fds(const struct liveness *job)
{
	return (unsigned)((job->pidfd >= 0) + (job->fifo_fd >= 0) + (job->left_fd >= 0) +
			  (job->ended_fd >= 0));
}

static void liveness_count_kept(struct liveness_set *set)
{
	set->kept = 0;
	for (size_t i = 0; i < set->count; i++)
		set->kept += liveness_count_fds(&set->all[i]);
}

/* Whether there is room for one more descriptor of @job.  Leases leave some to tickets. */
static bool liveness_has_room(const struct liveness_set *set, const struct liveness *job)
{
	return !set->most || set->kept + (job->is_job ? set->most / 4 : 0) < set->most;
}

static void liveness_close(struct liveness *job)
{
	close_fd(&job->pidfd);
	close_fd(&job->fifo_fd);
	close_fd(&job->left_fd);
	close_fd(&job->ended_fd);
}

/*
 * Makes room for a descriptor of @job: closes those of jobs that are not watched, and the FIFOs of
 * jobs whose process is followed, too.
 */
static bool liveness_make_room(struct liveness_set *set, const struct liveness *job)
{
	for (size_t i = 0; i < set->count && !liveness_has_room(set, job); i++) {
		struct liveness *other = &set->all[i];

		set->kept -= liveness_count_fds(other);
		if (!other->is_watched)
			liveness_close(other);
		else if (other->pidfd >= 0)
			close_fd(&other->fifo_fd);
		set->kept += liveness_count_fds(other);
	}
	return liveness_has_room(set, job);
}

/* --- judging ---------------------------------------------------------------------- */

/* Where to keep a descriptor of @job that is opened now; NULL: nowhere. */
static int *liveness_keep(struct liveness_set *set, const struct liveness *job, int *fd)
{
	bool keeps = !set->most ||
		     ((job->is_job || job->is_watched) && liveness_has_room(set, job));

	return keeps ? fd : NULL;
}

/* Judges the process that is followed: the owner or, once it has ended, the command. */
static void liveness_judge_followed(struct liveness_set *set, struct liveness *job)
{
	struct owner followed =
		job->is_orphaned ? owner_as_command(&job->owner, &job->runs) : job->owner;

	if (job->process == LIVENESS_ENDED)
		return;
	/* a pidfd never means another process, so nothing else need be compared */
	if (job->pidfd >= 0)
		job->process =
			pidfd_has_ended(job->pidfd) ? LIVENESS_ENDED : LIVENESS_LIVES;
	else
		job->process = half_of(owner_judge(&followed, set->dir->pidns,
			liveness_keep(set, job, &job->pidfd)));
	if (job->process == LIVENESS_ENDED)
		job->ended_fd = take_fd(&job->pidfd);
}

/* Follows the command of a supervisor that has ended: it is the job itself, if it still lives. */
static void liveness_follow_command(struct liveness_set *set, struct liveness *job)
{
	struct owner command = owner_as_command(&job->owner, &job->runs);
	int pidfd = -1;
	enum liveness_half half = half_of(
		owner_judge(&command, set->dir->pidns, liveness_keep(set, job, &pidfd)));

	if (half == LIVENESS_ENDED)
		return;
	/* the exit status of the supervisor is not that of the job */
	close_fd(&job->ended_fd);
	job->status = -1;
	job->is_orphaned = true;
	job->process = half;
	job->pidfd = pidfd;
	/* it was noted dead if the command became known only now */
	job->dead_ms = job->over_ms = 0;
}

static void liveness_judge_process(struct liveness_set *set, struct liveness *job)
{
	liveness_judge_followed(set, job);
	if (job->process == LIVENESS_ENDED && !job->is_orphaned && job->runs.pid)
		liveness_follow_command(set, job);
}

/* Judges the live FIFO, and opens it if a process holds it, so that its end can be watched. */
static void liveness_judge_fifo(struct liveness_set *set, struct liveness *job)
{
	enum live_fifo_state state;

	if (job->fifo == LIVENESS_ENDED)
		return;
	state = job->fifo_fd >= 0 ? live_fifo_look_again(job->fifo_fd)
				  : live_fifo_look(set->dir, job->owner.token,
					    liveness_keep(set, job, &job->fifo_fd));
	/*
	 * Another waiter may have declared a lingering lease over.  It has then removed the name,
	 * while a process of the job still holds the FIFO.
	 */
	if (state == LIVE_FIFO_HELD && job->process == LIVENESS_ENDED &&
		live_fifo_look(set->dir, job->owner.token, NULL) == LIVE_FIFO_GONE)
		state = LIVE_FIFO_GONE;
	job->fifo = state == LIVE_FIFO_GONE   ? LIVENESS_ENDED
		    : state == LIVE_FIFO_HELD ? LIVENESS_LIVES
					      : LIVENESS_UNKNOWN;
	if (job->fifo == LIVENESS_ENDED)
		close_fd(&job->fifo_fd);
}

/*
 * Judges an adopted owner in another pid namespace, for which no process holds the FIFO: its
 * watchdog was killed, the namespace has ended with both, or the lease is of an earlier version,
 * without a watchdog.  A process that sees all processes finds out which.  For any other process
 * the owner counts as one that the job has left: its lease ends once the GPUs have been idle for
 * the linger time.
 */
static void liveness_judge_unseen(struct liveness *job)
{
	enum owner_state state;

	if (!liveness_is_unseen(job) || job->fifo != LIVENESS_ENDED)
		return;
	if (!job->has_sought) {
		state = owner_seek(&job->owner, NULL, &job->pidfd);
		job->process = half_of(state);
		/* without a pidfd the search has to be repeated */
		job->has_sought = state != OWNER_ALIVE || job->pidfd >= 0;
	}
	if (job->process == LIVENESS_UNKNOWN && job->rest == LIVENESS_UNKNOWN &&
		job->owner.is_adopted == OWNER_WATCHED) {
		job->left_behind = job->owner;
		job->rest = LIVENESS_LIVES;
	}
}

/* Judges the leftover process that is known. */
static void liveness_judge_rest(struct liveness_set *set, struct liveness *job)
{
	bool has_ended;

	if (job->rest != LIVENESS_LIVES)
		return;
	has_ended = job->left_fd >= 0 ? pidfd_has_ended(job->left_fd)
				      : owner_judge(&job->left_behind, set->dir->pidns,
						liveness_keep(set, job, &job->left_fd)) ==
						OWNER_DEAD;
	/* UNKNOWN and not ENDED: the process may have started others before it ended */
	if (has_ended) {
		job->rest = LIVENESS_UNKNOWN;
		close_fd(&job->left_fd);
	}
}

/* Notes at @now_ms since when the job has been dead, over or unwatchable. */
static void liveness_note_times(struct liveness *job, int64_t now_ms)
{
	if (!liveness_is_dead(job))
		job->alive_ms = now_ms;
	else if (!job->dead_ms)
		job->dead_ms = now_ms;
	if (!liveness_is_over(job))
		job->over_ms = 0; /* it seemed over until a process was found */
	else if (!job->over_ms)
		job->over_ms = now_ms;
	if (!liveness_is_unwatchable(job))
		job->unwatchable_ms = 0;
	else if (!job->unwatchable_ms)
		job->unwatchable_ms = now_ms;
}

/*
 * Whether the FIFO has to be looked at.  A lease needs it once the process has ended; it also
 * decides where the process cannot be judged, and is watched where the process cannot be.  While
 * there are enough descriptors, the FIFO of a lease is watched beside the process: it also tells
 * that a supervisor has given the lease back.
 */
static bool liveness_wants_fifo(
	const struct liveness_set *set, const struct liveness *job, bool needs_fifo)
{
	if (set->most && job->process == LIVENESS_LIVES) {
		if (job->fifo_fd >= 0 || (needs_fifo && set->kept < set->most / 2))
			return true;
		return job->is_watched && job->pidfd < 0 && liveness_has_room(set, job);
	}
	return needs_fifo || (job->process != LIVENESS_ENDED && job->pidfd < 0);
}

/* Judges @job, whose state may have been used in this turn. */
static void liveness_judge(
	struct liveness_set *set, struct liveness *job, bool needs_fifo, int64_t now_ms)
{
	enum liveness_half process = job->process, fifo = job->fifo, rest = job->rest;
	unsigned before = liveness_count_fds(job);

	/* a job that was followed lived until this wake-up, even if it is now found dead */
	if (job->pidfd >= 0 || (job->process == LIVENESS_UNKNOWN && job->fifo_fd >= 0))
		job->alive_ms = now_ms;
	liveness_judge_process(set, job);
	liveness_learn_status(job);
	if (liveness_wants_fifo(set, job, needs_fifo))
		liveness_judge_fifo(set, job);
	liveness_judge_unseen(job);
	liveness_judge_rest(set, job);
	set->kept += liveness_count_fds(job);
	set->kept -= before < set->kept ? before : set->kept;
	/*
	 * The job was used earlier in this turn and has ended since.  The part that has ended is no
	 * longer watched, so nothing would wake the caller, which has judged by the old state.
	 */
	if (job->is_used &&
		((process != LIVENESS_ENDED && job->process == LIVENESS_ENDED) ||
			(fifo == LIVENESS_LIVES && job->fifo == LIVENESS_ENDED) ||
			(rest == LIVENESS_LIVES && job->rest != LIVENESS_LIVES)))
		set->has_changed = true;
	job->is_used = true;
	liveness_note_times(job, now_ms);
}

struct liveness *liveness_set_judge(struct liveness_set *set, const struct owner *owner,
	bool needs_fifo, int64_t now_ms)
{
	struct liveness *job = liveness_set_find(set, owner->token);
	bool is_known = job && set->most && !needs_fifo && !liveness_count_fds(job) &&
			!liveness_is_dead(job) && !job->was_watched &&
			now_ms - job->alive_ms < TRUST_MS;

	if (!job)
		job = liveness_add(set, owner);
	if (!job)
		return NULL;
	job->is_job = job->is_job || needs_fifo;
	if (is_known)
		job->is_used = true;
	else
		liveness_judge(set, job, needs_fifo, now_ms);
	return job;
}

struct liveness *liveness_set_judge_job(struct liveness_set *set,
	const struct owner *owner, const struct command *runs, int64_t now_ms)
{
	struct liveness *job = liveness_set_find(set, owner->token);

	if (!job)
		job = liveness_add(set, owner);
	if (!job)
		return NULL;
	if (runs->pid && !job->is_orphaned)
		job->runs = *runs;
	return liveness_set_judge(set, owner, true, now_ms);
}

void liveness_end(struct liveness *job, bool is_final, int64_t now_ms)
{
	job->process = job->fifo = LIVENESS_ENDED;
	if (!job->is_orphaned)
		job->runs = COMMAND_NONE; /* the command is not to be followed */
	close_fd(&job->pidfd);
	close_fd(&job->fifo_fd);
	if (is_final) {
		job->rest = LIVENESS_ENDED;
		close_fd(&job->left_fd);
	}
	liveness_note_times(job, now_ms);
}

static bool is_same_process(const struct owner *one, const struct owner *other)
{
	return one->pid == other->pid && one->start == other->start &&
	       one->pidns == other->pidns;
}

void liveness_leave(struct liveness_set *set, struct liveness *job,
	const struct owner *left, bool is_found, int64_t now_ms)
{
	int pidfd = -1;

	/* a process that waits for the end of its own job does not wait for itself */
	if (left->pid == (uint32_t)getpid() && left->pidns == set->dir->pidns)
		return;
	/*
	 * A known leftover is replaced only by one that this process has found itself.  A process
	 * that a record names may be one that cannot be judged from here.  A record that names the
	 * known one brings nothing new.
	 */
	if ((job->rest == LIVENESS_LIVES && !is_found) ||
		(!is_found && is_same_process(&job->left_behind, left)))
		return;
	/*
	 * A record that names a new process asks for a new look, unless a look has found one
	 * before.
	 */
	job->has_looked = job->has_found = job->has_found || is_found;
	switch (owner_judge(left, set->dir->pidns, liveness_keep(set, job, &pidfd))) {
	case OWNER_DEAD:
		return;
	case OWNER_UNDECIDED:
		/* a look has found processes of the job before, so it would have found this one */
		if (job->rest == LIVENESS_ENDED && job->has_found)
			return;
		break;
	case OWNER_ALIVE:
		break;
	}
	close_fd(&job->left_fd);
	job->left_behind = *left;
	job->left_fd = pidfd;
	job->rest = LIVENESS_LIVES;
	liveness_note_times(job, now_ms);
}

void liveness_leave_nothing(struct liveness *job)
{
	job->has_looked = true;
	if (job->rest == LIVENESS_UNKNOWN)
		job->rest = LIVENESS_ENDED;
}

bool liveness_wants_look(const struct liveness *job)
{
	/* a leftover that cannot be followed: one look may find another that can */
	if (job->rest == LIVENESS_LIVES)
		return job->left_fd < 0 && !job->has_looked;
	return liveness_is_over(job) && job->rest == LIVENESS_UNKNOWN;
}

bool liveness_is_dead(const struct liveness *job)
{
	return job->process == LIVENESS_ENDED ||
	       (job->process == LIVENESS_UNKNOWN && job->fifo == LIVENESS_ENDED &&
		       job->owner.is_adopted != OWNER_UNWATCHED);
}

bool liveness_is_unseen(const struct liveness *job)
{
	return job->owner.is_adopted && job->process == LIVENESS_UNKNOWN;
}

bool liveness_is_over(const struct liveness *job)
{
	return liveness_is_dead(job) && job->fifo == LIVENESS_ENDED &&
	       job->rest != LIVENESS_LIVES;
}

bool liveness_is_unwatchable(const struct liveness *job)
{
	bool process_fires = job->process == LIVENESS_LIVES && job->pidfd >= 0;
	bool fifo_fires = job->fifo == LIVENESS_LIVES && job->fifo_fd >= 0;
	bool rest_fires = job->rest == LIVENESS_LIVES && job->left_fd >= 0;

	return !liveness_is_over(job) && !process_fires && !fifo_fires && !rest_fires;
}

int liveness_watch(const struct liveness *job, struct watch *watch)
{
	int r = watch_add(watch, job->pidfd, POLLIN);

	if (r == 0) /* only POLLHUP matters, which poll always reports */
		r = watch_add(watch, job->fifo_fd, 0);
	return r < 0 ? r : watch_add(watch, job->left_fd, POLLIN);
}

/*
 * Opens a descriptor that shows the end of the watched @job, if it has none.  Returns whether there
 * is room for one.
 */
static bool liveness_follow(
	struct liveness_set *set, struct liveness *job, int64_t now_ms)
{
	if (!set->most || !liveness_is_unwatchable(job))
		return true;
	if (!liveness_make_room(set, job))
		return false;
	liveness_judge(set, job, job->is_job, now_ms);
	return true;
}

int liveness_set_watch(struct liveness_set *set, struct watch *watch, int64_t now_ms)
{
	int r = 0;

	liveness_count_kept(set);
	for (size_t i = 0; i < set->count && r == 0; i++) {
		struct liveness *job = &set->all[i];
		int64_t age_ms = now_ms - job->unwatchable_ms;

		if (!job->is_watched)
			continue;
		if (!liveness_follow(set, job, now_ms))
			watch_until(
				watch, now_ms + (set->look_ms ? set->look_ms : LOOK_MS));
		else if (job->unwatchable_ms)
			watch_until(watch,
				now_ms + min_i64(UNWATCHABLE_MS,
						 max_i64(UNWATCHABLE_LEAST_MS, age_ms)));
		r = liveness_watch(job, watch);
	}
	if (set->has_changed)
		watch_until(watch, now_ms);
	return r;
}

void liveness_set_begin(struct liveness_set *set)
{
	set->has_changed = false;
	liveness_count_kept(set);
	for (size_t i = 0; i < set->count; i++) {
		set->all[i].was_watched = set->all[i].is_watched;
		set->all[i].is_used = set->all[i].is_watched = false;
	}
}

void liveness_set_end(struct liveness_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (set->all[i].is_used)
			set->all[kept++] = set->all[i];
		else
			liveness_close(&set->all[i]);
	}
	/* the index holds positions in ->all, which have moved */
	if (kept != set->count)
		token_index_reset(&set->index);
	set->count = kept;
}

void liveness_set_let_go(struct liveness_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		liveness_close(&set->all[i]);
	set->count = set->kept = 0;
	set->has_changed = false;
	token_index_reset(&set->index);
}

void liveness_set_release(struct liveness_set *set)
{
	liveness_set_let_go(set);
	free(set->all);
	token_index_release(&set->index);
	*set = LIVENESS_SET_ON(set->dir);
}

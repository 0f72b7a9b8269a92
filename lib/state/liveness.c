#include "array.h"
#include "live_fifo.h"
#include "liveness.h"
#include "watch.h"

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

/* Judges the process that is followed: the owner or, once it has ended, the command. */
static void liveness_judge_followed(const struct liveness_set *set, struct liveness *job)
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
		job->process =
			half_of(owner_judge(&followed, set->dir->pidns, &job->pidfd));
	if (job->process == LIVENESS_ENDED)
		job->ended_fd = take_fd(&job->pidfd);
}

/* Follows the command of a supervisor that has ended: it is the job itself, if it still lives. */
static void liveness_follow_command(const struct liveness_set *set, struct liveness *job)
{
	struct owner command = owner_as_command(&job->owner, &job->runs);
	int pidfd;
	enum liveness_half half = half_of(owner_judge(&command, set->dir->pidns, &pidfd));

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

static void liveness_judge_process(const struct liveness_set *set, struct liveness *job)
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
	state = job->fifo_fd >= 0
			? live_fifo_look_again(job->fifo_fd)
			: live_fifo_look(set->dir, job->owner.token, &job->fifo_fd);
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
						&job->left_fd) == OWNER_DEAD;
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

struct liveness *liveness_set_judge(struct liveness_set *set, const struct owner *owner,
	bool needs_fifo, int64_t now_ms)
{
	struct liveness *job = liveness_set_find(set, owner->token);
	enum liveness_half process, fifo, rest;
	bool was_used;

	if (!job)
		job = liveness_add(set, owner);
	if (!job)
		return NULL;
	was_used = job->is_used;
	process = job->process;
	fifo = job->fifo;
	rest = job->rest;
	job->is_used = true;
	/* a job that was followed lived until this wake-up, even if it is now found dead */
	if (job->pidfd >= 0 || (job->process == LIVENESS_UNKNOWN && job->fifo_fd >= 0))
		job->alive_ms = now_ms;
	liveness_judge_process(set, job);
	liveness_learn_status(job);
	/* for a ticket, the FIFO decides only where the process cannot be followed */
	if (needs_fifo || (job->process != LIVENESS_ENDED && job->pidfd < 0))
		liveness_judge_fifo(set, job);
	liveness_judge_unseen(job);
	liveness_judge_rest(set, job);
	/*
	 * The job was used earlier in this turn and has ended since.  The part that has ended is no
	 * longer watched, so nothing would wake the caller, which has judged by the old state.
	 */
	if (was_used && ((process != LIVENESS_ENDED && job->process == LIVENESS_ENDED) ||
				(fifo == LIVENESS_LIVES && job->fifo == LIVENESS_ENDED) ||
				(rest == LIVENESS_LIVES && job->rest != LIVENESS_LIVES)))
		set->has_changed = true;
	liveness_note_times(job, now_ms);
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
	switch (owner_judge(left, set->dir->pidns, &pidfd)) {
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

void liveness_set_begin(struct liveness_set *set)
{
	set->has_changed = false;
	for (size_t i = 0; i < set->count; i++)
		set->all[i].is_used = set->all[i].is_watched = false;
}

static void liveness_close(struct liveness *job)
{
	close_fd(&job->pidfd);
	close_fd(&job->fifo_fd);
	close_fd(&job->left_fd);
	close_fd(&job->ended_fd);
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

void liveness_set_release(struct liveness_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		liveness_close(&set->all[i]);
	free(set->all);
	token_index_release(&set->index);
	*set = LIVENESS_SET_ON(set->dir);
}

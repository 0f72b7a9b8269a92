#include "array.h"
#include "life.h"
#include "watch.h"

struct life *lives_find(struct lives *lives, const char *token)
{
	const struct token_items items = { lives->all, lives->count, sizeof(*lives->all),
		offsetof(struct life, owner.token) };
	size_t at = token_index_find(&lives->index, &items, token);

	return at == SIZE_MAX ? NULL : &lives->all[at];
}

static struct life *add(struct lives *lives, const struct owner *owner)
{
	struct life *all =
		array_grow(lives->all, sizeof(*all), lives->count, &lives->room);

	if (!all)
		return NULL;
	lives->all = all;
	lives->all[lives->count] = (struct life){
		.owner = *owner,
		.pidfd = -1,
		.fifo_fd = -1,
		.left_fd = -1,
		.ended_fd = -1,
		.status = -1,
		/* there never was one */
		.fifo = owner->is_adopted ? LIFE_ENDED : LIFE_UNKNOWN,
	};
	return &lives->all[lives->count++];
}

/* How it ended: only who had it open before can ask, and only once its parent has. */
static void learn_status(struct life *life)
{
	if (life->ended_fd >= 0 &&
		pidfd_exit_status(life->ended_fd, &life->status) != PIDFD_NOT_REAPED)
		close_fd(&life->ended_fd);
}

bool life_may_tell(const struct life *life)
{
	return life->ended_fd >= 0;
}

static enum life_half half_of(enum owner_state state)
{
	switch (state) {
	case OWNER_ALIVE:
		return LIFE_LIVES;
	case OWNER_DEAD:
		return LIFE_ENDED;
	case OWNER_UNDECIDED:
		break;
	}
	return LIFE_UNKNOWN;
}

/* Judges the owner or, in its place, the command. */
static void judge_followed(const struct lives *lives, struct life *life)
{
	struct owner followed = life->is_orphaned
					? owner_as_command(&life->owner, &life->runs)
					: life->owner;

	if (life->process == LIFE_ENDED)
		return;
	if (life->pidfd >= 0)
		life->process = pidfd_has_ended(life->pidfd) ? LIFE_ENDED : LIFE_LIVES;
	else
		life->process =
			half_of(owner_judge(&followed, lives->dir->pidns, &life->pidfd));
	if (life->process == LIFE_ENDED)
		life->ended_fd = take_fd(&life->pidfd);
}

/* For a supervisor that has ended: its command is the job itself, as long as it lives. */
static void follow_command(const struct lives *lives, struct life *life)
{
	struct owner command = owner_as_command(&life->owner, &life->runs);
	int pidfd;
	enum life_half half = half_of(owner_judge(&command, lives->dir->pidns, &pidfd));

	if (half == LIFE_ENDED)
		return;
	/* how the supervisor ended says nothing of the job */
	close_fd(&life->ended_fd);
	life->status = -1;
	life->is_orphaned = true;
	life->process = half;
	life->pidfd = pidfd;
	life->dead_ms = life->over_ms = 0;
}

static void judge_process(const struct lives *lives, struct life *life)
{
	judge_followed(lives, life);
	if (life->process == LIFE_ENDED && !life->is_orphaned && life->runs.pid)
		follow_command(lives, life);
}

static void judge_fifo(struct lives *lives, struct life *life)
{
	enum beacon_state state;

	if (life->fifo == LIFE_ENDED)
		return;
	state = life->fifo_fd >= 0
			? beacon_look_again(life->fifo_fd)
			: beacon_look(lives->dir, life->owner.token, &life->fifo_fd);
	/* a lingering one may have been declared over by another waiter: by its name */
	if (state == BEACON_HELD && life->process == LIFE_ENDED &&
		beacon_look(lives->dir, life->owner.token, NULL) == BEACON_GONE)
		state = BEACON_GONE;
	life->fifo = state == BEACON_GONE   ? LIFE_ENDED
		     : state == BEACON_HELD ? LIFE_LIVES
					    : LIFE_UNKNOWN;
	if (life->fifo == LIFE_ENDED)
		close_fd(&life->fifo_fd);
}

static void judge_rest(struct lives *lives, struct life *life)
{
	bool has_ended;

	if (life->rest != LIFE_LIVES)
		return;
	has_ended = life->left_fd >= 0
			    ? pidfd_has_ended(life->left_fd)
			    : owner_judge(&life->left_behind, lives->dir->pidns,
				      &life->left_fd) == OWNER_DEAD;
	/* it may have started others meanwhile */
	if (has_ended) {
		life->rest = LIFE_UNKNOWN;
		close_fd(&life->left_fd);
	}
}

/* Notes at @now_ms since when the job has been dead, over or unwatchable. */
static void note_times(struct life *life, int64_t now_ms)
{
	if (!life_is_dead(life))
		life->alive_ms = now_ms;
	else if (!life->dead_ms)
		life->dead_ms = now_ms;
	if (!life_is_over(life))
		life->over_ms = 0; /* it seemed over until a process was found */
	else if (!life->over_ms)
		life->over_ms = now_ms;
	if (!life_is_unwatchable(life))
		life->unwatchable_ms = 0;
	else if (!life->unwatchable_ms)
		life->unwatchable_ms = now_ms;
}

struct life *lives_judge(
	struct lives *lives, const struct owner *owner, bool needs_fifo, int64_t now_ms)
{
	struct life *life = lives_find(lives, owner->token);
	enum life_half process, fifo, rest;
	bool was_used;

	if (!life)
		life = add(lives, owner);
	if (!life)
		return NULL;
	was_used = life->is_used;
	process = life->process;
	fifo = life->fifo;
	rest = life->rest;
	life->is_used = true;
	/* who was followed lived until the wake-up that finds it dead */
	if (life->pidfd >= 0 || (life->process == LIFE_UNKNOWN && life->fifo_fd >= 0))
		life->alive_ms = now_ms;
	judge_process(lives, life);
	learn_status(life);
	if (needs_fifo || (life->process != LIFE_ENDED && life->pidfd < 0))
		judge_fifo(lives, life);
	judge_rest(lives, life);
	/* what has fired is not watched any more, and who was told otherwise has to look again */
	if (was_used && ((process != LIFE_ENDED && life->process == LIFE_ENDED) ||
				(fifo == LIFE_LIVES && life->fifo == LIFE_ENDED) ||
				(rest == LIFE_LIVES && life->rest != LIFE_LIVES)))
		lives->has_changed = true;
	note_times(life, now_ms);
	return life;
}

struct life *lives_judge_job(struct lives *lives, const struct owner *owner,
	const struct command *runs, int64_t now_ms)
{
	struct life *life = lives_find(lives, owner->token);

	if (!life)
		life = add(lives, owner);
	if (!life)
		return NULL;
	if (runs->pid && !life->is_orphaned)
		life->runs = *runs;
	return lives_judge(lives, owner, true, now_ms);
}

void life_end(struct life *life, bool is_final, int64_t now_ms)
{
	life->process = life->fifo = LIFE_ENDED;
	if (!life->is_orphaned)
		life->runs = COMMAND_NONE; /* its command is not followed in its place */
	close_fd(&life->pidfd);
	close_fd(&life->fifo_fd);
	if (is_final) {
		life->rest = LIFE_ENDED;
		close_fd(&life->left_fd);
	}
	note_times(life, now_ms);
}

static bool is_same_process(const struct owner *one, const struct owner *other)
{
	return one->pid == other->pid && one->start == other->start &&
	       one->pidns == other->pidns;
}

void life_leave(struct lives *lives, struct life *life, const struct owner *left,
	bool is_found, int64_t now_ms)
{
	int pidfd = -1;

	/* a process that waits for the end of its own job does not wait for itself */
	if (left->pid == (uint32_t)getpid() && left->pidns == lives->dir->pidns)
		return;
	/* only a process that was found replaces a known one, which may be judged elsewhere only */
	if ((life->rest == LIFE_LIVES && !is_found) ||
		(!is_found && is_same_process(&life->left_behind, left)))
		return;
	life->has_looked = life->has_found = life->has_found || is_found;
	switch (owner_judge(left, lives->dir->pidns, &pidfd)) {
	case OWNER_DEAD:
		return;
	case OWNER_UNDECIDED:
		/* a look that has seen others of the job would have seen this one */
		if (life->rest == LIFE_ENDED && life->has_found)
			return;
		break;
	case OWNER_ALIVE:
		break;
	}
	close_fd(&life->left_fd);
	life->left_behind = *left;
	life->left_fd = pidfd;
	life->rest = LIFE_LIVES;
	note_times(life, now_ms);
}

void life_leave_nothing(struct life *life)
{
	life->has_looked = true;
	if (life->rest == LIFE_UNKNOWN)
		life->rest = LIFE_ENDED;
}

bool life_wants_look(const struct life *life)
{
	if (life->rest == LIFE_LIVES)
		return life->left_fd < 0 && !life->has_looked;
	return life_is_over(life) && life->rest == LIFE_UNKNOWN;
}

bool life_is_dead(const struct life *life)
{
	/* without a FIFO nobody but who sees the process can tell: it counts as alive */
	return life->process == LIFE_ENDED ||
	       (life->process == LIFE_UNKNOWN && life->fifo == LIFE_ENDED &&
		       !life->owner.is_adopted);
}

bool life_is_over(const struct life *life)
{
	return life_is_dead(life) && life->fifo == LIFE_ENDED && life->rest != LIFE_LIVES;
}

bool life_is_unwatchable(const struct life *life)
{
	bool process_fires = life->process == LIFE_LIVES && life->pidfd >= 0;
	bool fifo_fires = life->fifo == LIFE_LIVES && life->fifo_fd >= 0;

	bool rest_fires = life->rest == LIFE_LIVES && life->left_fd >= 0;

	return !life_is_over(life) && !process_fires && !fifo_fires && !rest_fires;
}

int life_watch(const struct life *life, struct watch *watch)
{
	int r = watch_add(watch, life->pidfd, POLLIN);

	if (r == 0)
		r = watch_add(watch, life->fifo_fd, 0);
	return r < 0 ? r : watch_add(watch, life->left_fd, POLLIN);
}

void lives_begin(struct lives *lives)
{
	lives->has_changed = false;
	for (size_t i = 0; i < lives->count; i++)
		lives->all[i].is_used = lives->all[i].is_watched = false;
}

static void forget(struct life *life)
{
	close_fd(&life->pidfd);
	close_fd(&life->fifo_fd);
	close_fd(&life->left_fd);
	close_fd(&life->ended_fd);
}

void lives_end(struct lives *lives)
{
	size_t kept = 0;

	for (size_t i = 0; i < lives->count; i++) {
		if (lives->all[i].is_used)
			lives->all[kept++] = lives->all[i];
		else
			forget(&lives->all[i]);
	}
	if (kept != lives->count)
		token_index_reset(&lives->index);
	lives->count = kept;
}

void lives_release(struct lives *lives)
{
	for (size_t i = 0; i < lives->count; i++)
		forget(&lives->all[i]);
	free(lives->all);
	token_index_release(&lives->index);
	*lives = LIVES_ON(lives->dir);
}

#include <signal.h>

#include "kin.h"
#include "teardown.h"

enum {
	ROUND_MS = 50,
	ROUND_MAX_MS = 10000, /* one that cannot be killed is asked rarely */
	/* whoever holds the FIFO and is neither a descendant nor marked cannot be found */
	ALONE_MS = 5000,
};

static int look(const struct teardown *teardown, struct tree *tree)
{
	uint32_t but[TEARDOWN_BUT_MAX];
	unsigned count = prober_children(&teardown->broker->prober, but);

	but[count++] = teardown->helper;
	return tree_read(tree, but, count);
}

/* Whether others hold the lease's FIFO; our own descriptor would count, so it goes. */
static bool fifo_is_held(struct teardown *teardown)
{
	struct broker *broker = teardown->broker;

	if (broker->live_fd >= 0) {
		(void)beacon_look(
			broker->dir, broker->ticket.owner.token, &teardown->fifo_fd);
		close_fd(&broker->live_fd);
	}
	return teardown->fifo_fd >= 0 &&
	       beacon_look_again(teardown->fifo_fd) == BEACON_HELD;
}

/* Whether a process of the job lives; it may be no descendant, and may have closed the FIFO. */
static bool has_kin(const struct teardown *teardown)
{
	const struct broker *broker = teardown->broker;
	struct owner left;

	return leftover_find_of(&broker->ticket.owner, broker->dir->pidns, &left) > 0;
}

static void kill_kin(const struct teardown *teardown)
{
	const struct owner *owner = &teardown->broker->ticket.owner;

	(void)kin_signal_all(owner->token, owner->uid, SIGKILL, owner->pid);
}

static void tell(const struct tree *tree, pid_t group)
{
	(void)tree_signal(tree, SIGTERM, group);
	(void)tree_signal(tree, SIGCONT, group);
}

static void ask_to_end(struct teardown *teardown, const struct tree *tree, int64_t now_ms)
{
	if (!teardown->begun_ms) {
		teardown->begun_ms = now_ms;
		teardown->group = teardown->command ? getpgid(teardown->command) : 0;
		if (teardown->group < 0)
			teardown->group = 0;
		teardown->rest_is_told = teardown->group == 0;
		tell(tree, teardown->group);
	} else if (!teardown->command && !teardown->rest_is_told) {
		teardown->rest_is_told = true;
		tell(tree, -teardown->group);
	}
}

/* Waits a while for processes that were killed and are no descendants; then gives them up. */
static int wait_alone(struct teardown *teardown, int64_t now_ms, int64_t *ret_wake_ms)
{
	if (!teardown->alone_ms) {
		teardown->alone_ms = now_ms;
		kill_kin(teardown);
	}
	if (now_ms >= teardown->alone_ms + ALONE_MS)
		return 0;
	*ret_wake_ms = now_ms + ROUND_MS;
	return TEARDOWN_LATER;
}

int teardown_step(struct teardown *teardown, int64_t now_ms, int64_t *ret_wake_ms)
{
	struct tree tree = TREE_NONE;
	int64_t pause_ms = ROUND_MS;
	int r = look(teardown, &tree);

	if (r == 0 && !teardown->command && tree_count(&tree) == 0) {
		tree_release(&tree);
		return fifo_is_held(teardown) || has_kin(teardown)
			       ? wait_alone(teardown, now_ms, ret_wake_ms)
			       : 0;
	}
	ask_to_end(teardown, &tree, now_ms);
	*ret_wake_ms = teardown->begun_ms + teardown->grace_ms;
	if (now_ms >= *ret_wake_ms) {
		(void)tree_signal(&tree, SIGKILL, 0);
		kill_kin(teardown);
		for (unsigned i = 0; i < teardown->rounds && pause_ms < ROUND_MAX_MS; i++)
			pause_ms *= 2;
		teardown->rounds++;
		*ret_wake_ms = now_ms + pause_ms;
	}
	tree_release(&tree);
	return TEARDOWN_LATER;
}

void teardown_release(struct teardown *teardown)
{
	close_fd(&teardown->fifo_fd);
}

#include <signal.h>

#include "live_fifo.h"
#include "process_lease.h"
#include "teardown.h"

enum {
	ROUND_MS = 50, /* between two rounds of KILL; doubled from round to round … */
	ROUND_MAX_MS = 10000, /* … up to this: a process may be unkillable for long */
	/*
	 * a holder of the FIFO that is neither a descendant nor marked cannot be found: give it up
	 */
	ALONE_MS = 5000,
};

/* Reads the descendants of this process, without its own helpers. */
static int teardown_read_tree(const struct teardown *teardown, struct tree *tree)
{
	uint32_t but[TEARDOWN_BUT_MAX];
	unsigned count = prober_children(&teardown->broker->prober, but);

	but[count++] = teardown->helper;
	return tree_read(tree, but, count);
}

/* Whether other processes hold the lease's FIFO.  Our own descriptor would count, so close it. */
static bool teardown_fifo_is_held(struct teardown *teardown)
{
	struct broker *broker = teardown->broker;

	if (broker->live_fd >= 0) {
		(void)live_fifo_look(
			broker->dir, broker->ticket.owner.token, &teardown->fifo_fd);
		close_fd(&broker->live_fd);
	}
	return teardown->fifo_fd >= 0 &&
	       live_fifo_look_again(teardown->fifo_fd) == LIVE_FIFO_HELD;
}

/*
 * Whether a process with the lease's tag or token lives.  It may be no descendant, and may have
 * closed the FIFO.
 */
static bool teardown_has_marked(const struct teardown *teardown)
{
	const struct broker *broker = teardown->broker;
	struct owner left;

	return leftover_find_of(&broker->ticket.owner, broker->dir->pidns, &left) > 0;
}

static void teardown_kill_marked(const struct teardown *teardown)
{
	const struct owner *owner = &teardown->broker->ticket.owner;

	(void)process_lease_signal_all(owner->token, owner->uid, SIGKILL, owner->pid);
}

/* Sends TERM to the processes of @group in the tree, or to all others for -@group; 0: to all. */
static void tree_ask_to_end(const struct tree *tree, pid_t group)
{
	(void)tree_signal(tree, SIGTERM, group);
	(void)tree_signal(tree, SIGCONT, group);
}

/* Sends TERM, in two parts; see teardown.h. */
static void teardown_ask_to_end(
	struct teardown *teardown, const struct tree *tree, int64_t now_ms)
{
	if (!teardown->begun_ms) {
		teardown->begun_ms = now_ms;
		teardown->group = teardown->command ? getpgid(teardown->command) : 0;
		if (teardown->group < 0)
			teardown->group = 0;
		teardown->rest_is_told = teardown->group == 0;
		tree_ask_to_end(tree, teardown->group);
	} else if (!teardown->command && !teardown->rest_is_told) {
		teardown->rest_is_told = true;
		tree_ask_to_end(tree, -teardown->group);
	}
}

/* No descendant is left: kills marked processes, waits a while for them, then gives them up. */
static int teardown_wait_for_marked(
	struct teardown *teardown, int64_t now_ms, int64_t *ret_wake_ms)
{
	if (!teardown->alone_ms) {
		teardown->alone_ms = now_ms;
		teardown_kill_marked(teardown);
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
	int r = teardown_read_tree(teardown, &tree);

	if (r == 0 && !teardown->command && tree_count(&tree) == 0) {
		tree_release(&tree);
		return teardown_fifo_is_held(teardown) || teardown_has_marked(teardown)
			       ? teardown_wait_for_marked(teardown, now_ms, ret_wake_ms)
			       : 0;
	}
	teardown_ask_to_end(teardown, &tree, now_ms);
	*ret_wake_ms = teardown->begun_ms + teardown->grace_ms;
	if (now_ms >= *ret_wake_ms) {
		(void)tree_signal(&tree, SIGKILL, 0);
		teardown_kill_marked(teardown);
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

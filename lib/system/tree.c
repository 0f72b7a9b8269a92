#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "process_lease.h"
#include "proc.h"
#include "tree.h"

/* --- looking ----------------------------------------------------------------------- */

static int tree_append(struct tree *tree, const struct tree_process *process)
{
	void *grown = array_grow(tree->all, sizeof(*tree->all), tree->count, &tree->room);

	if (!grown)
		return -ENOMEM;
	tree->all = grown;
	tree->all[tree->count++] = *process;
	return 0;
}

static int tree_add(struct tree *tree, uint32_t pid)
{
	struct tree_process process;
	struct process_stat stat;

	if (process_stat_read(pid, &stat) < 0)
		return 0; /* it has just ended, or belongs to another user and is hidden */
	process = (struct tree_process){
		.pid = pid,
		.parent = stat.parent,
		.start = stat.start,
		/* a child of it has its name until exec, but is no session leader */
		.is_apart = process_lease_is_apart(stat.comm) &&
			    getsid((pid_t)pid) == (pid_t)pid,
		.is_dead = process_has_ended(&stat),
	};
	return tree_append(tree, &process);
}

static bool has_pid(uint32_t pid, const uint32_t all[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (all[i] == pid)
			return true;
	return false;
}

static const struct tree_process *tree_find(const struct tree *tree, uint32_t pid)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->all[i].pid == pid)
			return &tree->all[i];
	return NULL;
}

/*
 * Adds a child that /proc hides: it belongs to another user (a set-user-ID program), or it has a
 * lent group.  A child keeps its pid until this process reaps it.
 */
static int tree_add_hidden(struct tree *tree, uint32_t pid)
{
	siginfo_t end = { .si_pid = 0 };
	struct tree_process process = {
		.pid = pid,
		.parent = (uint32_t)getpid(),
		.is_hidden = true,
		/* its name is hidden too, so any session leader counts as another job */
		.is_apart = getsid((pid_t)pid) == (pid_t)pid,
	};

	if (waitid(P_PID, pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0)
		return 0; /* not a child of this process */
	process.is_dead = end.si_pid != 0;
	return tree_append(tree, &process);
}

/* Adds all visible processes, and the hidden children. */
static int tree_add_all(struct tree *tree)
{
	autofree uint32_t *seen = NULL, *children = NULL;
	size_t seen_count = 0, child_count = 0;
	int r = proc_list(0, &seen, &seen_count);

	for (size_t i = 0; i < seen_count && r == 0; i++)
		r = tree_add(tree, seen[i]);
	if (r == 0)
		r = proc_list_children(&children, &child_count);
	for (size_t i = 0; i < child_count && r == 0; i++)
		if (!tree_find(tree, children[i]))
			r = tree_add_hidden(tree, children[i]);
	return r;
}

/*
 * Marks the descendants.  Pids are reused, so a parent may come after its child in the list: repeat
 * until a pass finds no more.
 */
static void tree_mark_descendants(
	struct tree *tree, const uint32_t excluded[], size_t excluded_count)
{
	uint32_t self = (uint32_t)getpid();
	bool found;

	do {
		found = false;
		for (size_t i = 0; i < tree->count; i++) {
			struct tree_process *process = &tree->all[i];
			const struct tree_process *parent;

			if (process->is_below || process->is_apart ||
				has_pid(process->pid, excluded, excluded_count))
				continue;
			parent = process->parent == self
					 ? NULL
					 : tree_find(tree, process->parent);
			if (process->parent == self || (parent && parent->is_below))
				found = process->is_below = true;
		}
	} while (found);
}

int tree_read(struct tree *tree, const uint32_t excluded[], size_t excluded_count)
{
	int r;

	tree->count = 0;
	r = tree_add_all(tree);
	if (r == 0)
		tree_mark_descendants(tree, excluded, excluded_count);
	return r;
}

size_t tree_count(const struct tree *tree)
{
	size_t count = 0;

	for (size_t i = 0; i < tree->count; i++)
		count += tree->all[i].is_below && !tree->all[i].is_dead;
	return count;
}

/* --- signalling -------------------------------------------------------------------- */

static bool is_in_group(uint32_t pid, pid_t group)
{
	if (group == 0)
		return true;
	return group > 0 ? getpgid((pid_t)pid) == group : getpgid((pid_t)pid) != -group;
}

/* Signals the process that was read, not a later one with the same pid. */
static bool tree_signal_process(const struct tree_process *process, int signal)
{
	autofd int pidfd = pidfd_open_process(process->pid);
	struct process_stat stat;

	if (!process->is_hidden && (process_stat_read(process->pid, &stat) < 0 ||
					   stat.start != process->start))
		return false;
	/* it descends from this process, so any user is right */
	return process_signal(process->pid, pidfd, PROCESS_ANY_USER, signal) == 0;
}

unsigned tree_signal(const struct tree *tree, int signal, pid_t group)
{
	unsigned reached = 0;

	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_process *process = &tree->all[i];

		if (process->is_below && !process->is_dead &&
			is_in_group(process->pid, group))
			reached += tree_signal_process(process, signal);
	}
	return reached;
}

void tree_release(struct tree *tree)
{
	free(tree->all);
	*tree = TREE_NONE;
}

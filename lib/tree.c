#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "kin.h"
#include "proc.h"
#include "tree.h"

/* --- looking ----------------------------------------------------------------------- */

static int append(struct tree *tree, const struct tree_process *process)
{
	void *grown = array_grow(tree->all, sizeof(*tree->all), tree->count, &tree->room);

	if (!grown)
		return -ENOMEM;
	tree->all = grown;
	tree->all[tree->count++] = *process;
	return 0;
}

static int add(struct tree *tree, uint32_t pid)
{
	struct tree_process process;
	struct process_stat stat;

	if (process_stat_read(pid, &stat) < 0)
		return 0; /* it has ended meanwhile, or is another user's and hidden */
	process = (struct tree_process){
		.pid = pid,
		.parent = stat.parent,
		.start = stat.start,
		/* its own child has its name until it executes the command, but no session */
		.is_apart = strcmp(stat.comm, KIN_SUBMITTED) == 0 &&
			    getsid((pid_t)pid) == (pid_t)pid,
		.is_dead = process_has_ended(&stat),
	};
	return append(tree, &process);
}

static bool is_among(uint32_t pid, const uint32_t all[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (all[i] == pid)
			return true;
	return false;
}

static const struct tree_process *find(const struct tree *tree, uint32_t pid)
{
	for (size_t i = 0; i < tree->count; i++)
		if (tree->all[i].pid == pid)
			return &tree->all[i];
	return NULL;
}

/*
 * A child that /proc hides: another user's, as that of a set-user-ID program, or one that has a
 * group lent.  Its number stays its own until we have waited for it.
 */
static int add_hidden(struct tree *tree, uint32_t pid)
{
	siginfo_t end = { .si_pid = 0 };
	struct tree_process process = {
		.pid = pid,
		.parent = (uint32_t)getpid(),
		.is_hidden = true,
		/* the name by which a job of its own is known is not to be seen, either */
		.is_apart = getsid((pid_t)pid) == (pid_t)pid,
	};

	if (waitid(P_PID, pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0)
		return 0; /* none of ours */
	process.is_dead = end.si_pid != 0;
	return append(tree, &process);
}

/* Everybody who is to be seen, and those children that are not. */
static int add_all(struct tree *tree)
{
	autofree uint32_t *seen = NULL, *children = NULL;
	size_t seen_count = 0, child_count = 0;
	int r = proc_list(&seen, &seen_count);

	for (size_t i = 0; i < seen_count && r == 0; i++)
		r = add(tree, seen[i]);
	if (r == 0)
		r = proc_list_children(&children, &child_count);
	for (size_t i = 0; i < child_count && r == 0; i++)
		if (!find(tree, children[i]))
			r = add_hidden(tree, children[i]);
	return r;
}

/* Numbers are used again, so parents come in any order: until nobody new is found. */
static void mark(struct tree *tree, const uint32_t but[], size_t but_count)
{
	uint32_t self = (uint32_t)getpid();
	bool found;

	do {
		found = false;
		for (size_t i = 0; i < tree->count; i++) {
			struct tree_process *process = &tree->all[i];
			const struct tree_process *parent;

			if (process->is_below || process->is_apart ||
				is_among(process->pid, but, but_count))
				continue;
			parent = process->parent == self ? NULL
							 : find(tree, process->parent);
			if (process->parent == self || (parent && parent->is_below))
				found = process->is_below = true;
		}
	} while (found);
}

int tree_read(struct tree *tree, const uint32_t but[], size_t but_count)
{
	int r;

	tree->count = 0;
	r = add_all(tree);
	if (r == 0)
		mark(tree, but, but_count);
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

static bool is_in(uint32_t pid, pid_t group)
{
	if (group == 0)
		return true;
	return group > 0 ? getpgid((pid_t)pid) == group : getpgid((pid_t)pid) != -group;
}

/* The one that was seen, not who has its number now. */
static bool signal_one(const struct tree_process *process, int signal)
{
	autofd int pidfd = pidfd_open_process(process->pid);
	struct process_stat stat;

	if (!process->is_hidden && (process_stat_read(process->pid, &stat) < 0 ||
					   stat.start != process->start))
		return false;
	/* a descendant of this process, whatever its user */
	return process_signal(process->pid, pidfd, PROCESS_ANY_USER, signal) == 0;
}

unsigned tree_signal(const struct tree *tree, int signal, pid_t group)
{
	unsigned reached = 0;

	for (size_t i = 0; i < tree->count; i++) {
		const struct tree_process *process = &tree->all[i];

		if (process->is_below && !process->is_dead && is_in(process->pid, group))
			reached += signal_one(process, signal);
	}
	return reached;
}

void tree_release(struct tree *tree)
{
	free(tree->all);
	*tree = TREE_NONE;
}

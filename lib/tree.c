#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>

#include "kin.h"
#include "tree.h"

/* --- looking ----------------------------------------------------------------------- */

static int add(struct tree *tree, uint32_t pid)
{
	struct process_stat stat;
	void *grown;

	if (process_stat_read(pid, &stat) < 0)
		return 0; /* it has ended meanwhile, or is another user's and hidden */
	grown = array_grow(tree->all, sizeof(*tree->all), tree->count, &tree->room);
	if (!grown)
		return -ENOMEM;
	tree->all = grown;
	tree->all[tree->count++] = (struct tree_process){
		.pid = pid,
		.parent = stat.parent,
		.start = stat.start,
		/* its own child has its name until it executes the command, but no session */
		.is_apart = strcmp(stat.comm, KIN_SUBMITTED) == 0 &&
			    getsid((pid_t)pid) == (pid_t)pid,
		/* a leader that left before its threads looks like a zombie, too */
		.is_dead = (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1,
	};
	return 0;
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
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	tree->count = 0;
	if (!proc)
		return -errno;
	while (r == 0 && (entry = readdir(proc))) {
		unsigned pid = 0;

		if (isdigit((unsigned char)entry->d_name[0]) &&
			sscanf(entry->d_name, "%u", &pid) == 1)
			r = add(tree, pid);
	}
	(void)closedir(proc);
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

	if (process_stat_read(process->pid, &stat) < 0 || stat.start != process->start)
		return false;
	return process_signal(process->pid, pidfd, signal) == 0;
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

#include <errno.h>
#include <stdio.h>

#include "array_record.h"
#include "dependency_tasks.h"
#include "exitcodes.h"
#include "parse.h"
#include "run_gpulease.h"

/* What is being resolved. */
struct resolving {
	const char *gpulease; /* NULL: only check */
	struct dependency_waiters *waiters;
	struct text out;
};

/* Submits the job that waits for the task @name.  Returns 0 or an exit status. */
static int submit_waiter(struct resolving *to, const char *name, uint64_t *ret_id)
{
	static char submit[] = "--submit", gpus[] = "--gpus=0", end[] = "--",
		    quiet[] = "-Q", option[] = "--wait-for";
	static char gpulease[PATH_MAX];
	char job_name[64], shown[96], task[40];
	char *words[] = { gpulease, submit, gpus, job_name, shown, end, gpulease, quiet,
		option, task, NULL };
	int r;

	/* dependency_list_read() has refused longer lists */
	if (to->waiters->count == ARRAY_SIZE(to->waiters->ids))
		return EXIT_MISUSE;
	text_copy(gpulease, sizeof(gpulease), to->gpulease);
	text_copy(task, sizeof(task), name);
	(void)snprintf(job_name, sizeof(job_name), "--name=wait-for-%s", task);
	(void)snprintf(
		shown, sizeof(shown), "--shown-command=gpulease --wait-for %s", task);
	r = run_gpulease(words, ret_id);
	if (r == 0)
		to->waiters->ids[to->waiters->count++] = *ret_id;
	return r;
}

/* Finds the job of a task, or submits one that waits for it.  0 in *@ret_id: that is for later. */
static int find_job(struct resolving *to, const struct array_task *task, const char *name,
	bool is_start, uint64_t *ret_id, struct why *why)
{
	*ret_id = task->job;
	if (task->job)
		return 0;
	if (is_start && !task->has_ended) {
		why_set(why,
			"'after:%s': this task is not in the queue yet; submit the job "
			"later, or write afterany:%s",
			name, name);
		return -EINVAL;
	}
	return to->gpulease ? submit_waiter(to, name, ret_id) : 0;
}

/* Appends the id of a job for the task @index of @array. */
static int add_task(struct resolving *to, uint64_t array, unsigned index, bool is_start,
	struct why *why)
{
	struct array_task task;
	char name[40];
	uint64_t id = 0;
	int r = array_record_find_task(array, index, &task);

	(void)snprintf(name, sizeof(name), "%llu_%u", (unsigned long long)array, index);
	if (r == -ESRCH)
		why_set(why, "'%s': the array has no task %u", name, index);
	else if (r < 0)
		why_set(why, "'%s': no array of yours has the id %llu", name,
			(unsigned long long)array);
	if (r < 0)
		return r;
	r = find_job(to, &task, name, is_start, &id, why);
	text_addf(&to->out, ":%llu", (unsigned long long)(id ? id : array));
	return r;
}

static bool is_array(const char *id)
{
	static struct array_record record;
	uint64_t array;

	if (parse_u64(id, INT64_MAX, &array, NULL) < 0 ||
		array_record_open_id(array, &record) < 0)
		return false;
	close_fd(&record.fd);
	return true;
}

/* Appends the id of a job for one id of the list. */
static int add_id(struct resolving *to, char *id, bool is_start, struct why *why)
{
	size_t size = strlen(id);
	struct array_list list;
	uint64_t array;

	/* 17_* is all tasks, and so is 17 */
	if (size > 2 && strcmp(id + size - 2, "_*") == 0)
		id[size - 2] = '\0';
	/* what is no id stays, and gpulease refuses it */
	if (!strchr(id, '[') && array_list_read_id(id, size, &array, &list) &&
		list.count == 1)
		return add_task(to, array, list.indices[0], is_start, why);
	if (is_start && is_array(id)) {
		why_set(why,
			"'after:%s': the tasks of an array start one by one; write "
			"after:%s_I for task I",
			id, id);
		return -EINVAL;
	}
	text_addf(&to->out, ":%s", id);
	return 0;
}

int dependency_tasks_resolve(const char *value, const char *gpulease,
	struct dependency_waiters *waiters, char out[DEPENDENCY_SIZE], struct why *why)
{
	struct resolving to = { .gpulease = gpulease,
		.waiters = waiters,
		.out = text_on(out, DEPENDENCY_SIZE) };
	char copy[DEPENDENCY_SIZE], *rest = copy, *item;

	out[0] = '\0';
	text_copy(copy, sizeof(copy), value);
	while ((item = strsep(&rest, ","))) {
		const char *kind = strsep(&item, ":");
		bool is_start = strcmp(kind, "after") == 0;

		text_addf(&to.out, "%s%s", to.out.used ? "," : "", kind);
		while (item) {
			int r = add_id(&to, strsep(&item, ":"), is_start, why);

			if (r != 0)
				return r;
		}
	}
	return to.out.cut ? -E2BIG : 0;
}

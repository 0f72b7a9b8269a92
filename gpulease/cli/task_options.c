#include <errno.h>
#include <stdio.h>

#include "gpuset.h"
#include "option_values.h"
#include "parse.h"
#include "task_options.h"

#include "no_messages.h" /* the last one */

/* What the options say; 0: nothing. */
struct task_wish {
	unsigned tasks, per_node, per_gpu;
	const char *spelled;             /* the option that gave ->tasks */
	const struct gpu_wish *all;      /* for all tasks together; NULL: not given */
	const struct gpu_wish *per_task; /* NULL: not given */
};

static bool has_gpu_option(const struct command_line *line)
{
	for (int i = 0; i < GPU_SOURCES; i++)
		if (line->gpus[i].given)
			return true;
	return line->per_gpu;
}

bool task_options_own_n(const struct command_line *line)
{
	return line->n && (has_gpu_option(line) || (line->is_srun && line->is_in_lease));
}

/*
 * Returns what the user of a line for srun should know if the line asks for no GPU: Slurm would
 * give it none.  NULL: nothing.
 */
static const char *find_note(const struct command_line *line)
{
	const struct run_request *request = &line->settings.request;

	if (!line->is_srun || line->is_in_lease || has_gpu_option(line) ||
		line->settings.verb.kind != VERB_RUN)
		return NULL;
	if (line->n && strcmp(line->n, "1") != 0)
		return "-n counts GPUs here, and one process gets them; for tasks add a GPU "
		       "option: -n 4 --gpus=4";
	return request->gpu_ids || request->vram_mib || request->lease_only ||
			       request->shell
		       ? NULL
		       : "srun without a GPU option gets one GPU here; for none add --gpus=0";
}

/* Reads @text, the value of the option @spelled: 1 to TASKS_MAX. */
static int read_number(
	const char *spelled, const char *text, unsigned *ret, struct why *why)
{
	struct why reason = WHY_NONE;
	uint64_t number;

	if (!text)
		return 0;
	if (parse_u64(text, UINT32_MAX, &number, &reason) < 0) {
		why_wrap(why, &reason, "%s: ", spelled);
		return -EINVAL;
	}
	if (number < 1 || number > TASKS_MAX) {
		why_set(why, "%s: %s is no number of tasks; write 1 to %d", spelled, text,
			TASKS_MAX);
		return -EINVAL;
	}
	*ret = (unsigned)number;
	return 0;
}

static int read_wish(
	const struct command_line *line, struct task_wish *wish, struct why *why)
{
	unsigned n = 0;
	int r = read_number("--ntasks", line->tasks, &wish->tasks, why);

	wish->spelled = "--ntasks";
	if (r == 0 && task_options_own_n(line))
		r = read_number("-n", line->n, &n, why);
	if (r == 0)
		r = read_number(
			"--ntasks-per-node", line->per_node, &wish->per_node, why);
	if (r == 0)
		r = read_number("--ntasks-per-gpu", line->per_gpu, &wish->per_gpu, why);
	if (r < 0)
		return r;
	if (n && wish->tasks && n != wish->tasks) {
		why_set(why, "-n and --ntasks ask for different tasks; give one");
		return -EINVAL;
	}
	if (n && !wish->tasks) {
		wish->tasks = n;
		wish->spelled = "-n";
	}
	for (int i = 0; i < FROM_PER_TASK && !wish->all; i++)
		if (line->gpus[i].given)
			wish->all = &line->gpus[i];
	if (line->gpus[FROM_PER_TASK].given)
		wish->per_task = &line->gpus[FROM_PER_TASK];
	return 0;
}

/* Finds the number of tasks where it is not given but follows from the GPUs. */
static int count_tasks(struct task_wish *wish, struct why *why)
{
	unsigned each = wish->per_task ? wish->per_task->count : 0;

	if (wish->tasks && wish->per_node && wish->per_node < wish->tasks) {
		why_set(why,
			"%s %u with --ntasks-per-node %u needs several machines, and "
			"gpulease knows only this one; leave one out",
			wish->spelled, wish->tasks, wish->per_node);
		return -EINVAL;
	}
	if (!wish->tasks)
		wish->tasks = wish->per_node;
	if (!wish->tasks && wish->per_gpu && wish->all)
		wish->tasks = wish->per_gpu * wish->all->count;
	if (!wish->tasks && each && wish->all && wish->all->count % each == 0)
		wish->tasks = wish->all->count / each;
	if (!wish->tasks)
		wish->tasks = 1;
	if (wish->tasks <= TASKS_MAX)
		return 0;
	why_set(why, "%u tasks are too many; ask for %d at most", wish->tasks, TASKS_MAX);
	return -EINVAL;
}

static int refuse_ratio(
	const struct task_wish *wish, const char *spelled, unsigned gpus, struct why *why)
{
	why_set(why, "%u tasks with %s %u do not fit %u GPU%s", wish->tasks, spelled,
		wish->per_gpu, gpus, gpus == 1 ? "" : "s");
	return -EINVAL;
}

/* Makes --gpus-per-task and --ntasks-per-gpu wishes for all tasks together. */
static int set_gpus(
	struct command_line *line, const struct task_wish *wish, struct why *why)
{
	struct gpu_wish *per_task = &line->gpus[FROM_PER_TASK];

	if (wish->tasks > 1 &&
		((wish->all && wish->all->share_percent) ||
			(wish->per_task && wish->per_task->share_percent))) {
		why_set(why,
			"several tasks cannot share a part of a GPU; give whole GPUs, "
			"or --vram SIZE");
		return -EINVAL;
	}
	if (wish->per_gpu && wish->all && wish->tasks != wish->per_gpu * wish->all->count)
		return refuse_ratio(wish, "--ntasks-per-gpu", wish->all->count, why);
	if (wish->per_gpu && !wish->all) {
		if (wish->tasks % wish->per_gpu)
			return refuse_ratio(wish, "--ntasks-per-gpu",
				wish->tasks / wish->per_gpu, why);
		line->gpus[FROM_GPUS] = (struct gpu_wish){ .given = true,
			.count = wish->tasks / wish->per_gpu };
	}
	if (wish->per_task)
		per_task->count *= wish->tasks;
	if (per_task->count > GPUSET_MAX) {
		why_set(why,
			"%u tasks with --gpus-per-task need %u GPUs; at most %d are possible",
			wish->tasks, per_task->count, GPUSET_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Sets which GPUs each task sees. */
static void set_binding(
	struct task_settings *tasks, const struct task_wish *wish, unsigned gpus_per_task)
{
	if (tasks->bind || wish->tasks == 1)
		return;
	if (wish->per_task)
		(void)snprintf(tasks->bind_text, sizeof(tasks->bind_text), "per_task:%u",
			gpus_per_task);
	else if (wish->per_gpu)
		(void)snprintf(tasks->bind_text, sizeof(tasks->bind_text), "single:%u",
			wish->per_gpu);
}

/*
 * Checks the number of a task in the place of a file name.  The one task has the files itself:
 * without several tasks its number means no redirection.
 */
static int settle_file(const struct options_result *result, size_t offset, unsigned count,
	const char **pattern, struct why *why)
{
	struct option_spelling spelled = option_given_spelling(result, offset);
	uint64_t number;

	if (!*pattern || parse_u64(*pattern, UINT32_MAX, &number, NULL) < 0)
		return 0;
	if (number >= count) {
		why_set(why,
			"%s: '%s' is the number of a task, and there %s %u, from 0 on; "
			"for a file of that name write ./%s",
			spelled.text, *pattern, count == 1 ? "is" : "are", count,
			*pattern);
		return -EINVAL;
	}
	if (count == 1)
		*pattern = NULL;
	return 0;
}

/*
 * Whether this process belongs to a job script of sbatch.  Only there, and in the tasks,
 * SLURM_JOB_ID is the id of the job.  Inside an allocation of Slurm that variable is Slurm's.
 * There gpulease sets SLURM_PROCID for a script, and Slurm sets SLURM_STEP_ID with it.
 */
static bool is_in_script(void)
{
	const char *job = getenv("SLURM_JOB_ID"), *own = getenv("GPULEASE_ID");

	if (!job || !own)
		return false;
	return strcmp(job, own) == 0 ||
	       (getenv("GPULEASE_ALLOCATION") && getenv("SLURM_PROCID") &&
		       !getenv("SLURM_STEP_ID"));
}

/*
 * Reads how many tasks a job script has.  Beside this number --ntasks-per-node is a limit, and, as
 * with Slurm, one that is too low does not count.
 */
static int read_script_tasks(
	struct task_settings *tasks, struct task_wish *wish, struct why *why)
{
	int r = read_number("SLURM_NTASKS", getenv("SLURM_NTASKS"), &wish->tasks, why);

	if (wish->per_node < wish->tasks && wish->per_node) {
		wish->per_node = 0;
		tasks->note = "--ntasks-per-node is less than the job's tasks, and is "
			      "ignored; for fewer tasks give -n";
	}
	return r;
}

/*
 * Inside a job script of sbatch srun takes the tasks, and their GPUs, as the script asked for them.
 */
static int read_script(struct command_line *line, struct task_wish *wish, struct why *why)
{
	const char *per_task = getenv("SLURM_GPUS_PER_TASK"),
		   *gpus = getenv("GPULEASE_GPUS");
	struct settings *s = &line->settings;
	bool is_counted = wish->tasks || wish->per_gpu;
	int r = 0;

	s->tasks.in_script = line->is_srun && line->is_in_lease && is_in_script() &&
			     s->verb.kind == VERB_RUN;
	if (!s->tasks.in_script)
		return 0;
	/* a script without GPUs has steps without GPUs */
	if (gpus && !*gpus && !has_gpu_option(line) && !s->request.gpu_ids)
		line->gpus[FROM_GPUS] = (struct gpu_wish){ .given = true };
	if (gpus && wish->per_gpu && !wish->tasks && !wish->per_node && !wish->all)
		wish->tasks = wish->per_gpu * text_count_items(gpus);
	if (!has_gpu_option(line) && per_task) {
		wish->per_task = &line->gpus[FROM_PER_TASK];
		r = read_gpus(per_task, &line->gpus[FROM_PER_TASK], why);
	} else if (!has_gpu_option(line) && !is_counted) {
		r = read_number("SLURM_NTASKS_PER_GPU", getenv("SLURM_NTASKS_PER_GPU"),
			&wish->per_gpu, why);
	}
	return r == 0 && !is_counted ? read_script_tasks(&s->tasks, wish, why) : r;
}

int task_options_settle(
	struct command_line *line, const struct options_result *result, struct why *why)
{
	struct settings *s = &line->settings;
	struct task_wish wish = { .tasks = 0 };
	unsigned gpus_per_task;
	int r;

	/* the lease that it joins */
	line->is_in_lease |= s->request.job != 0;
	r = read_wish(line, &wish, why);

#define FILE_OF(field)                                                            \
	settle_file(result, offsetof(struct command_line, settings.output.field), \
		wish.tasks, &s->output.field, why)
	if (r == 0)
		r = read_script(line, &wish, why);
	gpus_per_task = line->gpus[FROM_PER_TASK].count;
	if (r == 0)
		r = count_tasks(&wish, why);
	if (r == 0 && wish.tasks > 1 && s->verb.kind != VERB_RUN) {
		why_set(why,
			"a line of a jobs file is one task; write the line as gpulease "
			"--ntasks %u command",
			wish.tasks);
		r = -EINVAL;
	}
	if (r == 0)
		r = set_gpus(line, &wish, why);
	if (r == 0)
		r = FILE_OF(out);
	if (r == 0)
		r = FILE_OF(err);
	if (r == 0)
		r = FILE_OF(in);
#undef FILE_OF
	if (r < 0)
		return r;
	s->request.apart = has_gpu_option(line) && !s->request.overlap;
	s->tasks.count = wish.tasks;
	s->tasks.per_node = wish.per_node;
	if (!s->tasks.note)
		s->tasks.note = find_note(line);
	if (s->environment.inject && are_tasks_wanted(s)) {
		why_set(why, "--inject gives one process its GPUs; tasks find theirs in "
			     "CUDA_VISIBLE_DEVICES");
		return -EINVAL;
	}
	set_binding(&s->tasks, &wish, gpus_per_task);
	return 0;
}

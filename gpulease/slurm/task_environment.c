#include <errno.h>
#include <limits.h>
#include <string.h>

#include "job_variables.h"
#include "task_environment.h"
#include "task_gpus.h"

extern char **environ;

/* Sets *@ret, which the caller frees, to what @task gets of the list in the variable @name. */
static int share_list(const struct task_order *order, unsigned task, const char *name,
	char **ret, struct why *why)
{
	const char *list = job_variables_value_of(name);
	size_t room = strlen(list) + 1;
	struct text text;

	*ret = calloc(1, room);
	if (!*ret)
		return -ENOMEM;
	text = text_on(*ret, room);
	return task_gpus(order->bind, list, task, &text, why);
}

/* What all tasks of the step have together. */
static void describe_step(const struct task_order *order, struct job_variables *variables)
{
	const char *gpus = job_variables_value_of("GPULEASE_GPUS");

	job_variables_set(variables, "SLURM_STEP_NODELIST", job_variables_node());
	job_variables_set(variables, "SLURM_STEP_NUM_NODES", "1");
	job_variables_set_number(variables, "SLURM_STEP_NUM_TASKS", order->count);
	job_variables_set_number(variables, "SLURM_STEP_TASKS_PER_NODE", order->count);
	job_variables_set(variables, "SLURM_STEP_GPUS", *gpus ? gpus : NULL);
}

int task_environment_make(
	const struct task_order *order, unsigned task, char ***ret, struct why *why)
{
	/* gpulease lets these through to the steps of a job script alone */
	const char *job_name = getenv("SLURM_JOB_NAME"),
		   *job_folder = getenv("SLURM_SUBMIT_DIR"),
		   *job_cpus = getenv("SLURM_CPUS_PER_TASK"),
		   *job_per_node = getenv("SLURM_NTASKS_PER_NODE");
	struct job_variables variables = { .count = 0 };
	char folder[PATH_MAX] = "";
	autofree char *seen = NULL, *names = NULL, *uuids = NULL;
	int r = share_list(order, task, "CUDA_VISIBLE_DEVICES", &seen, why);

	/* all three list the GPUs in one order; a gpulease in the task chooses among its uuids */
	if (r == 0)
		r = share_list(order, task, "GPULEASE_GPUS", &names, why);
	if (r == 0)
		r = share_list(order, task, "GPULEASE_UUIDS", &uuids, why);
	if (r < 0)
		return r;
	if (!getcwd(folder, sizeof(folder)))
		folder[0] = '\0';
	if (order->name)
		job_name = order->name;
	else if (!job_name)
		job_name = text_base_name(order->command[0]);
	job_variables_set(&variables, "CUDA_VISIBLE_DEVICES", seen);
	job_variables_set(&variables, "NVIDIA_VISIBLE_DEVICES", *seen ? seen : "none");
	/* libraries take the variables as a sign of Slurm */
	if (order->count == 1 && !job_name)
		return childenv_make(environ, job_variables_gone, NULL, NULL,
			variables.changes, variables.count, ret);
	job_variables_set(&variables, "GPULEASE_GPUS", names);
	job_variables_set(&variables, "GPULEASE_UUIDS", uuids);
	job_variables_describe(&variables, job_name, job_folder ? job_folder : folder);
	job_variables_set_task(&variables, task);
	job_variables_set_number(&variables, "SLURM_NTASKS", order->count);
	job_variables_set_number(&variables, "SLURM_NPROCS", order->count);
	if (order->per_node || !job_per_node)
		job_variables_set_number(&variables, "SLURM_NTASKS_PER_NODE",
			order->per_node ? order->per_node : order->count);
	job_variables_set_number(&variables, "SLURM_TASKS_PER_NODE", order->count);
	job_variables_set_number(&variables, "SLURM_STEP_ID", job_variables_step());
	job_variables_set_number(&variables, "SLURM_STEPID", job_variables_step());
	describe_step(order, &variables);
	if (order->cpus || !job_cpus)
		job_variables_set_number(
			&variables, "SLURM_CPUS_PER_TASK", order->cpus ? order->cpus : 1);
	job_variables_set(&variables, "SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1");
	job_variables_set(&variables, "SLURM_SRUN_COMM_HOST", "127.0.0.1");
	return childenv_make(environ, job_variables_gone, NULL, NULL, variables.changes,
		variables.count, ret);
}

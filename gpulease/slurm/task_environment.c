#include <errno.h>
#include <limits.h>
#include <string.h>

#include "job_variables.h"
#include "task_environment.h"
#include "task_gpus.h"

extern char **environ;

int task_environment_make(
	const struct task_order *order, unsigned task, char ***ret, struct why *why)
{
	const char *gpus = job_variables_value_of("CUDA_VISIBLE_DEVICES");
	/* gpulease lets these through to the steps of a job script alone */
	const char *job_name = getenv("SLURM_JOB_NAME"),
		   *job_folder = getenv("SLURM_SUBMIT_DIR"),
		   *job_cpus = getenv("SLURM_CPUS_PER_TASK"),
		   *job_per_node = getenv("SLURM_NTASKS_PER_NODE");
	struct job_variables variables = { .count = 0 };
	char folder[PATH_MAX] = "";
	/* a part of $CUDA_VISIBLE_DEVICES */
	size_t room = strlen(gpus) + 1;
	autofree char *seen = calloc(1, room);
	struct text list = text_on(seen, room);
	int r = seen ? task_gpus(order->bind, gpus, task, &list, why) : -ENOMEM;

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
	job_variables_describe(&variables, job_name, job_folder ? job_folder : folder);
	job_variables_set_task(&variables, task);
	job_variables_set_number(&variables, "SLURM_NTASKS", order->count);
	job_variables_set_number(&variables, "SLURM_NPROCS", order->count);
	if (order->per_node || !job_per_node)
		job_variables_set_number(&variables, "SLURM_NTASKS_PER_NODE",
			order->per_node ? order->per_node : order->count);
	job_variables_set_number(&variables, "SLURM_TASKS_PER_NODE", order->count);
	job_variables_set(&variables, "SLURM_STEP_ID", "0");
	job_variables_set(&variables, "SLURM_STEPID", "0");
	if (order->cpus || !job_cpus)
		job_variables_set_number(
			&variables, "SLURM_CPUS_PER_TASK", order->cpus ? order->cpus : 1);
	job_variables_set(&variables, "SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1");
	job_variables_set(&variables, "SLURM_SRUN_COMM_HOST", "127.0.0.1");
	return childenv_make(environ, "SLURM_TASK_", NULL, NULL, variables.changes,
		variables.count, ret);
}

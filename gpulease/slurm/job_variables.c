#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "job_variables.h"
#include "parse.h"

const char *job_variables_value_of(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

bool is_job_variable_on(const char *value)
{
	uint64_t number;

	return !*value || strcmp(value, "yes") == 0 ||
	       (parse_u64(value, UINT32_MAX, &number, NULL) == 0 && number);
}

unsigned job_variables_step(void)
{
	unsigned number;

	return sscanf(job_variables_value_of("GPULEASE_STEP"), "%u.", &number) == 1
		       ? number
		       : 0;
}

/* The name of this host up to its first dot, as Slurm names nodes. */
static const char *node_name(void)
{
	static char name[HOST_NAME_MAX + 1];

	if (!name[0] && (gethostname(name, sizeof(name) - 1) < 0 || !name[0]))
		(void)snprintf(name, sizeof(name), "localhost");
	name[strcspn(name, ".")] = '\0';
	return name;
}

void job_variables_set(
	struct job_variables *variables, const char *name, const char *value)
{
	variables->changes[variables->count++] =
		(struct childenv_change){ name, value, false };
}

void job_variables_set_number(
	struct job_variables *variables, const char *name, unsigned value)
{
	char *text = variables->numbers[variables->count];

	(void)snprintf(text, sizeof(variables->numbers[0]), "%u", value);
	job_variables_set(variables, name, text);
}

void job_variables_describe(
	struct job_variables *variables, const char *name, const char *folder)
{
	const char *id = job_variables_value_of("GPULEASE_ID"), *node = node_name();
	unsigned gpus = text_count_items(job_variables_value_of("CUDA_VISIBLE_DEVICES"));

	/* inside an allocation of Slurm these two are Slurm's */
	if (!*job_variables_value_of("GPULEASE_ALLOCATION")) {
		job_variables_set(variables, "SLURM_JOB_ID", id);
		job_variables_set(variables, "SLURM_JOBID", id);
	}
	job_variables_set(variables, "SLURM_NNODES", "1");
	job_variables_set(variables, "SLURM_JOB_NUM_NODES", "1");
	job_variables_set(variables, "SLURM_JOB_NODELIST", node);
	job_variables_set(variables, "SLURM_NODELIST", node);
	job_variables_set(variables, "SLURMD_NODENAME", node);
	job_variables_set(variables, "SLURM_JOB_NAME", name);
	job_variables_set(variables, "SLURM_SUBMIT_DIR", folder);
	if (gpus)
		job_variables_set_number(variables, "SLURM_GPUS_ON_NODE", gpus);
	else
		job_variables_set(variables, "SLURM_GPUS_ON_NODE", NULL);
}

void job_variables_set_task(struct job_variables *variables, unsigned task)
{
	job_variables_set_number(variables, "SLURM_PROCID", task);
	job_variables_set_number(variables, "SLURM_LOCALID", task);
	job_variables_set(variables, "SLURM_NODEID", "0");
}

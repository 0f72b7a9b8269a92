#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "job_variables.h"
#include "parse.h"

const char *const job_variables_gone[] = { "SLURM_TASK_*", NULL };

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

const char *job_variables_node(void)
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
	struct job_variables *variables, const char *name, uint64_t value)
{
	char *text = variables->numbers[variables->count];

	(void)snprintf(
		text, sizeof(variables->numbers[0]), "%llu", (unsigned long long)value);
	job_variables_set(variables, name, text);
}

static bool is_set(const struct job_variables *variables, const char *name)
{
	for (size_t i = 0; i < variables->count; i++)
		if (strcmp(variables->changes[i].name, name) == 0)
			return true;
	return getenv(name);
}

static void set_unless_set(
	struct job_variables *variables, const char *name, const char *value)
{
	if (!is_set(variables, name))
		job_variables_set(variables, name, value);
}

/* When the job ends at the latest.  Jobs of Slurm without a limit are told that it is in a year. */
static uint64_t end_of(uint64_t start)
{
	uint64_t limit_s;

	return start + (parse_u64(job_variables_value_of("GPULEASE_LIMIT"), UINT32_MAX,
				&limit_s, NULL) == 0
				       ? limit_s
				       : (uint64_t)365 * 24 * 3600);
}

/* Whose job it is, where Slurm would have queued it, and when it runs. */
static void describe_owner(struct job_variables *variables)
{
	const struct passwd *entry = getpwuid(getuid());
	uint64_t now = (uint64_t)time(NULL);

	if (entry)
		set_unless_set(variables, "SLURM_JOB_USER", entry->pw_name);
	job_variables_set_number(variables, "SLURM_JOB_UID", getuid());
	job_variables_set_number(variables, "SLURM_JOB_GID", getgid());
	set_unless_set(variables, "SLURM_JOB_PARTITION", "gpulease");
	set_unless_set(variables, "SLURM_JOB_ACCOUNT", "gpulease");
	set_unless_set(variables, "SLURM_JOB_QOS", "normal");
	set_unless_set(variables, "SLURM_CLUSTER_NAME", "gpulease");
	if (is_set(variables, "SLURM_JOB_START_TIME"))
		return;
	job_variables_set_number(variables, "SLURM_JOB_START_TIME", now);
	job_variables_set_number(variables, "SLURM_JOB_END_TIME", end_of(now));
}

/*
 * Sets how often the job was put back into the queue; in its first attempt there is no such
 * variable.
 */
static void describe_restarts(struct job_variables *variables)
{
	uint64_t attempt;
	bool is_known = parse_u64(job_variables_value_of("GPULEASE_ATTEMPT"), UINT32_MAX,
				&attempt, NULL) == 0;

	if (is_known && attempt > 1)
		job_variables_set_number(variables, "SLURM_RESTART_COUNT", attempt - 1);
	else
		job_variables_set(variables, "SLURM_RESTART_COUNT", NULL);
}

void job_variables_describe(
	struct job_variables *variables, const char *name, const char *folder)
{
	const char *id = job_variables_value_of("GPULEASE_ID"),
		   *node = job_variables_node();
	unsigned gpus = text_count_items(job_variables_value_of("CUDA_VISIBLE_DEVICES"));

	/* inside an allocation of Slurm these two are Slurm's */
	if (!*job_variables_value_of("GPULEASE_ALLOCATION")) {
		job_variables_set(variables, "SLURM_JOB_ID", id);
		job_variables_set(variables, "SLURM_JOBID", id);
	}
	describe_restarts(variables);
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
	describe_owner(variables);
}

void job_variables_set_task(struct job_variables *variables, unsigned task)
{
	job_variables_set_number(variables, "SLURM_PROCID", task);
	job_variables_set_number(variables, "SLURM_LOCALID", task);
	job_variables_set(variables, "SLURM_NODEID", "0");
}

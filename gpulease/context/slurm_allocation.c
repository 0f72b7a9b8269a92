#include <sys/utsname.h>

#include "slurm_allocation.h"
#include "diag.h"

/* Returns the value of a variable; NULL if it is not set or empty. */
static const char *slurm_allocation_variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/*
 * Returns the GPUs, perhaps "", that an outer gpulease passed on for @job; NULL: there is no outer
 * one.
 */
static const char *slurm_allocation_passed_gpus(const char *job)
{
	const char *passed = slurm_allocation_variable(ALLOCATION_VARIABLE);
	size_t size = strlen(job);

	if (!passed || strncmp(passed, job, size) != 0 || passed[size] != ':')
		return NULL;
	return passed + size + 1;
}

/* Sets ->gpus to the first variable that names GPUs, or else to what was passed on. */
static void slurm_allocation_find_gpus(
	struct slurm_allocation *allocation, const char *passed)
{
	static const char *const names[] = { "CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS",
		"SLURM_JOB_GPUS" };

	for (size_t i = 0; i < ARRAY_SIZE(names) && !allocation->gpus; i++) {
		allocation->gpus = slurm_allocation_variable(names[i]);
		allocation->gpus_by = names[i];
	}
	if (!allocation->gpus && passed && passed[0]) {
		allocation->gpus = passed;
		allocation->gpus_by = ALLOCATION_VARIABLE;
	}
	if (!allocation->gpus)
		allocation->gpus_by = NULL;
}

/*
 * Sets what the command gets in ALLOCATION_VARIABLE.  Slurm's own list comes first: inside a lease
 * CUDA_VISIBLE_DEVICES names only the GPUs of the lease.
 */
static void slurm_allocation_pass_on(
	struct slurm_allocation *allocation, const char *passed)
{
	const char *gpus = slurm_allocation_variable("SLURM_STEP_GPUS");

	if (!gpus)
		gpus = slurm_allocation_variable("SLURM_JOB_GPUS");
	if (!gpus)
		gpus = passed;
	if (!gpus)
		gpus = slurm_allocation_variable("CUDA_VISIBLE_DEVICES");
	(void)snprintf(allocation->passed, sizeof(allocation->passed), "%s:%s",
		allocation->job, gpus ? gpus : "");
}

void slurm_allocation_read(struct slurm_allocation *ret)
{
	const char *job = slurm_allocation_variable("SLURM_JOB_ID"),
		   *id = slurm_allocation_variable("GPULEASE_ID");
	const char *cluster = slurm_allocation_variable("SLURM_CLUSTER_NAME"), *passed;
	struct utsname host;

	*ret = (struct slurm_allocation){ .job = NULL };
	if (!job || !slurm_is_job_id(job) || uname(&host) < 0)
		return;
	passed = slurm_allocation_passed_gpus(job);
	/* gpulease may have set SLURM_JOB_ID to the id of its own job, for programs that need it */
	if (id && strcmp(id, job) == 0 && !passed)
		return;
	ret->job = job;
	slurm_directory_name(job, cluster ? cluster : "", host.nodename, ret->name);
	ret->nodes = slurm_allocation_variable("SLURM_JOB_NODELIST");
	/*
	 * Slurm sets SLURMD_NODENAME on nodes only; if @passed is set, an outer gpulease has
	 * checked
	 */
	ret->is_elsewhere = !slurm_allocation_variable("SLURMD_NODENAME") && !passed &&
			    ret->nodes && !slurm_has_node(ret->nodes, host.nodename);
	ret->is_step = slurm_allocation_variable("SLURM_STEP_ID") != NULL;
	slurm_allocation_find_gpus(ret, passed);
	slurm_allocation_pass_on(ret, passed);
}

bool slurm_allocation_has_gpus(const struct slurm_allocation *allocation)
{
	return allocation->gpus && !allocation->is_elsewhere;
}

void slurm_allocation_report_no_gpus(const struct slurm_allocation *allocation)
{
	static const char unset[] = "CUDA_VISIBLE_DEVICES, SLURM_STEP_GPUS and "
				    "SLURM_JOB_GPUS are not set";

	if (allocation->is_elsewhere)
		diag("this host is not a node of Slurm job %s (%s), so its GPUs are "
		     "not the job's; start gpulease on a node: srun gpulease ...",
			allocation->job, allocation->nodes);
	else if (allocation->is_step)
		diag("this step of Slurm job %s has no GPU: %s; ask for some: srun "
		     "--overlap --gpus=N",
			allocation->job, unset);
	else
		diag("Slurm job %s has no GPU here: %s; ask for some: sbatch --gpus=N, or "
		     "salloc --gpus=N and then srun gpulease ...",
			allocation->job, unset);
}

#include <sys/utsname.h>

#include "allocation.h"
#include "diag.h"

/* The value of a variable, NULL where it is not set or empty. */
static const char *value_of(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* The GPUs that an outer gpulease passed on for @job, perhaps ""; NULL: there is no outer one. */
static const char *passed_gpus(const char *job)
{
	const char *passed = value_of(ALLOCATION_VARIABLE);
	size_t size = strlen(job);

	if (!passed || strncmp(passed, job, size) != 0 || passed[size] != ':')
		return NULL;
	return passed + size + 1;
}

/* The first variable that names GPUs. */
static void find_gpus(struct allocation *allocation, const char *passed)
{
	static const char *const names[] = { "CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS",
		"SLURM_JOB_GPUS" };

	for (size_t i = 0; i < ARRAY_SIZE(names) && !allocation->gpus; i++) {
		allocation->gpus = value_of(names[i]);
		allocation->gpus_by = names[i];
	}
	if (!allocation->gpus && passed && passed[0]) {
		allocation->gpus = passed;
		allocation->gpus_by = ALLOCATION_VARIABLE;
	}
	if (!allocation->gpus)
		allocation->gpus_by = NULL;
}

/* The command gets another CUDA_VISIBLE_DEVICES, so the list of Slurm comes first here. */
static void pass_on(struct allocation *allocation, const char *passed)
{
	const char *gpus = value_of("SLURM_STEP_GPUS");

	if (!gpus)
		gpus = value_of("SLURM_JOB_GPUS");
	if (!gpus)
		gpus = passed;
	if (!gpus)
		gpus = value_of("CUDA_VISIBLE_DEVICES");
	(void)snprintf(allocation->passed, sizeof(allocation->passed), "%s:%s",
		allocation->job, gpus ? gpus : "");
}

void allocation_read(struct allocation *ret)
{
	const char *job = value_of("SLURM_JOB_ID"), *id = value_of("GPULEASE_ID");
	const char *cluster = value_of("SLURM_CLUSTER_NAME"), *passed;
	struct utsname host;

	*ret = (struct allocation){ .job = NULL };
	if (!job || !slurm_is_job_id(job) || uname(&host) < 0)
		return;
	passed = passed_gpus(job);
	/* a job of gpulease may have set SLURM_JOB_ID to its own id, for programs that want it */
	if (id && strcmp(id, job) == 0 && !passed)
		return;
	ret->job = job;
	slurm_directory_name(job, cluster ? cluster : "", host.nodename, ret->name);
	ret->nodes = value_of("SLURM_JOB_NODELIST");
	/* Slurm sets SLURMD_NODENAME on nodes only; an outer gpulease has checked this already */
	ret->is_elsewhere = !value_of("SLURMD_NODENAME") && !passed && ret->nodes &&
			    !slurm_has_node(ret->nodes, host.nodename);
	ret->is_step = value_of("SLURM_STEP_ID") != NULL;
	find_gpus(ret, passed);
	pass_on(ret, passed);
}

bool allocation_has_gpus(const struct allocation *allocation)
{
	return allocation->gpus && !allocation->is_elsewhere;
}

void allocation_refuse(const struct allocation *allocation)
{
	static const char unset[] = "CUDA_VISIBLE_DEVICES, SLURM_STEP_GPUS and "
				    "SLURM_JOB_GPUS are not set";

	if (allocation->is_elsewhere)
		diag("this host is none of the nodes of Slurm job %s (%s), so its GPUs are "
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

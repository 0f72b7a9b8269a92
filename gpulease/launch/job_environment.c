#include "childenv.h"
#include "gpu_order.h"
#include "instance.h"
#include "job_environment.h"
#include "launch.h"
#include "mps.h"
#include "privilege.h"
#include "process_lease.h"
#include "set_again.h"
#include "setup.h"

void job_environment_list_gpus(
	const struct launch *launch, enum gpu_list_form form, struct text *out)
{
	struct gpu_order order = gpu_order_of(launch->view, &launch->gpus, launch->order);

	for (unsigned i = 0; i < order.count; i++) {
		unsigned slot = order.slots[i];
		const struct gpu_record *gpu = &launch->view->gpus[slot].file.gpu;
		bool by_uuid = form == GPU_LIST_UUIDS ||
			       (form == GPU_LIST_FOR_CUDA && gpu_is_instance(gpu));
		struct gpu_name name = snapshot_gpu_name(launch->view, slot);

		text_addf(out, "%s%s", out->used ? "," : "",
			by_uuid ? gpu->uuid : name.text);
	}
}

/*
 * Whether Python should write each line at once, although its output is no terminal.  The user
 * reads the log while the job runs, and a KILL must not lose the end of the output.
 */
static bool is_output_wanted_at_once(const struct settings *settings)
{
	const struct run_environment *environment = &settings->environment;

	return environment->command[0] &&
	       (are_tasks_wanted(settings) || environment->submit ||
		       environment->unbuffered || settings->output.out);
}

/*
 * Returns the number of a step, and how many exclusive steps it is in: for the tasks of the step,
 * and for exclusive steps inside it.
 */
static const char *job_environment_step(const struct launch *launch)
{
	static char text[24];

	if (!launch->step)
		return NULL;
	(void)snprintf(text, sizeof(text), "%u.%u", launch->step->number, launch->level);
	return text;
}

/* Returns the pid of a step; NULL: this is no step.  The process keeps it at exec. */
static const char *job_environment_step_pid(const struct launch *launch)
{
	static char text[24];

	if (!launch->step)
		return NULL;
	(void)snprintf(text, sizeof(text), "%u", (unsigned)getpid());
	return text;
}

/* The seconds of the time limit of the job, also for a step of it; NULL: there is none. */
static const char *job_environment_limit(const struct launch *launch)
{
	int64_t limit_ms = launch->context->settings->care.limit_ms;
	static char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)limit_ms / 1000);
	return launch->step ? getenv("GPULEASE_LIMIT") : limit_ms ? text : NULL;
}

/* The share of a GPU, if the job has a part of one. */
static const char *job_environment_share(const struct need *need)
{
	static char text[8];

	(void)snprintf(text, sizeof(text), "0.%02u", need->percent % WHOLE_PERCENT);
	return need->percent % WHOLE_PERCENT ? text : NULL;
}

const struct childenv_change *job_environment_variables(
	const struct launch *launch, size_t *ret_count)
{
	static char cuda[GPU_LIST_SIZE], names[GPU_LIST_SIZE], uuids[GPU_LIST_SIZE];
	static char id[24], sim[48], vram[24], attempt[12];
	static struct childenv_change changes[20];
	static struct mps_limits mps;
	const struct machine_settings *machine = &launch->context->settings->machine;
	struct text cuda_text = TEXT_ON(cuda), name_text = TEXT_ON(names),
		    uuid_text = TEXT_ON(uuids);
	const char *dir = getenv("GPULEASE_DIR");
	const struct need *need = &launch->need;
	size_t count = 0;

	mps_limit(launch->view, &launch->gpus, &launch->need, &mps);
	job_environment_list_gpus(launch, GPU_LIST_FOR_CUDA, &cuda_text);
	job_environment_list_gpus(launch, GPU_LIST_NAMES, &name_text);
	job_environment_list_gpus(launch, GPU_LIST_UUIDS, &uuid_text);
	(void)snprintf(vram, sizeof(vram), "%llu", (unsigned long long)need->mib);
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)launch->ticket);
	(void)snprintf(
		attempt, sizeof(attempt), "%u", launch->attempt ? launch->attempt : 1);
	(void)snprintf(sim, sizeof(sim), "%ux%llu", machine->sim_gpus,
		(unsigned long long)machine->sim_mib);
#define SET(name, value) changes[count++] = (struct childenv_change){ name, value, false }
	SET("CUDA_VISIBLE_DEVICES", cuda);
	SET("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	SET("NVIDIA_VISIBLE_DEVICES", *cuda ? cuda : "none");
	SET("GPULEASE_ID", id);
	SET("GPULEASE_ATTEMPT", attempt);
	SET(PROCESS_LEASE_TOKEN_VARIABLE, launch->owner->token);
	SET("GPULEASE_GPUS", names);
	SET("GPULEASE_UUIDS", uuids);
	SET("GPULEASE_STEP", job_environment_step(launch));
	SET(PROCESS_LEASE_STEP_VARIABLE, job_environment_step_pid(launch));
	/* so that the program can stay within the share and memory that were declared for it */
	SET("GPULEASE_SHARE", job_environment_share(need));
	SET("GPULEASE_VRAM_MIB", need->mib ? vram : NULL);
	SET("GPULEASE_LIMIT", job_environment_limit(launch));
	/* so that a gpulease inside the job finds the same state directory from any folder */
	SET("GPULEASE_SIM", machine->sim_gpus ? sim : NULL);
	SET("GPULEASE_DIR", launch->context->named ? launch->context->dir.path : dir);
	/* so that a gpulease inside the job finds the GPUs of the Slurm allocation */
	SET(ALLOCATION_VARIABLE, launch->context->has_allocation
					 ? launch->context->allocation.passed
					 : NULL);
	/* limits are set only if the job shares its GPUs, and only a running MPS enforces them */
	if (mps.memory[0] && mps_is_running()) {
		SET("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", mps.memory);
		if (mps.threads[0])
			SET("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", mps.threads);
	}
	if (is_output_wanted_at_once(launch->context->settings))
		changes[count++] =
			(struct childenv_change){ "PYTHONUNBUFFERED", "1", true };
#undef SET
	*ret_count = count;
	return changes;
}

/*
 * What Slurm sets for a job, a step or a task.  A framework that sees such variables of another one
 * looks for the other tasks.  Other variables whose names begin with SLURM_ are the user's, as
 * SLURM_TMPDIR, or are defaults for options of the commands of Slurm, as SLURM_LABELIO.
 */
static const char *const of_a_job[] = { "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_COUNT",
	"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_MIN",
	"SLURM_ARRAY_TASK_STEP", "SLURM_CLUSTER_NAME", "SLURM_CPUS_ON_NODE",
	"SLURM_CPUS_PER_GPU", "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND",
	"SLURM_CPU_BIND_LIST", "SLURM_CPU_BIND_TYPE", "SLURM_CPU_BIND_VERBOSE",
	"SLURM_CPU_FREQ_REQ", "SLURM_DISTRIBUTION", "SLURM_DIST_LLLP",
	"SLURM_DIST_PLANESIZE", "SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV", "SLURM_GPUS",
	"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_SOCKET",
	"SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_GPU_FREQ", "SLURM_GTIDS",
	"SLURM_HET_*", "SLURM_JOBID", "SLURM_JOB_ACCOUNT", "SLURM_JOB_COMMENT",
	"SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_DEPENDENCY", "SLURM_JOB_END_TIME",
	"SLURM_JOB_EXTRA", "SLURM_JOB_GID", "SLURM_JOB_GPUS", "SLURM_JOB_GROUP",
	"SLURM_JOB_ID", "SLURM_JOB_LICENSES", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST",
	"SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION", "SLURM_JOB_QOS",
	"SLURM_JOB_RESERVATION", "SLURM_JOB_SEGMENT_SIZE", "SLURM_JOB_START_TIME",
	"SLURM_JOB_UID", "SLURM_JOB_USER", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_LOCALID",
	"SLURM_MEM_BIND", "SLURM_MEM_BIND_LIST", "SLURM_MEM_BIND_PREFER",
	"SLURM_MEM_BIND_SORT", "SLURM_MEM_BIND_TYPE", "SLURM_MEM_BIND_VERBOSE",
	"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_MEM_PER_NODE", "SLURM_MPI_TYPE",
	"SLURM_NETWORK", "SLURM_NNODES", "SLURM_NODEID", "SLURM_NODELIST",
	"SLURM_NODE_ALIASES", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_NTASKS_PER_CORE",
	"SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_SOCKET",
	"SLURM_OOM_KILL_STEP", "SLURM_OVERCOMMIT", "SLURM_PACK_*", "SLURM_PMI*",
	"SLURM_PRIO_PROCESS", "SLURM_PROCID", "SLURM_PROFILE", "SLURM_RESTART_COUNT",
	"SLURM_RLIMIT_*", "SLURM_SCRIPT_CONTEXT", "SLURM_SHARDS_ON_NODE",
	"SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT", "SLURM_STEPID", "SLURM_STEP_GPUS",
	"SLURM_STEP_ID", "SLURM_STEP_LAUNCHER_PORT", "SLURM_STEP_NODELIST",
	"SLURM_STEP_NUM_NODES", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_RESV_PORTS",
	"SLURM_STEP_TASKS_PER_NODE", "SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST",
	"SLURM_TASKS_PER_NODE", "SLURM_TASK_PID", "SLURM_THREADS_PER_CORE",
	"SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN", "SLURM_TRES_PER_TASK",
	"SLURM_UMASK", "SLURM_WORKING_CLUSTER", NULL };

int job_environment_make(const struct launch *launch, char ***ret)
{
	/* with --export, too: Slurm's commands need two, and inside an allocation all five */
	static const char *const kept[] = { "SLURM_CONF*", "SLURM_JWT", "SLURM_JOB_ID",
		"SLURM_JOBID", "SLURM_CLUSTER_NAME", NULL };
	static const char *const kept_outside[] = { "SLURM_CONF*", "SLURM_JWT", NULL };
	/* a step of a job script has the variables of the script, and its own */
	static const char *const kept_in_script[] = { "SLURM_*", NULL };
	const struct settings *settings = launch->context->settings;
	bool is_inside = launch->context->allocation.job != NULL;
	size_t count;
	const struct childenv_change *changes = job_environment_variables(launch, &count);
	char **environment;
	int r = childenv_make(privilege_environment(), of_a_job,
		settings->tasks.in_script ? kept_in_script
		: is_inside               ? kept
					  : kept_outside,
		settings->environment.export_list, changes, count, &environment);

	if (r == 0 && setup_is_wanted(&settings->environment))
		/* its strings are in the first one, which stays */
		r = set_again_add(environment,
			settings->output.quiet ? SET_AGAIN_QUIET : 0, &environment);
	if (r == 0)
		*ret = environment;
	return r;
}

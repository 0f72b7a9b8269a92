#include <sys/resource.h>

#include "diag.h"
#include "exitcodes.h"
#include "namespaces.h"
#include "process_lease.h"
#include "rlimits.h"
#include "job_step.h"

enum { LEVEL_MAX = 1000 };

static bool job_step_has_token(const struct owner *owner, const char *token)
{
	return token && strcmp(owner->token, token) == 0;
}

static bool job_step_has_tag(const struct owner *owner, rlim_t tag)
{
	return tag != RLIM_INFINITY && tag != 0 && process_lease_tag(owner->token) == tag;
}

const struct snapshot_lease *job_step_find_lease(const struct snapshot *view)
{
	const char *token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	struct rlimit locks = { .rlim_cur = RLIM_INFINITY };

	(void)getrlimit(RLIMIT_LOCKS, &locks);
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		const struct owner *owner = &lease->lease.owner;

		if (owner->uid != namespaces_own_user() || !lease->is_of_this_boot ||
			lease_is_final(&lease->lease))
			continue;
		/* the lease cannot be over: this process has its token or tag, and lives */
		if (job_step_has_token(owner, token) ||
			job_step_has_tag(owner, locks.rlim_cur) ||
			(owner->pidns == view->dir->pidns && !lease->is_dead &&
				process_lease_is_descendant((uint32_t)getppid(),
					snapshot_lease_process(lease).pid)))
			return lease;
	}
	return NULL;
}

bool job_step_is_inside(const struct snapshot *view)
{
	const struct snapshot_lease *lease = job_step_find_lease(view);
	const char *token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	struct rlimit locks = { .rlim_cur = RLIM_INFINITY };
	bool has_other;

	(void)getrlimit(RLIMIT_LOCKS, &locks);
	has_other = (token && is_token(token)) || locks.rlim_cur != RLIM_INFINITY;
	return lease && (!has_other || job_step_has_token(&lease->lease.owner, token) ||
				job_step_has_tag(&lease->lease.owner, locks.rlim_cur));
}

/* Why an option is refused in a step. */
enum { FOR_JOBS, HAS_GPUS, NO_WAIT };

static const char reasons[][32] = {
	[FOR_JOBS] = "this option is for whole jobs",
	[HAS_GPUS] = "it has its GPUs already",
	[NO_WAIT] = "a step does not wait",
};

#define ROW(name_, field, reason_)                             \
	{                                                      \
		.name = (name_), .reason = (reason_),          \
		.offset = offsetof(struct settings, field),    \
		.size = sizeof(((struct settings *)0)->field), \
	}

/* The options that a step refuses; one that was not given has only zeros in its field. */
static const struct {
	char name[15];
	unsigned char reason;
	unsigned short offset;
	unsigned char size;
} refused[] = {
	ROW("signal", care.warn_signal, FOR_JOBS),
	ROW("on-limit", care.on_limit, FOR_JOBS),
	ROW("preemptible", care.preemptible, FOR_JOBS),
	ROW("retries", care.retries, FOR_JOBS),
	ROW("oom-retries", care.oom_retries, FOR_JOBS),
	ROW("report", output.report, FOR_JOBS),
	ROW("notify", environment.notify, FOR_JOBS),
	ROW("lease-only", request.lease_only, HAS_GPUS),
	ROW("shell", request.shell, HAS_GPUS),
	ROW("prefer-gpus", request.prefer, HAS_GPUS),
	ROW("models", request.models, HAS_GPUS),
	ROW("margin", request.thresholds[OWN_MARGIN], HAS_GPUS),
	ROW("spike-buffer", request.thresholds[OWN_SPIKE_BUFFER], HAS_GPUS),
	ROW("idle-threshold", request.thresholds[OWN_IDLE_THRESHOLD], HAS_GPUS),
	ROW("after", request.after_ids[0], NO_WAIT),
	ROW("after-ok", request.after_ok_ids[0], NO_WAIT),
	ROW("singleton", request.singleton, NO_WAIT),
	ROW("begin", request.begin_ms, NO_WAIT),
	ROW("hold", request.hold, NO_WAIT),
};

static int job_step_refuse(uint64_t job, const char *reason, const char *name)
{
	diag("this is a step of job %llu, and %s; leave --%s out",
		(unsigned long long)job, reason, name);
	return EXIT_MISUSE;
}

int job_step_check(const struct settings *s, const struct lease *around)
{
	static const char zeros[8];
	struct need need = lease_need(around);
	uint64_t job = lease_job(around);

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (memcmp((const char *)s + refused[i].offset, zeros, refused[i].size) !=
			0)
			return job_step_refuse(
				job, reasons[refused[i].reason], refused[i].name);
	if (s->request.exclusive && !need_is_whole(&need))
		return job_step_refuse(job, "its GPU is shared with others", "exclusive");
	if (s->request.name)
		verbose("--name is accepted and ignored: a step has the name of its job");
	return 0;
}

unsigned job_step_level(void)
{
	const char *step = getenv("GPULEASE_STEP");
	unsigned level;

	/* without the list of its GPUs, those of the whole lease would be taken for the step's */
	if (!step || !getenv("GPULEASE_UUIDS"))
		return 0;
	return sscanf(step, "%*u.%u", &level) == 1 && level < LEVEL_MAX ? level : 0;
}

/* Overwrites the token in place: /proc/PID/environ shows the memory of the environment at exec. */
void job_step_leave(void)
{
	char *token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);

	rlimits_untag();
	if (!token)
		return;
	memset(token, '-', strlen(token));
	/* it names the GPUs of the lease, which bound only processes in it */
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
}

const char *job_step_order(const struct run_request *request)
{
	return request->gpu_ids ? request->gpu_ids : getenv("GPULEASE_UUIDS");
}

#include <sys/resource.h>

#include "diag.h"
#include "exitcodes.h"
#include "process_lease.h"
#include "rlimits.h"
#include "job_step.h"

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

		if (owner->uid != getuid() || !lease->is_of_this_boot ||
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

int job_step_check(const struct settings *s, const struct lease *around)
{
	static const char per_job[] = "this option is for whole jobs";
	static const char leased[] = "it has its GPUs already";
	static const char no_wait[] = "a step does not wait";
	struct need need = lease_need(around);
	const struct {
		bool given;
		const char *name, *because;
	} refused[] = {
		{ s->care.warn_signal, "--signal", per_job },
		{ s->care.on_limit != ON_LIMIT_KILL, "--on-limit", per_job },
		{ s->care.done_status >= 0, "--done-status", per_job },
		{ s->care.preemptible, "--preemptible", per_job },
		{ s->care.retries, "--retries", per_job },
		{ s->care.oom_retries, "--oom-retries", per_job },
		{ s->output.report, "--report", per_job },
		{ s->request.lease_only, "--lease-only", leased },
		{ s->request.shell, "--shell", leased },
		{ s->request.prefer, "--prefer-gpus", leased },
		{ s->request.exclusive && !need_is_whole(&need), "--exclusive",
			"its GPU is shared with others" },
		{ s->request.after_ids[0], "--after", no_wait },
		{ s->request.after_ok_ids[0], "--after-ok", no_wait },
		{ s->request.singleton, "--singleton", no_wait },
	};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (!refused[i].given)
			continue;
		diag("this is a step of job %llu, and %s; leave %s out",
			(unsigned long long)lease_job(around), refused[i].because,
			refused[i].name);
		return EXIT_MISUSE;
	}
	return 0;
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

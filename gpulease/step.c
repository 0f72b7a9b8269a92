#include <sys/resource.h>

#include "diag.h"
#include "exitcodes.h"
#include "kin.h"
#include "limits.h"
#include "step.h"

static bool has_token(const struct owner *owner, const char *token)
{
	return token && strcmp(owner->token, token) == 0;
}

static bool has_tag(const struct owner *owner, rlim_t tag)
{
	return tag != RLIM_INFINITY && tag != 0 && kin_tag(owner->token) == tag;
}

const struct snapshot_lease *step_find_lease(const struct snapshot *view)
{
	const char *token = getenv(KIN_TOKEN_VARIABLE);
	struct rlimit locks = { .rlim_cur = RLIM_INFINITY };

	(void)getrlimit(RLIMIT_LOCKS, &locks);
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		const struct owner *owner = &lease->lease.owner;

		if (owner->uid != getuid() || !lease->is_of_this_boot ||
			lease_is_final(&lease->lease))
			continue;
		/* while this process carries its signs a lease is not over */
		if (has_token(owner, token) || has_tag(owner, locks.rlim_cur) ||
			(owner->pidns == view->dir->pidns && !lease->is_dead &&
				kin_is_descendant((uint32_t)getppid(),
					snapshot_lease_process(lease).pid)))
			return lease;
	}
	return NULL;
}

bool step_is_around(const struct snapshot *view)
{
	const struct snapshot_lease *lease = step_find_lease(view);
	const char *token = getenv(KIN_TOKEN_VARIABLE);
	struct rlimit locks = { .rlim_cur = RLIM_INFINITY };
	bool has_other;

	(void)getrlimit(RLIMIT_LOCKS, &locks);
	has_other = (token && is_token(token)) || locks.rlim_cur != RLIM_INFINITY;
	return lease && (!has_other || has_token(&lease->lease.owner, token) ||
				has_tag(&lease->lease.owner, locks.rlim_cur));
}

int step_check(const struct settings *s, const struct lease *around)
{
	static const char cared_for[] = "its job is looked after, or not, as a whole";
	static const char leased[] = "its GPUs are leased already";
	static const char no_wait[] = "it waits for nothing";
	struct need need = lease_need(around);
	const struct {
		bool given;
		const char *name, *because;
	} refused[] = {
		{ s->warn_signal, "--signal", cared_for },
		{ s->on_limit != ON_LIMIT_KILL, "--on-limit", cared_for },
		{ s->done_status >= 0, "--done-status", cared_for },
		{ s->preemptible, "--preemptible", cared_for },
		{ s->retries, "--retries", cared_for },
		{ s->oom_retries, "--oom-retries", cared_for },
		{ s->report, "--report", cared_for },
		{ s->lease_only, "--lease-only", leased },
		{ s->shell, "--shell", leased },
		{ s->prefer, "--prefer", leased },
		{ s->exclusive && !need_is_whole(&need), "--exclusive",
			"its GPU is shared with others" },
		{ s->after_ids[0], "--after", no_wait },
		{ s->after_ok_ids[0], "--after-ok", no_wait },
		{ s->singleton, "--singleton", no_wait },
	};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (!refused[i].given)
			continue;
		diag("this is a step of a lease (ticket %llu), and %s; leave %s out",
			(unsigned long long)lease_job(around), refused[i].because,
			refused[i].name);
		return EXIT_MISUSE;
	}
	return 0;
}

/* In place: what others read is the memory that the environment was in at the start. */
void step_leave(void)
{
	char *token = getenv(KIN_TOKEN_VARIABLE);

	limits_untag();
	if (!token)
		return;
	memset(token, '-', strlen(token));
	/* that lease's GPUs bound what is part of it, and nothing else */
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
}

struct gpuset step_first_gpus(const struct gpuset *gpus, unsigned count)
{
	struct gpuset out = GPUSET_NONE;

	gpuset_for_each (slot, gpus) {
		if (count-- == 0)
			break;
		gpuset_add(&out, (unsigned)slot);
	}
	return out;
}

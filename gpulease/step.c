#include <sys/resource.h>

#include "kin.h"
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

		if (lease->is_over || owner->uid != getuid())
			continue;
		if (has_token(owner, token) || has_tag(owner, locks.rlim_cur) ||
			(owner->pidns == view->dir->pidns && !lease->is_dead &&
				kin_is_descendant((uint32_t)getppid(), owner->pid)))
			return lease;
	}
	return NULL;
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

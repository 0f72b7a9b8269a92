#include <fcntl.h>

#include "diag.h"
#include "exitcodes.h"
#include "job_step.h"
#include "live_fifo.h"
#include "namespaces.h"
#include "other_job.h"
#include "process_lease.h"
#include "rlimits.h"

static const char gone[] = "it has no GPUs or no command now";

/* Returns the lease of job @id in @view; NULL if it has none, or if its owner may have ended. */
static const struct snapshot_lease *find(const struct snapshot *view, uint64_t id)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *found = &view->leases[i];
		const struct lease *lease = &found->lease;

		if (lease_job(lease) == id && found->is_of_this_boot &&
			!lease_is_final(lease) &&
			owner_judge_job(&lease->owner, &lease->runs, view->dir->pidns) ==
				OWNER_ALIVE)
			return found;
	}
	return NULL;
}

static int refuse(uint64_t id, const char *reason)
{
	diag("--jobid: cannot join job %llu: %s", (unsigned long long)id, reason);
	return EXIT_MISUSE;
}

int other_job_join(const struct settings *settings, struct broker *broker,
	const struct snapshot_lease **ret, int *ret_live_fd)
{
	uint64_t id = settings->request.job;
	const struct snapshot_lease *lease = find(&broker->view, id);
	const char *around = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	char token[TOKEN_SIZE];

	if (!lease)
		return refuse(id, gone);
	if (lease->lease.owner.uid != namespaces_own_user())
		return refuse(id, "it is another user's");
	if (!settings->request.overlap)
		return refuse(id, "to share its GPUs add --overlap");
	text_copy(token, sizeof(token), lease->lease.owner.token);
	if (around)
		live_fifo_close_inherited(broker->dir, around);
	job_step_leave();
	/*
	 * First become a part of the job, then look whether it still lives.  A job that was alive
	 * after that does not end without this process: its FIFO is held, and a supervisor that
	 * gives the lease back finds the tag.
	 */
	*ret_live_fd = openat(broker->dir->live_fd, token,
		O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	rlimits_tag(token);
	if (*ret_live_fd < 0 || broker_survey(broker) < 0)
		return refuse(id, gone);
	*ret = find(&broker->view, id);
	/* an attempt has a token of its own */
	if (!*ret || strcmp((*ret)->lease.owner.token, token) != 0)
		return refuse(id, gone);
	return 0;
}

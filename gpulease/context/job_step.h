/*
 * Steps of a job: a gpulease that is started inside a lease uses that lease instead of the queue.
 */
#ifndef GPULEASE_JOB_STEP_H
#define GPULEASE_JOB_STEP_H

#include "queue.h"
#include "settings.h"
#include "snapshot.h"

/*
 * Returns the live lease of this user in @view to which this process belongs, by the token, the tag
 * or an ancestor (process_lease.h); NULL if there is none.
 */
const struct snapshot_lease *job_step_find_lease(const struct snapshot *view);

/*
 * For a process that job_step_find_lease() finds no lease for: finds out whether it belongs to a
 * live job with GPUs whose lease record was lost.  In the queue it would wait for the end of the
 * job, which waits for it.  The token of the environment or the tag names the job, but only its
 * FIFO, which this user must own, or its ticket proves that it lives.  Its GPUs are those of
 * GPULEASE_UUIDS.  That is the word of the user, as CUDA_VISIBLE_DEVICES is: it gives a step
 * nothing that its command could not take.
 *
 * Returns 0: there is no such job.  JOB_STEP_LOST: *@ret is as its lease was, as far as that is
 * known.  EXIT_MISUSE after a message: the GPUs are not known, or another job has them.
 */
enum job_step_outcome { JOB_STEP_LOST = 1 };
MUST_CHECK int job_step_find_lost(
	struct queue *queue, const struct snapshot *view, struct snapshot_lease *ret);

/*
 * Whether this process belongs to a lease in @view, if it may also belong to a lease of another
 * state directory.  So an ancestor counts only if this process has no other token or tag.
 */
bool job_step_is_inside(const struct snapshot *view);

/*
 * Checks that a step of the lease @around can do what the command line asks for.  Returns 0, or
 * EXIT_MISUSE after a message that names the option to leave out.
 */
MUST_CHECK int job_step_check(
	const struct settings *settings, const struct lease *around);

/* Returns how many exclusive steps are around this process. */
unsigned job_step_level(void);

/*
 * Takes this process, and what it starts from now on, out of the lease around it: removes the token
 * and the tag, and the bound to the GPUs of the lease.  For a job in the background, which has to
 * outlive the lease.
 */
void job_step_leave(void);

/* Returns the token of the lease that this process has left so; "": of none. */
const char *job_step_left(void);

/*
 * Returns the list that orders the GPUs of a step, for gpu_order_of(): its --gpu-ids, or what the
 * environment says of the job around it; NULL if there is none.
 */
const char *job_step_order(const struct run_request *request);

#endif

/*
 * Reads the journal of a batch: all of it at the start of a runner, and later what was appended.
 * Supervisors of jobs may append at any time, so the last line may be incomplete.
 */
#ifndef GPULEASE_BATCH_LOAD_H
#define GPULEASE_BATCH_LOAD_H

#include "batch_journal.h"

/*
 * Reads the whole journal into the empty @jobs, and its last list of jobs into *@ret_list: numbers,
 * each at most once, to be freed by the caller; NULL if there is none.  Jobs that have ended are
 * marked ->is_from_earlier.  A line that cannot be read is skipped and counted in *@ret_skipped;
 * if it was the BATCH_SEEN of a job, the job exists without key and command, so that the numbers
 * of later jobs stay.  Returns 0, or a negative errno with the reason in @why (-EFBIG: more than
 * 256 MiB); then @jobs is empty.
 */
MUST_CHECK int batch_journal_load(struct batch_journal *journal, struct batch_jobs *jobs,
	uint64_t **ret_list, size_t *ret_list_count, size_t *ret_skipped,
	struct why *why);

/*
 * Calls @handle for each event that was appended since the journal was read last, in order.  Lines
 * that cannot be read are skipped; an incomplete last line is left for the next call.  Returns 0 or
 * a negative errno; the events that were not reached come with the next call.
 */
MUST_CHECK int batch_journal_read_on(struct batch_journal *journal,
	void (*handle)(void *arg, const struct batch_event *event), void *arg);

#endif

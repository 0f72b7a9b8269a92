/*
 * Events of a batch: each one is written to the journal if its kind is kept there, applied to its
 * job, and shown.
 *
 * The journal may be impossible to write for a while (a full disk).  A new line then becomes no
 * job.  An end is applied all the same, and the job is marked ->is_unwritten until
 * batch_record_missing_ends() has written it; if the runner crashes before, the next runner runs
 * the job again.
 */
#ifndef GPULEASE_BATCH_RECORD_H
#define GPULEASE_BATCH_RECORD_H

#include "batch_runner.h"

/* Applies @event, which is in the journal or not kept there, to its job, and shows it. */
void batch_record_apply(struct batch_runner *runner, const struct batch_event *event);

/*
 * Records a new event: sets ->at_ms to now if it is 0, writes the event to the journal, applies it
 * and shows it.  Returns 0, or the negative errno of the journal, which was printed.  After a
 * failed BATCH_SEEN nothing was applied; after any other failure the event was applied.
 */
MUST_CHECK int batch_record_event(struct batch_runner *runner, struct batch_event *event);

/*
 * Records the end of @job with @cause and @status, and @text as its reason (BATCH_TEXT_SIZE).
 * While the runner stops, an end that is most likely its own doing is recorded as interrupted.
 */
void batch_record_end(struct batch_runner *runner, struct batch_job *job,
	enum batch_cause cause, int status, const char *text);

/*
 * Writes the ends that the journal lacks.  Returns 0 when it lacks none, or a negative errno, which
 * was printed: some are still missing, and ->write_ends_ms says when to try again.
 */
MUST_CHECK int batch_record_missing_ends(struct batch_runner *runner);

/* Appends the numbers of the jobs with ends that the journal lacks, as "1-4,7". */
void batch_record_add_missing(const struct batch_runner *runner, struct text *out);

#endif

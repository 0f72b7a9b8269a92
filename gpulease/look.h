/*
 * Looking: the tickets that wait, the leases, the GPUs, and what nvidia-smi says.  For view.c.
 *
 *	look_init -> look_probe? -> look_read -> … -> look_release
 *
 * Nothing is locked, and nothing is written but the shared result of nvidia-smi.
 */
#ifndef GPULEASE_LOOK_H
#define GPULEASE_LOOK_H

#include "context.h"
#include "queue.h"
#include "snapshot.h"
#include "watch.h"

enum { LOOK_PROBE_MS = 2000 }; /* nvidia-smi may take, of the look as a whole */

struct look {
	const struct context *context;
	int64_t begun_ms, now_ms; /* CLOCK_BOOTTIME */
	struct prober prober;
	struct watch watch;
	struct snapshot snapshot; /* ->gpus and ->plan: as look_read() left them */
	bool is_probe_old;        /* a newer result was wanted and did not come */

	struct queue queue; /* open from look_read() on, if there is one */
	struct queue_row
		*rows; /* the tickets that wait and whose owners live, in order */
	size_t row_count, row_room, rows_max;
	bool has_more_rows;
	struct queue_row
		*gpuless; /* those that run on no GPU, and have no lease to show it */
	size_t gpuless_count, gpuless_room;
	bool has_broken_row;
};

/* Begins; not more than @rows_max tickets will be kept. */
void look_init(struct look *look, const struct context *context, size_t rows_max);
void look_release(struct look *look);

/*
 * Gets a result of nvidia-smi that ended no earlier than at @oldest_ms, if it can be had
 * within LOOK_PROBE_MS since look_init().  0, also where it cannot, or a negative errno.
 */
MUST_CHECK int look_probe(struct look *look, int64_t oldest_ms);

/*
 * Reads everything: tickets first, then leases, then who lives.  May be repeated.  0 or a
 * negative errno with the reason in @why.
 */
MUST_CHECK int look_read(struct look *look, struct why *why);

/*
 * Whether a newer result could show otherwise what the one at hand says: it is older than the
 * look, and shows the use of a GPU whose lease has ended, perhaps since.
 */
bool look_is_doubtful(const struct look *look);

#endif

/*
 * Reads everything that reports need: the waiting tickets, the leases, the GPUs, and the result
 * of nvidia-smi.  The views (view.h, view_ended.h) and --doctor use it.
 *
 *	state_reader_init -> state_reader_probe? -> state_reader_read -> … -> state_reader_release
 *
 * It takes no lock and writes only the shared result of nvidia-smi.
 */
#ifndef GPULEASE_STATE_READER_H
#define GPULEASE_STATE_READER_H

#include "context.h"
#include "queue.h"
#include "snapshot.h"
#include "watch.h"

enum {
	STATE_READER_PROBE_MS = 2000
}; /* to wait for nvidia-smi, in all since the beginning */

struct state_reader {
	const struct context *context;
	int64_t begun_ms, now_ms; /* CLOCK_BOOTTIME */
	int64_t patience_ms;      /* to wait for nvidia-smi; a caller may set it */
	struct prober prober;
	struct watch watch;
	/* ->gpus and ->plan are as the last state_reader_read() left them */
	struct snapshot snapshot;
	bool is_probe_old; /* a newer result was wanted and did not come */

	struct queue queue; /* open after state_reader_read(), if the file exists */
	/* the waiting tickets with live owners, in the order in which the plan takes them */
	struct queue_row *rows;
	size_t row_count, row_room, rows_max;
	bool has_more_rows; /* more tickets wait than ->rows_max */
	/* granted tickets of live jobs that run on no GPU: they have no lease */
	struct queue_row *gpuless;
	size_t gpuless_count, gpuless_room;
	bool has_broken_row; /* a record of the queue could not be read */
};

/* Begins.  It will keep at most @rows_max waiting tickets. */
void state_reader_init(
	struct state_reader *reader, const struct context *context, size_t rows_max);
void state_reader_release(struct state_reader *reader);

/*
 * Gets a result of an nvidia-smi that ended at @oldest_ms or later.  Gives up ->patience_ms after
 * state_reader_init(); ->is_probe_old then says so.  Returns 0 in both
 * cases, or a negative errno.
 */
MUST_CHECK int state_reader_probe(struct state_reader *reader, int64_t oldest_ms);

/*
 * Reads and judges everything: tickets first, then leases, then which jobs live, so that a ticket
 * that is granted meanwhile is seen at least once.  May be repeated.  Returns 0, or a negative
 * errno with the reason in @why.
 */
MUST_CHECK int state_reader_read(struct state_reader *reader, struct why *why);

/*
 * Whether a newer result of nvidia-smi may show a GPU as free: the result at hand is older than
 * state_reader_init(), and shows a GPU in use that has no lease any more.  The lease may have ended
 * after the result.
 */
bool state_reader_is_doubtful(const struct state_reader *reader);

/* Returns the owner's pid in this pid namespace; 0 if the owner is in another one. */
uint32_t state_reader_pid(const struct state_reader *reader, const struct owner *owner);

/*
 * Sets @out to the whole name of the owner's job; @name and @hash are as its record has them.  If
 * the rest cannot be read, returns true, and @out is the beginning and …
 */
bool state_reader_name(const struct state_reader *reader, const struct owner *owner,
	const char *name, uint64_t hash, char out[NAME_SIZE_MAX]);

#endif

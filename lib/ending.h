/*
 * How a lease ended, told to the history.  The process that replaces its lowest record tells the
 * end, once.  A process that saw the end tells it exactly: the recorder (the watchdog or supervisor
 * that the lease names), --cancel, or the waiter that declared the lease over.  Then the record of
 * the lease is marked.  If the lease names a recorder, the line of the process that replaces it is
 * provisional, and the recorder tells the exact end even if the record is gone.
 *
 * A crash between the line in the history and the mark can repeat the line.
 */
#ifndef GPULEASE_ENDING_H
#define GPULEASE_ENDING_H

#include "history.h"
#include "snapshot.h"

/*
 * What the history is to say of the end of @over, a lease that is over, as far as can be told
 * by who was not there: by whom it was cancelled, as a number, or that its limit was reached.
 */
void ending_describe(const struct snapshot *view, const struct snapshot_lease *over,
	struct history_end *end);

/* How a job ended, for who was there.  What is not known is -1, NULL or "". */
struct ending_facts {
	int status;
	const char *how, *by; /* as in the history */
	bool log_is_full;
	char peaks[HISTORY_PEAKS_SIZE], utilization[8];
};

/* Fills in @end, which describes the lease, with what is known. */
void ending_add_facts(const struct ending_facts *facts, struct history_end *end);

/*
 * Tells how the job with @ticket, number @number, ended that has no lease: it never had one, and
 * ran since @since_ms (CLOCK_BOOTTIME), or it gave up waiting, or was cancelled, before (0).  For
 * its owner, and for who has ended that one.  A crash before it leaves no line.
 */
void ending_tell_leaseless(const struct statedir *dir, uint64_t number,
	const struct ticket *ticket, int64_t since_ms, const struct ending_facts *facts);

/* Tells just that; the caller replaces the record. */
void ending_tell(const struct snapshot *view, const struct snapshot_lease *over);

/* The indices of @set as people call them: "0,3". */
void ending_name_gpus(
	const struct snapshot *view, const struct gpuset *set, char *out, size_t size);

/*
 * Tells the history how the lease with @token ended, which is over, and marks its record so
 * that nobody tells it again: for who was there at the end and knows.  @how and @by may be
 * NULL.  Nothing happens where it was told or replaced already.
 */
void ending_record(
	struct snapshot *view, const char *token, const char *how, const char *by);

/*
 * The same for a recorder, which may not be able to open files when the job ends: it holds them
 * open.  Kept for one lease; the descriptor of the directory stays the caller's.
 */
struct ending {
	struct lease_file file; /* of the lease's lowest GPU */
	struct history_file history;
	struct lease lease; /* as it was in the file; zeroed: it was not there */
	bool is_beside;     /* this process is not the recorder */
	char token[TOKEN_SIZE];
	char gpus[64];
};

/* Opens for the lease with @token on @gpus, whose names are @names.  0 or a negative errno. */
MUST_CHECK int ending_open(const struct statedir *dir, const struct gpuset *gpus,
	const char *names, const char *token, struct ending *ret);
void ending_release(struct ending *ending);

/*
 * Tells how the lease ended, at @gone_ms (CLOCK_BOOTTIME), unless that was told already.  Waits
 * for the lock of its file until @until_ms, as lease_lock() does.  If the lock cannot be had or
 * the record was replaced, a recorder tells the exact end all the same.  0, or the negative errno
 * of the history: then the record is not marked, and the process that replaces it tries again.
 */
MUST_CHECK int ending_record_open(struct ending *ending, int64_t gone_ms,
	const struct ending_facts *facts, int64_t until_ms);

#endif

/*
 * Records in the history how a lease ended.  Normally the process that replaces the lease's record
 * in the file of its lowest GPU writes this line, so it is written once.
 *
 * A process that saw the end has more facts for the line: the recorder (the watchdog or supervisor
 * that the lease names), --cancel, or the waiter that declared the lease over.  It writes the line
 * itself and marks the lease's record, so that no other process writes one.
 *
 * If the lease names a recorder, its line is the exact one.  The line of any other process is then
 * provisional, and the recorder writes the exact line even if the record is gone.
 *
 * A crash between the line in the history and the mark can lead to a second line.
 */
#ifndef GPULEASE_END_RECORD_H
#define GPULEASE_END_RECORD_H

#include "history.h"
#include "ticket.h"
#include "lease_use.h"
#include "snapshot.h"

/*
 * Fills in *@end from the record of @over, a lease that is over, for a process that did not see the
 * end.  It can tell at most the exit status and one cause: reboot, the user who cancelled the job,
 * the time limit, or a lost supervisor.
 */
void end_record_describe(const struct snapshot *view, const struct snapshot_lease *over,
	struct history_end *end);

/* How a job ended, as seen by the process that saw the end.  Unknown: -1, NULL or "". */
struct end_facts {
	int status;
	const char *how, *by; /* as in the history */
	bool is_beside; /* of a job without a lease: its watchdog may append the exact line */
	bool log_is_full, spans_run;
	char peaks[HISTORY_PEAKS_SIZE], utilization[8];
	/* what samples have shown (->samples 0: nothing); ->peaks and ->utilization win over it */
	struct lease_use use;
};

/* Adds @facts to *@end, which describes the lease already. */
void end_record_add_facts(const struct end_facts *facts, struct history_end *end);

/*
 * Records the end of a job without a lease, with ticket @ticket, number @number.  It needed no GPU
 * and ran since @since_ms (CLOCK_BOOTTIME); or it gave up or was cancelled before it started (0).
 * The caller is the ticket's owner, or the process that has ended the owner.  A crash before it
 * leaves no line.
 */
void end_record_append_leaseless(const struct statedir *dir, uint64_t number,
	const struct ticket *ticket, int64_t since_ms, const struct end_facts *facts);

/* Records the end as end_record_describe() describes it; the caller then replaces the record. */
void end_record_append(const struct snapshot *view, const struct snapshot_lease *over);

/* Writes the indices of the GPUs in @set, as nvidia-smi numbers them: "0,3". */
void end_record_name_gpus(
	const struct snapshot *view, const struct gpuset *set, char *out, size_t size);

/*
 * For a process that saw the end but is not the recorder: records how the lease with @token, which
 * is over, ended.  Marks the lease's record, so that no other process records the end.  @how and
 * @by may be NULL.  Does nothing if the end is recorded already or the record was replaced.
 */
void end_record_write(
	struct snapshot *view, const char *token, const char *how, const char *by);

/*
 * What a recorder needs to record the end of one lease.  When the job ends it may not be able to
 * open files any more, so it opens them in advance.  The descriptor of the directory stays the
 * caller's.
 */
struct end_recorder {
	struct lease_file file; /* of the lease's lowest GPU */
	struct history_file history;
	int usage_fd; /* gpu_hours.h; -1: the time of leases is not counted */
	struct lease
		lease; /* as it was in the file, its name whole; zeroed: it was not there */
	bool is_beside; /* this process is not the recorder that the lease may name */
	struct ticket_file
		tickets; /* of a job without a lease: shows who has cancelled it */
	char token[TOKEN_SIZE];
	char gpus[64];
};

#define END_RECORDER_NONE                             \
	((struct end_recorder){ .file = { .fd = -1 }, \
		.history = HISTORY_FILE_NONE,         \
		.usage_fd = -1,                       \
		.tickets = TICKET_FILE_NONE })

/*
 * Opens the files for the lease with @token on @gpus; @names are the names of these GPUs.  Returns
 * 0 or a negative errno; then nothing is open.
 */
MUST_CHECK int end_recorder_open(const struct statedir *dir, const struct gpuset *gpus,
	const char *names, const char *token, struct end_recorder *ret);
void end_recorder_release(struct end_recorder *recorder);

/*
 * The same for a job without GPUs, with ticket @ticket, number @number, which was granted.  There
 * may be a provisional line by --cancel.
 */
MUST_CHECK int end_recorder_open_leaseless(const struct statedir *dir, uint64_t number,
	const struct ticket *ticket, struct end_recorder *ret);

/*
 * Returns the time limit of the lease, which another process may have prolonged, as its record says
 * now; @limit_ms if the record is gone or cannot be read.
 */
int64_t end_recorder_limit_ms(struct end_recorder *recorder, int64_t limit_ms);

/*
 * Whether a user has ended the job by --cancel, as the record of the lease says: that user had sent
 * TERM while the job lived.  Of a job without a lease it is the request that says so.  Sets
 * *@ret_uid then.
 */
bool end_recorder_is_cancelled(struct end_recorder *recorder, uint32_t *ret_uid);

/* The limit for a process that can still open files, and has no recorder. */
int64_t end_record_limit_ms(const struct statedir *dir, const struct gpuset *gpus,
	const char *token, int64_t limit_ms);

/*
 * Marks the lease as given back, so that every reader sees it as over: for the watchdog of an
 * adopted owner that has ended and has left no process.  Readers that cannot see the owner would
 * otherwise not know whether it or only its watchdog has ended.  Waits for the lock until
 * @until_ms.  Returns 0, LEASE_LOCKED, or a negative errno; the record is unchanged then.
 */
MUST_CHECK int end_recorder_give_back(struct end_recorder *recorder, int64_t until_ms);

/*
 * Records that the lease ended at @gone_ms (CLOCK_BOOTTIME), unless its end is recorded already.
 * Waits for the lock of its file until @until_ms, as lease_lock() does.  If the lock cannot be had
 * or the record was replaced, a recorder still writes the exact line.  Returns 0, or the negative
 * errno of the history; then the record is not marked, and the process that replaces it tries
 * again.
 */
MUST_CHECK int end_recorder_write(struct end_recorder *recorder, int64_t gone_ms,
	const struct end_facts *facts, int64_t until_ms);

#endif

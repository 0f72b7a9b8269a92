/*
 * --history: the jobs that have ended, as a table and as JSON, and the events between them.  Pure
 * but for memory and the clocks of windows; local times follow $TZ.
 *
 * The columns of the table are end_columns[] in show_history.c.
 *
 * JSON, an object (json_members.h says what holds for all JSON of gpulease):
 *	format              "gpulease-history/1"
 *	taken_unix_ms       integer
 *	state_directory     string
 *	jobs                array of objects, the latest last
 *	    ticket          integer: the id of the job
 *	    attempt         integer: which attempt of it, from 1
 *	    name            string | null
 *	    user            string
 *	    uid             integer
 *	    gpus            array of integers: indices
 *	    instance        integer | null: only this MIG instance of that GPU
 *	    gpu_count       integer
 *	    share           number | null: the part of each that it had, below 1
 *	    vram_mib        integer | null: declared memory of each
 *	    state           "finished" | "failed" | "cancelled" | "timed-out" | "oom" |
 *	                    "preempted" | "requeued" | "lost" |
 *	                    "ended": how it ended was not recorded
 *	    waited_ms       integer: in the queue
 *	    started_unix_ms integer | null
 *	    alive_unix_ms   integer | null: when it was last seen alive
 *	    gone_unix_ms    integer | null: when it was first seen over
 *	    ran_at_least_ms, ran_at_most_ms    integer | null: equal if its end was seen
 *	    how             "ended" | "limit" | "cancel" | "oom" | "preempt" | "lingered" |
 *	                    "reboot" | "lost"
 *	    by              string | null: who cancelled it; "window" if one has sent it back
 *	    status          integer | null: its exit status, 128 + a signal's number
 *	    peak_mib        array of integers: the most memory seen in use on each GPU, in their
 *	                    order; empty if no memory of its processes was seen
 *	    spans_run       boolean: the samples of peak_mib span the run
 *	    utilization_mean_percent, utilization_peak_percent    integer | null: likewise
 *	    gpu_seconds     number | null: GPUs, or parts of one, times ran_at_least_ms
 *	    log_is_full     boolean: some of its output was lost
 *	    command         string | null: may not be shown to this user
 *	events              array of objects, the latest last: what administrators did meanwhile
 *	    kind            "paused" | "resumed" | "window-set" | "window-removed"
 *	    at_unix_ms      integer: when
 *	    user            string
 *	    uid             integer
 *	    gpus            string: indices, "0,3"
 *	    from_unix_ms, until_unix_ms, but, reason    as of a window (show_status.h)
 *	missing_lines       integer: lines among these that could not be written
 *	missing_unix_ms     integer | null: when the last of them was due
 */
#ifndef GPULEASE_SHOW_HISTORY_H
#define GPULEASE_SHOW_HISTORY_H

#include "history.h"
#include "render_json.h"
#include "render_table.h"

/* Prints the table of @count ends.  Returns 0, or -ENOMEM after part of it was printed. */
MUST_CHECK int show_history(const struct history_end *ends, size_t count, int64_t now_ms,
	const struct table_style *style, FILE *out);

/* Prints the JSON above. */
void show_history_json(const struct history_end *ends, size_t count,
	const struct history_gap *gap, int64_t now_ms, const char *directory, FILE *out);

/* Prints an object of ->jobs above. */
void json_put_end(struct json *json, const struct history_end *end);

/* Appends how the job ended: "cancelled by root". */
void ended_add_state(const struct history_end *end, struct text *out);

/* Appends how long it ran: "up to" if its end was found late; nothing if that is not known. */
void ended_add_ran(const struct history_end *end, struct text *out);

/* Returns the highest of the peaks on its GPUs; 0: not known. */
uint64_t ended_peak_mib(const struct history_end *end);

/* Prints, below a table, how many lines of the history are missing; nothing if none is. */
void show_gap(const struct history_gap *gap, const struct table_style *style, FILE *out);

/*
 * Sets how long the job ran, at least and at most.  Returns false, and sets nothing, if that is
 * unknown.
 */
bool ended_span_ms(const struct history_end *end, int64_t *ret_least, int64_t *ret_most);

#endif

/*
 * What has been looked at, as tables for people and as JSON for programs.  Pure but for
 * memory; local times follow $TZ.
 *
 * JSON.  Names and types stay as they are; new members may come.  Whatever is not known or
 * does not apply is null.  Times end in _unix_ms (milliseconds since 1970), spans in _ms,
 * sizes in _mib.  A pid is null where the process is none of this pid namespace.
 *
 * status, an object:
 *	format              "gpulease-status/1"
 *	taken_unix_ms       integer
 *	state_directory     string
 *	simulated           boolean
 *	nvidia_smi          object: what the GPUs' memory and states rest on
 *	    found           boolean: there is such a program (false for simulated GPUs)
 *	    answer_age_ms   integer | null: of its last answer; null: there is none
 *	    is_old          boolean: a newer answer was wanted and did not come within 2 s
 *	    trouble         string | null: why that answer shows no GPU
 *	broken_records      integer: unreadable ones, skipped
 *	without_slot        integer: GPUs that are not listed, because all 128 slots are used
 *	gpus                array of objects, by index; MIG instances behind their GPU
 *	    index           integer; of a MIG instance its GPU's
 *	    instance        integer | null: nvidia-smi's number of it on that GPU
 *	    parent          string | null: the uuid of that GPU
 *	    uuid            string
 *	    bus_id          string | null
 *	    model           string | null
 *	    memory_total_mib, memory_used_mib, utilization_percent    integer | null
 *	    state           "idle" | "leased" | "lingering" | "settling" | "locked" |
 *	                    "external" | "unknown" | "paused"
 *	    why             string | null: what keeps it, in words; null if idle, or leased
 *	                    and nothing else
 *	    paused          boolean: also while it is leased
 *	    paused_by, pause_reason    string | null
 *	    idle_for_ms     integer | null: seen idle, by the answers of nvidia-smi, for so long
 *	    ticket          integer | null: the id of the job, of the first of ->leases
 *	    attempt         integer | null: which attempt of it, from 1
 *	    name            string | null: of the job
 *	    user            string | null: of the lease, else of the process that uses the GPU
 *	    pid             integer | null: likewise
 *	    command         string | null: likewise
 *	    age_ms, started_unix_ms    integer | null: of the lease
 *	    limit_ms        integer | null: its time limit
 *	    free_share      number | null: the most that a job could have of it now, 1: all
 *	    free_mib        integer | null: the most that one could declare now
 *	    foreign_mib     integer | null: used outside gpulease, with what is to be
 *	                    expected; null also where one lease has all of it
 *	    leases          array of objects: the live leases on it, by ticket
 *	        ticket, attempt, name, user, pid, command, age_ms, started_unix_ms,
 *	        limit_ms    as above
 *	        lingering   boolean: its job has ended, but left processes behind
 *	        share, vram_mib, exclusive    what it has of this GPU, as below
 *	        peak_mib    integer | null: the most that was seen of it, a lower bound
 *	        over_declared    boolean: more than it has declared, and the tolerance
 *	    mig             array of objects: its MIG instances, as far as known
 *	        device      integer: nvidia-smi's number for it on this GPU
 *	        profile     string: "3g.40gb"
 *	        uuid        string
 *	queue               array of objects, in order
 *	    position        integer, from 1
 *	    ticket          integer: the id of the job
 *	    attempt         integer: which attempt of it waits, from 1
 *	    name            string | null
 *	    user            string
 *	    pid             integer | null
 *	    gpus            integer: how many it wants
 *	    share           number | null: the part of each, below 1; null: none declared
 *	    vram_mib        integer | null: memory of each, as declared
 *	    exclusive       boolean: it wants them alone
 *	    priority        integer, the higher the earlier
 *	    after, after_ok    arrays of integers: jobs that have to end first
 *	    singleton       boolean: so have those of the same user and name
 *	    limit_ms        integer | null
 *	    since_unix_ms, waits_ms    integer
 *	    start_at_unix_ms    integer | null: when it would start if all others ran to
 *	                    their limits; null: nobody knows
 *	    can_start       boolean: nothing keeps it any more
 *	    stopped         boolean: its process is, so it is passed over
 *	    stuck           string | null: why its process cannot act, so that it is passed
 *	                    over: "nvidia-smi:TEXT" (its nvidia-smi fails), "turn:" (its turns
 *	                    come to no end), "lock:GPU" (it cannot lock the GPU's file),
 *	                    "gpu:GPU" (its nvidia-smi does not show the GPU)
 *	    reason_kind     "leased": leases have to end first | "behind": another job comes
 *	                    first | "gpu": what keeps it is no lease | "held": a job has to
 *	                    end first, or it is tried again later | "limit": of the
 *	                    configuration | null: it can start
 *	    behind          integer | null: the ticket that comes first
 *	    held_by         integer | null: the job that has to end first
 *	    why             string: why it waits
 *	    command         string | null: not to be seen by this user
 *	queue_is_cut        boolean: more wait than are listed
 *
 * queue, an object: format ("gpulease-queue/1"), taken_unix_ms, state_directory, queue,
 * queue_is_cut, as above; and over_declared, an array of integers: the jobs that run and use
 * more of a GPU than they have declared, and the tolerance.
 *
 * history, an object:
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
 *	    vram_mib        integer | null: memory of each, as declared
 *	    state           "finished" | "failed" | "cancelled" | "timed-out" | "oom" |
 *	                    "preempted" | "lost" | "ended": nobody saw how
 *	    waited_ms       integer: in the queue
 *	    started_unix_ms integer | null
 *	    alive_unix_ms   integer | null: when it was last seen alive
 *	    gone_unix_ms    integer | null: when it was first seen over
 *	    ran_at_least_ms, ran_at_most_ms    integer | null: equal where the end was seen
 *	    how             "ended" | "limit" | "cancel" | "oom" | "preempt" | "lingered" |
 *	                    "reboot" | "lost"
 *	    by              string | null: who cancelled it
 *	    status          integer | null: its exit status, 128 + a signal's number
 *	    peak_mib        array of integers: the most memory that was seen on each GPU, in
 *	                    their order; empty where nobody looked
 *	    utilization_mean_percent, utilization_peak_percent    integer | null: likewise
 *	    gpu_seconds     number | null: GPUs, or parts of one, times ran_at_least_ms
 *	    log_is_full     boolean: output of it was lost
 *	    command         string | null: not to be seen by this user
 *	missing_lines       integer: lines among these that could not be written
 *	missing_unix_ms     integer | null: when the last of them was due
 *
 * accounting, an object:
 *	format              "gpulease-accounting/1"
 *	taken_unix_ms       integer
 *	state_directory     string
 *	since_unix_ms, until_unix_ms    integer | null: the period
 *	gpus                integer: those of the machine in this boot
 *	users               array of objects, who used most first; the members of ->total and
 *	    user            string
 *	    uid             integer
 *	total               object
 *	    jobs            integer: each once, however often it was tried
 *	    attempts        integer
 *	    running         integer: of the attempts
 *	    gpu_hours_least, gpu_hours_most    number
 *	    wait_mean_ms, wait_p95_ms    integer | null: of an attempt
 *	    utilization_mean_percent     integer | null: by GPU time, where it was measured
 *	    machine_share_percent        number | null: of all GPU time in the period
 *	missing_lines, missing_unix_ms    as in the history, for all of it
 *
 * What --doctor prints is described in doctor.h.
 */
#ifndef GPULEASE_SHOW_H
#define GPULEASE_SHOW_H

#include "accounting.h"
#include "render_table.h"
#include "view.h"

/* Tables.  0, or -ENOMEM after part of it was written. */
MUST_CHECK int show_status(
	const struct view *view, const struct table_style *style, FILE *out);
MUST_CHECK int show_queue(
	const struct view *view, const struct table_style *style, FILE *out);
MUST_CHECK int show_history(const struct history_end *ends, size_t count, int64_t now_ms,
	const struct table_style *style, FILE *out);

/* JSON, as above. */
void show_status_json(const struct view *view, FILE *out);
void show_queue_json(const struct view *view, FILE *out);
void show_history_json(const struct history_end *ends, size_t count,
	const struct history_gap *gap, int64_t now_ms, const char *directory, FILE *out);

/*
 * Sums that are finished, their users named: as a table, as JSON, and as lines of RFC 4180
 * under a line of titles, without the total:
 *
 *	user,uid,jobs,attempts,running,gpu_hours_least,gpu_hours_most,wait_mean_seconds,
 *	wait_p95_seconds,utilization_mean_percent,machine_share_percent
 */
MUST_CHECK int show_accounting(
	const struct accounting *accounting, const struct table_style *style, FILE *out);
void show_accounting_json(const struct accounting *accounting, int64_t now_ms,
	const char *directory, FILE *out);
void show_accounting_csv(const struct accounting *accounting, FILE *out);

/* Appends the date and the time of day. */
void show_add_moment(struct text *line, int64_t at_ms);

/* Prints how many lines of the history are missing, below a table; nothing if none is. */
void show_gap(const struct history_gap *gap, const struct table_style *style, FILE *out);

/* How long the job ran: at least and at most; false where nobody knows. */
bool ended_span_ms(const struct history_end *end, int64_t *ret_least, int64_t *ret_most);

/* How it ended: what was recorded, or "ended". */
const char *ended_how(const struct history_end *end);

#endif

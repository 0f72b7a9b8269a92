/*
 * --status: the GPUs and the leases on them as a table for people, and with the queue as JSON for
 * programs.  Pure but for memory; local times follow $TZ.
 *
 * The columns of the table are gpu_columns[] in show_status.c; the table of the queue that follows
 * is that of show_queue.h.
 *
 * JSON, an object (json_members.h says what holds for all JSON of gpulease):
 *	format              "gpulease-status/1"
 *	engine              string: "slurm" for a cluster, else there is no such member
 *	taken_unix_ms       integer
 *	state_directory     string
 *	simulated           boolean
 *	nvidia_smi          object: the source of the GPUs' memory and states
 *	    found           boolean: the program exists (false for simulated GPUs)
 *	    answer_age_ms   integer | null: of its last answer; null: there is none
 *	    is_old          boolean: a newer answer was wanted and did not come within 2 s
 *	    trouble         string | null: why that answer shows no GPU
 *	broken_records      integer: records that could not be read and were skipped
 *	without_slot        integer: GPUs that are not listed, because all 128 slots are used
 *	gpus                array of objects, by index; MIG instances follow their GPU
 *	    node            string: of a GPU of a cluster, else there is no such member
 *	    index           integer; of a MIG instance its GPU's
 *	    instance        integer | null: nvidia-smi's number of the instance on that GPU
 *	    parent          string | null: the uuid of that GPU
 *	    uuid            string
 *	    bus_id          string | null
 *	    model           string | null
 *	    memory_total_mib, memory_used_mib, utilization_percent    integer | null
 *	    state           "idle" | "leased" | "lingering" | "settling" | "locked" |
 *	                    "external" | "unknown" | "paused"
 *	    why             string | null: what keeps it from being leased, in words; null if it
 *	                    is idle, or leased and nothing else
 *	    paused          boolean: also while it is leased
 *	    paused_by, pause_reason    string | null
 *	    idle_for_ms     integer | null: for how long nvidia-smi has shown it idle
 *	    ticket          integer | null: the id of the job that has the first of ->leases
 *	    attempt         integer | null: which attempt of that job, from 1
 *	    name            string | null: of the job
 *	    user            string | null: of the lease, else of the process that uses the GPU
 *	    pid             integer | null: likewise
 *	    command         string | null: likewise
 *	    age_ms, started_unix_ms    integer | null: of the lease
 *	    limit_ms        integer | null: its time limit
 *	    free_share      number | null: the largest share that a job could get now, 1: all
 *	    free_mib        integer | null: the most memory that a job could declare now
 *	    foreign_mib     integer | null: memory used outside gpulease, with what is to be
 *	                    expected; null also if one lease has the whole GPU
 *	    leases          array of objects: the live leases on it, by ticket
 *	        ticket, attempt, name, user, pid, command, age_ms, started_unix_ms,
 *	        limit_ms    as above
 *	        lingering   boolean: the job has ended, but left processes running
 *	        share, vram_mib, exclusive    what the lease has of this GPU, as in the queue
 *	        peak_mib    integer | null: the most memory seen in use, a lower bound
 *	        over_declared    boolean: that is more than the job declared plus the tolerance
 *	    mig             array of objects: its MIG instances, as far as they are known
 *	        device      integer: nvidia-smi's number of the instance on this GPU
 *	        profile     string: "3g.40gb"
 *	        uuid        string
 *	queue, queue_is_cut, running_without_gpus    as in show_queue.h
 *	windows             array of objects: when GPUs are kept, by --pause with --at, --for, --but
 *	    id              integer
 *	    gpus            string: their indices, "0,1"
 *	    has_begun       boolean
 *	    from_unix_ms    integer
 *	    until_unix_ms   integer | null: until they are resumed
 *	    but             string | null: the uids of users that it does not bind, "1000,1001"
 *	    by, reason      string | null
 */
#ifndef GPULEASE_SHOW_STATUS_H
#define GPULEASE_SHOW_STATUS_H

#include "render_json.h"
#include "render_table.h"
#include "view.h"

/*
 * Prints the GPUs, a note for each state that needs one, and the queue.  Returns 0, or -ENOMEM
 * after part of it was printed.
 */
MUST_CHECK int show_status(
	const struct view *view, const struct table_style *style, FILE *out);

/* Prints the windows alone, and as JSON: format "gpulease-windows/1" with the member windows. */
MUST_CHECK int show_windows(
	const struct view *view, const struct table_style *style, FILE *out);
void show_windows_json(const struct view *view, FILE *out);

/* Prints an object of ->leases above. */
void json_put_lease(
	struct json *json, const struct view *view, const struct view_holder *holder);

/* Prints the JSON above. */
void show_status_json(const struct view *view, FILE *out);

#endif

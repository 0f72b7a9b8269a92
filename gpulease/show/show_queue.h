/*
 * --queue: the waiting tickets with the reason why each waits, the jobs that run without a GPU, and
 * the jobs that use more memory than they declared.  Pure but for memory; local times follow $TZ.
 *
 * The columns of the tables are job_columns[] and gpuless_columns[] in show_queue.c.
 *
 * JSON, an object (json_members.h says what holds for all JSON of gpulease):
 *	format              "gpulease-queue/1"
 *	taken_unix_ms       integer
 *	state_directory     string
 *	queue               array of objects, in the order in which the plan takes them
 *	    position        integer, from 1
 *	    ticket          integer: the id of the job
 *	    attempt         integer: which attempt of the job waits, from 1
 *	    name            string | null
 *	    user            string
 *	    pid             integer | null
 *	    gpus            integer: how many it needs
 *	    share           number | null: the part of each, below 1; null: none declared
 *	    vram_mib        integer | null: declared memory of each
 *	    exclusive       boolean: it needs whole GPUs
 *	    priority        integer; a higher one comes earlier
 *	    after, after_ok    arrays of integers: jobs that have to end or start first
 *	    singleton       boolean: earlier jobs of its user and name have to end first
 *	    limit_ms        integer | null
 *	    since_unix_ms, waits_ms    integer
 *	    begin_at_unix_ms    integer | null: the time of --begin
 *	    on_hold         boolean: it does not start before --release
 *	    start_at_unix_ms    integer | null: when it would start if all others ran to
 *	                    their limits; null: cannot be known
 *	    can_start       boolean: nothing keeps it from starting
 *	    stopped         boolean: its process is stopped, so the plan passes over it
 *	    stuck           string | null: why its process cannot act, so that the plan passes
 *	                    over it: "nvidia-smi:TEXT" (its nvidia-smi fails), "turn:" (its turns
 *	                    do not end), "lock:GPU" (it cannot lock the GPU's file), "gpu:GPU"
 *	                    (its nvidia-smi does not show the GPU)
 *	    reason_kind     "leased": leases have to end first | "behind": another job comes
 *	                    first | "gpu": a GPU is kept by something else than a lease | "held":
 *	                    a job has to end first, or its next attempt is not due | "limit": a
 *	                    limit of the configuration | null: it can start
 *	    behind          integer | null: the ticket that comes first
 *	    held_by         integer | null: the job that has to end first
 *	    limit_line      integer | null: the line of [limits] whose limit keeps it
 *	    why             string: why it waits, in words
 *	    command         string | null: may not be shown to this user
 *	queue_is_cut        boolean: more tickets wait than are listed
 *	running_without_gpus    array of objects: jobs that run on no GPU; ticket, attempt, name,
 *	                    user, pid, command, age_ms, started_unix_ms, limit_ms as in
 *	                    show_status.h
 *	over_declared       array of integers: the jobs that use more of a GPU than they have
 *	                    declared plus the tolerance
 */
#ifndef GPULEASE_SHOW_QUEUE_H
#define GPULEASE_SHOW_QUEUE_H

#include "render_json.h"
#include "render_table.h"
#include "view.h"

#define NO_JOB_WAITS "no job waits"

/*
 * Prints the tables, or @if_none in the place of the first one if no job waits.  Returns 0, or
 * -ENOMEM after part of it was printed.
 */
MUST_CHECK int show_waiting(const struct view *view, const char *if_none,
	const struct table_style *style, FILE *out);

/* Likewise for --queue, which says how many jobs run if no job waits. */
MUST_CHECK int show_queue(
	const struct view *view, const struct table_style *style, FILE *out);

/* Prints a line for each job that runs and uses more than it has declared. */
void show_excess(const struct view *view, const struct table_style *style, FILE *out);

/* Prints the JSON above. */
void show_queue_json(const struct view *view, FILE *out);

/* Prints the member reason_kind. */
void member_reason(struct json *json, enum verdict_kind verdict);

/* Prints the members queue, queue_is_cut and running_without_gpus of the object that is open. */
void member_queue(struct json *json, const struct view *view);

/* Prints an object of ->queue. */
void json_put_job(struct json *json, const struct view *view, const struct view_job *job);

/* Prints the members ticket, attempt, name, user, pid, command and times of a job that runs. */
void member_holder(
	struct json *json, const struct view *view, const struct view_holder *holder);

#endif

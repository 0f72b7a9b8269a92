/*
 * --status ID: all that is known of one job, as lines for people and as JSON.  Pure but for memory;
 * local times follow $TZ.
 *
 * JSON, an object (json_members.h says what holds for all JSON of gpulease):
 *	format              "gpulease-job/1"
 *	taken_unix_ms, state_directory    as in show_status.h
 *	jobs                array of objects, in the order in which they were named
 *	    ticket          integer: the id of the job
 *	    state           "waiting" | "running" | "lingering" | as in show_history.h
 *	    command         string | null: may not be shown to this user, or is not known
 *	    log             string | null: the file with its output
 *	    waiting         object as in ->queue of show_queue.h | null
 *	    running         object as in ->leases of show_status.h | null
 *	    gpus, uuids     arrays of the indices and UUIDs of the GPUs that it runs on
 *	    ended           array of objects as in ->jobs of show_history.h: its attempts that
 *	                    have ended, the latest last
 */
#ifndef GPULEASE_SHOW_JOB_H
#define GPULEASE_SHOW_JOB_H

#include "job_view.h"
#include "render_table.h"

/* Prints the lines of @job, which is known. */
void show_job(const struct view *view, const struct job_view *job,
	const struct table_style *style, FILE *out);

/* Prints the JSON above, of the jobs that are known. */
void show_jobs_json(const struct job_views *jobs, FILE *out);

#endif

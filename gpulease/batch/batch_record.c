#include <errno.h>
#include <signal.h>

#include "batch_adopt.h"
#include "batch_record.h"
#include "clock.h"
#include "diag.h"

enum { WRITE_ENDS_MS = 10 * 1000 }; /* between two attempts to write missing ends */

/* --- events ------------------------------------------------------------------------ */

void batch_record_apply(struct batch_runner *runner, const struct batch_event *event)
{
	struct batch_job *job = NULL;

	if (event->job) {
		int r = batch_jobs_apply(&runner->jobs, event);

		if (r < 0) {
			verbose("an event of entry %llu is ignored: %s",
				(unsigned long long)event->job, strerror(-r));
			return;
		}
		job = batch_jobs_find(&runner->jobs, event->job);
		job->is_from_earlier = job->is_unwritten = false;
		if (event->kind == BATCH_STARTED || event->kind == BATCH_OVER)
			runner->put_off_ms = 0; /* one ticket less waits */
	}
	batch_show_event(&runner->show, event, job, &runner->board);
}

/* Writes @event to the journal.  Returns 0 or a negative errno, of which it prints the first. */
static int record_write(struct batch_runner *runner, const struct batch_event *event)
{
	int r = batch_journal_append(runner->journal.fd, event);

	if (r < 0 && !runner->has_journal_failed) {
		batch_show_clear(&runner->show);
		diag("cannot write the journal in '%s': %s", runner->journal.folder,
			strerror(-r));
	}
	runner->has_journal_failed = r < 0;
	return r;
}

int batch_record_event(struct batch_runner *runner, struct batch_event *event)
{
	int r = 0;

	if (!event->at_ms)
		event->at_ms = clock_real_ms();
	if (batch_event_is_kept(event->kind))
		r = record_write(runner, event);
	/* the next runner could not find this job, so it must not exist: its line stays new */
	if (r < 0 && event->kind == BATCH_SEEN)
		return r;
	batch_record_apply(runner, event);
	if (r < 0 && event->kind == BATCH_OVER) {
		batch_jobs_find(&runner->jobs, event->job)->is_unwritten = true;
		runner->write_ends_ms = clock_boot_ms() + WRITE_ENDS_MS;
	}
	return r;
}

/* Returns the event for the end of @job, made of what is known of the job. */
static struct batch_event record_end_of(const struct batch_job *job)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, job->number);

	event.at_ms = job->ended_ms;
	event.cause = job->cause;
	event.status = job->status;
	event.is_by_line = job->is_by_line;
	event.ticket = job->ticket;
	event.slurm_job = job->slurm_job;
	event.attempt = job->attempt;
	event.declared_mib = job->declared_mib;
	event.vram_mib = job->vram_mib;
	event.peak_mib = job->peak_mib;
	event.spans_run = job->spans_run;
	event.limit_ms = job->limit_ms;
	event.waited_ms = job->waited_ms;
	event.ran_ms = job->ran_ms;
	event.busy_mean = job->busy_mean;
	event.busy_peak = job->busy_peak;
	text_copy(event.name, sizeof(event.name), job->name);
	text_copy(event.gpus, sizeof(event.gpus), job->gpus);
	text_copy(event.text, sizeof(event.text), job->reason ? job->reason : "");
	return event;
}

/*
 * Whether the journal lacks the end of @job.  A job that is to be run again needs no event, because
 * the journal has no end of it.
 */
static bool has_missing_end(const struct batch_job *job)
{
	return job->is_unwritten && job->state == BATCH_ENDED;
}

int batch_record_missing_ends(struct batch_runner *runner)
{
	runner->write_ends_ms = 0;
	for (size_t i = 0; i < runner->jobs.count; i++) {
		struct batch_job *job = &runner->jobs.all[i];
		struct batch_event event;
		int r;

		if (!has_missing_end(job))
			continue;
		event = record_end_of(job);
		r = record_write(runner, &event);
		if (r < 0) {
			runner->write_ends_ms = clock_boot_ms() + WRITE_ENDS_MS;
			return r;
		}
		job->is_unwritten = false;
	}
	return 0;
}

void batch_record_add_missing(const struct batch_runner *runner, struct text *out)
{
	uint64_t range[2] = { 0 };

	for (size_t i = 0; i < runner->jobs.count; i++)
		if (has_missing_end(&runner->jobs.all[i]))
			batch_add_number(runner->jobs.all[i].number, false, range, out);
	batch_add_number(0, true, range, out);
}

void batch_record_end(struct batch_runner *runner, struct batch_job *job,
	enum batch_cause cause, int status, const char *text)
{
	struct batch_event event = record_end_of(job);

	event.at_ms = 0; /* now */
	event.cause = cause;
	/* while the runner stops, the job has most likely obeyed TERM: it is to be run again */
	event.is_interrupted =
		runner->stop_count &&
		(cause == BATCH_IS_LOST || (cause == BATCH_ITSELF && status != 0));
	event.is_by_line = job->is_cancelling && cause == BATCH_BY_CANCEL;
	if (job->line)
		job->line_hash = batch_line_hash(job->line);
	event.status = status;
	text_copy(event.text, sizeof(event.text), text);
	(void)!batch_record_event(runner, &event);
}

/*
 * --log and --follow: print the log of a job of Slurm.
 */
#include <errno.h>
#include <sys/stat.h>

#include "diag.h"
#include "engine_follow.h"
#include "engine_poll.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "job_operands.h"
#include "log_reader.h"

static int keep_id(void *arg, uint64_t id, const struct cluster_job *known)
{
	(void)known;
	*(uint64_t *)arg = id;
	return 0;
}

/* Says why there is no log.  Returns the exit status. */
static int explain_none(uint64_t id)
{
	struct engine_poll poll = ENGINE_POLL_NONE;
	const struct polled_job *job;
	bool is_unknown = false, is_foreign = false;
	int r = engine_poll_add(&poll, id);

	while (r == 0 && poll.left && !poll.silent_ms) {
		r = engine_poll_wait(&poll, INT64_MAX, -1);
		job = &poll.jobs[0];
		is_unknown = job->is_unknown;
		is_foreign = job->uid != getuid();
		if (job->state)
			break;
	}
	engine_poll_release(&poll);
	if (is_unknown)
		diag("job %llu is unknown; --status and --history list the jobs",
			(unsigned long long)id);
	else if (is_foreign)
		diag("job %llu belongs to another user, and so does its log",
			(unsigned long long)id);
	else
		diag("job %llu has no log: it does not run yet, it was not started with "
		     "--submit, or its log was removed",
			(unsigned long long)id);
	return EXIT_NOT_DONE;
}

static int show(uint64_t id)
{
	struct log_reader log;
	struct stat st;
	int r = log_reader_begin(&log, id);

	if (r == 0)
		r = log_reader_print(&log);
	if (r == 0 && log.fd < 0)
		r = explain_none(id);
	else if (r == 0 && fstat(log.fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		diag("the output of job %llu goes to no regular file, so none of it was "
		     "kept",
			(unsigned long long)id);
		r = EXIT_NOT_DONE;
	}
	log_reader_end(&log);
	return r;
}

int engine_log(struct engine_line *line)
{
	uint64_t id = 0;
	int status = 0;
	int r = job_operands_each(line, OPERAND_NAME, keep_id, &id, &status);

	if (r != 0 || status != 0)
		return r ? r : status;
	return line->settings.verb.kind == VERB_FOLLOW ? engine_follow(id, false)
						       : show(id);
}

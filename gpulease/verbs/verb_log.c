/*
 * --log and --follow: print the log of a background job.
 */
#include "joblog_follow.h"
#include "named_job.h"
#include "shared_state.h"
#include "verbs.h"

/* Calls @act for the job that the operand names.  Returns the exit status. */
static int call_for_job(struct settings *settings,
	int (*act)(const struct context *context, uint64_t job))
{
	static struct context context;
	static struct queue queue;
	static struct snapshot view;
	struct operand_walk walk = OPERAND_WALK(
		settings->verb.operands, settings->verb.operand_count, OPERAND_NAME);
	struct operand operand = { .first = 0 };
	int r;

	/* verb_operands_settle() has checked that it can be read */
	(void)!operand_next(&walk, &operand, NULL);
	r = operand.word ? shared_state_open(settings, true, &context, &queue, &view)
			 : context_open(settings, &context);
	if (r == 0 && operand.word)
		r = named_job_find(&context, &queue, &view, &operand);
	return r == 0 ? act(&context, operand.first) : r;
}

int verb_log(struct settings *settings)
{
	return call_for_job(settings, joblog_show);
}

int verb_follow(struct settings *settings)
{
	return call_for_job(settings, joblog_follow);
}

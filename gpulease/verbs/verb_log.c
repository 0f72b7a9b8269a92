/*
 * --log and --follow: print the log of a background job.
 */
#include "context.h"
#include "joblog_follow.h"
#include "rlimits.h"
#include "operands.h"
#include "verbs.h"

/* Calls @act for the job that the operand names.  Returns the exit status. */
static int call_for_job(struct settings *settings,
	int (*act)(const struct context *context, uint64_t job))
{
	static struct context context;
	struct operand_walk walk = OPERAND_WALK(
		settings->verb.operands, settings->verb.operand_count, OPERAND_JOB);
	struct operand operand = { .first = 0 };
	int r = context_open(settings, &context);

	/* verb_operands_settle() has checked that it can be read */
	(void)!operand_next(&walk, &operand, NULL);
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

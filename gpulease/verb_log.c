/*
 * --log and --follow: the output of a background job.
 */
#include "context.h"
#include "follow.h"
#include "limits.h"
#include "operands.h"
#include "verbs.h"

static int with_job(struct settings *settings,
	int (*act)(const struct context *context, uint64_t job))
{
	static struct context context;
	struct operand_walk walk =
		OPERAND_WALK(settings->operands, settings->operand_count, OPERAND_JOB);
	struct operand operand = { .first = 0 };
	int r = context_open(settings, &context);

	/* its form was checked with the command line */
	(void)!operand_next(&walk, &operand, NULL);
	return r == 0 ? act(&context, operand.first) : r;
}

int verb_log(struct settings *settings)
{
	return with_job(settings, show_log);
}

int verb_follow(struct settings *settings)
{
	return with_job(settings, follow);
}

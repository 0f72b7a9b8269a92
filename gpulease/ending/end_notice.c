#include "end_notice.h"
#include "diag.h"
#include "parse.h"

void end_notice_limit(uint64_t job, bool is_step, int64_t limit_ms, int64_t grace_ms)
{
	char limit[DURATION_SIZE], grace[DURATION_SIZE];

	format_duration(limit_ms, limit);
	format_duration(grace_ms, grace);
	note("%sjob %llu has reached its time limit of %s: TERM now, KILL after %s",
		is_step ? "a step of " : "", (unsigned long long)job, limit, grace);
}

void end_notice_preemption(uint64_t job)
{
	char whose[64] = "a window begins on";

	if (job)
		(void)snprintf(whose, sizeof(whose),
			"job %llu, which has a higher priority, gets",
			(unsigned long long)job);
	note("%s the GPUs; this job goes back into the queue", whose);
}

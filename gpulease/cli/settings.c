#include "settings.h"

bool is_supervision_wanted(const struct settings *s)
{
	return s->care.warn_signal || s->care.on_limit != ON_LIMIT_KILL ||
	       s->care.preemptible || s->care.retries || s->care.oom_retries ||
	       s->output.report || s->environment.submit || s->environment.screen;
}

bool are_tasks_wanted(const struct settings *s)
{
	return s->tasks.count > 1 || s->tasks.labels || s->tasks.in_script;
}

bool has_own_usage(const struct run_request *request)
{
	for (unsigned i = 0; i < OWN_THRESHOLDS; i++)
		if (request->thresholds[i] && i != OWN_TOLERANCE)
			return true;
	return false;
}

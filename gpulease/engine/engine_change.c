/*
 * --release, --requeue and --extend, with scontrol.
 */
#include <stdio.h>
#include <string.h>

#include "diag.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "job_operands.h"
#include "slurm_ask.h"

enum { MINUTE_MS = 60 * 1000 };

struct change {
	const struct verb_settings *verb;
	int status;
};

/* Changes job @id.  Returns 0, also after a message of scontrol, or an exit status. */
static int change_job(void *arg, uint64_t id, const struct cluster_job *known)
{
	struct change *change = arg;
	enum verb kind = change->verb->kind;
	bool extends = kind == VERB_EXTEND;
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	int r;

	(void)known;
	slurm_words_add(&words, "scontrol");
	slurm_words_add(&words, extends                ? "update"
				: kind == VERB_REQUEUE ? "requeue"
						       : "release");
	if (!extends) {
		slurm_words_addf(&words, "%llu", (unsigned long long)id);
	} else {
		slurm_words_addf(&words, "JobId=%llu", (unsigned long long)id);
		/* in minutes, rounded up */
		slurm_words_addf(&words, "TimeLimit=+%lld",
			(long long)((change->verb->extend_ms + MINUTE_MS - 1) /
				    MINUTE_MS));
	}
	r = slurm_ask(&words, -1, SLURM_DEADLINE_MS, &answer);
	slurm_words_release(&words);
	if (r != 0)
		return r;
	if (answer.status) {
		diag("job %llu: %s%s", (unsigned long long)id, answer.error,
			extends && strcasestr(answer.error, "denied")
				? "; Slurm lets only its operators prolong a limit"
				: "");
		change->status = EXIT_NOT_DONE;
	}
	answer_release(&answer);
	return 0;
}

int engine_change(struct engine_line *line)
{
	struct change change = { .verb = &line->settings.verb };
	int r;

	/* the last operand is the time */
	if (line->settings.verb.kind == VERB_EXTEND)
		line->settings.verb.operand_count--;
	r = job_operands_each(line, OPERAND_JOB, change_job, &change, &change.status);
	return r ? r : change.status;
}

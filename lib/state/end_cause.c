#include <signal.h>

#include "end_cause.h"

enum {
	OWN = -2,      /* the status of the command counts */
	GAVE_UP = 124, /* as of timeout(1) */
};

static const struct {
	char word[16];
	enum end_state state; /* END_UNKNOWN: the status decides */
	int instead;          /* counts in the place of 0 and of no status */
	bool is_always;       /* ->instead counts whatever the status is */
} rules[END_CAUSES] = {
	[CAUSE_ITSELF] = { "", END_UNKNOWN, OWN, false },
	[CAUSE_LIMIT] = { HISTORY_LIMIT, END_TIMED_OUT, GAVE_UP, true },
	[CAUSE_CANCEL] = { HISTORY_CANCEL, END_CANCELLED, 128 + SIGTERM, false },
	[CAUSE_PREEMPT] = { HISTORY_PREEMPT, END_PREEMPTED, 128 + SIGTERM, false },
	[CAUSE_UNUSED] = { HISTORY_UNUSED, END_TIMED_OUT, GAVE_UP, true },
	[CAUSE_REQUEUE] = { HISTORY_REQUEUE, END_REQUEUED, 128 + SIGTERM, false },
	[CAUSE_OOM] = { HISTORY_OOM, END_OOM, OWN, false },
	[CAUSE_REBOOT] = { HISTORY_REBOOT, END_LOST, STATUS_UNKNOWN, false },
	[CAUSE_LOST] = { HISTORY_LOST, END_LOST, STATUS_UNKNOWN, false },
	[CAUSE_LINGERED] = { HISTORY_LINGERED, END_UNKNOWN, OWN, false },
};

const char *end_cause_word(enum end_cause cause)
{
	return rules[cause].word;
}

enum end_cause end_cause_of_word(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (strcmp(rules[i].word, word) == 0)
			return (enum end_cause)i;
	return CAUSE_ITSELF;
}

int end_cause_status(enum end_cause cause, int status)
{
	bool is_own =
		rules[cause].instead == OWN || (status > 0 && !rules[cause].is_always);

	return is_own ? status : rules[cause].instead;
}

enum end_state end_cause_state(enum end_cause cause, int status)
{
	if (rules[cause].state != END_UNKNOWN || status < 0)
		return rules[cause].state;
	return status == 0 ? END_FINISHED : END_FAILED;
}

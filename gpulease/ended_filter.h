/*
 * Which of the jobs that have ended --history and --accounting are asked for.
 */
#ifndef GPULEASE_ENDED_FILTER_H
#define GPULEASE_ENDED_FILTER_H

#include "cli.h"
#include "history.h"

/* The texts are the command line's. */
struct ended_filter {
	const char *user; /* NULL: any */
	bool has_uid;     /* of ->user; what has no name on record has this at least */
	uint32_t uid;
	const char *name;          /* the same, as far as it is kept; NULL: any */
	unsigned states;           /* a bit for each enum end_state; 0: any */
	int64_t from_ms, until_ms; /* CLOCK_REALTIME; 0, INT64_MAX: any */
};

/*
 * What @settings ask for.  Looks for a user's number in /etc/passwd.  0, or -EINVAL with the
 * reason in @why.
 */
MUST_CHECK int ended_filter_make(
	const struct settings *settings, struct ended_filter *ret, struct why *why);

/*
 * Whether @end, of which no more is left than may be shown, is one of them: A job is of a time if
 * it was there for any part of it; one of which no time is known is of none.  Pure.
 */
bool ended_filter_admits(
	const struct ended_filter *filter, const struct history_end *end);

/* Whether any is asked for.  Pure. */
bool ended_filter_is_open(const struct ended_filter *filter);

/*
 * Reads "finished,oom" into the bits of those states.  0, or -EINVAL with what there are in
 * @why.  Pure.
 */
MUST_CHECK int ended_states_parse(const char *list, unsigned *ret, struct why *why);

#endif

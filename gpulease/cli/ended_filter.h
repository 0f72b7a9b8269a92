/*
 * Which ended jobs --history and --accounting show: --user, --name, --state, --since, --until.
 */
#ifndef GPULEASE_ENDED_FILTER_H
#define GPULEASE_ENDED_FILTER_H

#include "settings.h"
#include "history.h"

/* The texts point into the command line. */
struct ended_filter {
	const char *user;          /* NULL: any */
	bool has_uid;              /* ->uid is the number of ->user */
	uint32_t uid;              /* finds records that have no user name */
	const char *name;          /* NULL: any */
	unsigned states;           /* a bit for each enum end_state; 0: any */
	int64_t from_ms, until_ms; /* CLOCK_REALTIME; 0, INT64_MAX: any */
};

/*
 * Sets *@ret to what @settings ask for.  Looks up the number of a user in /etc/passwd.  Returns 0,
 * or -EINVAL with the message in @why.
 */
MUST_CHECK int ended_filter_make(
	const struct settings *settings, struct ended_filter *ret, struct why *why);

/*
 * Whether the filter lets @end through.  A job is in a span of time if it ran or waited during any
 * part of it; a job without a recorded time is in none.  An event has neither a name nor one of
 * the states.  @end must hold only what this user may be
 * shown, or the filter would reveal the rest.  Pure.
 */
bool ended_filter_admits(
	const struct ended_filter *filter, const struct history_end *end);

/* Whether the filter lets every job through.  Pure. */
bool ended_filter_is_open(const struct ended_filter *filter);

/*
 * Reads a list such as "finished,oom" into a bit for each enum end_state.  Returns 0, or -EINVAL;
 * @why then lists the states that exist.  Pure.
 */
MUST_CHECK int ended_states_parse(const char *list, unsigned *ret, struct why *why);

#endif

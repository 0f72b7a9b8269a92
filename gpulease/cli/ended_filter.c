#include <errno.h>
#include <strings.h>

#include "ended_filter.h"
#include "local_user.h"
#include "parse.h"

/* --- states ------------------------------------------------------------------------ */

/* Returns the bit of the state with the name of @size bytes at @word; 0 if there is none. */
static unsigned ended_filter_state_bit(const char *word, size_t size)
{
	for (unsigned state = 0; state < END_STATES; state++)
		if (strlen(end_state_names[state]) == size &&
			strncasecmp(end_state_names[state], word, size) == 0)
			return 1u << state;
	return 0;
}

int ended_states_parse(const char *list, unsigned *ret, struct why *why)
{
	unsigned states = 0;
	char names[128];
	struct text all = TEXT_ON(names);

	for (;;) {
		size_t size = strcspn(list, ",");
		unsigned bit = ended_filter_state_bit(list, size);

		if (!bit)
			break;
		states |= bit;
		list += size;
		if (!*list++) {
			*ret = states;
			return 0;
		}
	}
	for (unsigned state = 0; state < END_STATES; state++)
		text_addf(&all, "%s%s", state ? ", " : "", end_state_names[state]);
	why_set(why, "'%s' is not a state; the states are %s",
		quote_bytes(list, strcspn(list, ",")).text, names);
	return -EINVAL;
}

/* --- the filter --------------------------------------------------------------------- */

int ended_filter_make(
	const struct settings *settings, struct ended_filter *ret, struct why *why)
{
	struct ended_filter filter = {
		.user = settings->verb.user,
		.name = settings->request.name,
		.from_ms = settings->verb.from_ms,
		.until_ms = settings->verb.until_ms,
	};

	if (filter.from_ms > filter.until_ms) {
		why_set(why, "--since is later than --until; swap them");
		return -EINVAL;
	}
	if (settings->verb.states &&
		ended_states_parse(settings->verb.states, &filter.states, why) < 0)
		return -EINVAL;
	filter.has_uid = filter.user && local_user_number(filter.user, &filter.uid);
	*ret = filter;
	return 0;
}

static bool ended_filter_has_user(
	const struct ended_filter *filter, const struct history_end *end)
{
	if (!filter->user || strcmp(end->user, filter->user) == 0)
		return true;
	return filter->has_uid && end->uid == filter->uid;
}

static bool ended_filter_has_span(const struct ended_filter *filter)
{
	return filter->from_ms > 0 || filter->until_ms < INT64_MAX;
}

static bool ended_filter_has_time(
	const struct ended_filter *filter, const struct history_end *end)
{
	/* a window is set before it begins */
	int64_t begun_ms = end->since_ms > 0 && end->since_ms < end->gone_ms
				   ? end->since_ms
				   : end->gone_ms;

	if (!ended_filter_has_span(filter))
		return true;
	return end->gone_ms > 0 && end->gone_ms >= filter->from_ms &&
	       begun_ms <= filter->until_ms;
}

bool ended_filter_admits(const struct ended_filter *filter, const struct history_end *end)
{
	if (filter->states && !(filter->states & 1u << history_state(end)))
		return false;
	return ended_filter_has_user(filter, end) && ended_filter_has_time(filter, end) &&
	       (!filter->name || (job_name_is_whole(end->name, end->name_hash) &&
					 strcmp(end->name, filter->name) == 0));
}

bool ended_filter_is_open(const struct ended_filter *filter)
{
	return !filter->user && !filter->name && !filter->states &&
	       !ended_filter_has_span(filter);
}

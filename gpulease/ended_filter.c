#include <errno.h>
#include <pwd.h>
#include <strings.h>

#include "cli_table.h"
#include "ended_filter.h"
#include "parse.h"

/* --- states ------------------------------------------------------------------------ */

static unsigned bit_of_state(const char *word, size_t size)
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
		unsigned bit = bit_of_state(list, size);

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
	why_set(why, "'%s' is no state; there are %s",
		quote_bytes(list, strcspn(list, ",")).text, names);
	return -EINVAL;
}

int read_states(const char *value, void *at, struct why *why)
{
	unsigned states;

	if (ended_states_parse(value, &states, why) < 0)
		return -EINVAL;
	*(const char **)at = value;
	return 0;
}

/* --- all of it --------------------------------------------------------------------- */

static bool find_uid(const char *user, uint32_t *ret)
{
	struct passwd *entry;
	bool found = false;
	uint64_t uid;
	FILE *file;

	if (parse_u64(user, UINT32_MAX, &uid, NULL) == 0) {
		*ret = (uint32_t)uid;
		return true;
	}
	file = fopen("/etc/passwd", "re");
	if (!file)
		return false;
	while (!found && (entry = fgetpwent(file))) {
		found = strcmp(entry->pw_name, user) == 0;
		*ret = entry->pw_uid;
	}
	(void)fclose(file);
	return found;
}

int ended_filter_make(
	const struct settings *settings, struct ended_filter *ret, struct why *why)
{
	struct ended_filter filter = {
		.user = settings->user,
		.name = settings->name,
		.from_ms = settings->from_ms,
		.until_ms = settings->until_ms,
	};

	if (filter.from_ms > filter.until_ms) {
		why_set(why, "--since is later than --until");
		return -EINVAL;
	}
	if (settings->states &&
		ended_states_parse(settings->states, &filter.states, why) < 0)
		return -EINVAL;
	filter.has_uid = filter.user && find_uid(filter.user, &filter.uid);
	*ret = filter;
	return 0;
}

static bool is_of_user(const struct ended_filter *filter, const struct history_end *end)
{
	if (!filter->user || strcmp(end->user, filter->user) == 0)
		return true;
	return filter->has_uid && end->uid == filter->uid;
}

static bool has_times(const struct ended_filter *filter)
{
	return filter->from_ms > 0 || filter->until_ms < INT64_MAX;
}

static bool is_of_time(const struct ended_filter *filter, const struct history_end *end)
{
	int64_t begun_ms = end->since_ms > 0 ? end->since_ms : end->gone_ms;

	if (!has_times(filter))
		return true;
	return end->gone_ms > 0 && end->gone_ms >= filter->from_ms &&
	       begun_ms <= filter->until_ms;
}

/* A longer name is cut where it is kept. */
static bool is_called(const struct history_end *end, const char *name)
{
	return strncmp(end->name, name, sizeof(end->name) - 1) == 0;
}

bool ended_filter_admits(const struct ended_filter *filter, const struct history_end *end)
{
	if (filter->states && !(filter->states & 1u << history_state(end)))
		return false;
	return is_of_user(filter, end) && is_of_time(filter, end) &&
	       (!filter->name || is_called(end, filter->name));
}

bool ended_filter_is_open(const struct ended_filter *filter)
{
	return !filter->user && !filter->name && !filter->states && !has_times(filter);
}

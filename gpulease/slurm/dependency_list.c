#include <errno.h>

#include "dependency_list.h"
#include "parse.h"
#include "ticket.h"

/* What is refused here, because gpulease --dependency would not say enough. */
static const struct {
	const char *kind, *instead;
} refused[] = {
	{ "aftercorr:",
		"a task of an array cannot wait for a task of another one; write afterok:ID "
		"for the whole array" },
	{ "afterburstbuffer:", "there is no burst buffer; write afterany:ID" },
	{ "expand:", "gpulease jobs have the GPUs that they started with; leave it out" },
};

static int check_item(const char *item, struct why *why)
{
	if (strchr(item, '?')) {
		why_set(why,
			"'%s': gpulease waits for all of them, never for one of several; write "
			"commas instead of ?",
			quote(item).text);
		return -EINVAL;
	}
	if (strncmp(item, "after:", 6) == 0 && strchr(item, '+')) {
		why_set(why,
			"'%s': gpulease does not add minutes to the start of a job; leave "
			"'%s' out",
			quote(item).text, quote(strchr(item, '+')).text);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (strncmp(item, refused[i].kind, strlen(refused[i].kind)) == 0) {
			why_set(why, "'%s': %s", quote(item).text, refused[i].instead);
			return -EINVAL;
		}
	return 0;
}

/* Checks that the ticket has room for the ids: it has two lists, one of them for afterok. */
static int check_count(const char *value, struct why *why)
{
	unsigned ok = 0, others = 0, *count = &others;

	for (const char *at = value; *at; at++) {
		if (at == value || *at == ',')
			count = strncmp(at + (*at == ','), "afterok:", 8) == 0 ? &ok
									       : &others;
		*count += *at == ':';
	}
	if (ok <= AFTER_MAX && others <= AFTER_MAX)
		return 0;
	why_set(why,
		"%u jobs are too many: there can be %d for afterok and %d for the other "
		"kinds; name a whole array, or let jobs without GPUs wait for some of them",
		ok > AFTER_MAX ? ok : others, AFTER_MAX, AFTER_MAX);
	return -EINVAL;
}

int dependency_list_read(const char *value, struct dependency_list *ret, struct why *why)
{
	static const char not_ok[] = "afternotok:";
	char copy[DEPENDENCY_SIZE], *rest = copy, *item;
	struct text passed = TEXT_ON(ret->passed), ids = TEXT_ON(ret->not_ok);

	ret->passed[0] = ret->not_ok[0] = '\0';
	if (strlen(value) >= sizeof(copy)) {
		why_set(why, "'%s' is too long", quote(value).text);
		return -EINVAL;
	}
	if (check_count(value, why) < 0)
		return -EINVAL;
	text_copy(copy, sizeof(copy), value);
	while ((item = strsep(&rest, ","))) {
		char *id = item + sizeof(not_ok) - 1;

		if (check_item(item, why) < 0)
			return -EINVAL;
		text_add(&passed, passed.used ? "," : "");
		if (strncmp(item, not_ok, sizeof(not_ok) - 1) != 0) {
			text_add(&passed, item);
			continue;
		}
		text_addf(&passed, "afterany:%s", id);
		for (char *at = id; *at; at++)
			if (*at == ':')
				*at = ',';
		text_addf(&ids, "%s%s", ids.used ? "," : "", id);
	}
	return 0;
}

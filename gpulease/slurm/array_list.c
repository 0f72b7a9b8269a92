#include <errno.h>

#include "array_list.h"
#include "parse.h"

/* `first-last:step`; a single index is both. */
struct range {
	unsigned first, last, step;
};

/* Reads the digits at *@at, a number up to @max, and moves *@at past them. */
static bool take_number(const char **at, unsigned max, unsigned *ret)
{
	uint64_t number = 0;

	if (!is_digit(**at))
		return false;
	for (; is_digit(**at); ++*at) {
		number = number * 10 + (unsigned)(**at - '0');
		if (number > max)
			return false;
	}
	*ret = (unsigned)number;
	return true;
}

/* Reads the range at *@at, and moves *@at past it.  A step of 0 in @ret is a step not given. */
static bool take_range(const char **at, struct range *ret)
{
	if (!take_number(at, ARRAY_INDEX_MAX, &ret->first))
		return false;
	ret->last = ret->first;
	ret->step = 0;
	if (**at != '-')
		return true;
	++*at;
	if (!take_number(at, ARRAY_INDEX_MAX, &ret->last) || ret->last < ret->first)
		return false;
	if (**at != ':')
		return true;
	++*at;
	return take_number(at, ARRAY_INDEX_MAX, &ret->step) && ret->step;
}

/* Adds @index at its place.  Returns false if there is no room. */
static bool add_index(struct array_list *list, unsigned index)
{
	unsigned at = list->count;

	while (at && list->indices[at - 1] > index)
		at--;
	if (at && list->indices[at - 1] == index)
		return true;
	if (list->count == ARRAY_TASKS_MAX)
		return false;
	memmove(list->indices + at + 1, list->indices + at,
		(list->count - at) * sizeof(*list->indices));
	list->indices[at] = index;
	list->count++;
	return true;
}

static bool add_range(struct array_list *list, const struct range *range)
{
	unsigned step = range->step ? range->step : 1;

	if (range->step && !list->step)
		list->step = range->step;
	for (unsigned i = range->first; i <= range->last; i += step)
		if (!add_index(list, i))
			return false;
	return true;
}

int array_list_find(const struct array_list *list, unsigned index)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->indices[i] == index)
			return (int)i;
	return -1;
}

int array_list_read(const char *text, struct array_list *ret, struct why *why)
{
	bool has_bracket = *text == '[', is_more = true;
	struct array_list list = { .count = 0 };
	const char *at = text + has_bracket;
	struct range range;

	while (is_more && take_range(&at, &range)) {
		if (!add_range(&list, &range)) {
			why_set(why,
				"'%s' has more than %d tasks, the most that an array has; "
				"submit several arrays",
				quote(text).text, ARRAY_TASKS_MAX);
			return -EINVAL;
		}
		is_more = *at == ',';
		at += is_more;
	}
	is_more = is_more || (has_bracket && *at++ != ']');
	if (!is_more && *at == '%') {
		at++;
		is_more = !take_number(&at, UINT16_MAX, &list.limit);
	}
	if (is_more || *at) {
		why_set(why,
			"'%s' is no list of indices; write 0-9, 1,3,5-9:2, or 0-9%%3 for "
			"three at a time, with indices up to %d",
			quote(text).text, ARRAY_INDEX_MAX);
		return -EINVAL;
	}
	list.step = list.step ? list.step : 1;
	*ret = list;
	return 0;
}

bool array_list_read_id(
	const char *text, size_t size, uint64_t *ret_array, struct array_list *ret)
{
	char copy[256], *list;

	if (size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	list = strchr(copy, '_');
	if (!list)
		return false;
	*list++ = '\0';
	return (*list == '[' || !list[strspn(list, "0123456789")]) &&
	       parse_u64(copy, INT64_MAX, ret_array, NULL) == 0 &&
	       array_list_read(list, ret, NULL) == 0 && !ret->limit;
}

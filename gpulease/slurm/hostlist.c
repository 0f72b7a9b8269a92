#include <errno.h>

#include "hostlist.h"
#include "parse.h"

enum { DIGITS_MAX = 18, BRACKETS_MAX = 16 };

/* Numbers of a bracket, from the first to the last. */
struct range {
	unsigned long long first, last;
	int width; /* digits of the first, with its zeros */
};

/* --- reading ------------------------------------------------------------------------- */

/* Reads the digits at *@at into *@ret.  Returns how many there are. */
static int take_number(const char **at, unsigned long long *ret)
{
	int digits = 0;

	*ret = 0;
	for (; is_digit(**at) && digits < DIGITS_MAX; ++*at, digits++)
		*ret = *ret * 10 + (unsigned)(**at - '0');
	return digits;
}

/*
 * Reads the range at *@at, which is inside a bracket, and the comma behind it.  Returns whether it
 * is a range.  At the end of the bracket *@at is the bracket.
 */
static bool take_range(const char **at, struct range *ret)
{
	ret->width = take_number(at, &ret->first);
	ret->last = ret->first;
	if (!ret->width)
		return false;
	if (**at == '-') {
		++*at;
		if (!take_number(at, &ret->last) || ret->last < ret->first)
			return false;
	}
	if (**at == ']')
		return true;
	return *(*at)++ == ',' && is_digit(**at);
}

static int digits_of(unsigned long long number)
{
	int digits = 1;

	while (number >= 10) {
		number /= 10;
		digits++;
	}
	return digits;
}

static bool is_between_items(char c)
{
	return c == ',' || c == '\n' || is_blank(c);
}

/* Moves *@at to the next item.  Returns false if there is none. */
static bool find_item(const char **at)
{
	while (is_between_items(**at))
		++*at;
	return **at;
}

/* What an item means. */
struct item {
	const char *end;
	unsigned long long hosts;
	size_t length; /* of the longest name */
	unsigned brackets;
};

/* Reads the bracket behind *@at.  Returns what is wrong with it, or NULL. */
static const char *measure_bracket(const char **at, struct item *item)
{
	unsigned long long numbers = 0;
	int longest = 0;
	struct range range;

	if (++item->brackets > BRACKETS_MAX)
		return "it has too many brackets";
	do {
		if (!take_range(at, &range))
			return "its brackets must hold numbers and ranges, as in [1-3,7]";
		if (range.last - range.first >= HOSTLIST_HOSTS_MAX)
			return "it means too many hosts";
		numbers += range.last - range.first + 1;
		if (digits_of(range.last) > longest)
			longest = digits_of(range.last);
		if (range.width > longest)
			longest = range.width;
		if (numbers > HOSTLIST_HOSTS_MAX)
			return "it means too many hosts";
	} while (**at != ']');
	++*at;
	item->hosts *= numbers;
	item->length += (size_t)longest;
	return item->hosts > HOSTLIST_HOSTS_MAX ? "it means too many hosts" : NULL;
}

/* Reads the item at @at.  Returns what is wrong with it, or NULL. */
static const char *measure(const char *at, struct item *ret)
{
	const char *fault = NULL;

	*ret = (struct item){ .hosts = 1 };
	while (!fault && *at && !is_between_items(*at)) {
		char c = *at++;

		if (c == '[')
			fault = measure_bracket(&at, ret);
		else if (c == ']')
			fault = "a bracket is not open";
		else
			ret->length++;
	}
	ret->end = at;
	if (!fault && ret->length >= HOSTLIST_NAME_SIZE)
		fault = "a name in it is too long";
	return fault;
}

/* --- expanding ----------------------------------------------------------------------- */

struct expansion {
	void (*take)(const char *name, void *context);
	void *context;
	char name[HOSTLIST_NAME_SIZE];
};

/* Takes each name that begins with ->name up to @used and goes on as the item from @at to @end. */
static void expand(struct expansion *to, const char *at, const char *end, size_t used)
{
	const char *behind;
	struct range range;

	while (at < end && *at != '[')
		to->name[used++] = *at++;
	if (at == end) {
		to->name[used] = '\0';
		to->take(to->name, to->context);
		return;
	}
	behind = strchr(++at, ']') + 1;
	while (*at != ']' && take_range(&at, &range))
		for (unsigned long long i = range.first; i <= range.last; i++) {
			int size = snprintf(to->name + used, sizeof(to->name) - used,
				"%0*llu", range.width, i);

			expand(to, behind, end, used + (size_t)size);
		}
}

int hostlist_expand(const char *list, void (*take)(const char *name, void *context),
	void *context, size_t *ret_count, struct why *why)
{
	struct expansion to = { .take = take, .context = context };
	unsigned long long count = 0;
	struct item item;

	for (const char *at = list; find_item(&at); at = item.end) {
		const char *fault = measure(at, &item);

		count += item.hosts;
		if (!fault && count > HOSTLIST_HOSTS_MAX)
			fault = "it means too many hosts";
		if (fault) {
			why_set(why, "Invalid hostlist: %s: %s", quote(list).text, fault);
			return -EINVAL;
		}
	}
	for (const char *at = list; find_item(&at); at = item.end) {
		(void)measure(at, &item);
		expand(&to, at, item.end, 0);
	}
	*ret_count = (size_t)count;
	return 0;
}

/* --- folding ------------------------------------------------------------------------- */

/* Writes the range that is left, of a group that goes on. */
static void write_range(struct hostlist_fold *fold)
{
	if (fold->has_bracket)
		(void)fputc(',', fold->out);
	else
		(void)fprintf(fold->out, "%.*s[", (int)fold->prefix, fold->name);
	fold->has_bracket = true;
	(void)fprintf(fold->out, "%0*llu", fold->width, fold->first);
	if (fold->last > fold->first)
		(void)fprintf(fold->out, "-%0*llu", fold->width, fold->last);
}

/* Writes what is left of the group. */
static void end_group(struct hostlist_fold *fold)
{
	if (!fold->has_name)
		return;
	if (fold->width && (fold->has_bracket || fold->last > fold->first)) {
		write_range(fold);
		(void)fputc(']', fold->out);
	} else {
		(void)fputs(fold->name, fold->out);
	}
	fold->has_name = fold->has_bracket = false;
	fold->has_item = true;
}

/* Whether the name with @prefix bytes before its last number belongs to the group of the last. */
static bool is_in_group(
	const struct hostlist_fold *fold, const char *name, size_t prefix, int width)
{
	return fold->has_name && fold->width && width && prefix == fold->prefix &&
	       memcmp(name, fold->name, prefix) == 0;
}

void hostlist_fold(struct hostlist_fold *fold, const char *name)
{
	size_t prefix = strlen(name);
	unsigned long long number;
	const char *digits;
	char next[DIGITS_MAX + 3];
	int width;

	while (prefix && is_digit(name[prefix - 1]))
		prefix--;
	digits = name + prefix;
	width = take_number(&digits, &number);
	if (*digits) /* too long for a number */
		width = 0;
	(void)snprintf(next, sizeof(next), "%0*llu", fold->width, fold->last + 1);
	if (!is_in_group(fold, name, prefix, width)) {
		end_group(fold);
		if (fold->has_item)
			(void)fputc(',', fold->out);
	} else if (strcmp(next, name + prefix) == 0) {
		fold->last = number;
		return;
	} else {
		write_range(fold);
	}
	text_copy(fold->name, sizeof(fold->name), name);
	fold->prefix = prefix;
	fold->first = fold->last = number;
	fold->width = width;
	fold->has_name = true;
}

void hostlist_fold_end(struct hostlist_fold *fold)
{
	end_group(fold);
}

#include <errno.h>
#include <strings.h>

#include "childenv.h"
#include "parse.h"

/*
 * What a command gets without ALL: it still knows its user and home, finds programs, and gpulease
 * started from it finds the state directory.
 */
static const char always[] = "HOME,LANG,LC_ALL,LOGNAME,PATH=/usr/local/bin:/usr/bin:/bin,"
			     "SHELL,TERM,TZ,USER,XDG_STATE_HOME,";

/* --- lists ------------------------------------------------------------------------- */

/* One item of the filter, `NAME` or `NAME=VALUE`; sizes in bytes. */
struct item {
	const char *name;
	size_t name_size, size; /* of NAME, of the whole item */
};

/* Removes the first item from *@list, which becomes NULL after the last one. */
static bool filter_next_item(const char **list, struct item *ret)
{
	if (!*list)
		return false;
	ret->name = *list;
	ret->size = strcspn(*list, ",");
	ret->name_size = strcspn(*list, ",=");
	*list = (*list)[ret->size] ? *list + ret->size + 1 : NULL;
	return true;
}

static bool has_value(const struct item *item)
{
	return item->size > item->name_size;
}

static bool is_word(const struct item *item, const char *word)
{
	return item->size == strlen(word) &&
	       strncasecmp(item->name, word, item->size) == 0;
}

static bool is_variable_name(const struct item *item)
{
	return item->name_size && (item->name[0] < '0' || item->name[0] > '9') &&
	       strspn(item->name, NAME_BYTES) >= item->name_size;
}

int childenv_check(const char *list, struct why *why)
{
	const char *rest = list;
	struct item item;

	while (filter_next_item(&rest, &item)) {
		bool is_first = item.name == list;

		if (is_word(&item, "NONE") && !(is_first && !rest)) {
			why_set(why,
				"NONE must be the only item; without ALL, only the named "
				"variables pass anyway");
			return -EINVAL;
		}
		if (is_variable_name(&item))
			continue;
		why_set(why, "'%s' is not ALL, NONE, NAME or NAME=VALUE%s",
			quote_bytes(item.name, item.size).text,
			is_first
				? ""
				: "; a value here cannot contain a comma; write gpulease "
				  "env NAME=A,B command");
		return -EINVAL;
	}
	return 0;
}

/* --- environments ------------------------------------------------------------------ */

/* The rules for each variable; see childenv_make(). */
struct filter {
	const char *const *without, *const *kept;
	const char *list;
	bool is_all;
	const struct childenv_change *changes;
	size_t count;
};

/* Whether @entry, `NAME=VALUE`, sets the variable with the @size bytes at @name as its name. */
static bool entry_sets(const char *entry, const char *name, size_t size)
{
	return strncmp(entry, name, size) == 0 && entry[size] == '=';
}

static bool filter_changes(const struct filter *filter, const char *entry)
{
	for (size_t i = 0; i < filter->count; i++) {
		const char *name = filter->changes[i].name;

		if (!filter->changes[i].is_default &&
			entry_sets(entry, name, strlen(name)))
			return true;
	}
	return false;
}

/* Finds the last item of the list that names the variable of @entry. */
static bool filter_find_item(
	const struct filter *filter, const char *entry, struct item *ret)
{
	const char *rest = filter->list;
	bool is_found = false;
	struct item item;

	while (filter_next_item(&rest, &item))
		if (entry_sets(entry, item.name, item.name_size)) {
			*ret = item;
			is_found = true;
		}
	return is_found;
}

/* Whether a list of names, as NAME or NAME*, has the variable of @entry. */
static bool names_have(const char *const names[], const char *entry)
{
	for (; names && *names; names++) {
		size_t size = strcspn(*names, "*");

		if ((*names)[size] ? strncmp(entry, *names, size) == 0
				   : entry_sets(entry, *names, size))
			return true;
	}
	return false;
}

/* Whether the command gets @entry of the old environment. */
static bool filter_passes(const struct filter *filter, const char *entry)
{
	struct item item;

	if (filter_changes(filter, entry))
		return false;
	if (filter_find_item(filter, entry, &item))
		return !has_value(&item);
	return names_have(filter->kept, entry) ||
	       (filter->is_all && !names_have(filter->without, entry));
}

/* Whether @item sets its variable: it has a value, and no later item or change overrides it. */
static bool filter_item_counts(const struct filter *filter, const struct item *item)
{
	struct item last;

	return has_value(item) && !filter_changes(filter, item->name) &&
	       filter_find_item(filter, item->name, &last) && last.name == item->name;
}

static bool filter_has_all(const char *list)
{
	struct item item;

	while (filter_next_item(&list, &item))
		if (is_word(&item, "ALL"))
			return true;
	return false;
}

/* Whether one of the @count entries at @entries sets the variable @name. */
static bool entries_have(char *const *entries, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (entry_sets(entries[i], name, strlen(name)))
			return true;
	return false;
}

/* Writes the entries to @out, and the texts of the new ones to @text; both have room. */
static void filter_fill(
	char *const from[], const struct filter *filter, char **out, char *text)
{
	const char *rest = filter->list;
	char **begin = out;
	struct item item;

	for (; *from; from++)
		if (filter_passes(filter, *from))
			*out++ = *from;
	while (filter_next_item(&rest, &item)) {
		if (!filter_item_counts(filter, &item))
			continue;
		*out++ = memcpy(text, item.name, item.size);
		text[item.size] = '\0';
		text += item.size + 1;
	}
	for (size_t i = 0; i < filter->count; i++) {
		const struct childenv_change *change = &filter->changes[i];
		size_t size = strlen(change->name);

		if (!change->value ||
			(change->is_default &&
				entries_have(begin, (size_t)(out - begin), change->name)))
			continue;
		*out++ = memcpy(text, change->name, size);
		text[size++] = '=';
		memcpy(text + size, change->value, strlen(change->value) + 1);
		text += size + strlen(change->value) + 1;
	}
	*out = NULL;
}

/* Allocates one block for the array and the texts of the new entries, and fills it. */
static int filter_make(char *const from[], const struct filter *filter, char ***ret)
{
	size_t entries = filter->count + 1;
	size_t bytes = filter->list ? strlen(filter->list) + 1 : 0;
	const char *rest = filter->list;
	struct item item;
	char **out;

	for (size_t i = 0; from[i]; i++)
		entries++;
	while (filter_next_item(&rest, &item))
		entries++;
	for (size_t i = 0; i < filter->count; i++)
		if (filter->changes[i].value)
			bytes += strlen(filter->changes[i].name) +
				 strlen(filter->changes[i].value) + 2;
	out = malloc(entries * sizeof(*out) + bytes);
	if (!out)
		return -ENOMEM;
	filter_fill(from, filter, out, (char *)(out + entries));
	*ret = out;
	return 0;
}

int childenv_make(char *const from[], const char *const without[],
	const char *const kept[], const char *list, const struct childenv_change *changes,
	size_t count, char ***ret)
{
	struct filter filter = { without, kept, list, !list || filter_has_all(list),
		changes, count };
	autofree char *whole = NULL;

	if (!filter.is_all) {
		size_t size = sizeof(always) + strlen(list);

		whole = malloc(size);
		if (!whole)
			return -ENOMEM;
		(void)snprintf(whole, size, "%s%s", always, list);
		filter.list = whole;
	}
	return filter_make(from, &filter, ret);
}

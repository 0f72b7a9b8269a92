#include <errno.h>
#include <strings.h>

#include "childenv.h"
#include "parse.h"

/* Who names nothing else is still somebody, somewhere, and finds programs and queue. */
static const char always[] = "HOME,LANG,LC_ALL,LOGNAME,PATH=/usr/local/bin:/usr/bin:/bin,"
			     "SHELL,TERM,TZ,USER,XDG_STATE_HOME,";

/* --- lists ------------------------------------------------------------------------- */

/* One item: the name, and behind it `=` and a value, or nothing. */
struct item {
	const char *name;
	size_t name_size, size;
};

/* Takes the next one from *@list; false where there is none. */
static bool next_item(const char **list, struct item *ret)
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

static bool is_name(const struct item *item)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return item->name_size && (item->name[0] < '0' || item->name[0] > '9') &&
	       strspn(item->name, letters) >= item->name_size;
}

int childenv_check(const char *list, struct why *why)
{
	const char *rest = list;
	struct item item;

	while (next_item(&rest, &item)) {
		bool is_first = item.name == list;

		if (is_word(&item, "NONE") && !(is_first && !rest)) {
			why_set(why,
				"NONE stands alone: what else is named passes anyway");
			return -EINVAL;
		}
		if (is_name(&item))
			continue;
		why_set(why, "'%s' is not ALL, NONE, NAME or NAME=VALUE%s",
			quote_bytes(item.name, item.size).text,
			is_first ? ""
				 : "; a value cannot hold a comma, but may with env, as "
				   "in gpulease env NAME=A,B command");
		return -EINVAL;
	}
	return 0;
}

/* --- environments ------------------------------------------------------------------ */

/* What decides about each variable. */
struct filter {
	const char *without;
	const char *const *kept;
	const char *list;
	bool is_all;
	const struct childenv_change *changes;
	size_t count;
};

/* Whether @entry sets the variable whose name are the @size bytes at @name. */
static bool sets(const char *entry, const char *name, size_t size)
{
	return strncmp(entry, name, size) == 0 && entry[size] == '=';
}

static bool is_changed(const struct filter *filter, const char *entry)
{
	for (size_t i = 0; i < filter->count; i++) {
		const char *name = filter->changes[i].name;

		if (sets(entry, name, strlen(name)))
			return true;
	}
	return false;
}

/* The last item of the list that names the variable of @entry; false where none does. */
static bool find_item(const struct filter *filter, const char *entry, struct item *ret)
{
	const char *rest = filter->list;
	bool is_found = false;
	struct item item;

	while (next_item(&rest, &item))
		if (sets(entry, item.name, item.name_size)) {
			*ret = item;
			is_found = true;
		}
	return is_found;
}

static bool is_kept(const struct filter *filter, const char *entry)
{
	for (const char *const *kept = filter->kept; kept && *kept; kept++) {
		size_t size = strcspn(*kept, "*");

		if ((*kept)[size] ? strncmp(entry, *kept, size) == 0
				  : sets(entry, *kept, size))
			return true;
	}
	return false;
}

static bool passes(const struct filter *filter, const char *entry)
{
	struct item item;

	if (is_changed(filter, entry))
		return false;
	if (find_item(filter, entry, &item))
		return !has_value(&item);
	return is_kept(filter, entry) ||
	       (filter->is_all &&
		       strncmp(entry, filter->without, strlen(filter->without)) != 0);
}

/* Whether this item gives its variable a value, and no later one does. */
static bool counts(const struct filter *filter, const struct item *item)
{
	struct item last;

	return has_value(item) && !is_changed(filter, item->name) &&
	       find_item(filter, item->name, &last) && last.name == item->name;
}

static bool has_all(const char *list)
{
	struct item item;

	while (next_item(&list, &item))
		if (is_word(&item, "ALL"))
			return true;
	return false;
}

/* Every entry to @out, the text of the new ones to @text; both have room. */
static void fill(char *const from[], const struct filter *filter, char **out, char *text)
{
	const char *rest = filter->list;
	struct item item;

	for (; *from; from++)
		if (passes(filter, *from))
			*out++ = *from;
	while (next_item(&rest, &item)) {
		if (!counts(filter, &item))
			continue;
		*out++ = memcpy(text, item.name, item.size);
		text[item.size] = '\0';
		text += item.size + 1;
	}
	for (size_t i = 0; i < filter->count; i++) {
		const struct childenv_change *change = &filter->changes[i];
		size_t size = strlen(change->name);

		if (!change->value)
			continue;
		*out++ = memcpy(text, change->name, size);
		text[size++] = '=';
		memcpy(text + size, change->value, strlen(change->value) + 1);
		text += size + strlen(change->value) + 1;
	}
	*out = NULL;
}

static int make(char *const from[], const struct filter *filter, char ***ret)
{
	size_t entries = filter->count + 1;
	size_t bytes = filter->list ? strlen(filter->list) + 1 : 0;
	const char *rest = filter->list;
	struct item item;
	char **out;

	for (size_t i = 0; from[i]; i++)
		entries++;
	while (next_item(&rest, &item))
		entries++;
	for (size_t i = 0; i < filter->count; i++)
		if (filter->changes[i].value)
			bytes += strlen(filter->changes[i].name) +
				 strlen(filter->changes[i].value) + 2;
	out = malloc(entries * sizeof(*out) + bytes);
	if (!out)
		return -ENOMEM;
	fill(from, filter, out, (char *)(out + entries));
	*ret = out;
	return 0;
}

int childenv_make(char *const from[], const char *without, const char *const kept[],
	const char *list, const struct childenv_change *changes, size_t count,
	char ***ret)
{
	struct filter filter = { without, kept, list, !list || has_all(list), changes,
		count };
	autofree char *whole = NULL;

	if (!filter.is_all) {
		size_t size = sizeof(always) + strlen(list);

		whole = malloc(size);
		if (!whole)
			return -ENOMEM;
		(void)snprintf(whole, size, "%s%s", always, list);
		filter.list = whole;
	}
	return make(from, &filter, ret);
}

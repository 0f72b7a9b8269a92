#include <stdlib.h>

#include "cluster_gres.h"

/* Reads the number at the beginning of @text, at most @most.  Returns how long it is. */
static size_t read_number(const char *text, unsigned most, unsigned *ret)
{
	unsigned number = 0;
	size_t size = 0;

	for (; is_digit(text[size]); size++)
		if (number <= most)
			number = number * 10 + (unsigned)(text[size] - '0');
	*ret = number < most ? number : most;
	return size;
}

/* Returns the size of the first item of the list; a comma in brackets ends none. */
static size_t item_size(const char *list)
{
	unsigned depth = 0;
	size_t size = 0;

	for (; list[size] && (depth || list[size] != ','); size++) {
		depth += list[size] == '(' || list[size] == '[';
		depth -= depth && (list[size] == ')' || list[size] == ']');
	}
	return size;
}

/* Skips @word at *@text.  Returns whether it is there, and a name ends with it. */
static bool skip_name(const char **text, const char *word)
{
	size_t size = strlen(word);

	if (strncmp(*text, word, size) != 0 ||
		((*text)[size] && !strchr(":=(,", (*text)[size])))
		return false;
	*text += size;
	return true;
}

/* Reads ":a100", if that is no number, and moves *@text on. */
static void read_type(const char **text, char type[GRES_TYPE_SIZE])
{
	const char *at = *text + 1;
	size_t size;

	if (**text != ':')
		return;
	size = strncmp(at, "(null)", 6) == 0 ? 6 : strcspn(at, ":=(,");
	if (strspn(at, "0123456789") == size)
		return;
	*text = at + size;
	if (*at == '(')
		return;
	size = size < GRES_TYPE_SIZE ? size : GRES_TYPE_SIZE - 1;
	memcpy(type, at, size);
	type[size] = '\0';
}

bool gres_next(const char **list, struct gres *ret)
{
	while (**list) {
		const char *item = *list, *end = item + item_size(item);
		const char *bracket;

		*list = *end ? end + 1 : end;
		if (strncmp(item, "gres:", 5) == 0 || strncmp(item, "gres/", 5) == 0)
			item += 5;
		*ret = (struct gres){ .is_shard = false };
		if (!skip_name(&item, "gpu")) {
			ret->is_shard = skip_name(&item, "shard");
			if (!ret->is_shard)
				continue;
		}
		read_type(&item, ret->type);
		ret->is_total = *item == '=' && !ret->type[0];
		ret->count = 1;
		if ((*item == ':' || *item == '=') && is_digit(item[1]))
			item += 1 + read_number(item + 1, GRES_COUNT_MAX, &ret->count);
		bracket = memchr(item, '(', (size_t)(end - item));
		ret->detail = bracket ? bracket + 1 : NULL;
		return true;
	}
	return false;
}

unsigned gres_count(const char *list, bool of_shards)
{
	unsigned count = 0, total = 0;
	bool has_total = false;
	struct gres gres;

	while (gres_next(&list, &gres)) {
		if (gres.is_shard != of_shards)
			continue;
		has_total |= gres.is_total;
		if (gres.is_total)
			total = gres.count;
		else if (count <= GRES_COUNT_MAX)
			count += gres.count;
	}
	return has_total ? total : count;
}

struct gpuset gres_indices(const char *detail)
{
	struct gpuset set = GPUSET_NONE;
	unsigned first, last;

	if (!detail || strncmp(detail, "IDX:", 4) != 0)
		return set;
	for (detail += 4; is_digit(*detail); detail += *detail == ',') {
		detail += read_number(detail, GPUSET_MAX, &first);
		last = first;
		if (*detail == '-' && is_digit(detail[1]))
			detail += 1 + read_number(detail + 1, GPUSET_MAX, &last);
		for (unsigned i = first; i <= last && i < GPUSET_MAX; i++)
			gpuset_add(&set, i);
	}
	return set;
}

bool gres_shards_of(
	const char *detail, unsigned index, unsigned *ret_used, unsigned *ret_all)
{
	unsigned used, all;

	if (!detail)
		return false;
	for (unsigned at = 0; is_digit(*detail); at++) {
		detail += read_number(detail, GRES_COUNT_MAX, &used);
		if (*detail != '/')
			return false;
		detail += 1 + read_number(detail + 1, GRES_COUNT_MAX, &all);
		if (at == index && all) {
			*ret_used = used;
			*ret_all = all;
			return true;
		}
		if (*detail++ != ',')
			return false;
	}
	return false;
}

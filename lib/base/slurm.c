#include <stdlib.h>

#include "slurm.h"

enum { ID_DIGITS = 19, GPU_DIGITS = 4, GPUS_MAX = 128, BRACKETS_MAX = 8 };

static const char digits[] = "0123456789";
static const char prefix[] = "slurm-";

/* Returns the value of the @size digits at @at. */
static unsigned long number_at(const char *at, size_t size)
{
	unsigned long out = 0;

	while (size--)
		out = out * 10 + (unsigned long)(*at++ - '0');
	return out;
}

bool slurm_is_job_id(const char *text)
{
	size_t size = strspn(text, digits);

	return size && size < ID_DIGITS && !text[size] && text[0] != '0';
}

/* --- GPUs -------------------------------------------------------------------------- */

/* Reads "5" or "0-2" at *@at and moves *@at on.  Returns false if there is no range. */
static bool read_range(const char **at, unsigned long *ret_first, unsigned long *ret_last)
{
	size_t size = strspn(*at, digits);

	if (!size || size > GPU_DIGITS)
		return false;
	*ret_first = *ret_last = number_at(*at, size);
	*at += size;
	if (**at != '-')
		return true;
	size = strspn(++*at, digits);
	if (!size || size > GPU_DIGITS)
		return false;
	*ret_last = number_at(*at, size);
	*at += size;
	return *ret_first <= *ret_last;
}

unsigned slurm_read_gpus(const char *list, char out[SLURM_GPUS_SIZE])
{
	struct text text = text_on(out, SLURM_GPUS_SIZE);
	unsigned long first, last;
	unsigned count = 0;

	for (;;) {
		if (!read_range(&list, &first, &last) || last - first >= GPUS_MAX)
			return 0;
		for (; first <= last; first++, count++)
			text_addf(&text, count ? ",%lu" : "%lu", first);
		if (*list != ',')
			return *list || text.cut ? 0 : count;
		list++;
	}
}

/* --- nodes ------------------------------------------------------------------------- */

/* Whether the @size digits at @name are in the list "1-3,08-12" of @length bytes at @list. */
static bool is_in_bracket(const char *list, size_t length, const char *name, size_t size)
{
	const char *end = list + length;

	while (list < end) {
		size_t first = strspn(list, digits), second = first;
		const char *last = list;
		unsigned long number = number_at(name, size);

		if (list[first] == '-') {
			last = list + first + 1;
			second = strspn(last, digits);
		}
		if (!first || !second || first > ID_DIGITS - 1 || second > ID_DIGITS - 1)
			return false;
		/* leading zeros count: n08 is not n8 */
		if (size >= first && size <= second &&
			(size == first || name[0] != '0') &&
			number >= number_at(list, first) &&
			number <= number_at(last, second))
			return true;
		list = last + second;
		if (list < end && *list++ != ',')
			return false;
	}
	return false;
}

/* Whether the entry "n[1-3]-ib" of @length bytes covers the node name of @size bytes at @name. */
static bool is_entry(
	const char *entry, size_t length, const char *name, size_t size, unsigned depth)
{
	const char *open = memchr(entry, '[', length), *close;
	size_t before = open ? (size_t)(open - entry) : length;

	if (size < before || memcmp(entry, name, before) != 0)
		return false;
	if (!open)
		return size == length;
	close = memchr(open, ']', length - before);
	if (!close || depth >= BRACKETS_MAX)
		return false;
	name += before;
	size -= before;
	/* the bracket may stand for any number of the digits: try the rest after each */
	for (size_t i = 1; i <= strspn(name, digits) && i <= size && i < ID_DIGITS; i++)
		if (is_in_bracket(open + 1, (size_t)(close - open - 1), name, i) &&
			is_entry(close + 1, length - (size_t)(close + 1 - entry),
				name + i, size - i, depth + 1))
			return true;
	return false;
}

/* Returns the length of the entry at @nodes: it ends at a comma outside of brackets. */
static size_t entry_length(const char *nodes, bool *is_whole)
{
	bool is_inside = false;
	size_t i;

	for (i = 0; nodes[i] && (is_inside || nodes[i] != ','); i++) {
		if ((nodes[i] == '[' && is_inside) || (nodes[i] == ']' && !is_inside))
			*is_whole = false;
		is_inside = nodes[i] == '[' || (is_inside && nodes[i] != ']');
	}
	if (is_inside)
		*is_whole = false;
	return i;
}

bool slurm_has_node(const char *nodes, const char *host)
{
	size_t size = strlen(host), short_size = strcspn(host, ".");
	bool is_whole = true;

	for (;;) {
		size_t length = entry_length(nodes, &is_whole);

		if (!length || !is_whole)
			return true;
		if (is_entry(nodes, length, host, size, 0) ||
			is_entry(nodes, length, host, short_size, 0))
			return true;
		nodes += length;
		if (!*nodes++)
			return false;
	}
}

/* --- the directory ----------------------------------------------------------------- */

/* Appends at most @most bytes of @text, with `_` for what is not safe in a file name. */
static void add_safe(struct text *out, const char *text, size_t most)
{
	const char *safe = "-." NAME_BYTES;

	for (size_t i = 0; i < most && text[i]; i++)
		text_add_bytes(out, strchr(safe, text[i]) ? &text[i] : "_", 1);
}

void slurm_directory_name(
	const char *job, const char *cluster, const char *host, char out[SLURM_NAME_SIZE])
{
	struct text text = text_on(out, SLURM_NAME_SIZE);

	text_addf(&text, "%s%s-", prefix, job);
	add_safe(&text, cluster, 64);
	text_add(&text, "@");
	add_safe(&text, host, 64);
}

bool slurm_directory_job(const char *name, char job[24])
{
	size_t size = sizeof(prefix) - 1, length;

	if (strncmp(name, prefix, size) != 0)
		return false;
	length = strspn(name + size, digits);
	if (!length || length >= ID_DIGITS || name[size + length] != '-' ||
		!strchr(name + size, '@'))
		return false;
	(void)snprintf(job, 24, "%.*s", (int)length, name + size);
	return slurm_is_job_id(job);
}

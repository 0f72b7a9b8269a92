#include <errno.h>

#include "batch_attributes.h"
#include "cli_table.h"
#include "parse.h"

static const char blanks[] = " \t";

/* --- values ------------------------------------------------------------------------ */

static int read_count(const char *value, void *at, struct why *why)
{
	struct batch_attributes *attributes = at;

	return parse_gpu_count(value, &attributes->gpus, &attributes->share_percent, why);
}

static void write_count(const void *at, struct text *out)
{
	const struct batch_attributes *attributes = at;
	unsigned percent = attributes->share_percent;

	if (percent % 10)
		text_addf(out, "0.%02u", percent);
	else if (percent)
		text_addf(out, "0.%u", percent / 10);
	else
		text_addf(out, "%u", attributes->gpus);
}

static void write_size(const void *at, struct text *out)
{
	char size[MIB_TEXT_SIZE];

	format_mib(*(const uint64_t *)at, size);
	text_add(out, size);
}

static int read_duration(const char *value, void *at, struct why *why)
{
	return parse_duration_ms(value, at, why);
}

static void write_duration(const void *at, struct text *out)
{
	char span[DURATION_SIZE];

	format_exact_duration(*(const int64_t *)at, span);
	text_add(out, span);
}

static void write_times(const void *at, struct text *out)
{
	text_addf(out, "%u", *(const unsigned *)at);
}

static int read_order(const char *value, void *at, struct why *why)
{
	struct settings settings = { .priority = 0 };
	int r = read_priority(value, &settings, why);

	if (r == 0)
		*(int64_t *)at = settings.priority;
	return r;
}

static void write_order(const void *at, struct text *out)
{
	text_addf(out, "%lld", (long long)*(const int64_t *)at);
}

static int read_text(const char *value, void *at, struct why *why)
{
	if (!*value) {
		why_set(why, "there is nothing behind it; leave it out");
		return -EINVAL;
	}
	*(const char **)at = value;
	return 0;
}

/* In "…" where the end of the value could not be seen. */
static void write_text(const void *at, struct text *out)
{
	const char *value = *(const char *const *)at;
	size_t size = strlen(value);

	if (size && !value[strcspn(value, " \t]\"'\\")] && value[size - 1] != ',') {
		text_add(out, value);
		return;
	}
	text_add(out, "\"");
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			text_add(out, "\\");
		text_add_bytes(out, value, 1);
	}
	text_add(out, "\"");
}

/* A list of GPUs needs no quotes. */
static void write_list(const void *at, struct text *out)
{
	text_add(out, *(const char *const *)at);
}

/* --- names ------------------------------------------------------------------------- */

static bool is_number(const char *text, size_t size)
{
	return size && strspn(text, "0123456789") >= size;
}

/* A name is one that `after` can tell from others and from a number. */
static int read_name(const char *value, void *at, struct why *why)
{
	char printable[BATCH_NAME_MAX] = "";
	struct text shown = TEXT_ON(printable);
	size_t size = strlen(value);
	const char *wrong = NULL;

	text_add_printable(&shown, value, size);
	if (size >= BATCH_NAME_MAX)
		wrong = "is too long; a name has at most 63 bytes";
	else if (strcmp(printable, value) != 0)
		wrong = "has characters that cannot be printed";
	else if (strchr(value, ','))
		wrong = "has a comma; after= has commas between names";
	else if (is_number(value, size))
		wrong = "is a number; after= would take it for that of a job";
	else if (size && (strchr(blanks, value[0]) || strchr(blanks, value[size - 1])))
		wrong = "begins or ends with a blank";
	if (!wrong)
		return read_text(value, at, why);
	why_set(why, "'%s' %s", quote(value).text, wrong);
	return -EINVAL;
}

/* Names of lines, whether there are such is seen later; and numbers of jobs. */
static int read_names(const char *value, void *at, struct why *why)
{
	char number[16];
	uint64_t job;

	for (const char *item = value;; item++) {
		size_t size = strcspn(item, ",");

		if (!size && *value) {
			why_set(why, "'%s' has a comma too many", quote(value).text);
			return -EINVAL;
		}
		text_copy(number, sizeof(number), item);
		number[size < sizeof(number) ? size : 0] = '\0';
		if (is_number(item, size) &&
			(parse_u64(number, UINT32_MAX, &job, NULL) < 0 || !job)) {
			why_set(why, "'%s' is not the number of a job; they begin at 1",
				quote_bytes(item, size).text);
			return -EINVAL;
		}
		item += size;
		if (!*item)
			return read_text(value, at, why);
	}
}

void batch_squeeze(char *list)
{
	char *to = list;

	for (const char *item = list;; item++) {
		const char *begin = item + strspn(item, blanks), *end;

		item = begin + strcspn(begin, ",");
		for (end = item; end > begin && strchr(blanks, end[-1]);)
			end--;
		memmove(to, begin, (size_t)(end - begin));
		to += end - begin;
		if (!*item)
			break;
		*to++ = ',';
	}
	*to = '\0';
}

/* --- the table --------------------------------------------------------------------- */

#define AT(field) offsetof(struct batch_attributes, field)
#define ROW(which, ...) [BATCH_##which] = { __VA_ARGS__ }

static const struct attribute {
	const char *name, *example;
	/* as in cli_table.h; NULL: a word without a value */
	int (*read)(const char *value, void *at, struct why *why);
	void (*write)(const void *at, struct text *out);
	size_t offset;
	bool is_list; /* blanks around its commas are dropped */
} attributes_known[BATCH_ATTRIBUTES] = {
	ROW(GPUS, "gpus", "2", read_count, write_count, 0, false),
	ROW(VRAM, "vram", "18G", read_size, write_size, AT(vram_mib), false),
	ROW(TIMEOUT, "timeout", "2h", read_duration, write_duration, AT(limit_ms), false),
	ROW(RETRIES, "retries", "3", read_times, write_times, AT(oom_retries), false),
	ROW(FAIL_RETRIES, "fail-retries", "3", read_times, write_times, AT(retries),
		false),
	ROW(PRIORITY, "priority", "5", read_order, write_order, AT(priority), false),
	ROW(ALLOW, "allow", "0-3", read_gpu_list, write_list, AT(allow), true),
	ROW(AFTER, "after", "NAME", read_names, write_text, AT(after), true),
	ROW(AFTER_OK, "after-ok", "NAME", read_names, write_text, AT(after_ok), true),
	ROW(NAME, "name", "NAME", read_name, write_text, AT(name), false),
	ROW(CONDA, "conda", "ENV", read_text, write_text, AT(conda), false),
	ROW(SETUP, "setup", "CMD", read_text, write_text, AT(setup), false),
	ROW(CANCELLED, "cancel", NULL, NULL, NULL, 0, false),
};

const char *batch_attribute_name(enum batch_attribute which)
{
	return attributes_known[which].name;
}

static const struct attribute *find(const char *name, size_t size)
{
	for (const struct attribute *row = attributes_known;
		row < attributes_known + BATCH_ATTRIBUTES; row++)
		if (strncmp(row->name, name, size) == 0 && !row->name[size])
			return row;
	return NULL;
}

static int refuse_unknown(const char *name, size_t size, struct why *why)
{
	char list[128];
	struct text known = TEXT_ON(list);

	for (unsigned i = 0; i < BATCH_ATTRIBUTES; i++)
		text_addf(&known, "%s%s", i ? ", " : "", attributes_known[i].name);
	why_set(why,
		"'%s' is no attribute; there are %s (and for the shell's [ write test)",
		quote_bytes(name, size).text, list);
	return -EINVAL;
}

int batch_attribute_set(struct batch_attributes *attributes, enum batch_attribute which,
	char *value, struct why *why)
{
	const struct attribute *row = &attributes_known[which];
	struct why reason = WHY_NONE;

	if (row->is_list)
		batch_squeeze(value);
	if (row->read(value, (char *)attributes + row->offset, &reason) < 0) {
		why_set(why, "%s: %s", row->name, reason.text);
		return -EINVAL;
	}
	attributes->given |= 1u << which;
	return 0;
}

/* --- reading ----------------------------------------------------------------------- */

bool batch_has_attributes(const char *line)
{
	char next = line[0] == '[' ? line[1 + strspn(line + 1, blanks)] : '\0';

	return next == ']' || (next >= 'a' && next <= 'z') ||
	       (next >= 'A' && next <= 'Z');
}

/* Moves the value behind the opening quote at *@from to @to.  False: it has no end. */
static bool unquote(char *to, char **from)
{
	char *at = *from, mark = *at++;

	for (; *at && *at != mark; at++) {
		if (mark == '"' && *at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		*to++ = *at;
	}
	*to = '\0';
	*from = at + 1;
	return *at;
}

/*
 * Takes the value behind the `=` at *@at, which begins in place of that: so what stands behind
 * the value is not overwritten by its NUL.
 */
static int take_value(const struct attribute *row, char **at, struct why *why)
{
	char *to = *at, *from = to + 1;
	size_t size;

	if (*from == '"' || *from == '\'') {
		bool has_end = unquote(to, &from);

		if (has_end && (strchr(blanks, *from) || *from == ']')) {
			*at = from;
			return 0;
		}
		why_set(why,
			has_end ? "%s: '%s' goes on behind the quote; write a blank there"
				: "%s: the quote before '%s' has no end",
			row->name, quote(to).text);
		return -EINVAL;
	}
	size = strcspn(from, " \t]");
	*at = from + size;
	if (size && from[size - 1] == ',') {
		why_set(why,
			"%s: '%s' ends with a comma; blanks stand between attributes",
			row->name, quote_bytes(from, size).text);
		return -EINVAL;
	}
	memmove(to, from, size);
	to[size] = '\0';
	return 0;
}

static int take_one(char **at, struct batch_attributes *ret, struct why *why)
{
	size_t size = strcspn(*at, " \t=]");
	const struct attribute *row = find(*at, size);
	char *value = *at + size;
	unsigned which;

	if (!row)
		return refuse_unknown(*at, size, why);
	which = (unsigned)(row - attributes_known);
	if (ret->given & 1u << which) {
		why_set(why, "%s is given twice; write it once", row->name);
		return -EINVAL;
	}
	if ((*value == '=') != (row->read != NULL)) {
		if (row->read)
			why_set(why, "%s wants a value; write %s=%s", row->name,
				row->name, row->example);
		else
			why_set(why, "%s takes no value", row->name);
		return -EINVAL;
	}
	*at = value;
	if (row->read)
		return take_value(row, at, why) < 0
			       ? -EINVAL
			       : batch_attribute_set(ret, which, value, why);
	ret->given |= 1u << which;
	ret->is_cancelled = true;
	return 0;
}

/* As settle_sharing() has it of a command line. */
static int check_together(const struct batch_attributes *attributes, struct why *why)
{
	if (!(attributes->given & 1u << BATCH_GPUS) || attributes->gpus ||
		!attributes->vram_mib)
		return 0;
	why_set(why, "gpus=0 asks for no GPU and vram for memory of one; leave one out");
	return -EINVAL;
}

int batch_attributes_take(char **at, struct batch_attributes *ret, struct why *why)
{
	struct batch_attributes read = { .given = 0 };
	char *c = *at + 1;

	for (;;) {
		c += strspn(c, blanks);
		if (*c == ']')
			break;
		if (!*c) {
			why_set(why, "the attributes have no end; write ] before the "
				     "command");
			return -EINVAL;
		}
		if (take_one(&c, &read, why) < 0)
			return -EINVAL;
	}
	*at = c + 1;
	*ret = read;
	return check_together(ret, why);
}

/* --- writing ----------------------------------------------------------------------- */

void batch_attributes_write(const struct batch_attributes *attributes, struct text *out)
{
	const char *between = "";

	text_add(out, "[");
	for (unsigned i = 0; i < BATCH_ATTRIBUTES; i++) {
		const struct attribute *row = &attributes_known[i];

		if (!(attributes->given & 1u << i))
			continue;
		text_addf(out, "%s%s%s", between, row->name, row->write ? "=" : "");
		if (row->write)
			row->write((const char *)attributes + row->offset, out);
		between = " ";
	}
	text_add(out, "]");
}

#include <errno.h>

#include "batch_attributes.h"
#include "option_values.h"
#include "parse.h"
#include "parse_gpus.h"
#include "suggestion.h"

static const char blanks[] = " \t";

/* --- values ------------------------------------------------------------------------ */

static int attribute_read_count(const char *value, void *at, struct why *why)
{
	struct batch_attributes *attributes = at;

	return parse_gpu_count(value, &attributes->gpus, &attributes->share_percent, why);
}

static void attribute_write_count(const void *at, struct text *out)
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

static void attribute_write_size(const void *at, struct text *out)
{
	text_add_mib(*(const uint64_t *)at, out);
}

static int attribute_read_duration(const char *value, void *at, struct why *why)
{
	return parse_duration_ms(value, at, why);
}

static void attribute_write_duration(const void *at, struct text *out)
{
	char span[DURATION_SIZE];

	format_exact_duration(*(const int64_t *)at, span);
	text_add(out, span);
}

static void attribute_write_times(const void *at, struct text *out)
{
	text_addf(out, "%u", *(const unsigned *)at);
}

static int attribute_read_priority(const char *value, void *at, struct why *why)
{
	struct run_request request = { .priority = 0 };
	int r = read_priority(value, &request, why);

	if (r == 0)
		*(int64_t *)at = request.priority;
	return r;
}

static void attribute_write_priority(const void *at, struct text *out)
{
	text_addf(out, "%lld", (long long)*(const int64_t *)at);
}

static int attribute_read_text(const char *value, void *at, struct why *why)
{
	if (!*value) {
		why_set(why, "the value is empty; leave the attribute out");
		return -EINVAL;
	}
	*(const char **)at = value;
	return 0;
}

/* Appends the value, quoted if it contains a character that would end it. */
static void attribute_write_text(const void *at, struct text *out)
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
static void attribute_write_list(const void *at, struct text *out)
{
	text_add(out, *(const char *const *)at);
}

/* --- names ------------------------------------------------------------------------- */

bool batch_is_job_number(const char *text, size_t size)
{
	return size && strspn(text, "0123456789") >= size;
}

/* Reads a name, which `after` has to distinguish from other names and from a number. */
static int attribute_read_name(const char *value, void *at, struct why *why)
{
	char printable[BATCH_NAME_MAX] = "";
	struct text shown = TEXT_ON(printable);
	size_t size = strlen(value);
	const char *wrong = NULL;

	text_add_printable(&shown, value, size);
	if (size >= BATCH_NAME_MAX)
		wrong = "is too long; a name has at most 255 bytes";
	else if (strcmp(printable, value) != 0)
		wrong = "has characters that cannot be printed";
	else if (strchr(value, ','))
		wrong = "has a comma; after= has commas between names";
	else if (batch_is_job_number(value, size))
		wrong = "is a number; after= would read it as the number of an entry";
	else if (size && (strchr(blanks, value[0]) || strchr(blanks, value[size - 1])))
		wrong = "begins or ends with a blank";
	if (!wrong)
		return attribute_read_text(value, at, why);
	why_set(why, "'%s' %s", quote(value).text, wrong);
	return -EINVAL;
}

/* Reads names of lines, which batch_after_check() looks up later, and numbers of jobs. */
static int attribute_read_names(const char *value, void *at, struct why *why)
{
	char number[16];
	uint64_t job;

	for (const char *item = value;; item++) {
		size_t size = strcspn(item, ",");

		if (!size && *value) {
			why_set(why, "'%s' has one comma too many", quote(value).text);
			return -EINVAL;
		}
		text_copy(number, sizeof(number), item);
		number[size < sizeof(number) ? size : 0] = '\0';
		if (batch_is_job_number(item, size) &&
			(parse_u64(number, UINT32_MAX, &job, NULL) < 0 || !job)) {
			why_set(why,
				"'%s' is not the number of an entry; numbers begin at 1",
				quote_bytes(item, size).text);
			return -EINVAL;
		}
		item += size;
		if (!*item)
			return attribute_read_text(value, at, why);
	}
}

void batch_attributes_squeeze(char *list)
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
	const char *name, *example, *help;
	/* as in option_values.h; @at is the attributes + ->offset; NULL: a word without a value */
	int (*read)(const char *value, void *at, struct why *why);
	void (*write)(const void *at, struct text *out);
	uint16_t offset;
	bool is_list; /* blanks around its commas are removed */
} attributes_known[BATCH_ATTRIBUTES] = {
	ROW(GPUS, "gpus", "2", HELP("lease this many GPUs: 0.5 is half of one, 0 none"),
		attribute_read_count, attribute_write_count, 0, false),
	ROW(VRAM, "vram", "18G", HELP("declare this much memory of each GPU"), read_size,
		attribute_write_size, AT(vram_mib), false),
	ROW(TIMEOUT, "timeout", "2h",
		HELP("end the job after this time (a number: seconds)"),
		attribute_read_duration, attribute_write_duration, AT(limit_ms), false),
	ROW(RETRIES, "retries", "3",
		HELP("try again so often, with more memory, if it ran out"), read_times,
		attribute_write_times, AT(oom_retries), false),
	ROW(FAIL_RETRIES, "fail-retries", "3",
		HELP("try again so often if the command fails otherwise"), read_times,
		attribute_write_times, AT(retries), false),
	ROW(PRIORITY, "priority", "5",
		HELP("start before lines of lower priority (default 0)"),
		attribute_read_priority, attribute_write_priority, AT(priority), false),
	ROW(ALLOW, "allow", "0-3", HELP("use only these GPUs"), read_gpu_list,
		attribute_write_list, AT(allow), true),
	ROW(AFTER, "after", "NAME",
		HELP("start when the lines with this name have ended"),
		attribute_read_names, attribute_write_text, AT(after), true),
	ROW(AFTER_OK, "after-ok", "NAME", HELP("start only if they exit with status 0"),
		attribute_read_names, attribute_write_text, AT(after_ok), true),
	ROW(NAME, "name", "NAME", HELP("name the line, for after and for its log"),
		attribute_read_name, attribute_write_text, AT(name), false),
	ROW(CONDA, "conda", "ENV", HELP("activate this conda environment first"),
		attribute_read_text, attribute_write_text, AT(conda), false),
	ROW(SETUP, "setup", "CMD",
		HELP("run CMD first, in the shell that runs the command"),
		attribute_read_text, attribute_write_text, AT(setup), false),
	ROW(CANCELLED, "cancel", NULL, HELP("do not run this line, or end its job"), NULL,
		NULL, 0, false),
};

const char *batch_attribute_name(enum batch_attribute which)
{
	return attributes_known[which].name;
}

void batch_attributes_explain(unsigned column, struct text *out)
{
	for (unsigned i = 0; i < BATCH_ATTRIBUTES; i++) {
		const struct attribute *row = &attributes_known[i];
		char form[40];
		struct text text = TEXT_ON(form);

		text_add(&text, row->name);
		if (row->read)
			text_addf(&text, "=%s", row->example);
		text_addf(out, "  %-*s%s\n", (int)column - 2, form, row->help);
	}
}

static const struct attribute *attribute_find(const char *name, size_t size)
{
	for (const struct attribute *row = attributes_known;
		row < attributes_known + BATCH_ATTRIBUTES; row++)
		if (strncmp(row->name, name, size) == 0 && !row->name[size])
			return row;
	return NULL;
}

/* Finds the attribute that was probably meant by the @size bytes at @name.  NULL: none. */
static const struct attribute *attribute_guess(const char *name, size_t size)
{
	/* what options and other systems call some attributes */
	static const struct {
		uint8_t which;
		char names[19];
	} others[] = {
		{ BATCH_GPUS, "n num-gpus gres" },
		{ BATCH_VRAM, "mem memory" },
		{ BATCH_TIMEOUT, "t time-limit limit" },
		{ BATCH_RETRIES, "oom-retries retry" },
		{ BATCH_ALLOW, "gpu-ids devices" },
		{ BATCH_AFTER, "dependency" },
		{ BATCH_NAME, "J job-name" },
		{ BATCH_CONDA, "env conda-env" },
	};
	const struct attribute *nearest = NULL;
	unsigned least = SUGGESTION_FAR;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (suggestion_is_one_of(others[i].names, name, size))
			return &attributes_known[others[i].which];
	for (unsigned i = 0; i < BATCH_ATTRIBUTES; i++) {
		unsigned distance =
			suggestion_distance(name, size, attributes_known[i].name);

		if (distance < least) {
			least = distance;
			nearest = &attributes_known[i];
		}
	}
	return nearest;
}

static int attribute_refuse_unknown(const char *name, size_t size, struct why *why)
{
	const struct attribute *guess = attribute_guess(name, size);
	char words[160];
	struct text text = TEXT_ON(words);

	if (guess)
		text_addf(&text, "did you mean %s?", guess->name);
	else
		text_add(&text, "the attributes are ");
	for (unsigned i = 0; !guess && i < BATCH_ATTRIBUTES; i++)
		text_addf(&text, "%s%s", i ? ", " : "", attributes_known[i].name);
	why_set(why, "'%s' is not an attribute; %s (for the shell's [ write test)",
		quote_bytes(name, size).text, words);
	return -EINVAL;
}

int batch_attribute_set(struct batch_attributes *attributes, enum batch_attribute which,
	char *value, struct why *why)
{
	const struct attribute *row = &attributes_known[which];
	struct why reason = WHY_NONE;

	if (row->is_list)
		batch_attributes_squeeze(value);
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

/*
 * Unquotes the value at *@from to @to, and moves *@from after it.  Returns false if the quote is
 * not closed.
 */
static bool attribute_unquote(char *to, char **from)
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
 * Takes the value after the `=` at *@at.  It is moved one byte down, over the `=`, so that its NUL
 * does not overwrite what follows the value.
 */
static int attribute_take_value(const struct attribute *row, char **at, struct why *why)
{
	char *to = *at, *from = to + 1;
	size_t size;

	if (*from == '"' || *from == '\'') {
		bool has_end = attribute_unquote(to, &from);

		if (has_end && (strchr(blanks, *from) || *from == ']')) {
			*at = from;
			return 0;
		}
		why_set(why,
			has_end ? "%s: '%s' continues after the closing quote; write a blank there"
				: "%s: the quote before '%s' is not closed",
			row->name, quote(to).text);
		return -EINVAL;
	}
	size = strcspn(from, " \t]");
	*at = from + size;
	if (size && from[size - 1] == ',') {
		why_set(why,
			"%s: '%s' ends with a comma; write blanks between attributes",
			row->name, quote_bytes(from, size).text);
		return -EINVAL;
	}
	memmove(to, from, size);
	to[size] = '\0';
	return 0;
}

/* Reads one attribute at *@at and moves *@at after it.  Returns 0 or -EINVAL. */
static int attribute_take(char **at, struct batch_attributes *ret, struct why *why)
{
	size_t size = strcspn(*at, " \t=]");
	const struct attribute *row = attribute_find(*at, size);
	char *value = *at + size;
	unsigned which;

	if (!row)
		return attribute_refuse_unknown(*at, size, why);
	which = (unsigned)(row - attributes_known);
	if (ret->given & 1u << which) {
		why_set(why, "%s is given twice; write it once", row->name);
		return -EINVAL;
	}
	if ((*value == '=') != (row->read != NULL)) {
		if (row->read)
			why_set(why, "%s needs a value; write %s=%s", row->name,
				row->name, row->example);
		else
			why_set(why, "%s takes no value", row->name);
		return -EINVAL;
	}
	*at = value;
	if (row->read)
		return attribute_take_value(row, at, why) < 0
			       ? -EINVAL
			       : batch_attribute_set(ret, which, value, why);
	ret->given |= 1u << which;
	ret->is_cancelled = true;
	return 0;
}

/* Checks for a contradiction, as settle_sharing() does for a command line. */
static int attributes_check(const struct batch_attributes *attributes, struct why *why)
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
			why_set(why, "the attributes are not closed; write ] before the "
				     "command");
			return -EINVAL;
		}
		if (attribute_take(&c, &read, why) < 0)
			return -EINVAL;
	}
	*at = c + 1;
	*ret = read;
	return attributes_check(ret, why);
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

#include <errno.h>

#include "parse.h"
#include "file_pattern.h"

enum { WIDTH_MAX = 10 };

/* Slurm's number of an array's task, for a job that is no array. */
static const uint64_t NO_ARRAY = 4294967294;

static void add_number(struct text *out, int width, uint64_t number)
{
	text_addf(out, "%0*llu", width, (unsigned long long)number);
}

/*
 * Appends the value of the `%` at *@at, and moves *@at past it.  Returns false if it has no
 * meaning.
 */
static bool file_pattern_add_value(
	const char **at, const struct file_pattern_values *values, struct text *out)
{
	const char *letter = *at + 1;
	int width = 0;

	/* as srun: a width may stand before each letter, and pads only numbers */
	for (; *letter >= '0' && *letter <= '9'; letter++) {
		width = width * 10 + (*letter - '0');
		if (width > WIDTH_MAX)
			width = WIDTH_MAX;
	}
	switch (*letter) {
	case 'A':
		add_number(out, width, values->array ? values->array : values->job);
		break;
	case 'j':
		add_number(out, width, values->job);
		break;
	case 'J':
		add_number(out, width, values->job);
		text_addf(out, ".%u", values->step);
		break;
	case 't':
		add_number(out, width, values->task);
		break;
	case 's':
		add_number(out, width, values->step);
		break;
	case 'n':
		add_number(out, width, 0);
		break;
	case 'a':
		add_number(out, width, values->array ? values->index : NO_ARRAY);
		break;
	case 'x':
		text_add(out, values->name);
		break;
	case 'u':
		text_add(out, values->user);
		break;
	case 'h':
	case 'N':
		text_add_bytes(out, values->host, strcspn(values->host, "."));
		break;
	case '%':
		text_add(out, "%");
		break;
	default:
		return false;
	}
	*at = letter + 1;
	return true;
}

int file_pattern_expand(const char *pattern, const struct file_pattern_values *values,
	char *out, size_t size, struct why *why)
{
	struct text text = text_on(out, size);
	const char *at = pattern;

	while (*at) {
		size_t plain = strcspn(at, "%");

		text_add_bytes(&text, at, plain);
		at += plain;
		if (*at && !file_pattern_add_value(&at, values, &text)) {
			why_set(why,
				"'%s' has a %% that stands for nothing; write %%j (job "
				"id), %%x (job name), %%u (user), %%h (host), %%t (task) or "
				"%%%%",
				quote(pattern).text);
			return -EINVAL;
		}
	}
	if (text.cut) {
		why_set(why, "'%s' becomes a file name that is too long",
			quote(pattern).text);
		return -ENAMETOOLONG;
	}
	return 0;
}

int file_pattern_check(const char *pattern, struct why *why)
{
	static const struct file_pattern_values none = {
		.name = "", .user = "", .host = ""
	};
	char out[16];
	int r = file_pattern_expand(pattern, &none, out, sizeof(out), why);

	return r == -ENAMETOOLONG ? 0 : r;
}

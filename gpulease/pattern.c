#include <errno.h>

#include "parse.h"
#include "pattern.h"

enum { WIDTH_MAX = 10 };

/*
 * Appends what the `%` at *@at stands for and moves *@at behind it; false: nothing known.
 */
static bool add_value(
	const char **at, const struct pattern_values *values, struct text *out)
{
	const char *letter = *at + 1;
	int width = 0;

	/* srun takes a width before every letter, and pads numbers only */
	for (; *letter >= '0' && *letter <= '9'; letter++) {
		width = width * 10 + (*letter - '0');
		if (width > WIDTH_MAX)
			width = WIDTH_MAX;
	}
	switch (*letter) {
	case 'j':
		text_addf(out, "%0*llu", width, (unsigned long long)values->job);
		break;
	case 'x':
		text_add(out, values->name);
		break;
	case 'u':
		text_add(out, values->user);
		break;
	case 'h':
		text_add_bytes(out, values->host, strcspn(values->host, "."));
		break;
	case 't':
		/* srun's number of the task: there is one, which it pads as well */
		text_addf(out, "%0*d", width, 0);
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

int pattern_expand(const char *pattern, const struct pattern_values *values, char *out,
	size_t size, struct why *why)
{
	struct text text = text_on(out, size);
	const char *at = pattern;

	while (*at) {
		size_t plain = strcspn(at, "%");

		text_add_bytes(&text, at, plain);
		at += plain;
		if (*at && !add_value(&at, values, &text)) {
			why_set(why,
				"'%s' has a %% that stands for nothing; write %%j (job "
				"id), %%x (job name), %%u (user), %%h (host), %%t (task: 0) or "
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

int pattern_check(const char *pattern, struct why *why)
{
	static const struct pattern_values none = { .name = "", .user = "", .host = "" };
	char out[16];
	int r = pattern_expand(pattern, &none, out, sizeof(out), why);

	return r == -ENAMETOOLONG ? 0 : r;
}

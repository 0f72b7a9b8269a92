#include <errno.h>

#include "directives.h"

static const char MAGIC[] = "#SBATCH", BLANKS[] = " \t\v\f\r";

int directives_begin(
	struct directives *directives, char *script, size_t size, struct why *why)
{
	const char *fault = NULL;

	if (!size)
		fault = "it is empty";
	else if (strlen(script) != size)
		fault = "it has a NUL, so it is no script";
	else if (strncmp(script, "#!", 2) != 0)
		fault = "its first line must name the interpreter, as in #!/bin/sh";
	else if (strstr(script, "\r\n"))
		fault = "its lines end as in DOS; convert it with dos2unix";
	if (fault) {
		why_set(why, "%s", fault);
		return -EINVAL;
	}
	*directives = (struct directives){ .next = script };
	return 0;
}

/*
 * Moves *@at behind the next word and writes the word, without its quotes, over the text.  Returns
 * the word; NULL if there is none.  Sets *@ret_quote to the quote that is not closed; 0: none.
 */
static char *take_word(char **at, char *ret_quote)
{
	char *from = *at + strspn(*at, BLANKS), *to = from, *word = from;
	char quote = '\0';

	*ret_quote = '\0';
	if (!*from || *from == '#')
		return NULL;
	for (; *from && (quote || !strchr(BLANKS, *from)); from++) {
		if (*from == '\\') {
			/* at the end of the line, perhaps before blanks, it keeps nothing */
			if (from[1 + strspn(from + 1, BLANKS)])
				*to++ = *++from;
		} else if (quote && *from == quote) {
			quote = '\0';
		} else if (!quote && (*from == '\'' || *from == '"')) {
			quote = *from;
		} else if (!quote && *from == '#') {
			from += strlen(from);
			break;
		} else {
			*to++ = *from;
		}
	}
	*at = *from ? from + 1 : from;
	*to = '\0';
	*ret_quote = quote;
	return word;
}

/* Splits @text into the words of @ret. */
static int take_words(char *text, struct directive *ret, struct why *why)
{
	char *word, quote;

	ret->count = 0;
	while ((word = take_word(&text, &quote))) {
		if (quote) {
			why_set(why, "the quote %c is not closed", quote);
			return -EINVAL;
		}
		if (ret->count == DIRECTIVE_WORDS_MAX) {
			why_set(why, "it has more than %d words", DIRECTIVE_WORDS_MAX);
			return -EINVAL;
		}
		ret->words[ret->count++] = word;
	}
	ret->words[ret->count] = NULL;
	return 0;
}

int directives_take(struct directives *directives, struct directive *ret, struct why *why)
{
	while (*directives->next) {
		char *line = directives->next, *end = line + strcspn(line, "\n");
		const char *text = line + strspn(line, BLANKS);

		if (*text && *text != '#' && *text != '\n')
			break;
		directives->next = *end ? end + 1 : end;
		directives->line++;
		*end = '\0';
		if (strncmp(line, MAGIC, sizeof(MAGIC) - 1) == 0)
			return take_words(line + sizeof(MAGIC) - 1, ret, why);
	}
	return DIRECTIVES_END;
}

#include "words.h"

static bool is_separator(char c)
{
	return strchr(" \t\r\n;|&<>()", c);
}

/* Returns the first byte after the blanks, operators and comments at @at. */
static const char *skip_separators(const char *at)
{
	while (*at && (*at == '#' || is_separator(*at)))
		at += *at == '#' ? strcspn(at, "\n") : 1;
	return at;
}

/* Whether a backslash in "…" escapes @c. */
static bool is_escapable(char c)
{
	return c && strchr("\"\\$`\n", c);
}

/* Appends the text of "…"; @at is after the first quote.  Returns the end of the last one. */
static const char *words_add_from_quotes(const char *at, struct text *out)
{
	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && is_escapable(at[1]) && *++at == '\n')
			continue;
		text_add_bytes(out, at, 1);
	}
	return at + (*at == '"');
}

bool words_take(const char **at, struct text *out)
{
	const char *c = skip_separators(*at);
	bool is_word = *c;

	while (*c && !is_separator(*c)) {
		const char *begin = c + 1;

		if (*c == '"') {
			c = words_add_from_quotes(begin, out);
		} else if (*c == '\'') {
			c = begin + strcspn(begin, "'");
			text_add_bytes(out, begin, (size_t)(c - begin));
			c += *c == '\'';
		} else if (*c == '\\' && *begin) {
			if (*begin != '\n') /* backslash and newline join two lines */
				text_add_bytes(out, begin, 1);
			c = begin + 1;
		} else {
			text_add_bytes(out, c, 1);
			c = begin;
		}
	}
	*at = c;
	return is_word;
}

void words_add_in_quotes(struct text *out, const char *word)
{
	text_add(out, "'");
	while (*word) {
		size_t size = strcspn(word, "'");

		text_add_bytes(out, word, size);
		word += size;
		if (*word) {
			text_add(out, "'\\''");
			word++;
		}
	}
	text_add(out, "'");
}

/*
 * Whether a shell takes @word as it is, at any place of a command.  `=` needs a leading `-`:
 * `a=b` at the beginning of a command is an assignment.
 */
static bool is_plain(const char *word)
{
	const char *plain = "=-+./:,@%" NAME_BYTES;

	return *word && !word[strspn(word, plain + (*word != '-'))];
}

void words_add_quoted(struct text *out, const char *word)
{
	if (is_plain(word))
		text_add(out, word);
	else
		words_add_in_quotes(out, word);
}

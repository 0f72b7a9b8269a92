#include "words.h"

static bool is_between(char c)
{
	return strchr(" \t\r\n;|&<>()", c);
}

/* Behind the blanks, operators and comments at @at. */
static const char *skip_between(const char *at)
{
	while (*at && (*at == '#' || is_between(*at)))
		at += *at == '#' ? strcspn(at, "\n") : 1;
	return at;
}

/* What a backslash in "…" takes its meaning from. */
static bool is_escapable(char c)
{
	return c && strchr("\"\\$`\n", c);
}

/* Appends what stands in "…", from behind the first quote; returns what is behind the last. */
static const char *take_quoted(const char *at, struct text *out)
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
	const char *c = skip_between(*at);
	bool is_word = *c;

	while (*c && !is_between(*c)) {
		const char *begin = c + 1;

		if (*c == '"') {
			c = take_quoted(begin, out);
		} else if (*c == '\'') {
			c = begin + strcspn(begin, "'");
			text_add_bytes(out, begin, (size_t)(c - begin));
			c += *c == '\'';
		} else if (*c == '\\' && *begin) {
			if (*begin != '\n') /* that goes on in the next line */
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

/* Whether a shell reads it as it stands, wherever in a line; `a=b` it might not. */
static bool is_plain(const char *word)
{
	static const char plain[] = "=abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%";

	return *word && !word[strspn(word, plain + (*word != '-'))];
}

void words_add_quoted(struct text *out, const char *word)
{
	if (is_plain(word))
		text_add(out, word);
	else
		words_add_in_quotes(out, word);
}

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "markup.h"

/* Makes room for @size bytes more and a NUL. */
static bool markup_has_room(struct markup *markup, size_t size)
{
	size_t room = markup->room ? markup->room : 4096;
	char *at;

	if (markup->is_short_of_memory)
		return false;
	if (markup->room - markup->used > size)
		return true;
	while (room - markup->used <= size)
		room *= 2;
	at = realloc(markup->at, room);
	if (!at) {
		markup->is_short_of_memory = true;
		return false;
	}
	markup->at = at;
	markup->room = room;
	return true;
}

static void markup_bytes(struct markup *markup, const char *bytes, size_t size)
{
	if (!markup_has_room(markup, size))
		return;
	memcpy(markup->at + markup->used, bytes, size);
	markup->used += size;
	markup->at[markup->used] = '\0';
}

void markup_add(struct markup *markup, const char *text)
{
	markup_bytes(markup, text, strlen(text));
}

void markup_addf(struct markup *markup, const char *format, ...)
{
	char piece[1024];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(piece, sizeof(piece), format, arguments);
	va_end(arguments);
	if (size >= (int)sizeof(piece)) /* all our formats are short */
		markup->is_short_of_memory = true;
	else if (size > 0)
		markup_bytes(markup, piece, (size_t)size);
}

/* U+FFFE and U+FFFF, which are no characters of XML, as the end of the three bytes. */
static bool is_no_character(const char *at)
{
	const unsigned char *bytes = (const unsigned char *)at;

	return bytes[0] == 0xef && bytes[1] == 0xbf && bytes[2] >= 0xbe;
}

void markup_text(struct markup *markup, const char *text)
{
	static const char *const escapes[256] = {
		['&'] = "&amp;",
		['<'] = "&lt;",
		['>'] = "&gt;",
		['"'] = "&quot;",
		['\''] = "&#39;",
	};
	char printable[1024];
	struct text clean = TEXT_ON(printable);

	text_add_visible(&clean, text);
	for (const char *at = printable; *at; at++) {
		const char *escape = escapes[(unsigned char)*at];

		if (escape) {
			markup_add(markup, escape);
		} else if (is_no_character(at)) {
			markup_add(markup, "?");
			at += 2;
		} else {
			markup_bytes(markup, at, 1);
		}
	}
}

void markup_empty(struct markup *markup)
{
	markup->used = 0;
	if (markup->at)
		markup->at[0] = '\0';
}

void markup_release(struct markup *markup)
{
	free(markup->at);
	*markup = MARKUP_EMPTY;
}

#include <stdarg.h>

#include "text.h"

struct text text_on(char *at, size_t size)
{
	at[0] = '\0';
	return (struct text){ .at = at, .size = size };
}

void text_add_bytes(struct text *text, const char *bytes, size_t size)
{
	size_t room = text->size - text->used - 1;

	if (size > room) {
		text->cut = true;
		size = room;
	}
	memcpy(text->at + text->used, bytes, size);
	text->used += size;
	text->at[text->used] = '\0';
}

void text_add(struct text *text, const char *string)
{
	text_add_bytes(text, string, strlen(string));
}

static void PRINTF_LIKE(2, 0)
	text_addv(struct text *text, const char *format, va_list args)
{
	size_t room = text->size - text->used;
	int wanted = vsnprintf(text->at + text->used, room, format, args);

	if (wanted < 0)
		return;
	if ((size_t)wanted >= room) {
		text->cut = true;
		text->used = text->size - 1;
	} else {
		text->used += (size_t)wanted;
	}
}

void text_addf(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_addv(text, format, args);
	va_end(args);
}

void text_copy(char *out, size_t size, const char *string)
{
	struct text text = text_on(out, size);
	size_t most = strnlen(string, size);

	/* the first byte that is left out begins a character of UTF-8 */
	if (most == size)
		do
			most--;
		while (most && ((unsigned char)string[most] & 0xc0) == 0x80);
	text_add_bytes(&text, string, most);
}

unsigned text_count_items(const char *list)
{
	unsigned count = *list != '\0';

	for (; *list; list++)
		count += *list == ',';
	return count;
}

const char *text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns the length of the UTF-8 sequence at @in; 0 if it is malformed. */
static size_t utf8_length(const unsigned char *in, size_t size, uint32_t *ret_point)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = { { 0x80, 0, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 },
		{ 0xf8, 0xf0, 0x10000 } };

	for (size_t n = 0; n < ARRAY_SIZE(forms); n++) {
		uint32_t point;

		if ((in[0] & forms[n].mask) != forms[n].lead)
			continue;
		if (n + 1 > size) /* the sequence is cut */
			return 0;
		point = in[0] & (unsigned char)~forms[n].mask;
		for (size_t i = 1; i <= n; i++) {
			if ((in[i] & 0xc0) != 0x80)
				return 0;
			point = point << 6 | (in[i] & 0x3f);
		}
		/* overlong, too large, or half of a UTF-16 pair */
		if (point < forms[n].least || point > 0x10ffff ||
			(point >= 0xd800 && point <= 0xdfff))
			return 0;
		*ret_point = point;
		return n + 1;
	}
	return 0;
}

static bool is_printable(uint32_t point)
{
	static const struct {
		uint32_t from, to;
	} hidden[] = {
		{ 0, 0x1f }, { 0x7f, 0x9f }, /* C0, DEL, C1 */
		{ 0x61c, 0x61c }, { 0x200b, 0x200f },
		{ 0x2028, 0x202e }, /* separators, direction */
		{ 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },
		{ 0xe0000, 0xe0fff }, /* tags */
	};

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (point >= hidden[i].from && point <= hidden[i].to)
			return false;
	return true;
}

void text_add_printable(struct text *out, const char *in, size_t size)
{
	for (size_t i = 0; i < size;) {
		uint32_t point = 0;
		size_t length =
			utf8_length((const unsigned char *)in + i, size - i, &point);

		if (length && is_printable(point)) {
			/* never append a part of a character */
			if (out->size - out->used - 1 < length) {
				out->cut = true;
				return;
			}
			text_add_bytes(out, in + i, length);
		} else {
			text_add_bytes(out, "?", 1);
		}
		i += length ? length : 1;
	}
}

void text_add_visible(struct text *out, const char *string)
{
	text_add_printable(out, string, strlen(string));
}

size_t text_columns(const char *string, size_t size)
{
	size_t columns = 0;

	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)string[i];
		bool is_first = (byte & 0xc0) != 0x80;
		/* U+3000 to U+DFFF and from U+10000 on: Chinese, Japanese, Korean, emoji */
		bool is_wide = byte >= 0xe3 && byte != 0xee && byte != 0xef;

		if (is_first)
			columns += is_wide ? 2 : 1;
	}
	return columns;
}

uint64_t text_hash(uint64_t hash, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void why_set(struct why *why, const char *format, ...)
{
	struct text text;
	va_list args;

	if (!why)
		return;
	text = TEXT_ON(why->text);
	why->remedy_at = 0;
	va_start(args, format);
	text_addv(&text, format, args);
	va_end(args);
}

void why_add_remedy(struct why *why, const char *format, ...)
{
	struct text text;
	size_t used;
	va_list args;

	if (!why)
		return;
	used = strlen(why->text);
	text = text_on(why->text + used, sizeof(why->text) - used);
	text_add(&text, "; ");
	why->remedy_at = text.cut ? 0 : used + text.used;
	va_start(args, format);
	text_addv(&text, format, args);
	va_end(args);
}

void why_wrap(struct why *why, const struct why *inner, const char *format, ...)
{
	struct text text;
	size_t prefix;
	va_list args;

	if (!why)
		return;
	text = TEXT_ON(why->text);
	va_start(args, format);
	text_addv(&text, format, args);
	va_end(args);
	prefix = text.used;
	text_add(&text, inner->text);
	why->remedy_at = 0;
	if (inner->remedy_at && prefix + inner->remedy_at <= text.used)
		why->remedy_at = prefix + inner->remedy_at;
}

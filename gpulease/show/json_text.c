#include "json_read.h"
#include "json_text.h"

/* Returns the length of the UTF-8 character that begins with @lead; 0: none begins with it. */
static size_t length_by_lead(unsigned char lead)
{
	static const struct {
		unsigned char mask, lead;
	} forms[] = { { 0x80, 0 }, { 0xe0, 0xc0 }, { 0xf0, 0xe0 }, { 0xf8, 0xf0 } };

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if ((lead & forms[i].mask) == forms[i].lead)
			return i + 1;
	return 0;
}

/* Returns the code point of the UTF-8 character at @in. */
static uint32_t utf8_decode(const unsigned char *in, size_t length)
{
	uint32_t point = length == 1 ? in[0] : in[0] & (0x7fu >> length);

	for (size_t i = 1; i < length; i++)
		point = point << 6 | (in[i] & 0x3f);
	return point;
}

static void json_add_escape(struct text *out, uint32_t point)
{
	if (point >= 0x10000) {
		point -= 0x10000;
		text_addf(out, "\\u%04x\\u%04x", 0xd800 | point >> 10,
			0xdc00 | (point & 0x3ff));
	} else {
		text_addf(out, "\\u%04x", point);
	}
}

/*
 * text_add_printable() decides what is well formed and what a terminal may show.  It returns a
 * printable character unchanged, one `?` for another well-formed character, and one `?` for each
 * byte of a broken sequence.
 */
size_t json_add_character(struct text *out, const char *in, size_t size)
{
	size_t length = length_by_lead((unsigned char)in[0]);
	char shown[8];
	struct text text = TEXT_ON(shown);

	if (!length || length > size) {
		json_add_escape(out, 0xfffd);
		return 1;
	}
	text_add_printable(&text, in, length);
	if (text.used != 1 && shown[0] == '?') {
		json_add_escape(out, 0xfffd);
		return 1;
	}
	if (memcmp(shown, in, text.used) != 0) {
		json_add_escape(out, utf8_decode((const unsigned char *)in, length));
		return length;
	}
	if (in[0] == '"' || in[0] == '\\')
		text_add(out, "\\");
	text_add(out, shown);
	return length;
}

void json_add_string(struct text *out, const char *bytes, size_t size)
{
	text_add(out, "\"");
	for (size_t i = 0; i < size;) {
		size_t plain = json_plain_length(bytes + i, size - i);

		text_add_bytes(out, bytes + i, plain);
		i += plain;
		if (i < size)
			i += json_add_character(out, bytes + i, size - i);
	}
	text_add(out, "\"");
}

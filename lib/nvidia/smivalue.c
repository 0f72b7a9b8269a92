#include <strings.h>

#include "hex.h"
#include "smivalue.h"
#include "text.h"

static bool is_padding(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct span span_trim(struct span in)
{
	while (in.size > 0 && is_padding(in.at[0])) {
		in.at++;
		in.size--;
	}
	while (in.size > 0 && is_padding(in.at[in.size - 1]))
		in.size--;
	return in;
}

bool span_take_until(struct span *rest, char stop, struct span *ret)
{
	const char *end;

	if (!rest->at)
		return false;
	end = rest->size > 0 ? memchr(rest->at, stop, rest->size) : NULL;
	*ret = span_trim(
		(struct span){ rest->at, end ? (size_t)(end - rest->at) : rest->size });
	if (end)
		*rest = (struct span){ end + 1,
			rest->size - (size_t)(end + 1 - rest->at) };
	else
		*rest = (struct span){ NULL, 0 };
	return true;
}

bool span_equals(struct span in, const char *word)
{
	return strlen(word) == in.size && strncasecmp(in.at, word, in.size) == 0;
}

bool span_take_prefix(struct span *in, const char *prefix)
{
	size_t size = strlen(prefix);

	if (in->size < size || strncasecmp(in->at, prefix, size) != 0)
		return false;
	in->at += size;
	in->size -= size;
	return true;
}

bool span_to_number(struct span in, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < in.size; i++) {
		if (in.at[i] < '0' || in.at[i] > '9' ||
			__builtin_mul_overflow(value, UINT64_C(10), &value) ||
			__builtin_add_overflow(value, (uint64_t)(in.at[i] - '0'), &value))
			return false;
	}
	if (in.size == 0 || value > max)
		return false;
	*ret = value;
	return true;
}

void span_copy(struct span in, char *out, size_t size)
{
	struct text text = text_on(out, size);

	text_add_printable(&text, in.at, in.size);
}

bool span_is_uuid(struct span in, size_t size)
{
	struct span body = in;

	if (in.size >= size)
		return false;
	if (!span_take_prefix(&body, "GPU-") && !span_take_prefix(&body, "MIG-"))
		return false;
	for (size_t i = 0; i < body.size; i++) {
		char c = body.at[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
			!(c >= 'A' && c <= 'Z') && c != '-' && c != '/')
			return false;
	}
	return body.size > 0;
}

bool span_take_bus_id(struct span *in, char *out, size_t size)
{
	static const struct {
		size_t least, most;
		char stop;
	} parts[] = { { 4, 8, ':' }, { 2, 2, ':' }, { 2, 2, '.' }, { 1, 1, '\0' } };
	unsigned values[ARRAY_SIZE(parts)];
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t from = at;

		values[i] = 0;
		while (at < in->size && at - from < parts[i].most &&
			hex_digit(in->at[at], HEX_ANY) >= 0)
			values[i] = values[i] << 4 |
				    (unsigned)hex_digit(in->at[at++], HEX_ANY);
		if (at - from < parts[i].least)
			return false;
		if (parts[i].stop && (at == in->size || in->at[at++] != parts[i].stop))
			return false;
	}
	(void)snprintf(out, size, "%04x:%02x:%02x.%x", values[0], values[1], values[2],
		values[3]);
	*in = (struct span){ in->at + at, in->size - at };
	return true;
}

enum smi_value span_judge(struct span in)
{
	static const struct {
		const char *word;
		enum smi_value value;
	} words[] = {
		{ "N/A", SMI_VALUE_UNSUPPORTED },
		{ "Not Supported", SMI_VALUE_UNSUPPORTED },
		{ "Function Not Found", SMI_VALUE_UNSUPPORTED },
		{ "Requested functionality has been deprecated", SMI_VALUE_UNSUPPORTED },
		{ "Unknown Error", SMI_VALUE_ERROR },
		{ "ERR!", SMI_VALUE_ERROR },
		{ "GPU is lost", SMI_VALUE_ERROR },
		{ "GPU requires reset", SMI_VALUE_ERROR },
		{ "Insufficient Permissions", SMI_VALUE_ERROR },
		{ "Not Found", SMI_VALUE_ERROR },
	};
	bool is_bracketed = in.size > 0 && in.at[0] == '[';

	if (is_bracketed)
		in = (struct span){ in.at + 1, in.size - 1 };
	if (is_bracketed && in.size > 0 && in.at[in.size - 1] == ']')
		in.size--;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (span_equals(in, words[i].word))
			return words[i].value;
	return is_bracketed || in.size == 0 ? SMI_VALUE_ERROR : SMI_VALUE_PLAIN;
}

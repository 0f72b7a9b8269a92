#include <errno.h>

#include "gpuset.h"
#include "hex.h"
#include "record.h"
#include "text.h"

/* A record ends with 13 bytes for its sum: "sum=", eight digits and a newline. */
enum { SUM_AT = RECORD_SIZE - 13, BODY_MAX = SUM_AT - 1 };

static const char ELLIPSIS[] = "\xe2\x80\xa6";

static uint32_t record_sum(const char *raw)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < SUM_AT; i++)
		sum = (sum ^ (unsigned char)raw[i]) * 16777619u;
	return sum;
}

/*
 * Writes "sum=0123abcd\n" for the record at @raw.  It avoids snprintf(), because every record that
 * is read needs this.
 */
static void record_make_trailer(const char *raw, char out[RECORD_SIZE - SUM_AT])
{
	static const char digits[] = "0123456789abcdef";
	uint32_t sum = record_sum(raw);

	memcpy(out, "sum=", 4);
	for (int i = 11; i >= 4; i--, sum >>= 4)
		out[i] = digits[sum & 15];
	out[12] = '\n';
}

const char record_void[RECORD_SIZE];

enum record_state record_judge(const char *raw)
{
	char trailer[RECORD_SIZE - SUM_AT];

	if (memcmp(raw, record_void, RECORD_SIZE) == 0)
		return RECORD_VOID;
	record_make_trailer(raw, trailer);
	if (memcmp(raw + SUM_AT, trailer, RECORD_SIZE - SUM_AT) != 0)
		return RECORD_BROKEN;
	return RECORD_GOOD;
}

bool record_is(const char *raw, const char *type)
{
	size_t size = strlen(type);

	return memcmp(raw, type, size) == 0 && raw[size] == ' ';
}

/* --- values ------------------------------------------------------------------------ */

static bool read_decimal(const char *in, size_t size, uint64_t *out)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++) {
		unsigned digit = (unsigned)in[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, digit, &value))
			return false;
	}
	*out = value;
	return size > 0;
}

static bool needs_escape(unsigned char c)
{
	return c < 0x21 || c == 0x7f || c == '%' || c == '=';
}

size_t record_text_size(const char *text)
{
	size_t size = 0;

	for (; *text; text++)
		size += needs_escape((unsigned char)*text) ? 3 : 1;
	return size;
}

/* Whether no byte is a control character; encoding always escapes them. */
static bool is_clean(const char *in, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)in[i] < 0x20 || in[i] == 0x7f)
			return false;
	return true;
}

static bool record_unescape(const char *in, size_t size, char *out, size_t out_size)
{
	size_t used = 0;

	for (size_t i = 0; i < size; i++) {
		char c = in[i];

		if (c ==
			'=') /* encoding escapes it: such a value could outgrow the record */
			return false;
		if (c == '%') {
			uint64_t byte;

			if (size - i < 3 || hex_read(in + i + 1, 2, HEX_UPPER, &byte) < 0)
				return false;
			c = (char)byte;
			i += 2;
		}
		if (used + 1 < out_size)
			out[used++] = c;
	}
	out[used] = '\0';
	return true;
}

static bool field_decode_value(
	const struct record_field *field, const char *in, size_t size, char *out)
{
	bool minus = size > 0 && in[0] == '-';
	uint64_t value = 0;

	switch (field->kind) {
	case RECORD_U32:
		if (!read_decimal(in, size, &value) || value > UINT32_MAX)
			return false;
		*(uint32_t *)out = (uint32_t)value;
		return true;
	case RECORD_I64:
	case RECORD_MS:
		if (!read_decimal(in + minus, size - minus, &value) ||
			value > (uint64_t)INT64_MAX + minus)
			return false;
		if (field->kind == RECORD_MS && value > RECORD_MS_MOST)
			value = RECORD_MS_MOST;
		*(int64_t *)out = (int64_t)(minus ? 0 - value : value);
		return true;
	case RECORD_U64:
		return read_decimal(in, size, (uint64_t *)out);
	case RECORD_HEX:
		return hex_read(in, size, HEX_LOWER, (uint64_t *)out) == 0;
	case RECORD_SET:
		return gpuset_from_hex(in, size, (struct gpuset *)out) == 0;
	case RECORD_TEXT:
	case RECORD_REST:
		return record_unescape(in, size, out, field->size);
	case RECORD_EXTRA:
		break;
	}
	return false;
}

/* Appends the unknown field @token, `key=value`, to the RECORD_EXTRA, if it fits whole. */
static void schema_keep_extra(
	const struct record_schema *schema, const char *token, size_t size, char *out)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct record_field *field = &schema->fields[i];
		size_t used;

		if (field->kind != RECORD_EXTRA)
			continue;
		used = strlen(out + field->offset);
		if (used + size + 2 <= field->size)
			(void)snprintf(out + field->offset + used, field->size - used,
				"%s%.*s", used ? " " : "", (int)size, token);
	}
}

static const struct record_field *schema_find_field(
	const struct record_schema *schema, const char *key, size_t size, size_t *from)
{
	/* most records have their fields in table order: begin after the last one found */
	for (size_t i = 0; i < schema->count; i++) {
		size_t at = (*from + i) % schema->count;
		const struct record_field *field = &schema->fields[at];

		if (field->kind != RECORD_EXTRA && strlen(field->key) == size &&
			memcmp(field->key, key, size) == 0) {
			*from = at + 1;
			return field;
		}
	}
	return NULL;
}

static void schema_clear_fields(const struct record_schema *schema, char *out)
{
	for (size_t i = 0; i < schema->count; i++) {
		const struct record_field *field = &schema->fields[i];

		switch (field->kind) {
		case RECORD_U32:
			*(uint32_t *)(out + field->offset) = 0;
			break;
		case RECORD_U64:
		case RECORD_I64:
		case RECORD_MS:
		case RECORD_HEX:
			*(uint64_t *)(out + field->offset) = 0;
			break;
		case RECORD_SET:
			*(struct gpuset *)(out + field->offset) = GPUSET_NONE;
			break;
		case RECORD_TEXT:
		case RECORD_REST:
		case RECORD_EXTRA:
			out[field->offset] = '\0';
			break;
		}
	}
}

int record_decode(const struct record_schema *schema, const char *raw, void *out)
{
	const char *end = raw + SUM_AT;
	const char *at = raw + strlen(schema->type);
	size_t from = 0;

	if (!record_is(raw, schema->type))
		return record_judge(raw) == RECORD_GOOD ? -ENOMSG : -EBADMSG;
	if (record_judge(raw) != RECORD_GOOD)
		return -EBADMSG;
	if (!is_clean(raw, SUM_AT))
		return -EINVAL;
	schema_clear_fields(schema, out);
	while (at < end) {
		const char *stop, *equals;
		const struct record_field *field;

		if (*at == ' ') {
			at++;
			continue;
		}
		stop = memchr(at, ' ', (size_t)(end - at));
		stop = stop ? stop : end;
		equals = memchr(at, '=', (size_t)(stop - at));
		if (!equals)
			return -EINVAL;
		field = schema_find_field(schema, at, (size_t)(equals - at), &from);
		if (!field)
			schema_keep_extra(schema, at, (size_t)(stop - at), out);
		else if (!field_decode_value(field, equals + 1,
				 (size_t)(stop - equals - 1),
				 (char *)out + field->offset))
			return -EINVAL;
		at = stop;
	}
	return 0;
}

/* --- encoding ---------------------------------------------------------------------- */

/*
 * Appends @in, escaped.  If that needs more than @room bytes, it is cut after a whole character,
 * and with @mark it then ends with an ellipsis.
 */
static void record_add_escaped(struct text *body, const char *in, size_t room, bool mark)
{
	char escaped[BODY_MAX + 4];
	struct text out = TEXT_ON(escaped);
	size_t fits = 0; /* this many bytes of @out fit, also with the ellipsis */
	size_t reserve = mark ? strlen(ELLIPSIS) : 0;

	for (; *in && out.used <= room; in++) {
		unsigned char c = (unsigned char)*in;

		/* never cut inside an escape or a UTF-8 character */
		if ((c & 0xc0) != 0x80 && out.used + reserve <= room)
			fits = out.used;
		if (needs_escape(c))
			text_addf(&out, "%%%02X", c);
		else
			text_add_bytes(&out, in, 1);
	}
	if (out.used <= room) {
		text_add_bytes(body, escaped, out.used);
		return;
	}
	text_add_bytes(body, escaped, fits);
	if (mark)
		text_add(body, ELLIPSIS);
}

static bool field_is_empty(const struct record_field *field, const char *in)
{
	switch (field->kind) {
	case RECORD_U32:
		return *(const uint32_t *)in == 0;
	case RECORD_U64:
	case RECORD_I64:
	case RECORD_MS:
	case RECORD_HEX:
		return *(const uint64_t *)in == 0;
	case RECORD_SET:
		return gpuset_is_empty((const struct gpuset *)in);
	case RECORD_TEXT:
	case RECORD_REST:
	case RECORD_EXTRA:
		break;
	}
	return *in == '\0';
}

static void field_add_value(
	struct text *body, const struct record_field *field, const char *in)
{
	char hex[GPUSET_HEX_SIZE];

	switch (field->kind) {
	case RECORD_U32:
		text_addf(body, "%u", *(const uint32_t *)in);
		break;
	case RECORD_U64:
		text_addf(body, "%llu", *(const unsigned long long *)in);
		break;
	case RECORD_I64:
	case RECORD_MS:
		text_addf(body, "%lld", *(const long long *)in);
		break;
	case RECORD_HEX:
		text_addf(body, "%llx", *(const unsigned long long *)in);
		break;
	case RECORD_SET:
		gpuset_to_hex((const struct gpuset *)in, hex);
		text_add(body, hex);
		break;
	case RECORD_TEXT:
		record_add_escaped(body, in, field->size - 1, false);
		break;
	case RECORD_REST:
		record_add_escaped(body, in, body->size - 1 - body->used, true);
		break;
	case RECORD_EXTRA:
		text_add(body, in);
		break;
	}
}

int record_encode(const struct record_schema *schema, const void *in, char *raw)
{
	char content[BODY_MAX + 1], trailer[RECORD_SIZE - SUM_AT];
	struct text body = TEXT_ON(content);

	text_add(&body, schema->type);
	for (size_t i = 0; i < schema->count; i++) {
		const struct record_field *field = &schema->fields[i];
		const char *value = (const char *)in + field->offset;

		if (field_is_empty(field, value))
			continue;
		text_add(&body, " ");
		if (field->kind != RECORD_EXTRA)
			text_addf(&body, "%s=", field->key);
		field_add_value(&body, field, value);
	}
	if (body.cut)
		return -EMSGSIZE;
	memset(raw, ' ', RECORD_SIZE);
	memcpy(raw, content, body.used);
	record_make_trailer(raw, trailer);
	memcpy(raw + SUM_AT, trailer, RECORD_SIZE - SUM_AT);
	return 0;
}

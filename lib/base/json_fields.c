#include <errno.h>

#include "json_fields.h"

/* Reads a number such as 12 or 0.25; false: it is none, or it is negative. */
static bool read_decimal(const struct json_value *value, double *ret)
{
	double number = 0, scale = 1;
	size_t i = 0;

	while (i < value->size && is_digit(value->at[i]))
		number = number * 10 + (value->at[i++] - '0');
	if (i < value->size && value->at[i] == '.')
		for (i++; i < value->size && is_digit(value->at[i]); i++)
			number += (scale /= 10) * (value->at[i] - '0');
	if (i == 0 || i != value->size)
		return false;
	*ret = number;
	return true;
}

static int read_each(
	const struct json_field *field, const struct json_value *array, void *record)
{
	struct json_walk walk = JSON_WALK(array->at, array->size);
	struct json_value element;
	int r;

	if (array->kind != JSON_NESTED || *array->at != '[')
		return 0;
	while ((r = json_element(&walk, &element)) == JSON_MEMBER) {
		r = field->each(&element, record);
		if (r < 0)
			break;
	}
	return r;
}

static int read_field(
	const struct json_field *field, const struct json_value *value, void *record)
{
	char *at = (char *)record + field->offset;
	struct text text;

	if (value->kind == JSON_NULL)
		return 0;
	switch (field->kind) {
	case FIELD_TEXT:
		if (value->kind != JSON_STRING)
			return 0;
		text = text_on(at, field->size);
		json_unescape(value, &text);
		return 0;
	case FIELD_NUMBER:
		if (value->kind == JSON_NUMBER)
			(void)!json_read_signed(
				value, INT64_MIN, INT64_MAX, (int64_t *)(void *)at);
		return 0;
	case FIELD_DECIMAL:
		if (value->kind == JSON_NUMBER)
			(void)read_decimal(value, (double *)(void *)at);
		return 0;
	case FIELD_BOOL:
		if (value->kind == JSON_BOOL)
			*(bool *)(void *)at = *value->at == 't';
		return 0;
	case FIELD_EACH:
		return read_each(field, value, record);
	default:
		return field->each(value, record);
	}
}

int json_fields_read(
	const struct json_field *fields, const struct json_value *object, void *record)
{
	struct json_walk walk = JSON_WALK(object->at, object->size);
	struct json_value key, value;
	int r;

	while ((r = json_next(&walk, &key, &value)) == JSON_MEMBER)
		for (const struct json_field *field = fields; field->key; field++) {
			/* the first letter alone tells most of them apart */
			if (field->key[0] != *key.at || strlen(field->key) != key.size ||
				memcmp(field->key, key.at, key.size) != 0)
				continue;
			r = read_field(field, &value, record);
			if (r < 0)
				return r;
		}
	return r;
}

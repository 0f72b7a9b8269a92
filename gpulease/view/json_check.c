#include "json_check.h"
#include "json_text.h"

static size_t count_digits(const char *at, size_t size)
{
	size_t count = 0;

	while (count < size && is_digit(at[count]))
		count++;
	return count;
}

/* Whether the @size bytes at @at are a number, as in -0.25e+3. */
static bool is_number(const char *at, size_t size)
{
	size_t i = size && *at == '-' ? 1 : 0, digits = count_digits(at + i, size - i);

	if (!digits || (digits > 1 && at[i] == '0'))
		return false;
	i += digits;
	if (i < size && at[i] == '.') {
		digits = count_digits(at + i + 1, size - i - 1);
		i += 1 + digits;
		if (!digits)
			return false;
	}
	if (i < size && (at[i] | 0x20) == 'e') {
		i += i + 1 < size && (at[i + 1] == '-' || at[i + 1] == '+') ? 2 : 1;
		digits = count_digits(at + i, size - i);
		i += digits;
		if (!digits)
			return false;
	}
	return i == size;
}

/* Whether a terminal may show what stands between the quotes. */
static bool is_clean_string(const char *at, size_t size)
{
	for (size_t i = 0; i < size;) {
		char shown[JSON_CHARACTER_SIZE];
		struct text text = TEXT_ON(shown);
		size_t length;

		if (at[i] == '\\') { /* what follows is an escape, or a part of one */
			i += 2;
			continue;
		}
		length = json_add_character(&text, at + i, size - i);
		if (text.used != length || memcmp(shown, at + i, length) != 0)
			return false;
		i += length;
	}
	return true;
}

static bool is_clean_object(const struct json_value *object)
{
	struct json_walk walk = JSON_WALK(object->at, object->size);
	struct json_value key, value;
	int r;

	while ((r = json_next(&walk, &key, &value)) == JSON_MEMBER)
		if (!is_clean_string(key.at, key.size) || !json_is_clean(&value))
			return false;
	return r == 0;
}

static bool is_clean_array(const struct json_value *array)
{
	struct json_walk walk = JSON_WALK(array->at, array->size);
	struct json_value value;
	int r;

	while ((r = json_element(&walk, &value)) == JSON_MEMBER)
		if (!json_is_clean(&value))
			return false;
	return r == 0;
}

/* The depth is that of json_take_nested() at most. */
bool json_is_clean(const struct json_value *value)
{
	switch (value->kind) {
	case JSON_STRING:
		return is_clean_string(value->at, value->size);
	case JSON_NUMBER:
		return is_number(value->at, value->size);
	case JSON_NESTED:
		return *value->at == '{' ? is_clean_object(value) : is_clean_array(value);
	default:
		return true;
	}
}

#include "top_keys.h"

enum { ESC = 27, NUMBER_MAX = 1000 };

/* ESC [ NUMBER FINAL, or ESC O FINAL */
static const struct {
	char final;
	unsigned number;
	int key;
} sequences[] = {
	{ 'A', 0, TOP_KEY_UP },
	{ 'B', 0, TOP_KEY_DOWN },
	{ 'C', 0, TOP_KEY_RIGHT },
	{ 'D', 0, TOP_KEY_LEFT },
	{ 'H', 0, TOP_KEY_FIRST },
	{ 'F', 0, TOP_KEY_LAST },
	{ '~', 1, TOP_KEY_FIRST },
	{ '~', 4, TOP_KEY_LAST },
	{ '~', 5, TOP_KEY_PAGE_UP },
	{ '~', 6, TOP_KEY_PAGE_DOWN },
	{ '~', 7, TOP_KEY_FIRST },
	{ '~', 8, TOP_KEY_LAST },
};

/* The end of a sequence. */
static int top_keys_find(struct top_keys *keys, char final)
{
	unsigned number = keys->number;

	*keys = TOP_KEYS_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(sequences); i++)
		if (sequences[i].final == final &&
			(sequences[i].number == number || final != '~'))
			return sequences[i].key;
	return TOP_KEY_NONE;
}

static int top_keys_after_escape(struct top_keys *keys, unsigned char byte)
{
	*keys = TOP_KEYS_NONE;
	if (byte == '[')
		keys->state = TOP_KEYS_CONTROL;
	else if (byte == 'O')
		keys->state = TOP_KEYS_SHIFT;
	else if (byte == ESC) {
		keys->state = TOP_KEYS_ESCAPE;
		return TOP_KEY_ESCAPE;
	}
	return TOP_KEY_NONE; /* Alt and a key is no key here */
}

static int top_keys_after_control(struct top_keys *keys, unsigned char byte)
{
	if (byte >= 0x40 && byte <= 0x7e)
		return top_keys_find(keys, (char)byte);
	if (byte < 0x20 || byte > 0x7e)
		*keys = TOP_KEYS_NONE; /* no such sequence */
	else if (byte < '0' || byte > '9')
		keys->has_number = true;
	else if (!keys->has_number && keys->number < NUMBER_MAX)
		keys->number = 10 * keys->number + (unsigned)(byte - '0');
	return TOP_KEY_NONE;
}

int top_keys_take(struct top_keys *keys, unsigned char byte)
{
	if (keys->state == TOP_KEYS_ESCAPE)
		return top_keys_after_escape(keys, byte);
	if (byte == ESC) {
		*keys = TOP_KEYS_NONE;
		keys->state = TOP_KEYS_ESCAPE;
		return TOP_KEY_NONE;
	}
	if (keys->state == TOP_KEYS_CONTROL)
		return top_keys_after_control(keys, byte);
	if (keys->state == TOP_KEYS_SHIFT)
		return top_keys_find(keys, (char)byte);
	return byte < 0x80 ? byte : TOP_KEY_NONE;
}

bool top_keys_is_escape(const struct top_keys *keys)
{
	return keys->state == TOP_KEYS_ESCAPE;
}

int top_keys_end(struct top_keys *keys)
{
	if (!top_keys_is_escape(keys))
		return TOP_KEY_NONE;
	*keys = TOP_KEYS_NONE;
	return TOP_KEY_ESCAPE;
}

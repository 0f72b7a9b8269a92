/*
 * Keys of a terminal, from the bytes that it sends.  Pure.
 *
 *	for each byte that was read: top_keys_take; when no more came for a moment: top_keys_end
 */
#ifndef GPULEASE_TOP_KEYS_H
#define GPULEASE_TOP_KEYS_H

#include "base.h"

/* A key that sends one byte of ASCII is that byte, as Ctrl-L is 12; the others have names. */
enum {
	TOP_KEY_NONE = -1,
	TOP_KEY_REDRAW = 12, /* Ctrl-L */
	TOP_KEY_ESCAPE = 27,
	TOP_KEY_UP = 256,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_FIRST,
	TOP_KEY_LAST,
};

enum top_keys_state {
	TOP_KEYS_GROUND,
	TOP_KEYS_ESCAPE,  /* after ESC */
	TOP_KEYS_CONTROL, /* after ESC [ */
	TOP_KEYS_SHIFT,   /* after ESC O */
};

struct top_keys {
	enum top_keys_state state;
	unsigned number; /* the first number after ESC [ */
	bool has_number; /* it is complete */
};

#define TOP_KEYS_NONE ((struct top_keys){ .state = TOP_KEYS_GROUND })

/*
 * Takes a byte.  Returns the key that it completes, or TOP_KEY_NONE.  Sequences of keys without a
 * name here, and bytes beyond ASCII, are no keys.
 */
int top_keys_take(struct top_keys *keys, unsigned char byte);

/* Whether ESC was the last byte: it is the key Escape, or the beginning of another key. */
bool top_keys_is_escape(const struct top_keys *keys);

/* Returns TOP_KEY_ESCAPE if ESC was the last byte, and forgets it; else TOP_KEY_NONE. */
int top_keys_end(struct top_keys *keys);

#endif

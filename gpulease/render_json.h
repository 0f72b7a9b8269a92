/*
 * A writer of JSON: objects and arrays, indented, one member a line.  Pure: what is written
 * depends on the calls alone.
 *
 *	struct json json = JSON_ON(stdout);
 *
 *	json_begin_object(&json);
 *	json_key(&json, "gpus");
 *	json_begin_array(&json); … json_end(&json);
 *	json_end(&json);
 *	json_finish(&json);
 *
 * Calls that would not make JSON (a value without its key, an end without a beginning, a
 * depth beyond JSON_DEPTH_MAX) are errors of the program and end it.
 *
 * Texts may hold any bytes.  What may be shown on a terminal stands for itself; everything
 * else is escaped; a byte that is not UTF-8 becomes U+FFFD.
 */
#ifndef GPULEASE_RENDER_JSON_H
#define GPULEASE_RENDER_JSON_H

#include <stdio.h>

#include "text.h"

enum { JSON_DEPTH_MAX = 8 };

struct json {
	FILE *out;
	unsigned depth;
	char ends[JSON_DEPTH_MAX]; /* what ends each level that is open */
	bool has_member;           /* the innermost level has one already */
	bool has_key;              /* a key stands there and has no value yet */
	bool is_done;              /* one whole value has been written */
};

#define JSON_ON(file) ((struct json){ .out = (file) })

void json_begin_object(struct json *json);
void json_begin_array(struct json *json);
void json_end(struct json *json);
void json_key(struct json *json, const char *key);

void json_text(struct json *json, const char *text);
void json_bytes(struct json *json, const char *bytes, size_t size);
void json_unsigned(struct json *json, uint64_t value);
void json_signed(struct json *json, int64_t value);
void json_hundredths(struct json *json, uint64_t value); /* 50: 0.5 */
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* A member with its key: the text, or null where it is NULL or "". */
void json_put_text(struct json *json, const char *key, const char *text);

/* The last line ends: everything that was begun has been ended. */
void json_finish(struct json *json);

#endif

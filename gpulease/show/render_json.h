/*
 * Writes JSON: objects and arrays, indented, one member a line.  Pure: the output depends only on
 * the calls.
 *
 *	struct json json = JSON_ON(stdout);
 *
 *	json_begin_object(&json);
 *	json_key(&json, "gpus");
 *	json_begin_array(&json); … json_end(&json);
 *	json_end(&json);
 *	json_finish(&json);
 *
 * Calls that would not make JSON (a value without its key, an end without a beginning, a depth
 * beyond JSON_DEPTH_MAX) are errors of the program, which assert() catches.
 *
 * Texts may hold any bytes; json_text.h says how they are written.
 */
#ifndef GPULEASE_RENDER_JSON_H
#define GPULEASE_RENDER_JSON_H

#include <stdio.h>

#include "text.h"

enum { JSON_DEPTH_MAX = 8 };

struct json {
	FILE *out;
	unsigned depth;
	char ends[JSON_DEPTH_MAX]; /* the closing bracket of each open level */
	bool has_member;           /* the innermost level has a member already */
	bool has_key;              /* a key was written and has no value yet */
	bool is_done;              /* one whole value has been written */
};

#define JSON_ON(file) ((struct json){ .out = (file) })

/* --- structure ----------------------------------------------------------------------------- */

void json_begin_object(struct json *json);
void json_begin_array(struct json *json);
void json_end(struct json *json);
void json_key(struct json *json, const char *key);

/* --- values, each after its key or as the next element of an array --------------------------- */

void json_text(struct json *json, const char *text);
void json_bytes(struct json *json, const char *bytes, size_t size);
void json_unsigned(struct json *json, uint64_t value);
void json_signed(struct json *json, int64_t value);
void json_hundredths(struct json *json, uint64_t value); /* 50 is written as 0.5 */
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* Writes bytes that are a JSON value already. */
void json_verbatim(struct json *json, const char *bytes, size_t size);

/* Prints a member with its key: the text, or null if it is NULL or "". */
void json_put_text(struct json *json, const char *key, const char *text);

/* Ends the last line.  Every level has to be ended before. */
void json_finish(struct json *json);

#endif

/*
 * What several tables have: cells; and what several kinds of JSON have: members.  Between
 * show_*.c.
 */
#ifndef GPULEASE_SHOW_PARTS_H
#define GPULEASE_SHOW_PARTS_H

#include "render_json.h"
#include "show.h"

/* An id, but not 0; a span, but not a negative one. */
void show_put_id(struct table *table, unsigned column, uint64_t id);
/* Which attempt of the job, where that is not the first. */
void show_put_attempt(struct table *table, unsigned column, uint32_t attempt);
void show_put_span(struct table *table, unsigned column, int64_t span_ms);

/* The time of day, with the date where that is another than at @now_ms; nothing for 0. */
void show_put_time(struct table *table, unsigned column, int64_t at_ms, int64_t now_ms);

/* Appends what is needed of each GPU, "0.5+18G"; nothing where that is all of it. */
void show_add_need(const struct need *need, struct text *out);

/* Prints the table and gives its memory back.  0 or -ENOMEM. */
MUST_CHECK int show_and_release(
	struct table *table, const struct table_style *style, FILE *out);

/* A line for each job that runs and uses more than it has declared. */
void show_excess(const struct view *view, const struct table_style *style, FILE *out);
/* Their ids, as a member. */
void member_excess(struct json *json, const struct view *view);

/* A document, which is one object: its beginning and its end. */
void document_begin(
	struct json *json, const char *format, int64_t now_ms, const char *directory);
void document_finish(struct json *json);

/* Members of an object.  A span below 0 and a time of 0 are null. */
void member_text(struct json *json, const char *key, const char *text);
void member_bool(struct json *json, const char *key, bool value);
void member_number(struct json *json, const char *key, uint64_t value);
void member_number_if(struct json *json, const char *key, bool is_known, uint64_t value);
void member_span(struct json *json, const char *key, int64_t value);
void member_time(struct json *json, const char *key, int64_t value);

/* A share of a GPU in percent; null where @is_known is false. */
void member_share(struct json *json, const char *key, bool is_known, int64_t percent);

/* How many lines of the history are missing, and when the last was due. */
void member_gap(struct json *json, const struct history_gap *gap);

/* What a job has, or wants to have, of a GPU. */
void member_need(struct json *json, const struct need *need);

#endif

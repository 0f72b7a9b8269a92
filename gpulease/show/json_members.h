/*
 * Members that several JSON documents of gpulease have.  Pure, except for document_host().
 *
 * For all of these documents: names and types of members stay as they are; new members may be
 * added.  A value that is unknown or does not apply is null.  The names of times end in _unix_ms
 * (milliseconds since 1970), of spans in _ms, of sizes in _mib.  A pid is null if the process is
 * in another pid namespace.
 */
#ifndef GPULEASE_JSON_MEMBERS_H
#define GPULEASE_JSON_MEMBERS_H

#include "foretell.h"
#include "history.h"
#include "room.h"
#include "render_json.h"

/* The version of the members of all documents, and of the events of a batch. */
enum { DOCUMENT_SCHEMA = 1 };

/* The engine, if it is another one than this machine: the member `engine`; NULL: there is none. */
extern const char *document_engine;

/* Returns the name of this machine. */
const char *document_host(void);

/*
 * Begins and finishes a document, which is one object.  Its first members are the format (from
 * @kind, as in "status"), the version, the host and the time.  Then comes the state directory: null
 * if @directory is "", left out if @directory is NULL.
 */
void document_begin(
	struct json *json, const char *kind, int64_t now_ms, const char *directory);
void document_finish(struct json *json);

void member_text(struct json *json, const char *key, const char *text);
/*
 * Prints the name of a job, null if it has none.  @is_cut: only the beginning could be read; a
 * member `name_is_cut` says so, which is there only then.
 */
void member_name(struct json *json, const char *name, bool is_cut);

void member_bool(struct json *json, const char *key, bool value);
void member_number(struct json *json, const char *key, uint64_t value);

/* Prints a number, or null unless @is_known. */
void member_number_if(struct json *json, const char *key, bool is_known, uint64_t value);

/* Prints a span, or null if it is negative. */
void member_span(struct json *json, const char *key, int64_t value);

/* Prints a time, or null if it is 0 or negative. */
void member_time(struct json *json, const char *key, int64_t value);

/* Prints a share of a GPU: @percent / 100, or null unless @is_known. */
void member_share(struct json *json, const char *key, bool is_known, int64_t percent);

/* Prints how many lines of the history are missing, and when the last of them was due. */
void member_gap(struct json *json, const struct history_gap *gap);

/* Prints what a job has, or needs, of each GPU: share, vram_mib, exclusive. */
void member_need(struct json *json, const struct need *need);

/*
 * Prints between which times a job usually starts, and the runs that this rests on: null if that is
 * not known.  @to_real_ms leads from the clock of @foretold to CLOCK_REALTIME.
 */
void member_foretold(
	struct json *json, const struct foretold *foretold, int64_t to_real_ms);

/* Prints how long jobs like this one run, and the memory that they use: null if not known. */
void member_usual(struct json *json, const struct usual *usual);

#endif

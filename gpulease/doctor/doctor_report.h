/*
 * The findings of --doctor, as lines for people and as JSON.  Pure but for memory.
 *
 * A check adds one finding or more.  Each finding is one line: the result, the name of the check,
 * what it found, and what to do about it.
 *
 *	ok    file system: ext2/3/4
 *	warn  nvidia-smi: took 1740 ms; turn on persistence mode: nvidia-smi -pm 1
 *	fail  state directory: …
 *
 * JSON, an object (json_members.h says what holds for all JSON of gpulease):
 *	format              "gpulease-doctor/1"
 *	taken_unix_ms       integer
 *	state_directory     string | null: the directory cannot be used
 *	result              "ok" | "warn" | "fail": the worst result below
 *	checks              array of objects, one per finding, in the order of the lines
 *	    name            string: of the check; several findings may have the same name
 *	    result          "ok" | "warn" | "fail"
 *	    text            string: what the check found
 *	    remedy          string | null: what to do about it
 */
#ifndef GPULEASE_DOCTOR_REPORT_H
#define GPULEASE_DOCTOR_REPORT_H

#include "render_json.h"
#include "render_table.h"

/* A worse result has a greater value. */
enum doctor_result { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_finding {
	const char *name; /* of the check; a constant string */
	enum doctor_result result;
	char text[480];
	char remedy[320]; /* "": there is nothing to do */
};

struct doctor_report {
	const char *check; /* the name of the check that adds findings now */
	struct doctor_finding *findings;
	size_t count, room;
	bool is_short_of_memory; /* a finding was lost */
};

#define DOCTOR_REPORT_NONE ((struct doctor_report){ .findings = NULL })

void doctor_report_release(struct doctor_report *report);

/*
 * Adds a finding of ->check.  The text may hold any bytes.  Returns the finding, for
 * doctor_remedy(); the pointer is valid until the next finding is added.
 */
struct doctor_finding *doctor_add(struct doctor_report *report, enum doctor_result result,
	const char *format, ...) PRINTF_LIKE(3, 4);
void doctor_remedy(struct doctor_finding *finding, const char *format, ...)
	PRINTF_LIKE(2, 3);

/* Adds a finding with the text and the remedy of @why. */
struct doctor_finding *doctor_add_why(
	struct doctor_report *report, enum doctor_result result, const struct why *why);

/* Returns the worst result; DOCTOR_OK without any finding. */
enum doctor_result doctor_worst(const struct doctor_report *report);

/* Prints a line for each finding, neither cut nor folded, so that users can copy commands. */
void doctor_print(
	const struct doctor_report *report, const struct table_style *style, FILE *out);

/* Prints the members ->result and ->checks of the JSON above. */
void doctor_put_findings(const struct doctor_report *report, struct json *json);

/* Prints the JSON above.  @directory is NULL if the state directory cannot be used. */
void doctor_print_json(const struct doctor_report *report, const char *directory,
	int64_t now_ms, FILE *out);

#endif

/*
 * What --doctor found, and how it is shown.  Pure but for memory.
 *
 * Each finding is one line: what is checked, how it is, and where something is to be done,
 * what.  A check finds one thing or more.
 *
 *	ok    file system: ext2/3/4
 *	warn  nvidia-smi: took 1740 ms; turn on persistence mode: nvidia-smi -pm 1
 *	fail  state directory: …
 *
 * JSON, an object; as in show.h names and types stay, and what does not apply is null:
 *	format              "gpulease-doctor/1"
 *	taken_unix_ms       integer
 *	state_directory     string | null: it cannot be used
 *	result              "ok" | "warn" | "fail": the worst of all
 *	checks              array of objects, in the order of the lines
 *	    name            string: of the check; several findings may have the same
 *	    result          "ok" | "warn" | "fail"
 *	    text            string: what is so
 *	    remedy          string | null: what is to be done
 */
#ifndef GPULEASE_DOCTOR_H
#define GPULEASE_DOCTOR_H

#include "render_table.h"

/* The worse, the greater. */
enum doctor_result { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_finding {
	const char *name; /* of the check, for good */
	enum doctor_result result;
	char text[480];
	char remedy[320]; /* "": nothing is to be done */
};

struct doctor_report {
	const char *check; /* whose findings are being added */
	struct doctor_finding *findings;
	size_t count, room;
	bool is_short_of_memory; /* something was lost */
};

#define DOCTOR_REPORT_NONE ((struct doctor_report){ .findings = NULL })

void doctor_report_release(struct doctor_report *report);

/*
 * Adds a finding of ->check.  The text may be of any bytes.  What is returned is for
 * doctor_remedy(), and good until the next is added.
 */
struct doctor_finding *doctor_add(struct doctor_report *report, enum doctor_result result,
	const char *format, ...) PRINTF_LIKE(3, 4);
void doctor_remedy(struct doctor_finding *finding, const char *format, ...)
	PRINTF_LIKE(2, 3);

/*
 * Adds @message, which ends as gpulease's messages do that know a way out: "what is wrong;
 * what to do".  The part behind the last `; ` is the remedy.
 */
struct doctor_finding *doctor_add_message(
	struct doctor_report *report, enum doctor_result result, const char *message);

/* The worst of all results. */
enum doctor_result doctor_worst(const struct doctor_report *report);

/* One line each; they are not cut or folded, for they are to be copied. */
void doctor_print(
	const struct doctor_report *report, const struct table_style *style, FILE *out);

/* @directory: the state directory, NULL where it cannot be used. */
void doctor_print_json(const struct doctor_report *report, const char *directory,
	int64_t now_ms, FILE *out);

#endif

/*
 * Numbers that people write: counts, durations, time limits, sizes.  Pure.
 *
 * Each parse function returns 0 and sets its output.  Or it returns -EINVAL, sets no output, and
 * says in @why what the text is, what is wrong with it, and what to write instead: `'3x' is not a
 * duration; write 90s, 15m, 2h or 1d`.  The whole text has to be the number: white space, signs
 * and exponents are errors.  parse_gpus.h reads numbers of GPUs.
 */
#ifndef GPULEASE_PARSE_H
#define GPULEASE_PARSE_H

#include "text.h"

/* A text from outside, made fit for a message: printable, and cut after 60 bytes. */
struct quoted {
	char text[64];
};

/* For `why_set(why, "'%s' is …", quote(text).text)`: valid to the end of the statement. */
struct quoted quote(const char *text);
struct quoted quote_bytes(const char *bytes, size_t size);

/*
 * Reads a decimal number, at most @max.  The reason does not name the number's purpose: the
 * caller has to.
 */
MUST_CHECK int parse_u64(const char *text, uint64_t max, uint64_t *ret, struct why *why);

/*
 * Reads a duration of at most ten years: one number with a unit (500ms, 90s, 15m, 1.5h, 1d); a
 * number without a unit, which is seconds; or whole numbers with ever smaller units, as
 * format_duration() writes them (1h30m, 2d4h).
 */
MUST_CHECK int parse_duration_ms(const char *text, int64_t *ret_ms, struct why *why);

/*
 * Reads a time limit of at most ten years as srun does: M:S, H:M:S, D-H, D-H:M or D-H:M:S; a
 * number without a unit, which is MINUTES; or numbers with units, as for a duration (90s, 1h30m).
 * UNLIMITED, INFINITE and a time of zero mean no limit: *@ret_ms is then 0.
 */
MUST_CHECK int parse_time_limit_ms(const char *text, int64_t *ret_ms, struct why *why);

/*
 * Reads a size of memory in MiB: a number (of MiB) or a number with a unit in either case, from K
 * to T (22G, 1.5GiB, 8000MiB, 8000M).  G, GB and GiB are all 1024 MiB, because makers of GPUs
 * count like that.  The result is rounded up; it is at least 1 and at most 2^30.
 */
MUST_CHECK int parse_size_mib(const char *text, uint64_t *ret_mib, struct why *why);

/*
 * Sizes are printed with G or M, never with GiB or MiB: a line then has one spelling for what the
 * user wrote and for what the program adds.  explain_size() (wait_reason.h) writes a need or what
 * is free, report_add_size() (report.h) what was measured, both in G.  text_add_mib() writes a size
 * that has to stay exact: a line of a jobs file, a value of the configuration.
 */

/* Appends @mib as parse_size_mib() reads it: "18G"; "18000M" if it is no whole number of G; "0". */
enum { MIB_TEXT_SIZE = 24 };
void text_add_mib(uint64_t mib, struct text *out);

/* Writes @mib for people, in G without the unit: "0.5", "17.6". */
enum { GIB_TEXT_SIZE = 24 };
void format_gib(uint64_t mib, char out[GIB_TEXT_SIZE]);

/* The size of the longest text of format_duration() and format_exact_duration(). */
enum { DURATION_SIZE = 24 };

/*
 * Writes @ms for people, with at most two units: "<1s", "45s", "2m05s" (below ten minutes), "12m",
 * "3h05m", "2d4h".  A negative time becomes "<1s".
 */
void format_duration(int64_t ms, char out[DURATION_SIZE]);

/* Writes @ms (not negative) exactly, in the largest unit that divides it: "90s". */
void format_exact_duration(int64_t ms, char out[DURATION_SIZE]);

#endif

/*
 * Texts that people write, into numbers: counts, durations, sizes, time limits.  Pure.
 * Each returns 0 and sets its output, or -EINVAL and says in @why what the text is, what
 * is wrong with it and what is allowed (`'3x' is not a duration; write 90s, 15m, 2h or
 * 1d`). Nothing is set on failure.  White space is never skipped; the whole text must
 * fit.  Signs and exponents are not read.
 */
#ifndef GPULEASE_PARSE_H
#define GPULEASE_PARSE_H

#include "text.h"

/*
 * A text of somebody else's as it may stand in a message: printable, cut after 60 bytes.
 */
struct quoted {
	char text[64];
};

/* why_set(why, "'%s' is …", quote(text).text), valid to the end of that statement. */
struct quoted quote(const char *text);
struct quoted quote_bytes(const char *bytes, size_t size);

/*
 * A decimal number of at most @max, without sign.  The reason does not say what it is
 * for.
 */
MUST_CHECK int parse_u64(const char *text, uint64_t max, uint64_t *ret, struct why *why);

/*
 * A number of GPUs, 0 to 128, or a share of one: `0.5`, a whole percentage.  Then *@ret is 1
 * and *@ret_percent 1 to 99; else *@ret_percent is 0.  Above 1 only whole numbers, as `2.0`.
 */
MUST_CHECK int parse_gpu_count(
	const char *text, unsigned *ret, unsigned *ret_percent, struct why *why);

/* The same for what was reckoned: rounded up, to a percentage or to whole GPUs. */
MUST_CHECK int parse_gpu_need(
	const char *text, unsigned *ret, unsigned *ret_percent, struct why *why);

/*
 * A duration: bare number = seconds; 500ms, 90s, 15m, 1.5h, 1d; whole numbers with falling
 * units, as format_duration() writes them: 1h30m, 2d4h; at most ten years.
 */
MUST_CHECK int parse_duration_ms(const char *text, int64_t *ret_ms, struct why *why);

/*
 * A time limit as srun reads one: a bare number is MINUTES; M:S, H:M:S, D-H, D-H:M,
 * D-H:M:S; a suffix (90s, 15m, 1h30m, 1d) always wins.  No time at all in any of these
 * forms, UNLIMITED and INFINITE mean no limit: 0.  At most ten years.
 */
MUST_CHECK int parse_time_limit_ms(const char *text, int64_t *ret_ms, struct why *why);

/*
 * A size of memory: MiB by default; 22G, 1.5GiB, 8000MiB, 8000M, also K and T, in either
 * case.  G, GB and GiB are all 1024 MiB, as the makers of the cards count.  In MiB,
 * rounded up, at least 1 and at most 2^30.
 */
MUST_CHECK int parse_size_mib(const char *text, uint64_t *ret_mib, struct why *why);

/* Writes @mib as parse_size_mib() reads it: "18G", or "18000MiB" where it is not whole. */
enum { MIB_TEXT_SIZE = 24 };
void format_mib(uint64_t mib, char out[MIB_TEXT_SIZE]);

/* Bytes that format_duration() needs. */
enum { DURATION_SIZE = 24 };

/*
 * Writes @ms as people read it, two units at most: "<1s", "45s", "2m05s" up to ten
 * minutes, "12m", "3h05m", "2d4h".  A negative time is written as none: "<1s".
 */
void format_duration(int64_t ms, char out[DURATION_SIZE]);

/* Writes @ms, which is not negative, whole, in the largest unit that it is a number of: "90s". */
void format_exact_duration(int64_t ms, char out[DURATION_SIZE]);

#endif

/*
 * Any text as a moment, or as the time to begin a job: a moment that is read lies in its range and
 * is the same when it is read again; a refusal has a reason of one printable line.
 */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "begin_time.h"
#include "date_time.h"
#include "fuzz.h"

enum { NOW_MS = 1795178096 }; /* with this now, long ago is before 1970 */

static void check(const char *text, int64_t now_ms)
{
	int64_t at_ms = -1, again_ms = -2;
	struct why why = WHY_NONE;

	if (date_time_parse(text, now_ms, &at_ms, &why) < 0) {
		assert(at_ms == -1);
		fuzz_check_reason(&why);
		return;
	}
	/* the end of a day in the west is on the next day in UTC */
	assert(at_ms >= 0 && at_ms <= (INT64_C(253402300799) + 86400) * 1000);
	assert(date_time_parse(text, now_ms, &again_ms, NULL) == 0 && at_ms == again_ms);
}

static void check_begin(const char *text, int64_t now_ms)
{
	int64_t at_ms = -1, again_ms = -2;
	struct why why = WHY_NONE;

	if (begin_time_parse(text, now_ms, &at_ms, &why) < 0) {
		assert(at_ms == -1);
		fuzz_check_reason(&why);
		return;
	}
	assert(begin_time_parse(text, now_ms, &again_ms, NULL) == 0 && at_ms == again_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = fuzz_string(data, size);

	if (!text)
		return 0;
	(void)setenv("TZ", size % 2 ? "CET-1CEST,M3.5.0,M10.5.0/3" : "EST5EDT", 1);
	tzset();
	check(text, NOW_MS);
	check(text, (int64_t)NOW_MS * 1000);
	check_begin(text, NOW_MS);
	check_begin(text, (int64_t)NOW_MS * 1000);
	return 0;
}

/*
 * Any text into every parser of parse.h: a value that is read lies in its range; a refusal has a
 * reason of one printable line.
 */
#include <assert.h>

#include "parse.h"
#include "parse_gpus.h"
#include "fuzz.h"

static const int64_t TEN_YEARS_MS = INT64_C(3650) * 24 * 3600 * 1000;

static void parse_all(const char *text)
{
	struct why why = WHY_NONE;
	char out[DURATION_SIZE];
	uint64_t number;
	unsigned count, percent, up, up_percent;
	int64_t ms, again;

	if (parse_u64(text, 1000, &number, &why) < 0)
		fuzz_check_reason(&why);
	else
		assert(number <= 1000);
	if (parse_gpu_need(text, &up, &up_percent, &why) < 0)
		fuzz_check_reason(&why);
	else
		assert(up <= 128 && up_percent < 100 && (up == 1 || !up_percent));
	if (parse_gpu_count(text, &count, &percent, &why) < 0) {
		fuzz_check_reason(&why);
	} else { /* and then it is not rounded */
		assert(count <= 128 && percent < 100 && (count == 1 || !percent));
		assert(parse_gpu_need(text, &up, &up_percent, &why) == 0);
		assert(up == count && up_percent == percent);
	}
	if (parse_duration_ms(text, &ms, &why) < 0) {
		fuzz_check_reason(&why);
	} else {
		assert(ms >= 0 && ms <= TEN_YEARS_MS);
		format_exact_duration(ms, out);
		assert(parse_duration_ms(out, &again, &why) == 0 && again == ms);
	}
	if (parse_time_limit_ms(text, &ms, &why) < 0) {
		fuzz_check_reason(&why);
	} else {
		assert(ms >= 0 && ms <= TEN_YEARS_MS);
		format_duration(ms, out);
		assert(ms < 1000 ||
			(parse_duration_ms(out, &again, &why) == 0 && again <= ms));
	}
	if (parse_size_mib(text, &number, &why) < 0)
		fuzz_check_reason(&why);
	else
		assert(number >= 1 && number <= UINT64_C(1) << 30);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = fuzz_string(data, size);

	if (!text)
		return 0;
	parse_all(text);
	return 0;
}

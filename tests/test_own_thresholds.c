#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "own_thresholds.h"

static struct config config;

/* Applies @value to the machine's defaults, with @file as its configuration. */
static int apply(
	const char *file, enum own_threshold which, const char *value, struct why *why)
{
	struct run_request request = { .gpus = 1 };

	*why = WHY_NONE;
	request.thresholds[which] = value;
	config_default(&config);
	assert_int_equal(config_parse("f", file, strlen(file), &config, why), 0);
	return own_thresholds_apply(&request, &config, why);
}

static void a_stricter_or_equal_value_counts(void **state)
{
	struct why why;

	(void)state;
	assert_int_equal(apply("", OWN_MARGIN, "512M", &why), 0);
	assert_int_equal(apply("", OWN_MARGIN, "2G", &why), 0);
	assert_int_equal(config.margin_mib, 2048);
	assert_int_equal(apply("", OWN_SPIKE_BUFFER, "100%", &why), 0);
	assert_int_equal(config.spike_buffer_percent, 100);
	assert_int_equal(apply("", OWN_IDLE_THRESHOLD, "1M", &why), 0);
	assert_int_equal(config.idle.mib, 1);
	assert_int_equal(apply("idle-threshold = 5%", OWN_IDLE_THRESHOLD, "4%", &why), 0);
	assert_int_equal(config.idle.percent, 4);
	assert_int_equal(apply("", OWN_TOLERANCE, "0%", &why), 0);
	assert_int_equal(config.tolerance_percent, 0);
}

static void a_laxer_value_is_refused_with_that_of_the_machine(void **state)
{
	static const struct {
		const char *file;
		enum own_threshold which;
		const char *value, *why;
	} cases[] = {
		{ "", OWN_MARGIN, "511M",
			"--margin 511M is laxer than this machine's 512M; give 512M or "
			"more" },
		{ "margin = 2G", OWN_MARGIN, "1G",
			"--margin 1G is laxer than this machine's 2G; give 2G or more" },
		{ "", OWN_SPIKE_BUFFER, "9%",
			"--spike-buffer 9% is laxer than this machine's 10%; give 10% or "
			"more" },
		{ "", OWN_IDLE_THRESHOLD, "201M",
			"--idle-threshold 201M is laxer than this machine's 200M; give "
			"200M or less" },
		{ "idle-threshold = 2%", OWN_IDLE_THRESHOLD, "3%",
			"--idle-threshold 3% is laxer than this machine's 2%; give 2% or "
			"less" },
		{ "", OWN_TOLERANCE, "11%",
			"--tolerance 11% is laxer than this machine's 10%; give 10% or "
			"less" },
		/* of cards of different sizes, one could be laxer and the other stricter */
		{ "", OWN_IDLE_THRESHOLD, "1%",
			"--idle-threshold: give a size: this machine's is 200M" },
		{ "idle-threshold = 2%", OWN_IDLE_THRESHOLD, "1M",
			"--idle-threshold: give a percentage: this machine's is 2%" },
		{ "", OWN_MARGIN, "much",
			"--margin: 'much' is not a size; write a size, like 512M, or 0" },
		{ "", OWN_TOLERANCE, "101%",
			"--tolerance: '101%' is out of range; write 0% to 100%" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct why why;

		assert_int_equal(
			apply(cases[i].file, cases[i].which, cases[i].value, &why),
			-EINVAL);
		assert_string_equal(why.text, cases[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stricter_or_equal_value_counts),
		cmocka_unit_test(a_laxer_value_is_refused_with_that_of_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

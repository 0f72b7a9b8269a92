/*
 * Numbers as people write them: tables of good texts, and of bad texts with their reasons.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "parse.h"
#include "parse_gpus.h"

#define S INT64_C(1000)
#define M (60 * S)
#define H (60 * M)
#define D (24 * H)

struct good {
	const char *text;
	int64_t value;
};

struct bad {
	const char *text, *reason; /* a part of the reason */
};

/* The reason is one printable line without a final period, and names the error. */
static void check_reason(const struct bad *bad, const struct why *why)
{
	char printable[sizeof(why->text)];
	struct text text = TEXT_ON(printable);

	if (!strstr(why->text, bad->reason))
		fail_msg("'%s': '%s' does not say '%s'", bad->text, why->text,
			bad->reason);
	text_add_printable(&text, why->text, strlen(why->text));
	assert_string_equal(printable, why->text);
	assert_int_not_equal(why->text[strlen(why->text) - 1], '.');
}

static void check_good(int (*parse)(const char *, int64_t *, struct why *),
	const struct good *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct why why = WHY_NONE;
		int64_t value = -7;

		if (parse(table[i].text, &value, &why) < 0)
			fail_msg("'%s': %s", table[i].text, why.text);
		if (value != table[i].value)
			fail_msg("'%s' is %lld, not %lld", table[i].text,
				(long long)value, (long long)table[i].value);
		assert_string_equal(why.text, "");
		assert_int_equal(parse(table[i].text, &value, NULL), 0);
	}
}

static void check_bad(int (*parse)(const char *, int64_t *, struct why *),
	const struct bad *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct why why = WHY_NONE;
		int64_t value = -7;

		if (parse(table[i].text, &value, &why) != -EINVAL)
			fail_msg("'%s' is read as %lld", table[i].text, (long long)value);
		assert_int_equal(value, -7);
		check_reason(&table[i], &why);
		assert_int_equal(parse(table[i].text, &value, NULL), -EINVAL);
	}
}

#define CHECK_GOOD(parse, table) check_good(parse, table, ARRAY_SIZE(table))
#define CHECK_BAD(parse, table) check_bad(parse, table, ARRAY_SIZE(table))

/* GPUs times 1000, and the percent of a share. */
static int count_of(const char *text, int64_t *ret, struct why *why)
{
	unsigned gpus, percent;
	int r = parse_gpu_count(text, &gpus, &percent, why);

	if (r == 0)
		*ret = gpus * 1000 + percent;
	return r;
}

static int need_of(const char *text, int64_t *ret, struct why *why)
{
	unsigned gpus, percent;
	int r = parse_gpu_need(text, &gpus, &percent, why);

	if (r == 0)
		*ret = gpus * 1000 + percent;
	return r;
}

static int number_of(const char *text, int64_t *ret, struct why *why)
{
	uint64_t value;
	int r = parse_u64(text, 1000, &value, why);

	if (r == 0)
		*ret = (int64_t)value;
	return r;
}

static int size_of(const char *text, int64_t *ret, struct why *why)
{
	uint64_t value;
	int r = parse_size_mib(text, &value, why);

	if (r == 0)
		*ret = (int64_t)value;
	return r;
}

static void numbers_are_digits_up_to_their_limit(void **state)
{
	static const struct good good[] = { { "0", 0 }, { "7", 7 }, { "007", 7 },
		{ "1000", 1000 } };
	static const struct bad bad[] = { { "1001", "the most is 1000" }, { "", "''" },
		{ "-1", "not a number" }, { "+1", "not a number" },
		{ " 1", "not a number" }, { "1 ", "not a number" },
		{ "0x10", "not a number" }, { "1e2", "not a number" },
		{ "18446744073709551616", "too large" },
		{ "99999999999999999999999999999999", "too large" },
		{ "99999999999999999999999999999999x", "not a number" },
		{ "1\n2", "'1?2'" }, { "\xff", "'?'" } };
	uint64_t value;

	(void)state;
	CHECK_GOOD(number_of, good);
	CHECK_BAD(number_of, bad);
	assert_int_equal(parse_u64("18446744073709551614", UINT64_MAX, &value, NULL), 0);
	assert_true(value == UINT64_MAX - 1);
}

static void gpu_counts_are_whole_or_a_share_of_one(void **state)
{
	static const struct good good[] = { { "0", 0 }, { "1", 1000 }, { "8", 8000 },
		{ "128", 128000 }, { "0.5", 1050 }, { "0.01", 1001 }, { "0.99", 1099 },
		{ ".25", 1025 }, { "0.1", 1010 }, { "0.500000000000000000000", 1050 },
		{ "1.0", 1000 }, { "2.00000", 2000 }, { "128.0", 128000 } };
	static const struct bad bad[] = {
		{ "0.125",
			"'0.125' is not a whole percentage of a GPU; write 0.12 or 0.13" },
		{ "0.999",
			"'0.999' is not a whole percentage of a GPU; write 0.99 or 1.00" },
		{ "0.0100001", "write 0.01 or 0.02" },
		{ "0.001",
			"'0.001' is less than the smallest share of a GPU; write 0.01" },
		{ "0.0",
			"'0.0' is not a share of a GPU; write 0.01 to 0.99, or 0 for no GPU" },
		{ "1.5",
			"'1.5' is above 1 and not a whole number of GPUs; write 1 or 2" },
		{ "1.001", "is above 1 and not a whole number of GPUs; write 1 or 2" },
		{ "127.99", "write 127 or 128" },
		{ "128.01", "'128.01' GPUs are too many" },
		{ "128.001", "'128.001' GPUs are too many" },
		{ "-1", "'-1' is negative; write a number of GPUs from 0 to 128" },
		{ "-0.5", "'-0.5' is negative" },
		{ "abc",
			"'abc' is not a number of GPUs; write a number from 0 to 128, or a "
			"share like 0.5" },
		{ "1e99", "'1e99' is not a number of GPUs" },
		{ "", "'' is not a number of GPUs" },
		{ "5.", "'5.' is not a number of GPUs" },
		{ ".", "'.' is not a number of GPUs" },
		{ "0,5", "'0,5' is not a number of GPUs; --allow, --gpu-ids and" },
		{ "0-3", "'0-3' is not a number of GPUs; --allow, --gpu-ids and" },
		{ "1-x", "'1-x' is not a number of GPUs; write a number" },
		{ "50%", "'50%' is not a number of GPUs" },
		{ "0.5x", "'0.5x' is not a number of GPUs" },
		{ "0.5.5", "'0.5.5' is not a number of GPUs" },
		{ "all", "'all' is not a number of GPUs" },
		{ "129", "'129' GPUs are too many; gpulease manages at most 128" },
		{ "4294967296", "too many" },
		{ "18446744073709551617", "too many" },
		{ "184467440737095517", "too many" },
	};

	(void)state;
	CHECK_GOOD(count_of, good);
	CHECK_BAD(count_of, bad);
}

static void computed_needs_are_rounded_up(void **state)
{
	static const struct good good[] = { { "0", 0 }, { "0.0", 0 }, { "1", 1000 },
		{ "1.0", 1000 }, { "0.5", 1050 }, { "0.125", 1013 }, { "0.12", 1012 },
		{ "0.0000001", 1001 }, { "0.99", 1099 }, { "0.991", 1000 },
		{ "1.2", 2000 }, { "1.0000001", 2000 }, { "1.99", 2000 },
		{ "127.5", 128000 }, { "128", 128000 } };
	static const struct bad bad[] = { { "128.1", "'128.1' GPUs are too many" },
		{ "128.0001", "too many" }, { "-1", "is negative" },
		{ "x", "'x' is not a number of GPUs" }, { "1.", "not a number" } };

	(void)state;
	CHECK_GOOD(need_of, good);
	CHECK_BAD(need_of, bad);
}

static void durations_have_units(void **state)
{
	static const struct good good[] = { { "0", 0 }, { "90", 90 * S },
		{ "500ms", 500 }, { "90s", 90 * S }, { "15m", 15 * M }, { "2h", 2 * H },
		{ "1d", D }, { "1.5h", 90 * M }, { "0.25s", 250 }, { "1.5", 1500 },
		{ "0.0000000001s", 0 }, { "3650d", 3650 * D }, { "1h30m", 90 * M },
		{ "2m05s", 125 * S }, { "2d4h", 2 * D + 4 * H }, { "1d0h", D },
		{ "1d2h3m4s5ms", D + 2 * H + 3 * M + 4 * S + 5 }, { "0h90m", 90 * M } };
	static const struct bad bad[] = {
		{ "3x", "'3x' is not a duration; write 90s, 15m" },
		{ "", "'' is not a duration" }, { "-5", "'-5' is not a duration" },
		{ "s", "not a duration" }, { "5 s", "not a duration" },
		{ "1:30", "not a duration" }, { "1h30", "not a duration" },
		{ "30m1h", "not a duration" }, { "1h1h", "not a duration" },
		{ "1.5h30m", "not a duration" }, { "1h1.5m", "not a duration" },
		{ "1h 30m", "not a duration" }, { "1hours", "not a duration" },
		{ "1h30m ", "not a duration" }, { "1h-30m", "not a duration" },
		{ "3650d1ms", "longer than ten years" }, { "1.s", "not a duration" },
		{ "5S", "not a duration" }, { "3651d", "longer than ten years" },
		{ "99999999999999999999", "longer than ten years" },
		{ "213503982334601d", "longer than ten years" }
	};

	(void)state;
	CHECK_GOOD(parse_duration_ms, good);
	CHECK_BAD(parse_duration_ms, bad);
}

static void time_limits_read_as_srun_reads_them(void **state)
{
	static const struct good good[] = { { "30", 30 * M }, { "0", 0 }, { "0:00", 0 },
		{ "UNLIMITED", 0 }, { "infinite", 0 }, { "5:30", 5 * M + 30 * S },
		{ "2:00:00", 2 * H }, { "1-0", D }, { "1-12", D + 12 * H },
		{ "1-12:30", D + 12 * H + 30 * M },
		{ "2-03:04:05", 2 * D + 3 * H + 4 * M + 5 * S }, { "120:00", 2 * H },
		{ "90s", 90 * S }, { "2h", 2 * H }, { "1d", D }, { "1.5h", 90 * M },
		{ "0-0:0:1", S }, { "500ms", 500 }, { "1h30m", 90 * M } };
	static const struct bad bad[] = { { "1.5", "'1.5' is not a time limit" },
		{ "", "not a time limit" }, { "-5", "not a time limit" },
		{ "1-", "not a time limit" }, { ":", "not a time limit" },
		{ "1:", "not a time limit" }, { ":30", "not a time limit" },
		{ "1:2:3:4", "not a time limit" }, { "1-2:3:4:5", "not a time limit" },
		{ "1:2h", "not a time limit" }, { "1-2-3", "not a time limit" },
		{ "1:2-3", "not a time limit" }, { "2hours", "write minutes, H:M:S" },
		{ "3651-0", "longer than ten years" },
		{ "5256001", "longer than ten years" },
		{ "99999999999999999999:00", "longer than ten years" },
		{ "0-87601", "longer than ten years" } };

	(void)state;
	CHECK_GOOD(parse_time_limit_ms, good);
	CHECK_BAD(parse_time_limit_ms, bad);
}

static void sizes_without_a_unit_are_mib(void **state)
{
	static const struct good good[] = { { "8000", 8000 }, { "8000M", 8000 },
		{ "8000MiB", 8000 }, { "8000mb", 8000 }, { "22G", 22528 },
		{ "1.5GiB", 1536 }, { "24gb", 24576 }, { "1T", 1 << 20 }, { "0.5M", 1 },
		{ "1.5M", 2 }, { "2048K", 2 }, { "1KiB", 1 },
		{ "1024T", INT64_C(1) << 30 } };
	static const struct bad bad[] = { { "0", "no memory; the least is 1M" },
		{ "0.0G", "no memory" }, { "", "'' is not a size; write 8000M, 22G" },
		{ "-1G", "not a size" }, { "22X", "not a size" },
		{ "22 G", "not a size" }, { "G", "not a size" }, { "1.G", "not a size" },
		{ "22GG", "not a size" }, { "1025T", "too large" },
		{ "18446744073709551615G", "too large" } };

	(void)state;
	CHECK_GOOD(size_of, good);
	CHECK_BAD(size_of, bad);
}

static void durations_are_written_with_two_units_at_most(void **state)
{
	static const struct good table[] = { { "<1s", 0 }, { "<1s", 999 }, { "<1s", -1 },
		{ "<1s", INT64_MIN }, { "1s", S }, { "45s", 45 * S + 999 },
		{ "1m00s", M }, { "2m05s", 125 * S }, { "9m59s", 10 * M - 1 },
		{ "10m", 10 * M }, { "12m", 12 * M + 40 * S }, { "59m", H - 1 },
		{ "1h00m", H }, { "3h05m", 3 * H + 5 * M }, { "1d0h", D },
		{ "2d4h", 2 * D + 4 * H }, { "106751991167d7h", INT64_MAX } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char out[DURATION_SIZE];

		format_duration(table[i].value, out);
		assert_string_equal(out, table[i].text);
	}
}

static void written_durations_can_be_read(void **state)
{
	static const struct good exact[] = { { "0s", 0 }, { "1ms", 1 },
		{ "1500ms", 1500 }, { "90s", 90 * S }, { "90m", 90 * M }, { "2d", 2 * D },
		{ "3650d", 3650 * D } };

	(void)state;
	for (int64_t ms = S; ms <= 3650 * D; ms += ms / 7) {
		char out[DURATION_SIZE];
		int64_t again;

		format_duration(ms, out);
		assert_int_equal(parse_duration_ms(out, &again, NULL), 0);
		assert_in_range(ms - again, 0, H - 1);
		format_exact_duration(ms, out);
		assert_int_equal(parse_duration_ms(out, &again, NULL), 0);
		assert_int_equal(again, ms);
	}
	for (size_t i = 0; i < ARRAY_SIZE(exact); i++) {
		char out[DURATION_SIZE];

		format_exact_duration(exact[i].value, out);
		assert_string_equal(out, exact[i].text);
	}
}

static void quotes_are_printable_and_cut(void **state)
{
	char longer[200], *e = longer;

	(void)state;
	assert_string_equal(quote("plain").text, "plain");
	assert_string_equal(quote("\033[31mred\n").text, "?[31mred?");
	assert_string_equal(quote_bytes("abcdef", 3).text, "abc");
	memset(longer, 'x', sizeof(longer));
	longer[60] = '\0';
	assert_string_equal(quote(longer).text, longer);
	longer[60] = 'x';
	longer[61] = '\0';
	assert_int_equal(strlen(quote(longer).text), 63);
	assert_string_equal(quote(longer).text + 60, "\xe2\x80\xa6");
	for (int i = 0; i < 40; i++, e += 2)
		memcpy(e, "\xc3\xa4", 3);
	assert_string_equal(quote(longer).text + 58, "\xc3\xa4\xe2\x80\xa6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_digits_up_to_their_limit),
		cmocka_unit_test(gpu_counts_are_whole_or_a_share_of_one),
		cmocka_unit_test(computed_needs_are_rounded_up),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(time_limits_read_as_srun_reads_them),
		cmocka_unit_test(sizes_without_a_unit_are_mib),
		cmocka_unit_test(durations_are_written_with_two_units_at_most),
		cmocka_unit_test(written_durations_can_be_read),
		cmocka_unit_test(quotes_are_printable_and_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

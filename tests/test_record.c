#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#define SAMPLE_EXTRA_SIZE 64
#define SAMPLE_REST_SIZE 400
#include "record_sample.h"
#include "text.h"

/* A record with @body and a checksum made here. */
static void make_raw(const char *body, size_t size, char raw[RECORD_SIZE])
{
	memset(raw, ' ', RECORD_SIZE);
	memcpy(raw, body, size);
	seal(raw);
}

static int decode(const char *body, struct sample *out)
{
	char raw[RECORD_SIZE];

	make_raw(body, strlen(body), raw);
	return record_decode(&schema, raw, out);
}

static void assert_body(const struct sample *in, const char *body)
{
	char raw[RECORD_SIZE], expected[RECORD_SIZE];

	make_raw(body, strlen(body), expected);
	assert_int_equal(record_encode(&schema, in, raw), 0);
	assert_memory_equal(raw, expected, RECORD_SIZE);
}

static void every_kind_is_written_as_documented(void **state)
{
	struct sample sample = {
		.small = UINT32_MAX,
		.large = UINT64_MAX,
		.wide = INT64_MIN,
		.hex = 0xbeef,
		.text = "a b=c%\t",
		.extra = "later=1 other=%20",
		.rest = "python \xc3\xa4",
	};

	(void)state;
	gpuset_add(&sample.set, 65);
	assert_body(&sample,
		"sample/1 small=4294967295 large=18446744073709551615 "
		"wide=-9223372036854775808 hex=beef set=20000000000000000 "
		"text=a%20b%3Dc%25%09 later=1 other=%20 rest=python%20\xc3\xa4");
}

static void fields_that_are_zero_are_not_written(void **state)
{
	(void)state;
	assert_body(&(struct sample){ 0 }, "sample/1");
}

static void every_kind_is_read_back(void **state)
{
	struct sample sample = { .small = 7 }, back;
	char raw[RECORD_SIZE];

	(void)state;
	sample.large = 1;
	sample.wide = INT64_MIN;
	sample.hex = UINT64_MAX;
	gpuset_add(&sample.set, 127);
	text_copy(sample.text, sizeof(sample.text), "name with=%");
	text_copy(sample.extra, sizeof(sample.extra), "k=v");
	text_copy(sample.rest, sizeof(sample.rest), "the rest");
	assert_int_equal(record_encode(&schema, &sample, raw), 0);
	assert_int_equal(record_judge(raw), RECORD_GOOD);
	memset(&back, 0x55, sizeof(back));
	assert_int_equal(record_decode(&schema, raw, &back), 0);
	assert_int_equal(back.small, 7);
	assert_true(back.large == 1 && back.wide == INT64_MIN && back.hex == UINT64_MAX);
	assert_true(gpuset_equals(&back.set, &sample.set));
	assert_string_equal(back.text, sample.text);
	assert_string_equal(back.extra, sample.extra);
	assert_string_equal(back.rest, sample.rest);
}

static void decoding_clears_the_missing_fields(void **state)
{
	struct sample sample;

	(void)state;
	memset(&sample, 0x55, sizeof(sample));
	assert_int_equal(decode("sample/1", &sample), 0);
	assert_int_equal(sample.small, 0);
	assert_true(sample.large == 0 && sample.wide == 0 && sample.hex == 0);
	assert_true(gpuset_is_empty(&sample.set));
	assert_string_equal(sample.text, "");
	assert_string_equal(sample.extra, "");
	assert_string_equal(sample.rest, "");
}

static void a_record_is_good_void_or_broken(void **state)
{
	char raw[RECORD_SIZE];

	(void)state;
	memset(raw, 0, sizeof(raw));
	assert_int_equal(record_judge(raw), RECORD_VOID);
	raw[511] = 1;
	assert_int_equal(record_judge(raw), RECORD_BROKEN);
	make_raw("sample/1 small=1", 16, raw);
	assert_int_equal(record_judge(raw), RECORD_GOOD);
	for (size_t i = 0; i < RECORD_SIZE; i++) {
		raw[i] ^= 1;
		assert_int_equal(record_judge(raw), RECORD_BROKEN);
		raw[i] ^= 1;
	}
}

static void a_type_is_compared_whole(void **state)
{
	char raw[RECORD_SIZE];

	(void)state;
	make_raw("sample/10 small=1", 17, raw);
	assert_false(record_is(raw, "sample/1"));
	assert_true(record_is(raw, "sample/10"));
}

static const struct {
	const char *body;
	int result;
} refused[] = {
	{ "sample/2 small=1", -ENOMSG },
	{ "", -ENOMSG },
	{ "sample/1 small=4294967296", -EINVAL },
	{ "sample/1 small=", -EINVAL },
	{ "sample/1 small=-1", -EINVAL },
	{ "sample/1 small=1x", -EINVAL },
	{ "sample/1 small=a", -EINVAL },
	{ "sample/1 large=18446744073709551616", -EINVAL },
	{ "sample/1 wide=9223372036854775808", -EINVAL },
	{ "sample/1 wide=-9223372036854775809", -EINVAL },
	{ "sample/1 wide=-", -EINVAL },
	{ "sample/1 hex=10000000000000000", -EINVAL },
	{ "sample/1 text=a=b", -EINVAL }, /* escaped it is longer: a twin would not fit */
	{ "sample/1 hex=A", -EINVAL },
	{ "sample/1 set=x", -EINVAL },
	{ "sample/1 text=%2", -EINVAL },
	{ "sample/1 text=%g0", -EINVAL },
	{ "sample/1 text=%3d", -EINVAL },
	{ "sample/1 nothing", -EINVAL },
	{ "sample/1 text=a\tb", -EINVAL },
	{ "sample/1 text=a\x7f", -EINVAL },
};

static void values_that_no_field_can_hold_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct sample sample;

		assert_int_equal(decode(refused[i].body, &sample), refused[i].result);
	}
}

static void a_nul_in_a_key_or_value_is_refused(void **state)
{
	static const char key[] = "sample/1 small\0longer=1", value[] = "sample/1 k=a\0b";
	char raw[RECORD_SIZE];
	struct sample sample;

	(void)state;
	make_raw(key, sizeof(key) - 1, raw);
	assert_int_equal(record_decode(&schema, raw, &sample), -EINVAL);
	make_raw(value, sizeof(value) - 1, raw);
	assert_int_equal(record_decode(&schema, raw, &sample), -EINVAL);
}

static void a_broken_record_is_not_decoded(void **state)
{
	char raw[RECORD_SIZE];
	struct sample sample = { .small = 3 };

	(void)state;
	make_raw("sample/1 small=1", 16, raw);
	raw[15] = '2';
	assert_int_equal(record_decode(&schema, raw, &sample), -EBADMSG);
	memset(raw, 0, sizeof(raw));
	assert_int_equal(record_decode(&schema, raw, &sample), -EBADMSG);
	assert_int_equal(sample.small, 3);
}

static void unknown_fields_are_kept_unchanged(void **state)
{
	struct sample sample;

	(void)state;
	assert_int_equal(decode("sample/1 new=%41 small=2 sma=1 smaller=3", &sample), 0);
	assert_int_equal(sample.small, 2);
	assert_string_equal(sample.extra, "new=%41 sma=1 smaller=3");
	assert_body(&sample, "sample/1 small=2 new=%41 sma=1 smaller=3");
}

static void unknown_fields_that_do_not_fit_are_left_out_whole(void **state)
{
	struct sample sample;

	(void)state;
	assert_int_equal(
		decode("sample/1 a=1 "
		       "b=0123456789012345678901234567890123456789012345678901234567 "
		       "c=2",
			&sample),
		0);
	assert_string_equal(sample.extra, "a=1 c=2");
}

static void fields_may_come_in_any_order_and_the_last_wins(void **state)
{
	struct sample sample;

	(void)state;
	assert_int_equal(
		decode("sample/1   rest=x text=a   small=1 text=b ", &sample), 0);
	assert_int_equal(sample.small, 1);
	assert_string_equal(sample.text, "b");
	assert_string_equal(sample.rest, "x");
}

static void a_text_too_long_for_its_array_is_cut(void **state)
{
	struct sample sample;

	(void)state;
	assert_int_equal(
		decode("sample/1 text=0123456789012345678901234567", &sample), 0);
	assert_string_equal(sample.text, "01234567890123456789012");
}

static void a_text_is_cut_if_its_escaped_form_is_too_long(void **state)
{
	struct sample sample = { .text = "        \xc3\xa4" }; /* 8 spaces are 24 bytes */

	(void)state;
	assert_body(&sample, "sample/1 text=%20%20%20%20%20%20%20");
	text_copy(sample.text, sizeof(sample.text), "       a\xc3\xa4");
	assert_body(&sample, "sample/1 text=%20%20%20%20%20%20%20a");
}

static void the_rest_is_cut_to_the_room_left_and_marked(void **state)
{
	struct sample sample = { .rest = "" }, back;
	char raw[RECORD_SIZE];
	size_t size;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(sample.rest); i += 2)
		memcpy(sample.rest + i, "\xc3\xa4", 2);
	memset(sample.rest, ' ', 200);
	assert_int_equal(record_encode(&schema, &sample, raw), 0);
	assert_int_equal(record_judge(raw), RECORD_GOOD);
	assert_int_equal(record_decode(&schema, raw, &back), 0);
	size = strlen(back.rest);
	assert_true(size > 150 && size < 200);
	assert_memory_equal(back.rest, sample.rest, size - 3);
	assert_string_equal(back.rest + size - 3, "\xe2\x80\xa6");
	/* a cut falls between two characters */
	memset(sample.rest, ' ', 2);
	for (size_t i = 2; i < 200; i += 2)
		memcpy(sample.rest + i, "\xc3\xa4", 2);
	memset(sample.text, ' ', sizeof(sample.text) - 1);
	memset(sample.extra, '=', sizeof(sample.extra) - 1);
	sample.large = UINT64_MAX;
	for (sample.small = 1; sample.small < 1000000; sample.small *= 10) {
		assert_int_equal(record_encode(&schema, &sample, raw), 0);
		assert_int_equal(record_decode(&schema, raw, &back), 0);
		size = strlen(back.rest);
		assert_int_equal((size - 3) % 2, 0);
	}
}

struct wide_sample {
	char texts[3][200];
};

static void fields_that_do_not_fit_are_an_error(void **state)
{
	static const struct record_field wide_fields[] = {
		{ "a", RECORD_TEXT, 0, 200 },
		{ "b", RECORD_TEXT, 200, 200 },
		{ "c", RECORD_TEXT, 400, 200 },
	};
	static const struct record_schema wide = RECORD_SCHEMA("wide/1", wide_fields);
	struct wide_sample sample;
	char raw[RECORD_SIZE];

	(void)state;
	memset(&sample, 0, sizeof(sample));
	for (int i = 0; i < 3; i++)
		memset(sample.texts[i], 'a', 199);
	memset(raw, 'x', sizeof(raw));
	assert_int_equal(record_encode(&wide, &sample, raw), -EMSGSIZE);
	sample.texts[2][0] = '\0';
	assert_int_equal(record_encode(&wide, &sample, raw), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_written_as_documented),
		cmocka_unit_test(fields_that_are_zero_are_not_written),
		cmocka_unit_test(every_kind_is_read_back),
		cmocka_unit_test(decoding_clears_the_missing_fields),
		cmocka_unit_test(a_record_is_good_void_or_broken),
		cmocka_unit_test(a_type_is_compared_whole),
		cmocka_unit_test(values_that_no_field_can_hold_are_refused),
		cmocka_unit_test(a_nul_in_a_key_or_value_is_refused),
		cmocka_unit_test(a_broken_record_is_not_decoded),
		cmocka_unit_test(unknown_fields_are_kept_unchanged),
		cmocka_unit_test(unknown_fields_that_do_not_fit_are_left_out_whole),
		cmocka_unit_test(fields_may_come_in_any_order_and_the_last_wins),
		cmocka_unit_test(a_text_too_long_for_its_array_is_cut),
		cmocka_unit_test(a_text_is_cut_if_its_escaped_form_is_too_long),
		cmocka_unit_test(the_rest_is_cut_to_the_room_left_and_marked),
		cmocka_unit_test(fields_that_do_not_fit_are_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

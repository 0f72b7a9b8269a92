#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <cmocka.h>

#include "batch_event.h"

static char line[BATCH_EVENT_SIZE];

static const char *written(const struct batch_event *event)
{
	struct text text = TEXT_ON(line);

	batch_event_write(event, &text);
	assert_false(text.cut);
	return line;
}

static struct batch_event parsed(const char *text)
{
	struct batch_event event;

	if (batch_event_parse(text, strlen(text), &event) < 0)
		fail_msg("refused: %s", text);
	return event;
}

static struct batch_event started(void)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_STARTED, 3);

	event.at_ms = INT64_C(1763770000000);
	event.ticket = 120;
	event.attempt = 2;
	text_copy(event.gpus, sizeof(event.gpus), "0,3");
	event.owner = (struct owner){ .pid = 4711,
		.uid = 1000,
		.inode = UINT64_MAX,
		.start = 99,
		.pidns = 4026531836,
		.token = "0123456789abcdef" };
	text_copy(event.boot, sizeof(event.boot), "00112233445566778899aabbccddeeff");
	event.declared_mib = 2000;
	event.vram_mib = 2500;
	event.limit_ms = 60000;
	event.waited_ms = 12;
	return event;
}

static void an_event_is_one_line_of_json(void **state)
{
	struct batch_event event = started();

	(void)state;
	assert_string_equal(written(&event),
		"{\"event\": \"started\", \"at\": 1763770000000, \"job\": 3, \"ticket\": 120, "
		"\"attempt\": 2, \"gpus\": \"0,3\", \"pid\": 4711, \"uid\": 1000, "
		"\"inode\": 18446744073709551615, \"start\": 99, \"pidns\": 4026531836, "
		"\"token\": \"0123456789abcdef\", "
		"\"boot\": \"00112233445566778899aabbccddeeff\", \"declared_mib\": 2000, "
		"\"vram_mib\": 2500, \"limit_ms\": 60000, \"waited_ms\": 12}\n");
}

static void unknown_members_are_left_out_but_not_the_status(void **state)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, 1);

	(void)state;
	assert_string_equal(written(&event), "{\"event\": \"ended\", \"job\": 1, "
					     "\"status\": 0, \"cause\": \"itself\"}\n");
	event.busy_mean = 0;
	event.is_interrupted = true;
	assert_string_equal(written(&event),
		"{\"event\": \"ended\", \"job\": 1, \"status\": 0, \"cause\": \"itself\", "
		"\"busy_mean\": 0, \"interrupted\": true}\n");
	event = BATCH_EVENT_OF(BATCH_LISTED, 0);
	assert_string_equal(written(&event), "{\"event\": \"list\"}\n");
	event = BATCH_EVENT_OF(BATCH_SEEN, 1);
	assert_string_equal(written(&event), "{\"event\": \"seen\", \"job\": 1}\n");
}

/* An event with all members set. */
static struct batch_event full(enum batch_event_kind kind, enum batch_cause cause)
{
	struct batch_event event = started();

	event.kind = kind;
	event.cause = cause;
	event.key = UINT64_C(0xfedcba9876543210);
	event.environment = 0x1f;
	event.next_mib = 3000;
	event.used_mib = 1500;
	event.peak_mib = 1999;
	event.spans_run = true;
	event.ran_ms = INT64_MAX;
	event.delay_ms = 77;
	event.status = 137;
	event.busy_mean = 0;
	event.busy_peak = 100;
	event.is_interrupted = true;
	text_copy(event.name, sizeof(event.name), "tr\xc3\xa4ning \"1\" \\ ]");
	text_copy(event.text, sizeof(event.text), "needs 99G; no GPU has that");
	text_copy(event.command, sizeof(event.command),
		"python t.py --x '\xf0\x9f\x98\x80'");
	event.jobs = "1-4,7";
	event.jobs_size = 5;
	return event;
}

static void every_event_is_read_as_it_was_written(void **state)
{
	char first[BATCH_EVENT_SIZE];

	(void)state;
	for (unsigned kind = BATCH_SEEN; kind < BATCH_KINDS; kind++)
		for (unsigned cause = 0; cause < BATCH_CAUSES; cause++) {
			struct batch_event event = full(
				(enum batch_event_kind)kind, (enum batch_cause)cause);

			text_copy(first, sizeof(first), written(&event));
			event = parsed(first);
			assert_int_equal(event.kind, kind);
			assert_string_equal(written(&event), first);
		}
}

static void members_get_the_values_of_the_line(void **state)
{
	struct batch_event in = full(BATCH_OVER, BATCH_BY_LIMIT);
	struct batch_event out = parsed(written(&in));

	(void)state;
	assert_int_equal(out.at_ms, in.at_ms);
	assert_int_equal(out.status, 137);
	assert_int_equal(out.cause, BATCH_BY_LIMIT);
	assert_int_equal(out.busy_mean, 0);
	assert_int_equal(out.ran_ms, INT64_MAX);
	assert_int_equal(out.peak_mib, 1999);
	assert_int_equal(out.used_mib, 0);
	assert_true(out.spans_run);
	assert_true(out.is_interrupted);
	assert_string_equal(out.text, in.text);
	assert_string_equal(out.command, ""); /* only "seen" has a command */
	in = full(BATCH_SEEN, BATCH_ITSELF);
	out = parsed(written(&in));
	assert_int_equal(out.key, UINT64_C(0xfedcba9876543210));
	assert_string_equal(out.name, in.name);
	assert_string_equal(out.command, in.command);
	assert_int_equal(out.environment, 0x1f);
	in = full(BATCH_EXCESS, BATCH_ITSELF);
	out = parsed(written(&in));
	assert_int_equal(out.used_mib, 1500);
	assert_int_equal(out.vram_mib, in.vram_mib);
	assert_string_equal(out.gpus, in.gpus);
	assert_false(batch_event_is_kept(BATCH_EXCESS));
	in = full(BATCH_STARTED, BATCH_ITSELF);
	out = parsed(written(&in));
	assert_int_equal(out.environment, 0x1f);
	assert_memory_equal(&out.owner, &in.owner, sizeof(in.owner));
	assert_string_equal(out.boot, in.boot);
}

static void every_kind_has_a_word(void **state)
{
	(void)state;
	for (unsigned i = BATCH_SEEN; i < BATCH_KINDS; i++)
		assert_true(batch_event_word((enum batch_event_kind)i)[0]);
	assert_null(batch_event_word(BATCH_KINDS));
	for (unsigned i = 0; i < BATCH_CAUSES; i++)
		assert_true(batch_cause_word((enum batch_cause)i)[0]);
	assert_null(batch_cause_word(BATCH_CAUSES));
	assert_true(batch_event_is_kept(BATCH_SEEN) && batch_event_is_kept(BATCH_OVER));
	assert_false(batch_event_is_kept(BATCH_QUEUED) ||
		     batch_event_is_kept(BATCH_EVENT_NONE));
}

static void unknown_members_and_events_are_skipped(void **state)
{
	static const char *const cases[] = {
		"{\"event\": \"note\", \"job\": 5, \"later\": [1, {\"a\": \"]\"}, [[]]]}",
		"{\"job\": 5, \"event\": \"note\", \"x\": null, \"y\": 1e-5, \"z\": true}",
		" {\t\"event\":\"note\",\"job\":5,\"status\":\"of another event\"} \r",
		"{\"event\": \"note\", \"job\": 4, \"job\": 5}",
		"{\"event\": \"note\", \"job\": \"four\", \"job\": 5}",
		"{\"event\": \"seen\", \"event\": \"note\", \"job\": 5, \"text\": null}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct batch_event event = parsed(cases[i]);

		assert_int_equal(event.kind, BATCH_NOTE);
		assert_int_equal(event.job, 5);
		assert_int_equal(event.status, 0);
	}
	assert_int_equal(
		parsed("{\"event\": \"later\", \"job\": \"x\"}").kind, BATCH_EVENT_NONE);
	assert_int_equal(
		parsed("{\"event\": \"ended\", \"job\": 1, \"cause\": \"later\"}").cause,
		BATCH_ITSELF);
}

static void a_line_that_is_not_an_event_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		" ",
		"{}",
		"{\"job\": 1}",
		"[]",
		"\"event\"",
		"{\"event\": 1}",
		"{\"event\": \"note\"",
		"{\"event\": \"note\",}",
		"{\"event\": \"note\"} x",
		"{\"event\": \"note\"}{}",
		"{\"event\": \"note\" \"job\": 1}",
		"{\"event\" \"note\"}",
		"{,\"event\": \"note\"}",
		"{\"event\": \"note\", \"job\": -1}",
		"{\"event\": \"note\", \"job\": 1.5}",
		"{\"event\": \"note\", \"job\": 18446744073709551616}",
		"{\"event\": \"note\", \"job\": \"1\"}",
		"{\"event\": \"note\", \"job\": tru}",
		"{\"event\": \"note\", \"job\": }",
		"{\"event\": \"note\", \"at\": 9223372036854775808}",
		"{\"event\": \"note\", \"at\": -}",
		"{\"event\": \"ended\", \"status\": 2147483648}",
		"{\"event\": \"ended\", \"interrupted\": 1}",
		"{\"event\": \"started\", \"pid\": 4294967296}",
		"{\"event\": \"started\", \"pid\": -5}",
		"{\"event\": \"started\", \"token\": \"../tickets\"}",
		"{\"event\": \"started\", \"token\": \"0123456789abcdeF\"}",
		"{\"event\": \"seen\", \"key\": \"xyz\"}",
		"{\"event\": \"seen\", \"key\": \"\"}",
		"{\"event\": \"seen\", \"key\": \"00112233445566778\"}",
		"{\"event\": \"seen\", \"key\": 12}",
		"{\"event\": \"note\", \"text\": 12}",
		"{\"event\": \"note\", \"text\": \"\\x\"}",
		"{\"event\": \"note\", \"text\": \"\\u12g4\"}",
		"{\"event\": \"note\", \"text\": \"\\u12",
		"{\"event\": \"note\", \"text\": \"a\tb\"}",
		"{\"event\": \"note\", \"text\": \"\\\"}",
		"{\"event\": \"note\", \"x\": [1, 2}}",
		"{\"event\": \"note\", \"x\": [[[[[[[[[1]]]]]]]]]}",
		"{\"event\": \"list\", \"jobs\": \"1-\"}",
		"{\"event\": \"list\", \"jobs\": \"\\u0031\"}",
		"{\"event\": \"list\", \"jobs\": [1]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct batch_event event;

		if (batch_event_parse(cases[i], strlen(cases[i]), &event) != -EINVAL)
			fail_msg("taken: %s", cases[i]);
	}
}

static void texts_are_printable(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "\\u0041\\u00e4\\u20AC", "A\xc3\xa4\xe2\x82\xac" },
		{ "\\ud83d\\ude00!", "\xf0\x9f\x98\x80!" },
		{ "\\ud83d!", "\xef\xbf\xbd!" },
		{ "\\ude00\\ud83d", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\\ud83d\\u0041", "\xef\xbf\xbd"
				    "A" },
		{ "\\\"\\\\\\/", "\"\\/" },
		{ "a\\b\\f\\n\\r\\tb\\u0000c\\u001b[31m", "a?????b?c?[31m" },
		{ "\xff\xc3", "??" },
		{ "\\u202e", "?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text),
			"{\"event\": \"note\", \"text\": \"%s\"}", cases[i].in);
		assert_string_equal(parsed(text).text, cases[i].out);
	}
}

static void control_characters_are_escaped(void **state)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_NOTE, 0);

	(void)state;
	text_copy(event.text, sizeof(event.text), "\x1b[1m\n\xff\xe2\x80\xae");
	assert_string_equal(written(&event), "{\"event\": \"note\", \"text\": "
					     "\"\\u001b[1m\\u000a\\ufffd\\u202e\"}\n");
}

static void a_long_text_ends_after_a_whole_character(void **state)
{
	char text[512];
	struct text out = TEXT_ON(text);
	struct batch_event event;

	(void)state;
	text_addf(&out, "{\"event\": \"seen\", \"name\": \"%0254d\xc3\xa4y\"}", 7);
	event = parsed(text);
	assert_int_equal(strlen(event.name), 254);
	assert_int_equal(event.name[253], '7');
}

static void a_buffer_too_small_is_noticed(void **state)
{
	struct batch_event event = started();
	char small[40];
	struct text text = TEXT_ON(small);

	(void)state;
	batch_event_write(&event, &text);
	assert_true(text.cut);
}

static void the_longest_event_fits(void **state)
{
	struct batch_event event = full(BATCH_SEEN, BATCH_ITSELF);

	(void)state;
	memset(event.command, 0xff, sizeof(event.command) - 1);
	memset(event.name, 0x01, sizeof(event.name) - 1);
	(void)written(&event);
}

/* --- lists of numbers -------------------------------------------------------------- */

static int collect(void *arg, uint64_t number)
{
	text_addf(arg, "%llu ", (unsigned long long)number);
	return number == 77 ? -E2BIG : 0;
}

static void consecutive_numbers_become_ranges(void **state)
{
	static const struct {
		uint64_t numbers[8]; /* ends with a 0 */
		const char *list;
	} cases[] = {
		{ { 0 }, "" },
		{ { 5 }, "5" },
		{ { 1, 2 }, "1-2" },
		{ { 1, 2, 3, 4, 7 }, "1-4,7" },
		{ { 4, 1, 2, 9, 8 }, "4,1-2,9,8" },
		{ { 3, 3, 4 }, "3,3-4" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char list[64], back[64], wanted[64];
		struct text out = TEXT_ON(list), all = TEXT_ON(back),
			    want = TEXT_ON(wanted);
		uint64_t range[2] = { 0 };

		for (const uint64_t *number = cases[i].numbers; *number; number++) {
			batch_add_number(*number, !number[1], range, &out);
			text_addf(&want, "%llu ", (unsigned long long)*number);
		}
		assert_string_equal(list, cases[i].list);
		assert_int_equal(batch_each_number(list, out.used, collect, &all), 0);
		assert_string_equal(back, wanted);
	}
}

static void the_last_number_may_be_ended_by_a_0(void **state)
{
	char list[64];
	struct text out = TEXT_ON(list);
	uint64_t range[2] = { 0 };

	(void)state;
	batch_add_number(1, false, range, &out);
	batch_add_number(2, false, range, &out);
	assert_string_equal(list, "");
	batch_add_number(0, true, range, &out);
	assert_string_equal(list, "1-2");
}

static void a_bad_list_is_refused_before_any_number_is_added(void **state)
{
	static const char *const cases[] = { ",", "1,", ",1", "1,,2", "0", "1-0", "3-2",
		"1-", "-1", "1-2-3", "a", "1 ", "18446744073709551616", "1,2x" };
	char seen[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct text all = TEXT_ON(seen);

		if (batch_each_number(cases[i], strlen(cases[i]), collect, &all) !=
			-EINVAL)
			fail_msg("taken: '%s'", cases[i]);
		assert_string_equal(seen, "");
	}
}

static void an_endless_list_stops_when_asked_to(void **state)
{
	static const char list[] = "76-18446744073709551615,5";
	char seen[64];
	struct text all = TEXT_ON(seen);

	(void)state;
	assert_int_equal(batch_each_number(list, strlen(list), collect, &all), -E2BIG);
	assert_string_equal(seen, "76 77 ");
	assert_int_equal(batch_each_number(NULL, 0, collect, &all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_one_line_of_json),
		cmocka_unit_test(unknown_members_are_left_out_but_not_the_status),
		cmocka_unit_test(every_event_is_read_as_it_was_written),
		cmocka_unit_test(members_get_the_values_of_the_line),
		cmocka_unit_test(every_kind_has_a_word),
		cmocka_unit_test(unknown_members_and_events_are_skipped),
		cmocka_unit_test(a_line_that_is_not_an_event_is_refused),
		cmocka_unit_test(texts_are_printable),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(a_long_text_ends_after_a_whole_character),
		cmocka_unit_test(a_buffer_too_small_is_noticed),
		cmocka_unit_test(the_longest_event_fits),
		cmocka_unit_test(consecutive_numbers_become_ranges),
		cmocka_unit_test(the_last_number_may_be_ended_by_a_0),
		cmocka_unit_test(a_bad_list_is_refused_before_any_number_is_added),
		cmocka_unit_test(an_endless_list_stops_when_asked_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

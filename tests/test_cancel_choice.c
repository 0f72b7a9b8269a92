#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base.h"
#include "cancel_choice.h"

enum { ROOT = 0, ADA = 1000, EVE = 1001 };

/* The choice that user @uid has written as @list. */
static struct cancel_choice choice_of(const char *list, uint32_t uid)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_JOBS);
	struct operand operand;

	assert_int_equal(operand_next(&walk, &operand, NULL), 0);
	return cancel_choice_of(&operand, uid);
}

static void choices_end_at_the_rights_of_the_user(void **state)
{
	static const struct live_job jobs[] = {
		{ 3, ADA, "train", 0 },
		{ 4, EVE, "train", 0 },
		{ 5, ADA, "", 0 },
		{ 6, ROOT, "mine", 0 },
		{ 7, ADA, "12345678901234567890123456789012", 0 },
	};
	static const struct {
		const char *list;
		uint32_t uid;
		unsigned ids; /* 1u << the id of each job that is admitted */
	} rows[] = {
		{ "mine", ADA, 1u << 3 | 1u << 5 | 1u << 7 },
		{ "mine", ROOT, 1u << 6 },
		{ "mine", 77, 0 },
		{ "all", ADA, 0 },
		{ "all", ROOT, 0xf8 },
		{ "train", ADA, 1u << 3 },
		{ "train", ROOT, 1u << 3 | 1u << 4 },
		{ "trai", ROOT, 0 },
		{ "train1", ROOT, 0 },
		{ "train,5", EVE, 1u << 4 },
		{ "12345678901234567890123456789012", ADA, 1u << 7 },
		{ "12345678901234567890123456789012345", ADA, 0 },
		{ "4-6", ADA, 1u << 5 },
		{ "4-6", ROOT, 1u << 4 | 1u << 5 | 1u << 6 },
		{ "3-4", EVE, 1u << 4 },
		{ "8-9", ROOT, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cancel_choice choice = choice_of(rows[i].list, rows[i].uid);
		unsigned ids = 0;

		for (size_t j = 0; j < ARRAY_SIZE(jobs); j++)
			if (cancel_choice_admits(&choice, &jobs[j]))
				ids |= 1u << jobs[j].id;
		if (ids != rows[i].ids)
			fail_msg("%s by %u: %#x", rows[i].list, rows[i].uid, ids);
	}
}

/* The record of the job has the first bytes of its name, and the rest cannot be read. */
static void a_name_that_is_not_whole_chooses_no_job(void **state)
{
	static const char name[] = "12345678901234567890123456789012345";
	struct live_job cut = { .id = 3, .uid = ADA, .name = "12345678901234567890" };
	static const struct {
		const char *list;
		uint32_t uid;
		bool is_doubtful;
	} rows[] = {
		{ name, ADA, true },
		{ name, ROOT, true },
		{ name, EVE, false },
		{ "12345678901234567890", ADA, false },
		{ "12345678901234567890123456789012346", ADA, false },
		{ "mine", ADA, false },
	};

	(void)state;
	cut.cut_hash = job_name_hash(name);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cancel_choice choice = choice_of(rows[i].list, rows[i].uid);

		assert_int_equal(
			cancel_choice_doubts(&choice, &cut), rows[i].is_doubtful);
		assert_int_equal(
			cancel_choice_admits(&choice, &cut), choice.kind == CHOICE_MINE);
	}
}

static void a_name_longer_than_names_chooses_no_job(void **state)
{
	char longer[NAME_SIZE_MAX + 1], name[NAME_SIZE_MAX];
	struct live_job job = { .id = 3, .uid = ADA, .name = name };
	struct cancel_choice choice;

	(void)state;
	memset(longer, 'n', sizeof(longer));
	longer[NAME_SIZE_MAX] = '\0';
	text_copy(name, sizeof(name), longer);
	choice = choice_of(longer, ADA);
	assert_false(cancel_choice_admits(&choice, &job));
	choice = choice_of(name, ADA);
	assert_true(cancel_choice_admits(&choice, &job));
}

static void a_choice_without_a_job_is_explained(void **state)
{
	static const struct {
		const char *list;
		uint32_t uid;
		const char *text;
	} rows[] = {
		{ "mine", ROOT, "no job of yours waits or runs" },
		{ "all", ROOT, "no job waits or runs" },
		{ "all", ADA,
			"only root may cancel the jobs of all users; --cancel mine cancels yours" },
		{ "a\nb", ADA,
			"no job of yours named 'a?b' waits or runs; --queue and --status show "
			"the jobs" },
		{ "3-", ADA,
			"no job of yours named '3-' waits or runs; an id is written 12, a range "
			"3-12" },
		{ "1-2-3", ROOT,

			"no job named '1-2-3' waits or runs; an id is written 12, a range 3-12" },
		{ "3x", ROOT,
			"no job named '3x' waits or runs; --queue and --status show the jobs" },
		{ "3-12", ADA, "no job of yours from 3 to 12 waits or runs" },
		{ "3-12", ROOT, "no job from 3 to 12 waits or runs" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cancel_choice choice = choice_of(rows[i].list, rows[i].uid);
		struct why why;

		cancel_choice_explain_none(&choice, &why);
		assert_string_equal(why.text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(choices_end_at_the_rights_of_the_user),
		cmocka_unit_test(a_name_that_is_not_whole_chooses_no_job),
		cmocka_unit_test(a_name_longer_than_names_chooses_no_job),
		cmocka_unit_test(a_choice_without_a_job_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "batch_match.h"

enum { MOST = 32 };

/* A file before, the states of its jobs, the file now, and the job of each line. */
struct edit {
	const char *before; /* one letter per line */
	const char *states; /* one per line: e ended, n new, r running, w in the queue */
	const char *now;
	uint64_t wanted[MOST];
};

static enum batch_state state_of(char letter)
{
	static const char letters[] = "nwre";

	return (enum batch_state)(strchr(letters, letter) - letters);
}

static void make_jobs(
	const char *keys, const char *states, struct batch_jobs *jobs, uint64_t *numbers)
{
	*jobs = BATCH_JOBS_NONE;
	for (size_t i = 0; keys[i]; i++) {
		struct batch_job *job = batch_jobs_add(jobs, (uint64_t)keys[i], "", "");

		assert_non_null(job);
		job->state = state_of(states[i]);
		numbers[i] = i + 1;
	}
}

static struct batch_list make_list(const char *keys, struct batch_line *lines)
{
	size_t count = strlen(keys);

	for (size_t i = 0; i < count; i++)
		lines[i] = (struct batch_line){ .key = (uint64_t)keys[i] };
	return (struct batch_list){ .lines = lines, .count = count };
}

static void check(const struct edit *edit)
{
	struct batch_line lines[MOST];
	struct batch_list list = make_list(edit->now, lines);
	uint64_t numbers[MOST];
	autofree uint64_t *found = NULL;
	struct batch_jobs jobs;

	make_jobs(edit->before, edit->states, &jobs, numbers);
	assert_int_equal(
		batch_match(&jobs, numbers, strlen(edit->before), &list, &found), 0);
	for (size_t i = 0; i < list.count; i++)
		if (found[i] != edit->wanted[i])
			fail_msg("'%s' (%s) -> '%s': line %zu is job %llu, not %llu",
				edit->before, edit->states, edit->now, i + 1,
				(unsigned long long)found[i],
				(unsigned long long)edit->wanted[i]);
	batch_jobs_release(&jobs);
}

static void check_all(const struct edit *edits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&edits[i]);
}

static void lines_that_stay_keep_their_jobs(void **state)
{
	static const struct edit edits[] = {
		{ "", "", "", { 0 } },
		{ "abc", "ern", "abc", { 1, 2, 3 } },
		{ "abc", "ern", "", { 0 } },
		{ "", "", "abc", { 0, 0, 0 } },
		{ "abc", "ern", "abcd", { 1, 2, 3, 0 } },
		{ "abc", "ern", "dabc", { 0, 1, 2, 3 } },
		{ "abc", "enn", "ac", { 1, 3 } },
		{ "abc", "enn", "axc", { 1, 0, 3 } },
		{ "abc", "enn", "cab", { 3, 1, 2 } },
		{ "abcdef", "eernnn", "fedcba", { 6, 5, 4, 3, 2, 1 } },
		{ "abc", "enn", "xyz", { 0, 0, 0 } },
		{ "abc", "enn", "cx", { 3, 0 } },
		{ "aab", "enn", "aaab", { 1, 2, 0, 3 } },
		{ "aab", "nnn", "aabaa", { 1, 2, 3, 0, 0 } },
	};

	(void)state;
	check_all(edits, ARRAY_SIZE(edits));
}

static void of_adjacent_equal_lines_the_ended_ones_are_gone(void **state)
{
	static const struct edit edits[] = {
		{ "aa", "en", "a", { 2 } },
		{ "aa", "ne", "a", { 1 } },
		{ "aa", "er", "a", { 2 } },
		{ "aa", "ew", "a", { 2 } },
		{ "aa", "nn", "a", { 1 } },
		{ "aa", "ee", "a", { 1 } },
		{ "aaa", "een", "aa", { 1, 3 } },
		{ "aaa", "enn", "aa", { 2, 3 } },
		{ "aaa", "nen", "aa", { 1, 3 } },
		{ "aaaa", "eenn", "aa", { 3, 4 } },
		{ "aaaa", "enen", "aa", { 2, 4 } },
		{ "aaaa", "enen", "a", { 2 } },
		{ "baac", "nenn", "bac", { 1, 3, 4 } },
		{ "baac", "nnen", "bac", { 1, 2, 4 } },
		{ "baac", "nenn", "xay", { 0, 3, 0 } },
		{ "baac", "nenn", "ca", { 4, 3 } },
		/* the lines between them are deleted as well */
		{ "aba", "enn", "a", { 3 } },
		{ "abaca", "nenee", "ac", { 1, 4 } },
		{ "cabac", "nenne", "cac", { 1, 4, 5 } },
		{ "xabay", "nnnen", "xay", { 1, 2, 5 } },
		{ "aabcaa", "eennnn", "aa", { 5, 6 } },
		{ "abab", "eenn", "ab", { 3, 4 } },
	};

	(void)state;
	check_all(edits, ARRAY_SIZE(edits));
}

static void of_distant_equal_lines_the_ended_ones_are_gone(void **state)
{
	static const struct edit edits[] = {
		{ "aba", "enn", "ab", { 3, 2 } },
		{ "aba", "enn", "ba", { 2, 3 } },
		{ "aba", "nne", "ab", { 1, 2 } },
		{ "aba", "nne", "ba", { 2, 1 } },
		{ "abaca", "enenn", "abca", { 1, 2, 4, 5 } },
	};

	(void)state;
	check_all(edits, ARRAY_SIZE(edits));
}

static void jobs_keep_their_order_among_equals(void **state)
{
	static const struct edit edits[] = {
		{ "xaay", "nenn", "uaav", { 0, 2, 3, 0 } },
		{ "xabay", "nenrn", "vaabw", { 0, 2, 4, 3, 0 } },
		{ "xaaay", "nneen", "uaav", { 0, 2, 3, 0 } },
	};

	(void)state;
	check_all(edits, ARRAY_SIZE(edits));
}

static void unknown_numbers_get_no_line(void **state)
{
	static const uint64_t numbers[] = { 1, 99, 0, 2 };
	struct batch_line lines[MOST];
	struct batch_list list = make_list("cabx", lines);
	uint64_t own[MOST];
	autofree uint64_t *found = NULL;
	struct batch_jobs jobs;

	(void)state;
	make_jobs("ab", "en", &jobs, own);
	assert_int_equal(
		batch_match(&jobs, numbers, ARRAY_SIZE(numbers), &list, &found), 0);
	assert_int_equal(found[0], 0);
	assert_int_equal(found[1], 1);
	assert_int_equal(found[2], 2);
	assert_int_equal(found[3], 0);
	batch_jobs_release(&jobs);
}

/* --- properties -------------------------------------------------------------------- */

static uint32_t seed;

static unsigned pick(unsigned of)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % of;
}

static void make_text(char *out, const char *letters, unsigned most)
{
	unsigned count = pick(most + 1);

	for (unsigned i = 0; i < count; i++)
		out[i] = letters[pick((unsigned)strlen(letters))];
	out[count] = '\0';
}

/* Edits a file as people do: deletes lines, inserts some, moves one. */
static void change(const char *before, char *out)
{
	size_t used = 0;

	for (size_t i = 0; before[i]; i++) {
		if (pick(4))
			out[used++] = before[i];
		if (!pick(6))
			out[used++] = "abc"[pick(3)];
	}
	out[used] = '\0';
	if (used > 1 && !pick(3)) {
		size_t from = pick((unsigned)used), to = pick((unsigned)used);
		char moved = out[from];

		out[from] = out[to];
		out[to] = moved;
	}
}

static unsigned count_of(const char *text, char letter)
{
	unsigned count = 0;

	for (; *text; text++)
		count += *text == letter;
	return count;
}

struct result {
	const char *before, *states, *now;
	const uint64_t *found;
	bool has_line[MOST]; /* of each line in ->before */
};

static void one_line_each_and_as_many_as_can_be(struct result *result)
{
	unsigned matched[128] = { 0 };

	for (size_t i = 0; result->now[i]; i++) {
		uint64_t number = result->found[i];

		if (!number)
			continue;
		assert_true(number <= strlen(result->before));
		assert_false(result->has_line[number - 1]);
		assert_int_equal(result->before[number - 1], result->now[i]);
		result->has_line[number - 1] = true;
		matched[(unsigned char)result->now[i]]++;
	}
	for (char c = 'a'; c <= 'c'; c++) {
		unsigned before = count_of(result->before, c);
		unsigned now = count_of(result->now, c);

		assert_int_equal(matched[(unsigned char)c], before < now ? before : now);
	}
}

/* No unfinished job lost its line while an equal job that has ended kept one. */
static void none_stands_for_another(const struct result *result)
{
	for (size_t i = 0; result->before[i]; i++) {
		bool is_reached = true;

		if (!result->has_line[i] || result->states[i] != 'e')
			continue;
		for (size_t j = i; is_reached && result->before[j]; j++) {
			bool is_equal = result->before[j] == result->before[i];

			assert_false(is_equal && result->states[j] != 'e' &&
				     !result->has_line[j]);
			is_reached = is_equal || !result->has_line[j];
		}
		is_reached = true;
		for (size_t j = i + 1; is_reached && j-- > 0;) {
			bool is_equal = result->before[j] == result->before[i];

			assert_false(is_equal && result->states[j] != 'e' &&
				     !result->has_line[j]);
			is_reached = is_equal || !result->has_line[j];
		}
	}
}

/*
 * With changes at both ends of the file, as many unfinished jobs keep a line as there are lines.
 */
static void as_few_as_can_be_are_lost(const struct result *result)
{
	size_t old = strlen(result->before), new = strlen(result->now);

	if (!old || !new || result->before[0] == result->now[0] ||
		result->before[old - 1] == result->now[new - 1])
		return;
	for (char c = 'a'; c <= 'c'; c++) {
		unsigned now = count_of(result->now, c), live = 0, kept = 0;

		for (size_t i = 0; i < old; i++) {
			bool is_live = result->before[i] == c && result->states[i] != 'e';

			live += is_live;
			kept += is_live && result->has_line[i];
		}
		assert_int_equal(kept, live < now ? live : now);
	}
}

static void whatever_is_done_to_a_file_no_job_is_lost_or_taken_twice(void **state)
{
	(void)state;
	for (seed = 1; seed < 20000; seed += 1) {
		uint32_t begun = seed;
		char before[MOST], states[MOST], now[2 * MOST + 1];
		struct batch_line lines[2 * MOST + 1];
		uint64_t numbers[MOST];
		autofree uint64_t *found = NULL;
		struct batch_jobs jobs;
		struct batch_list list;
		struct result result = { before, states, now, NULL, { false } };

		make_text(before, "aabc", 12);
		for (size_t i = 0; i <= strlen(before); i++)
			states[i] = "eenwr"[pick(5)];
		change(before, now);
		make_jobs(before, states, &jobs, numbers);
		list = make_list(now, lines);
		assert_int_equal(
			batch_match(&jobs, numbers, strlen(before), &list, &found), 0);
		result.found = found;
		one_line_each_and_as_many_as_can_be(&result);
		none_stands_for_another(&result);
		as_few_as_can_be_are_lost(&result);
		batch_jobs_release(&jobs);
		seed = begun;
	}
}

/* Lines that come back: after half a file was saved, or a line was a comment for a while. */
static void lines_that_come_back_get_their_jobs_back(void **state)
{
	static const struct {
		const char *states; /* of jobs of key `a`; none of them has a line */
		size_t lines;       /* how many lines `a` */
		uint64_t wanted[MOST];
	} cases[] = {
		{ "e", 1, { 1 } },
		{ "er", 1, { 2 } },
		{ "newr", 4, { 4, 3, 1, 2 } },
		{ "ee", 3, { 1, 2, 0 } },
		{ "", 1, { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char keys[MOST] = "", now[MOST] = "";
		struct batch_line lines[MOST];
		uint64_t numbers[MOST];
		autofree uint64_t *found = NULL;
		struct batch_list list;
		struct batch_jobs jobs;

		memset(keys, 'a', strlen(cases[i].states));
		memset(now, 'a', cases[i].lines);
		make_jobs(keys, cases[i].states, &jobs, numbers);
		list = make_list(now, lines);
		assert_int_equal(batch_match(&jobs, NULL, 0, &list, &found), 0);
		assert_memory_equal(
			found, cases[i].wanted, cases[i].lines * sizeof(*found));
		batch_jobs_release(&jobs);
	}
}

/*
 * Lines and jobs of one key, each with its environment: '1' to '9', or '-' if it is unknown.  The
 * states are as above, and a capital letter means that the job was started.
 */
static void an_environment_belongs_to_a_line(void **state)
{
	static const struct {
		const char *before, *states, *now;
		uint64_t wanted[MOST];
	} cases[] = {
		{ "1", "E", "1", { 1 } },
		/* what has run or runs elsewhere is not the line's job */
		{ "1", "E", "2", { 0 } },
		{ "1", "R", "2", { 0 } },
		{ "12", "EE", "21", { 2, 1 } },
		{ "12", "EE", "32", { 0, 2 } },
		/* what has not run follows its line */
		{ "1", "n", "2", { 1 } },
		{ "1", "W", "2", { 1 } },
		{ "1", "e", "2", { 1 } },
		{ "12", "nn", "2", { 2 } },
		{ "12", "Wn", "31", { 2, 1 } },
		/* an old journal does not say where a job has run */
		{ "-", "E", "2", { 1 } },
		{ "-", "R", "2", { 1 } },
		{ "-1", "EE", "12", { 2, 1 } },
		{ "--", "En", "1", { 2 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t count = strlen(cases[i].before);
		char keys[MOST] = "", now[MOST] = "", states[MOST] = "";
		struct batch_line lines[MOST];
		uint64_t numbers[MOST];
		autofree uint64_t *found = NULL;
		struct batch_list list;
		struct batch_jobs jobs;

		memset(keys, 'a', count);
		memset(now, 'a', strlen(cases[i].now));
		for (size_t j = 0; j < count; j++)
			states[j] = (char)(cases[i].states[j] | ('a' - 'A'));
		make_jobs(keys, states, &jobs, numbers);
		for (size_t j = 0; j < count; j++) {
			jobs.all[j].environment = (uint64_t)(cases[i].before[j] - '-');
			jobs.all[j].was_started = states[j] != cases[i].states[j];
		}
		list = make_list(now, lines);
		for (size_t j = 0; j < list.count; j++)
			lines[j].environment = (uint64_t)(cases[i].now[j] - '-');
		assert_int_equal(batch_match(&jobs, numbers, count, &list, &found), 0);
		for (size_t j = 0; j < list.count; j++)
			if (found[j] != cases[i].wanted[j])
				fail_msg("case %zu: line %zu is job %llu", i, j + 1,
					(unsigned long long)found[j]);
		batch_jobs_release(&jobs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_stay_keep_their_jobs),
		cmocka_unit_test(of_adjacent_equal_lines_the_ended_ones_are_gone),
		cmocka_unit_test(lines_that_come_back_get_their_jobs_back),
		cmocka_unit_test(of_distant_equal_lines_the_ended_ones_are_gone),
		cmocka_unit_test(jobs_keep_their_order_among_equals),
		cmocka_unit_test(unknown_numbers_get_no_line),
		cmocka_unit_test(an_environment_belongs_to_a_line),
		cmocka_unit_test(
			whatever_is_done_to_a_file_no_job_is_lost_or_taken_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

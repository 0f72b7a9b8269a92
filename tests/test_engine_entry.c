/* An entry of a batch as a job of Slurm: its command line, and its file. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "batch_attributes.h"
#include "engine_entry.h"
#include "scratch.h"

enum { WORDS = 32 };

/* Reads the command line of a batch. */
static void read_batch(const char *const *given, struct engine_line *ret)
{
	static char *argv[WORDS]; /* the line points into it */
	struct why why = WHY_NONE;
	size_t count = 0;

	for (; given[count]; count++)
		argv[count] = (char *)given[count];
	argv[count] = NULL;
	if (engine_line_read(argv, ret, &why) < 0)
		fail_msg("%s", why.text);
}

/* Reads `[attributes] command` into *@ret, which points into @text. */
static void read_line(char *text, struct batch_line *ret)
{
	struct why why = WHY_NONE;

	*ret = (struct batch_line){ .number = 1 };
	if (batch_has_attributes(text) &&
		batch_attributes_take(&text, &ret->attributes, &why) < 0)
		fail_msg("%s", why.text);
	ret->command = text + strspn(text, " ");
}

/* Returns the words for a line of a batch with the options @given, with blanks between them. */
static const char *words_of(const char *const *given, const char *line)
{
	static struct engine_line batch;
	static char copy[512], shown[1024];
	struct text text = TEXT_ON(shown);
	struct batch_line parsed;
	struct entry_words words;

	text_copy(copy, sizeof(copy), line);
	read_batch(given, &batch);
	read_line(copy, &parsed);
	words = entry_words_make(&batch, &parsed, "3-train.py");
	assert_non_null(words.at);
	shown[0] = '\0';
	for (size_t i = 0; i < words.size; i += strlen(words.at + i) + 1)
		text_addf(&text, "%s%s", i ? " " : "", words.at + i);
	free(words.at);
	return shown;
}

#define GIVEN(...)                                                                      \
	((const char *const[]){ "gpulease", "--engine", "slurm", "--batch", "jobs.txt", \
		##__VA_ARGS__, NULL })

static void a_line_without_attributes_has_the_options_of_the_batch(void **state)
{
	(void)state;
	assert_string_equal(words_of(GIVEN(), "python train.py  -x"),
		"gpulease --submit --name=3-train.py -- /bin/sh -c python train.py  -x");
	assert_string_equal(
		words_of(GIVEN("-n", "2", "-t", "4h", "-p", "long", "--mem", "8G",
				 "--setup", "module load cuda", "-D", "/data"),
			"true"),
		"gpulease --submit --gpus=2 --time=4h --setup=module load cuda "
		"--chdir=/data --mem=8G --partition=long --name=3-train.py -- /bin/sh -c "
		"true");
}

static void what_concerns_the_batch_is_left_out(void **state)
{
	(void)state;
	assert_string_equal(
		words_of(GIVEN("--jobs", "3", "--once", "--fail-fast", "--retries", "2",
				 "--log-dir", "x", "--json"),
			"true"),
		"gpulease --submit --name=3-train.py -- /bin/sh -c true");
}

static void attributes_win_over_the_options(void **state)
{
	(void)state;
	assert_string_equal(
		words_of(GIVEN("-n", "2", "-t", "4h", "--conda", "old", "--setup", "s"),
			"[gpus=1 timeout=90s name=eval conda=new setup=t "
			"fail-retries=2 priority=-5] true"),
		"gpulease --submit --gpus=1 --time=90s --priority=-5 --conda=new "
		"--setup=t --name=eval -- /bin/sh -c true");
}

static void a_positive_priority_is_the_matter_of_the_runner(void **state)
{
	(void)state;
	assert_string_equal(words_of(GIVEN(), "[priority=5] true"),
		"gpulease --submit --name=3-train.py -- /bin/sh -c true");
}

static void gpus_of_a_line_replace_all_that_counts_gpus(void **state)
{
	static const struct {
		const char *options[3], *line, *words;
	} cases[] = {
		{ { "--gres=gpu:4" }, "[gpus=1] true", "--gpus=1 " },
		{ { "--gpus-per-task=1", "-n4" }, "[gpus=2] true",
			"--ntasks=4 --gpus=2 " },
		{ { "--gpus=a100:4" }, "[gpus=1] true", "--gpus=a100:1 " },
		{ { "--gpus=a100:4" }, "[gpus=0] true", "--gpus=0 " },
		{ { "-n", "4" }, "[gpus=0.5] true", "--gpus=0.50 " },
		{ { "-n", "4" }, "true", "--gpus=4 " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char expected[256];

		(void)snprintf(expected, sizeof(expected),
			"gpulease --submit %s--name=3-train.py -- /bin/sh -c true",
			cases[i].words);
		assert_string_equal(
			words_of(GIVEN(cases[i].options[0], cases[i].options[1]),
				cases[i].line),
			expected);
	}
}

static void the_words_are_a_command_line_for_submit(void **state)
{
	static struct engine_line batch, job;
	static char text[] = "[gpus=2 setup=a] echo '{gpus}' \"$x\"";
	struct batch_line line;
	struct entry_words words;
	struct why why = WHY_NONE;

	(void)state;
	read_batch(GIVEN("-p", "long"), &batch);
	read_line(text, &line);
	words = entry_words_make(&batch, &line, "1-echo");
	assert_int_equal(entry_words_read(&words, &job, &why), 0);
	assert_true(job.settings.environment.submit);
	assert_string_equal(engine_line_value(&job, "gpus"), "2");
	assert_string_equal(engine_line_value(&job, "partition"), "long");
	/* the shell of the set-up runs the line */
	assert_string_equal(job.settings.environment.command[0], "echo '{gpus}' \"$x\"");
	assert_string_equal(job.settings.environment.line, "echo '{gpus}' \"$x\"");
	free(words.at);
}

/* --- the file -------------------------------------------------------------------------- */

static void make_entry(const struct scratch *scratch, struct engine_entry *entry)
{
	static char words[] = "gpulease\0--submit\0--\0true", log[] = "/a b/1-true.log";

	*entry = ENGINE_ENTRY_NONE;
	(void)snprintf(entry->path, sizeof(entry->path), "%s/1.slurm", scratch->path);
	text_copy(entry->token, sizeof(entry->token), "0123456789abcdef");
	entry->id = 42;
	entry->status = 124;
	entry->ran_s = 7;
	entry->log = log;
	entry->words = (struct entry_words){ words, sizeof(words) };
}

static void a_file_is_read_as_it_was_written(void **state)
{
	struct engine_entry entry, read = ENGINE_ENTRY_NONE;

	make_entry(*state, &entry);
	assert_int_equal(entry_write(&entry), 0);
	text_copy(read.path, sizeof(read.path), entry.path);
	assert_int_equal(entry_read(&read), 0);
	assert_string_equal(read.token, entry.token);
	assert_int_equal(read.id, 42);
	assert_int_equal(read.status, 124);
	assert_int_equal(read.ran_s, 7);
	assert_string_equal(read.end, "");
	assert_int_equal(read.stop, STOP_NONE);
	assert_string_equal(read.log, entry.log);
	assert_int_equal(read.words.size, entry.words.size);
	assert_memory_equal(read.words.at, entry.words.at, read.words.size);
	free(read.text);
	for (int stop = STOP_NONE; stop <= STOP_TAKEN; stop++) {
		entry.stop = (enum entry_stop)stop;
		text_copy(entry.end, sizeof(entry.end), stop ? "CANCELLED" : "");
		assert_int_equal(entry_write(&entry), 0);
		assert_int_equal(entry_read(&read), 0);
		assert_int_equal(read.stop, stop);
		assert_string_equal(read.end, entry.end);
		free(read.text);
	}
}

static void the_next_attempt_is_another_job(void **state)
{
	struct engine_entry entry, read = ENGINE_ENTRY_NONE;

	make_entry(*state, &entry);
	entry_forget_job(&entry, false);
	text_copy(read.path, sizeof(read.path), entry.path);
	assert_int_equal(entry_read(&read), 0);
	assert_string_equal(read.token, "");
	assert_int_equal(read.id, 0);
	assert_int_equal(read.words.size, entry.words.size);
	free(read.text);
	entry_forget_job(&entry, true);
	assert_int_equal(entry_read(&read), ENTRY_NONE);
}

static void a_damaged_file_is_refused(void **state)
{
	const struct scratch *scratch = *state;
	static const char text[] = "0123\0x\0\0000\0000\0/log\0word";
	struct engine_entry read = ENGINE_ENTRY_NONE;
	FILE *out;

	for (size_t size = 1; size <= sizeof(text); size++) {
		(void)snprintf(read.path, sizeof(read.path), "%s/1.slurm", scratch->path);
		out = fopen(read.path, "w");
		assert_non_null(out);
		assert_int_equal(fwrite(text, 1, size, out), size);
		assert_int_equal(fclose(out), 0);
		assert_int_equal(entry_read(&read), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_without_attributes_has_the_options_of_the_batch),
		cmocka_unit_test(what_concerns_the_batch_is_left_out),
		cmocka_unit_test(attributes_win_over_the_options),
		cmocka_unit_test(a_positive_priority_is_the_matter_of_the_runner),
		cmocka_unit_test(gpus_of_a_line_replace_all_that_counts_gpus),
		cmocka_unit_test(the_words_are_a_command_line_for_submit),
		SCRATCH_TEST(a_file_is_read_as_it_was_written),
		SCRATCH_TEST(the_next_attempt_is_another_job),
		SCRATCH_TEST(a_damaged_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

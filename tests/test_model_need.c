/*
 * Command lines and tables of models: what a job needs in the end, and which tables are
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "command_line.h"
#include "model_need.h"
#include "scratch.h"

static const char configured[] = "model-option = --llm\n[models]\nsmall = 0.5\nbig = 2\n"
				 "fits = 18G\nnone = 0\ndefault = 3\n";

static struct context context;
static struct why why;

/* The words of @line, one blank between them, as main() gets them. */
static void read_line(const char *line, struct settings *settings)
{
	static char text[512];
	static char *argv[32];
	char *rest = text, *word;
	size_t count = 0;

	text_copy(text, sizeof(text), line);
	while ((word = strsep(&rest, " ")))
		argv[count++] = word;
	argv[count] = NULL;
	if (command_line_parse(argv, settings, &why) < 0)
		fail_msg("%s: %s", line, why.text);
}

static void configure(const char *text)
{
	config_default(&context.config);
	if (config_parse("x.conf", text, strlen(text), &context.config, &why) < 0)
		fail_msg("%s", why.text);
}

/* "1 50% 18432", what @line comes to. */
static void check_need(const char *line, const char *expected)
{
	static struct settings settings;
	char is[64];

	read_line(line, &settings);
	if (model_need_apply(&settings.request, &settings.environment, &context, &why) !=
		0)
		fail_msg("%s: %s", line, why.text);
	(void)snprintf(is, sizeof(is), "%u %u%% %llu", settings.request.gpus,
		settings.request.share_percent,
		(unsigned long long)settings.request.vram_mib);
	if (strcmp(is, expected) != 0)
		fail_msg("%s: is %s, not %s", line, is, expected);
}

static void a_model_sets_the_need_unless_an_option_does(void **state)
{
	static const char *const rows[][2] = {
		{ "gpulease x --llm small", "1 50% 0" },
		{ "gpulease x --llm=big", "2 0% 0" },
		{ "gpulease x --llm fits", "1 0% 18432" },
		{ "gpulease x --llm none", "0 0% 0" },
		{ "gpulease x --llm other", "3 0% 0" },
		{ "gpulease x", "1 0% 0" },
		{ "gpulease -n 1 x --llm big", "1 0% 0" },
		{ "gpulease -G 1 x --llm small", "1 0% 0" },
		{ "gpulease --vram 1G x --llm big", "1 0% 1024" },
		{ "gpulease --ntasks 1 x --llm big", "2 0% 0" },
		{ "gpulease --exclusive x --llm small", "1 0% 0" },
		{ "gpulease --exclusive x --llm fits", "1 0% 18432" },
		{ "gpulease --gpu-ids 3 x --llm small", "1 50% 0" },
		{ "gpulease --gpu-ids 3 x --llm big", "1 0% 0" },
		{ "gpulease --gpu-ids 3,4 x --llm big", "2 0% 0" },
		{ "gpulease --gpu-ids 3,4 x --llm small", "2 0% 0" },
	};

	(void)state;
	configure(configured);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_need(rows[i][0], rows[i][1]);
	configure("model-option = -m\n[models]\nsmall = 0.5\n");
	check_need("gpulease x -m small --llm big", "1 50% 0");
	check_need("gpulease x -m unknown", "1 0% 0");
	configure("");
	check_need("gpulease x --llm small", "1 0% 0");
}

/* A line of a jobs file runs in a shell: the model is in the line, not in the words of argv. */
static void the_line_of_a_jobs_file_names_a_model(void **state)
{
	static struct settings settings;

	(void)state;
	configure(configured);
	read_line("gpulease /bin/sh -c x", &settings);
	settings.environment.line = "cd y && python x.py --llm 'big' >log";
	assert_int_equal(model_need_apply(&settings.request, &settings.environment,
				 &context, &why),
		0);
	assert_int_equal(settings.request.gpus, 2);
	settings.request.gpus = 1;
	settings.environment.line = "python x.py";
	assert_int_equal(model_need_apply(&settings.request, &settings.environment,
				 &context, &why),
		0);
	assert_int_equal(settings.request.gpus, 1);
}

static void write_file(const struct scratch *s, const char *name, const char *text)
{
	assert_int_equal(scratch_write(s, name, text), 0);
}

static void a_models_file_replaces_the_configured_table(void **state)
{
	struct scratch *s = *state;
	char line[512];

	configure(configured);
	write_file(s, "m", "{\"models\": {\"small\": 0.125}}");
	(void)snprintf(
		line, sizeof(line), "gpulease --models %s/m x --llm small", s->path);
	check_need(line, "1 13% 0");
	(void)snprintf(line, sizeof(line), "gpulease --models %s/m x --llm big", s->path);
	check_need(line, "1 0% 0");
	write_file(s, "m", "big = 4\n");
	check_need(line, "4 0% 0");
}

static void check_refused(
	const struct scratch *s, const char *options, int expected, const char *reason)
{
	static struct settings settings;
	char line[512];

	(void)snprintf(line, sizeof(line), "gpulease --models %s/m%s", s->path, options);
	read_line(line, &settings);
	why = WHY_NONE;
	assert_int_equal(model_need_apply(&settings.request, &settings.environment,
				 &context, &why),
		expected);
	if (!strstr(why.text, reason))
		fail_msg("'%s' does not say '%s'", why.text, reason);
	assert_int_equal(model_need_check(settings.request.models,
				 settings.environment.chdir, &why),
		expected);
	if (!strstr(why.text, reason))
		fail_msg("'%s' does not say '%s'", why.text, reason);
}

static void a_bad_models_file_is_refused_even_if_unused(void **state)
{
	struct scratch *s = *state;
	char big[MODELS_BYTES_MAX + 2];

	configure(configured);
	check_refused(s, " x", -ENOENT, "/m': No such file or directory");
	write_file(s, "m", "a = 1\nb = x\n");
	check_refused(s, " x --llm a", -EINVAL, "/m, line 2: b: 'x' is not a number of");
	check_refused(s, " -n 1 x", -EINVAL, "/m, line 2: b: 'x' is not a number of");
	memset(big, '#', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	write_file(s, "m", big);
	check_refused(s, " x", -EINVAL, "/m': it is bigger than 64 KiB");
	big[sizeof(big) - 2] = '\0';
	write_file(s, "m", big);
	check_refused(s, " -n 1 x", 0, "");
	assert_int_equal(unlinkat(s->dirfd, "m", 0), 0);
	assert_int_equal(mkfifoat(s->dirfd, "m", 0600), 0);
	check_refused(s, " x", -EINVAL, "/m': it is not a regular file");
}

/* Before anybody is there. */
static void a_models_file_is_relative_to_the_folder_of_the_command(void **state)
{
	static struct settings settings;
	const struct scratch *s = *state;

	assert_int_equal(mkdirat(s->dirfd, "there", 0700), 0);
	write_file(s, "there/m", "a = 1\n");
	read_line("gpulease --models m -n 1 x", &settings);
	assert_int_equal(model_need_check(settings.request.models,
				 settings.environment.chdir, &why),
		-ENOENT);
	settings.environment.chdir = s->path;
	assert_int_equal(model_need_check(settings.request.models,
				 settings.environment.chdir, &why),
		-ENOENT);
	settings.request.models = "there/m";
	assert_int_equal(model_need_check(settings.request.models,
				 settings.environment.chdir, &why),
		0);
	settings.request.models = NULL;
	settings.environment.chdir = "/no/such/folder";
	assert_int_equal(model_need_check(settings.request.models,
				 settings.environment.chdir, &why),
		0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_model_sets_the_need_unless_an_option_does),
		cmocka_unit_test(the_line_of_a_jobs_file_names_a_model),
		SCRATCH_TEST(a_models_file_replaces_the_configured_table),
		SCRATCH_TEST(a_bad_models_file_is_refused_even_if_unused),
		SCRATCH_TEST(a_models_file_is_relative_to_the_folder_of_the_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

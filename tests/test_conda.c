/*
 * Finding conda and its environments.  Each test has a home folder of its own, with an empty
 * program as its conda.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "conda.h"
#include "scratch.h"

static const char *const variables[] = { "CONDA_EXE", "CONDA_ENVS_PATH",
	"CONDA_ENVS_DIRS", "MAMBA_EXE", "MAMBA_ROOT_PREFIX" };

/* Makes the folder @path below @s, and those around it. */
static void make_folder(const struct scratch *s, const char *path)
{
	char part[128];

	for (size_t i = 0; i <= strlen(path); i++) {
		if (path[i] != '/' && path[i])
			continue;
		(void)snprintf(part, sizeof(part), "%.*s", (int)i, path);
		assert_true(mkdirat(s->dirfd, part, 0700) == 0 || errno == EEXIST);
	}
}

static void make_program(const struct scratch *s, const char *path)
{
	assert_int_equal(scratch_write(s, path, "#!/bin/sh\n"), 0);
	assert_int_equal(fchmodat(s->dirfd, path, 0700, 0), 0);
}

static const char *below(const struct scratch *s, const char *path)
{
	static char out[4][256];
	static unsigned next;
	char *at = out[next++ % ARRAY_SIZE(out)];

	(void)snprintf(at, sizeof(out[0]), "%s/%s", s->path, path);
	return at;
}

/* Makes a home with miniforge3 and its environment `one`; there is no other conda. */
static struct scratch *make_home(void **state)
{
	struct scratch *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		assert_int_equal(unsetenv(variables[i]), 0);
	assert_int_equal(setenv("HOME", s->path, 1), 0);
	assert_int_equal(setenv("PATH", below(s, "bin"), 1), 0);
	make_folder(s, "bin");
	make_folder(s, "miniforge3/bin");
	make_folder(s, "miniforge3/envs/one/conda-meta");
	make_program(s, "miniforge3/bin/conda");
	return s;
}

#define CHECK_FOUND(name, program_, environment_)                       \
	do {                                                            \
		struct conda found;                                     \
		struct why reason = WHY_NONE;                           \
		int result = conda_find((name), &found, &reason);       \
                                                                        \
		assert_string_equal(reason.text, "");                   \
		assert_int_equal(result, 0);                            \
		assert_string_equal(found.program, (program_));         \
		assert_string_equal(found.environment, (environment_)); \
	} while (0)

#define CHECK_NOT_FOUND(name, part)                                             \
	do {                                                                    \
		struct conda found;                                             \
		struct why reason = WHY_NONE;                                   \
                                                                                \
		assert_int_equal(conda_find((name), &found, &reason), -ENOENT); \
		assert_non_null(strstr(reason.text, (part)));                   \
	} while (0)

static void conda_is_found_in_its_usual_folder(void **state)
{
	struct scratch *s = make_home(state);
	const char *program = below(s, "miniforge3/bin/conda");

	CHECK_FOUND("one", program, "one");
	CHECK_FOUND("base", program, "base");
	CHECK_NOT_FOUND("two", "no conda environment 'two' in '/");
}

static void conda_exe_comes_before_path_and_the_usual_folders(void **state)
{
	struct scratch *s = make_home(state);

	make_program(s, "bin/conda");
	CHECK_FOUND("base", below(s, "bin/conda"), "base");
	make_program(s, "mine");
	assert_int_equal(setenv("CONDA_EXE", below(s, "mine"), 1), 0);
	CHECK_FOUND("base", below(s, "mine"), "base");
	assert_int_equal(fchmodat(s->dirfd, "mine", 0600, 0), 0);
	CHECK_FOUND("base", below(s, "bin/conda"), "base");
	assert_int_equal(setenv("CONDA_EXE", s->path, 1), 0);
	CHECK_FOUND("base", below(s, "bin/conda"), "base");
	assert_int_equal(setenv("CONDA_EXE", "", 1), 0);
	CHECK_FOUND("base", below(s, "bin/conda"), "base");
}

static void a_missing_conda_is_an_error(void **state)
{
	struct scratch *s = make_home(state);

	if (access("/opt/conda", F_OK) == 0 || access("/opt/miniconda3", F_OK) == 0)
		skip_because("conda is installed in /opt");
	assert_int_equal(unlinkat(s->dirfd, "miniforge3/bin/conda", 0), 0);
	CHECK_NOT_FOUND("one", "cannot find conda for --conda 'one'");
	assert_int_equal(unsetenv("HOME"), 0);
	CHECK_NOT_FOUND("one", "cannot find conda for --conda 'one'");
}

static void a_folder_alone_is_no_environment(void **state)
{
	struct scratch *s = make_home(state);

	make_folder(s, "miniforge3/envs/two");
	CHECK_NOT_FOUND("two", "no conda environment");
	CHECK_NOT_FOUND("", "no conda environment");
	CHECK_NOT_FOUND(below(s, "miniforge3/envs/two"), "has no folder conda-meta");
	CHECK_NOT_FOUND("/", "has no folder conda-meta");
	assert_int_equal(scratch_write(s, "miniforge3/envs/two/conda-meta", "a file"), 0);
	CHECK_NOT_FOUND("two", "no conda environment");
}

static void environments_of_the_user_are_found(void **state)
{
	struct scratch *s = make_home(state);
	const char *program = below(s, "miniforge3/bin/conda");
	char list[600];

	make_folder(s, ".conda/envs/own/conda-meta");
	CHECK_FOUND("own", program, "own");
	make_folder(s, "far/listed/conda-meta");
	CHECK_NOT_FOUND("listed", "no conda environment");
	(void)snprintf(list, sizeof(list), ":/no/such::%s:", below(s, "far"));
	assert_int_equal(setenv("CONDA_ENVS_DIRS", list, 1), 0);
	CHECK_FOUND("listed", program, "listed");
	CHECK_FOUND(below(s, "far/listed"), program, below(s, "far/listed"));
}

static void environments_in_the_list_of_conda_are_found(void **state)
{
	struct scratch *s = make_home(state);
	const char *program = below(s, "miniforge3/bin/conda");
	char noted[1200];

	make_folder(s, ".conda");
	make_folder(s, "far/noted/conda-meta");
	(void)snprintf(noted, sizeof(noted), "\nnoted\n/no/such/noted\n\n%s",
		below(s, "far/noted"));
	assert_int_equal(scratch_write(s, ".conda/environments.txt", noted), 0);
	CHECK_FOUND("noted", program, below(s, "far/noted"));
	CHECK_NOT_FOUND("note", "no conda environment");
	CHECK_FOUND("one", program, "one");
	/* a FIFO in place of the list must not block */
	assert_int_equal(unlinkat(s->dirfd, ".conda/environments.txt", 0), 0);
	assert_int_equal(mkfifoat(s->dirfd, ".conda/environments.txt", 0600), 0);
	CHECK_NOT_FOUND("noted", "no conda environment");
}

static void long_names_are_refused(void **state)
{
	char name[2 * PATH_MAX];

	make_home(state);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK_NOT_FOUND(name, "no conda environment");
	name[0] = '/';
	CHECK_NOT_FOUND(name, "has no folder conda-meta");
	assert_int_equal(setenv("CONDA_EXE", name, 1), 0);
	assert_int_equal(setenv("CONDA_ENVS_PATH", name, 1), 0);
	CHECK_NOT_FOUND("x", "no conda environment");
}

static void micromamba_comes_last(void **state)
{
	struct scratch *s = make_home(state);
	char out[2 * PATH_MAX];
	struct text text = TEXT_ON(out);
	struct conda micromamba;

	if (access("/opt/conda", F_OK) == 0 || access("/opt/miniconda3", F_OK) == 0)
		skip_because("conda is installed in /opt");
	make_program(s, "bin/micromamba");
	make_folder(s, "micromamba/envs/mm/conda-meta");
	CHECK_NOT_FOUND("mm", "no conda environment");
	assert_int_equal(unlinkat(s->dirfd, "miniforge3/bin/conda", 0), 0);
	CHECK_FOUND("mm", below(s, "bin/micromamba"), "mm");
	assert_int_equal(conda_find("mm", &micromamba, NULL), 0);
	conda_add_activation(&micromamba, &text);
	assert_non_null(strstr(out, "micromamba activate 'mm' || exit\n"));
	assert_int_equal(setenv("MAMBA_ROOT_PREFIX", below(s, "other"), 1), 0);
	CHECK_NOT_FOUND("mm", "no conda environment");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(conda_is_found_in_its_usual_folder),
		SCRATCH_TEST(conda_exe_comes_before_path_and_the_usual_folders),
		SCRATCH_TEST(a_missing_conda_is_an_error),
		SCRATCH_TEST(a_folder_alone_is_no_environment),
		SCRATCH_TEST(environments_of_the_user_are_found),
		SCRATCH_TEST(environments_in_the_list_of_conda_are_found),
		SCRATCH_TEST(long_names_are_refused),
		SCRATCH_TEST(micromamba_comes_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

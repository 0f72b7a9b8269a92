#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "joblog.h"
#include "fdio.h"
#include "scratch.h"

static struct settings settings;
static struct context context;
static char place[64];

static int setup(void **state)
{
	int r = scratch_setup(state);
	const struct scratch *scratch = *state;

	if (r < 0)
		return r;
	settings = (struct settings){ .machine.sim_gpus = 0 };
	context = (struct context){ .settings = &settings, .dir = STATEDIR_NONE };
	text_copy(place, sizeof(place), scratch->path);
	(void)setenv("XDG_STATE_HOME", place, 1);
	return chdir(place);
}

static int teardown(void **state)
{
	return chdir("/") < 0 ? -1 : scratch_teardown(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const char *log_name(uint64_t job)
{
	static char path[PATH_MAX];

	assert_int_equal(joblog_path(&context, job, path, sizeof(path)), 0);
	return path;
}

static const char *content(const char *path)
{
	static char text[64];

	assert_int_equal(fdio_read_text(AT_FDCWD, path, text, sizeof(text)), 0);
	return text;
}

static void create(uint64_t job, const char *text)
{
	struct why why = WHY_NONE;
	autofd int fd = joblog_create(&context, job, &why);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void the_path_depends_on_the_environment(void **state)
{
	char path[PATH_MAX], small[8];

	(void)state;
	(void)setenv("XDG_STATE_HOME", "/state", 1);
	(void)setenv("HOME", "/home/ada", 1);
	assert_string_equal(log_name(7), "/state/gpulease/logs/7.log");
	(void)setenv("XDG_STATE_HOME", "relative", 1);
	assert_string_equal(log_name(7), "/home/ada/.local/state/gpulease/logs/7.log");
	assert_int_equal(joblog_path(&context, 7, small, sizeof(small)), -ENAMETOOLONG);
	settings.machine.sim_gpus = 2;
	text_copy(context.dir.path, sizeof(context.dir.path), "/sim");
	assert_string_equal(log_name(7), "/sim/logs/7.log");
	settings.machine.sim_gpus = 0;
	(void)unsetenv("XDG_STATE_HOME");
	(void)setenv("HOME", "", 1);
	assert_int_equal(joblog_path(&context, 7, path, sizeof(path)), -ENOENT);
}

static void the_folder_is_made_for_its_user(void **state)
{
	struct why why = WHY_NONE;
	struct stat st;

	(void)state;
	assert_int_equal(joblog_prepare(&context, &why), 0);
	assert_int_equal(stat("gpulease/logs", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(joblog_prepare(&context, &why), 0);
}

static void an_unusable_folder_is_an_error(void **state)
{
	struct why why = WHY_NONE;
	autofd int fd = open("gpulease", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(joblog_prepare(&context, &why), -ENOTDIR);
	assert_non_null(strstr(why.text, "gpulease/logs'"));
	assert_non_null(strstr(why.text, "-o FILE"));
	(void)unsetenv("XDG_STATE_HOME");
	(void)unsetenv("HOME");
	assert_int_equal(joblog_prepare(&context, &why), -ENOENT);
	assert_non_null(strstr(why.text, "HOME"));
}

static void an_old_log_is_renamed(void **state)
{
	struct why why = WHY_NONE;
	char old[PATH_MAX + 1], name[PATH_MAX];
	struct stat st;
	autofd int fd = -1;

	(void)state;
	assert_int_equal(joblog_prepare(&context, &why), 0);
	assert_int_equal(joblog_open(&context, 3, name), -ENOENT);
	create(3, "one");
	create(3, "two");
	(void)snprintf(old, sizeof(old), "%s~", log_name(3));
	assert_string_equal(content(old), "one");
	assert_string_equal(content(log_name(3)), "two");
	assert_int_equal(stat(log_name(3), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	fd = joblog_open(&context, 3, name);
	assert_true(fd >= 0);
	assert_string_equal(name, log_name(3));
}

static void the_link_leads_to_the_file_of_the_user(void **state)
{
	struct why why = WHY_NONE;
	char target[PATH_MAX] = "", wanted[PATH_MAX];

	(void)state;
	assert_int_equal(joblog_prepare(&context, &why), 0);
	create(4, "old");
	assert_int_equal(joblog_link(&context, 4, "out.txt", &why), 0);
	assert_true(readlink(log_name(4), target, sizeof(target) - 1) > 0);
	(void)snprintf(wanted, sizeof(wanted), "%s/out.txt", place);
	assert_string_equal(target, wanted);
	assert_int_equal(joblog_link(&context, 5, "/dev/null", &why), 0);
	memset(target, 0, sizeof(target));
	assert_true(readlink(log_name(5), target, sizeof(target) - 1) > 0);
	assert_string_equal(target, "/dev/null");
	/* -o names the log itself */
	create(6, "text");
	assert_int_equal(joblog_link(&context, 6, log_name(6), &why), 0);
	assert_string_equal(content(log_name(6)), "text");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_path_depends_on_the_environment),
		TEST(the_folder_is_made_for_its_user),
		TEST(an_unusable_folder_is_an_error),
		TEST(an_old_log_is_renamed),
		TEST(the_link_leads_to_the_file_of_the_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

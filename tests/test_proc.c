#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>

#include "fixture.h"
#include "proc.h"

/* --- a /proc that hides, from this process or from its user --------------------------- */

static bool is_lent, is_user, hides_from_us, hides_from_user;
static int hidden_errno;

bool __wrap_rights_are_lent(void);
void __wrap_rights_as_user_begin(void);
void __wrap_rights_as_user_end(void);
int __real_openat(int dirfd, const char *path, int flags, ...);
int __wrap_openat(int dirfd, const char *path, int flags, ...);
int __real_fstatat(int dirfd, const char *path, struct stat *st, int flags);
int __wrap_fstatat(int dirfd, const char *path, struct stat *st, int flags);
struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);

bool __wrap_rights_are_lent(void)
{
	return is_lent;
}

void __wrap_rights_as_user_begin(void)
{
	assert_false(is_user);
	is_user = true;
}

void __wrap_rights_as_user_end(void)
{
	assert_true(is_user);
	is_user = false;
}

static bool is_hidden(const char *path)
{
	unsigned pid = 0;

	return (is_user ? hides_from_user : hides_from_us) &&
	       sscanf(path, "/proc/%u", &pid) == 1 && pid != (unsigned)getpid();
}

int __wrap_openat(int dirfd, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	va_start(list, flags);
	if (flags & O_CREAT)
		mode = va_arg(list, mode_t);
	va_end(list);
	if (is_hidden(path)) {
		errno = hidden_errno;
		return -1;
	}
	return __real_openat(dirfd, path, flags, mode);
}

int __wrap_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	if (is_hidden(path)) {
		errno = hidden_errno;
		return -1;
	}
	return __real_fstatat(dirfd, path, st, flags);
}

struct dirent *__wrap_readdir(DIR *dir)
{
	struct dirent *entry;
	char path[300];

	do {
		entry = __real_readdir(dir);
		if (entry)
			(void)snprintf(path, sizeof(path), "/proc/%s", entry->d_name);
	} while (entry && is_hidden(path));
	return entry;
}

static int reset(void **state)
{
	(void)state;
	is_lent = is_user = hides_from_us = hides_from_user = false;
	hidden_errno = ENOENT;
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, reset)

static bool is_among(uint32_t pid, const uint32_t *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (all[i] == pid)
			return true;
	return false;
}

static bool is_listed(uint32_t pid)
{
	autofree uint32_t *all = NULL;
	size_t count = 0;

	assert_int_equal(proc_list(&all, &count), 0);
	assert_true(is_among((uint32_t)getpid(), all, count));
	return is_among(pid, all, count);
}

/* Whether it can be read, opened, its user be found, and it is in the list: all, or nothing. */
static bool is_seen(uint32_t pid)
{
	autofd int fd = proc_open(pid, "limits");
	uint32_t uid = UINT32_MAX;
	char text[1024];
	int r = proc_read_text(pid, "stat", text, sizeof(text));

	assert_int_equal(fd >= 0, r == 0);
	assert_int_equal(proc_find_user(pid, &uid) == 0, r == 0);
	assert_int_equal(is_listed(pid), r == 0);
	assert_false(is_user);
	if (r < 0) {
		assert_int_equal(r, -hidden_errno);
		assert_int_equal(fd, -hidden_errno);
	} else {
		assert_int_equal(uid, getuid());
	}
	return r == 0;
}

/* --- tests ---------------------------------------------------------------------------- */

static void what_either_sees_is_seen(void **state)
{
	static const struct {
		bool is_lent, hides_from_us, hides_from_user, is_seen;
	} table[] = {
		{ false, false, false, true },
		{ false, true, false, false }, /* nothing is lent: they are the same */
		{ true, false, false, true },
		{ true, true, false, true },
		{ true, false, true, true },
		{ true, true, true, false },
	};
	static const int answers[] = { ENOENT, EPERM, EACCES };
	struct other other = other_start(-1, OTHER_ALONE);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		for (size_t j = 0; j < ARRAY_SIZE(answers); j++) {
			is_lent = table[i].is_lent;
			hides_from_us = table[i].hides_from_us;
			hides_from_user = table[i].hides_from_user;
			hidden_errno = answers[j];
			assert_int_equal(is_seen((uint32_t)other.pid), table[i].is_seen);
		}
	reset(NULL);
	other_end(&other);
}

static void what_fails_otherwise_is_not_tried_again(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	uint32_t uid;

	(void)state;
	is_lent = hides_from_us = true;
	hidden_errno = EMFILE;
	assert_int_equal(proc_open((uint32_t)other.pid, "stat"), -EMFILE);
	assert_int_equal(proc_find_user((uint32_t)other.pid, &uid), -EMFILE);
	reset(NULL);
	other_end(&other);
}

static void hidden_children_are_listed(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	autofree uint32_t *all = NULL;
	size_t count = 0;

	(void)state;
	if (access("/proc/thread-self/children", R_OK) < 0) {
		other_end(&other);
		skip();
	}
	hides_from_us = true;
	assert_false(is_listed((uint32_t)other.pid));
	assert_int_equal(proc_list_children(&all, &count), 0);
	assert_true(is_among((uint32_t)other.pid, all, count));
	assert_false(is_among((uint32_t)getpid(), all, count));
	reset(NULL);
	other_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_either_sees_is_seen),
		TEST(what_fails_otherwise_is_not_tried_again),
		TEST(hidden_children_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

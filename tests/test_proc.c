#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>

#include "fixture.h"
#include "proc.h"

/* --- a /proc that hides, from this process or from its user --------------------------- */

enum { PID_MAX = 4 * 1024 * 1024 }; /* PID_MAX_LIMIT of the kernel */

static bool is_lent, is_user, hides_from_us, hides_from_user;
static int hidden_errno;
static long shift; /* added to the positions that Linux gives to the entries of /proc */

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
	if (entry)
		entry->d_off += shift;
	return entry;
}

static int reset(void **state)
{
	(void)state;
	is_lent = is_user = hides_from_us = hides_from_user = false;
	hidden_errno = ENOENT;
	shift = 0;
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

	assert_int_equal(proc_list(0, &all, &count), 0);
	assert_true(is_among((uint32_t)getpid(), all, count));
	return is_among(pid, all, count);
}

/* Whether the process can be read and opened, has a user and is listed: all, or none of these. */
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

static void a_process_is_seen_with_either_rights(void **state)
{
	static const struct {
		bool is_lent, hides_from_us, hides_from_user, is_seen;
	} table[] = {
		{ false, false, false, true },
		{ false, true, false,
			false }, /* no lent group: both rights are the same */
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

static void other_errors_are_not_retried(void **state)
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
		skip_because("the kernel has no list of children");
	}
	hides_from_us = true;
	assert_false(is_listed((uint32_t)other.pid));
	assert_int_equal(proc_list_children(&all, &count), 0);
	assert_true(is_among((uint32_t)other.pid, all, count));
	assert_false(is_among((uint32_t)getpid(), all, count));
	reset(NULL);
	other_end(&other);
}

static bool is_alive(uint32_t pid)
{
	return kill((pid_t)pid, 0) == 0 || errno == EPERM; /* another user's */
}

/* Checks that the list from @from on is complete; returns whether it also has process 1. */
static bool has_first_from(uint32_t from)
{
	autofree uint32_t *all = NULL, *part = NULL;
	size_t count = 0, part_count = 0;

	assert_int_equal(proc_list(0, &all, &count), 0);
	assert_true(is_among(1, all, count));
	assert_int_equal(proc_list(from, &part, &part_count), 0);
	for (size_t i = 0; i < part_count; i++)
		assert_true(is_among(part[i], all, count) || is_alive(part[i]));
	for (size_t i = 0; i < count; i++)
		assert_true(all[i] < from || is_among(all[i], part, part_count) ||
			    !is_alive(all[i]));
	return is_among(1, part, part_count);
}

static void a_list_from_a_pid_on_is_complete(void **state)
{
	struct other other = other_start(-1, OTHER_ALONE);
	uint32_t first = (uint32_t)(other.pid < getpid() ? other.pid : getpid());

	(void)state;
	assert_true(has_first_from(0));
	assert_false(has_first_from(2));
	assert_false(has_first_from(first));
	/* an empty list does not prove that no process is missing */
	assert_true(has_first_from(PID_MAX + 1));
	shift = 1;
	assert_true(has_first_from(2));
	assert_true(has_first_from(first));
	reset(NULL);
	other_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_is_seen_with_either_rights),
		TEST(other_errors_are_not_retried),
		TEST(hidden_children_are_listed),
		TEST(a_list_from_a_pid_on_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

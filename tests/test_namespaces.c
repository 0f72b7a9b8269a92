#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "namespaces.h"
#include "owner.h"
#include "proc.h"
#include "scratch.h"

static void a_user_is_numbered_as_outside(void **state)
{
	static const char podman[] = "         0       5001          1\n"
				     "         1     100000      65536\n";
	static const struct {
		const char *map;
		uint32_t inside, outside;
	} cases[] = {
		{ "", 0, 0 },
		{ "", 5001, 5001 },
		{ "         0          0 4294967295\n", 0, 0 },
		{ "         0          0 4294967295\n", 5001, 5001 },
		{ "0 5001 1\n", 0, 5001 },
		{ "0 5001 1", 0, 5001 },
		/* a user of the machine that this namespace does not have */
		{ "0 5001 1\n", 65534, 65534 },
		{ "5001 5001 1\n", 5001, 5001 },
		{ podman, 0, 5001 },
		{ podman, 1, 100000 },
		{ podman, 65536, 165535 },
		{ podman, 65537, 65537 },
		{ "no map", 7, 7 },
		{ "0 1", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(namespaces_map_user(cases[i].map, cases[i].inside),
			cases[i].outside);
}

static void here_proc_is_that_of_this_process(void **state)
{
	struct stat st;

	(void)state;
	assert_true(namespaces_has_own_proc());
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_true(namespaces_pidns() == st.st_ino);
}

/*
 * In a child in a new pid namespace, where /proc still shows the old one: reads its own entry and
 * that of the pid that it has, which is another process's, and lists processes.
 */
static int read_foreign_proc(void)
{
	struct process_stat stat;
	struct owner owner;
	uint32_t uid, *pids;
	size_t count;
	char path[PROC_PATH_SIZE];

	return !namespaces_has_own_proc() && !namespaces_sees_all() &&
	       process_stat_read((uint32_t)getpid(), &stat) == -ENOTSUP &&
	       proc_find_user((uint32_t)getpid(), &uid) == -ENOTSUP &&
	       proc_find_real_user((uint32_t)getpid(), &uid) == -ENOTSUP &&
	       proc_path((uint32_t)getpid(), "fd", path) == -ENOTSUP &&
	       proc_list(0, &pids, &count) == -ENOTSUP && owner_self(&owner) == -ENOTSUP;
}

static void nothing_is_read_of_a_proc_of_another_namespace(void **state)
{
	pid_t child = fork(), grandchild;
	int status = 0;

	(void)state;
	if (child == 0) {
		/* a user needs a user namespace for it */
		if (unshare(CLONE_NEWPID) < 0 &&
			unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
			_exit(2);
		grandchild = fork();
		if (grandchild == 0)
			_exit(read_foreign_proc() ? 0 : 1);
		if (grandchild < 0 || waitpid(grandchild, &status, 0) < 0)
			_exit(2);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip_because("no new pid namespace here");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first, because a process keeps what it has read */
		cmocka_unit_test(nothing_is_read_of_a_proc_of_another_namespace),
		cmocka_unit_test(a_user_is_numbered_as_outside),
		cmocka_unit_test(here_proc_is_that_of_this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

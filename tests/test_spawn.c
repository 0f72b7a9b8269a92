#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "clock.h"
#include "scratch.h"
#include "spawn.h"

enum { PATIENCE_MS = 20000 };

static char greeting[] = "GREETING=hello", path[] = "PATH=/usr/bin:/bin";
static char *const environment[] = { greeting, path, NULL };

static int try_shell(const char *script, struct spawn *spawn)
{
	/* exec does not write to them */
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };

	return spawn_start("/bin/sh", argv, environment, spawn);
}

static void start_shell(const char *script, struct spawn *spawn)
{
	assert_int_equal(try_shell(script, spawn), 0);
}

/* Steps until the child has ended; false if that takes too long. */
static bool finish(struct spawn *spawn)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (spawn_step(spawn) == SPAWN_RUNNING) {
		struct pollfd fds[SPAWN_POLL_FDS];
		unsigned count = spawn_poll_fds(spawn, fds);
		int timer = spawn_timer_ms(spawn);

		if (clock_boot_ms() > until)
			return false;
		(void)poll(fds, count, timer < 0 ? 1000 : timer);
	}
	return true;
}

/* Polls the pidfd, or the child itself, until it is gone. */
static bool vanish(struct spawn *spawn)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (!spawn_is_gone(spawn)) {
		struct pollfd fd = { .fd = spawn->pidfd, .events = POLLIN };

		if (clock_boot_ms() > until)
			return false;
		(void)poll(&fd, 1, 10);
	}
	return true;
}

static void assert_output(const struct spawn_output *output, const char *text)
{
	assert_int_equal(output->used, strlen(text));
	if (output->used > 0)
		assert_memory_equal(output->text, text, output->used);
}

static void both_outputs_and_the_exit_status_come_back(void **state)
{
	struct spawn spawn = SPAWN_INIT;

	(void)state;
	start_shell("echo \"$GREETING, $HOME\"; echo trouble >&2; exit 7", &spawn);
	assert_true(finish(&spawn));
	assert_output(&spawn.out, "hello, \n");
	assert_output(&spawn.err, "trouble\n");
	assert_int_equal(spawn.exit_code, 7);
	assert_int_equal(spawn.signal, 0);
	assert_int_equal(spawn.exec_errno, 0);
	assert_int_equal(spawn.pid, 0);
	assert_int_equal(spawn_step(&spawn), 0);
	spawn_release(&spawn);
	spawn_release(&spawn);
}

static void without_a_pidfd_the_exit_is_noticed(void **state)
{
	static const char *const scripts[] = { "echo a",
		"exec >&- 2>&-; sleep 0.05; exit 0",
		/* another process keeps the pipe open */
		"sleep 30 & echo a; exit 0" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		struct spawn spawn = SPAWN_INIT;
		pid_t group;

		start_shell(scripts[i], &spawn);
		group = spawn.pid;
		close_fd(&spawn.pidfd);
		assert_true(spawn_timer_ms(&spawn) > 0);
		assert_true(finish(&spawn));
		assert_int_equal(spawn.exit_code, 0);
		assert_int_equal(spawn_timer_ms(&spawn), -1);
		spawn_release(&spawn);
		(void)kill(-group, SIGKILL); /* the sleep */
	}
}

static void a_process_left_behind_with_the_pipe_is_not_waited_for(void **state)
{
	struct spawn spawn = SPAWN_INIT;
	int64_t started_ms = clock_boot_ms();
	pid_t group;

	(void)state;
	start_shell("echo before; sleep 60 & exit 3", &spawn);
	group = spawn.pid;
	assert_true(finish(&spawn));
	assert_true(clock_boot_ms() - started_ms < 30000);
	assert_output(&spawn.out, "before\n");
	assert_int_equal(spawn.exit_code, 3);
	spawn_release(&spawn);
	(void)kill(-group, SIGKILL);
}

static void the_error_of_a_failed_exec_is_reported(void **state)
{
	static const struct {
		const char *path;
		int error;
	} cases[] = { { "/proc/nonexistent/program", ENOENT }, { "/dev/null", EACCES },
		{ "/etc", EACCES } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spawn spawn = SPAWN_INIT;
		char *argv[] = { greeting, NULL };

		assert_int_equal(
			spawn_start(cases[i].path, argv, environment, &spawn), 0);
		assert_true(finish(&spawn));
		assert_int_equal(spawn.exec_errno, cases[i].error);
		assert_int_equal(spawn.exit_code, 127);
		spawn_release(&spawn);
	}
}

static void output_beyond_the_limit_is_drained_and_discarded(void **state)
{
	struct spawn spawn = SPAWN_INIT;

	(void)state;
	start_shell("head -c 3000000 /dev/zero; echo end >&2", &spawn);
	assert_true(finish(&spawn));
	assert_int_equal(spawn.out.used, SPAWN_OUTPUT_MAX);
	assert_true(spawn.out.is_cut);
	assert_false(spawn.err.is_cut);
	assert_output(&spawn.err, "end\n");
	assert_int_equal(spawn.exit_code, 0);
	spawn_release(&spawn);
}

static void output_of_exactly_the_limit_is_whole(void **state)
{
	struct spawn spawn = SPAWN_INIT;

	(void)state;
	start_shell("head -c 262144 /dev/zero", &spawn);
	assert_true(finish(&spawn));
	assert_int_equal(spawn.out.used, SPAWN_OUTPUT_MAX);
	assert_false(spawn.out.is_cut);
	spawn_release(&spawn);
}

static void the_signal_that_kills_the_child_is_reported(void **state)
{
	struct spawn spawn = SPAWN_INIT;

	(void)state;
	start_shell("kill -SEGV $$", &spawn);
	assert_true(finish(&spawn));
	assert_int_equal(spawn.signal, SIGSEGV);
	assert_int_equal(spawn.exit_code, SPAWN_EXIT_UNKNOWN);
	spawn_release(&spawn);
}

static void an_ignored_sigchld_only_hides_the_status(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	struct spawn spawn = SPAWN_INIT;
	bool has_ended;

	(void)state;
	assert_int_equal(sigaction(SIGCHLD, &ignore, &before), 0);
	start_shell("echo done; exit 5", &spawn);
	has_ended = finish(&spawn);
	assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
	assert_true(has_ended);
	assert_output(&spawn.out, "done\n");
	assert_int_equal(spawn.exit_code, SPAWN_EXIT_UNKNOWN);
	assert_int_equal(spawn.signal, 0);
	spawn_release(&spawn);
}

static void a_stop_is_reported_while_it_lasts_and_afterwards(void **state)
{
	(void)state;
	for (int is_continued = 0; is_continued <= 1; is_continued++) {
		struct spawn spawn = SPAWN_INIT;
		siginfo_t info;

		start_shell("sleep 0.2; exit 0", &spawn);
		assert_int_equal(spawn_step(&spawn), SPAWN_RUNNING);
		assert_false(spawn.was_stopped);
		assert_true(spawn_timer_ms(&spawn) > 0); /* nothing else shows it */
		assert_int_equal(kill(spawn.pid, SIGSTOP), 0);
		assert_int_equal(
			waitid(P_PID, (id_t)spawn.pid, &info, WSTOPPED | WNOWAIT), 0);
		if (is_continued)
			assert_int_equal(kill(spawn.pid, SIGCONT), 0);
		assert_int_equal(spawn_step(&spawn), SPAWN_RUNNING);
		assert_true(spawn.was_stopped);
		assert_int_equal(kill(spawn.pid, SIGCONT), 0);
		assert_true(finish(&spawn));
		assert_true(spawn.was_stopped);
		assert_int_equal(spawn.exit_code, 0);
		spawn_release(&spawn);
		assert_false(spawn.was_stopped);
	}
}

static void a_continuation_without_a_stop_is_not_a_stop(void **state)
{
	struct spawn spawn = SPAWN_INIT;

	(void)state;
	start_shell("sleep 0.1; exit 0", &spawn);
	assert_int_equal(kill(spawn.pid, SIGCONT), 0);
	assert_true(finish(&spawn));
	assert_false(spawn.was_stopped);
	spawn_release(&spawn);
}

static void an_abandoned_child_is_killed_with_its_group(void **state)
{
	struct spawn spawn = SPAWN_INIT;
	struct pollfd fds[SPAWN_POLL_FDS];
	pid_t group;

	(void)state;
	start_shell("trap '' TERM; sleep 60 & echo ready; wait", &spawn);
	while (spawn_step(&spawn) == SPAWN_RUNNING && spawn.out.used == 0)
		(void)poll(fds, spawn_poll_fds(&spawn, fds), 1000);
	assert_output(&spawn.out, "ready\n");
	group = spawn.pid;
	spawn_abandon(&spawn);
	assert_int_equal(spawn_poll_fds(&spawn, fds), spawn.pidfd >= 0 ? 1 : 0);
	assert_true(vanish(&spawn));
	assert_int_equal(spawn.signal, SIGKILL);
	/* the orphan is gone, or a zombie that init has yet to reap */
	for (int i = 0; i < 1000 && kill(-group, 0) == 0; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(kill(-group, 0), -1);
	spawn_release(&spawn);
}

static void release_reaps_what_it_kills(void **state)
{
	unsigned reaped = 0;

	(void)state;
	/* it waits for 20 ms only, which can be too short on a busy machine */
	for (int i = 0; i < 20 && !reaped; i++) {
		struct spawn spawn = SPAWN_INIT;
		pid_t pid;

		start_shell("exec sleep 60", &spawn);
		pid = spawn.pid;
		spawn_release(&spawn);
		assert_int_equal(spawn.pid, 0);
		reaped += waitpid(pid, NULL, 0) < 0 && errno == ECHILD;
	}
	assert_int_equal(reaped, 1);
}

static void the_child_has_no_descriptor_of_ours(void **state)
{
	struct scratch *s = *state;
	struct spawn spawn = SPAWN_INIT;
	/* as if inherited: not close-on-exec */
	autofd int inherited = openat(s->dirfd, "inherited", O_CREAT | O_RDWR, 0600);

	assert_true(inherited > 3);
	start_shell("ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0", &spawn);
	assert_true(finish(&spawn));
	/* 3 is that of ls, for the directory it reads */
	assert_output(&spawn.out, "0 1 2 3 /dev/null\n");
	spawn_release(&spawn);
}

static void the_child_has_default_signals_and_a_group_of_its_own(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	struct spawn spawn = SPAWN_INIT;
	sigset_t usr1, mask;
	bool has_ended;

	(void)state;
	(void)sigemptyset(&usr1);
	(void)sigaddset(&usr1, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_BLOCK, &usr1, &mask), 0);
	assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
	/* 32 and 33 are libc's own: it neither shows nor changes them */
	start_shell("sed -n 's/00000001800/00000000000/; /Sig[BI][lg][kn]/p' "
		    "/proc/self/status; "
		    "read -r _ _ _ _ group _ </proc/self/stat; test \"$group\" = $$",
		&spawn);
	has_ended = finish(&spawn);
	assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, &mask, NULL), 0);
	assert_true(has_ended);
	assert_output(
		&spawn.out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	assert_int_equal(spawn.exit_code, 0);
	spawn_release(&spawn);
}

static void low_limits_of_the_parent_do_not_bind_the_child(void **state)
{
	static const unsigned resources[] = { RLIMIT_AS, RLIMIT_CPU, RLIMIT_DATA,
		RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_STACK };
	bool is_unlimited = true;
	struct rlimit before[ARRAY_SIZE(resources)];
	struct spawn spawn = SPAWN_INIT;
	mode_t mask = umask(0777);
	bool has_ended;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		struct rlimit low = { .rlim_cur = 256 << 20 };

		assert_int_equal(prlimit(0, resources[i], NULL, &before[i]), 0);
		low.rlim_max = before[i].rlim_max;
		if (resources[i] == RLIMIT_NOFILE)
			low.rlim_cur = 20;
		else if (resources[i] == RLIMIT_STACK)
			low.rlim_cur = 1 << 20;
		else if (before[i].rlim_max != RLIM_INFINITY)
			is_unlimited = false;
		assert_int_equal(prlimit(0, resources[i], &low, NULL), 0);
	}
	start_shell(
		"ulimit -v; ulimit -t; ulimit -d; ulimit -f; test $(ulimit -n) -ge 1024 && "
		"test $(ulimit -s) -ge 8192 && echo enough; umask; pwd",
		&spawn);
	for (size_t i = 0; i < ARRAY_SIZE(resources); i++)
		(void)prlimit(0, resources[i], &before[i], NULL);
	(void)umask(mask);
	has_ended = finish(&spawn);
	assert_true(has_ended);
	if (is_unlimited)
		assert_output(&spawn.out,
			"unlimited\nunlimited\nunlimited\nunlimited\nenough\n0022\n/\n");
	assert_int_equal(spawn.exit_code, 0);
	spawn_release(&spawn);
}

static void started_without_standard_descriptors_it_works_the_same(void **state)
{
	char report = 0;
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) { /* no assert here: it reports by the pipe */
		struct spawn spawn = SPAWN_INIT;

		for (int fd = 0; fd <= 2; fd++)
			(void)close(fd);
		report = try_shell("echo out; echo err >&2", &spawn) == 0 &&
					 finish(&spawn) && spawn.out.used == 4 &&
					 memcmp(spawn.out.text, "out\n", 4) == 0 &&
					 spawn.err.used == 4 &&
					 memcmp(spawn.err.text, "err\n", 4) == 0
				 ? 'y'
				 : 'n';
		(void)!write(fds[1], &report, 1);
		_exit(0);
	}
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &report, 1), 1);
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(report, 'y');
}

static void no_descriptor_is_left_open(void **state)
{
	int first = open("/dev/null", O_RDONLY | O_CLOEXEC), second;
	struct spawn spawn = SPAWN_INIT;

	(void)state;
	(void)close(first);
	start_shell("exit 0", &spawn);
	assert_true(finish(&spawn));
	spawn_release(&spawn);
	start_shell("sleep 60", &spawn);
	spawn_abandon(&spawn);
	assert_true(vanish(&spawn));
	spawn_release(&spawn);
	second = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)close(second);
	assert_int_equal(first, second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_outputs_and_the_exit_status_come_back),
		cmocka_unit_test(without_a_pidfd_the_exit_is_noticed),
		cmocka_unit_test(a_process_left_behind_with_the_pipe_is_not_waited_for),
		cmocka_unit_test(the_error_of_a_failed_exec_is_reported),
		cmocka_unit_test(output_beyond_the_limit_is_drained_and_discarded),
		cmocka_unit_test(output_of_exactly_the_limit_is_whole),
		cmocka_unit_test(the_signal_that_kills_the_child_is_reported),
		cmocka_unit_test(an_ignored_sigchld_only_hides_the_status),
		cmocka_unit_test(a_stop_is_reported_while_it_lasts_and_afterwards),
		cmocka_unit_test(a_continuation_without_a_stop_is_not_a_stop),
		cmocka_unit_test(an_abandoned_child_is_killed_with_its_group),
		cmocka_unit_test(release_reaps_what_it_kills),
		SCRATCH_TEST(the_child_has_no_descriptor_of_ours),
		cmocka_unit_test(the_child_has_default_signals_and_a_group_of_its_own),
		cmocka_unit_test(low_limits_of_the_parent_do_not_bind_the_child),
		cmocka_unit_test(started_without_standard_descriptors_it_works_the_same),
		cmocka_unit_test(no_descriptor_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

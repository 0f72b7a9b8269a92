#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "batch_load.h"
#include "batch_log.h"
#include "fdio.h"
#include "scratch.h"

static struct why why;
static char folder[96];

static void open_in(const struct scratch *s, struct batch_journal *journal)
{
	int r;

	(void)snprintf(folder, sizeof(folder), "%s/f", s->path);
	r = batch_journal_open(folder, journal, &why);
	if (r < 0)
		fail_msg("%s", why.text);
}

static const char *content(const struct scratch *s, const char *name)
{
	static char text[8192];

	assert_int_equal(fdio_read_text(s->dirfd, name, text, sizeof(text)), 0);
	return text;
}

static void append(const struct batch_journal *journal, const char *lines)
{
	assert_int_equal(
		batch_journal_append_lines(journal->fd, lines, strlen(lines)), 0);
}

struct loaded {
	struct batch_jobs jobs;
	uint64_t *list;
	size_t count, skipped;
};

static struct loaded load(struct batch_journal *journal)
{
	struct loaded loaded = { .jobs = BATCH_JOBS_NONE };
	int r = batch_journal_load(journal, &loaded.jobs, &loaded.list, &loaded.count,
		&loaded.skipped, &why);

	if (r < 0)
		fail_msg("%s", why.text);
	return loaded;
}

static void release(struct loaded *loaded)
{
	batch_jobs_release(&loaded->jobs);
	free(loaded->list);
}

static unsigned mode_of(const struct scratch *s, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(s->dirfd, name, &st, 0), 0);
	return st.st_mode & 07777;
}

static void new_files_are_for_the_user_alone(void **state)
{
	struct batch_journal journal;
	mode_t mask = umask(0);

	open_in(*state, &journal);
	(void)umask(mask);
	assert_int_equal(mode_of(*state, "f"), 0700);
	assert_int_equal(mode_of(*state, "f/journal.jsonl"), 0600);
	assert_int_equal(mode_of(*state, "f/lock"), 0600);
	assert_int_equal(fcntl(journal.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(journal.lock_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	batch_journal_release(&journal);
	batch_journal_release(&journal);
}

static void appended_events_are_read(void **state)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_SEEN, 1);
	struct batch_journal journal;
	struct loaded loaded;

	open_in(*state, &journal);
	loaded = load(&journal);
	assert_int_equal(loaded.jobs.count, 0);
	assert_null(loaded.list);
	release(&loaded);
	text_copy(event.command, sizeof(event.command), "true");
	assert_int_equal(batch_journal_append(journal.fd, &event), 0);
	append(&journal, "{\"event\": \"seen\", \"job\": 2}\n"
			 "{\"event\": \"seen\", \"job\": 3}\n"
			 "{\"event\": \"list\", \"jobs\": \"1-3\"}\n"
			 "{\"event\": \"list\", \"jobs\": \"3,1\"}\n"
			 "{\"event\": \"of a later version\"}\n"
			 "{\"event\": \"started\", \"job\": 3}\n"
			 "{\"event\": \"ended\", \"job\": 1, \"status\": 7}\n");
	batch_journal_release(&journal);
	open_in(*state, &journal);
	loaded = load(&journal);
	assert_int_equal(loaded.skipped, 0);
	assert_int_equal(loaded.jobs.count, 3);
	assert_string_equal(loaded.jobs.all[0].command, "true");
	assert_int_equal(loaded.jobs.all[0].state, BATCH_ENDED);
	assert_true(loaded.jobs.all[0].is_from_earlier);
	assert_true(loaded.jobs.all[0].is_in_list);
	assert_false(loaded.jobs.all[1].is_in_list);
	assert_int_equal(loaded.jobs.all[2].state, BATCH_RUNNING);
	assert_false(loaded.jobs.all[2].is_from_earlier);
	assert_int_equal(loaded.count, 2);
	assert_int_equal(loaded.list[0], 3);
	assert_int_equal(loaded.list[1], 1);
	release(&loaded);
	batch_journal_release(&journal);
}

static void an_empty_list_is_a_list(void **state)
{
	struct batch_journal journal;
	struct loaded loaded;

	open_in(*state, &journal);
	append(&journal, "{\"event\": \"seen\", \"job\": 1}\n"
			 "{\"event\": \"list\", \"jobs\": \"1\"}\n"
			 "{\"event\": \"list\"}\n");
	loaded = load(&journal);
	assert_non_null(loaded.list);
	assert_int_equal(loaded.count, 0);
	assert_false(loaded.jobs.all[0].is_in_list);
	release(&loaded);
	batch_journal_release(&journal);
}

static void an_incomplete_line_is_skipped_and_followed_by_a_newline(void **state)
{
	struct batch_journal journal;
	struct loaded loaded;

	open_in(*state, &journal);
	append(&journal, "{\"event\": \"seen\", \"job\": 1}\n");
	assert_int_equal(write(journal.fd, "{\"event\": \"see", 14), 14);
	loaded = load(&journal);
	assert_int_equal(loaded.jobs.count, 1);
	assert_int_equal(loaded.skipped, 1);
	release(&loaded);
	append(&journal, "{\"event\": \"seen\", \"job\": 2}\n");
	assert_string_equal(content(*state, "f/journal.jsonl"),
		"{\"event\": \"seen\", \"job\": 1}\n"
		"{\"event\": \"see\n"
		"{\"event\": \"seen\", \"job\": 2}\n");
	loaded = load(&journal);
	assert_int_equal(loaded.jobs.count, 2);
	assert_int_equal(loaded.skipped, 1);
	release(&loaded);
	batch_journal_release(&journal);
}

static void impossible_events_are_skipped_and_counted(void **state)
{
	struct batch_journal journal;
	struct loaded loaded;

	open_in(*state, &journal);
	append(&journal, "{\"event\": \"seen\", \"job\": 1}\n"
			 "\n"
			 "{\"event\": \"seen\", \"job\": 1}\n"
			 "{\"event\": \"seen\", \"job\": 900000000}\n"
			 "{\"event\": \"started\", \"job\": 5}\n"
			 "{\"event\": \"list\", \"jobs\": \"1\"}\n"
			 "{\"event\": \"list\", \"jobs\": \"1,\"}\n"
			 "nonsense\n"
			 "{\"event\": \"seen\", \"job\": 2}\n");
	loaded = load(&journal);
	assert_int_equal(loaded.jobs.count, 2);
	assert_int_equal(loaded.skipped, 5);
	assert_int_equal(loaded.count, 1);
	release(&loaded);
	batch_journal_release(&journal);
}

/* Otherwise running jobs would be started a second time. */
static void a_damaged_line_does_not_spoil_later_ones(void **state)
{
	struct batch_journal journal;
	struct loaded loaded;

	open_in(*state, &journal);
	append(&journal, "{\"event\": \"seen\", \"job\": 1}\n"
			 "{\"ev@nt\": \"seen\", \"job\": 2}\n"
			 "{\"event\": \"seen\", \"job\": 3, \"key\": \"07\"}\n"
			 "{\"event\": \"started\", \"job\": 3}\n"
			 "{\"event\": \"list\", \"jobs\": \"1-3\"}\n");
	loaded = load(&journal);
	assert_int_equal(loaded.skipped, 1);
	assert_int_equal(loaded.jobs.count, 3);
	assert_int_equal(loaded.jobs.all[2].key, 7);
	assert_int_equal(loaded.jobs.all[2].state, BATCH_RUNNING);
	assert_int_equal(loaded.jobs.all[1].state, BATCH_NEW);
	assert_string_equal(loaded.jobs.all[1].command, "");
	release(&loaded);
	batch_journal_release(&journal);
}

static void long_lists_are_read_and_longer_lines_skipped(void **state)
{
	enum { JOBS = 60000, LINE = 3 * 1024 * 1024 };
	static const char note[] = "{\"event\": \"note\"}\n";
	autofree char *line = malloc(LINE);
	struct batch_journal journal;
	struct batch_event event = BATCH_EVENT_OF(BATCH_LISTED, 0);
	struct loaded loaded;
	struct text text;
	uint64_t range[2] = { 0 };

	assert_non_null(line);
	open_in(*state, &journal);
	/* the end of a line is not a line, even if it looks like one */
	memset(line, ' ', LINE);
	line[0] = 'x';
	memcpy(line + LINE - strlen(note), note, strlen(note));
	assert_int_equal(batch_journal_append_lines(journal.fd, line, LINE), 0);
	text = text_on(line, LINE);
	for (uint64_t i = 1; i <= JOBS; i++) {
		event = BATCH_EVENT_OF(BATCH_SEEN, i);
		batch_event_write(&event, &text);
	}
	assert_false(text.cut);
	assert_int_equal(batch_journal_append_lines(journal.fd, line, text.used), 0);
	event = BATCH_EVENT_OF(BATCH_LISTED, 0);
	text = text_on(line, LINE);
	for (uint64_t i = JOBS; i > 0; i--)
		batch_add_number(i, i == 1, range, &text);
	event.jobs = line;
	event.jobs_size = text.used;
	assert_int_equal(batch_journal_append(journal.fd, &event), 0);
	loaded = load(&journal);
	assert_int_equal(loaded.skipped, 1);
	assert_int_equal(loaded.jobs.count, JOBS);
	assert_int_equal(loaded.count, JOBS);
	assert_int_equal(loaded.list[0], JOBS);
	assert_int_equal(loaded.list[JOBS - 1], 1);
	release(&loaded);
	batch_journal_release(&journal);
}

static void a_journal_that_is_too_large_is_refused(void **state)
{
	struct batch_journal journal;
	struct batch_jobs jobs = BATCH_JOBS_NONE;
	uint64_t *list;
	size_t count, skipped;

	open_in(*state, &journal);
	assert_int_equal(ftruncate(journal.fd, (off_t)257 << 20), 0);
	assert_int_equal(
		batch_journal_load(&journal, &jobs, &list, &count, &skipped, &why),
		-EFBIG);
	assert_non_null(strstr(why.text, "--fresh"));
	batch_journal_release(&journal);
}

static unsigned heard;

static void hear(void *arg, const struct batch_event *event)
{
	assert_ptr_equal(arg, &heard);
	assert_int_equal(event->job, ++heard);
}

/* What other processes append after what was read; each line comes once. */
static void reading_goes_on_where_it_stopped(void **state)
{
	static const struct {
		const char *lines;
		unsigned heard; /* events after it */
	} cases[] = {
		{ "", 2 },
		{ "{\"event\": \"started\", \"job\": 3}\nno line\n"
		  "{\"event\": \"ended\", \"job\": 4}\n",
			4 },
		{ "{\"event\": \"ended\", \"job\": 5}\n{\"event\": \"sta", 5 },
		{ "rted\", \"job\": 6}\n", 6 },
		{ "", 6 },
	};
	struct batch_journal journal;
	struct loaded loaded;

	open_in(*state, &journal);
	append(&journal, "{\"event\": \"seen\", \"job\": 1}\n");
	assert_int_equal(write(journal.fd, "{\"event\": \"seen\",", 17), 17);
	loaded = load(&journal);
	assert_int_equal(loaded.skipped, 1);
	release(&loaded);
	assert_int_equal(write(journal.fd, " \"job\": 2}\n", 11), 11);
	heard = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t size = strlen(cases[i].lines);

		assert_int_equal(write(journal.fd, cases[i].lines, size), size);
		assert_int_equal(batch_journal_read_on(&journal, hear, &heard), 0);
		assert_int_equal(heard, cases[i].heard);
	}
	assert_int_equal(batch_journal_renew(&journal, &why), 0);
	append(&journal, "{\"event\": \"note\", \"job\": 7}\n");
	assert_int_equal(batch_journal_read_on(&journal, hear, &heard), 0);
	assert_int_equal(heard, 7);
	batch_journal_release(&journal);
}

static void a_new_journal_is_begun_and_the_old_one_kept(void **state)
{
	struct batch_journal journal;
	struct loaded loaded;

	open_in(*state, &journal);
	append(&journal, "{\"event\": \"seen\", \"job\": 1}\n");
	assert_int_equal(batch_journal_renew(&journal, &why), 0);
	loaded = load(&journal);
	assert_int_equal(loaded.jobs.count, 0);
	release(&loaded);
	append(&journal, "{\"event\": \"note\"}\n");
	assert_string_equal(content(*state, "f/journal.jsonl~"),
		"{\"event\": \"seen\", \"job\": 1}\n");
	assert_string_equal(
		content(*state, "f/journal.jsonl"), "{\"event\": \"note\"}\n");
	batch_journal_release(&journal);
}

static void a_full_disk_is_reported(void **state)
{
	struct batch_journal journal;
	struct batch_event event = BATCH_EVENT_OF(BATCH_SEEN, 1);
	struct rlimit limit = { 9, RLIM_INFINITY }, before;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	int r;

	open_in(*state, &journal);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	r = batch_journal_append(journal.fd, &event);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(batch_journal_append(journal.fd, &event), 0);
	assert_string_equal(content(*state, "f/journal.jsonl"),
		"{\"event\":\n{\"event\": \"seen\", \"job\": 1}\n");
	(void)signal(SIGXFSZ, handler);
	batch_journal_release(&journal);
}

static void a_removed_journal_is_not_written_to(void **state)
{
	const struct scratch *s = *state;
	struct batch_journal journal;
	struct batch_event event = BATCH_EVENT_OF(BATCH_SEEN, 1);

	open_in(s, &journal);
	append(&journal, "{\"event\": \"note\"}\n");
	assert_int_equal(unlinkat(s->dirfd, "f/journal.jsonl", 0), 0);
	assert_int_equal(batch_journal_append(journal.fd, &event), -ENOENT);
	assert_int_equal(batch_journal_append_lines(journal.fd, "\n", 1), -ENOENT);
	batch_journal_release(&journal);
}

/* --- the lock ---------------------------------------------------------------------- */

static void a_second_runner_learns_which_process_holds_the_lock(void **state)
{
	struct batch_journal journal, other;
	char pid[32];

	open_in(*state, &journal);
	(void)snprintf(pid, sizeof(pid), "(pid %d, since ", (int)getpid());
	assert_int_equal(batch_journal_open(folder, &other, &why), -EBUSY);
	assert_non_null(strstr(why.text, pid));
	assert_non_null(strstr(why.text, folder));
	batch_journal_release(&journal);
	open_in(*state, &journal);
	batch_journal_release(&journal);
}

/* Waiting takes no time here: after so many waits the holder closes the lock. */
static int holder_fd;
static unsigned waits_to_release;
static int64_t now_ms;

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int64_t __wrap_clock_boot_ms(void);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	siginfo_t info;

	(void)fds;
	assert_int_equal(count, 0);
	now_ms += timeout_ms;
	if (waits_to_release && --waits_to_release == 0) {
		(void)close(holder_fd);
		assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
	}
	return 0;
}

int64_t __wrap_clock_boot_ms(void)
{
	return now_ms;
}

/* A child that closes the inherited lock when the pipe says so. */
static pid_t start_holder(const struct batch_journal *journal, int *ret_release)
{
	int pipe_fds[2];
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char byte;

		(void)close(pipe_fds[1]);
		(void)close(journal->folder_fd);
		(void)!read(pipe_fds[0], &byte, 1);
		_exit(0);
	}
	(void)close(pipe_fds[0]);
	*ret_release = pipe_fds[1];
	return pid;
}

/* The pid of a process that has ended. */
static pid_t dead_pid(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void jobs_of_a_killed_runner_are_waited_for(void **state)
{
	struct scratch *s = *state;
	struct batch_journal journal, other;
	char text[64];
	int64_t begun_ms = now_ms;
	pid_t pid;

	open_in(s, &journal);
	pid = start_holder(&journal, &holder_fd);
	(void)snprintf(text, sizeof(text), "%d 1763770000000\n", (int)dead_pid());
	assert_int_equal(scratch_write(s, "f/lock", text), 0);
	batch_journal_release(&journal);
	waits_to_release = UINT_MAX;
	assert_int_equal(batch_journal_open(folder, &other, &why), -EBUSY);
	assert_non_null(strstr(why.text, "killed"));
	assert_int_equal(now_ms - begun_ms, 5000);
	waits_to_release = 3;
	open_in(s, &other);
	assert_int_equal(waits_to_release, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)snprintf(text, sizeof(text), "%d ", (int)getpid());
	assert_int_equal(strncmp(content(s, "f/lock"), text, strlen(text)), 0);
	batch_journal_release(&other);
}

/* A killed runner that was not reaped yet (a zombie) does no work. */
static void a_zombie_in_the_lock_file_is_not_believed(void **state)
{
	struct scratch *s = *state;
	struct batch_journal journal, other;
	siginfo_t info;
	char text[64];
	pid_t holder, zombie;

	open_in(s, &journal);
	holder = start_holder(&journal, &holder_fd);
	zombie = fork();
	assert_true(zombie >= 0);
	if (zombie == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
	(void)snprintf(text, sizeof(text), "%d 1763770000000\n", (int)zombie);
	assert_int_equal(scratch_write(s, "f/lock", text), 0);
	batch_journal_release(&journal);
	waits_to_release = UINT_MAX;
	assert_int_equal(batch_journal_open(folder, &other, &why), -EBUSY);
	assert_non_null(strstr(why.text, "killed"));
	(void)close(holder_fd);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	assert_int_equal(waitpid(zombie, NULL, 0), zombie);
}

static void the_lock_is_taken_with_any_text_in_its_file(void **state)
{
	static const char *const texts[] = {
		"", "x", "1", "1 2", "-1 5\n", "0 0\n", "99999999999999999999 1\n",
		"something that is longer than any text a runner has ever written there"
	};
	struct scratch *s = *state;
	struct batch_journal journal;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		open_in(s, &journal);
		batch_journal_release(&journal);
		assert_int_equal(scratch_write(s, "f/lock", texts[i]), 0);
		open_in(s, &journal);
		assert_true(strlen(content(s, "f/lock")) < 40);
		batch_journal_release(&journal);
	}
}

static void only_regular_files_are_opened(void **state)
{
	static const char *const names[] = { "f/lock", "f/journal.jsonl" };
	struct scratch *s = *state;
	struct batch_journal journal = BATCH_JOURNAL_NONE;

	open_in(s, &journal);
	batch_journal_release(&journal);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(unlinkat(s->dirfd, names[i], 0), 0);
		assert_int_equal(symlinkat("elsewhere", s->dirfd, names[i]), 0);
		assert_int_equal(batch_journal_open(folder, &journal, &why), -ELOOP);
		assert_non_null(strstr(why.text, names[i]));
		assert_int_equal(unlinkat(s->dirfd, names[i], 0), 0);
		assert_int_equal(mkfifoat(s->dirfd, names[i], 0600), 0);
		assert_int_equal(batch_journal_open(folder, &journal, &why), -EINVAL);
		assert_int_equal(unlinkat(s->dirfd, names[i], 0), 0);
	}
	assert_int_equal(scratch_write(s, "file", ""), 0);
	(void)snprintf(folder, sizeof(folder), "%s/file", s->path);
	assert_int_equal(batch_journal_open(folder, &journal, &why), -ENOTDIR);
	(void)snprintf(folder, sizeof(folder), "%s/none/f", s->path);
	assert_int_equal(batch_journal_open(folder, &journal, &why), -ENOENT);
	assert_non_null(strstr(why.text, folder));
	assert_int_equal(journal.fd, -1);
}

/* --- logs -------------------------------------------------------------------------- */

static void logs_are_named_after_what_runs(void **state)
{
	static const struct {
		const char *name, *command, *wanted;
	} cases[] = {
		{ "big one/2", "true", "7-big_one_2.log" },
		{ "", "true", "7-true.log" },
		{ NULL, "/usr/bin/true --x", "7-true.log" },
		{ "", "python train.py", "7-train.py.log" },
		{ "", "python3.11 -u -m pkg.mod --lr 1", "7-pkg.mod.log" },
		{ "", "CUDA=1 X=2 /opt/bin/python3 ./a/train.py x", "7-train.py.log" },
		{ "", "env A=1 bash -c 'python run.py'", "7-run.py.log" },
		{ "", "torchrun --nproc_per_node 2 train.py", "7-train.py.log" },
		{ "", "accelerate launch t.py", "7-t.py.log" },
		{ "", "python", "7-python.log" },
		{ "", "python -c", "7-python.log" },
		{ "", "", "7-job.log" },
		{ "", "''", "7-job.log" },
		{ "", "  \"my prog\" x", "7-my.log" },
		{ "", "../..", "7-...log" },
		{ "", "/", "7-job.log" },
		{ "\xc3\xa4\n..", "true", "7-___...log" },
		{ "", "0123456789012345678901234567890123456789x",
			"7-0123456789012345678901234567890123456789.log" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char name[128];
		struct text text = TEXT_ON(name);

		batch_log_name(7, cases[i].name, cases[i].command, &text);
		assert_string_equal(name, cases[i].wanted);
	}
}

static void a_log_is_begun_and_continued(void **state)
{
	struct scratch *s = *state;
	struct batch_journal journal;
	char path[PATH_MAX], wanted[128];
	int fd;

	open_in(s, &journal);
	(void)snprintf(wanted, sizeof(wanted), "%s/1-n.log", folder);
	fd = batch_log_open(&journal, 1, "n", "true", false, path);
	assert_true(fd >= 0);
	assert_string_equal(path, wanted);
	assert_int_equal(write(fd, "a\n", 2), 2);
	assert_int_equal(close(fd), 0);
	fd = batch_log_open(&journal, 1, "n", "true", false, path);
	assert_int_equal(write(fd, "b\n", 2), 2);
	assert_int_equal(close(fd), 0);
	assert_string_equal(content(s, "f/1-n.log"), "a\nb\n");
	assert_int_equal(mode_of(s, "f/1-n.log"), 0600);
	fd = batch_log_open(&journal, 1, "n", "true", true, path);
	assert_int_equal(write(fd, "c\n", 2), 2);
	assert_int_equal(close(fd), 0);
	assert_string_equal(content(s, "f/1-n.log"), "c\n");
	assert_string_equal(content(s, "f/1-n.log~"), "a\nb\n");
	batch_journal_release(&journal);
}

static void a_log_is_never_a_link(void **state)
{
	struct scratch *s = *state;
	struct batch_journal journal;
	char path[PATH_MAX];

	open_in(s, &journal);
	assert_int_equal(symlinkat("elsewhere", journal.folder_fd, "1-n.log"), 0);
	assert_int_equal(batch_log_open(&journal, 1, "n", "true", false, path), -ELOOP);
	batch_journal_release(&journal);
}

static void a_log_of_another_user_is_not_written_to(void **state)
{
	struct scratch *s = *state;
	struct batch_journal journal;
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (geteuid() != 0)
		skip_because("needs root");
	open_in(s, &journal);
	fd = batch_log_open(&journal, 1, "n", "true", true, path);
	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, 61184, (gid_t)-1), 0);
	assert_int_equal(close(fd), 0);
	/* even if it is empty */
	assert_int_equal(batch_log_open(&journal, 1, "n", "true", false, path), -EPERM);
	fd = batch_log_open(&journal, 1, "n", "true", true, path);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(close(fd), 0);
	batch_journal_release(&journal);
}

static void a_file_of_the_folder_is_replaced_at_once(void **state)
{
	struct scratch *s = *state;
	struct batch_journal journal;

	open_in(s, &journal);
	assert_int_equal(batch_folder_write(&journal, "status.txt", "one\n", 4), 0);
	/* as a killed runner leaves it */
	assert_int_equal(scratch_write(s, "f/status.txt.new", "rest"), 0);
	assert_int_equal(batch_folder_write(&journal, "status.txt", "2\n", 2), 0);
	assert_string_equal(content(s, "f/status.txt"), "2\n");
	assert_int_equal(faccessat(s->dirfd, "f/status.txt.new", F_OK, 0), -1);
	batch_journal_release(&journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(new_files_are_for_the_user_alone),
		SCRATCH_TEST(appended_events_are_read),
		SCRATCH_TEST(an_empty_list_is_a_list),
		SCRATCH_TEST(an_incomplete_line_is_skipped_and_followed_by_a_newline),
		SCRATCH_TEST(impossible_events_are_skipped_and_counted),
		SCRATCH_TEST(a_damaged_line_does_not_spoil_later_ones),
		SCRATCH_TEST(long_lists_are_read_and_longer_lines_skipped),
		SCRATCH_TEST(a_journal_that_is_too_large_is_refused),
		SCRATCH_TEST(reading_goes_on_where_it_stopped),
		SCRATCH_TEST(a_new_journal_is_begun_and_the_old_one_kept),
		SCRATCH_TEST(a_full_disk_is_reported),
		SCRATCH_TEST(a_removed_journal_is_not_written_to),
		SCRATCH_TEST(a_second_runner_learns_which_process_holds_the_lock),
		SCRATCH_TEST(jobs_of_a_killed_runner_are_waited_for),
		SCRATCH_TEST(a_zombie_in_the_lock_file_is_not_believed),
		SCRATCH_TEST(the_lock_is_taken_with_any_text_in_its_file),
		SCRATCH_TEST(only_regular_files_are_opened),
		cmocka_unit_test(logs_are_named_after_what_runs),
		SCRATCH_TEST(a_log_is_begun_and_continued),
		SCRATCH_TEST(a_log_is_never_a_link),
		SCRATCH_TEST(a_log_of_another_user_is_not_written_to),
		SCRATCH_TEST(a_file_of_the_folder_is_replaced_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

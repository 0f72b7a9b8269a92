/*
 * The cost of a look for processes that a job has left (leftover.h), which each start takes on a
 * GPU that was just released: with 700 more processes on the machine, of which the job's user has
 * 500, by a process of that user and by one of another user.
 */
#ifndef GPULEASE_TESTS_BENCH_LEFT_H
#define GPULEASE_TESTS_BENCH_LEFT_H

#include "leftover.h"
#include "measure.h"

enum { LEFT_ALL = 700, LEFT_OF_JOB = 500, LEFT_USER = 61184, LEFT_OTHER = 61185 };

/* Fills @pids with idle processes; returns when all run as their users. */
static inline void left_fill(pid_t pids[LEFT_ALL], uid_t user)
{
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		return;
	for (unsigned i = 0; i < LEFT_ALL; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			if (geteuid() == 0)
				(void)!setuid(i < LEFT_OF_JOB ? user : LEFT_OTHER);
			(void)close(ends[0]);
			(void)close(ends[1]);
			for (;;)
				(void)pause();
		}
	}
	(void)close(ends[1]);
	(void)!read(ends[0], &byte, 1);
	(void)close(ends[0]);
}

/* Measures looks of user @uid for processes of a job of user @user, which has left none. */
static inline void left_measure(
	uid_t uid, uid_t user, unsigned rounds, struct samples *out)
{
	struct owner owner = { .pid = (uint32_t)getpid(), .token = "0123456789abcdef" };
	int ends[2];
	pid_t pid;

	if (owner_self(&owner) < 0 || pipe(ends) < 0)
		return;
	owner.uid = (uint32_t)user;
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && setuid(uid) < 0)
			_exit(1);
		for (unsigned i = 0; i < rounds; i++) {
			struct leftover_search search = LEFTOVER_OF(&owner);
			int64_t begun_ns = now_ns(), ns;

			if (leftover_find(&search, 1, owner.pidns) < 0)
				_exit(1);
			ns = now_ns() - begun_ns;
			(void)!write(ends[1], &ns, sizeof(ns));
		}
		_exit(0);
	}
	(void)close(ends[1]);
	for (int64_t ns; read(ends[0], &ns, sizeof(ns)) == sizeof(ns);)
		sample_add(out, ns);
	(void)close(ends[0]);
	(void)waitpid(pid, NULL, 0);
}

static inline void left_row(const char *figure, const char *target, double most_ms,
	uid_t uid, uid_t user, unsigned rounds)
{
	static pid_t pids[LEFT_ALL];
	struct samples before = { .count = 0 }, with = { .count = 0 };
	double cost_ms;

	left_measure(uid, user, rounds, &before);
	left_fill(pids, user);
	left_measure(uid, user, rounds, &with);
	for (unsigned i = 0; i < LEFT_ALL; i++)
		if (pids[i] > 0) {
			(void)kill(pids[i], SIGKILL);
			(void)waitpid(pids[i], NULL, 0);
		}
	cost_ms = sample_median(&with) - sample_median(&before);
	table_row(figure, target, cost_ms, "ms", 0,
		cost_ms <= most_ms ? VERDICT_MET : VERDICT_MISSED);
	table_detail("with 700 more processes", &with);
	table_detail("without", &before);
}

static inline void left_rows(unsigned rounds)
{
	uid_t user = geteuid() == 0 ? LEFT_USER : getuid();

	left_row("GPU just released, 700 processes, 500 own", "<= 1 ms more", 1, user,
		user, rounds);
	if (geteuid() == 0)
		left_row("  the same, 500 of another user's", "<= 4 ms more", 4,
			LEFT_OTHER, user, rounds);
	else
		table_skipped("  the same, 500 of another user's", "needs root");
}

#endif

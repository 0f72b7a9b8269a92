/*
 * The figures of what killed jobs leave, for bench.c, which includes this file after the
 * functions that it uses: a start behind many dead tickets, and the removal of a backlog.
 */
#ifndef GPULEASE_TESTS_BENCH_DEAD_H
#define GPULEASE_TESTS_BENCH_DEAD_H

#include "fifo.h"
#include "queue_sweep.h"

enum { DEAD_TICKETS = 100000, DEAD_CLONES = 1000000, DEAD_WORKERS = 5 };

static struct {
	pid_t holder, waiter;
	struct statedir dir;
	struct queue queue;
} dead_scene;

/* Joins as a job does, and ends: leaves the ticket and two FIFOs of a dead process. */
static void __attribute__((noreturn)) dead_join(void)
{
	struct ticket ticket = { .state = TICKET_WAITING, .request = { .gpus = 1 } };
	struct statedir *dir = &dead_scene.dir;
	uint64_t number_of;

	if (owner_self(&ticket.owner) < 0)
		_exit(1);
	text_copy(ticket.boot, sizeof(ticket.boot), dir->boot);
	if (fifo_create(dir, FIFO_LIVE, &ticket.owner) < 0 ||
		fifo_create(dir, FIFO_BELL, &ticket.owner) < 0)
		_exit(1);
	queue_sweep(&dead_scene.queue);
	_exit(ticket_append(&dead_scene.queue.file, &ticket, &number_of) < 0);
}

static bool dead_succeeds(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Does that @count times; exits with 1 if a ticket cannot be taken. */
static void __attribute__((noreturn)) dead_kill_some(unsigned count)
{
	while (count--) {
		pid_t pid = fork();

		if (pid == 0)
			dead_join();
		if (!dead_succeeds(pid))
			_exit(1);
	}
	_exit(0);
}

static void dead_kill_many(unsigned count)
{
	pid_t workers[DEAD_WORKERS];

	for (unsigned i = 0; i < DEAD_WORKERS; i++) {
		workers[i] = fork();
		if (workers[i] == 0)
			dead_kill_some(count / DEAD_WORKERS);
	}
	for (unsigned i = 0; i < DEAD_WORKERS; i++)
		if (!dead_succeeds(workers[i]))
			die("a ticket cannot be taken");
}

/* GPU 0 is leased for long, and a ticket waits for it. */
static const char *dead_begin(void)
{
	const char *const hold[] = { tool_gpulease(), "-Q", "--gpu-ids", "0", "--",
		"sleep", "100000", NULL };
	const char *const wait_for[] = { tool_gpulease(), "-Q", "--gpu-ids", "0", "--",
		"true", NULL };
	struct statedir_choice choice = { .system_path = "/proc/nonexistent" };
	struct why why = WHY_NONE;
	const char *state = fresh_state("8");

	dead_scene.holder = tool_spawn(hold, -1, -1, -1);
	settle(&dead_scene.holder, 1);
	dead_scene.waiter = tool_spawn(wait_for, -1, -1, -1);
	settle(&dead_scene.waiter, 1);
	choice.explicit_path = state;
	dead_scene.dir = STATEDIR_NONE;
	if (statedir_open(&choice, &dead_scene.dir, &why) < 0 ||
		queue_open(&dead_scene.queue, &dead_scene.dir) < 0)
		die("cannot open '%s': %s", state, why.text);
	return state;
}

static void dead_end(void)
{
	queue_release(&dead_scene.queue);
	statedir_release(&dead_scene.dir);
	tool_kill(&dead_scene.waiter);
	tool_kill(&dead_scene.holder);
}

static void dead_starts(struct samples *samples, unsigned count)
{
	const char *const argv[] = { tool_gpulease(), "-Qn1", "--", "true", NULL };

	while (count--)
		sample_add(samples, measure_process(argv));
}

static void dead_compare(const char *figure, struct samples *few, struct samples *many)
{
	double ratio = sample_median(many) / sample_median(few);

	table_row(figure, "at most 2 x", sample_median(many), "ms", sample_median(few),
		ratio <= 2 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("after ten", few);
	table_detail("after 100,000", many);
}

/* Real dead tickets behind a waiting one, and the first start when that one is dead, too. */
static void dead_rows_real(void)
{
	struct samples few = { .count = 0 }, many = { .count = 0 };
	struct samples first_few = { .count = 0 }, first_many = { .count = 0 };

	(void)dead_begin();
	dead_kill_many(10);
	dead_starts(&few, rounds);
	tool_kill(&dead_scene.waiter);
	dead_starts(&first_few, 1);
	dead_end();
	(void)dead_begin();
	dead_kill_many(DEAD_TICKETS);
	dead_starts(&many, rounds);
	tool_kill(&dead_scene.waiter);
	dead_starts(&first_many, 1);
	dead_end();
	dead_compare(
		"a start behind 100,000 dead tickets and a waiting one", &few, &many);
	dead_compare("the first client after all of them", &first_few, &first_many);
}

/* The size of the ticket file on disk, in records. */
static int64_t dead_data(void)
{
	struct stat st;

	return fstat(dead_scene.queue.file.fd, &st) < 0 ? 0 : st.st_blocks * 512 / RECORD;
}

static void dead_row_clones(void)
{
	struct samples meanwhile = { .count = 0 };
	int64_t begun, limit_ns = 60 * NS_PER_S;
	const char *state = dead_begin();
	double seconds;

	dead_kill_many(DEAD_WORKERS);
	copy_last_ticket(state, DEAD_CLONES);
	begun = now_ns();
	do
		dead_starts(&meanwhile, 1);
	while (dead_data() > 16 * 64 && now_ns() - begun < 2 * limit_ns);
	seconds = (double)(now_ns() - begun) / NS_PER_S;
	dead_end();
	table_row("1,000,000 cloned tickets behind a waiting one: gone", "at most 60 s",
		seconds, "s", 0, seconds <= 60 ? VERDICT_MET : VERDICT_MISSED);
	table_detail("starts meanwhile", &meanwhile);
}

static void dead_rows(void)
{
	dead_rows_real();
	dead_row_clones();
}

#endif

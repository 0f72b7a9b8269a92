#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "clock.h"
#include "fixture.h"
#include "prober.h"

static struct probe probe, shared;

static void seen(struct probe *out, int64_t started_ms, int64_t finished_ms)
{
	probe_begin(out, started_ms, finished_ms);
	probe_simulate(1, 1000, started_ms, out);
	out->finished_ms = finished_ms;
}

static void a_result_that_is_no_longer_wanted_wakes_no_process(void **state)
{
	struct prober_config config = { .nvidia_smi = "/proc/nonexistent" };
	struct statedir dir = fixture_dir(*state);
	struct prober prober;
	bool has_probe = false;
	int other = -1;

	/* another process is probing, and will never finish */
	other = fixture_lock_probe(dir.fd, 0);
	assert_true(other >= 0);
	prober_init(&prober, &dir, &config);
	prober_want(&prober, 1000);
	assert_true(prober_is_busy(&prober));
	assert_true(prober_deadline_ms(&prober) > 1000);
	assert_true(prober_deadline_ms(&prober) < INT64_MAX);
	prober_step(&prober, 1001, &probe, &has_probe);
	assert_true(prober_is_busy(&prober)); /* not yet due */
	prober_step(&prober, prober_deadline_ms(&prober), &probe, &has_probe);
	assert_false(prober_is_busy(&prober));
	assert_true(prober_deadline_ms(&prober) == INT64_MAX);
	prober_want(&prober, 1100);
	assert_true(prober_is_busy(&prober)); /* because it was asked for again */
	close_fd(&other);
	prober_release(&prober);
	statedir_release(&dir);
}

static void a_reader_does_not_wait_long_for_other_processes(void **state)
{
	static const int64_t trust_ms[] = { 2000, 500 };
	struct statedir dir = fixture_dir(*state);
	autofd int other = -1;

	other = fixture_lock_probe(dir.fd, 0);
	assert_true(other >= 0);
	for (int is_hasty = 0; is_hasty <= 1; is_hasty++) {
		struct prober_config config = { .nvidia_smi = "/proc/nonexistent",
			.is_hasty = is_hasty };
		struct prober prober;

		prober_init(&prober, &dir, &config);
		prober_want(&prober, 1000);
		prober_want(&prober, 999 + trust_ms[is_hasty]);
		assert_false(prober.run.is_running);
		prober_want(&prober, 1000 + trust_ms[is_hasty]);
		assert_true(prober.run.is_running);
		prober_release(&prober);
	}
	statedir_release(&dir);
}

static void a_shared_result_serves_if_it_began_and_ended_lately(void **state)
{
	static const struct {
		int64_t started_ms, finished_ms;
		bool is_own, is_trusted, serves;
	} cases[] = { { 96000, 99000, false, true, true },
		{ 95999, 99500, false, false, false }, /* perhaps stopped meanwhile */
		{ 98000, 98999, false, true, false },
		{ 90000, 99000, true, true, true }, /* slow, but run by this process */
		{ 90000, 98999, true, true, false },
		{ 200000, 99999, false, false, false } };
	struct prober prober = { .run = PROBE_RUN_INIT };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		seen(&probe, cases[i].started_ms, cases[i].finished_ms);
		prober.own_started_ms = cases[i].is_own ? cases[i].started_ms : 1;
		prober.own_finished_ms = cases[i].is_own ? cases[i].finished_ms : 2;
		if (prober_trusts(&prober, &probe, 100000) != cases[i].is_trusted ||
			prober_serves(&prober, &probe, 100000) != cases[i].serves)
			fail_msg("case %zu", i);
	}
}

static void a_useless_result_neither_replaces_a_good_one_nor_prolongs_the_wait(
	void **state)
{
	struct prober_config config = { .nvidia_smi = "/proc/nonexistent" };
	struct statedir dir = fixture_dir(*state);
	int64_t now_ms = 100000, since_ms;
	struct prober prober;
	bool has_probe = false;
	autofd int other = -1;

	other = fixture_lock_probe(dir.fd, 0);
	assert_true(other >= 0);
	prober_init(&prober, &dir, &config);
	prober_want(&prober, now_ms);
	since_ms = prober.lock.busy_ms;
	assert_true(since_ms > 0);
	/* it is better than nothing … */
	seen(&shared, now_ms - 10000, now_ms);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms, &probe, &has_probe);
	assert_true(has_probe && probe.started_ms == now_ms - 10000);
	assert_true(prober.lock.busy_ms == since_ms);
	/* … but not better than its own result, although it is later */
	seen(&probe, now_ms - 11000, now_ms);
	prober.own_started_ms = probe.started_ms;
	prober.own_finished_ms = probe.finished_ms;
	seen(&shared, now_ms - 9000, now_ms);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms, &probe, &has_probe);
	assert_true(probe.started_ms == now_ms - 11000);
	/* a result that serves is used, and ends the wait */
	seen(&shared, now_ms - 1000, now_ms);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms, &probe, &has_probe);
	assert_true(probe.started_ms == now_ms - 1000);
	assert_true(prober.lock.busy_ms == 0);
	prober_release(&prober);
	statedir_release(&dir);
}

static void a_result_of_this_process_is_known_as_its_own(void **state)
{
	struct prober_config config = { .nvidia_smi = "/proc/nonexistent" };
	struct statedir dir = fixture_dir(*state);
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;
	struct prober prober;
	bool has_probe = false;

	prober_init(&prober, &dir, &config);
	prober_want(&prober, clock_boot_ms());
	while (!has_probe && clock_boot_ms() < until_ms) {
		(void)poll(NULL, 0, 1);
		prober_step(&prober, clock_boot_ms(), &probe, &has_probe);
	}
	assert_true(has_probe);
	assert_true(prober_serves(&prober, &probe, probe.finished_ms));
	probe.started_ms -= 10000;
	assert_false(prober_serves(&prober, &probe, probe.finished_ms));
	/* a failure is not shared */
	assert_int_equal(probe_load(&dir, &shared), PROBE_NONE);
	assert_string_equal(prober.own_trouble, "No such file or directory");
	prober_release(&prober);
	statedir_release(&dir);
}

static void finish_probe(struct prober *prober, bool *has_probe)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;

	while (prober->run.is_running && clock_boot_ms() < until_ms) {
		(void)poll(NULL, 0, 1);
		prober_step(prober, clock_boot_ms(), &probe, has_probe);
	}
	assert_false(prober->run.is_running);
}

static void after_a_refusal_shared_results_do_not_count(void **state)
{
	struct prober_config config = { .nvidia_smi = "/proc/nonexistent" };
	struct statedir dir = fixture_dir(*state);
	int64_t now_ms = clock_boot_ms();
	struct prober prober;
	bool has_probe = false;

	prober_init(&prober, &dir, &config);
	prober_want(&prober, now_ms);
	finish_probe(&prober, &has_probe);
	assert_true(prober.was_refused && !prober.others_see);
	now_ms = clock_boot_ms();
	seen(&shared, now_ms, now_ms);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms, &probe, &has_probe);
	assert_int_equal(probe.gpu_count, 0);
	assert_true(prober.others_see); /* a reason to ask again at once */
	prober_want(&prober, now_ms);
	assert_true(prober.run.is_running);
	finish_probe(&prober, &has_probe);
	/* an nvidia-smi that hangs does not refuse this user */
	prober.was_refused = false;
	seen(&shared, now_ms + 1, now_ms + 1);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms + 1, &probe, &has_probe);
	assert_int_equal(probe.gpu_count, 1);
	assert_string_equal(prober.own_trouble, "");
	prober_release(&prober);
	statedir_release(&dir);
}

/* --- how the GPUs are linked --------------------------------------------------------- */

#define SMI "tests/bin/nvidia-smi"
#define GPUS                                                               \
	"0 GPU-51111111-0000-4000-8000-000000000000 0000:01:00.0 1000 A\n" \
	"1 GPU-51111111-0000-4000-8000-000000000001 0000:02:00.0 1000 A\n"
#define LINKED "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"

static char fake_dir[128], search[] = "PATH=/usr/bin:/bin";
static char *const environment[] = { fake_dir, search, NULL };

/* A prober that has seen two GPUs, through the simulated driver in the same directory. */
static struct prober start_prober(
	const struct scratch *s, const struct statedir *dir, int64_t limit_ms)
{
	struct prober_config config = {
		.nvidia_smi = SMI,
		.environment = environment,
		.limit_ms = limit_ms,
	};
	struct prober prober;

	if (access(SMI, X_OK) < 0)
		skip_because("not started in the root of the source");
	(void)snprintf(fake_dir, sizeof(fake_dir), "FAKE_SMI_DIR=%s", s->path);
	probe_simulate(2, 1000, clock_boot_ms(), &probe);
	prober_init(&prober, dir, &config);
	prober.has_result = true;
	return prober;
}

/* Polls and steps as a broker does, until the question is over. */
static void finish_topology(struct prober *prober)
{
	int64_t until_ms = clock_boot_ms() + PATIENCE_MS;
	bool has_probe = true;

	while (prober->topology.run.is_running && clock_boot_ms() < until_ms) {
		struct pollfd fds[PROBE_POLL_FDS];
		unsigned count = prober_poll_fds(prober, fds);
		int64_t left_ms = prober_deadline_ms(prober) - clock_boot_ms();

		(void)poll(fds, count, (int)min_i64(max_i64(left_ms, 0), PATIENCE_MS));
		prober_step(prober, clock_boot_ms(), &probe, &has_probe);
	}
	assert_false(prober->topology.run.is_running);
	assert_true(prober_deadline_ms(prober) == INT64_MAX);
}

static bool knows(struct prober *prober)
{
	return prober_knows_topology(prober, clock_boot_ms(), &probe);
}

/* How often nvidia-smi was called. */
static size_t calls(const struct scratch *s)
{
	char text[256];

	if (fdio_read_text(s->dirfd, "count", text, sizeof(text)) < 0)
		return 0;
	return strlen(text) / strlen("topo\n");
}

static void assert_linked(const struct prober *prober)
{
	const struct topology *topology = prober_topology(prober);

	assert_non_null(topology);
	assert_int_equal(topology->count, 2);
	assert_string_equal(topology->gpus[1].uuid, probe.gpus[1].uuid);
	assert_int_equal(topology->gpus[0].level[1], LINK_NV + 4);
}

static void links_are_asked_for_once_and_only_if_wanted(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct prober prober = start_prober(s, &dir, 0), other;

	assert_int_equal(scratch_write(s, "topo.raw", LINKED), 0);
	/* not before there is a probe, because the answer has its indices */
	prober.has_result = false;
	prober_want_topology(&prober, clock_boot_ms());
	assert_false(prober.topology.run.is_running);
	prober.has_result = true;
	assert_false(knows(&prober));
	assert_null(prober_topology(&prober));
	assert_int_equal(calls(s), 0);
	prober_want_topology(&prober, clock_boot_ms());
	assert_true(prober.topology.run.is_running);
	assert_false(prober_is_busy(&prober)); /* which is about probes only */
	assert_false(knows(&prober));
	prober_want_topology(&prober, clock_boot_ms());
	finish_topology(&prober);
	assert_true(knows(&prober));
	assert_linked(&prober);
	/* the next process reads it from the file, and the lock is free */
	other = start_prober(s, &dir, 0);
	assert_true(knows(&other));
	assert_linked(&other);
	assert_int_equal(prober.topology.lock_fd, -1);
	assert_int_equal(calls(s), 1);
	/* once it is settled the file is not even opened */
	assert_int_equal(unlinkat(dir.fd, "topology", 0), 0);
	assert_true(knows(&prober));
	/* until there is another GPU */
	probe_simulate(3, 1000, clock_boot_ms(), &probe);
	assert_false(knows(&prober));
	prober_release(&other);
	prober_release(&prober);
	assert_null(prober_topology(&prober));
	statedir_release(&dir);
}

static void a_driver_without_links_is_not_asked_for_ten_minutes(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct prober prober = start_prober(s, &dir, 0), other;
	int64_t now_ms = clock_boot_ms();

	prober_want_topology(&prober, now_ms);
	finish_topology(&prober);
	assert_true(knows(&prober));
	assert_null(prober_topology(&prober));
	assert_memory_equal(prober.topology.newest->trouble.text,
		"nvidia-smi: Invalid combination", 31);
	other = start_prober(s, &dir, 0);
	assert_true(knows(&other));
	assert_null(prober_topology(&other));
	assert_int_equal(calls(s), 1);
	assert_false(prober_knows_topology(&other, now_ms + TOPOLOGY_RETRY_MS, &probe));
	assert_false(prober_knows_topology(&prober, now_ms + TOPOLOGY_RETRY_MS, &probe));
	/* the next driver can */
	assert_int_equal(scratch_write(s, "topo.raw", LINKED), 0);
	prober_want_topology(&prober, now_ms + TOPOLOGY_RETRY_MS);
	finish_topology(&prober);
	assert_true(prober_knows_topology(&prober, INT64_MAX, &probe));
	assert_linked(&prober);
	prober_release(&other);
	prober_release(&prober);
	statedir_release(&dir);
}

static void a_child_that_hangs_or_cannot_run_is_a_failure(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct prober prober = start_prober(s, &dir, 50);

	assert_int_equal(scratch_write(s, "hang.topo", ""), 0);
	prober_want_topology(&prober, clock_boot_ms());
	finish_topology(&prober);
	assert_true(knows(&prober));
	assert_string_equal(prober.topology.newest->trouble.text,
		"nvidia-smi did not answer within 1 s");
	prober_release(&prober);
	assert_int_equal(unlinkat(dir.fd, "topology", 0), 0);
	prober = start_prober(s, &dir, 0);
	prober.config.nvidia_smi = "/proc/nonexistent/nvidia-smi";
	prober_want_topology(&prober, clock_boot_ms());
	finish_topology(&prober);
	assert_true(knows(&prober));
	assert_memory_equal(
		prober.topology.newest->trouble.text, "cannot run '/proc/non", 21);
	prober_release(&prober);
	statedir_release(&dir);
}

static void output_of_a_killed_or_stopped_child_is_not_shared(void **state)
{
	static const int signals[] = { SIGKILL, SIGSTOP };
	static const char *const troubles[] = { "nvidia-smi was killed by signal 9",
		"nvidia-smi was stopped" };
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);

	dir.is_hardened = true;
	assert_int_equal(scratch_write(s, "hang.topo", ""), 0);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct prober prober = start_prober(s, &dir, PATIENCE_MS);

		prober_want_topology(&prober, clock_boot_ms());
		assert_int_equal(kill(prober.topology.run.spawn.pid, signals[i]), 0);
		finish_topology(&prober);
		assert_true(knows(&prober));
		assert_string_equal(prober.topology.newest->trouble.text, troubles[i]);
		prober_release(&prober);
		assert_false(fixture_exists(dir.fd, ".", "topology"));
	}
	statedir_release(&dir);
}

static void only_one_process_asks_while_others_wait(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct prober prober = start_prober(s, &dir, 0);
	int64_t now_ms = clock_boot_ms();
	bool has_probe = true;
	autofd int other = -1;

	assert_int_equal(scratch_write(s, "topo.raw", LINKED), 0);
	assert_int_equal(topology_lock_try(dir.fd, &other), 0);
	prober_want_topology(&prober, now_ms);
	assert_false(prober.topology.run.is_running);
	assert_in_range(prober_deadline_ms(&prober), now_ms + 1, now_ms + 1000);
	prober_step(&prober, prober_deadline_ms(&prober), &probe, &has_probe);
	assert_true(prober_deadline_ms(&prober) ==
		    INT64_MAX); /* until it is asked for again */
	prober_want_topology(&prober, now_ms + PROBER_LINKS_MS - 1);
	assert_false(prober.topology.run.is_running);
	/* an answer that comes meanwhile ends the wait */
	topology_simulate(
		&probe, prober.topology.newest = malloc(sizeof(struct topology)));
	assert_int_equal(topology_store(&dir, prober.topology.newest), 0);
	prober.topology.newest->count = 0;
	assert_true(knows(&prober));
	assert_true(prober_deadline_ms(&prober) == INT64_MAX);
	assert_int_equal(unlinkat(dir.fd, "topology", 0), 0);
	prober.topology.newest->count = 0;
	assert_false(knows(&prober));
	prober_want_topology(&prober, now_ms + PROBER_LINKS_MS);
	assert_false(prober.topology.run.is_running); /* a new wait */
	prober_want_topology(&prober, now_ms + 2 * PROBER_LINKS_MS);
	assert_false(prober.topology.run.is_running);
	/* which is over: the job chooses without links, and asks again after a while */
	assert_true(prober_deadline_ms(&prober) <= now_ms + 2 * PROBER_LINKS_MS);
	assert_true(
		prober_knows_topology(&prober, now_ms + 2 * PROBER_LINKS_MS + 1, &probe));
	assert_null(prober_topology(&prober));
	assert_false(prober_knows_topology(
		&prober, now_ms + 2 * PROBER_LINKS_MS + TOPOLOGY_RETRY_MS, &probe));
	close_fd(&other);
	prober_step(&prober, prober_deadline_ms(&prober), &probe, &has_probe);
	prober_want_topology(&prober, clock_boot_ms());
	finish_topology(&prober);
	assert_true(knows(&prober));
	assert_linked(&prober);
	prober_release(&prober);
	statedir_release(&dir);
}

static void a_failure_does_not_replace_a_shared_answer(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct prober prober = start_prober(s, &dir, 0), other = start_prober(s, &dir, 0);

	assert_int_equal(scratch_write(s, "hang.topo", ""), 0);
	prober_want_topology(&prober, clock_boot_ms());
	while (calls(s) == 0)
		(void)poll(NULL, 0, 1);
	assert_int_equal(unlinkat(dir.fd, "hang.topo", 0), 0);
	assert_int_equal(scratch_write(s, "topo.raw", LINKED), 0);
	/* while the first prober still waits another process learns the links */
	close_fd(&prober.topology.lock_fd);
	prober_want_topology(&other, clock_boot_ms());
	finish_topology(&other);
	assert_linked(&other);
	assert_int_equal(kill(prober.topology.run.spawn.pid, SIGKILL), 0);
	finish_topology(&prober);
	assert_linked(&prober);
	prober_release(&other);
	prober_release(&prober);
	statedir_release(&dir);
}

static void links_and_probe_run_at_the_same_time(void **state)
{
	struct scratch *s = *state;
	struct statedir dir = fixture_dir(s);
	struct prober prober = start_prober(s, &dir, PATIENCE_MS);
	struct pollfd fds[PROBE_POLL_FDS];
	bool has_probe = true;

	assert_int_equal(scratch_write(s, "hang.topo", ""), 0);
	assert_int_equal(scratch_write(s, "gpus", GPUS), 0);
	prober_want(&prober, clock_boot_ms());
	prober_want_topology(&prober, clock_boot_ms());
	assert_in_range(prober_poll_fds(&prober, fds), 3 * 2, PROBE_POLL_FDS);
	while (prober.run.is_running) {
		unsigned count = prober_poll_fds(&prober, fds);

		assert_int_equal(poll(fds, count, PATIENCE_MS) > 0, 1);
		prober_step(&prober, clock_boot_ms(), &probe, &has_probe);
	}
	assert_int_equal(probe.gpu_count, 2);
	assert_string_equal(probe.gpus[0].name, "A");
	assert_true(prober.topology.run.is_running);
	prober_release(&prober);
	assert_int_equal(prober_poll_fds(&prober, fds), 0);
	statedir_release(&dir);
}

static void without_a_driver_there_is_nothing_to_wait_for(void **state)
{
	struct prober_config config = { .nvidia_smi = NULL };
	struct statedir dir = fixture_dir(*state);
	struct prober prober;
	bool has_probe = false;

	probe_simulate(2, 1000, clock_boot_ms(), &probe);
	prober_init(&prober, &dir, &config);
	assert_true(knows(&prober));
	assert_null(prober_topology(&prober));
	prober_want_topology(&prober, clock_boot_ms());
	assert_false(prober.topology.run.is_running);
	prober_release(&prober);
	/* simulated GPUs are linked as those of two sockets */
	config = (struct prober_config){ .nvidia_smi = SMI, .sim_gpus = 8 };
	prober_init(&prober, &dir, &config);
	prober_refresh(&prober, clock_boot_ms(), &probe, &has_probe);
	prober_want_topology(&prober, clock_boot_ms());
	assert_false(prober.topology.run.is_running);
	assert_true(knows(&prober));
	assert_int_equal(prober_topology(&prober)->gpus[3].level[4], LINK_SYS);
	assert_int_equal(prober_topology(&prober)->gpus[4].level[7], LINK_NODE);
	prober_release(&prober);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_result_that_is_no_longer_wanted_wakes_no_process),
		SCRATCH_TEST(a_reader_does_not_wait_long_for_other_processes),
		cmocka_unit_test(a_shared_result_serves_if_it_began_and_ended_lately),
		SCRATCH_TEST(
			a_useless_result_neither_replaces_a_good_one_nor_prolongs_the_wait),
		SCRATCH_TEST(a_result_of_this_process_is_known_as_its_own),
		SCRATCH_TEST(after_a_refusal_shared_results_do_not_count),
		SCRATCH_TEST(links_are_asked_for_once_and_only_if_wanted),
		SCRATCH_TEST(a_driver_without_links_is_not_asked_for_ten_minutes),
		SCRATCH_TEST(a_child_that_hangs_or_cannot_run_is_a_failure),
		SCRATCH_TEST(output_of_a_killed_or_stopped_child_is_not_shared),
		SCRATCH_TEST(only_one_process_asks_while_others_wait),
		SCRATCH_TEST(a_failure_does_not_replace_a_shared_answer),
		SCRATCH_TEST(links_and_probe_run_at_the_same_time),
		SCRATCH_TEST(without_a_driver_there_is_nothing_to_wait_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

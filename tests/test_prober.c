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

static void a_result_that_nobody_wants_any_more_wakes_nobody(void **state)
{
	struct prober_config config = { .nvidia_smi = "/nonexistent" };
	struct statedir dir = fixture_dir(*state);
	struct prober prober;
	bool has_probe = false;
	int other = -1;

	/* somebody else is at it, and will never finish */
	assert_int_equal(probe_lock_try(dir.fd, &other), 0);
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
	assert_true(prober_is_busy(&prober)); /* who still wants it says so again */
	close_fd(&other);
	prober_release(&prober);
	statedir_release(&dir);
}

static void who_only_looks_does_not_wait_long_for_others(void **state)
{
	static const int64_t trust_ms[] = { 2000, 500 };
	struct statedir dir = fixture_dir(*state);
	autofd int other = -1;

	assert_int_equal(probe_lock_try(dir.fd, &other), 0);
	for (int is_hasty = 0; is_hasty <= 1; is_hasty++) {
		struct prober_config config = { .nvidia_smi = "/nonexistent",
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

static void a_result_of_others_serves_if_it_began_and_ended_lately(void **state)
{
	static const struct {
		int64_t started_ms, finished_ms;
		bool is_own, is_trusted, serves;
	} cases[] = { { 96000, 99000, false, true, true },
		{ 95999, 99500, false, false, false }, /* stopped meanwhile, perhaps */
		{ 98000, 98999, false, true, false },
		{ 90000, 99000, true, true, true }, /* slow, but seen by oneself */
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

static void one_of_no_use_neither_replaces_ones_own_nor_prolongs_the_wait(void **state)
{
	struct prober_config config = { .nvidia_smi = "/nonexistent" };
	struct statedir dir = fixture_dir(*state);
	int64_t now_ms = 100000, since_ms;
	struct prober prober;
	bool has_probe = false;
	autofd int other = -1;

	assert_int_equal(probe_lock_try(dir.fd, &other), 0);
	prober_init(&prober, &dir, &config);
	prober_want(&prober, now_ms);
	since_ms = prober.other_since_ms;
	assert_true(since_ms > 0);
	/* it is better than nothing … */
	seen(&shared, now_ms - 10000, now_ms);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms, &probe, &has_probe);
	assert_true(has_probe && probe.started_ms == now_ms - 10000);
	assert_true(prober.other_since_ms == since_ms);
	/* … but not than one's own, later though it is */
	seen(&probe, now_ms - 11000, now_ms);
	prober.own_started_ms = probe.started_ms;
	prober.own_finished_ms = probe.finished_ms;
	seen(&shared, now_ms - 9000, now_ms);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms, &probe, &has_probe);
	assert_true(probe.started_ms == now_ms - 11000);
	/* one that serves is, and ends the wait */
	seen(&shared, now_ms - 1000, now_ms);
	assert_int_equal(probe_store(&dir, &USAGE_POLICY_DEFAULT, NULL, &shared), 0);
	prober_refresh(&prober, now_ms, &probe, &has_probe);
	assert_true(probe.started_ms == now_ms - 1000);
	assert_true(prober.other_since_ms == 0);
	prober_release(&prober);
	statedir_release(&dir);
}

static void what_comes_from_here_is_known_as_ones_own(void **state)
{
	struct prober_config config = { .nvidia_smi = "/nonexistent" };
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
	/* trouble is shared where nobody could have brought it about for others */
	assert_int_equal(probe_load(&dir, &shared), 0);
	assert_string_not_equal(shared.trouble.text, "");
	prober_release(&prober);
	statedir_release(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_result_that_nobody_wants_any_more_wakes_nobody),
		SCRATCH_TEST(who_only_looks_does_not_wait_long_for_others),
		cmocka_unit_test(a_result_of_others_serves_if_it_began_and_ended_lately),
		SCRATCH_TEST(
			one_of_no_use_neither_replaces_ones_own_nor_prolongs_the_wait),
		SCRATCH_TEST(what_comes_from_here_is_known_as_ones_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

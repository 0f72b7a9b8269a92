#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture.h"
#include "prober.h"

static void a_result_that_nobody_wants_any_more_wakes_nobody(void **state)
{
	static struct probe probe;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_result_that_nobody_wants_any_more_wakes_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

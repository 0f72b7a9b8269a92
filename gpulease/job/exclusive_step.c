#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "diag.h"
#include "exclusive_step.h"
#include "exitcodes.h"
#include "statedir.h"

enum {
	PAUSE_MS = 100,
	PAUSE_MOST_MS = 30000
}; /* after an errno; then 200 ms, 400 ms … */

struct step_wait {
	struct step_lock *lock;
	uint64_t job;
	int64_t until_ms;
	int64_t pause_ms; /* the last one after an errno; 0: none */
	int told;         /* the result of the try that was explained last; 0: none was */
};

/*
 * Bounds the step to the GPUs of the exclusive step around it, which are all that @lock has now.
 * Returns 0, or EXIT_MISUSE after a message.
 */
static int exclusive_step_go_inside(
	const struct run_request *request, struct step_lock *lock, uint64_t job)
{
	if (!request->gpus_given && !request->gpu_ids)
		lock->wanted = lock->slot_count;
	if (lock->wanted <= lock->slot_count)
		return 0;
	diag("cannot use %u GPUs: the exclusive step around this one (job %llu) has only %u",
		lock->wanted, (unsigned long long)job, lock->slot_count);
	return EXIT_MISUSE;
}

/*
 * After a try that came to @r, which is not 0: says once what the step waits for, and waits for an
 * event or, after an errno, for a pause that grows.  Returns 0, or EXIT_GAVE_UP if it is too late.
 */
static int exclusive_step_pause(
	struct step_wait *wait, const struct context *context, int r)
{
	struct step_lock *lock = wait->lock;
	bool is_late = clock_boot_ms() >= wait->until_ms;
	struct why why = WHY_NONE;

	why_set(&why, "other steps have them; with --overlap it would share them");
	if (r < 0)
		why_set(&why, "cannot lock them in '%s': %s", context->dir.path,
			strerror(-r));
	if (is_late || wait->told != r)
		note("a step of job %llu %s %u of its %u GPUs: %s",
			(unsigned long long)wait->job,
			is_late ? "gave up waiting for" : "waits for", lock->wanted,
			lock->slot_count, why.text);
	if (is_late)
		return EXIT_GAVE_UP;
	wait->told = r;
	watch_until(&lock->watch, wait->until_ms);
	if (r > 0 && watch_wait(&lock->watch) == 0) {
		wait->pause_ms = 0;
		return 0;
	}
	wait->pause_ms =
		wait->pause_ms ? min_i64(2 * wait->pause_ms, PAUSE_MOST_MS) : PAUSE_MS;
	(void)poll(NULL, 0,
		(int)max_i64(
			0, min_i64(wait->pause_ms, wait->until_ms - clock_boot_ms())));
	return 0;
}

/* Whether the error is one that no wait mends: what lies in the place of a file is none. */
static bool is_no_file(int r)
{
	return r == -ELOOP || r == -EINVAL || r == -EISDIR || r == -ENXIO;
}

int exclusive_step_wait(
	const struct context *context, struct step_lock *lock, uint64_t job)
{
	const struct run_request *request = &context->settings->request;
	/* -1: without end */
	int64_t patience_ms =
		request->immediate ? request->immediate_ms : request->max_wait_ms;
	struct step_wait wait = {
		.lock = lock,
		.job = job,
		.until_ms = patience_ms < 0 ? INT64_MAX : clock_boot_ms() + patience_ms,
	};
	int r;

	while ((r = step_lock_try(lock)) != 0) {
		if (is_no_file(r)) {
			diag("cannot lock the GPUs of this step in '%s': %s",
				context->dir.path, strerror(-r));
			return EXIT_MISUSE;
		}
		r = r == STEP_LOCK_INSIDE ? exclusive_step_go_inside(request, lock, job)
					  : exclusive_step_pause(&wait, context, r);
		if (r != 0)
			return r;
	}
	return 0;
}

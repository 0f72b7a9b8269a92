#include "clock.h"
#include "diag.h"
#include "exclusive_step.h"
#include "exitcodes.h"
#include "statedir.h"

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

int exclusive_step_wait(
	const struct context *context, struct step_lock *lock, uint64_t job)
{
	const struct run_request *request = &context->settings->request;
	/* -1: without end */
	int64_t patience_ms =
		request->immediate ? request->immediate_ms : request->max_wait_ms;
	int64_t until_ms = patience_ms < 0 ? INT64_MAX : clock_boot_ms() + patience_ms;
	bool is_told = false;
	int r;

	while ((r = step_lock_try(lock)) > 0) {
		bool is_late = clock_boot_ms() >= until_ms;

		if (r == STEP_LOCK_INSIDE) {
			r = exclusive_step_go_inside(request, lock, job);
			if (r != 0)
				return r;
			continue;
		}
		if (is_late || !is_told)
			note("a step of job %llu %s %u of its %u GPUs: others have them with "
			     "--exclusive",
				(unsigned long long)job,
				is_late ? "gave up waiting for" : "waits for",
				lock->wanted, lock->slot_count);
		if (is_late)
			return EXIT_GAVE_UP;
		is_told = true;
		watch_until(&lock->watch, until_ms);
		r = watch_wait(&lock->watch);
		if (r < 0)
			break;
	}
	if (r == 0)
		return 0;
	diag("cannot lock the GPUs of this step in '%s': %s", context->dir.path,
		strerror(-r));
	return EXIT_MISUSE;
}

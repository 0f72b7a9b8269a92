#include <errno.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "history.h"
#include "rlimits.h"
#include "shared_state.h"

static int shared_state_open_queue(
	const struct statedir *dir, bool is_reader, struct queue *queue)
{
	int r = is_reader ? queue_open_to_read(queue, dir) : queue_open(queue, dir);

	if (r == -ENOENT && is_reader) /* no job has been here yet: make the files */
		r = queue_open(queue, dir);
	return r;
}

int shared_state_open(struct settings *settings, bool is_reader, struct context *context,
	struct queue *queue, struct snapshot *view)
{
	int r;

	rlimits_raise(); /* each job that is watched takes descriptors */
	r = context_open(settings, context);
	if (r != 0)
		return r;
	snapshot_init(view, &context->dir);
	r = shared_state_open_queue(&context->dir, is_reader, queue);
	if (r == 0)
		r = queue_begin(queue, 0);
	if (r == 0)
		r = snapshot_read_and_look(view, clock_boot_ms());
	return r == 0 ? 0 : shared_state_report(context, r);
}

int shared_state_report(const struct context *context, int r)
{
	diag("cannot use the state in '%s': %s", context->dir.path,
		r < 0 ? strerror(-r) : "the queue is being replaced; try again");
	return EXIT_MISUSE;
}

void shared_state_note_history_error(void)
{
	int r = history_take_trouble();

	if (r < 0)
		note("cannot append to the history: %s; it may lack the end of a job",
			strerror(-r));
}

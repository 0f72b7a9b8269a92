#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "array.h"
#include "beacon.h"
#include "clock.h"
#include "limits.h"
#include "look.h"

enum {
	OTHERS_MS = 100, /* how often to see whether somebody else has got a result */
	LOCK_MS = 20,    /* who holds a lock longer than this is worth telling */
	OPEN_TRIES = 5,
};

void look_init(struct look *look, const struct context *context, size_t rows_max)
{
	struct prober_config config = context->prober;

	limits_raise(); /* many leases, many descriptors; SIGXFSZ is no way to end */
	memset(look, 0, sizeof(*look)); /* too big for a value on the stack */
	look->context = context;
	look->begun_ms = clock_boot_ms();
	look->rows_max = rows_max;
	look->queue.file = TICKET_FILE_NONE;
	config.is_hasty = true;
	prober_init(&look->prober, &context->dir, &config);
	snapshot_init(&look->snapshot, &context->dir);
	look->snapshot.usage = config.usage;
	look->snapshot.is_for_show = true;
}

void look_release(struct look *look)
{
	prober_release(&look->prober);
	watch_release(&look->watch);
	snapshot_release(&look->snapshot);
	queue_release(&look->queue);
	free(look->rows);
	free(look->gpuless);
	look->rows = look->gpuless = NULL;
	look->row_count = look->row_room = 0;
	look->gpuless_count = look->gpuless_room = 0;
}

/* --- nvidia-smi -------------------------------------------------------------------- */

static bool is_recent(struct look *look, int64_t oldest_ms)
{
	struct snapshot *view = &look->snapshot;

	prober_refresh(&look->prober, clock_boot_ms(), &view->probe, &view->has_probe);
	return view->has_probe && view->probe.finished_ms >= oldest_ms &&
	       prober_trusts(&look->prober, &view->probe, clock_boot_ms());
}

static int wait_for_probe(struct look *look, int64_t until_ms)
{
	struct pollfd fds[PROBE_POLL_FDS];
	unsigned count = prober_poll_fds(&look->prober, fds);
	int r = 0;

	watch_begin(&look->watch);
	watch_until(&look->watch, min_i64(until_ms, clock_boot_ms() + OTHERS_MS));
	watch_until(&look->watch, prober_deadline_ms(&look->prober));
	for (unsigned i = 0; i < count && r == 0; i++)
		r = watch_add(&look->watch, fds[i].fd, fds[i].events);
	if (r == 0)
		r = watch_wait(&look->watch);
	prober_step(&look->prober, clock_boot_ms(), &look->snapshot.probe,
		&look->snapshot.has_probe);
	return r;
}

int look_probe(struct look *look, int64_t oldest_ms)
{
	const struct prober_config *config = &look->prober.config;
	int64_t until_ms = look->begun_ms + LOOK_PROBE_MS;
	bool can_probe = config->nvidia_smi || config->sim_gpus;
	int r = 0;

	while (r == 0 && !is_recent(look, oldest_ms) && can_probe &&
		clock_boot_ms() < until_ms) {
		prober_want(&look->prober, clock_boot_ms());
		r = wait_for_probe(look, until_ms);
	}
	look->is_probe_old = !is_recent(look, oldest_ms);
	return r;
}

bool look_is_doubtful(const struct look *look)
{
	const struct snapshot *view = &look->snapshot;

	if (!view->has_probe || view->probe.started_ms >= look->begun_ms)
		return false;
	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].has_dead &&
			(view->gpus[slot].state == GPU_EXTERNAL ||
				view->gpus[slot].state == GPU_SETTLING))
			return true;
	return false;
}

/* --- the queue --------------------------------------------------------------------- */

static int add_row(
	struct queue_row **rows, size_t *count, size_t *room, const struct queue_row *row)
{
	struct queue_row *grown = array_grow(*rows, sizeof(*grown), *count, room);

	if (!grown)
		return -ENOMEM;
	*rows = grown;
	grown[(*count)++] = *row;
	return 0;
}

/* Without keeping a descriptor: there may be more tickets than those. */
static bool is_alive(const struct statedir *dir, const struct ticket *ticket)
{
	switch (owner_judge_job(&ticket->owner, &ticket->runs, dir->pidns)) {
	case OWNER_ALIVE:
		return true;
	case OWNER_DEAD:
		return false;
	case OWNER_UNDECIDED:
		break;
	}
	return beacon_look(dir, ticket->owner.token, NULL) != BEACON_GONE;
}

static int read_rows(struct look *look)
{
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	queue_order_begin(&cursor, QUEUE_LAST);
	while ((r = queue_next_in_order(&look->queue, &cursor, &row)) == 0) {
		if (!row.is_waiting || !is_alive(&look->context->dir, &row.ticket))
			continue;
		if (look->row_count == look->rows_max) {
			look->has_more_rows = true;
			break;
		}
		r = add_row(&look->rows, &look->row_count, &look->row_room, &row);
		if (r < 0)
			return r;
	}
	look->has_broken_row = look->queue.first_broken != 0;
	return r < 0 ? r : 0;
}

/* The hint has passed them: they are looked for in all that is left of the file. */
static int read_gpuless(struct look *look)
{
	const struct statedir *dir = &look->context->dir;
	uint64_t number = 1;
	struct queue_row row;
	int r;

	while ((r = queue_next(&look->queue, &number, &row)) == 0) {
		if (row.ticket.state != TICKET_GRANTED || row.ticket.request.gpus ||
			strcmp(row.ticket.boot, dir->boot) != 0 ||
			!is_alive(dir, &row.ticket))
			continue;
		if (look->gpuless_count == look->rows_max)
			return 0;
		r = add_row(
			&look->gpuless, &look->gpuless_count, &look->gpuless_room, &row);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

static int read_queue(struct look *look)
{
	const struct statedir *dir = &look->context->dir;
	int r = QUEUE_REPLACED;
	struct stat st;

	look->row_count = look->gpuless_count = 0;
	look->has_more_rows = look->has_broken_row = false;
	/* opening it would make it */
	if (fstatat(dir->fd, "tickets", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	for (int i = 0; i < OPEN_TRIES && r == QUEUE_REPLACED; i++) {
		queue_release(&look->queue);
		r = queue_open_to_read(&look->queue, dir);
		if (r == 0)
			r = queue_begin(&look->queue, 0);
		if (r == 0)
			r = read_rows(look);
		if (r == 0)
			r = read_gpuless(look);
	}
	return r == QUEUE_REPLACED ? -EAGAIN : r;
}

/* --- the GPUs ---------------------------------------------------------------------- */

static struct gpuset held_locks(const struct look *look)
{
	const struct snapshot *view = &look->snapshot;
	struct gpuset out = GPUSET_NONE;

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].file.fd >= 0 &&
			lease_lock_holder(&view->gpus[slot].file))
			gpuset_add(&out, slot);
	return out;
}

/* A lock is held for microseconds, or by somebody who was stopped: that is to be told. */
static void mark_locked(struct look *look)
{
	struct gpuset held = held_locks(look), still;

	for (unsigned slot = 0; slot < look->snapshot.slots; slot++)
		look->snapshot.gpus[slot].locked_until_ms = 0;
	if (gpuset_is_empty(&held))
		return;
	(void)poll(NULL, 0, LOCK_MS);
	still = held_locks(look);
	held = gpuset_and(&held, &still);
	gpuset_for_each (slot, &held)
		look->snapshot.gpus[slot].locked_until_ms = INT64_MAX;
}

int look_read(struct look *look, struct why *why)
{
	const char *path = look->context->dir.path;
	struct snapshot *view = &look->snapshot;
	int r = read_queue(look);

	if (r < 0) {
		why_set(why, "cannot read the queue '%s/tickets': %s", path,
			strerror(-r));
		return r;
	}
	look->now_ms = clock_boot_ms();
	lives_begin(&view->lives);
	r = snapshot_read_and_look(view, look->now_ms);
	lives_end(&view->lives);
	if (r < 0) {
		why_set(why, "cannot read the leases in '%s/gpu': %s", path,
			strerror(-r));
		return r;
	}
	mark_locked(look);
	r = snapshot_judge(view, look->now_ms);
	if (r < 0)
		why_set(why, "cannot judge the GPUs: %s", strerror(-r));
	return r;
}

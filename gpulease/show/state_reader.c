#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "array.h"
#include "clock.h"
#include "queue_order.h"
#include "rlimits.h"
#include "state_reader.h"

enum {
	OTHERS_MS =
		100,  /* how often to check whether another process has stored a result */
	LOCK_MS = 20, /* a lock that is held for longer is reported */
	OPEN_TRIES = 5,
};

void state_reader_init(
	struct state_reader *reader, const struct context *context, size_t rows_max)
{
	struct prober_config config = context->prober;

	rlimits_raise(); /* a descriptor per lease; and a limited file size is an error, no signal */
	memset(reader, 0, sizeof(*reader)); /* too big for a value on the stack */
	reader->context = context;
	reader->begun_ms = clock_boot_ms();
	reader->patience_ms = STATE_READER_PROBE_MS;
	reader->rows_max = rows_max;
	reader->queue.file = TICKET_FILE_NONE;
	config.is_hasty = true;
	prober_init(&reader->prober, &context->dir, &config);
	snapshot_init(&reader->snapshot, &context->dir);
	reader->snapshot.usage = config.usage;
	reader->snapshot.is_for_show = true;
}

void state_reader_release(struct state_reader *reader)
{
	prober_release(&reader->prober);
	watch_release(&reader->watch);
	snapshot_release(&reader->snapshot);
	queue_release(&reader->queue);
	free(reader->rows);
	free(reader->gpuless);
	reader->rows = reader->gpuless = NULL;
	reader->row_count = reader->row_room = 0;
	reader->gpuless_count = reader->gpuless_room = 0;
}

uint32_t state_reader_pid(const struct state_reader *reader, const struct owner *owner)
{
	return owner->pidns == reader->context->dir.pidns ? owner->pid : 0;
}

bool state_reader_name(const struct state_reader *reader, const struct owner *owner,
	const char *name, uint64_t hash, char out[NAME_SIZE_MAX])
{
	text_copy(out, NAME_SIZE_MAX, name);
	if (job_name_complete(&reader->context->dir, owner->token, hash, out))
		return false;
	(void)snprintf(out, NAME_SIZE_MAX, "%.*s…", NAME_KEPT_SIZE, name);
	return true;
}

/* --- nvidia-smi -------------------------------------------------------------------- */

/* Refreshes the result at hand.  Whether it ended at @oldest_ms or later and can be trusted. */
static bool is_recent(struct state_reader *reader, int64_t oldest_ms)
{
	struct snapshot *view = &reader->snapshot;

	prober_refresh(&reader->prober, clock_boot_ms(), &view->probe, &view->has_probe);
	return view->has_probe && view->probe.finished_ms >= oldest_ms &&
	       prober_trusts(&reader->prober, &view->probe, clock_boot_ms());
}

/* Waits for our own nvidia-smi or that of another process, for OTHERS_MS at most. */
static int wait_for_probe(struct state_reader *reader, int64_t until_ms)
{
	struct pollfd fds[PROBE_POLL_FDS];
	unsigned count = prober_poll_fds(&reader->prober, fds);
	int r = 0;

	watch_begin(&reader->watch);
	watch_until(&reader->watch, min_i64(until_ms, clock_boot_ms() + OTHERS_MS));
	watch_until(&reader->watch, prober_deadline_ms(&reader->prober));
	for (unsigned i = 0; i < count && r == 0; i++)
		r = watch_add(&reader->watch, fds[i].fd, fds[i].events);
	if (r == 0)
		r = watch_wait(&reader->watch);
	prober_step(&reader->prober, clock_boot_ms(), &reader->snapshot.probe,
		&reader->snapshot.has_probe);
	return r;
}

int state_reader_probe(struct state_reader *reader, int64_t oldest_ms)
{
	const struct prober_config *config = &reader->prober.config;
	int64_t until_ms = reader->begun_ms + reader->patience_ms;
	bool can_probe = config->nvidia_smi || config->sim_gpus;
	int r = 0;

	while (r == 0 && !is_recent(reader, oldest_ms) && can_probe &&
		clock_boot_ms() < until_ms) {
		prober_want(&reader->prober, clock_boot_ms());
		r = wait_for_probe(reader, until_ms);
	}
	reader->is_probe_old = !is_recent(reader, oldest_ms);
	return r;
}

bool state_reader_is_doubtful(const struct state_reader *reader)
{
	const struct snapshot *view = &reader->snapshot;

	if (!view->has_probe || view->probe.started_ms >= reader->begun_ms)
		return false;
	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].has_dead &&
			(view->gpus[slot].state == GPU_EXTERNAL ||
				view->gpus[slot].state == GPU_SETTLING))
			return true;
	return false;
}

/* --- the queue --------------------------------------------------------------------- */

static int queue_rows_add(
	struct queue_row **rows, size_t *count, size_t *room, const struct queue_row *row)
{
	struct queue_row *grown = array_grow(*rows, sizeof(*grown), *count, room);

	if (!grown)
		return -ENOMEM;
	*rows = grown;
	grown[(*count)++] = *row;
	return 0;
}

/* Keeps the waiting tickets with live owners. */
static int read_waiting(struct state_reader *reader)
{
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	queue_order_begin(&cursor, QUEUE_LAST);
	while ((r = queue_next_in_order(&reader->queue, &cursor, &row)) == 0) {
		if (!row.is_waiting ||
			!ticket_has_process(&reader->context->dir, &row.ticket))
			continue;
		if (reader->row_count == reader->rows_max) {
			reader->has_more_rows = true;
			break;
		}
		r = queue_rows_add(
			&reader->rows, &reader->row_count, &reader->row_room, &row);
		if (r < 0)
			return r;
	}
	reader->has_broken_row = reader->queue.first_broken != 0;
	return r < 0 ? r : 0;
}

/*
 * Keeps the granted tickets of live jobs without a GPU.  The file's hint points to the first
 * waiting ticket, which may come after them, so this reads the file from its beginning.
 */
static int read_gpuless(struct state_reader *reader)
{
	const struct statedir *dir = &reader->context->dir;
	uint64_t number = 1;
	struct queue_row row;
	int r;

	while ((r = queue_next(&reader->queue, &number, &row)) == 0) {
		if (row.ticket.state != TICKET_GRANTED || row.ticket.request.gpus ||
			strcmp(row.ticket.boot, dir->boot) != 0 ||
			!ticket_has_process(dir, &row.ticket))
			continue;
		if (reader->gpuless_count == reader->rows_max)
			return 0;
		r = queue_rows_add(&reader->gpuless, &reader->gpuless_count,
			&reader->gpuless_room, &row);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

static int read_queue(struct state_reader *reader)
{
	const struct statedir *dir = &reader->context->dir;
	int r = QUEUE_REPLACED;
	struct stat st;

	reader->row_count = reader->gpuless_count = 0;
	reader->has_more_rows = reader->has_broken_row = false;
	/* without a file there are no tickets; queue_open_to_read() would create it */
	if (fstatat(dir->fd, "tickets", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	/* another process may replace the file while it is read */
	for (int i = 0; i < OPEN_TRIES && r == QUEUE_REPLACED; i++) {
		queue_release(&reader->queue);
		r = queue_open_to_read(&reader->queue, dir);
		if (r == 0)
			r = queue_begin(&reader->queue, 0);
		if (r == 0)
			r = read_waiting(reader);
		if (r == 0)
			r = read_gpuless(reader);
	}
	return r == QUEUE_REPLACED ? -EAGAIN : r;
}

/* --- the GPUs ---------------------------------------------------------------------- */

/* Returns the slots with lease files that another process has locked now. */
static struct gpuset held_locks(const struct state_reader *reader)
{
	const struct snapshot *view = &reader->snapshot;
	struct gpuset out = GPUSET_NONE;

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].file.fd >= 0 &&
			lease_lock_holder(&view->gpus[slot].file))
			gpuset_add(&out, slot);
	return out;
}

/*
 * Marks each GPU with a lease file that stays locked.  A process needs a lock for microseconds
 * only; one that holds it for longer was stopped, and users should know.
 */
static void mark_locked(struct state_reader *reader)
{
	struct gpuset held = held_locks(reader), still;

	for (unsigned slot = 0; slot < reader->snapshot.slots; slot++)
		reader->snapshot.gpus[slot].locked_until_ms = 0;
	if (gpuset_is_empty(&held))
		return;
	(void)poll(NULL, 0, LOCK_MS);
	still = held_locks(reader);
	held = gpuset_and(&held, &still);
	gpuset_for_each (slot, &held)
		reader->snapshot.gpus[slot].locked_until_ms = INT64_MAX;
}

int state_reader_read(struct state_reader *reader, struct why *why)
{
	const char *path = reader->context->dir.path;
	struct snapshot *view = &reader->snapshot;
	int r = read_queue(reader);

	if (r < 0) {
		why_set(why, "cannot read the queue '%s/tickets': %s", path,
			strerror(-r));
		return r;
	}
	reader->now_ms = clock_boot_ms();
	liveness_set_begin(&view->lives);
	r = snapshot_read_and_look(view, reader->now_ms);
	liveness_set_end(&view->lives);
	if (r < 0) {
		why_set(why, "cannot read the leases in '%s/gpu': %s", path,
			strerror(-r));
		return r;
	}
	mark_locked(reader);
	r = snapshot_judge(view, reader->now_ms);
	if (r < 0)
		why_set(why, "cannot judge the GPUs: %s", strerror(-r));
	return r;
}

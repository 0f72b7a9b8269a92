#include <errno.h>

#include "clock.h"
#include "end_record.h"
#include "gpu_hours.h"
#include "parse.h"

enum { LOCK_TRY_MS = 50 };

void end_record_name_gpus(
	const struct snapshot *view, const struct gpuset *set, char *out, size_t size)
{
	struct text text = text_on(out, size);

	gpuset_for_each (slot, set)
		text_addf(&text, "%s%s", text.used ? "," : "",
			snapshot_gpu_name(view, (unsigned)slot).text);
}

/* Writes the exit status as text; -1 stays "", the status is not known. */
static void set_status(int status, struct history_end *end)
{
	if (status >= 0)
		(void)snprintf(end->status, sizeof(end->status), "%d", status & 0xff);
}

void end_record_describe(const struct snapshot *view, const struct snapshot_lease *over,
	struct history_end *end)
{
	const struct lease *lease = &over->lease;

	history_describe(lease, over->alive_ms ? over->alive_ms : lease->since_ms,
		over->over_ms, end);
	(void)job_name_complete(
		view->dir, lease->owner.token, lease->name_hash, end->name);
	end_record_name_gpus(view, &lease->gpus, end->gpus, sizeof(end->gpus));
	set_status(over->status, end);
	if (!over->is_of_this_boot) {
		/* its times count from another boot: all that is known is that it is over by now */
		end->since_ms = end->alive_ms = 0;
		end->gone_ms = clock_real_ms();
		text_copy(end->how, sizeof(end->how), HISTORY_REBOOT);
	} else if (lease->cancelled_by[0]) {
		text_copy(end->how, sizeof(end->how), HISTORY_CANCEL);
		text_copy(end->by, sizeof(end->by), lease->cancelled_by);
	} else if (lease->limit_ms && !over->is_orphaned &&
		   over->over_ms >= lease->since_ms + lease->limit_ms &&
		   over->alive_ms >= lease->since_ms + lease->limit_ms) {
		/*
		 * A job that was alive at its limit and is over now was ended by the limit.  Not so
		 * an orphaned command: its supervisor, which enforces the limit, is dead.
		 */
		text_copy(end->how, sizeof(end->how), HISTORY_LIMIT);
	} else if (lease->is_supervised) {
		/*
		 * A supervisor records the end itself unless it is killed, so it was killed.  Its
		 * status is not that of the job; that of an orphaned command is.
		 */
		text_copy(end->how, sizeof(end->how), HISTORY_LOST);
		if (!over->is_orphaned)
			end->status[0] = '\0';
	}
}

/* Returns what the job would have as its lease if it needed GPUs; see below. */
static struct lease lease_of_ticket(
	uint64_t number, const struct ticket *ticket, int64_t since_ms, int64_t now_ms)
{
	struct lease none = {
		.ticket = number,
		.job = ticket->job,
		.attempt = ticket->attempt,
		.owner = ticket->owner,
		.share_percent = ticket->request.share_percent,
		.vram_mib = ticket->request.vram_mib,
		.since_ms = since_ms,
		.waited_ms =
			max_i64(0, (since_ms ? since_ms : now_ms) - ticket->since_ms),
	};

	text_copy(none.boot, sizeof(none.boot), ticket->boot);
	text_copy(none.user, sizeof(none.user), ticket->user);
	text_copy(none.name, sizeof(none.name), ticket->request.name);
	none.name_hash = ticket->request.name_hash;
	text_copy(none.command, sizeof(none.command), ticket->request.command);
	return none;
}

void end_record_append_leaseless(const struct statedir *dir, uint64_t number,
	const struct ticket *ticket, int64_t since_ms, const struct end_facts *facts)
{
	int64_t now_ms = clock_boot_ms();
	struct lease none = lease_of_ticket(number, ticket, since_ms, now_ms);
	struct history_end end;

	history_describe(&none, now_ms, now_ms, &end);
	/* it never started: history_describe() has turned 0 into a time of day */
	if (!since_ms) {
		end.since_ms = 0;
		end.at_ms = now_ms;
	}
	end_record_add_facts(facts, &end);
	end.is_provisional = facts->is_beside;
	(void)!history_append(dir, &end);
}

void end_record_append(const struct snapshot *view, const struct snapshot_lease *over)
{
	struct history_end end;

	end_record_describe(view, over, &end);
	/* a recorder of an earlier boot is dead and will write no exact line */
	end.is_provisional = over->is_of_this_boot && over->lease.recorded_by[0];
	(void)!history_append(view->dir, &end);
	if (view->dir->counts_usage && over->is_of_this_boot) {
		autofd int fd = gpu_hours_open(view->dir);

		/* a job that lets nobody see its end counts in full, up to now */
		if (fd >= 0)
			(void)!gpu_hours_add(fd, &over->lease, clock_boot_ms());
	}
}

/* Adds what samples have shown of the use of the GPUs. */
static void add_use(const struct lease_use *use, struct history_end *end)
{
	text_copy(end->peaks, sizeof(end->peaks), use->peaks);
	if (!use->samples)
		return;
	(void)snprintf(end->utilization, sizeof(end->utilization), "%u/%u",
		(unsigned)lease_use_mean(use) % 101, use->busy_peak % 101);
	end->use_samples = use->samples;
	end->unused_ms = use->unused_ms;
	end->unused_at_end_ms = use->unused_now_ms;
}

void end_record_add_facts(const struct end_facts *facts, struct history_end *end)
{
	set_status(facts->status, end);
	text_copy(end->how, sizeof(end->how), facts->how ? facts->how : "");
	text_copy(end->by, sizeof(end->by), facts->by ? facts->by : "");
	end->log_is_full = facts->log_is_full;
	end->spans_run = facts->spans_run;
	add_use(&facts->use, end);
	if (facts->peaks[0])
		text_copy(end->peaks, sizeof(end->peaks), facts->peaks);
	if (facts->utilization[0])
		text_copy(end->utilization, sizeof(end->utilization), facts->utilization);
}

/* Appends one line to the open history.  Returns 0 or a negative errno. */
static int append_end(struct end_recorder *recorder, const struct lease *lease,
	int64_t gone_ms, const struct end_facts *facts, bool is_exact)
{
	struct history_end end;

	history_describe(lease, gone_ms, gone_ms, &end);
	/* @lease was read again, when the rest of its name could perhaps not be read any more */
	if (end.name_hash && end.name_hash == recorder->lease.name_hash)
		text_copy(end.name, sizeof(end.name), recorder->lease.name);
	text_copy(end.gpus, sizeof(end.gpus), recorder->gpus);
	end_record_add_facts(facts, &end);
	end.is_exact = is_exact;
	/* a shell survives its lease: --cancel records that end, and its watchdog knows nothing */
	end.is_provisional =
		recorder->is_beside && lease->recorded_by[0] && !lease->is_shell;
	return history_write(&recorder->history, &end);
}

/*
 * For a recorder: appends the exact line if the record is gone or cannot be marked.  The process
 * that has replaced the record, or will replace it, writes a provisional line for the same end.
 * Does nothing for any other process.
 */
static int append_exact_end(
	struct end_recorder *recorder, int64_t gone_ms, const struct end_facts *facts)
{
	int r;

	if (!recorder->lease.recorded_by[0] || recorder->is_beside)
		return 0;
	r = append_end(recorder, &recorder->lease, gone_ms, facts, true);
	if (r < 0)
		history_mark_missing(&recorder->history);
	return r;
}

/*
 * With the file locked: records the end unless that was done, and marks the record.  The line comes
 * first: a crash between the two repeats the line, and never loses it.
 */
static int record_locked(
	struct end_recorder *recorder, int64_t gone_ms, const struct end_facts *facts)
{
	struct lease lease;
	unsigned at;
	int r = lease_find(&recorder->file, recorder->token, &lease, &at);

	if (r < 0 || !at)
		return append_exact_end(recorder, gone_ms, facts);
	if (lease.is_recorded)
		return 0;
	r = append_end(recorder, &lease, gone_ms, facts, false);
	if (r < 0)
		return r;
	/* the time counts with this line, and not with the exact line of append_exact_end() */
	if (recorder->usage_fd >= 0)
		(void)!gpu_hours_add(recorder->usage_fd, &lease, gone_ms);
	lease.is_recorded = 1;
	(void)!lease_write(&recorder->file, at, &lease); /* a failure repeats the line */
	return 0;
}

int end_recorder_write(struct end_recorder *recorder, int64_t gone_ms,
	const struct end_facts *facts, int64_t until_ms)
{
	int r;

	if (recorder->file.fd < 0 || lease_lock(&recorder->file, until_ms) != 0)
		return append_exact_end(recorder, gone_ms, facts);
	r = record_locked(recorder, gone_ms, facts);
	lease_unlock(&recorder->file);
	return r;
}

int end_recorder_open(const struct statedir *dir, const struct gpuset *gpus,
	const char *names, const char *token, struct end_recorder *ret)
{
	int slot = gpuset_next(gpus, 0), r;
	struct lease lease;
	unsigned at;

	*ret = END_RECORDER_NONE;
	if (slot < 0) /* no GPU, so no lease */
		return -ENOENT;
	r = lease_open_slot(dir, (uint32_t)slot, &ret->file);
	if (r != 0)
		return r < 0 ? r : -ENOENT;
	r = history_open(dir, &ret->history);
	if (r < 0) {
		end_recorder_release(ret);
		return r;
	}
	if (dir->counts_usage)
		ret->usage_fd = gpu_hours_open(dir);
	text_copy(ret->token, sizeof(ret->token), token);
	text_copy(ret->gpus, sizeof(ret->gpus), names);
	/* a copy for append_exact_end(): the record may be gone when the job ends */
	r = lease_find(&ret->file, ret->token, &lease, &at);
	if (r != 0 || !at)
		return 0;
	ret->lease = lease;
	(void)job_name_complete(dir, token, lease.name_hash, ret->lease.name);
	return 0;
}

int end_recorder_open_leaseless(const struct statedir *dir, uint64_t number,
	const struct ticket *ticket, struct end_recorder *ret)
{
	int r;

	*ret = END_RECORDER_NONE;
	r = history_open(dir, &ret->history);
	if (r == 0)
		r = ticket_open_to_read(dir->fd, &ret->tickets);
	if (r < 0) {
		end_recorder_release(ret);
		return r;
	}
	ret->lease = lease_of_ticket(number, ticket, ticket->turn_ms, 0);
	(void)job_name_complete(
		dir, ticket->owner.token, ret->lease.name_hash, ret->lease.name);
	text_copy(ret->lease.recorded_by, sizeof(ret->lease.recorded_by),
		RECORDER_WATCHDOG);
	return 0;
}

/*
 * Reads the lease as its record is now.  Returns false if the record is gone or cannot be read.
 */
static bool recorder_read(struct end_recorder *recorder, struct lease *ret)
{
	unsigned at = 0;
	bool is_locked, is_there;

	if (recorder->file.fd < 0)
		return false;
	/* without the lock a record that is just being written would seem to be broken */
	is_locked = lease_lock(&recorder->file, clock_boot_ms() + LOCK_TRY_MS) == 0;
	is_there = lease_find(&recorder->file, recorder->token, ret, &at) == 0 && at;
	if (is_locked)
		lease_unlock(&recorder->file);
	return is_there;
}

int64_t end_recorder_limit_ms(struct end_recorder *recorder, int64_t limit_ms)
{
	struct lease lease;

	return recorder_read(recorder, &lease) ? max_i64(limit_ms, lease.limit_ms)
					       : limit_ms;
}

bool end_recorder_is_cancelled(struct end_recorder *recorder, uint32_t *ret_uid)
{
	struct lease lease;
	uint64_t uid;

	if (recorder->tickets.fd >= 0)
		return ticket_find_cancel(&recorder->tickets, lease_job(&recorder->lease),
			recorder->lease.owner.uid, ret_uid);
	if (!recorder_read(recorder, &lease) ||
		parse_u64(lease.cancelled_by, UINT32_MAX, &uid, NULL) < 0)
		return false;
	*ret_uid = (uint32_t)uid;
	return true;
}

int end_recorder_give_back(struct end_recorder *recorder, int64_t until_ms)
{
	struct lease lease;
	unsigned at = 0;
	int r = lease_lock(&recorder->file, until_ms);

	if (r != 0)
		return r;
	r = lease_find(&recorder->file, recorder->token, &lease, &at);
	if (r == 0 && at && !lease.released_ms) {
		lease.released_ms = clock_boot_ms();
		r = lease_write(&recorder->file, at, &lease);
	}
	lease_unlock(&recorder->file);
	return r;
}

int64_t end_record_limit_ms(const struct statedir *dir, const struct gpuset *gpus,
	const char *token, int64_t limit_ms)
{
	struct end_recorder recorder;

	if (end_recorder_open(dir, gpus, "", token, &recorder) < 0)
		return limit_ms;
	limit_ms = end_recorder_limit_ms(&recorder, limit_ms);
	end_recorder_release(&recorder);
	return limit_ms;
}

void end_recorder_release(struct end_recorder *recorder)
{
	lease_release(&recorder->file);
	history_release(&recorder->history);
	close_fd(&recorder->usage_fd);
	ticket_release(&recorder->tickets);
}

void end_record_write(
	struct snapshot *view, const char *token, const char *how, const char *by)
{
	struct snapshot_lease *over = snapshot_find_token(view, token);
	struct end_recorder recorder;
	char names[64];

	if (!over || !over->is_over)
		return;
	end_record_name_gpus(view, &over->lease.gpus, names, sizeof(names));
	if (end_recorder_open(view->dir, &over->lease.gpus, names, token, &recorder) < 0)
		return;
	recorder.is_beside = true;
	(void)!end_recorder_write(&recorder, over->over_ms,
		&(struct end_facts){
			.status = over->status, .how = how, .by = how ? by : NULL },
		clock_boot_ms() + LOCK_TRY_MS);
	end_recorder_release(&recorder);
}

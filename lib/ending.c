#include <errno.h>

#include "clock.h"
#include "ending.h"

enum { LOCK_TRY_MS = 50 };

void ending_name_gpus(
	const struct snapshot *view, const struct gpuset *set, char *out, size_t size)
{
	struct text text = text_on(out, size);

	gpuset_for_each (slot, set)
		text_addf(&text, "%s%s", text.used ? "," : "",
			snapshot_gpu_name(view, (unsigned)slot).text);
}

static void tell_status(int status, struct history_end *end)
{
	if (status >= 0)
		(void)snprintf(end->status, sizeof(end->status), "%d", status & 0xff);
}

void ending_describe(const struct snapshot *view, const struct snapshot_lease *over,
	struct history_end *end)
{
	const struct lease *lease = &over->lease;

	history_describe(lease, over->alive_ms ? over->alive_ms : lease->since_ms,
		over->over_ms, end);
	ending_name_gpus(view, &lease->gpus, end->gpus, sizeof(end->gpus));
	tell_status(over->status, end);
	if (!over->is_of_this_boot) {
		/* its clock is not ours: all that is known is that it is over by now */
		end->since_ms = end->alive_ms = 0;
		end->gone_ms = clock_real_ms();
		text_copy(end->how, sizeof(end->how), HISTORY_REBOOT);
	} else if (over->is_cancelled) {
		text_copy(end->how, sizeof(end->how), HISTORY_CANCEL);
		(void)snprintf(end->by, sizeof(end->by), "%u", over->cancelled_by);
	} else if (lease->limit_ms && !over->is_orphaned &&
		   over->over_ms >= lease->since_ms + lease->limit_ms &&
		   over->alive_ms >= lease->since_ms + lease->limit_ms) {
		text_copy(end->how, sizeof(end->how), HISTORY_LIMIT);
	} else if (lease->is_supervised && (!over->is_orphaned || over->status < 0)) {
		/* it tells its end itself, unless it is killed; its own status is not the job's */
		text_copy(end->how, sizeof(end->how), HISTORY_LOST);
		end->status[0] = '\0';
	}
}

void ending_tell_leaseless(const struct statedir *dir, uint64_t number,
	const struct ticket *ticket, int64_t since_ms, const struct ending_facts *facts)
{
	int64_t now_ms = clock_boot_ms();
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
	struct history_end end;

	text_copy(none.user, sizeof(none.user), ticket->user);
	text_copy(none.name, sizeof(none.name), ticket->request.name);
	text_copy(none.command, sizeof(none.command), ticket->request.command);
	history_describe(&none, now_ms, now_ms, &end);
	if (!since_ms)
		end.since_ms = 0; /* it never got any */
	ending_add_facts(facts, &end);
	(void)!history_append(dir, &end);
}

void ending_tell(const struct snapshot *view, const struct snapshot_lease *over)
{
	struct history_end end;

	ending_describe(view, over, &end);
	end.is_provisional = over->is_of_this_boot && over->lease.recorded_by[0];
	(void)!history_append(view->dir, &end);
}

void ending_add_facts(const struct ending_facts *facts, struct history_end *end)
{
	tell_status(facts->status, end);
	text_copy(end->how, sizeof(end->how), facts->how ? facts->how : "");
	text_copy(end->by, sizeof(end->by), facts->by ? facts->by : "");
	end->log_is_full = facts->log_is_full;
	text_copy(end->peaks, sizeof(end->peaks), facts->peaks);
	text_copy(end->utilization, sizeof(end->utilization), facts->utilization);
}

/* Finds the record of the lease in its file: record *@ret_at, 0: it is not there. */
static int find_record(struct ending *ending, struct lease *ret, unsigned *ret_at)
{
	static char raw[LEASE_FILE_BYTES];
	unsigned records = 0;
	int r = lease_read(&ending->file, raw, &records);

	*ret_at = 0;
	for (unsigned at = 1; at <= records && r >= 0 && !*ret_at; at++)
		if (lease_decode(raw, at, ret) == LEASE_RECORD &&
			strcmp(ret->owner.token, ending->token) == 0)
			*ret_at = at;
	return r < 0 ? r : 0;
}

static int tell_end(struct ending *ending, const struct lease *lease, int64_t gone_ms,
	const struct ending_facts *facts, bool is_exact)
{
	struct history_end end;

	history_describe(lease, gone_ms, gone_ms, &end);
	text_copy(end.gpus, sizeof(end.gpus), ending->gpus);
	ending_add_facts(facts, &end);
	end.is_exact = is_exact;
	end.is_provisional = ending->is_beside && lease->recorded_by[0];
	return history_write(&ending->history, &end);
}

/* For a recorder whose record is gone or cannot be marked: appends the exact line. */
static int tell_exact(
	struct ending *ending, int64_t gone_ms, const struct ending_facts *facts)
{
	int r;

	if (!ending->lease.recorded_by[0] || ending->is_beside)
		return 0;
	r = tell_end(ending, &ending->lease, gone_ms, facts, true);
	if (r < 0)
		history_mark_missing(&ending->history);
	return r;
}

/* With the file locked: tells the end unless that was done, and marks the record. */
static int record_locked(
	struct ending *ending, int64_t gone_ms, const struct ending_facts *facts)
{
	struct lease lease;
	unsigned at;
	int r = find_record(ending, &lease, &at);

	if (r < 0 || !at)
		return tell_exact(ending, gone_ms, facts);
	if (lease.is_recorded)
		return 0;
	r = tell_end(ending, &lease, gone_ms, facts, false);
	if (r < 0)
		return r;
	lease.is_recorded = 1;
	(void)!lease_write(&ending->file, at, &lease);
	return 0;
}

int ending_record_open(struct ending *ending, int64_t gone_ms,
	const struct ending_facts *facts, int64_t until_ms)
{
	int r;

	if (lease_lock(&ending->file, until_ms) != 0)
		return tell_exact(ending, gone_ms, facts);
	r = record_locked(ending, gone_ms, facts);
	lease_unlock(&ending->file);
	return r;
}

int ending_open(const struct statedir *dir, const struct gpuset *gpus, const char *names,
	const char *token, struct ending *ret)
{
	int slot = gpuset_next(gpus, 0), r;
	struct lease lease;
	unsigned at;

	*ret = (struct ending){ .file = { .fd = -1 }, .history = HISTORY_FILE_NONE };
	if (slot < 0)
		return -ENOENT;
	r = lease_open_slot(dir, (uint32_t)slot, &ret->file);
	if (r != 0)
		return r < 0 ? r : -ENOENT;
	r = history_open(dir, &ret->history);
	if (r < 0) {
		ending_release(ret);
		return r;
	}
	text_copy(ret->token, sizeof(ret->token), token);
	text_copy(ret->gpus, sizeof(ret->gpus), names);
	r = find_record(ret, &lease, &at);
	if (r == 0 && at)
		ret->lease = lease;
	return 0;
}

void ending_release(struct ending *ending)
{
	lease_release(&ending->file);
	history_release(&ending->history);
}

void ending_record(
	struct snapshot *view, const char *token, const char *how, const char *by)
{
	struct snapshot_lease *over = snapshot_find_token(view, token);
	struct ending ending;
	char names[64];

	if (!over || !over->is_over)
		return;
	ending_name_gpus(view, &over->lease.gpus, names, sizeof(names));
	if (ending_open(view->dir, &over->lease.gpus, names, token, &ending) < 0)
		return;
	ending.is_beside = true;
	(void)!ending_record_open(&ending, over->over_ms,
		&(struct ending_facts){ .status = over->status, .how = how, .by = by },
		clock_boot_ms() + LOCK_TRY_MS);
	ending_release(&ending);
}

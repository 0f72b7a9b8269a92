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
		/* its clock is not ours */
		end->since_ms = end->alive_ms = end->gone_ms = 0;
		text_copy(end->how, sizeof(end->how), "reboot");
	} else if (over->is_cancelled) {
		text_copy(end->how, sizeof(end->how), "cancel");
		(void)snprintf(end->by, sizeof(end->by), "%u", over->cancelled_by);
	} else if (lease->limit_ms &&
		   over->over_ms >= lease->since_ms + lease->limit_ms &&
		   over->alive_ms >= lease->since_ms + lease->limit_ms) {
		text_copy(end->how, sizeof(end->how), "limit");
	}
}

void ending_tell(const struct snapshot *view, const struct snapshot_lease *over)
{
	struct history_end end;

	ending_describe(view, over, &end);
	(void)!history_append(view->dir->fd, &end);
}

/* With the file locked: tells the one lease, if it is there and was not told, and marks it. */
static void record_locked(struct ending *ending, int64_t gone_ms, int status,
	const char *how, const char *by)
{
	static char raw[LEASE_FILE_BYTES];
	unsigned records = 0;

	if (lease_read(&ending->file, raw, &records) != 0)
		return;
	for (unsigned at = 1; at <= records; at++) {
		struct history_end end;
		struct lease lease;

		if (lease_decode(raw, at, &lease) != LEASE_RECORD || lease.is_recorded ||
			strcmp(lease.owner.token, ending->token) != 0)
			continue;
		history_describe(&lease, gone_ms, gone_ms, &end);
		text_copy(end.gpus, sizeof(end.gpus), ending->gpus);
		tell_status(status, &end);
		text_copy(end.how, sizeof(end.how), how ? how : "");
		text_copy(end.by, sizeof(end.by), by ? by : "");
		(void)!history_write(ending->history_fd, &end);
		lease.is_recorded = 1;
		(void)!lease_write(&ending->file, at, &lease);
	}
}

void ending_record_open(struct ending *ending, int64_t gone_ms, int status,
	const char *how, const char *by)
{
	if (lease_lock(&ending->file, clock_boot_ms() + LOCK_TRY_MS) != 0)
		return;
	record_locked(ending, gone_ms, status, how, by);
	lease_unlock(&ending->file);
}

int ending_open(int dirfd, const struct gpuset *gpus, const char *names,
	const char *token, struct ending *ret)
{
	int slot = gpuset_next(gpus, 0), r;

	*ret = (struct ending){ .file = { .fd = -1 }, .history_fd = -1 };
	if (slot < 0)
		return -ENOENT;
	r = lease_open_slot(dirfd, (uint32_t)slot, &ret->file);
	if (r != 0)
		return r < 0 ? r : -ENOENT;
	ret->history_fd = history_open(dirfd);
	if (ret->history_fd < 0) {
		lease_release(&ret->file);
		return ret->history_fd;
	}
	text_copy(ret->token, sizeof(ret->token), token);
	text_copy(ret->gpus, sizeof(ret->gpus), names);
	return 0;
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
	if (ending_open(view->dir->fd, &over->lease.gpus, names, token, &ending) < 0)
		return;
	ending_record_open(&ending, over->over_ms, over->status, how, by);
	lease_release(&ending.file);
	close_fd(&ending.history_fd);
}

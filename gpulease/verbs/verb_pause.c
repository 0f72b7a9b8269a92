/*
 * --pause and --resume: forbid and allow that GPUs are leased.  A pause is kept in record 0 of the
 * lease file of the GPU, the only record that is valid after a reboot.  A pause with a time, or
 * that exempts users, is a window (windows.h).  Each change leaves an event in the history.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>

#include "bell.h"
#include "broker.h"
#include "clock.h"
#include "commit.h"
#include "config_file.h"
#include "context.h"
#include "diag.h"
#include "end_record.h"
#include "exitcodes.h"
#include "history.h"
#include "inventory.h"
#include "namespaces.h"
#include "privacy.h"
#include "rlimits.h"
#include "operands.h"
#include "parse.h"
#include "verbs.h"
#include "windows.h"

enum { LOCK_MS = 2000 };

static struct context context;
static struct broker broker;

static bool pause_is_member(gid_t group)
{
	gid_t groups[1024];
	int count = getgroups(ARRAY_SIZE(groups), groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return getgid() == group;
}

/*
 * Whether this user may pause GPUs: in the set-group-ID form only root and the group that the
 * configuration names, else all users who can write the files.
 */
static bool pause_is_allowed(void)
{
	const char *name = context.config.admin_group;
	const struct group *entry;
	uint64_t number;

	if (!context.dir.is_hardened || getuid() == 0)
		return true;
	if (!name[0])
		return false;
	if (parse_u64(name, UINT32_MAX, &number, NULL) == 0)
		return pause_is_member((gid_t)number);
	entry = getgrnam(name);
	return entry && pause_is_member(entry->gr_gid);
}

/* Reads the GPUs into @set.  Returns 0, or an exit status after a message. */
static int pause_read_operands(const struct verb_settings *verb, struct gpuset *set)
{
	struct operand_walk walk =
		OPERAND_WALK(verb->operands, verb->operand_count, OPERAND_GPU);
	struct operand operand;
	struct why why;
	int r;

	while ((r = operand_next(&walk, &operand, &why)) == 0) {
		if (inventory_by_operand(&broker.view, &operand, set, &why) < 0) {
			diag("%s", why.text);
			return EXIT_NOT_DONE;
		}
	}
	if (r < 0)
		diag("%s", why.text);
	return r < 0 ? EXIT_MISUSE : 0;
}

/*
 * Leaves the event @how in the history: the GPUs, and what @window says.  A failure to write it
 * changes nothing (history.h).
 */
static void pause_record(
	const char *how, const struct gpuset *gpus, const struct window *window)
{
	struct history_end event = {
		.uid = namespaces_own_user(),
		.gpu_count = gpuset_count(gpus),
		.gone_ms = clock_real_ms(),
		.since_ms = window->from_ms,
		.until_ms = window->until_ms,
	};
	struct text user = TEXT_ON(event.user);

	if (gpuset_is_empty(gpus))
		return;
	text_copy(event.how, sizeof(event.how), how);
	describe_user(event.uid, NULL, &user);
	text_copy(event.but, sizeof(event.but), window->but);
	text_copy(event.command, sizeof(event.command), window->reason);
	end_record_name_gpus(&broker.view, gpus, event.gpus, sizeof(event.gpus));
	(void)!history_append(&context.dir, &event);
}

/*
 * Changes @gpu.  A second pause without a reason keeps the user and the reason of the first.
 * Returns whether anything has changed.
 */
static bool pause_set(struct gpu_record *gpu, bool pause, const struct window *as)
{
	if (!gpu->is_paused == !pause && !(pause && as->reason[0]))
		return false;
	gpu->is_paused = pause;
	text_copy(gpu->paused_by, sizeof(gpu->paused_by), pause ? as->by : "");
	text_copy(gpu->reason, sizeof(gpu->reason), pause ? as->reason : "");
	return true;
}

/*
 * Pauses or resumes one GPU.  Reads record 0 again under the lock, so that its other fields keep
 * what other processes wrote meanwhile.  Adds the GPU to @changed if it was not as it should be.
 * Returns 0, or an exit status after a message.
 */
static int pause_change(
	unsigned slot, bool pause, const struct window *as, struct gpuset *changed)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &broker.view.gpus[slot].file;
	struct gpu_record *gpu = &file->gpu;
	bool is_changed = false;
	unsigned records;
	int r = file->fd < 0 ? -ENOENT : lease_lock(file, clock_boot_ms() + LOCK_MS);

	if (r == LEASE_LOCKED) {
		uint32_t holder = lease_lock_holder(file);
		char pid[12] = "?";

		if (holder)
			(void)snprintf(pid, sizeof(pid), "%u", holder);
		diag("GPU %s is locked by pid %s; try again later",
			snapshot_gpu_name(&broker.view, slot).text, pid);
		return EXIT_NOT_DONE;
	}
	if (r == 0)
		r = lease_read(file, raw, &records);
	if (r == 0) {
		is_changed = pause_set(gpu, pause, as);
		r = lease_write_gpu(file, gpu);
	}
	/* a pause must survive a crash of the machine */
	if (r == 0 && fdatasync(file->fd) < 0)
		r = -errno;
	lease_unlock(file);
	if (r == 0 && is_changed)
		gpuset_add(changed, slot);
	if (r != 0)
		diag("cannot change GPU %s: %s",
			snapshot_gpu_name(&broker.view, slot).text,
			r < 0 ? strerror(-r) : "its lease file cannot be read");
	return r != 0 ? EXIT_MISUSE : 0;
}

/*
 * Opens the lease files, and probes, because a GPU may not have a file yet.  Returns 0, or an exit
 * status after a message.
 */
static int pause_open(struct settings *settings)
{
	int r;

	rlimits_raise();
	r = context_open(settings, &context);
	if (r != 0)
		return r;
	if (!pause_is_allowed()) {
		if (context.config.admin_group[0])
			diag("only root and members of group %s may pause and resume GPUs",
				context.config.admin_group);
		else
			diag("only root may pause and resume GPUs; admin-group in %s can "
			     "name a group that may, too",
				CONFIG_FILE);
		return EXIT_NOT_DONE;
	}
	r = broker_init(&broker, &context.dir, &context.prober);
	if (r == 0)
		r = broker_survey(&broker);
	if (r == 0 && (context.prober.nvidia_smi || settings->machine.sim_gpus))
		r = broker_probe(
			&broker, clock_boot_ms() + context_patience_ms(&context));
	if (r < 0)
		diag("cannot use the state in '%s': %s", context.dir.path, strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/* --- windows ----------------------------------------------------------------------- */

/* Returns the number of user @name, which may be a number; -1: there is no such user. */
static int64_t pause_user_number(const char *name)
{
	const struct passwd *entry;
	uint64_t number;

	if (parse_u64(name, UINT32_MAX - 1, &number, NULL) == 0)
		return (int64_t)number;
	entry = getpwnam(name);
	return entry ? (int64_t)entry->pw_uid : -1;
}

/* Reads the users of --but into @window.  Returns 0, or an exit status after a message. */
static int pause_read_users(const char *list, struct window *window)
{
	struct text but = TEXT_ON(window->but);

	for (unsigned count = 0; list && *list; count++) {
		size_t size = strcspn(list, ",");
		char name[64];
		int64_t uid;

		if (count == WINDOW_USERS_MAX) {
			diag("--but names more than %d users", WINDOW_USERS_MAX);
			return EXIT_MISUSE;
		}
		(void)snprintf(name, sizeof(name), "%.*s", (int)size, list);
		uid = size < sizeof(name) ? pause_user_number(name) : -1;
		if (uid < 0) {
			diag("--but: there is no user '%s'; write names or numbers: "
			     "alice,1001",
				quote(name).text);
			return EXIT_NOT_DONE;
		}
		text_addf(&but, "%s%lld", count ? "," : "", (long long)uid);
		list += size + (list[size] == ',');
	}
	return 0;
}

/* Sets what --pause asks for, except for the GPU.  Returns 0, or an exit status. */
static int pause_make_window(const struct verb_settings *verb, struct window *window)
{
	struct text by = TEXT_ON(window->by);

	window->from_ms = verb->at_ms ? verb->at_ms : clock_real_ms();
	if (verb->for_ms >= 0)
		window->until_ms = window->from_ms + verb->for_ms;
	if (window->until_ms && window->until_ms <= clock_real_ms()) {
		diag("that window is over; give a later --at or a longer --for");
		return EXIT_MISUSE;
	}
	describe_user(getuid(), NULL, &by);
	text_copy(
		window->reason, sizeof(window->reason), verb->reason ? verb->reason : "");
	return pause_read_users(verb->but, window);
}

/*
 * Records that the windows in @before of the GPUs in @set were removed: an event for each window.
 * Returns how many windows that are.
 */
static unsigned pause_record_removed(struct windows *before, const struct gpuset *set)
{
	unsigned removed = 0;

	for (size_t i = 0; i < before->count; i++) {
		struct window window = before->all[i];
		struct gpuset gpus = GPUSET_NONE;

		for (size_t k = i; k < before->count && window.id; k++) {
			struct window *other = &before->all[k];
			int slot = snapshot_find_gpu(&broker.view, other->uuid);

			if (other->id != window.id || slot < 0 ||
				!gpuset_has(set, (unsigned)slot))
				continue;
			gpuset_add(&gpus, (unsigned)slot);
			other->id = 0;
		}
		removed += !gpuset_is_empty(&gpus);
		pause_record(HISTORY_NO_WINDOW, &gpus, &window);
	}
	return removed;
}

/*
 * Removes the windows of the GPUs in @set that are to be resumed, or adds @added (NULL: none) for
 * each of them.  Returns 0, or an exit status after a message.
 */
static int pause_change_windows(const struct gpuset *set, const struct window *added)
{
	struct windows windows = WINDOWS_NONE, before = WINDOWS_NONE;
	struct window window = added ? *added : (struct window){ .id = 0 };
	int64_t real_ms = clock_real_ms();
	unsigned removed = 0;
	int r;

	/* nothing to remove: a resumed GPU mostly has no window */
	if (!added && !broker.view.windows.count)
		return 0;
	r = windows_lock(&context.dir, clock_boot_ms() + LOCK_MS);
	if (r == 0)
		r = windows_read(&context.dir, &before);
	if (r == 0)
		r = windows_read(&context.dir, &windows);
	windows_remove(&before, NULL, real_ms);
	windows_remove(&windows, NULL, real_ms);
	window.id = windows_next_id(&windows);
	gpuset_for_each (slot, set) {
		const char *uuid = broker.view.gpus[slot].file.gpu.uuid;

		text_copy(window.uuid, sizeof(window.uuid), uuid);
		if (r == 0 && added)
			r = windows_add(&windows, &window);
		else if (r == 0)
			windows_remove(&windows, uuid, real_ms);
	}
	if (r == 0)
		r = windows_write(&context.dir, &windows);
	windows_unlock(&context.dir);
	if (r == 0 && added)
		pause_record(HISTORY_WINDOW, set, added);
	else if (r == 0)
		removed = pause_record_removed(&before, set);
	windows_release(&before);
	windows_release(&windows);
	if (r < 0)
		diag("cannot change the windows: %s",
			r == -E2BIG ? "there are too many; resume some" : strerror(-r));
	else if (removed)
		note("removed %u window%s of these GPUs", removed,
			removed == 1 ? "" : "s");
	return r < 0 ? EXIT_MISUSE : 0;
}

/* --- all of it --------------------------------------------------------------------- */

/*
 * Pauses or resumes the GPUs in @set, and records which of them were not as they should be.
 * Returns 0, or an exit status after a message.
 */
static int pause_change_gpus(
	const struct gpuset *set, bool pause, const struct window *as)
{
	struct gpuset changed = GPUSET_NONE;
	int r = 0;

	gpuset_for_each (slot, set) {
		r = pause_change((unsigned)slot, pause, as, &changed);
		if (r != 0)
			break;
	}
	pause_record(pause ? HISTORY_PAUSE : HISTORY_RESUME, &changed, as);
	return r;
}

static int pause_change_all(struct settings *settings, bool pause)
{
	const struct verb_settings *verb = &settings->verb;
	bool is_window = verb->at_ms || verb->for_ms >= 0 || verb->but;
	struct gpuset set = GPUSET_NONE;
	struct window window = { .id = 0 };
	int r;

	if (settings->verb.reason && strlen(settings->verb.reason) >= REASON_SIZE) {
		diag("--reason has %zu bytes, and %d are kept; shorten it",
			strlen(settings->verb.reason), REASON_SIZE - 1);
		return EXIT_MISUSE;
	}
	r = pause_open(settings);
	if (r == 0)
		r = pause_read_operands(verb, &set);
	if (r == 0)
		r = pause_make_window(verb, &window);
	if (r == 0 && (is_window || !pause))
		r = pause_change_windows(&set, is_window ? &window : NULL);
	if (r != 0)
		return r;
	if (!is_window)
		r = pause_change_gpus(&set, pause, &window);
	bell_ring_all(
		&context.dir); /* after the change: waiters look as soon as they wake */
	return r;
}

int verb_pause(struct settings *settings)
{
	return pause_change_all(settings, true);
}

int verb_resume(struct settings *settings)
{
	return pause_change_all(settings, false);
}

/*
 * --pause and --resume: whether a GPU may be leased.  Kept in record 0 of its lease file, the
 * one thing that outlives a reboot.
 */
#include <errno.h>
#include <grp.h>

#include "broker.h"
#include "clock.h"
#include "commit.h"
#include "config_file.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "inventory.h"
#include "limits.h"
#include "operands.h"
#include "parse.h"
#include "verbs.h"

enum { LOCK_MS = 2000 };

static struct context context;
static struct broker broker;

static bool is_member(gid_t group)
{
	gid_t groups[1024];
	int count = getgroups(ARRAY_SIZE(groups), groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return getgid() == group;
}

/* With the program's group lent to everybody, only root and whom the configuration names. */
static bool is_allowed(void)
{
	const char *name = context.config.admin_group;
	const struct group *entry;
	uint64_t number;

	if (!context.dir.is_hardened || getuid() == 0)
		return true;
	if (!name[0])
		return false;
	if (parse_u64(name, UINT32_MAX, &number, NULL) == 0)
		return is_member((gid_t)number);
	entry = getgrnam(name);
	return entry && is_member(entry->gr_gid);
}

static int read_operands(const struct settings *settings, struct gpuset *set)
{
	struct operand_walk walk =
		OPERAND_WALK(settings->operands, settings->operand_count, OPERAND_GPU);
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

/* What was said of a pause stays, and by whom, until somebody says something else. */
static void set_pause(struct gpu_record *gpu, bool pause, const char *reason)
{
	struct text by;

	if (pause && gpu->is_paused && !reason)
		return;
	gpu->is_paused = pause;
	by = TEXT_ON(gpu->paused_by); /* which empties it */
	gpu->reason[0] = '\0';
	if (!pause)
		return;
	describe_user(getuid(), NULL, &by);
	text_copy(gpu->reason, sizeof(gpu->reason), reason ? reason : "");
}

/* Changes one GPU.  What else record 0 says stays as it is now, under the lock. */
static int change(unsigned slot, bool pause, const char *reason)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &broker.view.gpus[slot].file;
	struct gpu_record *gpu = &file->gpu;
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
		set_pause(gpu, pause, reason);
		r = lease_write_gpu(file, gpu);
	}
	/* a pause is meant to outlive a crash of the machine */
	if (r == 0 && fdatasync(file->fd) < 0)
		r = -errno;
	lease_unlock(file);
	if (r != 0)
		diag("cannot change GPU %s: %s",
			snapshot_gpu_name(&broker.view, slot).text,
			r < 0 ? strerror(-r) : "its lease file cannot be read");
	return r != 0 ? EXIT_MISUSE : 0;
}

/* The lease files of this boot, after a probe where they do not suffice. */
static int open_all(struct settings *settings)
{
	int r;

	limits_raise();
	r = context_open(settings, &context);
	if (r != 0)
		return r;
	if (!is_allowed()) {
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
	if (r == 0 && (context.prober.nvidia_smi || settings->sim_gpus))
		r = broker_probe(
			&broker, clock_boot_ms() + context_patience_ms(&context));
	if (r < 0)
		diag("cannot use the state in '%s': %s", context.dir.path, strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

static int change_all(struct settings *settings, bool pause)
{
	struct gpuset set = GPUSET_NONE;
	int r;

	if (settings->reason && strlen(settings->reason) >= REASON_SIZE) {
		diag("--reason has %zu bytes, and %d are kept; shorten it",
			strlen(settings->reason), REASON_SIZE - 1);
		return EXIT_MISUSE;
	}
	r = open_all(settings);
	if (r == 0)
		r = read_operands(settings, &set);
	if (r != 0)
		return r;
	gpuset_for_each (slot, &set) {
		r = change((unsigned)slot, pause, settings->reason);
		if (r != 0)
			break;
	}
	beacon_ring_all(&context.dir); /* committed first, then told */
	return r;
}

int verb_pause(struct settings *settings)
{
	return change_all(settings, true);
}

int verb_resume(struct settings *settings)
{
	return change_all(settings, false);
}

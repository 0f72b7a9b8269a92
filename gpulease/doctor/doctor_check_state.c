/*
 * Checks of what lies in the state directory: files, leases, the queue, the history.  Declared in
 * doctor_checks.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "live_fifo.h"
#include "doctor_checks.h"
#include "doctor_facts.h"
#include "inventory.h"
#include "history.h"
#include "privacy.h"
#include "show_cells.h"

enum {
	LITTER_MANY = 1000, /* fewer files are left to the next sweep */
	NAMES_MAX = 100000, /* names of one folder to read */
	FILES_TOLD =
		16, /* bad files with a finding each; one finding counts the others */
};

/*
 * Whether the state could be read; adds a finding if not.  The checks of the directory and of the
 * queue say why.
 */
static bool has_view(struct doctor *doctor)
{
	if (!doctor->has_view)
		(void)doctor_add(&doctor->report, DOCTOR_WARN, "not known without %s",
			doctor->directory_error ? "the state directory" : "the queue");
	return doctor->has_view;
}

/* Calls @act with every name in @folder of the state directory, at most NAMES_MAX. */
static void for_each_name(struct doctor *doctor, const char *folder,
	void (*act)(struct doctor *doctor, int fd, const char *folder, const char *name))
{
	int fd = openat(doctor->context.dir.fd, folder,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	for (; count < NAMES_MAX && (entry = readdir(dir)); count++)
		if (entry->d_name[0] != '.')
			act(doctor, fd, folder, entry->d_name);
	(void)closedir(dir);
}

/* --- files ------------------------------------------------------------------------- */

struct file_counts {
	unsigned files, bad;
};

static struct file_counts files;

/*
 * Returns the type that @name in @folder must have: S_IFREG or S_IFDIR; 0: gpulease does not use
 * it.
 */
static mode_t file_type(const char *folder, const char *name)
{
	static const struct {
		const char *name;
		mode_t type;
	} known[] = {
		{ "tickets", S_IFREG },
		{ "history", S_IFREG },
		{ "history.1", S_IFREG },
		{ "probe", S_IFREG },
		{ "probe.lock", S_IFREG },
		{ "topology", S_IFREG },
		{ "topology.lock", S_IFREG },
		{ "gpu", S_IFDIR },
		{ FIFO_LIVE, S_IFDIR },
		{ FIFO_BELL, S_IFDIR },
	};

	if (strcmp(folder, "gpu") == 0)
		return strstr(name, ".lease") ? S_IFREG : 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].type;
	return 0;
}

static void check_file(
	struct doctor *doctor, int fd, const char *folder, const char *name)
{
	mode_t type = file_type(folder, name);
	struct doctor_finding *finding;
	char path[PATH_MAX + 300];
	const char *trouble;
	struct stat st;

	if (!type || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	files.files++;
	trouble = state_file_trouble(&st, type, &doctor->stat);
	if (!trouble || ++files.bad > FILES_TOLD)
		return;
	(void)snprintf(path, sizeof(path), "%s%s%s/%s", doctor->path,
		folder[0] == '.' ? "" : "/", folder[0] == '.' ? "" : folder, name);
	finding = doctor_add(&doctor->report, DOCTOR_FAIL,
		"'%s' %s (owner %u, group %u, mode %04o)", path, trouble,
		(unsigned)st.st_uid, (unsigned)st.st_gid, (unsigned)st.st_mode & 07777);
	if ((st.st_mode & S_IFMT) != type || (type == S_IFREG && st.st_nlink > 1))
		doctor_remedy(
			finding, "when no job runs, remove it: gpulease makes it again");
	else
		doctor_remedy(finding, "chown --reference=%s %s && chmod %s %s",
			doctor->path, path, type == S_IFDIR ? "2770" : "0660", path);
}

/* Adds a finding if the lease file of @slot is damaged.  Returns whether it is. */
static bool check_lease_file(struct doctor *doctor, unsigned slot)
{
	const struct snapshot *view = &doctor->reader.snapshot;
	const struct snapshot_gpu *gpu = &view->gpus[slot];
	struct doctor_finding *finding;

	if (gpu->is_unusable) {
		finding = doctor_add(&doctor->report, DOCTOR_FAIL,
			"'%s/gpu/slot.%u' leads to no lease file, so its GPU is not leased",
			doctor->path, slot);
		doctor_remedy(
			finding, "when no job runs on that GPU, remove what is there");
	} else if (snapshot_withholds(view, gpu)) {
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"the lease file of GPU %s is damaged and a live job has lost its "
			"lease, so the GPU is not leased",
			snapshot_gpu_name(view, slot).text);
		doctor_remedy(
			finding, "when that job has ended, the next job mends the file");
	} else if (gpu->is_doubtful) {
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"the lease file of GPU %s is damaged, but no lease was lost",
			snapshot_gpu_name(view, slot).text);
		doctor_remedy(finding, "the next job mends it");
	} else {
		return false;
	}
	return true;
}

/* Adds a finding if GPUs have no slot.  Returns whether there are any. */
static bool check_slots(struct doctor *doctor)
{
	unsigned count = inventory_count_slotless(&doctor->reader.snapshot);

	if (count)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_FAIL,
				      "%u GPU%s cannot be leased: all 128 slots in "
				      "'%s/gpu' are used",
				      count, count == 1 ? "" : "s", doctor->path),
			"restart the machine: the first job then reuses the slots of GPUs "
			"that are gone; or, when no job runs or waits, empty '%s/gpu': gpulease "
			"makes it again, without the pauses",
			doctor->path);
	return count > 0;
}

void check_files(struct doctor *doctor)
{
	const struct snapshot *view = &doctor->reader.snapshot;

	if (doctor->directory_error != 0 || !doctor->has_stat) {
		(void)has_view(doctor);
		return;
	}
	files = (struct file_counts){ 0 };
	for_each_name(doctor, ".", check_file);
	for_each_name(doctor, "gpu", check_file);
	if (files.bad > FILES_TOLD)
		(void)doctor_add(&doctor->report, DOCTOR_FAIL,
			"%u files in all have such faults", files.bad);
	for (unsigned slot = 0; doctor->has_view && slot < view->slots; slot++)
		files.bad += check_lease_file(doctor, slot);
	if (doctor->has_view)
		files.bad += check_slots(doctor);
	if (!files.bad)
		(void)doctor_add(
			&doctor->report, DOCTOR_OK, "%u, all in order", files.files);
}

/* --- leases ------------------------------------------------------------------------ */

void check_locks(struct doctor *doctor)
{
	const struct snapshot *view = &doctor->reader.snapshot;
	unsigned count = 0;

	if (!has_view(doctor))
		return;
	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];
		struct doctor_finding *finding;
		char process[160] = "";
		struct text text = TEXT_ON(process);
		uint32_t pid;

		if (gpu->file.fd < 0 || gpu->locked_until_ms == 0)
			continue;
		count++;
		pid = lease_lock_holder(&gpu->file);
		if (!pid)
			continue; /* released since the state was read */
		describe_process(pid, &text);
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"GPU %s is locked by pid %u (%s), for longer than any process needs",
			snapshot_gpu_name(view, slot).text, pid, process);
		doctor_remedy(finding,
			"the process may be stopped: kill -CONT %u, or end it", pid);
	}
	if (count == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "no lease file is locked");
}

void check_leases(struct doctor *doctor)
{
	const struct snapshot *view = &doctor->reader.snapshot;
	unsigned live = 0;

	if (!has_view(doctor))
		return;
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];

		live += !lease->is_dead;
		if (lease->is_dead && !lease->is_over)
			(void)doctor_add(&doctor->report, DOCTOR_OK,
				"job %llu has ended, but lingers: processes that it "
				"left running keep its GPUs until the GPUs have been idle "
				"for a while, or until gpulease --cancel %llu",
				(unsigned long long)lease->lease.ticket,
				(unsigned long long)lease->lease.ticket);
	}
	(void)doctor_add(&doctor->report, DOCTOR_OK, "%u in force", live);
}

void check_pauses(struct doctor *doctor)
{
	const struct snapshot *view = &doctor->reader.snapshot;
	unsigned count = 0;

	if (!has_view(doctor))
		return;
	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct gpu_record *gpu = &view->gpus[slot].file.gpu;

		if (!gpu->is_paused)
			continue;
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"GPU %s is paused by %s%s%s, until gpulease --resume %s",
			snapshot_gpu_name(view, slot).text, gpu->paused_by,
			gpu->reason[0] ? ": " : "", gpu->reason,
			snapshot_gpu_name(view, slot).text);
		count++;
	}
	if (count == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "none");
}

/* --- the queue --------------------------------------------------------------------- */

void check_queue(struct doctor *doctor)
{
	size_t count = doctor->reader.row_count;

	if (doctor->view_trouble.text[0])
		(void)doctor_add_why(&doctor->report, DOCTOR_FAIL, &doctor->view_trouble);
	else if (!has_view(doctor))
		return;
	if (!doctor->has_view)
		return;
	if (doctor->reader.has_broken_row)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "records of '%s/tickets' cannot be read and are "
				      "skipped",
				      doctor->path),
			"when no job waits or runs, remove that file: gpulease makes it "
			"again");
	if (count == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "no ticket waits");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK, "%zu%s ticket%s wait%s",
			count, doctor->reader.has_more_rows ? " and more" : "",
			count == 1 ? "" : "s", count == 1 ? "s" : "");
}

/* --- the history ------------------------------------------------------------------- */

void check_history(struct doctor *doctor)
{
	struct history_gap gap = { .missing = 0 };
	char moment[64];
	struct text text = TEXT_ON(moment);
	int r;

	if (doctor->directory_error != 0) {
		(void)has_view(doctor);
		return;
	}
	r = history_find_gap(doctor->context.dir.fd, &gap);
	if (r < 0) {
		(void)doctor_add(&doctor->report, DOCTOR_WARN,
			"cannot read '%s/history': %s", doctor->path, strerror(-r));
	} else if (!gap.missing) {
		(void)doctor_add(&doctor->report, DOCTOR_OK, "no line is missing");
	} else {
		show_add_date(&text, gap.last_ms);
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "%llu line%s could not be written, the last on %s",
				      (unsigned long long)gap.missing,
				      gap.missing == 1 ? "" : "s", moment),
			"make space where '%s' is; the missing lines stay missing",
			doctor->path);
	}
}

/* --- litter ------------------------------------------------------------------------ */

static unsigned litter;

static void count_litter(
	struct doctor *doctor, int fd, const char *folder, const char *name)
{
	bool is_beacon = strcmp(folder, FIFO_LIVE) == 0 || strcmp(folder, FIFO_BELL) == 0;

	(void)fd;
	/* the owner of a ticket holds its FIFO in live/ open; without it, its bell is unused too */
	litter += strncmp(name, "tmp.", 4) == 0 ||
		  (is_beacon && is_token(name) &&
			  live_fifo_look(&doctor->context.dir, name, NULL) ==
				  LIVE_FIFO_GONE);
}

void check_litter(struct doctor *doctor)
{
	static const char *const folders[] = { ".", "gpu", FIFO_LIVE, FIFO_BELL };
	bool is_much;

	if (!has_view(doctor))
		return;
	litter = 0;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		for_each_name(doctor, folders[i], count_litter);
	is_much = litter > LITTER_MANY;
	doctor_remedy(doctor_add(&doctor->report, is_much ? DOCTOR_WARN : DOCTOR_OK,
			      "%u file%s that no process needs any more", litter,
			      litter == 1 ? "" : "s"),
		"%s",
		is_much ? "gpulease removes them as jobs come; if they stay, users of other "
			  "groups may have left them"
			: "");
}

/*
 * Checks of what lies in the state directory: files, leases, the queue, the history.  Declared in
 * doctor_checks.h.
 */
#include "doctor_checks.h"
#include "doctor_facts.h"
#include "show_cells.h"

enum { LITTER_MANY = 1000 }; /* fewer files are left to the next sweep */

/*
 * Whether the state could be read; adds a finding if not.  The checks of the directory and of the
 * queue say why.
 */
static bool has_view(struct doctor *doctor)
{
	if (!doctor->state.has_view)
		(void)doctor_add(&doctor->report, DOCTOR_WARN, "not known without %s",
			doctor->state.directory_error ? "the state directory"
						      : "the queue");
	return doctor->state.has_view;
}

/* --- files ------------------------------------------------------------------------- */

static void report_file(struct doctor *doctor, const struct doctor_item *item)
{
	const char *directory = doctor->state.path;
	const struct stat *st = &item->stat;
	const char *trouble = state_file_trouble(st, item->type, &doctor->state.stat);
	bool is_other = (st->st_mode & S_IFMT) != item->type ||
			(item->type == S_IFREG && st->st_nlink > 1);
	char path[PATH_MAX + sizeof(item->text)];
	struct doctor_finding *finding;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, item->text);
	finding = doctor_add(&doctor->report, DOCTOR_FAIL,
		"'%s' %s (owner %u, group %u, mode %04o)", path, trouble ? trouble : "",
		(unsigned)st->st_uid, (unsigned)st->st_gid,
		(unsigned)st->st_mode & 07777);
	if (is_other)
		doctor_remedy(
			finding, "when no job runs, remove it: gpulease makes it again");
	else
		doctor_remedy(finding, "chown --reference=%s %s && chmod %s %s",
			directory, path, item->type == S_IFDIR ? "2770" : "0660", path);
}

static void report_lease_file(struct doctor *doctor, const struct doctor_item *item)
{
	struct doctor_finding *finding;

	if (item->kind == DOCTOR_UNUSABLE) {
		finding = doctor_add(&doctor->report, DOCTOR_FAIL,
			"'%s/gpu/slot.%u' leads to no lease file, so its GPU is not leased",
			doctor->state.path, (unsigned)item->number);
		doctor_remedy(
			finding, "when no job runs on that GPU, remove what is there");
	} else if (item->kind == DOCTOR_WITHHELD) {
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"the lease file of GPU %s is damaged and a live job has lost its "
			"lease, so the GPU is not leased",
			item->gpu);
		doctor_remedy(
			finding, "when that job has ended, the next job mends the file");
	} else {
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"the lease file of GPU %s is damaged, but no lease was lost",
			item->gpu);
		doctor_remedy(finding, "the next job mends it");
	}
}

/* Adds a finding if GPUs have no slot. */
static void report_slots(struct doctor *doctor)
{
	unsigned count = doctor->state.slotless;
	const char *path = doctor->state.path;

	if (count)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_FAIL,
				      "%u GPU%s cannot be leased: all 128 slots in "
				      "'%s/gpu' are used",
				      count, count == 1 ? "" : "s", path),
			"restart the machine: the first job then reuses the slots of GPUs "
			"that are gone; or, when no job runs or waits, empty '%s/gpu': gpulease "
			"makes it again, without the pauses",
			path);
}

/* Adds a finding if a record of the windows is damaged.  Returns whether one is. */
static bool check_windows(struct doctor *doctor)
{
	bool is_damaged = doctor->state.windows_broken != 0;

	if (is_damaged)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "records of '%s/gpu/windows' cannot be read and "
				      "keep no GPU",
				      doctor->state.path),
			"keep the GPUs again with gpulease --pause");
	return is_damaged;
}

void check_files(struct doctor *doctor)
{
	const struct doctor_state *state = &doctor->state;
	bool is_bad = state->bad_files || state->slotless;
	const struct doctor_item *item;
	size_t at = 0;

	if (state->directory_error != 0 || !state->has_stat) {
		(void)has_view(doctor);
		return;
	}
	while ((item = doctor_next(doctor, 1u << DOCTOR_FILE, &at)))
		report_file(doctor, item);
	if (state->bad_files > DOCTOR_FILES_TOLD)
		(void)doctor_add(&doctor->report, DOCTOR_FAIL,
			"%u files in all have such faults", state->bad_files);
	at = 0;
	while ((item = doctor_next(doctor,
			1u << DOCTOR_UNUSABLE | 1u << DOCTOR_WITHHELD |
				1u << DOCTOR_DAMAGED,
			&at))) {
		report_lease_file(doctor, item);
		is_bad = true;
	}
	report_slots(doctor);
	is_bad |= check_windows(doctor);
	if (!is_bad)
		(void)doctor_add(
			&doctor->report, DOCTOR_OK, "%u, all in order", state->files);
}

/* --- leases ------------------------------------------------------------------------ */

void check_locks(struct doctor *doctor)
{
	const struct doctor_item *item;
	size_t at = 0;

	if (!has_view(doctor))
		return;
	while ((item = doctor_next(doctor, 1u << DOCTOR_LOCK, &at)))
		doctor_remedy(
			doctor_add(&doctor->report, DOCTOR_WARN,
				"GPU %s is locked by pid %u (%s), for longer than any "
				"process needs",
				item->gpu, item->pid, item->text),
			"the process may be stopped: kill -CONT %u, or end it",
			item->pid);
	if (doctor->state.locked == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "no lease file is locked");
}

void check_leases(struct doctor *doctor)
{
	const struct doctor_item *item;
	size_t at = 0;

	if (!has_view(doctor))
		return;
	while ((item = doctor_next(doctor, 1u << DOCTOR_LINGERS, &at)))
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"job %llu has ended, but lingers: processes that it "
			"left running keep its GPUs until the GPUs have been idle "
			"for a while, or until gpulease --cancel %llu",
			(unsigned long long)item->number,
			(unsigned long long)item->number);
	for (at = 0; (item = doctor_next(doctor, 1u << DOCTOR_UNSEEN, &at));)
		doctor_remedy(
			doctor_add(&doctor->report, DOCTOR_WARN,
				"job %llu belongs to a process of another pid namespace "
				"that cannot be seen from here, and has no watchdog",
				(unsigned long long)item->number),
			"if the process has ended, give its GPUs back: gpulease --cancel "
			"%llu --force",
			(unsigned long long)item->number);
	(void)doctor_add(&doctor->report, DOCTOR_OK, "%u in force", doctor->state.live);
}

void check_pauses(struct doctor *doctor)
{
	const struct doctor_item *item;
	bool is_paused = false;
	size_t at = 0;

	if (!has_view(doctor))
		return;
	while ((item = doctor_next(doctor, 1u << DOCTOR_PAUSE, &at))) {
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"GPU %s is paused by %s%s%s, until gpulease --resume %s",
			item->gpu, item->by, item->text[0] ? ": " : "", item->text,
			item->gpu);
		is_paused = true;
	}
	/* gpulease does not tell the windows that have begun */
	if (!is_paused)
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"none, apart from those that gpulease --windows lists");
}

/* --- the queue --------------------------------------------------------------------- */

void check_queue(struct doctor *doctor)
{
	const struct doctor_state *state = &doctor->state;
	size_t count = state->waiting;

	if (state->view_trouble.text[0])
		(void)doctor_add_why(&doctor->report, DOCTOR_FAIL, &state->view_trouble);
	else if (!has_view(doctor))
		return;
	if (!state->has_view)
		return;
	if (state->has_broken_ticket)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "records of '%s/tickets' cannot be read and are "
				      "skipped",
				      state->path),
			"when no job waits or runs, remove that file: gpulease makes it "
			"again");
	if (count == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "no ticket waits");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK, "%zu%s ticket%s wait%s",
			count, state->has_more_waiting ? " and more" : "",
			count == 1 ? "" : "s", count == 1 ? "s" : "");
}

/* --- the history ------------------------------------------------------------------- */

/* Reports the damaged records of the file that fair-share reads. */
static void check_usage(struct doctor *doctor)
{
	size_t broken = doctor->state.usage_broken;

	if (broken)
		(void)doctor_add(&doctor->report, DOCTOR_WARN,
			"%zu record%s of '%s/usage' cannot be read and do not count for "
			"fair-share",
			broken, broken == 1 ? "" : "s", doctor->state.path);
}

void check_history(struct doctor *doctor)
{
	const struct doctor_state *state = &doctor->state;
	const struct history_gap *gap = &state->gap;
	char moment[64];
	struct text text = TEXT_ON(moment);

	check_usage(doctor);
	if (state->directory_error != 0) {
		(void)has_view(doctor);
	} else if (state->history_error < 0) {
		(void)doctor_add(&doctor->report, DOCTOR_WARN,
			"cannot read '%s/history': %s", state->path,
			strerror(-state->history_error));
	} else if (!gap->missing) {
		(void)doctor_add(&doctor->report, DOCTOR_OK, "no line is missing");
	} else {
		show_add_date(&text, gap->last_ms);
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "%llu line%s could not be written, the last on %s",
				      (unsigned long long)gap->missing,
				      gap->missing == 1 ? "" : "s", moment),
			"make space where '%s' is; the missing lines stay missing",
			state->path);
	}
}

/* --- litter ------------------------------------------------------------------------ */

void check_litter(struct doctor *doctor)
{
	unsigned litter = doctor->state.litter;
	bool is_much = litter > LITTER_MANY;

	if (!has_view(doctor))
		return;
	doctor_remedy(doctor_add(&doctor->report, is_much ? DOCTOR_WARN : DOCTOR_OK,
			      "%u file%s that no process needs any more", litter,
			      litter == 1 ? "" : "s"),
		"%s",
		is_much ? "gpulease removes them as jobs come; if they stay, users of other "
			  "groups may have left them"
			: "");
}

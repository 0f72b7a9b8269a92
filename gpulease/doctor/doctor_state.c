#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "clock.h"
#include "config_file.h"
#include "container.h"
#include "directory_choice.h"
#include "doctor_facts.h"
#include "doctor_state.h"
#include "fdio.h"
#include "gpu_reason.h"
#include "instance.h"
#include "gpu_hours.h"
#include "inventory.h"
#include "live_fifo.h"
#include "privacy.h"
#include "process_lease.h"
#include "rights.h"
#include "state_reader.h"

enum {
	JOBS_MAX = 16384,   /* waiting tickets to count; the check then says "and more" */
	NAMES_MAX = 100000, /* names of one folder to read */
};

/* Too big for the stack.  Zero, so that no rest of other data is told. */
static struct doctor_state state;
static struct context context;
static struct state_reader reader;
static int out;

/* Begins the next item, about the GPU of @slot if it is not negative. */
static struct doctor_item *begin(enum doctor_item_kind kind, int slot)
{
	static struct doctor_item item;

	memset(&item, 0, sizeof(item));
	item.kind = kind;
	if (slot >= 0)
		text_copy(item.gpu, sizeof(item.gpu),
			snapshot_gpu_name(&reader.snapshot, (unsigned)slot).text);
	return &item;
}

static void tell(const struct doctor_item *item)
{
	(void)!fdio_write(out, item, sizeof(*item));
	state.item_count++;
}

static void tell_process(struct doctor_item *item, uint32_t pid)
{
	struct text text = TEXT_ON(item->text);

	item->pid = pid;
	describe_process(pid, &text);
	tell(item);
}

/* --- the installation -------------------------------------------------------------- */

static void look_at_configuration(struct settings *settings)
{
	const char *named;

	(void)!context_load_config(settings, &context, &state.config_trouble);
	state.sim_gpus = settings->machine.sim_gpus;
	state.is_named = context.named != NULL;
	named = config_file_named(settings->machine.config);
	text_copy(state.config_file, PATH_MAX, named ? named : CONFIG_FILE);
	state.has_config = context.has_config;
	for (unsigned key = 0; key < CONFIG_KEYS; key++)
		state.keys += context.config.lines[key] != 0;
}

/* Sets ->path and ->stat, also for a directory that could not be opened. */
static void look_at_path(void)
{
	const struct statedir *dir = &context.dir;
	const char *path = "";

	if (dir->path[0])
		path = dir->path;
	else if (!state.sim_gpus && !dir->is_fallback && !context.has_allocation)
		path = context.named ? context.named : context.config.directory;
	text_copy(state.path, PATH_MAX, path);
	if (state.directory_error == 0)
		state.has_stat = fstat(dir->fd, &state.stat) == 0;
	else
		state.has_stat = path[0] && stat(path, &state.stat) == 0;
}

/* Tries it on a nameless file. */
static bool lacks_holes(int dirfd)
{
	autofd int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 && ftruncate(fd, 8192) == 0 &&
	       fdio_punch(fd, 0, 4096) == -EOPNOTSUPP;
}

static void look_at_directory(void)
{
	const struct statedir *dir = &context.dir;
	struct text words = TEXT_ON(state.allocation);

	/* before the directory is opened: a private one makes the program give up its group */
	state.setid = setid_look(&state.setid_group);
	state.directory_error = directory_choice_open(&context, &state.directory_trouble);
	look_at_path();
	text_copy(state.shared, PATH_MAX, context.config.directory);
	state.is_copy = context.is_copy;
	state.is_fallback = dir->is_fallback;
	state.is_hardened = dir->is_hardened;
	state.is_private = dir->is_private;
	state.has_allocation = context.has_allocation;
	state.is_allocation_short =
		context.has_allocation && !slurm_allocation_has_gpus(&context.allocation);
	directory_choice_explain_slurm(&context, &words);
	if (state.directory_error != 0)
		return;
	state.sees_host = container_has_mounted(dir->fd);
	state.lacks_holes = lacks_holes(dir->fd);
}

/* --- nvidia-smi -------------------------------------------------------------------- */

/*
 * Runs nvidia-smi even if there is a recent shared result, to measure how long it takes.  Its
 * deadline ends it.
 */
static void run_nvidia_smi(struct probe *probe)
{
	const struct prober_config *config = &context.prober;
	struct probe_run run = PROBE_RUN_INIT;

	probe_run_start(&run, config->nvidia_smi, config->environment, config->limit_ms,
		clock_boot_ms());
	while (probe_run_step(&run, clock_boot_ms(), probe) == PROBE_RUNNING) {
		struct pollfd fds[PROBE_POLL_FDS];
		unsigned count = probe_run_poll_fds(&run, fds);
		int64_t left_ms = probe_run_deadline_ms(&run) - clock_boot_ms();

		(void)poll(fds, count, (int)min_i64(max_i64(left_ms, 0), 1000));
	}
	probe_run_release(&run);
	state.has_run = true;
	state.run_ms = probe->finished_ms - probe->started_ms;
	/* other processes can use the answer; failing to store it does not matter here */
	if (state.directory_error == 0)
		(void)!probe_store(&context.dir, &config->usage, NULL, probe);
}

static void look_at_gpus(void)
{
	struct snapshot *view = &reader.snapshot;

	if (state.sim_gpus) {
		prober_refresh(
			&reader.prober, clock_boot_ms(), &view->probe, &view->has_probe);
	} else if (context.nvidia_smi[0]) {
		run_nvidia_smi(&view->probe);
		view->has_probe = true;
	}
	probe_copy(&view->probe, &state.probe);
}

/* --- files ------------------------------------------------------------------------- */

/* Calls @act with every name in @folder of the state directory, at most NAMES_MAX. */
static void for_each_name(
	const char *folder, void (*act)(int fd, const char *folder, const char *name))
{
	int fd = openat(
		context.dir.fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned count = 0;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	for (; count < NAMES_MAX && (entry = readdir(dir)); count++)
		if (entry->d_name[0] != '.')
			act(fd, folder, entry->d_name);
	(void)closedir(dir);
}

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
		{ "history.2", S_IFREG },
		{ "usage", S_IFREG },
		{ "probe", S_IFREG },
		{ "probe.lock", S_IFREG },
		{ "topology", S_IFREG },
		{ "topology.lock", S_IFREG },
		{ "gpu", S_IFDIR },
		{ FIFO_LIVE, S_IFDIR },
		{ FIFO_BELL, S_IFDIR },
	};

	if (strcmp(folder, "gpu") == 0)
		return strstr(name, ".lease") || strcmp(name, "windows") == 0 ? S_IFREG
									      : 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].type;
	return 0;
}

static void look_at_file(int fd, const char *folder, const char *name)
{
	mode_t type = file_type(folder, name);
	struct doctor_item *item;
	struct stat st;

	if (!type || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	state.files++;
	if (!state_file_trouble(&st, type, &state.stat) ||
		++state.bad_files > DOCTOR_FILES_TOLD)
		return;
	item = begin(DOCTOR_FILE, -1);
	item->stat = st;
	item->type = type;
	(void)snprintf(item->text, sizeof(item->text), "%s%s%s",
		folder[0] == '.' ? "" : folder, folder[0] == '.' ? "" : "/", name);
	tell(item);
}

static void look_at_lease_files(void)
{
	const struct snapshot *view = &reader.snapshot;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];
		struct doctor_item *item;

		if (!gpu->is_unusable && !gpu->is_doubtful &&
			!snapshot_withholds(view, gpu))
			continue;
		item = begin(gpu->is_unusable                ? DOCTOR_UNUSABLE
			     : snapshot_withholds(view, gpu) ? DOCTOR_WITHHELD
							     : DOCTOR_DAMAGED,
			(int)slot);
		item->number = slot;
		tell(item);
	}
	state.slotless = inventory_count_slotless(view);
}

static void count_litter(int fd, const char *folder, const char *name)
{
	bool is_beacon = strcmp(folder, FIFO_LIVE) == 0 || strcmp(folder, FIFO_BELL) == 0;

	(void)fd;
	/* the owner of a ticket holds its FIFO in live/ open; without it, its bell is unused too */
	state.litter +=
		strncmp(name, "tmp.", 4) == 0 ||
		(is_beacon && is_token(name) &&
			live_fifo_look(&context.dir, name, NULL) == LIVE_FIFO_GONE);
}

/* --- leases ------------------------------------------------------------------------ */

/* Whether @process belongs to a lease on @slot; true if that cannot be decided. */
static bool is_of_lease(unsigned slot, const struct probe_process *process)
{
	const struct snapshot *view = &reader.snapshot;
	uint32_t pid = (uint32_t)process->pid;
	struct process_stat stat;
	struct process_lease found;

	/* hidden, or of another pid namespace; the MPS server works for all leases */
	if (process->pid <= 0 || process_stat_read(pid, &stat) < 0 ||
		strncmp(stat.comm, "nvidia-cuda-mps-server", 15) == 0)
		return true;
	process_lease_read(pid, &found);
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		struct owner job = snapshot_lease_process(lease);

		if (!gpuset_has(&lease->lease.gpus, slot))
			continue;
		if (job.pidns != view->dir->pidns ||
			process_lease_descends(&found, &job) ||
			process_lease_belongs(&found, &job))
			return true;
	}
	return false;
}

/* Tells of each process on a leased GPU that belongs to no lease on it. */
static void look_for_intruders(unsigned slot)
{
	const struct snapshot *view = &reader.snapshot;
	const struct snapshot_gpu *gpu = &view->gpus[slot];

	for (uint32_t i = 0; gpu->row >= 0 && i < view->probe.process_count; i++) {
		const struct probe_process *process = &view->probe.processes[i];
		struct doctor_item *item;

		if ((int)process->gpu != gpu->row || is_of_lease(slot, process))
			continue;
		item = begin(DOCTOR_INTRUDER, (int)slot);
		item->number = view->leases[gpu->lease].lease.ticket;
		tell_process(item, (uint32_t)process->pid);
	}
}

static void look_for_use(unsigned slot)
{
	const struct snapshot *view = &reader.snapshot;
	const struct snapshot_gpu *gpu = &view->gpus[slot];

	/* nvidia-smi shows the processes of all instances of a GPU together */
	if (gpu->lease >= 0 && !gpu_is_instance(&gpu->file.gpu))
		look_for_intruders(slot);
	if (gpu->exists && gpu->state == GPU_EXTERNAL) {
		struct doctor_item *item = begin(DOCTOR_OUTSIDE, (int)slot);
		struct text text = TEXT_ON(item->text);

		(void)explain_gpu(view, slot, &text);
		tell(item);
	}
}

static void look_at_slot(unsigned slot)
{
	const struct snapshot_gpu *gpu = &reader.snapshot.gpus[slot];
	const struct gpu_record *record = &gpu->file.gpu;
	struct doctor_item *item;
	uint32_t pid;

	if (gpu->exists && (gpu_is_instance(record) ? gpu->mig : gpu->row) < 0)
		tell(begin(DOCTOR_MISSING, (int)slot));
	look_for_use(slot);
	if (gpu->file.fd >= 0 && gpu->locked_until_ms != 0) {
		state.locked++;
		pid = lease_lock_holder(&gpu->file);
		if (pid) /* else it was released since the state was read */
			tell_process(begin(DOCTOR_LOCK, (int)slot), pid);
	}
	if (!record->is_paused)
		return;
	item = begin(DOCTOR_PAUSE, (int)slot);
	text_copy(item->by, sizeof(item->by), record->paused_by);
	text_copy(item->text, sizeof(item->text), record->reason);
	tell(item);
}

/* Whether the owner is unseen, and no watchdog shows that it lives. */
static bool may_have_ended(const struct snapshot_lease *lease)
{
	const struct liveness *life =
		liveness_set_find(&reader.snapshot.lives, lease->lease.owner.token);

	return life && liveness_is_unseen(life) && life->fifo == LIVENESS_ENDED;
}

static void look_at_leases(void)
{
	const struct snapshot *view = &reader.snapshot;

	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		bool is_unseen = may_have_ended(lease);
		struct doctor_item *item;

		state.live += !lease->is_dead;
		if (lease->is_over || (!lease->is_dead && !is_unseen))
			continue;
		item = begin(is_unseen ? DOCTOR_UNSEEN : DOCTOR_LINGERS, -1);
		item->number = lease->lease.ticket;
		tell(item);
	}
}

/* --- all --------------------------------------------------------------------------- */

static void look_at_view(void)
{
	static const char *const folders[] = { ".", "gpu", FIFO_LIVE, FIFO_BELL };

	state.has_view = true;
	state.windows_broken = reader.snapshot.windows.broken;
	state.waiting = reader.row_count;
	state.has_more_waiting = reader.has_more_rows;
	state.has_broken_ticket = reader.has_broken_row;
	look_at_lease_files();
	for (unsigned slot = 0; slot < reader.snapshot.slots; slot++)
		look_at_slot(slot);
	look_at_leases();
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		for_each_name(folders[i], count_litter);
}

const struct doctor_state *doctor_state_tell(struct settings *settings, int fd)
{
	bool is_doctor = settings->verb.kind == VERB_DOCTOR;
	struct gpu_hours had;

	out = fd;
	/* the state comes first, and is complete last */
	(void)!fdio_write(fd, &state, sizeof(state));
	text_copy(state.version, sizeof(state.version), GPULEASE_VERSION);
	look_at_configuration(settings);
	if (is_doctor || (context.allocation.job && !context.named))
		look_at_directory();
	state.is_searched = !rights_are_lent();
	context_find_driver(&context);
	text_copy(state.nvidia_smi, PATH_MAX, context.nvidia_smi);
	state_reader_init(&reader, &context, JOBS_MAX);
	if (is_doctor)
		look_at_gpus();
	if (is_doctor && state.directory_error == 0) {
		bool has_view = state_reader_read(&reader, &state.view_trouble) == 0;

		if (state.has_stat) {
			for_each_name(".", look_at_file);
			for_each_name("gpu", look_at_file);
		}
		if (has_view)
			look_at_view();
		state.history_error = history_find_gap(context.dir.fd, &state.gap);
		if (gpu_hours_read(&context.dir, 0, 1, &had) == 0)
			state.usage_broken = had.broken;
	}
	(void)!pwrite(fd, &state, sizeof(state), 0);
	return &state;
}

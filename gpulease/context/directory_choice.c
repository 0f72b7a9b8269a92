#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"
#include "config_file.h"
#include "container.h"
#include "diag.h"
#include "directory_choice.h"
#include "fdio.h"
#include "job_step.h"
#include "local_user.h"
#include "privilege.h"
#include "rights.h"
#include "setid.h"
#include "slurm_old_directories.h"
#include "snapshot.h"

/* --- rights ------------------------------------------------------------------------ */

/*
 * Drops the group of the program: only the shared directory needs it, and files in a private one
 * must not get it.
 */
static int directory_choice_drop_group(struct why *why)
{
	if (privilege_drop() == 0)
		return 0;
	why_set(why, "cannot drop the group of the set-group-ID program");
	return -EPERM;
}

/* Whether @path is a set-group-ID program of group @gid that this user may start. */
static bool directory_choice_is_installed(const char *path, gid_t gid)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_ISGID) &&
	       st.st_gid == gid && access(path, X_OK) == 0;
}

/* Finds the installed gpulease with the set-group-ID bit of group @gid. */
static bool directory_choice_find_installed(gid_t gid, char out[PATH_MAX])
{
	const char *path = getenv("PATH");

	for (path = path ? path : ""; *path; path += *path == ':') {
		size_t size = strcspn(path, ":");

		(void)snprintf(out, PATH_MAX, "%.*s/gpulease", (int)size, path);
		if (size && directory_choice_is_installed(out, gid))
			return true;
		path += size;
	}
	text_copy(out, PATH_MAX, "/usr/local/bin/gpulease");
	if (directory_choice_is_installed(out, gid))
		return true;
	text_copy(out, PATH_MAX, "/usr/bin/gpulease");
	return directory_choice_is_installed(out, gid);
}

/*
 * Replaces @why by a better message if this program is a copy of the installed one: a copy lacks
 * the set-group-ID bit.
 */
static void directory_choice_explain_copy(struct context *context, struct why *why)
{
	const char *path = context->config.directory;
	char installed[PATH_MAX];
	struct stat st;

	if (setid_look(NULL) != SETID_ABSENT || stat(path, &st) < 0 ||
		!directory_choice_find_installed(st.st_gid, installed))
		return;
	context->is_copy = true;
	why_set(why, "cannot use '%s': this gpulease is not the installed one", path);
	why_add_remedy(why, "use '%s'", installed);
}

/* --- the choice -------------------------------------------------------------------- */

/* Opens a private directory; from then on the program has only the rights of the user. */
static int directory_choice_open_private(
	struct context *context, struct statedir_choice *choice, struct why *why)
{
	int r = directory_choice_drop_group(why);

	if (r < 0)
		return r;
	choice->is_shared_only = choice->is_hardened = false;
	choice->home = local_user_home();
	return statedir_open(choice, &context->dir, why);
}

/*
 * Whether this process belongs to a live lease in the directory @choice, which is used outside of
 * Slurm allocations.  Then a gpulease inside must use that directory, too, as a step of the lease.
 * Creates nothing there.
 */
static bool directory_choice_is_in_lease(struct statedir_choice choice)
{
	static struct snapshot view;
	struct statedir dir = STATEDIR_NONE;
	int r;
	bool is_in;

	choice.must_exist = true;
	/* the shared directory, or if there is none the private one, as outside of Slurm */
	r = statedir_open(&choice, &dir, NULL);
	if (r == STATEDIR_MISSING && !rights_are_lent()) {
		choice.is_shared_only = false;
		choice.home = local_user_home();
		r = statedir_open(&choice, &dir, NULL);
	}
	if (r != 0)
		return false;
	snapshot_init(&view, &dir);
	is_in = snapshot_read(&view, clock_boot_ms()) == 0 && job_step_is_inside(&view);
	snapshot_release(&view);
	statedir_release(&dir);
	return is_in;
}

/* Whether this process runs in a Slurm allocation and must use a directory of the allocation. */
static bool directory_choice_is_slurm(
	const struct context *context, const struct statedir_choice *choice)
{
	return context->allocation.job && !context->named &&
	       !context->settings->machine.sim_gpus && !context->config.shares_in_slurm &&
	       !directory_choice_is_in_lease(*choice);
}

/*
 * Returns a number for the device cgroup of this process, 0 outside of Slurm.  nvidia-smi shows
 * only the cards of the cgroup, so processes share the result of a probe only if this number is the
 * same.
 */
static uint64_t directory_choice_view(const struct slurm_allocation *allocation)
{
	static char text[16384];

	if (!allocation->job ||
		fdio_read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return 0;
	return text_hash(TEXT_HASH_BEGIN, text, strlen(text));
}

int directory_choice_open(struct context *context, struct why *why)
{
	const struct machine_settings *machine = &context->settings->machine;
	struct statedir_choice choice = {
		.explicit_path = context->named,
		.system_path = context->config.directory,
		.is_hardened = rights_are_lent(),
		.state_home = getenv("XDG_STATE_HOME"),
		.sim_gpus = machine->sim_gpus,
		.sim_mib = machine->sim_mib,
		.is_shared_only = true,
	};
	int r = STATEDIR_MISSING;

	context->has_allocation = directory_choice_is_slurm(context, &choice);
	/* for an allocation and for simulated GPUs the directory is private: r stays MISSING */
	if (context->has_allocation)
		choice.allocation = context->allocation.name;
	else if (!machine->sim_gpus)
		r = statedir_open(&choice, &context->dir, why);
	if (r == STATEDIR_MISSING)
		r = directory_choice_open_private(context, &choice, why);
	context->dir.history_bytes = context->config.history_mib << 20;
	context->dir.counts_usage = context->config.share.rate_ms != 0;
	context->dir.view = directory_choice_view(&context->allocation);
	/* access to the shared directory was denied: find a cause that the user can mend */
	if (r == -EACCES && !context->named && !machine->sim_gpus &&
		!context->dir.is_fallback && !context->has_allocation) {
		setid_explain_denial(context->config.directory, why);
		directory_choice_explain_copy(context, why);
	}
	if (r == 0 && context->has_allocation && context->dir.is_new)
		slurm_old_directories_remove(&choice, &context->dir);
	return r;
}

/* --- messages ---------------------------------------------------------------------- */

/*
 * Notes which jobs of the machine this directory does not coordinate, unless the user has chosen
 * it.  A container has the directory and the configuration of the host only if they were mounted.
 */
static void directory_choice_note_unseen(const struct context *context)
{
	const char *directory = context->config.directory;

	if (context->named || context->settings->machine.sim_gpus ||
		context->has_allocation ||
		(context->has_config && !context->dir.is_fallback))
		return;
	if (!container_is_inside()) {
		if (context->dir.is_fallback)
			note("no shared directory '%s': only your own jobs are coordinated, "
			     "in '%s'",
				directory, context->dir.path);
	} else if (context->dir.is_fallback) {
		note("no shared directory '%s' in this container, which does not see the "
		     "host's queue: only your own jobs are coordinated, in '%s'; on the "
		     "host, gpulease --docker-args says what to mount",
			directory, context->dir.path);
	} else if (!container_has_mounted(context->dir.fd)) {
		note("this container does not see the host's queue, '%s' is its own; on the "
		     "host, gpulease --docker-args says what to mount",
			directory);
	} else {
		note("this container has the host's '%s' but not its %s, so the defaults are "
		     "in force; on the host, gpulease --docker-args says what to mount",
			directory, CONFIG_FILE);
	}
}

/* With -v: says which directory is used in a Slurm allocation, and why. */
static void directory_choice_note_slurm(const struct context *context)
{
	const struct slurm_allocation *allocation = &context->allocation;
	char text[512];
	struct text words = TEXT_ON(text);

	directory_choice_explain_slurm(context, &words);
	if (allocation->job)
		verbose("%s", text);
}

void directory_choice_note(const struct context *context)
{
	directory_choice_note_unseen(context);
	directory_choice_note_slurm(context);
}

void directory_choice_explain_slurm(const struct context *context, struct text *out)
{
	const struct slurm_allocation *allocation = &context->allocation;
	const char *because = "this process belongs to a lease there";

	if (!allocation->job)
		return;
	if (context->settings->machine.sim_gpus)
		because = "the GPUs are simulated";
	else if (context->named)
		because = context->settings->machine.dir ? "--dir names it"
							 : "GPULEASE_DIR names it";
	else if (context->config.shares_in_slurm)
		because = "the configuration says slurm-allocation = shared";
	if (!context->has_allocation) {
		text_addf(out, "Slurm job %s uses '%s' because %s", allocation->job,
			context->dir.path, because);
		return;
	}
	text_addf(out, "Slurm job %s has a state directory of its own, '%s', and ",
		allocation->job, context->dir.path);
	if (slurm_allocation_has_gpus(allocation))
		text_addf(
			out, "the GPUs %s of %s", allocation->gpus, allocation->gpus_by);
	else
		text_add(
			out, allocation->is_elsewhere
				     ? "no GPU, because this host is not one of its nodes"
				     : "no GPU here");
}

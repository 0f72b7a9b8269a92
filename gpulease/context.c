#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include "clock.h"
#include "config_file.h"
#include "container.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "fdio.h"
#include "old_allocations.h"
#include "privilege.h"
#include "rights.h"
#include "setid.h"
#include "snapshot.h"
#include "step.h"

extern char **environ;

/* --- programs ---------------------------------------------------------------------- */

static int check_program(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES ? -EACCES : -ENOENT;
	/* as the user, not as whoever the file's set-ID bits make of us */
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

/* With nobody's rights but the user's. */
static int search_program(const char *program, char ret[PATH_MAX])
{
	const char *path = getenv("PATH");
	int result = -ENOENT;

	if (strchr(program, '/')) {
		if (snprintf(ret, PATH_MAX, "%s", program) >= PATH_MAX)
			return -ENOENT;
		return check_program(ret);
	}
	for (path = path ? path : "/usr/bin:/bin"; *program; path++) {
		size_t size = strcspn(path, ":");
		int wanted = snprintf(ret, PATH_MAX, "%.*s%s%s", (int)size, path,
			size ? "/" : "./", program);
		int r = wanted < PATH_MAX ? check_program(ret) : -ENOENT;

		if (r == 0)
			return 0;
		if (r == -EACCES)
			result = r;
		path += size;
		if (!*path)
			break;
	}
	return result;
}

int find_program(const char *program, char ret[PATH_MAX])
{
	int r;

	rights_as_user_begin();
	r = search_program(program, ret);
	rights_as_user_end();
	return r;
}

void local_user_name(uid_t uid, char *out, size_t size)
{
	FILE *file = fopen("/etc/passwd", "re");
	struct passwd *entry;

	out[0] = '\0';
	if (!file)
		return;
	while ((entry = fgetpwent(file)))
		if (entry->pw_uid == uid) {
			text_copy(out, size, entry->pw_name);
			break;
		}
	(void)fclose(file);
}

const char *find_home(void)
{
	const char *home = getenv("HOME");
	const struct passwd *entry;

	if (home && home[0] == '/')
		return home;
	/* a daemon's child or a stripped environment is the same user all the same */
	entry = getpwuid(getuid());
	return entry ? entry->pw_dir : NULL;
}

/* --- the context ------------------------------------------------------------------- */

/* $GPULEASE_SIM is --sim for those who cannot add an option: commands in a simulated job. */
static int read_environment(struct settings *settings, struct why *why)
{
	const char *sim = getenv("GPULEASE_SIM");
	struct why wrong;

	if (settings->sim_gpus || !sim || !*sim)
		return 0;
	if (read_sim(sim, settings, &wrong) < 0) {
		why_set(why, "GPULEASE_SIM: %s", wrong.text);
		return -EINVAL;
	}
	return 0;
}

/*
 * The directory that the user names, NULL: none.  With rights that are not the user's nothing
 * that the user says decides which files they are used on.
 */
static const char *named_directory(struct settings *settings)
{
	const char *dir = getenv("GPULEASE_DIR");

	if (rights_are_lent()) {
		if (settings->config)
			note("--config is ignored: gpulease is installed for all users");
		if (settings->dir || (dir && *dir))
			note("%s is ignored: gpulease is installed for all users",
				settings->dir ? "--dir" : "GPULEASE_DIR");
		settings->config = settings->dir = NULL;
		return NULL;
	}
	return settings->dir ? settings->dir : dir && *dir ? dir : NULL;
}

/* In a simulation gpulease-simjob is found also where it was built, beside this program. */
static void add_own_folder(void)
{
	const char *path = getenv("PATH");
	char own[PATH_MAX] = "", *slash;
	autofree char *longer = NULL;
	size_t size;

	if (!path || readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		return;
	slash = strrchr(own, '/');
	if (slash)
		*slash = '\0';
	size = strlen(own);
	/* inside a simulated job it is there already */
	if (strlen(path) >= size && strcmp(path + strlen(path) - size, own) == 0)
		return;
	if (asprintf(&longer, "%s:%s", path, own) < 0)
		longer = NULL;
	else
		(void)setenv("PATH", longer, 1);
}

static void find_nvidia_smi(struct context *context)
{
	char *out = context->nvidia_smi;

	if (context->config.nvidia_smi[0])
		text_copy(out, sizeof(context->nvidia_smi), context->config.nvidia_smi);
	else if (rights_are_lent()) /* no path of the user's is searched */
		text_copy(out, sizeof(context->nvidia_smi), "/usr/bin/nvidia-smi");
	else if (find_program("nvidia-smi", out) < 0)
		out[0] = '\0';
}

/* A lent group is of no use but for the shared directory, and in the way of a private one. */
static int give_up_rights(struct why *why)
{
	if (privilege_drop() == 0)
		return 0;
	why_set(why, "cannot give up the group of the program");
	return -EPERM;
}

/* What is denied to the program may be so because nothing is lent to it: that says more. */
static void blame_setid(const char *path, struct why *why)
{
	const char *lost = setid_explain(setid_look(NULL));

	if (lost[0])
		why_set(why, "cannot use '%s': %s", path, lost);
}

/* Whether @path is a set-group-ID program of group @gid that this user may start. */
static bool has_rights_of(const char *path, gid_t gid)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_ISGID) &&
	       st.st_gid == gid && access(path, X_OK) == 0;
}

/* Finds the installed gpulease that is lent group @gid. */
static bool find_installed(gid_t gid, char out[PATH_MAX])
{
	const char *path = getenv("PATH");

	for (path = path ? path : ""; *path; path += *path == ':') {
		size_t size = strcspn(path, ":");

		(void)snprintf(out, PATH_MAX, "%.*s/gpulease", (int)size, path);
		if (size && has_rights_of(out, gid))
			return true;
		path += size;
	}
	text_copy(out, PATH_MAX, "/usr/local/bin/gpulease");
	if (has_rights_of(out, gid))
		return true;
	text_copy(out, PATH_MAX, "/usr/bin/gpulease");
	return has_rights_of(out, gid);
}

/* Blames the lack of rights if this program is a copy of the installed set-group-ID one. */
static void blame_copy(struct context *context, struct why *why)
{
	const char *path = context->config.directory;
	char installed[PATH_MAX];
	struct stat st;

	if (setid_look(NULL) != SETID_ABSENT || stat(path, &st) < 0 ||
		!find_installed(st.st_gid, installed))
		return;
	context->is_copy = true;
	why_set(why, "cannot use '%s': this gpulease is not the installed one; use '%s'",
		path, installed);
}

int context_load_config(
	struct settings *settings, struct context *context, struct why *why)
{
	const char *named = named_directory(settings);
	int r = read_environment(settings, why);

	*context = (struct context){ .settings = settings, .dir = STATEDIR_NONE };
	context->named = settings->sim_gpus ? NULL : named;
	allocation_read(&context->allocation);
	if (r == 0)
		r = config_file_load(
			settings->config, &context->config, &context->has_config, why);
	/* in a user namespace root's own file seems to be a stranger's */
	if (r == -EACCES && !settings->config)
		blame_setid(CONFIG_FILE, why);
	if (r < 0)
		config_default(&context->config);
	if (context->config.shows_own_commands_only)
		explain_hide_others();
	return r;
}

/* Opens a private directory, for which no group is lent. */
static int open_private(
	struct context *context, struct statedir_choice *choice, struct why *why)
{
	int r = give_up_rights(why);

	if (r < 0)
		return r;
	choice->is_shared_only = choice->is_hardened = false;
	choice->home = find_home();
	return statedir_open(choice, &context->dir, why);
}

/*
 * Whether this process belongs to a live lease in the directory that would be used outside of the
 * allocation.  Makes nothing there.
 */
static bool is_in_outer_lease(struct statedir_choice choice)
{
	static struct snapshot view;
	struct statedir dir = STATEDIR_NONE;
	int r;
	bool is_in;

	choice.must_exist = true;
	r = statedir_open(&choice, &dir, NULL);
	if (r == STATEDIR_MISSING && !rights_are_lent()) {
		choice.is_shared_only = false;
		choice.home = find_home();
		r = statedir_open(&choice, &dir, NULL);
	}
	if (r != 0)
		return false;
	snapshot_init(&view, &dir);
	is_in = snapshot_read(&view, clock_boot_ms()) == 0 && step_is_around(&view);
	snapshot_release(&view);
	statedir_release(&dir);
	return is_in;
}

/* Whether the allocation, if there is one, has a directory of its own. */
static bool wants_own(const struct context *context, const struct statedir_choice *choice)
{
	return context->allocation.job && !context->named &&
	       !context->settings->sim_gpus && !context->config.shares_in_slurm &&
	       !is_in_outer_lease(*choice);
}

/* What tells this process's device cgroup from others, in which probes show other cards. */
static uint64_t find_view(const struct allocation *allocation)
{
	static char text[16384];

	if (!allocation->job ||
		fdio_read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return 0;
	return text_hash(TEXT_HASH_BEGIN, text, strlen(text));
}

int context_open_directory(struct context *context, struct why *why)
{
	const struct settings *settings = context->settings;
	struct statedir_choice choice = {
		.explicit_path = context->named,
		.system_path = context->config.directory,
		.is_hardened = rights_are_lent(),
		.state_home = getenv("XDG_STATE_HOME"),
		.sim_gpus = settings->sim_gpus,
		.sim_mib = settings->sim_mib,
		.is_shared_only = true,
	};
	int r = STATEDIR_MISSING;

	context->has_allocation = wants_own(context, &choice);
	if (context->has_allocation)
		choice.allocation = context->allocation.name;
	else if (!settings->sim_gpus)
		r = statedir_open(&choice, &context->dir, why);
	if (r == STATEDIR_MISSING)
		r = open_private(context, &choice, why);
	context->dir.history_bytes = context->config.history_mib << 20;
	context->dir.view = find_view(&context->allocation);
	if (r == -EACCES && !context->named && !settings->sim_gpus &&
		!context->dir.is_fallback && !context->has_allocation) {
		blame_setid(context->config.directory, why);
		blame_copy(context, why);
	}
	if (r == 0 && context->has_allocation && context->dir.is_new)
		old_allocations_remove(&choice, &context->dir);
	return r;
}

void context_find_driver(struct context *context)
{
	static char path[] = "PATH=/usr/bin:/bin", locale[] = "LC_ALL=C";
	static char *const clean[] = { path, locale, NULL };
	const struct settings *settings = context->settings;
	const struct config *config = &context->config;

	if (!settings->sim_gpus)
		find_nvidia_smi(context);
	context->prober = (struct prober_config){
		.nvidia_smi = context->nvidia_smi[0] ? context->nvidia_smi : NULL,
		.environment = rights_are_lent() ? clean : environ,
		.usage = {
			.idle_mib = config->idle.mib,
			.idle_percent = config->idle.percent,
			.busy_percent = config->busy_percent,
			.settle_ms = config->settle_ms,
			.linger_ms = config->linger_ms,
			.margin_mib = config->margin_mib,
			.spike_percent = config->spike_buffer_percent,
		},
		.limit_ms = config->probe_deadline_ms,
		.sim_gpus = settings->sim_gpus,
		.sim_mib = settings->sim_mib,
	};
}

/*
 * What others of the machine do that is not seen from here.  A container has a configuration
 * and a directory of the host's only where somebody has mounted them; who names a directory
 * knows what he does.
 */
static void tell_what_is_missing(const struct context *context)
{
	const char *directory = context->config.directory;

	if (context->named || context->settings->sim_gpus || context->has_allocation ||
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

/* With -v: says which directory is used in an allocation, and why. */
static void tell_allocation(const struct context *context)
{
	const struct allocation *allocation = &context->allocation;
	char text[512];
	struct text words = TEXT_ON(text);

	context_explain_allocation(context, &words);
	if (allocation->job)
		verbose("%s", text);
}

int context_open(struct settings *settings, struct context *context)
{
	struct why why = WHY_NONE;
	int r = context_load_config(settings, context, &why);

	if (r == 0)
		r = context_open_directory(context, &why);
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	tell_what_is_missing(context);
	tell_allocation(context);
	context_find_driver(context);
	if (settings->sim_gpus)
		add_own_folder();
	return 0;
}

void context_explain_allocation(const struct context *context, struct text *out)
{
	const struct allocation *allocation = &context->allocation;
	const char *because = "this process belongs to a lease there";

	if (!allocation->job)
		return;
	if (context->settings->sim_gpus)
		because = "the GPUs are simulated";
	else if (context->named)
		because = context->settings->dir ? "--dir names it"
						 : "GPULEASE_DIR names it";
	else if (context->config.shares_in_slurm)
		because = "of slurm-allocation = shared in the configuration";
	if (!context->has_allocation) {
		text_addf(out, "Slurm job %s uses '%s' because %s", allocation->job,
			context->dir.path, because);
		return;
	}
	text_addf(out, "Slurm job %s has a state directory of its own, '%s', and ",
		allocation->job, context->dir.path);
	if (allocation_has_gpus(allocation))
		text_addf(
			out, "the GPUs %s of %s", allocation->gpus, allocation->gpus_by);
	else
		text_add(out, allocation->is_elsewhere
				      ? "no GPU, because this host is none of its nodes"
				      : "no GPU here");
}

int64_t context_patience_ms(const struct context *context)
{
	/* somebody else's may have to end first, or to be given up */
	return max_i64(context->prober.limit_ms, PROBE_LIMIT_MS) + 2000;
}

int context_no_gpus(void)
{
	diag("nvidia-smi was not found in PATH: without it gpulease knows no GPUs; "
	     "install the NVIDIA driver, or try --sim 4 for simulated ones");
	return EXIT_MISUSE;
}

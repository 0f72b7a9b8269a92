#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>

#include "config_file.h"
#include "container.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "privilege.h"
#include "rights.h"
#include "setid.h"

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

/* Whether the directory will be one of the user's own. */
static bool wants_private(const struct context *context)
{
	struct stat st;

	return context->settings->sim_gpus ||
	       (!context->named && stat(context->config.directory, &st) < 0 &&
		       errno == ENOENT);
}

/* A lent group is of no use but for the shared directory, and in the way of a private one. */
static int settle_rights(bool is_private, struct why *why)
{
	if (!rights_are_lent() || !is_private)
		return 0;
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

int context_load_config(
	struct settings *settings, struct context *context, struct why *why)
{
	const char *named = named_directory(settings);
	int r = read_environment(settings, why);

	*context = (struct context){ .settings = settings, .dir = STATEDIR_NONE };
	context->named = settings->sim_gpus ? NULL : named;
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

int context_open_directory(struct context *context, struct why *why)
{
	const struct settings *settings = context->settings;
	struct statedir_choice choice = {
		.explicit_path = context->named,
		.system_path = context->config.directory,
		.state_home = getenv("XDG_STATE_HOME"),
		.sim_gpus = settings->sim_gpus,
		.sim_mib = settings->sim_mib,
	};
	bool is_private = wants_private(context);
	int r = settle_rights(is_private, why);

	if (r < 0)
		return r;
	if (is_private)
		choice.home = find_home();
	choice.is_hardened = rights_are_lent();
	context->dir.history_bytes = context->config.history_mib << 20;
	r = statedir_open(&choice, &context->dir, why);
	if (r == -EACCES && !context->named && !settings->sim_gpus &&
		!context->dir.is_fallback)
		blame_setid(context->config.directory, why);
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

	if (context->named || context->settings->sim_gpus ||
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
	context_find_driver(context);
	if (settings->sim_gpus)
		add_own_folder();
	return 0;
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

#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>

#include "config_file.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
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

/* --- the context ------------------------------------------------------------------- */

/* $GPULEASE_SIM is --sim for those who cannot add an option: commands in a simulated job. */
static int read_environment(struct settings *settings)
{
	const char *sim = getenv("GPULEASE_SIM");
	struct why why;

	if (settings->sim_gpus || !sim || !*sim)
		return 0;
	if (read_sim(sim, settings, &why) < 0) {
		diag("GPULEASE_SIM: %s", why.text);
		return EXIT_MISUSE;
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

static int load_config(struct context *context)
{
	struct why why = WHY_NONE;

	if (config_file_load(context->settings->config, &context->config,
		    &context->has_config, &why) == 0)
		return 0;
	diag("%s", why.text);
	return EXIT_MISUSE;
}

/* A group that is lent is of no use beside the shared directory, and in the way of a private one. */
static int settle_rights(const struct context *context, const char *named)
{
	struct stat st;

	if (!rights_are_lent() || named ||
		(!context->settings->sim_gpus &&
			(stat(context->config.directory, &st) == 0 || errno != ENOENT)))
		return 0;
	if (privilege_drop() == 0)
		return 0;
	diag("cannot give up the group of the program");
	return EXIT_MISUSE;
}

static int open_directory(struct context *context, const char *named)
{
	const struct settings *settings = context->settings;
	struct statedir_choice choice = {
		.explicit_path = named,
		.system_path = context->config.directory,
		.is_hardened = rights_are_lent(),
		.state_home = getenv("XDG_STATE_HOME"),
		.home = getenv("HOME"),
		.sim_gpus = settings->sim_gpus,
		.sim_mib = settings->sim_mib,
	};
	struct why why = WHY_NONE;
	const char *lost = "";
	int r = statedir_open(&choice, &context->dir, &why);

	if (r < 0) {
		if (r == -EACCES && !named && !settings->sim_gpus &&
			!context->dir.is_fallback)
			lost = setid_explain(setid_look(NULL));
		if (lost[0])
			diag("cannot use '%s': %s", context->config.directory, lost);
		else
			diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (context->dir.is_fallback)
		note("no shared directory '%s': only your own jobs are coordinated, in '%s'",
			context->config.directory, context->dir.path);
	return 0;
}

static void configure_prober(struct context *context)
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
		.idle_mib = config->idle.mib,
		.limit_ms = config->probe_deadline_ms,
		.sim_gpus = settings->sim_gpus,
		.sim_mib = settings->sim_mib,
	};
}

int context_open(struct settings *settings, struct context *context)
{
	const char *named = named_directory(settings);
	int r = read_environment(settings);

	if (r != 0)
		return r;
	*context = (struct context){ .settings = settings, .dir = STATEDIR_NONE };
	context->is_named = named && !settings->sim_gpus;
	r = load_config(context);
	if (r == 0)
		r = settle_rights(context, named);
	if (r == 0)
		r = open_directory(context, named);
	if (r == 0)
		configure_prober(context);
	return r;
}

int context_no_gpus(void)
{
	diag("nvidia-smi was not found in PATH: without it gpulease knows no GPUs; "
	     "install the NVIDIA driver, or try --sim 4 for simulated ones");
	return EXIT_MISUSE;
}

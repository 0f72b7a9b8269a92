#include <errno.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "snapshot.h"

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

int find_program(const char *program, char ret[PATH_MAX])
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
	const char *sim = secure_getenv("GPULEASE_SIM");
	struct why why;

	if (settings->sim_gpus || !sim || !*sim)
		return 0;
	if (read_sim(sim, settings, &why) < 0) {
		diag("GPULEASE_SIM: %s", why.text);
		return EXIT_MISUSE;
	}
	return 0;
}

static void find_nvidia_smi(struct context *context)
{
	/* with more rights than the user's, no path of the user's is searched */
	if (getauxval(AT_SECURE))
		text_copy(context->nvidia_smi, sizeof(context->nvidia_smi),
			"/usr/bin/nvidia-smi");
	else if (find_program("nvidia-smi", context->nvidia_smi) < 0)
		context->nvidia_smi[0] = '\0';
}

int context_open(struct settings *settings, struct context *context)
{
	static char path[] = "PATH=/usr/bin:/bin", locale[] = "LC_ALL=C";
	static char *const clean[] = { path, locale, NULL };
	struct statedir_choice choice;
	struct why why = WHY_NONE;
	int r = read_environment(settings);

	if (r != 0)
		return r;
	*context = (struct context){ .settings = settings, .dir = STATEDIR_NONE };
	choice = (struct statedir_choice){
		.explicit_path = secure_getenv("GPULEASE_DIR"),
		.state_home = secure_getenv("XDG_STATE_HOME"),
		.home = secure_getenv("HOME"),
		.sim_gpus = settings->sim_gpus,
		.sim_mib = settings->sim_mib,
	};
	if (statedir_open(&choice, &context->dir, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (context->dir.is_fallback)
		note("no shared directory '%s': only your own jobs are coordinated, in '%s'",
			STATEDIR_SYSTEM, context->dir.path);
	if (!settings->sim_gpus)
		find_nvidia_smi(context);
	context->prober = (struct prober_config){
		.nvidia_smi = context->nvidia_smi[0] ? context->nvidia_smi : NULL,
		.environment = getauxval(AT_SECURE) ? clean : environ,
		.idle_mib = USAGE_POLICY_DEFAULT.idle_mib,
		.sim_gpus = settings->sim_gpus,
		.sim_mib = settings->sim_mib,
	};
	return 0;
}

int context_no_gpus(void)
{
	diag("nvidia-smi was not found in PATH: without it gpulease knows no GPUs; "
	     "install the NVIDIA driver, or try --sim 4 for simulated ones");
	return EXIT_MISUSE;
}

/*
 * --docker-args: what makes a container see the GPUs of this lease, and the queue.
 */
#include <errno.h>
#include <sys/stat.h>

#include "config_file.h"
#include "context.h"
#include "diag.h"
#include "docker_args.h"
#include "exitcodes.h"
#include "kin.h"
#include "verbs.h"

/* The full name of @path in @out; NULL where it has none, as a program that was replaced. */
static const char *full_name(const char *path, char out[PATH_MAX])
{
	struct stat st;

	return realpath(path, out) && stat(out, &st) == 0 ? out : NULL;
}

/* The lease that this runs in, as its environment says it.  0 or an exit status. */
static int read_lease(struct docker_args *args)
{
	args->id = getenv("GPULEASE_ID");
	if (!args->id || !args->id[0]) {
		args->id = NULL;
		return 0;
	}
	args->token = getenv(KIN_TOKEN_VARIABLE);
	args->uuids = getenv("GPULEASE_UUIDS");
	if (!args->uuids || !docker_args_are_uuids(args->uuids)) {
		diag("GPULEASE_UUIDS is not what gpulease has set for the lease");
		return EXIT_MISUSE;
	}
	return 0;
}

/* The group that the directory is shared by, 0: it is not. */
static gid_t sharing_group(const struct statedir *dir)
{
	struct stat st;

	return dir->is_private || fstat(dir->fd, &st) < 0 ? 0 : st.st_gid;
}

/* What a gpulease inside needs. */
static void pass_on(const struct context *context, struct docker_args *args)
{
	static char config[PATH_MAX], program[PATH_MAX];
	const char *file = context->settings->config;

	args->directory = context->dir.path;
	args->is_directory_named =
		context->named || context->has_allocation || context->dir.is_fallback;
	if (!context->dir.is_hardened)
		args->group = sharing_group(&context->dir);
	if (context->has_config)
		args->config = full_name(file ? file : CONFIG_FILE, config);
	args->program = full_name("/proc/self/exe", program);
	if (!args->program)
		note("the file of this gpulease is gone: none is mounted");
}

int verb_docker_args(struct settings *settings)
{
	static struct context context;
	static char line[512 * 1024];
	struct docker_args args = { .is_podman = settings->podman };
	struct text text = TEXT_ON(line);
	int r = context_open(settings, &context);

	if (r == 0 && settings->sim_gpus) {
		diag("simulated GPUs cannot be given to a container");
		r = EXIT_MISUSE;
	}
	if (r == 0)
		r = read_lease(&args);
	if (r != 0)
		return r;
	/* the engine runs as this user, in a user namespace that root's does not need */
	if (!context.dir.is_hardened || !args.is_podman || getuid() == 0)
		pass_on(&context, &args);
	else if (!args.id)
		note("the set-group-ID bit of gpulease has no effect in the user namespace of "
		     "podman; lease outside: gpulease -n 1 -- podman run ...");
	docker_args_format(&args, &text);
	if (text.cut) {
		diag("the arguments are too long");
		return EXIT_MISUSE;
	}
	puts(line);
	return EXIT_DONE;
}

/*
 * --docker-args: prints arguments for docker (or podman) run, by which the container sees the GPUs
 * of this lease, and a gpulease in it the queue of the host.
 */
#include <errno.h>
#include <sys/stat.h>

#include "config_file.h"
#include "context.h"
#include "diag.h"
#include "docker_args.h"
#include "exitcodes.h"
#include "other_program.h"
#include "process_lease.h"
#include "verbs.h"

/* Writes the full path of @path to @out; NULL if no file has it, as when a program was replaced. */
static const char *docker_args_full_path(const char *path, char out[PATH_MAX])
{
	struct stat st;

	return realpath(path, out) && stat(out, &st) == 0 ? out : NULL;
}

/*
 * Reads from the environment in which lease this process runs; ->id stays NULL outside of one.
 * Returns 0, or an exit status after a message.
 */
static int docker_args_read_lease(struct docker_args *args)
{
	args->id = getenv("GPULEASE_ID");
	if (!args->id || !args->id[0]) {
		args->id = NULL;
		return 0;
	}
	args->token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	args->uuids = getenv("GPULEASE_UUIDS");
	if (!args->uuids || !docker_args_are_uuids(args->uuids)) {
		diag("GPULEASE_UUIDS is missing or wrong; gpulease sets it in a lease, so do not "
		     "change it");
		return EXIT_MISUSE;
	}
	return 0;
}

/* Returns the group that shares the directory; 0 if it is private. */
static gid_t docker_args_group(const struct statedir *dir)
{
	struct stat st;

	return dir->is_private || fstat(dir->fd, &st) < 0 ? 0 : st.st_gid;
}

/* Adds what a gpulease in the container needs: the directory, the configuration, the programs. */
static void docker_args_add_gpulease(
	const struct context *context, struct docker_args *args)
{
	static char config[PATH_MAX], program[PATH_MAX], view[PATH_MAX], found[PATH_MAX];
	const char *file = config_file_named(context->settings->machine.config);

	args->directory = context->dir.path;
	args->is_directory_named =
		context->named || context->has_allocation || context->dir.is_fallback;
	if (!context->dir.is_hardened)
		args->group = docker_args_group(&context->dir);
	if (context->has_config)
		args->config = docker_args_full_path(file ? file : CONFIG_FILE, config);
	args->program = docker_args_full_path("/proc/self/exe", program);
	if (!args->program)
		note("the file of this gpulease was removed or replaced, so the container gets none");
	else if (other_program_find(VIEW_PROGRAM, found) == 0)
		args->view = docker_args_full_path(found, view);
}

int verb_docker_args(struct settings *settings)
{
	static struct context context;
	static char line[512 * 1024];
	struct docker_args args = { .is_podman = settings->verb.podman };
	struct text text = TEXT_ON(line);
	int r = context_open(settings, &context);

	if (r == 0 && settings->machine.sim_gpus) {
		diag("--docker-args: simulated GPUs cannot be given to a container");
		r = EXIT_MISUSE;
	}
	if (r == 0)
		r = docker_args_read_lease(&args);
	if (r != 0)
		return r;
	/* podman of a user makes a user namespace: set-group-ID programs have no effect in it */
	if (!context.dir.is_hardened || !args.is_podman || getuid() == 0)
		docker_args_add_gpulease(&context, &args);
	else if (!args.id)
		note("the set-group-ID bit of gpulease has no effect in the user namespace of "
		     "podman; lease outside: gpulease -n 1 -- podman run ...");
	docker_args_format(&args, &text);
	if (text.cut) {
		diag("--docker-args: the arguments are longer than 512 KiB");
		return EXIT_MISUSE;
	}
	puts(line);
	return EXIT_DONE;
}

#include <errno.h>
#include <fcntl.h>

#include "bind.h"
#include "childenv.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "instance.h"
#include "kin.h"
#include "launch.h"
#include "limits.h"
#include "mps.h"
#include "pattern.h"
#include "privilege.h"
#include "rights.h"
#include "watchdog.h"

enum { LIVE_FD_MIN = 100, LIST_SIZE = GPUSET_MAX * (UUID_SIZE + 1) };

/* --- environment ------------------------------------------------------------------- */

enum list_form {
	LIST_NAMES,
	LIST_UUIDS,
	LIST_FOR_CUDA, /* indices; but an instance of MIG has a uuid and no index */
};

static void list_gpus(const struct launch *launch, enum list_form form, struct text *out)
{
	gpuset_for_each (slot, &launch->gpus) {
		const struct gpu_record *gpu = &launch->view->gpus[slot].file.gpu;
		bool by_uuid = form == LIST_UUIDS ||
			       (form == LIST_FOR_CUDA && gpu_is_instance(gpu));
		struct gpu_name name = snapshot_gpu_name(launch->view, (unsigned)slot);

		text_addf(out, "%s%s", out->used ? "," : "",
			by_uuid ? gpu->uuid : name.text);
	}
}

static int make_environment(const struct launch *launch, char ***ret)
{
	static char cuda[LIST_SIZE], names[LIST_SIZE], uuids[LIST_SIZE];
	const struct settings *settings = launch->context->settings;
	struct text cuda_text = TEXT_ON(cuda), name_text = TEXT_ON(names),
		    uuid_text = TEXT_ON(uuids);
	const char *dir = getenv("GPULEASE_DIR");
	static struct mps_limits mps;
	const struct need *need = &launch->need;
	char id[24], sim[48] = "", share[8], vram[24];
	bool none = gpuset_is_empty(&launch->gpus);

	mps_limit(launch->view, &launch->gpus, &launch->need, &mps);
	list_gpus(launch, LIST_FOR_CUDA, &cuda_text);
	list_gpus(launch, LIST_NAMES, &name_text);
	list_gpus(launch, LIST_UUIDS, &uuid_text);
	(void)snprintf(share, sizeof(share), "0.%02u", need->percent % WHOLE_PERCENT);
	(void)snprintf(vram, sizeof(vram), "%llu", (unsigned long long)need->mib);
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)launch->ticket);
	if (settings->sim_gpus)
		(void)snprintf(sim, sizeof(sim), "%ux%llu", settings->sim_gpus,
			(unsigned long long)settings->sim_mib);
	{
		const struct childenv_change changes[] = {
			{ "CUDA_VISIBLE_DEVICES", cuda },
			{ "CUDA_DEVICE_ORDER", "PCI_BUS_ID" },
			{ "NVIDIA_VISIBLE_DEVICES", none ? "none" : cuda },
			{ "GPULEASE_ID", id },
			{ KIN_TOKEN_VARIABLE, launch->owner->token },
			{ "GPULEASE_GPUS", names },
			{ "GPULEASE_UUIDS", uuids },
			/* so that a program can keep what was promised for it */
			{ "GPULEASE_SHARE",
				share[2] == '0' && share[3] == '0' ? NULL : share },
			{ "GPULEASE_VRAM_MIB", need->mib ? vram : NULL },
			/* so that gpulease inside the job finds its directory from anywhere */
			{ "GPULEASE_SIM", settings->sim_gpus ? sim : NULL },
			{ "GPULEASE_DIR", launch->context->named
						  ? launch->context->dir.path
						  : dir },
			/* from here on only for a share, and where MPS is there */
			{ "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", mps.memory },
			{ "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", mps.threads },
		};
		size_t count = ARRAY_SIZE(changes);

		if (!mps.threads[0])
			count--;
		if (!mps.memory[0] || !mps_is_running())
			count = ARRAY_SIZE(changes) - 2;

		/* another job's SLURM_* would have frameworks look for its tasks */
		return childenv_make(
			privilege_environment(), "SLURM_", changes, count, ret);
	}
}

/* --- redirection ------------------------------------------------------------------- */

static int open_as(const char *path, int flags, int target)
{
	autofd int fd = open(path, flags | O_CLOEXEC, 0666);

	if (fd < 0 || (fd != target && dup2(fd, target) < 0)) {
		diag("cannot open '%s': %s", path, strerror(errno));
		return -errno;
	}
	if (fd == target && fcntl(take_fd(&fd), F_SETFD, 0) < 0)
		return -errno;
	return 0;
}

static int redirect(const struct launch *launch)
{
	enum { FOR_READING = O_RDONLY, FOR_WRITING = O_WRONLY | O_CREAT | O_TRUNC };
	const struct settings *settings = launch->context->settings;
	const struct {
		const char *pattern;
		int flags, target;
	} files[] = {
		{ settings->input, FOR_READING, STDIN_FILENO },
		{ settings->output, FOR_WRITING, STDOUT_FILENO },
		{ settings->error, FOR_WRITING, STDERR_FILENO },
	};
	char host[256] = "", user[USER_SIZE], path[PATH_MAX];
	const char *base = strrchr(settings->command[0], '/');
	struct pattern_values values = {
		.job = launch->ticket, .host = host, .user = user
	};
	struct why why = WHY_NONE;

	if (!settings->input && !settings->output && !settings->error)
		return 0;
	(void)gethostname(host, sizeof(host) - 1);
	local_user_name(getuid(), user, sizeof(user));
	values.name = settings->name ? settings->name
		      : base         ? base + 1
				     : settings->command[0];
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (!files[i].pattern)
			continue;
		if (pattern_expand(files[i].pattern, &values, path, sizeof(path), &why) <
			0) {
			diag("%s", why.text[0] ? why.text : "a file name is too long");
			return -EINVAL;
		}
		if (open_as(path, files[i].flags, files[i].target) < 0)
			return -EIO;
	}
	/* as with srun: one file for both, where only one is named */
	if (settings->output && !settings->error &&
		dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
		return -errno;
	return 0;
}

/* --- the rest ---------------------------------------------------------------------- */

/*
 * The FIFO goes where scripts do not reach: they use low numbers for their own files.  While
 * the limit of descriptors is still raised.
 */
static int keep_live_fd(int fd)
{
	int kept = fcntl(fd, F_DUPFD, LIVE_FD_MIN);

	for (int at = LIVE_FD_MIN - 1; kept < 0 && at > STDERR_FILENO; at--)
		kept = fcntl(fd, F_DUPFD, at);
	return kept < 0 ? -errno : 0;
}

static int start_watchdog(const struct launch *launch)
{
	const struct settings *settings = launch->context->settings;
	char names[64];
	struct watchdog_order order = {
		.dir = &launch->context->dir,
		.owner = *launch->owner,
		.gpus = launch->gpus,
		.gpu_names = names,
		.is_step = launch->live_fd < 0,
		.limit_ms = settings->limit_ms,
		.grace_ms = settings->grace_ms,
	};
	int r = 0;

	if (!settings->limit_ms && (order.is_step || gpuset_is_empty(&launch->gpus) ||
					   !launch->context->config.records_ends))
		return 0;
	ending_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	if (order.is_step)
		r = owner_self(&order.owner);
	return r < 0 ? r : watchdog_start(&order);
}

/* Near its GPUs, where the command line or the configuration says so. */
static void bind_to_gpus(const struct launch *launch)
{
	const struct context *context = launch->context;
	enum bind_wish wish = context->settings->bind;
	const char *bus_ids[GPUSET_MAX];
	unsigned count = 0;
	int r = BIND_NOTHING;

	if (wish == BIND_NO || (wish == BIND_AS_CONFIGURED && !context->config.binds))
		return;
	gpuset_for_each (slot, &launch->gpus)
		bus_ids[count++] = launch->view->gpus[slot].file.gpu.bus_id;
	if (count)
		r = bind_near(bus_ids, count, "/sys");
	if (r != 0 && count && wish == BIND_YES)
		note("not bound: %s", r < 0 ? strerror(-r)
					    : "nothing is known of CPUs near these GPUs");
}

/* A script without `#!` is run by sh, as a shell or env(1) would do. */
static void execute_script(const struct launch *launch, char **environment)
{
	char **command = launch->context->settings->command;
	static char shell[] = "/bin/sh";
	size_t words = 0;
	char **script;

	while (command[words])
		words++;
	script = calloc(words + 2, sizeof(*script));
	if (!script)
		return;
	script[0] = shell;
	script[1] = (char *)launch->program;
	memcpy(script + 2, command + 1, words * sizeof(*script));
	(void)execve(script[0], script, environment);
	free(script);
}

static int execute(const struct launch *launch, char **environment)
{
	int error;

	(void)execve(launch->program, launch->context->settings->command, environment);
	error = errno;
	if (error == ENOEXEC)
		execute_script(launch, environment);
	diag("cannot execute '%s': %s", launch->program, strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

int launch(const struct launch *launch)
{
	autofree char **environment = NULL;
	int r = make_environment(launch, &environment);

	if (r == 0)
		r = start_watchdog(launch);
	if (r == 0 && launch->live_fd >= 0)
		r = keep_live_fd(launch->live_fd);
	if (r < 0) {
		diag("cannot start the command: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	/* from here on everything is done as the user */
	r = rights_drop();
	if (r < 0) {
		diag("cannot give up the group of the program: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	privilege_restore_mask();
	if (redirect(launch) < 0)
		return EXIT_MISUSE;
	bind_to_gpus(launch);
	if (launch->live_fd >= 0)
		limits_tag(launch->owner->token);
	limits_restore();
	return execute(launch, environment);
}

#include <errno.h>
#include <fcntl.h>

#include "bind.h"
#include "care.h"
#include "childenv.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "fdio.h"
#include "inject.h"
#include "instance.h"
#include "kin.h"
#include "launch.h"
#include "limits.h"
#include "mps.h"
#include "parse.h"
#include "privilege.h"
#include "redirect.h"
#include "rights.h"
#include "session.h"
#include "setup.h"
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

const struct childenv_change *launch_variables(
	const struct launch *launch, size_t *ret_count)
{
	static char cuda[LIST_SIZE], names[LIST_SIZE], uuids[LIST_SIZE];
	static char id[24], sim[48], share[8], vram[24], attempt[12];
	static struct childenv_change changes[18];
	static struct mps_limits mps;
	const struct settings *settings = launch->context->settings;
	struct text cuda_text = TEXT_ON(cuda), name_text = TEXT_ON(names),
		    uuid_text = TEXT_ON(uuids);
	const char *dir = getenv("GPULEASE_DIR");
	const struct need *need = &launch->need;
	bool none = gpuset_is_empty(&launch->gpus);
	bool is_part = need->percent % WHOLE_PERCENT != 0;
	size_t count = 0;

	mps_limit(launch->view, &launch->gpus, &launch->need, &mps);
	list_gpus(launch, LIST_FOR_CUDA, &cuda_text);
	list_gpus(launch, LIST_NAMES, &name_text);
	list_gpus(launch, LIST_UUIDS, &uuid_text);
	(void)snprintf(share, sizeof(share), "0.%02u", need->percent % WHOLE_PERCENT);
	(void)snprintf(vram, sizeof(vram), "%llu", (unsigned long long)need->mib);
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)launch->ticket);
	(void)snprintf(
		attempt, sizeof(attempt), "%u", launch->attempt ? launch->attempt : 1);
	(void)snprintf(sim, sizeof(sim), "%ux%llu", settings->sim_gpus,
		(unsigned long long)settings->sim_mib);
#define SET(name, value) changes[count++] = (struct childenv_change){ (name), (value) }
	SET("CUDA_VISIBLE_DEVICES", cuda);
	SET("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	SET("NVIDIA_VISIBLE_DEVICES", none ? "none" : cuda);
	SET("GPULEASE_ID", id);
	SET("GPULEASE_ATTEMPT", attempt);
	SET(SESSION_VARIABLE, NULL);
	SET(KIN_TOKEN_VARIABLE, launch->owner->token);
	SET("GPULEASE_GPUS", names);
	SET("GPULEASE_UUIDS", uuids);
	/* so that a program can keep what was promised for it */
	SET("GPULEASE_SHARE", is_part ? share : NULL);
	SET("GPULEASE_VRAM_MIB", need->mib ? vram : NULL);
	/* so that gpulease inside the job finds its directory from anywhere */
	SET("GPULEASE_SIM", settings->sim_gpus ? sim : NULL);
	SET("GPULEASE_DIR", launch->context->named ? launch->context->dir.path : dir);
	/* so that a gpulease inside the job finds the GPUs of the Slurm allocation */
	SET(ALLOCATION_VARIABLE, launch->context->has_allocation
					 ? launch->context->allocation.passed
					 : NULL);
	/* only for a share, and where MPS is there */
	if (mps.memory[0] && mps_is_running()) {
		SET("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", mps.memory);
		if (mps.threads[0])
			SET("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", mps.threads);
	}
#undef SET
	*ret_count = count;
	return changes;
}

static int make_environment(const struct launch *launch, char ***ret)
{
	/* srun and other Slurm commands need the first two, and inside an allocation all of them */
	static const char *const kept[] = { "SLURM_CONF*", "SLURM_JWT", "SLURM_JOB_ID",
		"SLURM_JOBID", "SLURM_CLUSTER_NAME", NULL };
	static const char *const kept_outside[] = { "SLURM_CONF*", "SLURM_JWT", NULL };
	bool is_inside = launch->context->allocation.job != NULL;
	size_t count;
	const struct childenv_change *changes = launch_variables(launch, &count);

	/* with the SLURM_* variables of a task frameworks would look for its other tasks */
	return childenv_make(privilege_environment(), "SLURM_",
		is_inside ? kept : kept_outside, launch->context->settings->export_list,
		changes, count, ret);
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

/* Whether a job with GPUs, of which this process becomes the command, needs a watchdog. */
static bool needs_watchdog(const struct context *context)
{
	return context->settings->limit_ms || context->config.records_ends;
}

const char *launch_recorder(const struct context *context)
{
	const struct settings *settings = context->settings;

	if (care_is_wanted(settings) || (settings->lease_only && !settings->adopt_pid))
		return RECORDER_SUPERVISOR;
	return needs_watchdog(context) ? RECORDER_WATCHDOG : NULL;
}

int launch_watchdog(const struct launch *launch, bool is_shell)
{
	const struct settings *settings = launch->context->settings;
	char names[64];
	struct watchdog_order order = {
		.dir = &launch->context->dir,
		.job = launch->ticket,
		.owner = *launch->owner,
		.gpus = launch->gpus,
		.gpu_names = names,
		.live_fd = launch->owner->is_adopted ? -1 : launch->live_fd,
		.is_step = launch->live_fd < 0,
		.is_shell = is_shell,
		.limit_ms = settings->limit_ms,
		.grace_ms = settings->grace_ms,
	};
	int r = 0;

	if (!needs_watchdog(launch->context) ||
		(!settings->limit_ms &&
			(order.is_step || gpuset_is_empty(&launch->gpus))))
		return 0;
	ending_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	if (order.is_step)
		r = owner_self(&order.owner);
	return r < 0 ? r : watchdog_start(&order);
}

void launch_witness(const struct launch *launch)
{
	struct owner left;
	struct watchdog_order order = {
		.dir = &launch->context->dir,
		.job = launch->ticket,
		.owner = *launch->owner,
		.gpus = launch->gpus,
		.live_fd = launch->live_fd,
		.is_told = true,
	};

	if (launch->live_fd < 0 || gpuset_is_empty(&launch->gpus) ||
		leftover_find_of(launch->owner, order.dir->pidns, &left) <= 0)
		return;
	/* without a witness the process that takes the GPUs looks itself, if it can */
	(void)!watchdog_start(&order);
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
static void execute_script(
	const struct launch *launch, char **command, char **environment)
{
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

/* The program is there, so what it names behind `#!` is not, or the loader it wants. */
static void refuse_interpreter(const char *program)
{
	autofd int fd = open(program, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char head[256] = "";
	ssize_t size = fd < 0 ? 0 : read(fd, head, sizeof(head) - 1);
	char *name = head + 2, *end;

	if (size < 2 || head[0] != '#' || head[1] != '!') {
		diag("cannot execute '%s': the loader that it wants is not there",
			program);
		return;
	}
	head[size] = '\0';
	name += strspn(name, " \t");
	end = name + strcspn(name, " \t\n");
	diag("cannot execute '%s': its interpreter '%s' is not there", program,
		quote_bytes(name, (size_t)(end - name)).text);
}

static int execute(const struct launch *launch, char **command, char **environment)
{
	int error;

	(void)execve(launch->program, command, environment);
	error = errno;
	if (error == ENOEXEC)
		execute_script(launch, command, environment);
	if (error == ENOENT && access(launch->program, F_OK) == 0)
		refuse_interpreter(launch->program);
	else
		diag("cannot execute '%s': %s", launch->program, strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

/* The GPUs in its arguments, by the numbers that it sees, or by those that everybody sees. */
static int inject(const struct launch *launch, char ***ret)
{
	const struct settings *settings = launch->context->settings;
	char gpus[LIST_SIZE], uuids[LIST_SIZE], count[12], id[24];
	struct text gpu_text = TEXT_ON(gpus), uuid_text = TEXT_ON(uuids);
	const struct inject_values values = { gpus, count, uuids, id };
	unsigned number = gpuset_count(&launch->gpus);

	if (settings->inject_style == INJECT_PHYSICAL)
		list_gpus(launch, LIST_NAMES, &gpu_text);
	for (unsigned i = 0; settings->inject_style == INJECT_LOCAL && i < number; i++)
		text_addf(&gpu_text, i ? ",%u" : "%u", i);
	list_gpus(launch, LIST_UUIDS, &uuid_text);
	(void)snprintf(count, sizeof(count), "%u", number);
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)launch->ticket);
	return inject_arguments(launch->command, setup_words(settings) + 1,
		settings->inject, &values, ret);
}

/*
 * Gives up the group, redirects, and closes all descriptors into the state but the FIFO, which the
 * command gets anyway.  From here on files are opened with the user's rights, too.
 */
static int become_user(const struct redirection *redirection)
{
	bool was_lent = rights_are_lent();
	int r = rights_drop();

	if (r < 0) {
		diag("cannot give up the group of the program: %s", strerror(-r));
		return r;
	}
	privilege_restore_mask();
	if (redirection)
		r = redirect_apply(redirection);
	if (r < 0 || !was_lent)
		return r;
	r = fdio_close_on_exec();
	if (r < 0)
		diag("cannot close the files of the state: %s", strerror(-r));
	return r;
}

int launch(const struct launch *launch)
{
	autofree char **environment = NULL;
	struct redirection own = REDIRECTION_NONE;
	autofree char **command = NULL;
	int r = make_environment(launch, &environment);

	if (r == 0)
		r = inject(launch, &command);
	if (r == 0 && !launch->is_supervised)
		r = launch_watchdog(launch, false);
	if (r == 0 && launch->live_fd >= 0)
		r = keep_live_fd(launch->live_fd);
	if (r < 0) {
		diag("cannot start the command: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	r = become_user(launch->redirection);
	if (r == 0 && launch->redirection == NULL)
		r = redirect_open(launch->context, launch->ticket, &own);
	if (r == 0)
		r = redirect_apply(&own);
	if (r < 0)
		return EXIT_MISUSE;
	bind_to_gpus(launch);
	if (launch->live_fd >= 0)
		limits_tag(launch->owner->token);
	limits_restore();
	return execute(launch, command, environment);
}

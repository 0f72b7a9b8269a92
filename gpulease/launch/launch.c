#include <errno.h>
#include <fcntl.h>

#include "bind.h"
#include "settings.h"
#include "diag.h"
#include "end_record.h"
#include "execute.h"
#include "exitcodes.h"
#include "fdio.h"
#include "inject.h"
#include "job_environment.h"
#include "launch.h"
#include "notifier.h"
#include "rlimits.h"
#include "parse.h"
#include "privilege.h"
#include "redirect.h"
#include "rights.h"
#include "setup.h"
#include "task_words.h"
#include "watchdog.h"

enum { LIVE_FD_MIN = 100 };

/*
 * Duplicates the lease's FIFO to a high descriptor without close-on-exec, so that the command and
 * all its children inherit it.  Scripts use low numbers for their own files and would close it.
 * The soft limit of descriptors is still raised here.  If 100 exceeds even that limit, takes the
 * highest free number below.  Returns 0 or a negative errno.
 */
static int launch_keep_live_fd(int fd)
{
	int kept = fcntl(fd, F_DUPFD, LIVE_FD_MIN);

	for (int at = LIVE_FD_MIN - 1; kept < 0 && at > STDERR_FILENO; at--)
		kept = fcntl(fd, F_DUPFD, at);
	return kept < 0 ? -errno : 0;
}

/* Whether a job needs a watchdog if this process becomes its command. */
static bool launch_needs_watchdog(const struct context *context)
{
	const struct settings *settings = context->settings;

	/* a shell or an adopted process does not hold the FIFO of its lease: the watchdog does */
	if (settings->request.shell || settings->request.adopt_pid)
		return true;
	/* for fair-share, too, the end of each job has to be known */
	return settings->care.limit_ms || context->config.records_ends ||
	       context->dir.counts_usage || settings->environment.notify;
}

const char *launch_recorder(const struct context *context)
{
	const struct settings *settings = context->settings;

	if (is_supervision_wanted(settings) ||
		(settings->request.lease_only && !settings->request.adopt_pid))
		return RECORDER_SUPERVISOR;
	return launch_needs_watchdog(context) ? RECORDER_WATCHDOG : NULL;
}

int launch_watchdog(const struct launch *launch, bool is_shell)
{
	const struct run_care *care = &launch->context->settings->care;
	static struct use_words use;
	char names[64];
	struct watchdog_order order = {
		.dir = &launch->context->dir,
		.job = launch->ticket,
		.owner = *launch->owner,
		.gpus = launch->gpus,
		.gpu_names = names,
		.ticket = launch->leaseless,
		.live_fd = launch->live_fd,
		.is_step = launch->step != NULL,
		.is_shell = is_shell,
		.limit_ms = care->limit_ms,
		.grace_ms = care->grace_ms,
		.use_interval_ms = launch->context->config.idle_interval_ms,
	};
	int r = 0;

	/* a step has no end to record, and a job without GPUs no time that counts */
	if (!launch_needs_watchdog(launch->context) ||
		(!care->limit_ms && !notifier_is_there() &&
			(order.is_step ||
				(launch->leaseless &&
					!launch->context->config.records_ends))))
		return 0;
	end_record_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	/* of a step this process is watched, not the owner of the lease around it */
	if (order.is_step)
		r = owner_self(&order.owner);
	else if (!gpuset_is_empty(&launch->gpus)) {
		use_words_make(launch->context, launch->ticket, &use);
		order.use = &use;
	}
	return r < 0 ? r : watchdog_start(&order);
}

void launch_witness(const struct launch *launch, int64_t left_ms)
{
	struct owner left;
	struct watchdog_order order = {
		.dir = &launch->context->dir,
		.job = launch->ticket,
		.owner = *launch->owner,
		.gpus = launch->gpus,
		.live_fd = launch->live_fd,
		.is_told = true,
		.limit_ms = left_ms,
		.grace_ms = launch->context->settings->care.grace_ms,
	};

	if (launch->live_fd < 0 || gpuset_is_empty(&launch->gpus) ||
		leftover_find_of(launch->owner, order.dir->pidns, &left) <= 0)
		return;
	/* without a witness, the next process that takes these GPUs looks for leftovers itself */
	(void)!watchdog_start(&order);
}

/* Binds to the CPUs near the GPUs if the command line or the configuration asks for it. */
static void launch_bind(const struct launch *launch)
{
	const struct context *context = launch->context;
	enum bind_wish wish = context->settings->environment.bind;
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
		note("cannot bind the job to the CPUs near its GPUs: %s",
			r < 0 ? strerror(-r)
			      : "this machine does not show which they are");
}

/*
 * Fills the GPUs into the arguments of the command, but not into the words before them: those of
 * the setup shell, and the program.  CUDA_VISIBLE_DEVICES makes the command see its GPUs as 0, 1,
 * …: these numbers are INJECT_LOCAL; the machine's are INJECT_PHYSICAL.
 */
static int launch_inject_gpus(const struct launch *launch, char ***ret)
{
	const struct run_environment *environment =
		&launch->context->settings->environment;
	char gpus[GPU_LIST_SIZE], uuids[GPU_LIST_SIZE], count[12], id[24];
	struct text gpu_text = TEXT_ON(gpus), uuid_text = TEXT_ON(uuids);
	const struct inject_values values = { gpus, count, uuids, id };
	unsigned number = gpuset_count(&launch->gpus);

	if (environment->inject_style == INJECT_PHYSICAL)
		job_environment_list_gpus(launch, GPU_LIST_NAMES, &gpu_text);
	for (unsigned i = 0; environment->inject_style == INJECT_LOCAL && i < number; i++)
		text_addf(&gpu_text, i ? ",%u" : "%u", i);
	job_environment_list_gpus(launch, GPU_LIST_UUIDS, &uuid_text);
	(void)snprintf(count, sizeof(count), "%u", number);
	(void)snprintf(id, sizeof(id), "%llu", (unsigned long long)launch->ticket);
	return inject_arguments(launch->command, setup_words(environment) + 1,
		environment->inject, &values, ret);
}

/*
 * Gives up the program's group and redirects.  If the group was lent (setgid), also closes every
 * close-on-exec descriptor now: from here on this process has only the user's rights, and must not
 * keep what the group has opened.  The lease's FIFO stays open: launch_keep_live_fd() has made a
 * copy without close-on-exec.
 */
static int launch_become_user(const struct redirection *redirection)
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
	const char *program = launch->program;
	struct why why = WHY_NONE;
	int r = job_environment_make(launch, &environment);

	if (r == 0)
		r = launch_inject_gpus(launch, &command);
	if (r == 0 && !launch->is_supervised)
		r = launch_watchdog(launch, false);
	if (r == 0 && launch->live_fd >= 0)
		r = launch_keep_live_fd(launch->live_fd);
	if (r < 0) {
		diag("cannot start the command: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	if (launch->step && launch->step->count) {
		r = task_words_add_parent(launch->step, &program, &command);
		if (r != 0)
			return r;
	}
	r = launch_become_user(launch->redirection);
	if (r == 0 && launch->redirection == NULL)
		r = redirect_open(launch->context, launch->ticket, &own);
	if (r == 0)
		r = redirect_apply(&own);
	if (r < 0)
		return EXIT_MISUSE;
	launch_bind(launch);
	/* a step has inherited the tag, like the FIFO */
	if (launch->live_fd >= 0)
		rlimits_tag(launch->owner->token);
	rlimits_restore();
	r = execute(program, command, environment, &why);
	diag("%s", why.text);
	return r;
}

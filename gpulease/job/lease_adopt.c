#include "clock.h"
#include "diag.h"
#include "end_record.h"
#include "exitcodes.h"
#include "lease_adopt.h"
#include "lease_heir.h"
#include "local_user.h"
#include "process_info.h"

/* Fills in the request: the command of the process, if /proc shows it, and the GPUs. */
static void adopt_fill_request(
	const struct run_request *asked, uint32_t pid, struct request *request)
{
	static char command[COMMAND_SIZE_MAX];

	if (process_info_command(pid, command, sizeof(command)))
		text_copy(request->command, sizeof(request->command), command);
	/* without -n, or with a share: all GPUs that the process uses, however many */
	if (!asked->gpus_given || request->share_percent % WHOLE_PERCENT)
		request->gpus = 0;
}

/* Probes anew: an older result may not have the process yet.  Returns 0 or EXIT_MISUSE. */
static int adopt_probe(const struct context *context, struct broker *broker)
{
	int64_t asked_ms = clock_boot_ms();
	int r = broker_probe(broker, asked_ms + context_patience_ms(context));

	if (r == 0 && broker->view.has_probe &&
		broker->view.probe.finished_ms >= asked_ms)
		return 0;
	if (r < 0)
		diag("cannot read the state in '%s': %s", context->dir.path,
			strerror(-r));
	else
		diag("cannot tell which GPUs process %u uses: nvidia-smi does not answer",
			context->settings->request.adopt_pid);
	return EXIT_MISUSE;
}

/* Prints the id on stdout, for the caller, and the GPUs on stderr, for a person. */
static int adopt_report(const struct launch *launch)
{
	unsigned long long job = launch->ticket;
	char names[GPUSET_MAX * 8];

	end_record_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	note("job %llu is process %u, which has GPU %s", job, launch->owner->pid, names);
	if (printf("%llu\n", job) < 0 || fflush(stdout) != 0) {
		diag("cannot print the job id, %llu; the process has its lease", job);
		return EXIT_MISUSE;
	}
	return EXIT_DONE;
}

int lease_adopt(const struct context *context, struct broker *broker,
	const struct request *request)
{
	static struct owner heir;
	struct request wanted = *request;
	struct why why = WHY_NONE;
	struct launch launch = { .context = context, .view = &broker->view };
	char user[USER_SIZE];
	int r = lease_heir_find(context->settings->request.adopt_pid, true, &heir);

	if (r == 0)
		r = adopt_probe(context, broker);
	if (r != 0)
		return r;
	adopt_fill_request(&context->settings->request, heir.pid, &wanted);
	local_user_name(heir.uid, user, sizeof(user));
	broker->input.heir = &heir;
	if (broker_adopt(broker, &wanted, user, &why) < 0) {
		diag("cannot lease the GPUs of process %u: %s", heir.pid, why.text);
		return EXIT_MISUSE;
	}
	launch.owner = &heir;
	launch.live_fd = broker->heir_fd;
	launch.ticket = broker->number;
	launch.gpus = broker->result.verdict.gpus;
	r = lease_heir_look_after(&launch, false);
	return r == 0 ? adopt_report(&launch) : r;
}

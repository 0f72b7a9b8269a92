#include "clock.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "lease_only.h"
#include "process.h"

/* The command of the process, as far as it may be seen, stands in the place of one of ours. */
static void describe(
	const struct settings *settings, uint32_t pid, struct request *request)
{
	static char command[COMMAND_SIZE_MAX];

	if (process_command(pid, command, sizeof(command)))
		text_copy(request->command, sizeof(request->command), command);
	/* a part of each, and of however many */
	if (!settings->gpus_given || request->share_percent % WHOLE_PERCENT)
		request->gpus = 0;
}

/* What nvidia-smi says now: an older answer may not know the process yet. */
static int probe(const struct context *context, struct broker *broker)
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
		diag("which GPUs process %u uses is not known: nvidia-smi does not answer",
			context->settings->adopt_pid);
	return EXIT_MISUSE;
}

/* It has its lease: who called us wants the id, a person the GPUs. */
static int report(const struct launch *launch)
{
	unsigned long long job = launch->ticket;
	char names[GPUSET_MAX * 8];

	ending_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	note("job %llu is process %u, it has GPU %s", job, launch->owner->pid, names);
	if (printf("%llu\n", job) < 0 || fflush(stdout) != 0) {
		diag("cannot print the id, %llu; the lease stands", job);
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
	int r = lease_name_heir(context->settings->adopt_pid, true, &heir);

	if (r == 0)
		r = probe(context, broker);
	if (r != 0)
		return r;
	describe(context->settings, heir.pid, &wanted);
	local_user_name(heir.uid, user, sizeof(user));
	broker->heir = &heir;
	if (broker_adopt(broker, &wanted, user, &why) < 0) {
		diag("cannot lease the GPUs of process %u: %s", heir.pid, why.text);
		return EXIT_MISUSE;
	}
	launch.owner = &heir;
	launch.ticket = broker->number;
	launch.gpus = broker->verdict.gpus;
	r = lease_look_after(&launch, false);
	return r == 0 ? report(&launch) : r;
}

#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "directory_choice.h"
#include "doctor.h"

enum { JOBS_MAX = 16384 }; /* waiting tickets to count; the check then says "and more" */

/* Sets ->path and ->stat, also for a directory that could not be opened. */
static void doctor_find_directory(struct doctor *doctor)
{
	const struct context *context = &doctor->context;
	const char *path = "";

	if (context->dir.path[0])
		path = context->dir.path;
	else if (!doctor->settings->machine.sim_gpus && !context->dir.is_fallback &&
		 !context->has_allocation)
		path = context->named ? context->named : context->config.directory;
	text_copy(doctor->path, sizeof(doctor->path), path);
	if (doctor->directory_error == 0)
		doctor->has_stat = fstat(context->dir.fd, &doctor->stat) == 0;
	else
		doctor->has_stat = path[0] && stat(path, &doctor->stat) == 0;
}

/*
 * Runs nvidia-smi even if there is a recent shared result, to measure how long it takes.  Its
 * deadline ends it.
 */
static void doctor_run_nvidia_smi(struct doctor *doctor)
{
	const struct prober_config *config = &doctor->context.prober;
	struct probe *probe = &doctor->reader.snapshot.probe;
	struct probe_run run = PROBE_RUN_INIT;

	probe_run_start(&run, config->nvidia_smi, config->environment, config->limit_ms,
		clock_boot_ms());
	while (probe_run_step(&run, clock_boot_ms(), probe) == PROBE_RUNNING) {
		struct pollfd fds[PROBE_POLL_FDS];
		unsigned count = probe_run_poll_fds(&run, fds);
		int64_t left_ms = probe_run_deadline_ms(&run) - clock_boot_ms();

		(void)poll(fds, count, (int)min_i64(max_i64(left_ms, 0), 1000));
	}
	probe_run_release(&run);
	doctor->has_run = true;
	doctor->run_ms = probe->finished_ms - probe->started_ms;
	doctor->reader.snapshot.has_probe = true;
}

static void doctor_probe_gpus(struct doctor *doctor)
{
	const struct statedir *dir = &doctor->context.dir;
	struct snapshot *view = &doctor->reader.snapshot;

	if (doctor->context.prober.sim_gpus) {
		prober_refresh(&doctor->reader.prober, clock_boot_ms(), &view->probe,
			&view->has_probe);
		return;
	}
	if (!doctor->context.nvidia_smi[0])
		return;
	doctor_run_nvidia_smi(doctor);
	/* other processes can use the answer; failing to store it does not matter here */
	if (doctor->directory_error == 0)
		(void)!probe_store(
			dir, &doctor->context.prober.usage, NULL, &view->probe);
}

void doctor_examine(struct doctor *doctor, struct settings *settings)
{
	struct context *context = &doctor->context;

	doctor->settings = settings;
	(void)!context_load_config(settings, context, &doctor->config_trouble);
	/* before the directory is opened: a private one makes the program give up its group */
	doctor->setid = setid_look(&doctor->setid_group);
	doctor->directory_error =
		directory_choice_open(context, &doctor->directory_trouble);
	doctor_find_directory(doctor);
	context_find_driver(context);
	state_reader_init(&doctor->reader, context, JOBS_MAX);
	doctor_probe_gpus(doctor);
	if (doctor->directory_error == 0)
		doctor->has_view =
			state_reader_read(&doctor->reader, &doctor->view_trouble) == 0;
}

void doctor_release(struct doctor *doctor)
{
	state_reader_release(&doctor->reader);
	doctor_report_release(&doctor->report);
}

const struct probe *doctor_probe(const struct doctor *doctor)
{
	const struct probe *probe = &doctor->reader.snapshot.probe;
	bool is_there = doctor->has_run || doctor->settings->machine.sim_gpus;

	return is_there && !probe->trouble.text[0] ? probe : NULL;
}

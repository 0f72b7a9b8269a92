#include <errno.h>
#include <grp.h>
#include <poll.h>

#include "clock.h"
#include "doctor_checks.h"

enum { JOBS_MAX = 16384 }; /* waiting ones; the others are not counted */

void local_group_name(gid_t gid, char *out, size_t size)
{
	FILE *file = fopen("/etc/group", "re");
	struct group *entry;

	(void)snprintf(out, size, "%u", (unsigned)gid);
	while (file && (entry = fgetgrent(file)))
		if (entry->gr_gid == gid) {
			text_copy(out, size, entry->gr_name);
			break;
		}
	if (file)
		(void)fclose(file);
}

static void find_directory(struct doctor *doctor)
{
	const struct context *context = &doctor->context;
	const char *path = "";

	if (context->dir.path[0])
		path = context->dir.path;
	else if (!doctor->settings->sim_gpus && !context->dir.is_fallback &&
		 !context->has_allocation)
		path = context->named ? context->named : context->config.directory;
	text_copy(doctor->path, sizeof(doctor->path), path);
	if (doctor->directory_error == 0)
		doctor->has_stat = fstat(context->dir.fd, &doctor->stat) == 0;
	else
		doctor->has_stat = path[0] && stat(path, &doctor->stat) == 0;
}

/*
 * An nvidia-smi of our own, whoever else has just asked: what is wanted is how long it takes.
 * It ends at its deadline, if not by itself.
 */
static void run_nvidia_smi(struct doctor *doctor)
{
	const struct prober_config *config = &doctor->context.prober;
	struct probe *probe = &doctor->look.snapshot.probe;
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
	doctor->look.snapshot.has_probe = true;
}

static void look_at_gpus(struct doctor *doctor)
{
	const struct statedir *dir = &doctor->context.dir;
	struct snapshot *view = &doctor->look.snapshot;

	if (doctor->context.prober.sim_gpus) {
		prober_refresh(&doctor->look.prober, clock_boot_ms(), &view->probe,
			&view->has_probe);
		return;
	}
	if (!doctor->context.nvidia_smi[0])
		return;
	run_nvidia_smi(doctor);
	if (doctor->directory_error == 0)
		(void)!probe_store(
			dir, &doctor->context.prober.usage, NULL, &view->probe);
}

void doctor_examine(struct doctor *doctor, struct settings *settings)
{
	struct context *context = &doctor->context;

	doctor->settings = settings;
	(void)!context_load_config(settings, context, &doctor->config_trouble);
	doctor->setid = setid_look(&doctor->setid_group);
	doctor->directory_error =
		context_open_directory(context, &doctor->directory_trouble);
	find_directory(doctor);
	context_find_driver(context);
	look_init(&doctor->look, context, JOBS_MAX);
	look_at_gpus(doctor);
	if (doctor->directory_error == 0)
		doctor->has_view = look_read(&doctor->look, &doctor->view_trouble) == 0;
}

void doctor_release(struct doctor *doctor)
{
	look_release(&doctor->look);
	doctor_report_release(&doctor->report);
}

const struct probe *doctor_probe(const struct doctor *doctor)
{
	const struct probe *probe = &doctor->look.snapshot.probe;
	bool is_there = doctor->has_run || doctor->settings->sim_gpus;

	return is_there && !probe->trouble.text[0] ? probe : NULL;
}

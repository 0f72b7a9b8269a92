/*
 * --doctor: whether this machine is set up so that gpulease can do its work.
 */
#include "clock.h"
#include "diag.h"
#include "doctor_checks.h"
#include "exitcodes.h"
#include "terminal.h"
#include "verbs.h"

static const struct {
	const char *name;
	void (*check)(struct doctor *doctor);
} checks[] = {
	{ "configuration", check_configuration },
	{ "state directory", check_directory },
	{ "set-id", check_setid },
	{ "file system", check_file_system },
	{ "free space", check_space },
	{ "kernel", check_kernel },
	{ "pidfd", check_pidfd },
	{ "proc", check_proc },
	{ "nvidia-smi", check_nvidia_smi },
	{ "driver", check_driver },
	{ "gpus", check_gpus },
	{ "compute mode", check_compute_mode },
	{ "use outside leases", check_outside_use },
	{ "state files", check_files },
	{ "locks", check_locks },
	{ "leases", check_leases },
	{ "paused gpus", check_pauses },
	{ "queue", check_queue },
	{ "history", check_history },
	{ "litter", check_litter },
	{ "container", check_container },
	{ "slurm", check_slurm },
};

static struct doctor doctor; /* too big for the stack */

int verb_doctor(struct settings *settings)
{
	const struct doctor_report *report = &doctor.report;
	struct table_style style = terminal_style();
	int status;

	doctor_examine(&doctor, settings);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		doctor.report.check = checks[i].name;
		checks[i].check(&doctor);
	}
	if (settings->json)
		doctor_print_json(report,
			doctor.directory_error == 0 ? doctor.path : NULL, clock_real_ms(),
			stdout);
	else
		doctor_print(report, &style, stdout);
	status = doctor_worst(report) == DOCTOR_FAIL ? EXIT_NOT_DONE : EXIT_DONE;
	if (report->is_short_of_memory) {
		diag("not enough memory to show everything");
		status = EXIT_MISUSE;
	}
	doctor_release(&doctor);
	return status;
}

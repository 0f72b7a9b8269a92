#include "doctor_checks.h"

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

void doctor_check_all(struct doctor *doctor)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		doctor->report.check = checks[i].name;
		checks[i].check(doctor);
	}
}

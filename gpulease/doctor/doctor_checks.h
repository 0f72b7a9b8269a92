/*
 * The checks of --doctor, by subject:
 *
 *	doctor_check_install.c   what the installation and the administrator have set
 *	doctor_check_system.c    what the file system, the kernel and the container give
 *	doctor_check_driver.c    nvidia-smi, the driver and the GPUs
 *	doctor_check_state.c     what lies in the state directory
 *
 * They run in gpulease-view.  A new check is a function there, a line here, and a row of the table
 * in doctor_checks.c; what only gpulease can know, doctor_state.h tells.  Each check adds one
 * finding or more to ->report (doctor_report.h); doctor_facts.h has the pure parts.
 */
#ifndef GPULEASE_DOCTOR_CHECKS_H
#define GPULEASE_DOCTOR_CHECKS_H

#include "doctor.h"

/* Runs every check, in the order of the lines that --doctor prints. */
void doctor_check_all(struct doctor *doctor);

void check_configuration(struct doctor *doctor);
void check_directory(struct doctor *doctor);
void check_setid(struct doctor *doctor);

void check_file_system(struct doctor *doctor);
void check_space(struct doctor *doctor);
void check_kernel(struct doctor *doctor);
void check_pidfd(struct doctor *doctor);
void check_proc(struct doctor *doctor);
void check_container(struct doctor *doctor);
void check_slurm(struct doctor *doctor);

void check_nvidia_smi(struct doctor *doctor);
void check_driver(struct doctor *doctor);
void check_gpus(struct doctor *doctor);
void check_compute_mode(struct doctor *doctor);
void check_outside_use(struct doctor *doctor);

void check_files(struct doctor *doctor);
void check_locks(struct doctor *doctor);
void check_leases(struct doctor *doctor);
void check_pauses(struct doctor *doctor);
void check_queue(struct doctor *doctor);
void check_history(struct doctor *doctor);
void check_litter(struct doctor *doctor);

#endif

/*
 * The variables by which the environment changes what gpulease does.
 *
 * Read here: GPULEASE_SIM and GPULEASE_DIR, which are --sim and --dir for programs that cannot add
 * an option, such as the commands in a simulated job.  Read elsewhere:
 *
 *	GPULEASE_CONFIG				config_file.c
 *	PATH					find_program.c
 *	HOME, XDG_STATE_HOME			directory_choice.c, local_user.c, joblog.c
 *	SLURM_*, GPULEASE_ALLOCATION		slurm_allocation.c
 *	GPULEASE_TOKEN, GPULEASE_STEP		job_step.c
 *	GPULEASE_NOTIFY				notifier.c
 *	GPULEASE_ID				verb_docker_args.c, verb_wait_for.c, option_values.c
 *	GPULEASE_UUIDS				verb_docker_args.c, job_step.c, selection.c
 *	CUDA_VISIBLE_DEVICES			selection.c, slurm_allocation.c
 *	CUDA_MPS_PIPE_DIRECTORY			mps.c
 *	MAMBA_ROOT_PREFIX, CONDA_*		conda.c
 *	TMUX					verb_attach.c
 *	COLUMNS, NO_COLOR, TERM			terminal.c, batch_show.c
 *	TZ					date_time.c
 *
 * The variables that the command gets are set in launch.c.
 */
#ifndef GPULEASE_ENVIRONMENT_H
#define GPULEASE_ENVIRONMENT_H

#include "settings.h"

/*
 * Returns the state directory that the user names by --dir or GPULEASE_DIR, NULL if none.  A
 * set-group-ID program must not use its group on files that the user chooses: it notes that the
 * names are ignored, removes --dir and --config from @machine, and returns NULL.
 */
const char *environment_directory(struct machine_settings *machine);

/*
 * Reads GPULEASE_SIM into @machine, unless --sim was given.  Simulated GPUs do not go with --dir.
 * Returns 0, or -EINVAL with the message in @why.
 */
MUST_CHECK int environment_read_sim(struct machine_settings *machine, struct why *why);

#endif

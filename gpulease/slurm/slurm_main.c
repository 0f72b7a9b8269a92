/*
 * gpulease-slurm: what users of Slurm expect and what needs no rights.  gpulease executes it with
 * the user's rights alone, and it is never set-group-ID.  The part of it that runs is named by
 * the name of a link to it, as for sbatch and squeue, or by the first word.
 */
#include <string.h>

#include "array_ids.h"
#include "array_part.h"
#include "container_part.h"
#include "diag.h"
#include "exitcodes.h"
#include "mpi_list.h"
#include "sbatch.h"
#include "scancel.h"
#include "scontrol.h"
#include "script_part.h"
#include "squeue.h"
#include "standard_fds.h"
#include "step_parent.h"
#include "tasks.h"
#include "text.h"

static const struct {
	const char *name;
	int (*main)(char **argv);
} parts[] = {
	{ "array", array_main },
	{ "container", container_main },
	{ "ids", array_ids_main },
	{ "mpi", mpi_list_main },
	{ "sbatch", sbatch_main },
	{ "scancel", scancel_main },
	{ "scontrol", scontrol_main },
	{ "script", script_main },
	{ "squeue", squeue_main },
	{ "step", step_parent_main },
	{ "submit", sbatch_submit_main },
	{ "tasks", tasks_main },
};

/* Runs the part with the name of @argv[0], without its folder.  Returns false if there is none. */
static bool run_part(char **argv, int *ret_status)
{
	for (size_t i = 0; *argv && i < ARRAY_SIZE(parts); i++) {
		if (strcmp(text_base_name(*argv), parts[i].name) != 0)
			continue;
		*ret_status = parts[i].main(argv);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	int status = EXIT_MISUSE;

	(void)argc;
	standard_fds_open();
	/* a link to this program may have the name of a part */
	if (run_part(argv, &status) || (*argv && run_part(argv + 1, &status)))
		return status;
	diag("gpulease-slurm is a part of gpulease and is started by it; see gpulease-srun(7)");
	return status;
}

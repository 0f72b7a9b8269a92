#include <errno.h>

#include "find_program.h"
#include "slurm_programs.h"

int slurm_programs_own(char out[PATH_MAX])
{
	ssize_t size = readlink("/proc/self/exe", out, PATH_MAX - 1);

	if (size < 0)
		return -ENOENT;
	out[size] = '\0';
	return 0;
}

int slurm_programs_gpulease(char out[PATH_MAX])
{
	return find_program_beside("gpulease", out) == 0
		       ? 0
		       : find_program_beside("../../bin/gpulease", out);
}

int slurm_programs_links(char out[PATH_MAX])
{
	int r = find_program_beside("bin/srun", out);

	if (r == 0)
		out[strlen(out) - strlen("/srun")] = '\0';
	return r;
}

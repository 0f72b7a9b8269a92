#include "find_program.h"
#include "privilege.h"
#include "slurm_program.h"

static char **words; /* two places, and then the words of this program */

int slurm_program_find(char ret[PATH_MAX])
{
	/* in the folder of a build, or in PREFIX/lib/gpulease, where make install puts it */
	return find_program_beside("gpulease-slurm", ret) == 0
		       ? 0
		       : find_program_beside("../lib/gpulease/gpulease-slurm", ret);
}

void slurm_program_keep(char *const *argv)
{
	size_t count = 0;

	while (argv[count])
		count++;
	words = calloc(count + 3, sizeof(*words));
	if (words)
		memcpy(words + 2, argv, count * sizeof(*words));
}

void slurm_program_become(const char *part)
{
	static char path[PATH_MAX];

	if (!words || slurm_program_find(path) < 0 || privilege_drop() < 0)
		return;
	privilege_restore_mask();
	words[0] = path;
	words[1] = (char *)part;
	(void)execve(path, words, privilege_environment());
}

void slurm_program_ask(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	if (digits && name[digits] == '_')
		slurm_program_become("ids");
}

void slurm_program_try_line(void)
{
	bool has_command = false, has_status = false, may_be_value = false;

	for (char **at = words ? words + 3 : NULL; at && *at; at++) {
		if (has_status)
			slurm_program_ask(*at);
		has_status |= strcmp(*at, "--status") == 0;
		if (!has_command && strncmp(*at, "--script", 8) == 0 &&
			((*at)[8] || at[1]))
			slurm_program_become("submit");
		if (!has_command && strcmp(*at, "--mpi=list") == 0)
			slurm_program_become("mpi");
		has_command |= **at != '-' && !may_be_value;
		may_be_value = **at == '-' && !strchr(*at, '=');
	}
}

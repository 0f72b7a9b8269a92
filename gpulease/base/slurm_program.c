#include "slurm_program.h"

void slurm_program_ask(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	if (digits && name[digits] == '_')
		other_program_become(SLURM_PROGRAM, "ids");
}

void slurm_program_try_line(void)
{
	bool has_command = false, has_status = false, may_be_value = false;

	for (char **at = other_program_words(); at && *at; at++) {
		if (has_status)
			slurm_program_ask(*at);
		has_status |= strcmp(*at, "--status") == 0;
		if (!has_command && strncmp(*at, "--script", 8) == 0 &&
			((*at)[8] || at[1]))
			other_program_become(SLURM_PROGRAM, "submit");
		if (!has_command && strcmp(*at, "--mpi=list") == 0)
			other_program_become(SLURM_PROGRAM, "mpi");
		has_command |= **at != '-' && !may_be_value;
		may_be_value = **at == '-' && !strchr(*at, '=');
	}
}

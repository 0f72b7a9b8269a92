#include <errno.h>

#include "config_file.h"
#include "engine_choice.h"
#include "other_program.h"

enum engine engine_choose(
	const struct machine_settings *machine, const struct config *config)
{
	const char *name = getenv("GPULEASE_ENGINE"), *job = getenv("SLURM_JOB_ID"),
		   *sim = getenv("GPULEASE_SIM");

	if (machine->engine != ENGINE_AS_CONFIGURED)
		return machine->engine;
	if ((job && *job) || (sim && *sim) || machine->sim_gpus)
		return ENGINE_LOCAL;
	/* gpulease-engine, which has the room for a message, refuses any other value */
	if (name && *name)
		return strcmp(name, "local") == 0 ? ENGINE_LOCAL : ENGINE_SLURM;
	if (!config)
		return ENGINE_AS_CONFIGURED;
	return config->uses_slurm ? ENGINE_SLURM : ENGINE_LOCAL;
}

int engine_become(const struct machine_settings *machine, const struct config *config,
	struct why *why)
{
	if (engine_choose(machine, config) != ENGINE_SLURM)
		return 0;
	other_program_become(ENGINE_PROGRAM, "engine");
	why_set(why, "the engine slurm needs " ENGINE_PROGRAM
		     ", which is not installed; install gpulease again: make install");
	return -ENOENT;
}

void engine_try_line(void)
{
	static struct config config;
	struct machine_settings machine = { .engine = ENGINE_AS_CONFIGURED };
	struct why why = WHY_NONE;
	bool is_named = false;

	for (char **at = other_program_words(); at && *at; at++)
		is_named |= strncmp(*at, "--engine", 8) == 0;
	if (!is_named && engine_choose(&machine, NULL) == ENGINE_AS_CONFIGURED &&
		config_file_load(NULL, &config, NULL, &why) < 0)
		return;
	if (is_named || engine_choose(&machine, &config) == ENGINE_SLURM)
		other_program_become(ENGINE_PROGRAM, "engine");
}

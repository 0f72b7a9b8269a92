#include <errno.h>

#include "diag.h"
#include "environment.h"
#include "option_values.h"
#include "rights.h"

const char *environment_directory(struct machine_settings *machine)
{
	const char *dir = getenv("GPULEASE_DIR"), *config = getenv("GPULEASE_CONFIG");

	if (dir && !*dir)
		dir = NULL;
	if (rights_are_lent()) {
		if (machine->config || (config && *config))
			note("%s is ignored: gpulease is installed for all users",
				machine->config ? "--config" : "GPULEASE_CONFIG");
		if (machine->dir || dir)
			note("%s is ignored: gpulease is installed for all users",
				machine->dir ? "--dir" : "GPULEASE_DIR");
		machine->config = machine->dir = NULL;
		return NULL;
	}
	return machine->dir ? machine->dir : dir;
}

int environment_read_sim(struct machine_settings *machine, struct why *why)
{
	const char *sim = getenv("GPULEASE_SIM");
	struct why reason;

	if (!machine->sim_gpus && sim && *sim && read_sim(sim, machine, &reason) < 0) {
		why_set(why, "GPULEASE_SIM: %s", reason.text);
		return -EINVAL;
	}
	if (!machine->sim_gpus || !machine->dir)
		return 0;
	why_set(why, "simulated GPUs have a directory of their own; leave out --dir, or "
		     "--sim and GPULEASE_SIM");
	return -EINVAL;
}

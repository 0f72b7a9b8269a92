/*
 * What every verb begins with: the settings, the configuration, the state directory, and the way to
 * nvidia-smi.
 */
#ifndef GPULEASE_CONTEXT_H
#define GPULEASE_CONTEXT_H

#include "config.h"
#include "prober.h"
#include "settings.h"
#include "slurm_allocation.h"
#include "statedir.h"

struct context {
	struct settings *settings;
	struct config
		config;  /* with --tolerance; the job's other thresholds are in ->usage;
			    with the time and the priority of [limits] */
	bool has_config; /* there is a configuration file */
	/* what [limits] gives the user at once, as in a ticket (ticket.h) */
	uint32_t most_gpus, most_jobs, limits_line;
	const char *named; /* the directory that the user names, NULL: none */
	struct slurm_allocation allocation;
	bool has_allocation; /* ->dir belongs to that allocation alone */
	bool is_copy; /* a copy without the set-group-ID bit of the installed program */
	struct statedir dir;
	struct prober_config prober;
	/* ->prober.usage, as strict as the options of this job ask */
	struct usage_policy usage;
	char nvidia_smi[PATH_MAX]; /* "": not found */
};

/*
 * Does all of the steps below and prints notes about the directory.  Returns 0, or an exit status
 * after a message.  @context is used until the program ends, and never released.
 */
MUST_CHECK int context_open(struct settings *settings, struct context *context);

/*
 * The steps one by one, for callers that continue after a failure; between these two
 * directory_choice_open() opens ->dir.
 *
 * Loads the configuration and reads the environment.  Does not return if Slurm runs the jobs
 * (engine_choice.h).  Returns 0, or a negative errno with the message in @why; ->config then has
 * the defaults.
 */
MUST_CHECK int context_load_config(
	struct settings *settings, struct context *context, struct why *why);

/* Finds nvidia-smi and sets ->prober.  Cannot fail: ->nvidia_smi is "" if there is none. */
void context_find_driver(struct context *context);

/*
 * Returns how long to wait for a probe if nothing can be done without one: longer than its own
 * deadline.
 */
int64_t context_patience_ms(const struct context *context);

/* Prints that there are no GPUs, and what helps; returns the exit status. */
MUST_CHECK int context_no_gpus(void);

#endif

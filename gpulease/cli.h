/*
 * What a command line asks of gpulease.  Pure: reads argv, nothing else.
 */
#ifndef GPULEASE_CLI_H
#define GPULEASE_CLI_H

#include "text.h"

enum verb {
	VERB_RUN, /* lease GPUs and become the command */
	VERB_STATUS,
	VERB_QUEUE,
	VERB_HISTORY,
	VERB_CANCEL,
	VERB_PAUSE,
	VERB_RESUME,
	VERB_DOCTOR,
	VERB_SHOW_CONFIG,
	VERB_DOCKER_ARGS,
	VERB_HELP,
	VERB_VERSION,
	VERB_LIST_OPTIONS,
};

enum { MODEL_SIZE = 48, IGNORED_MAX = 24 };

/* Everything points into argv; nothing is to be released.  Who does not say gets… */
struct settings {
	enum verb verb;

	/* the job */
	unsigned gpus;   /* 1 */
	bool gpus_given; /* a step without it uses all the GPUs of the lease around it */
	char model[MODEL_SIZE]; /* of the card, as in `--gpus=a100:2`; "": any */
	const char *name;       /* NULL */
	int64_t max_wait_ms;    /* -1: for ever */
	bool immediate;         /* wait for nothing but the own probe, at most… */
	int64_t immediate_ms;   /* …0: not beyond it */
	int64_t limit_ms;       /* 0: none */
	int64_t grace_ms;       /* 10 s between TERM and KILL; for --cancel too */
	bool grace_given;
	const char *chdir; /* NULL: stay */

	/*
	 * File patterns (pattern.h), checked; NULL: inherited.  What srun calls none is
	 * /dev/null.  Where only @output is set stderr goes there too, as with srun.
	 */
	const char *output, *error, *input;

	/* NULL-terminated; set for VERB_RUN only, and then with a first word */
	char **command;

	/* the verbs; operands of --cancel, --pause, --resume, good for operands.h */
	char **operands;
	unsigned operand_count;
	bool json;
	uint64_t history_count; /* 20; UINT64_MAX for `all` */
	const char *reason;     /* NULL */
	bool podman;            /* --docker-args=podman */

	/* all */
	const char *config; /* file instead of the machine's; NULL */
	const char *dir;    /* state directory; NULL */
	unsigned sim_gpus;  /* 0: the real ones */
	uint64_t sim_mib;   /* memory of each */
	unsigned verbose;   /* how often */
	bool quiet;

	/* long names, without dashes, of srun's options that do nothing here */
	const char *ignored[IGNORED_MAX];
	unsigned ignored_count;
};

/*
 * Reads @argv, whose operands it moves to the front.  0, or -EINVAL: @why says in one
 * line what is wrong, naming the option; that is EXIT_MISUSE.
 */
MUST_CHECK int cli_parse(char **argv, struct settings *ret, struct why *why);

/* Reads `N[xSIZE]` as --sim has it into the struct settings at @settings.  0 or -EINVAL. */
MUST_CHECK int read_sim(const char *value, void *settings, struct why *why);

#endif

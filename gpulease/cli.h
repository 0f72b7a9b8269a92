/*
 * What a command line asks of gpulease.  Pure: reads argv, nothing else.
 */
#ifndef GPULEASE_CLI_H
#define GPULEASE_CLI_H

#include "text.h"
#include "ticket.h"

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
	VERB_LOG,
	VERB_FOLLOW,
	VERB_WAIT_FOR,
	VERB_SIGNAL_JOB,
	VERB_ATTACH,
	VERB_SESSIONS,
	VERB_ENTER_SESSION,
	VERB_ACCOUNTING,
	VERB_BATCH,
	VERB_ADD,
	VERB_HELP,
	VERB_VERSION,
	VERB_LIST_OPTIONS,
};

enum { MODEL_SIZE = 48, IGNORED_MAX = 40 };

/* What becomes of a job at its time limit. */
enum on_limit { ON_LIMIT_KILL, ON_LIMIT_REQUEUE };

/* Which numbers of its GPUs are put into the arguments of the command. */
enum inject_style { INJECT_LOCAL, INJECT_PHYSICAL };

/* Whether to bind to the CPUs near the GPUs; BIND_AS_CONFIGURED: the option was not given. */
enum bind_wish { BIND_AS_CONFIGURED, BIND_YES, BIND_NO };

/* What a jobs file looks like: batch_list.h. */
enum batch_format { BATCH_LINES, BATCH_CSV };

/*
 * Everything points into argv or into itself, so it is not to be copied; nothing is to be
 * released.  Who does not say gets…
 */
struct settings {
	enum verb verb;

	/* the job */
	unsigned gpus;   /* 1 */
	bool gpus_given; /* a step without it uses all the GPUs of the lease around it */
	unsigned share_percent; /* of one GPU, 1 to 99; 0: whole GPUs */
	uint64_t vram_mib;      /* declared, of each GPU; 0: not declared */
	bool need_given;        /* one of -n, --gpus, --vram: no model's need counts */
	bool exclusive;         /* alone on its GPUs although memory is declared */
	uint64_t min_vram_mib;  /* of the card; 0: any */
	char model[MODEL_SIZE]; /* of the card, as in `--gpus=a100:2`; "": any */
	/* lists of GPUs, good for operands.h; NULL: not given.  ->gpus is the first one's length */
	const char *gpu_ids, *allow, *except, *prefer;
	enum bind_wish bind;
	const char *models; /* file with the needs of models; NULL */
	int64_t priority;   /* 0 */
	bool priority_given;
	/* ids, "12,15", good for operands.h; with --add as given, for names are good there; NULL */
	const char *after, *after_ok;
	char after_ids[AFTER_SIZE], after_ok_ids[AFTER_SIZE]; /* where those two point */
	bool singleton;                                       /* with ->name */
	bool dry_run;
	const char *name;     /* NULL */
	int64_t max_wait_ms;  /* -1: for ever */
	bool immediate;       /* wait for nothing but the own probe, at most… */
	int64_t immediate_ms; /* …0: not beyond it */
	int64_t limit_ms;     /* 0: none */
	bool limit_given;     /* then that 0 was said, too */
	int64_t grace_ms;     /* 10 s between TERM and KILL; for --cancel too */
	bool grace_given;
	const char *chdir; /* NULL: stay */

	/* jobs that are looked after; see care.h */
	int warn_signal;        /* to the command ->warn_ms before its limit; 0: none */
	int64_t warn_ms;        /* 60 s */
	enum on_limit on_limit; /* kill */
	unsigned max_requeues;  /* at the limit; UINT_MAX: any number */
	int done_status;        /* a command that exits with it is done; -1: none */
	bool preemptible;
	unsigned retries, oom_retries; /* 0 */
	bool retries_given, oom_retries_given;
	bool report;

	/* where it runs */
	bool submit; /* in the background */
	bool follow; /* and its log is shown */
	bool screen; /* in a session of tmux or screen */

	/* before the command */
	const char *setup, *conda; /* NULL */
	const char *export_list;   /* as --export has it, checked; NULL: all */
	const char *inject;        /* option that gets the GPUs as its value; NULL */
	enum inject_style inject_style;

	/* a lease without a command */
	bool lease_only, shell;
	uint32_t adopt_pid; /* with ->lease_only; 0: none */

	/*
	 * File patterns (pattern.h), checked; NULL: inherited.  What srun calls none is
	 * /dev/null.  Where only @output is set stderr goes there too, as with srun.
	 */
	const char *output, *error, *input;

	/*
	 * NULL-terminated; set for VERB_RUN, and then with a first word unless ->lease_only or
	 * ->shell
	 */
	char **command;

	/* the verbs; operands of --cancel, --pause, --resume, good for operands.h */
	char **operands;
	unsigned operand_count;
	bool json;
	uint64_t history_count; /* 20; UINT64_MAX for `all` */
	const char *reason;     /* NULL */
	int signal;             /* --signal-job */
	bool force;             /* --signal-job, --cancel */
	/* --history, --accounting: which; see ended_filter.h.  ->name, too */
	const char *user, *states; /* NULL: any */
	int64_t from_ms, until_ms; /* CLOCK_REALTIME; 0, INT64_MAX */
	bool csv;
	bool podman; /* --docker-args=podman */

	/* --batch and --add; ->operands[0] is the file, the command of --add is ->command */
	enum batch_format batch_format;
	unsigned jobs_at_once; /* 0: as many as the queue gives */
	bool once, fresh, watch, fail_fast;
	const char *log_dir; /* NULL: beside the file */
	/* what ->command runs in a shell, where that is a line of a jobs file; NULL */
	const char *line;

	const char *topic; /* of --help, NULL */

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

/* Whether anything is asked for that gpulease has to stay for, as the command's parent. */
bool care_is_wanted(const struct settings *settings);

/* Reads `N[xSIZE]` as --sim has it into the struct settings at @settings.  0 or -EINVAL. */
MUST_CHECK int read_sim(const char *value, void *settings, struct why *why);

#endif

/*
 * What a command line asks for.  Each part is for the modules that need it.
 *
 * The pointers lead into argv or into the struct itself: do not copy the struct, and release
 * nothing.  The comments name the value when the option is not given.
 */
#ifndef GPULEASE_SETTINGS_H
#define GPULEASE_SETTINGS_H

#include "ticket.h"

enum verb {
	VERB_RUN, /* lease GPUs and execute the command */
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
	VERB_SCRIPT,
	VERB_VERSION,
	VERB_LIST_OPTIONS,
	VERB_COMPLETE,
	VERB_CONTAINER, /* say how to run a line with options for containers */
	VERB_TOP,
	VERB_TIMELINE,
	VERB_METRICS,
	VERB_RELEASE,
	VERB_REQUEUE,
	VERB_EXTEND,
	VERB_SAMPLE, /* take a sample of how a job uses its GPUs */
	VERB_NOTE,
	VERB_SET_PRIORITY,
	VERB_WINDOWS,
};

/* The bit of a verb, of which there are more than 32. */
#define VERB_BIT(verb) (UINT64_C(1) << (verb))

enum { MODEL_SIZE = 48, IGNORED_MAX = 48, TASKS_MAX = 512 };

/* What happens to a job at its time limit. */
enum on_limit { ON_LIMIT_KILL, ON_LIMIT_REQUEUE };

/* How --inject numbers the GPUs of the job: from 0, or as nvidia-smi does. */
enum inject_style { INJECT_LOCAL, INJECT_PHYSICAL };

/* Whether to bind to the CPUs near the GPUs; BIND_AS_CONFIGURED: the option was not given. */
enum bind_wish { BIND_AS_CONFIGURED, BIND_YES, BIND_NO };

/* The form of a jobs file: batch_list.h.  BATCH_AUTO: as its name or its first line says. */
enum batch_format { BATCH_AUTO, BATCH_LINES, BATCH_CSV };

/* The thresholds that a job may have stricter than the machine; see own_thresholds.h. */
enum own_threshold {
	OWN_MARGIN,
	OWN_SPIKE_BUFFER,
	OWN_IDLE_THRESHOLD,
	OWN_TOLERANCE,
	OWN_THRESHOLDS
};

/* What the queue needs to know: which GPUs, after which jobs, how long to wait. */
struct run_request {
	unsigned gpus;          /* 1 */
	bool gpus_given;        /* else a step uses all GPUs of the lease around it */
	unsigned share_percent; /* of one GPU, 1 to 99; 0: whole GPUs */
	uint64_t vram_mib;      /* declared, of each GPU; 0: not declared */
	bool need_given; /* by -n, --gpus or --vram: the table of models is not used */
	bool exclusive;  /* alone on its GPUs even if memory is declared */
	bool overlap; /* a step of ->job, or one that shares its GPUs with other steps */
	bool apart; /* by a GPU option of srun: a step has these GPUs for itself, as with ->exclusive */
	uint64_t job; /* another job, of which the command becomes a step; 0: none */
	uint64_t min_vram_mib;  /* of the card; 0: any */
	char model[MODEL_SIZE]; /* of the card, as in `--gpus=a100:2`; "": any */
	/*
	 * checked lists of GPUs, for operands.h; NULL: not given.  ->gpus is the length of
	 * ->gpu_ids
	 */
	const char *gpu_ids, *allow, *except, *prefer;
	const char *
		models; /* file with the table of models; NULL: that of the configuration */
	int64_t priority; /* 0 */
	bool priority_given;
	/* checked ids, "12,15"; with --add as given, because names are allowed there; NULL: none */
	const char *after, *after_ok;
	char after_ids[AFTER_SIZE],
		after_ok_ids[AFTER_SIZE]; /* what these two point to */
	uint32_t after_start;             /* as in the ticket */
	bool singleton;                   /* needs ->name */
	const char *name;     /* NULL; for --history and --accounting a filter */
	int64_t max_wait_ms;  /* -1: no bound */
	bool immediate;       /* give up unless GPUs are free after one probe… */
	int64_t immediate_ms; /* …or within this time */
	int64_t begin_ms;     /* CLOCK_BOOTTIME: not before; 0: at once */
	bool hold;            /* not before --release */
	bool dry_run;
	const char *thresholds[OWN_THRESHOLDS]; /* as given; NULL: the machine's */

	/* a lease without a command */
	bool lease_only, shell;
	uint32_t adopt_pid; /* with ->lease_only; 0: none */
};

/* What the supervisor does while the job runs and after an attempt; see retry_policy.h. */
struct run_care {
	/* first: --signal stores both, and no option may have the offset of another field */
	int64_t warn_ms;  /* 60 s */
	int warn_signal;  /* sent to the command ->warn_ms before its limit; 0: none */
	int64_t limit_ms; /* 0: none */
	bool limit_given; /* tells --time 0, no limit, from no option */
	int64_t grace_ms; /* between TERM and KILL, also for --cancel; 10 s */
	bool grace_given;
	enum on_limit on_limit; /* kill */
	unsigned max_requeues;  /* at the limit; UINT_MAX: any number */
	int done_status;      /* a command that exits with it is not retried; -1: none */
	int64_t unused_ok_ms; /* --idle-ok; 0: not given; -1: for as long as it runs */
	bool preemptible;
	bool runs_once; /* --requeue of this job is refused */
	bool warns_steps; /* ->warn_signal is for the steps of the command, not for itself */
	unsigned retries, oom_retries; /* 0 */
	bool retries_given, oom_retries_given;
};

/* The command, where it runs, and what happens before it. */
struct run_environment {
	/*
	 * NULL-terminated.  Set for VERB_RUN and VERB_ADD; empty for a lease without a command
	 */
	char **command;
	/* the line of a jobs file that ->command runs in a shell; NULL: it is not of a jobs file */
	const char *line;
	const char
		*shown;  /* what tables show in the place of ->command; NULL: ->command */
	bool submit;     /* run in the background */
	bool is_standin; /* of a job of Slurm, whose id the user knows and --log takes */
	bool follow;     /* with ->submit: print its log meanwhile */
	bool screen;     /* run in a session of tmux or screen; sets ->submit, too */
	bool unbuffered; /* -u: Python writes its output at once */
	const char *chdir; /* NULL: stay */
	enum bind_wish bind;
	const char *setup, *conda; /* NULL */
	const char *notify;        /* the command of --notify; NULL */
	const char *export_list;   /* the checked value of --export; NULL: all */
	const char *inject; /* the option of the command that gets the GPUs; NULL */
	enum inject_style inject_style;
};

/* Several processes for one command, as srun starts them. */
struct task_settings {
	unsigned count;     /* 1 */
	unsigned per_node;  /* as given; 0 */
	const char *cpus;   /* as given; NULL */
	const char *bind;   /* --gpu-bind; NULL */
	char bind_text[24]; /* what --gpus-per-task and --ntasks-per-gpu ask for; "" */
	bool labels;        /* number the lines of the output */
	bool kills;         /* one bad status ends all */
	bool forwards;      /* the first Ctrl-C goes to the tasks */
	bool pty;           /* only task 0 has the terminal */
	bool in_script;   /* srun in a job script: with one task, too, what tasks have */
	const char *note; /* what a user of srun should know; NULL */
	int64_t wait_ms;  /* from the end of the first to the end of all; 0: no bound */
};

/* Where the command's output goes, and how gpulease prints its own. */
struct output_settings {
	/*
	 * Checked file patterns (file_pattern.h); NULL: inherited.  srun's word `none` is stored as
	 * /dev/null, and with several tasks the number of a task stands for itself.  If only ->out
	 * is set, stderr goes there, too, as with srun.
	 */
	const char *out, *err, *in;
	bool append; /* to ->out and ->err, instead of writing them anew */
	bool report; /* what the job used, at its end */
	bool json, csv;
	unsigned verbose; /* how often */
	bool quiet;
};

/* The verb: what to do instead of running a command. */
struct verb_settings {
	enum verb kind;
	char **operands; /* checked; for operands.h, except those of --batch and --add */
	unsigned operand_count;
	uint64_t history_count; /* 20; UINT64_MAX for `all` */
	const char *reason;     /* NULL */
	/* of --pause: a window.  CLOCK_REALTIME, 0: from now; 0: until --resume; NULL: none */
	int64_t at_ms, for_ms; /* at 0, for -1: not given */
	const char *but;
	int64_t extend_ms; /* --extend */
	int signal;        /* --signal-job */
	bool force;        /* --signal-job, --cancel */
	bool yes;          /* --cancel: do not ask */
	/* for --history and --accounting; see ended_filter.h */
	const char *user, *states; /* NULL: any */
	int64_t from_ms, until_ms; /* CLOCK_REALTIME; 0, INT64_MAX */
	bool podman;               /* --docker-args=podman */
	const char *topic;         /* of --help, NULL */
};

/* What gpulease-view shows, and how. */
struct look_settings {
	const char *hosts;      /* names with commas; NULL: this machine */
	const char *svg, *html; /* files of --timeline; NULL: none */
	int64_t interval_ms;    /* of --top; 2 s */
	bool is_look;           /* --top=look: it acts on no job */
};

/* --batch and --add; the first operand is the jobs file. */
struct batch_options {
	enum batch_format format;
	unsigned jobs_at_once; /* 0: no bound */
	bool once, fresh, watch, fail_fast;
	const char *log_dir; /* NULL: beside the file */
};

/* What runs the jobs; ENGINE_AS_CONFIGURED: the option was not given. */
enum engine { ENGINE_AS_CONFIGURED, ENGINE_LOCAL, ENGINE_SLURM };

/* Which machine: real or simulated GPUs, its configuration and its state. */
struct machine_settings {
	const char *config; /* the file of --config; NULL: the machine's */
	const char *dir;    /* the state directory of --dir; NULL */
	unsigned sim_gpus;  /* number of simulated GPUs; 0: the real ones */
	uint64_t sim_mib;   /* memory of each simulated GPU */
	enum engine engine;
};

/* A given option without effect. */
struct ignored_option {
	const char *name; /* the long one, without dashes */
	const char *note; /* what the user should know; NULL: nothing, for -v */
};

struct settings {
	struct verb_settings verb;
	struct run_request request;
	struct run_care care;
	struct run_environment environment;
	struct task_settings tasks;
	struct output_settings output;
	struct look_settings look;
	struct batch_options batch;
	struct machine_settings machine;

	struct ignored_option ignored[IGNORED_MAX];
	unsigned ignored_count;
};

/* Whether a threshold is given that decides which GPUs are free: any but --tolerance. */
bool has_own_usage(const struct run_request *request);

/* Whether gpulease-slurm runs the command, as several tasks or with numbered lines. */
bool are_tasks_wanted(const struct settings *settings);

/*
 * Whether an option asks for something that gpulease itself has to do while the command runs or
 * after it, so that gpulease stays as the command's parent (the supervisor).
 */
bool is_supervision_wanted(const struct settings *settings);

#endif

#include "option_table.h"
#include "option_values.h"

/* clang-format off */
#define LINE(field) offsetof(struct command_line, field)
#define AT(field) LINE(settings.field)
#define BIT(verb) VERB_BIT(verb)
#define RUN BIT(VERB_RUN)
#define LOOK                                                                            \
	(BIT(VERB_STATUS) | BIT(VERB_QUEUE) | BIT(VERB_HISTORY) | BIT(VERB_DOCTOR) | BIT(VERB_WINDOWS) | \
		BIT(VERB_SHOW_CONFIG) | BIT(VERB_ACCOUNTING) | BIT(VERB_SESSIONS))
#define ENDED (BIT(VERB_HISTORY) | BIT(VERB_ACCOUNTING))
#define TIMELINE BIT(VERB_TIMELINE)
#define VIEW (BIT(VERB_TOP) | TIMELINE | BIT(VERB_METRICS))
#define HOSTS (BIT(VERB_STATUS) | BIT(VERB_QUEUE) | BIT(VERB_HISTORY) | BIT(VERB_TOP) | TIMELINE)
#define BACK                                                                            \
	(BIT(VERB_LOG) | BIT(VERB_FOLLOW) | BIT(VERB_WAIT_FOR) |                         \
		BIT(VERB_SIGNAL_JOB) | BIT(VERB_ATTACH))
#define BATCH BIT(VERB_BATCH)
#define LINES (BATCH | BIT(VERB_ADD)) /* attributes of a line; with --batch defaults */
#define PAUSE (BIT(VERB_PAUSE) | BIT(VERB_RESUME))
#define ANY (RUN | LOOK | VIEW | BACK | PAUSE | LINES | BIT(VERB_CANCEL) | BIT(VERB_RELEASE) | BIT(VERB_REQUEUE) | BIT(VERB_EXTEND) | BIT(VERB_DOCKER_ARGS) | BIT(VERB_SAMPLE) | BIT(VERB_NOTE) | BIT(VERB_SET_PRIORITY))

#define OPTION(kind_, letter_, name_, metavar_, help_, offset_, group_, verbs_)         \
	{ .kind = (kind_), .letter = (letter_), .name = (name_), .metavar = (metavar_), \
	  .help = HELP(help_), .offset = (offset_), .group = (group_), .verbs = (verbs_) }
#define CUSTOM(letter_, name_, metavar_, help_, reader, offset_, group_, verbs_)        \
	{ .kind = OPTION_CUSTOM, .letter = (letter_), .name = (name_),                  \
	  .metavar = (metavar_), .help = HELP(help_), .read = (reader),                 \
	  .offset = (offset_), .group = (group_), .verbs = (verbs_) }
#define VERB(kind_, letter_, name_, metavar_, help_, value_, group_)                    \
	{ .kind = (kind_), .letter = (letter_), .name = (name_), .metavar = (metavar_), \
	  .help = HELP(help_), .value = (value_), .group = (group_), .verbs = BIT(value_) }
#define HIDDEN_VERB(kind_, name_, metavar_, value_)                                     \
	{ .kind = (kind_), .name = (name_), .metavar = (metavar_), .value = (value_),   \
	  .group = GROUP_HIDDEN, .verbs = BIT(value_) }
#define SAME(kind_, letter_, name_, metavar_, same_as, offset_)                         \
	OPTION(kind_, letter_, name_, metavar_, "same as " same_as, offset_,            \
		GROUP_SRUN, RUN)
#define CPUS "no CPUs are reserved"
#define NOTHING "accepted, does nothing"

static const struct option_def rows[] = {
	OPTION(OPTION_TEXT, 'n', NULL, "N", "lease N GPUs (default 1; 0: none; 0.5: half of one)",
		LINE(n), GROUP_RUN, RUN | LINES),
	CUSTOM('G', "gpus", "[TYPE:]N", "lease N GPUs with TYPE in their model name",
		read_gpus, LINE(gpus[FROM_GPUS]), GROUP_RUN, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "name", "TEXT", "name the job",
		AT(request.name), GROUP_RUN, RUN | BIT(VERB_ADD) | ENDED),
	OPTION(OPTION_DURATION, 0, "max-wait", "DUR",
		"give up after waiting DUR: 90s, 15m, 2h",
		AT(request.max_wait_ms), GROUP_RUN, RUN | BIT(VERB_WAIT_FOR)),
	CUSTOM('I', "immediate", "[DUR]", "start at once (or within DUR) or give up",
		read_immediate, AT(request), GROUP_RUN, RUN),
	OPTION(OPTION_LIMIT, 't', "time", "LIMIT",
		"end the job after LIMIT: minutes, H:M:S, 90s, 2h",
		AT(care.limit_ms), GROUP_RUN, RUN | LINES),
	OPTION(OPTION_DURATION, 0, "grace", "DUR", "wait DUR between TERM and KILL (default 10s)",
		AT(care.grace_ms), GROUP_RUN, RUN | BATCH | BIT(VERB_CANCEL)),
	OPTION(OPTION_FLAG, 0, "dry-run", NULL, "say what would happen now, and do nothing",
		AT(request.dry_run), GROUP_RUN, RUN),

	CUSTOM(0, "vram", "SIZE", "declare SIZE of each GPU's memory, as 18G; share it",
		read_size, AT(request.vram_mib), GROUP_CHOOSE, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "models", "FILE", "read from FILE what each --llm MODEL needs",
		AT(request.models), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "exclusive", "[HOW]", "have the GPUs alone, even with --vram",
		read_exclusive, AT(request.exclusive), GROUP_CHOOSE, RUN | BATCH),
	OPTION(OPTION_TEXT, 0, "margin", "SIZE", "with --vram: leave SIZE or more of each GPU free",
		AT(request.thresholds[OWN_MARGIN]), GROUP_CHOOSE, RUN | BATCH),
	OPTION(OPTION_TEXT, 0, "spike-buffer", "N%", "count the seen use of others N% higher",
		AT(request.thresholds[OWN_SPIKE_BUFFER]), GROUP_CHOOSE, RUN | BATCH),
	OPTION(OPTION_TEXT, 0, "idle-threshold", "USE", "take no GPU with more than USE: 100M, 1%",
		AT(request.thresholds[OWN_IDLE_THRESHOLD]), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "min-vram", "SIZE", "use only cards with at least SIZE of memory",
		read_size, AT(request.min_vram_mib), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "model", "TEXT", "use only cards with TEXT in their model name",
		read_model, AT(request.model), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "gpu-ids", "LIST", "use exactly these GPUs: 0-3,5, 0:1 (MIG), UUIDs",
		read_gpu_ids, AT(request.gpu_ids), GROUP_CHOOSE, RUN),
	CUSTOM(0, "allow", "LIST", "use only GPUs of LIST",
		read_gpu_list, AT(request.allow), GROUP_CHOOSE, RUN | LINES),
	CUSTOM(0, "except", "LIST", "use no GPU of LIST",
		read_gpu_list, AT(request.except), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "prefer-gpus", "LIST", "use these first if they are free, in this order",
		read_prefer, AT(request.prefer), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "bind", "[yes|no]", "use the CPUs and memory next to the GPUs",
		read_bind, AT(environment.bind), GROUP_CHOOSE, RUN | BATCH),

	CUSTOM(0, "priority", "N", "start before jobs of lower priority (default 0)",
		read_priority, AT(request), GROUP_ORDER, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "after", "ID[,ID]", "start when these jobs have ended",
		LINE(after), GROUP_ORDER, RUN | BIT(VERB_ADD)),
	OPTION(OPTION_TEXT, 0, "after-ok", "ID[,ID]", "start only if these jobs exit with status 0",
		LINE(after_ok), GROUP_ORDER, RUN | BIT(VERB_ADD)),
	CUSTOM('b', "begin", "WHEN", "start later: 22:00, 'fri 9:00', now+2hours",
		read_begin, AT(request.begin_ms), GROUP_ORDER, RUN),
	OPTION(OPTION_FLAG, 'H', "hold", NULL, "do not start before --release ID",
		AT(request.hold), GROUP_ORDER, RUN),
	OPTION(OPTION_FLAG, 0, "singleton", NULL, "run one job of this user and --name at a time",
		AT(request.singleton), GROUP_ORDER, RUN),

	CUSTOM(0, "signal", "SIG[@DUR]", "send SIG to the command DUR (60s) before its limit",
		read_warning, AT(care), GROUP_CARE, RUN),
	CUSTOM(0, "on-limit", "WHAT", "at the limit: kill (default) or requeue",
		read_on_limit, AT(care.on_limit), GROUP_CARE, RUN),
	CUSTOM(0, "max-requeues", "N", "requeue at most N times (default: without bound)",
		read_times, AT(care.max_requeues), GROUP_CARE, RUN),
	OPTION(OPTION_FLAG, 0, "no-requeue", NULL, "refuse --requeue of this job",
		AT(care.runs_once), GROUP_CARE, RUN),
	CUSTOM(0, "done-status", "N", "take exit status N to mean that the work is done",
		read_status, AT(care.done_status), GROUP_CARE, RUN | BATCH),
	OPTION(OPTION_FLAG, 0, "preemptible", NULL,
		"let a job of higher priority send this one back",
		AT(care.preemptible), GROUP_CARE, RUN | BATCH),
	CUSTOM(0, "idle-ok", "[DUR]", "let it leave its GPUs unused for DUR, or always",
		read_idle_ok, AT(care.unused_ok_ms), GROUP_CARE, RUN | BATCH),
	CUSTOM(0, "retries", "N", "try again N times on failure: after 5s, 10s, 20s ...",
		read_times, AT(care.retries), GROUP_CARE, RUN | LINES),
	CUSTOM(0, "oom-retries", "N", "try again N times with 1.25 times the GPU memory",
		read_times, AT(care.oom_retries), GROUP_CARE, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "tolerance", "N%", "warn if it uses N% more than declared",
		AT(request.thresholds[OWN_TOLERANCE]), GROUP_CARE, RUN | BATCH),
	OPTION(OPTION_FLAG, 0, "report", NULL, "say at the end what the job used",
		AT(output.report), GROUP_CARE, RUN),
	OPTION(OPTION_TEXT, 0, "notify", "CMD", "run CMD when it starts, ends, waits long ...",
		AT(environment.notify), GROUP_CARE, RUN | BATCH),

	OPTION(OPTION_COMMAND, 0, "submit", NULL, "run the job in the background and print its id",
		AT(environment.submit), GROUP_BACK, RUN | BIT(VERB_FOLLOW)),
	OPTION(OPTION_FLAG, 0, "screen", NULL, "run the job in a session of tmux or screen",
		AT(environment.screen), GROUP_BACK, RUN | BATCH),
	{ .kind = OPTION_STOP, .name = "script", .metavar = "FILE",
	  .help = HELP("with --submit: submit a job script as sbatch"), .offset = AT(verb.topic),
	  .value = VERB_SCRIPT, .group = GROUP_BACK, .verbs = BIT(VERB_SCRIPT) },
	VERB(OPTION_VERB, 0, "log", "ID|NAME", "print the log of a job", VERB_LOG, GROUP_BACK),
	VERB(OPTION_VERB, 0, "follow", "ID|NAME", "print the log as it grows; Ctrl-C ends the printing",
		VERB_FOLLOW, GROUP_BACK),
	VERB(OPTION_VERB, 0, "wait-for", "ID...|all|mine", "wait until these jobs have ended",
		VERB_WAIT_FOR, GROUP_BACK),
	VERB(OPTION_VERB, 0, "signal-job", "ID SIG", "send a signal to the command of a job",
		VERB_SIGNAL_JOB, GROUP_BACK),
	VERB(OPTION_VERB, 'a', "attach", "ID", "enter the session of a job", VERB_ATTACH, GROUP_BACK),
	VERB(OPTION_VERB, 0, "sessions", NULL, "list your sessions",
		VERB_SESSIONS, GROUP_BACK),

	VERB(OPTION_VERB, 0, "batch", "FILE", "run the lines of FILE as jobs; -: standard input",
		VERB_BATCH, GROUP_BATCH),
	{ .kind = OPTION_VERB, .name = "add", .metavar = "FILE",
	  .help = HELP("append a line to FILE: --add FILE -n 2 command"), .value = VERB_ADD, .leads = 1,
	  .group = GROUP_BATCH, .verbs = BIT(VERB_ADD) },
	CUSTOM(0, "batch-format", "FORM", "read FILE as lines or csv (default: as it looks)",
		read_batch_format, AT(batch.format), GROUP_BATCH, LINES),
	CUSTOM(0, "jobs", "N", "have at most N jobs waiting and running at once",
		read_jobs, AT(batch.jobs_at_once), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "watch", NULL, "keep running when all are done, for new lines",
		AT(batch.watch), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "once", NULL, "run only one of equal lines",
		AT(batch.once), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "fresh", NULL, "forget all earlier runs and run all lines",
		AT(batch.fresh), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "fail-fast", NULL, "end all jobs when one has failed",
		AT(batch.fail_fast), GROUP_BATCH, BATCH),
	OPTION(OPTION_NOTHING, 0, "keep-going", NULL, "run the other jobs when one has failed (default)",
		0, GROUP_BATCH, BATCH),
	OPTION(OPTION_TEXT, 0, "log-dir", "DIR", "keep logs and journal in DIR (default FILE.logs)",
		AT(batch.log_dir), GROUP_BATCH, BATCH),

	OPTION(OPTION_TEXT, 0, "setup", "CMD", "run CMD first, in the shell that runs the command",
		AT(environment.setup), GROUP_SETUP, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "conda", "ENV", "activate this conda environment first",
		AT(environment.conda), GROUP_SETUP, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "inject", "OPTION", "give the command OPTION with the numbers of its GPUs",
		AT(environment.inject), GROUP_SETUP, RUN | BATCH),
	CUSTOM(0, "inject-style", "STYLE", "number GPUs local (from 0; default) or physical",
		read_style, AT(environment.inject_style), GROUP_SETUP, RUN | BATCH),

	OPTION(OPTION_FLAG, 0, "lease-only", NULL, "hold GPUs until interrupted",
		AT(request.lease_only), GROUP_LEASE, RUN),
	CUSTOM(0, "pid", "PID", "give the lease to process PID",
		read_pid, AT(request.adopt_pid), GROUP_LEASE, RUN),
	OPTION(OPTION_FLAG, 0, "shell", NULL, "lease for this shell: eval \"$(gpulease --shell)\"",
		AT(request.shell), GROUP_LEASE, RUN),

	VERB(OPTION_VERB, 0, "status", "[ID...]", "show the GPUs and the queue, or these jobs",
		VERB_STATUS, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "queue", NULL, "show the queue", VERB_QUEUE, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "history", "[N]", "show the last N ended jobs (default 20), or all",
		VERB_HISTORY, GROUP_LOOK),
	CUSTOM(0, "last", "N", "with --history: show the last N, or all",
		read_last, AT(verb.history_count), GROUP_ENDED, BIT(VERB_HISTORY)),
	VERB(OPTION_VERB, 0, "accounting", NULL, "show GPU time and waits per user",
		VERB_ACCOUNTING, GROUP_LOOK),
	OPTION(OPTION_TEXT, 0, "user", "USER", "select one user; also with --top, --timeline",
		AT(verb.user), GROUP_ENDED, ENDED | BIT(VERB_TOP) | TIMELINE),
	CUSTOM(0, "since", "WHEN", "select from WHEN on: 2026-11-20, 10:30, 7d (ago)",
		read_when, AT(verb.from_ms), GROUP_ENDED, ENDED | TIMELINE),
	CUSTOM(0, "until", "WHEN", "select up to WHEN",
		read_when, AT(verb.until_ms), GROUP_ENDED, ENDED),
	CUSTOM(0, "state", "LIST", "select states: finished, failed, cancelled, ...",
		read_states, AT(verb.states), GROUP_ENDED, ENDED),
	OPTION(OPTION_FLAG, 0, "csv", NULL, "with --accounting: print CSV",
		AT(output.csv), GROUP_ENDED, BIT(VERB_ACCOUNTING)),
	VERB(OPTION_VERB, 0, "top", "[look]", "show GPUs and queue live; look: act on no job",
		VERB_TOP, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "doctor", NULL, "check the driver, the directory and the install",
		VERB_DOCTOR, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "show-config", NULL, "show the configuration and its source",
		VERB_SHOW_CONFIG, GROUP_LOOK),
	OPTION(OPTION_FLAG, 0, "json", NULL, "with one of these, or --dry-run: print JSON",
		AT(output.json), GROUP_LOOK, LOOK | BATCH | RUN),

	VERB(OPTION_VERB, 0, "docker-args", "[podman]",
		"print arguments for docker (or podman) run", VERB_DOCKER_ARGS, GROUP_LOOK),

	OPTION(OPTION_DURATION, 0, "interval", "DUR", "with --top: look every DUR (default 2s)",
		AT(look.interval_ms), GROUP_VIEW, BIT(VERB_TOP)),
	VERB(OPTION_VERB, 0, "timeline", NULL, "show who had which GPU when (default --since 7d)",
		VERB_TIMELINE, GROUP_VIEW),
	OPTION(OPTION_TEXT, 0, "svg", "FILE", "with --timeline: write a picture",
		AT(look.svg), GROUP_VIEW, TIMELINE),
	OPTION(OPTION_TEXT, 0, "html", "FILE", "with --timeline: write a web page",
		AT(look.html), GROUP_VIEW, TIMELINE),
	VERB(OPTION_VERB, 0, "metrics", "[FILE]", "print metrics for Prometheus, or write FILE",
		VERB_METRICS, GROUP_VIEW),
	OPTION(OPTION_TEXT, 0, "host", "HOST,...", "look at these machines, by ssh",
		AT(look.hosts), GROUP_VIEW, HOSTS),

	VERB(OPTION_VERB, 0, "cancel", "JOB...", "end jobs: 12, 3-12, a NAME, mine, all",
		VERB_CANCEL, GROUP_ACT),
	OPTION(OPTION_FLAG, 0, "yes", NULL, "with --cancel: do not ask first",
		AT(verb.yes), GROUP_ACT, BIT(VERB_CANCEL)),
	OPTION(OPTION_FLAG, 0, "force", NULL,
		"signal a process even without proof of its job", AT(verb.force), GROUP_ACT,
		BIT(VERB_CANCEL) | BIT(VERB_SIGNAL_JOB)),
	VERB(OPTION_VERB, 0, "note", "TEXT", "in a job: show TEXT beside it in --status",
		VERB_NOTE, GROUP_ACT),
	VERB(OPTION_VERB, 0, "release", "ID...", "let jobs start that were submitted with --hold",
		VERB_RELEASE, GROUP_ORDER),
	VERB(OPTION_VERB, 0, "requeue", "ID...", "put running jobs back into the queue, to run again",
		VERB_REQUEUE, GROUP_CARE),
	VERB(OPTION_VERB, 0, "extend", "ID... DUR", "let running jobs run longer by DUR",
		VERB_EXTEND, GROUP_CARE),
	VERB(OPTION_VERB, 0, "set-priority", "ID N", "give a waiting job priority N",
		VERB_SET_PRIORITY, GROUP_ORDER),
	VERB(OPTION_VERB, 0, "pause", "GPU...",
		"take GPUs out of service: 0, 0-3,5, UUID", VERB_PAUSE, GROUP_ACT),
	VERB(OPTION_VERB, 0, "resume", "GPU...", "return GPUs to service",
		VERB_RESUME, GROUP_ACT),
	OPTION(OPTION_TEXT, 0, "reason", "TEXT", "say why GPUs are paused",
		AT(verb.reason), GROUP_ACT, BIT(VERB_PAUSE)),
	CUSTOM(0, "at", "WHEN", "pause later: 22:00, 'fri 9:00', now+2hours",
		read_at, AT(verb.at_ms), GROUP_WINDOWS, BIT(VERB_PAUSE)),
	OPTION(OPTION_DURATION, 0, "for", "DUR", "pause for DUR: 90m, 3h; then go on",
		AT(verb.for_ms), GROUP_WINDOWS, BIT(VERB_PAUSE)),
	OPTION(OPTION_TEXT, 0, "but", "USER,...", "pause for all users but these",
		AT(verb.but), GROUP_WINDOWS, BIT(VERB_PAUSE)),
	VERB(OPTION_VERB, 0, "windows", NULL, "show pauses with --at, --for or --but",
		VERB_WINDOWS, GROUP_WINDOWS),

	CUSTOM(0, "sim", "N[xSIZE]",
		"use N simulated GPUs (of 24G), apart from real ones",
		read_sim, AT(machine), GROUP_ANY, ANY),
	CUSTOM(0, "engine", "local|slurm", "run jobs on this machine, or on a Slurm cluster",
		read_engine, AT(machine.engine), GROUP_ANY, ANY),
	OPTION(OPTION_TEXT, 0, "config", "FILE", "read FILE instead of /etc/gpulease.conf",
		AT(machine.config), GROUP_ANY, ANY),
	OPTION(OPTION_TEXT, 0, "dir", "DIR", "use the state directory DIR, as GPULEASE_DIR",
		AT(machine.dir), GROUP_ANY, ANY),
	OPTION(OPTION_TALLY, 'v', "verbose", NULL, "say what is done",
		AT(output.verbose), GROUP_ANY, ANY),
	OPTION(OPTION_FLAG, 'Q', "quiet", NULL, "print only errors",
		AT(output.quiet), GROUP_ANY, ANY),
	{ .kind = OPTION_STOP, .letter = 'h', .name = "help", .metavar = "[TOPIC]",
	  .help = HELP("show this text, or help on TOPIC"), .offset = AT(verb.topic), .value = VERB_HELP,
	  .group = GROUP_ANY, .verbs = BIT(VERB_HELP) },
	VERB(OPTION_STOP, 'V', "version", NULL, "print the version", VERB_VERSION, GROUP_ANY),
	HIDDEN_VERB(OPTION_VERB, "sample", "ID", VERB_SAMPLE),
	HIDDEN_VERB(OPTION_VERB, "enter-session", "FOLDER", VERB_ENTER_SESSION),
	{ .kind = OPTION_TEXT, .name = "shown-command", .metavar = "TEXT",
	  .offset = AT(environment.shown), .group = GROUP_HIDDEN, .verbs = RUN },
	HIDDEN_VERB(OPTION_STOP, "list-options", NULL, VERB_LIST_OPTIONS),
	HIDDEN_VERB(OPTION_VERB, "complete", "WORD...", VERB_COMPLETE),

	CUSTOM(0, "gres", "gpu[:TYPE][:N]", "same as --gpus; only GPUs are allowed",
		read_gres, LINE(gpus[FROM_GRES]), GROUP_SRUN, RUN),
	CUSTOM(0, "gpus-per-node", "[TYPE:]N", "same as --gpus",
		read_gpus, LINE(gpus[FROM_PER_NODE]), GROUP_SRUN, RUN),
	CUSTOM(0, "gpus-per-task", "[TYPE:]N", "lease N GPUs for each task",
		read_gpus, LINE(gpus[FROM_PER_TASK]), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 0, "ntasks", "N", "run N tasks: as many processes of the command",
		LINE(tasks), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 0, "ntasks-per-node", "N", "same as --ntasks",
		LINE(per_node), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 0, "tasks-per-node", "N", "same as --ntasks",
		LINE(per_node), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 0, "ntasks-per-gpu", "N", "run N tasks for each GPU",
		LINE(per_gpu), GROUP_SRUN, RUN),
	SAME(OPTION_TEXT, 'J', "job-name", "TEXT", "--name", AT(request.name)),
	CUSTOM('d', "dependency", "LIST",
		"singleton, after:ID[:ID], afterany:ID, afterok:ID",
		read_dependency, AT(request), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 'D', "chdir", "DIR", "change to DIR first",
		AT(environment.chdir), GROUP_SRUN, RUN | BATCH),
	CUSTOM('o', "output", "FILE",
		"write stdout and stderr to FILE; %j is the job's id",
		read_file, AT(output.out), GROUP_SRUN, RUN),
	CUSTOM('e', "error", "FILE", "write stderr to FILE",
		read_file, AT(output.err), GROUP_SRUN, RUN),
	CUSTOM('i', "input", "FILE", "read stdin from FILE",
		read_file, AT(output.in), GROUP_SRUN, RUN),
	CUSTOM(0, "open-mode", "append|truncate", "append to these files (default: truncate)",
		read_open_mode, AT(output.append), GROUP_SRUN, RUN),
	OPTION(OPTION_FLAG, 'u', "unbuffered", NULL, "have Python write its output at once",
		AT(environment.unbuffered), GROUP_SRUN, RUN),
	OPTION(OPTION_FLAG, 'l', "label", NULL, "begin each line with the number of its task",
		AT(tasks.labels), GROUP_SRUN, RUN),
	CUSTOM('K', "kill-on-bad-exit", "[0|1]", "end all tasks when one has failed",
		read_kills, AT(tasks.kills), GROUP_SRUN, RUN),
	OPTION(OPTION_DURATION, 'W', "wait", "SECONDS",
		"end the other tasks this long after the first",
		AT(tasks.wait_ms), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 0, "gpu-bind", "HOW",
		"bind tasks to GPUs: single:N, per_task:N, map_gpu:L",
		AT(tasks.bind), GROUP_SRUN, RUN),
	CUSTOM(0, "pty", "[FD]", "only task 0 has the terminal; one task has it anyway",
		read_pty, AT(tasks.pty), GROUP_SRUN, RUN),
	CUSTOM(0, "jobid", "ID", "run a step of job ID; of another job with --overlap",
		read_jobid, AT(request.job), GROUP_SRUN, RUN),
	OPTION(OPTION_FLAG, 0, "overlap", NULL, "share GPUs with other steps of the job",
		AT(request.overlap), GROUP_SRUN, RUN),
	CUSTOM(0, "export", "LIST", "pass on variables: ALL, NONE, NAME, NAME=VALUE",
		read_export, AT(environment.export_list), GROUP_SRUN, RUN | BATCH),

	CUSTOM('N', "nodes", "1", NOTHING, read_nodes, 0, GROUP_IGNORED, RUN),
	CUSTOM(0, "mpi", "TYPE", NOTHING, read_mpi, AT(tasks.note), GROUP_IGNORED, RUN),
	CUSTOM('w', "nodelist", "localhost", NOTHING, read_nodelist, 0, GROUP_IGNORED, RUN),
	{ .kind = OPTION_NOTED, .letter = 'c', .name = "cpus-per-task", .metavar = "N",
	  .help = CPUS, .offset = AT(tasks.cpus), .group = GROUP_IGNORED, .verbs = RUN },
};

/*
 * Options of srun that need neither a field nor a function.  A row above takes 48 bytes of the
 * program, so these are packed: strings, one after the other.  A string that begins with the number
 * of a kind opens a group, and the rest is ->help of the options that follow.  In their strings the
 * first byte says whether there is a value, and the second is the letter, or a blank.
 */
#define FORWARD "\001"
#define IGNORE "\010"
#define NOTE "\011"
#define REFUSE "\012"
#define HAND_ON "\014"
_Static_assert(OPTION_FLAG == 1 && OPTION_NOTHING == 010 && OPTION_NOTED == 011 && OPTION_REFUSED == 012 &&
		OPTION_STOP == 014, "the numbers in the strings");
#define GROUP(kind_, help_) kind_ help_ "\0"
#define PLAIN(letter_, name_) "-" letter_ name_ "\0"
#define VALUED(letter_, name_) "=" letter_ name_ "\0"
#define OPTIONAL(letter_, name_) "?" letter_ name_ "\0"
#define NO " " /* letter */

static const char packed[] =
	GROUP(NOTE, CPUS)
	VALUED(NO, "cpus-per-gpu")
	VALUED(NO, "threads-per-core")
	GROUP(NOTE, "host memory, as in srun; for GPU memory give --vram SIZE")
	VALUED(NO, "mem")
	VALUED(NO, "mem-per-cpu")
	VALUED(NO, "mem-per-gpu")
	GROUP(NOTE, "--bind keeps the job near its GPUs")
	VALUED(NO, "mem-bind")
	VALUED(NO, "cpu-bind")
	VALUED(NO, "hint")
	GROUP(NOTE, "no mail is sent")
	VALUED(NO, "mail-type")
	VALUED(NO, "mail-user")
	GROUP(NOTE, "to let other jobs go first give --priority=-N")
	OPTIONAL(NO, "nice")
	GROUP(NOTE, "it waits for the command; --submit runs it in the background")
	PLAIN(NO, "async")
	GROUP(NOTE, "for a kind of GPU give --model TEXT or --min-vram SIZE")
	VALUED("C", "constraint")
	GROUP(NOTE, "no clock is set")
	VALUED(NO, "cpu-freq")
	VALUED(NO, "gpu-freq")

	GROUP(IGNORE, HELP(NOTHING))
	VALUED("p", "partition")
	VALUED("A", "account")
	VALUED("q", "qos")
	VALUED("m", "distribution")
	VALUED(NO, "accel-bind")
	VALUED(NO, "quotatype")
	PLAIN("s", "oversubscribe")
	PLAIN(NO, "exact")
	OPTIONAL("k", "no-kill")
	VALUED(NO, "comment")
	OPTIONAL(NO, "propagate")
	VALUED("B", "extra-node-info")
	PLAIN("O", "overcommit")
	VALUED("S", "core-spec")
	VALUED("T", "threads")
	VALUED(NO, "acctg-freq")
	OPTIONAL(NO, "bcast")
	VALUED(NO, "bcast-exclude")
	VALUED(NO, "cluster-constraint")
	OPTIONAL(NO, "compress")
	PLAIN(NO, "contiguous")
	VALUED(NO, "cores-per-socket")
	VALUED(NO, "delay-boot")
	VALUED(NO, "gres-flags")
	VALUED(NO, "mcs-label")
	VALUED(NO, "mincpus")
	VALUED(NO, "network")
	VALUED(NO, "ntasks-per-core")
	VALUED(NO, "ntasks-per-socket")
	VALUED(NO, "power")
	VALUED(NO, "profile")
	PLAIN(NO, "reboot")
	VALUED(NO, "reservation")
	OPTIONAL(NO, "resv-ports")
	OPTIONAL(NO, "send-libs")
	VALUED(NO, "slurmd-debug")
	VALUED(NO, "sockets-per-node")
	PLAIN(NO, "spread-job")
	VALUED(NO, "switches")
	VALUED(NO, "thread-spec")
	VALUED(NO, "time-min")
	VALUED(NO, "tmp")
	PLAIN(NO, "use-min-nodes")
	VALUED(NO, "wckey")
	OPTIONAL(NO, "x11")

	GROUP(FORWARD, HELP("pass the first Ctrl-C on to the tasks"))
	PLAIN("X", "disable-status")
	PLAIN(NO, "quit-on-interrupt")

	GROUP(REFUSE, HELP("gpulease knows only this machine; leave the option out"))
	PLAIN("x", "exclude")
	PLAIN("r", "relative")
	PLAIN("F", "nodefile")
	PLAIN("M", "clusters")
	PLAIN(NO, "het-group")
	GROUP(REFUSE, HELP("with srun these are features of nodes, and gpulease knows only this "
		"machine; for GPUs write --prefer-gpus LIST"))
	PLAIN(NO, "prefer")
	GROUP(REFUSE, HELP("gpulease starts one command; start gpulease once for each program"))
	PLAIN(NO, "multi-prog")
	GROUP(REFUSE, HELP("gpulease starts one command; write sh -c 'program; command'"))
	PLAIN(NO, "prolog")
	PLAIN(NO, "epilog")
	PLAIN(NO, "task-prolog")
	PLAIN(NO, "task-epilog")
	GROUP(REFUSE, HELP("write --max-wait DUR and --time LIMIT"))
	PLAIN(NO, "deadline")
	GROUP(REFUSE, HELP("gpulease leases GPUs and nothing else; leave the option out"))
	PLAIN("L", "licenses")
	PLAIN(NO, "bb")
	PLAIN(NO, "bbf")
	GROUP(REFUSE, HELP("write --gpus N, the number of all GPUs"))
	PLAIN(NO, "gpus-per-socket")
	GROUP(REFUSE, HELP("write --gpu-bind HOW"))
	PLAIN(NO, "tres-bind")
	GROUP(REFUSE, HELP("write -n N, and the options that the variables stand for"))
	PLAIN("E", "preserve-env")
	GROUP(REFUSE, HELP("write --gpus=0 for a command without a lease"))
	PLAIN("Z", "no-allocate")
	GROUP(REFUSE, HELP("start gpulease as that user"))
	PLAIN(NO, "uid")
	PLAIN(NO, "gid")
	GROUP(REFUSE, HELP("write --help"))
	PLAIN(NO, "usage")

	GROUP(HAND_ON, HELP("run in a container"))
	VALUED(NO, "container")
	VALUED(NO, "container-image")
	VALUED(NO, "container-mounts")
	VALUED(NO, "container-workdir")
	VALUED(NO, "container-name")
	VALUED(NO, "container-save")
	VALUED(NO, "container-env")
	PLAIN(NO, "container-mount-home")
	PLAIN(NO, "no-container-mount-home")
	PLAIN(NO, "container-remap-root")
	PLAIN(NO, "no-container-remap-root")
	PLAIN(NO, "container-entrypoint")
	PLAIN(NO, "no-container-entrypoint")
	PLAIN(NO, "container-entrypoint-log")
	PLAIN(NO, "container-writable")
	PLAIN(NO, "container-readonly");
/* clang-format on */

struct option_def option_table[OPTIONS_MAX];

void option_table_make(void)
{
	struct option_def like = { 0 }, *next = option_table + ARRAY_SIZE(rows);

	if (option_table[0].kind)
		return;
	memcpy(option_table, rows, sizeof(rows));
	for (const char *at = packed; *at; at += strlen(at) + 1) {
		if (*at < ' ') {
			like.kind = (unsigned char)*at;
			like.help = at + 1;
			like.verbs = RUN;
			like.group = GROUP_IGNORED;
			if (like.kind >= OPTION_REFUSED)
				like.group = GROUP_REFUSED;
			if (like.kind == OPTION_FLAG) {
				like.group = GROUP_SRUN;
				like.offset = AT(tasks.forwards);
			}
			if (like.kind == OPTION_STOP) {
				like.offset = AT(verb.topic);
				like.value = VERB_CONTAINER;
			}
			continue;
		}
		*next = like;
		next->metavar = *at == '-' ? NULL : *at == '=' ? "VALUE" : "[VALUE]";
		next->letter = at[1] == ' ' ? '\0' : at[1];
		next++->name = at + 2;
	}
}

const struct option_use *option_use_of(
	const struct options_result *result, const struct option_def *def)
{
	return &result->use[def - option_table];
}

struct option_spelling option_given_spelling(
	const struct options_result *result, size_t offset)
{
	/* an option that stores nothing has offset 0, which is also a field's */
	for (const struct option_def *def = option_table; def->kind; def++)
		if (def->offset == offset && option_use_of(result, def)->times &&
			def->kind != OPTION_NOTHING)
			return option_spell(def, option_use_of(result, def)->by_letter);
	return (struct option_spelling){ .text = "" };
}

#include "cli_table.h"

/* clang-format off */
#define LINE(field) offsetof(struct command_line, field)
#define AT(field) LINE(settings.field)
#define BIT(verb) (1u << (verb))
#define RUN BIT(VERB_RUN)
#define LOOK                                                                            \
	(BIT(VERB_STATUS) | BIT(VERB_QUEUE) | BIT(VERB_HISTORY) | BIT(VERB_DOCTOR) |    \
		BIT(VERB_SHOW_CONFIG) | BIT(VERB_ACCOUNTING) | BIT(VERB_SESSIONS))
#define ENDED (BIT(VERB_HISTORY) | BIT(VERB_ACCOUNTING))
#define BACK                                                                            \
	(BIT(VERB_LOG) | BIT(VERB_FOLLOW) | BIT(VERB_WAIT_FOR) |                         \
		BIT(VERB_SIGNAL_JOB) | BIT(VERB_ATTACH))
#define BATCH BIT(VERB_BATCH)
#define LINES (BATCH | BIT(VERB_ADD)) /* what a line may say, or all of them by default */
#define PAUSE (BIT(VERB_PAUSE) | BIT(VERB_RESUME))
#define ANY (RUN | LOOK | BACK | PAUSE | LINES | BIT(VERB_CANCEL) | BIT(VERB_DOCKER_ARGS))

#define OPTION(kind_, letter_, name_, metavar_, help_, offset_, group_, verbs_)         \
	{ .kind = (kind_), .letter = (letter_), .name = (name_), .metavar = (metavar_), \
	  .help = (help_), .offset = (offset_), .group = (group_), .verbs = (verbs_) }
#define CUSTOM(letter_, name_, metavar_, help_, reader, offset_, group_, verbs_)        \
	{ .kind = OPTION_CUSTOM, .letter = (letter_), .name = (name_),                  \
	  .metavar = (metavar_), .help = (help_), .read = (reader), .offset = (offset_), \
	  .group = (group_), .verbs = (verbs_) }
#define VERB(kind_, letter_, name_, metavar_, help_, value_, group_)                    \
	{ .kind = (kind_), .letter = (letter_), .name = (name_), .metavar = (metavar_), \
	  .help = (help_), .value = (value_), .group = (group_), .verbs = BIT(value_) }
#define SAME(kind_, letter_, name_, metavar_, same_as, offset_)                         \
	OPTION(kind_, letter_, name_, metavar_, "same as " same_as, offset_,            \
		GROUP_SRUN, RUN)
#define IGNORED(letter_, name_, metavar_)                                               \
	OPTION(OPTION_NOTHING, letter_, name_, metavar_, "accepted, does nothing", 0,   \
		GROUP_IGNORED, RUN)
#define REFUSED(letter_, name_, metavar_, instead)                                      \
	OPTION(OPTION_REFUSED, letter_, name_, metavar_, instead, 0, GROUP_REFUSED, RUN)

const struct option_def cli_options[] = {
	OPTION(OPTION_TEXT, 'n', NULL, "N", "lease N GPUs (default 1; 0: none; 0.5: half of one)",
		LINE(n), GROUP_RUN, RUN | LINES),
	CUSTOM('G', "gpus", "[TYPE:]N", "the same, of cards with TYPE in their name",
		read_gpus, LINE(gpus[FROM_GPUS]), GROUP_RUN, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "name", "TEXT", "what the job is called",
		AT(name), GROUP_RUN, RUN | BIT(VERB_ADD) | ENDED),
	OPTION(OPTION_DURATION, 0, "max-wait", "DUR",
		"give up after waiting DUR: 90s, 15m, 2h",
		AT(max_wait_ms), GROUP_RUN, RUN | BIT(VERB_WAIT_FOR)),
	CUSTOM('I', "immediate", "[DUR]", "start at once (or within DUR) or give up",
		read_immediate, LINE(settings), GROUP_RUN, RUN),
	OPTION(OPTION_LIMIT, 't', "time", "LIMIT",
		"end the job after minutes, H:M:S, 90s, 2h",
		AT(limit_ms), GROUP_RUN, RUN | LINES),
	OPTION(OPTION_DURATION, 0, "grace", "DUR", "from TERM to KILL (default 10s)",
		AT(grace_ms), GROUP_RUN, RUN | BATCH | BIT(VERB_CANCEL)),
	OPTION(OPTION_FLAG, 0, "dry-run", NULL, "say what would happen now, and no more",
		AT(dry_run), GROUP_RUN, RUN),

	CUSTOM(0, "vram", "SIZE", "so much memory of each, as 18G; others share it",
		read_size, AT(vram_mib), GROUP_CHOOSE, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "models", "FILE", "what each model needs, for --llm MODEL",
		AT(models), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "exclusive", "[HOW]", "nobody else on them, although --vram is given",
		read_exclusive, AT(exclusive), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "min-vram", "SIZE", "on cards with this much memory",
		read_size, AT(min_vram_mib), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "model", "TEXT", "on cards with TEXT in their name",
		read_model, AT(model), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "gpu-ids", "LIST", "exactly these: 0-3,5, 0:1 (MIG), UUIDs",
		read_gpu_ids, AT(gpu_ids), GROUP_CHOOSE, RUN),
	CUSTOM(0, "allow", "LIST", "only from these",
		read_gpu_list, AT(allow), GROUP_CHOOSE, RUN | LINES),
	CUSTOM(0, "except", "LIST", "none of these",
		read_gpu_list, AT(except), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "prefer", "LIST", "these first, in this order",
		read_prefer, AT(prefer), GROUP_CHOOSE, RUN | BATCH),
	CUSTOM(0, "bind", "[yes|no]", "run on the CPUs and memory near them",
		read_bind, AT(bind), GROUP_CHOOSE, RUN | BATCH),

	CUSTOM(0, "priority", "N", "before those of less (default 0), behind if below 0",
		read_priority, LINE(settings), GROUP_ORDER, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "after", "ID[,ID]", "not before these jobs have ended",
		LINE(after), GROUP_ORDER, RUN | BIT(VERB_ADD)),
	OPTION(OPTION_TEXT, 0, "after-ok", "ID[,ID]", "nor unless it was with status 0",
		LINE(after_ok), GROUP_ORDER, RUN | BIT(VERB_ADD)),
	OPTION(OPTION_FLAG, 0, "singleton", NULL, "one at a time of those of one --name",
		AT(singleton), GROUP_ORDER, RUN),

	CUSTOM(0, "signal", "SIG[@DUR]", "send SIG so long (60s) before the limit",
		read_warning, LINE(settings), GROUP_CARE, RUN),
	CUSTOM(0, "on-limit", "WHAT", "at the limit: kill (default), or requeue",
		read_on_limit, AT(on_limit), GROUP_CARE, RUN),
	CUSTOM(0, "max-requeues", "N", "so often at most (default: any number)",
		read_times, AT(max_requeues), GROUP_CARE, RUN),
	CUSTOM(0, "done-status", "N", "never send back a command that exits with N",
		read_status, AT(done_status), GROUP_CARE, RUN | BATCH),
	OPTION(OPTION_FLAG, 0, "preemptible", NULL,
		"may be sent back for a job of higher priority",
		AT(preemptible), GROUP_CARE, RUN | BATCH),
	CUSTOM(0, "retries", "N", "try again when it fails: after 5s, 10s, 20s ...",
		read_times, AT(retries), GROUP_CARE, RUN | LINES),
	CUSTOM(0, "oom-retries", "N", "with 1.25 times the memory when that ran out",
		read_times, AT(oom_retries), GROUP_CARE, RUN | LINES),
	OPTION(OPTION_FLAG, 0, "report", NULL, "say at the end what it used",
		AT(report), GROUP_CARE, RUN),

	OPTION(OPTION_COMMAND, 0, "submit", NULL, "print its id, run it in the background",
		AT(submit), GROUP_BACK, RUN | BIT(VERB_FOLLOW)),
	OPTION(OPTION_COMMAND, 0, "screen", NULL, "in a session of tmux or screen",
		AT(screen), GROUP_BACK, RUN),
	VERB(OPTION_VERB, 0, "log", "ID", "print its output", VERB_LOG, GROUP_BACK),
	VERB(OPTION_VERB, 0, "follow", "ID", "as it comes; Ctrl-C ends just this",
		VERB_FOLLOW, GROUP_BACK),
	VERB(OPTION_VERB, 0, "wait-for", "ID...", "until they have ended; all, mine",
		VERB_WAIT_FOR, GROUP_BACK),
	VERB(OPTION_VERB, 0, "signal-job", "ID SIG", "send its command a signal",
		VERB_SIGNAL_JOB, GROUP_BACK),
	VERB(OPTION_VERB, 'a', "attach", "ID", "enter its session", VERB_ATTACH, GROUP_BACK),
	VERB(OPTION_VERB, 0, "sessions", NULL, "those that there are",
		VERB_SESSIONS, GROUP_BACK),

	VERB(OPTION_VERB, 0, "batch", "FILE", "run its lines as jobs; -: what stdin says",
		VERB_BATCH, GROUP_BATCH),
	{ .kind = OPTION_VERB, .name = "add", .metavar = "FILE",
	  .help = "append a line: --add FILE -n 2 command", .value = VERB_ADD, .leads = 1,
	  .group = GROUP_BATCH, .verbs = BIT(VERB_ADD) },
	CUSTOM(0, "batch-format", "FORM", "lines (default), or csv",
		read_batch_format, AT(batch_format), GROUP_BATCH, LINES),
	CUSTOM(0, "jobs", "N", "so many waiting and running at once at most",
		read_jobs, AT(jobs_at_once), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "watch", NULL, "go on when all are done, for lines to come",
		AT(watch), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "once", NULL, "of equal lines run one alone",
		AT(once), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "fresh", NULL, "forget what was done before, run all again",
		AT(fresh), GROUP_BATCH, BATCH),
	OPTION(OPTION_FLAG, 0, "fail-fast", NULL, "end all when one has failed",
		AT(fail_fast), GROUP_BATCH, BATCH),
	OPTION(OPTION_NOTHING, 0, "keep-going", NULL, "when one has failed, run the others (default)",
		0, GROUP_BATCH, BATCH),
	OPTION(OPTION_TEXT, 0, "log-dir", "DIR", "where logs and journal go; default FILE.logs",
		AT(log_dir), GROUP_BATCH, BATCH),

	OPTION(OPTION_TEXT, 0, "setup", "CMD", "run this in the same shell before",
		AT(setup), GROUP_SETUP, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "conda", "ENV", "in this conda environment",
		AT(conda), GROUP_SETUP, RUN | LINES),
	OPTION(OPTION_TEXT, 0, "inject", "OPTION", "give the command OPTION with its GPUs",
		AT(inject), GROUP_SETUP, RUN | BATCH),
	CUSTOM(0, "inject-style", "STYLE", "their numbers: local (0,1; default), physical",
		read_style, AT(inject_style), GROUP_SETUP, RUN | BATCH),

	OPTION(OPTION_FLAG, 0, "lease-only", NULL, "hold GPUs until interrupted",
		AT(lease_only), GROUP_LEASE, RUN),
	CUSTOM(0, "pid", "PID", "with it: a process that uses them; with --shell: it",
		read_pid, AT(adopt_pid), GROUP_LEASE, RUN),
	OPTION(OPTION_FLAG, 0, "shell", NULL, "for this shell: eval \"$(gpulease --shell)\"",
		AT(shell), GROUP_LEASE, RUN),

	VERB(OPTION_VERB, 0, "status", NULL, "the GPUs and the queue",
		VERB_STATUS, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "queue", NULL, "the queue", VERB_QUEUE, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "history", "[N]", "the last N jobs (default 20), or all",
		VERB_HISTORY, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "accounting", NULL, "who used how much, of whom by when",
		VERB_ACCOUNTING, GROUP_LOOK),
	OPTION(OPTION_TEXT, 0, "user", "NAME", "with these: of one user",
		AT(user), GROUP_LOOK, ENDED),
	CUSTOM(0, "since", "WHEN", "from then on: 2026-11-20, 10:30, 7d (ago)",
		read_when, AT(from_ms), GROUP_LOOK, ENDED),
	CUSTOM(0, "until", "WHEN", "up to then",
		read_when, AT(until_ms), GROUP_LOOK, ENDED),
	CUSTOM(0, "state", "LIST", "finished, failed, cancelled, timed-out, oom, ...",
		read_states, AT(states), GROUP_LOOK, ENDED),
	OPTION(OPTION_FLAG, 0, "csv", NULL, "with --accounting: for spreadsheets",
		AT(csv), GROUP_LOOK, BIT(VERB_ACCOUNTING)),
	VERB(OPTION_VERB, 0, "doctor", NULL, "check driver, directory, install",
		VERB_DOCTOR, GROUP_LOOK),
	VERB(OPTION_VERB, 0, "show-config", NULL, "what is configured, and where",
		VERB_SHOW_CONFIG, GROUP_LOOK),
	OPTION(OPTION_FLAG, 0, "json", NULL, "with one of these: for programs",
		AT(json), GROUP_LOOK, LOOK | BATCH),

	VERB(OPTION_VERB, 0, "docker-args", "[podman]",
		"arguments for docker (or podman) run", VERB_DOCKER_ARGS, GROUP_LOOK),

	VERB(OPTION_VERB, 0, "cancel", "ID...", "end jobs, waiting or running",
		VERB_CANCEL, GROUP_ACT),
	OPTION(OPTION_FLAG, 0, "force", NULL,
		"end or signal also a process of another user", AT(force), GROUP_ACT,
		BIT(VERB_CANCEL) | BIT(VERB_SIGNAL_JOB)),
	VERB(OPTION_VERB, 0, "pause", "GPU...",
		"lease these GPUs no more: 0, 0-3,5, UUID", VERB_PAUSE, GROUP_ACT),
	VERB(OPTION_VERB, 0, "resume", "GPU...", "lease them again",
		VERB_RESUME, GROUP_ACT),
	OPTION(OPTION_TEXT, 0, "reason", "TEXT", "why, for --status",
		AT(reason), GROUP_ACT, PAUSE),

	CUSTOM(0, "sim", "N[xSIZE]",
		"N simulated GPUs (of 24G), apart from the real ones",
		read_sim, LINE(settings), GROUP_ANY, ANY),
	OPTION(OPTION_TEXT, 0, "config", "FILE", "instead of /etc/gpulease.conf",
		AT(config), GROUP_ANY, ANY),
	OPTION(OPTION_TEXT, 0, "dir", "DIR", "the state directory, as GPULEASE_DIR",
		AT(dir), GROUP_ANY, ANY),
	OPTION(OPTION_TALLY, 'v', "verbose", NULL, "say what is done",
		AT(verbose), GROUP_ANY, ANY),
	OPTION(OPTION_FLAG, 'Q', "quiet", NULL, "say nothing but errors",
		AT(quiet), GROUP_ANY, ANY),
	{ .kind = OPTION_STOP, .letter = 'h', .name = "help", .metavar = "[TOPIC]",
	  .help = "this text, or one on TOPIC", .offset = AT(topic), .value = VERB_HELP,
	  .group = GROUP_ANY, .verbs = BIT(VERB_HELP) },
	VERB(OPTION_STOP, 'V', "version", NULL, "the version", VERB_VERSION, GROUP_ANY),
	VERB(OPTION_VERB, 0, "enter-session", "FOLDER", NULL, VERB_ENTER_SESSION,
		GROUP_HIDDEN),
	VERB(OPTION_STOP, 0, "list-options", NULL, NULL, VERB_LIST_OPTIONS, GROUP_HIDDEN),

	CUSTOM(0, "gres", "gpu[:TYPE][:N]", "same as --gpus; nothing but GPUs",
		read_gres, LINE(gpus[FROM_GRES]), GROUP_SRUN, RUN),
	CUSTOM(0, "gpus-per-node", "[TYPE:]N", "same as --gpus",
		read_gpus, LINE(gpus[FROM_PER_NODE]), GROUP_SRUN, RUN),
	CUSTOM(0, "gpus-per-task", "[TYPE:]N", "same as --gpus",
		read_gpus, LINE(gpus[FROM_PER_TASK]), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 0, "ntasks", "1",
		"srun's number of tasks: one is all there can be",
		LINE(tasks), GROUP_SRUN, RUN),
	SAME(OPTION_TEXT, 'J', "job-name", "TEXT", "--name", AT(name)),
	CUSTOM('d', "dependency", "LIST",
		"singleton, afterany:ID[:ID], afterok:ID[:ID]",
		read_dependency, LINE(settings), GROUP_SRUN, RUN),
	OPTION(OPTION_TEXT, 'D', "chdir", "DIR", "change to DIR first",
		AT(chdir), GROUP_SRUN, RUN | BATCH),
	CUSTOM('o', "output", "FILE",
		"stdout, stderr too; %j id, %x name, %u user, %h host",
		read_file, AT(output), GROUP_SRUN, RUN),
	CUSTOM('e', "error", "FILE", "stderr to FILE",
		read_file, AT(error), GROUP_SRUN, RUN),
	CUSTOM('i', "input", "FILE", "stdin from FILE",
		read_file, AT(input), GROUP_SRUN, RUN),
	OPTION(OPTION_NOTHING, 0, "pty", "[FD]", "the command has your terminal anyway",
		0, GROUP_SRUN, RUN),
	CUSTOM(0, "export", "LIST", "ALL, NONE, NAME, NAME=VALUE: what it gets of yours",
		read_export, AT(export_list), GROUP_SRUN, RUN | BATCH),

	CUSTOM('N', "nodes", "1", "accepted, does nothing", read_nodes, 0,
		GROUP_IGNORED, RUN),
	CUSTOM(0, "ntasks-per-node", "1", "accepted, does nothing", read_one_task, 0,
		GROUP_IGNORED, RUN),
	IGNORED('c', "cpus-per-task", "N"),
	IGNORED(0, "mem", "SIZE"),
	IGNORED(0, "mem-per-cpu", "SIZE"),
	IGNORED(0, "mem-per-gpu", "SIZE"),
	IGNORED(0, "mem-bind", "HOW"),
	IGNORED('p', "partition", "NAME"),
	IGNORED('A', "account", "NAME"),
	IGNORED('q', "qos", "NAME"),
	IGNORED('u', "unbuffered", NULL),
	IGNORED('l', "label", NULL),
	IGNORED('K', "kill-on-bad-exit", "[0|1]"),
	IGNORED(0, "cpu-bind", "HOW"),
	IGNORED(0, "cpus-per-gpu", "N"),
	IGNORED(0, "gpu-bind", "HOW"),
	IGNORED('m', "distribution", "HOW"),
	IGNORED(0, "threads-per-core", "N"),
	IGNORED(0, "mpi", "TYPE"),
	IGNORED(0, "overlap", NULL),
	IGNORED('s', "oversubscribe", NULL),
	IGNORED(0, "exact", NULL),
	IGNORED('W', "wait", "SECONDS"),
	IGNORED('k', "no-kill", "[off]"),
	IGNORED(0, "hint", "TYPE"),
	IGNORED(0, "nice", "[N]"),
	IGNORED(0, "comment", "TEXT"),
	IGNORED(0, "propagate", "[LIMITS]"),
	IGNORED(0, "mail-type", "LIST"),
	IGNORED(0, "mail-user", "NAME"),
	CUSTOM(0, "open-mode", "truncate", "accepted, does nothing", read_open_mode, 0,
		GROUP_IGNORED, RUN),

	REFUSED('w', "nodelist", "HOSTS",
		"gpulease knows only this machine; run it on the other one: ssh HOST "
		"gpulease ..."),
	REFUSED('x', "exclude", "HOSTS",
		"gpulease knows only this machine; leave the option out"),
	REFUSED(0, "ntasks-per-gpu", "N",
		"gpulease starts one process; leave the option out and let the command "
		"start its own, as torchrun does"),
	REFUSED(0, "multi-prog", NULL,
		"gpulease starts one command; start gpulease once for each program"),
	REFUSED(0, "jobid", "ID",
		"gpulease cannot join another job; what a job itself starts with "
		"gpulease runs on that job's GPUs"),
	{ .kind = OPTION_END },
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(cli_options) <= OPTIONS_MAX, "each has its struct option_use");

/*
 * gpulease-engine: runs the command lines of gpulease on a Slurm cluster, by running Slurm's own
 * programs.  gpulease executes it with the user's rights alone, and it is never set-group-ID.
 */
#include <errno.h>
#include <signal.h>

#include "command_line.h"
#include "config_file.h"
#include "diag.h"
#include "engine_choice.h"
#include "engine_member.h"
#include "engine_node.h"
#include "engine_options.h"
#include "engine_tasks.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "option_table.h"
#include "parse.h"
#include "slurm_ask.h"
#include "standard_fds.h"

/* The function of each verb; the others are refused by their options, or mean this machine. */
static int (*const verbs[])(struct engine_line *) = {
	[VERB_RUN] = engine_run,
	[VERB_LOG] = engine_log,
	[VERB_FOLLOW] = engine_log,
	[VERB_WAIT_FOR] = engine_wait_for,
	[VERB_CANCEL] = engine_cancel,
	[VERB_SIGNAL_JOB] = engine_cancel,
	[VERB_RELEASE] = engine_change,
	[VERB_REQUEUE] = engine_change,
	[VERB_EXTEND] = engine_change,
	[VERB_STATUS] = engine_status,
	[VERB_QUEUE] = engine_status,
	[VERB_HISTORY] = engine_history,
	[VERB_ACCOUNTING] = engine_accounting,
	[VERB_BATCH] = engine_batch,
	[VERB_DOCTOR] = engine_doctor,
};

static int refuse(void)
{
	diag("gpulease-engine is a part of gpulease and is started by it; "
	     "try gpulease --engine slurm");
	return EXIT_MISUSE;
}

/*
 * Whether Slurm is the engine of this command line, which gpulease may not have been able to read:
 * the word --engine may belong to the command.
 */
static bool is_chosen(const struct engine_line *line)
{
	static struct config config;
	const char *engine = engine_line_value(line, "engine");
	struct machine_settings machine = { .engine = ENGINE_AS_CONFIGURED };
	struct why why = WHY_NONE;

	if (engine)
		return strcmp(engine, "slurm") == 0;
	if (config_file_load(engine_line_value(line, "config"), &config, NULL, &why) < 0)
		config_default(&config);
	return engine_choose(&machine, &config) == ENGINE_SLURM;
}

/* Whether GPULEASE_ENGINE decides and is no engine; prints a message. */
static bool is_odd(const struct engine_line *line)
{
	const char *name = getenv("GPULEASE_ENGINE");

	if (engine_line_value(line, "engine") || !name || !*name ||
		strcmp(name, "slurm") == 0)
		return false;
	diag("GPULEASE_ENGINE: '%s' is neither local nor slurm", quote(name).text);
	return true;
}

/* Reads the command line as gpulease has read it, and reports what is wrong with it there. */
static int report_local_error(char **argv)
{
	static struct settings settings;
	struct why why = WHY_NONE;

	if (command_line_parse(argv, &settings, &why) == 0)
		return refuse();
	diag("%s", why.text);
	return EXIT_MISUSE;
}

/* What the variable asks for, Slurm does by mail.  The local runner of a batch must not do it. */
static void ignore_notify(enum verb verb)
{
	if ((verb != VERB_RUN && verb != VERB_BATCH) || !getenv("GPULEASE_NOTIFY"))
		return;
	note("GPULEASE_NOTIFY is ignored on a cluster: Slurm sends mail, with --mail-type "
	     "and --mail-user");
	if (verb == VERB_BATCH)
		(void)unsetenv("GPULEASE_NOTIFY");
}

static void note_ignored(const struct engine_line *line)
{
	for (size_t i = 0; option_table[i].kind; i++) {
		const struct engine_option *option = engine_option_find(&option_table[i]);

		if (option && option->action == ENGINE_IGNORE && line->given.use[i].times)
			note("no effect here: --%s (%s)", option->name, option->text);
	}
}

static int run_verb(struct engine_line *line)
{
	const struct settings *settings = &line->settings;
	enum verb verb = settings->verb.kind;

	diag_setup(settings->output.verbose, settings->output.quiet);
	line->settings.machine.engine =
		ENGINE_LOCAL; /* for what runs here as on one machine */
	ignore_notify(verb);
	note_ignored(line);
	if (verb >= ARRAY_SIZE(verbs) || !verbs[verb])
		return refuse();
	return verbs[verb](line);
}

int main(int argc, char **argv)
{
	static struct engine_line line; /* too big for the stack */
	struct why why = WHY_NONE;
	int status, r;

	standard_fds_open();
	(void)signal(SIGCHLD, SIG_DFL); /* if it is ignored, no exit status is left */
	if (argc > 1 && strcmp(argv[1], "member") == 0)
		return engine_member(argv + 2);
	if (argc > 2 && strcmp(argv[1], "node") == 0)
		return engine_node(argv + 2);
	/* gpulease puts the word `engine` between the name of this program and its own */
	if (argc < 3 || strcmp(argv[1], "engine") != 0)
		return refuse();
	argv += 2;
	r = engine_line_scan(argv, &line, &why);
	if (r == 0 && !is_chosen(&line))
		return report_local_error(argv);
	if (r == 0 && is_odd(&line))
		return EXIT_MISUSE;
	if (r == 0) {
		slurm_environment_clean();
		status = engine_tasks_replace(&line, argv);
		if (status != 0)
			return status;
		r = engine_line_read(argv, &line, &why);
	}
	if (r < 0) {
		diag("%s", why.text[0] ? why.text : strerror(-r));
		return EXIT_MISUSE;
	}
	status = run_verb(&line);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		diag("cannot write the output: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	return status;
}

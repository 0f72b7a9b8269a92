/*
 * gpulease: leases GPUs of a shared machine to commands.  main() parses the command line and calls
 * the function of the verb.
 */
#include <errno.h>

#include "command_line.h"
#include "diag.h"
#include "exitcodes.h"
#include "privilege.h"
#include "shared_state.h"
#include "slurm_program.h"
#include "standard_fds.h"
#include "verbs.h"

/* The function of each verb; to add a verb: a row here and in cli/option_table.c. */
static int (*const verbs[])(struct settings *) = {
	[VERB_RUN] = verb_run,
	[VERB_STATUS] = verb_status,
	[VERB_QUEUE] = verb_queue,
	[VERB_HISTORY] = verb_history,
	[VERB_CANCEL] = verb_cancel,
	[VERB_PAUSE] = verb_pause,
	[VERB_RESUME] = verb_resume,
	[VERB_DOCTOR] = verb_doctor,
	[VERB_SHOW_CONFIG] = verb_show_config,
	[VERB_DOCKER_ARGS] = verb_docker_args,
	[VERB_LOG] = verb_log,
	[VERB_FOLLOW] = verb_follow,
	[VERB_WAIT_FOR] = verb_wait_for,
	[VERB_SIGNAL_JOB] = verb_signal_job,
	[VERB_ATTACH] = verb_attach,
	[VERB_SESSIONS] = verb_sessions,
	[VERB_ENTER_SESSION] = verb_enter_session,
	[VERB_ACCOUNTING] = verb_accounting,
	[VERB_BATCH] = verb_batch,
	[VERB_ADD] = verb_add,
	[VERB_HELP] = verb_help,
	[VERB_SCRIPT] = verb_script,
	[VERB_VERSION] = verb_version,
	[VERB_LIST_OPTIONS] = verb_view,
	[VERB_COMPLETE] = verb_complete,
	[VERB_CONTAINER] = verb_container,
	[VERB_TOP] = verb_view,
	[VERB_TIMELINE] = verb_view,
	[VERB_METRICS] = verb_view,
	[VERB_SAMPLE] = verb_sample,
};

/*
 * Prints one line about the given options of srun that promise what gpulease does not do.  With -v
 * it also names the other options without effect.
 */
static void note_ignored(const struct settings *settings)
{
	char words[640];
	struct text text = TEXT_ON(words);

	for (unsigned i = 0; i < settings->ignored_count; i++) {
		const struct ignored_option *option = &settings->ignored[i];
		const char *next =
			i + 1 < settings->ignored_count ? option[1].note : NULL;

		if (!option->note) {
			verbose("--%s is accepted and ignored", option->name);
			continue;
		}
		text_addf(&text, "%s--%s", text.used ? ", " : "", option->name);
		/* neighbours in the table of options share their note */
		if (!next || strcmp(next, option->note) != 0)
			text_addf(&text, " (%s)", option->note);
	}
	if (text.used)
		note("no effect here: %s", words);
	if (settings->tasks.note)
		note("%s", settings->tasks.note);
}

/*
 * Prints for `eval "$(gpulease --shell ...)"` what makes the eval fail: an empty output would be a
 * success, and what follows would run without GPUs.
 */
static void fail_shell(char *const *argv)
{
	while (*argv && strcmp(*argv, "--shell") != 0)
		argv++;
	if (*argv && !isatty(STDOUT_FILENO))
		(void)printf("(exit %d);\n", EXIT_MISUSE);
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct why why = WHY_NONE;
	int status;

	standard_fds_open();
	if (privilege_begin(argc, argv) < 0) {
		diag("must not be set-user-ID; install it again with make install, which makes "
		     "it set-group-ID");
		return EXIT_MISUSE;
	}
	other_program_keep(argv);
	if (command_line_parse(argv, &settings, &why) < 0) {
		slurm_program_try_line();
		diag("%s", why.text);
		fail_shell(argv);
		return EXIT_MISUSE;
	}
	diag_setup(settings.output.verbose, settings.output.quiet);
	note_ignored(&settings);
	status = settings.look.hosts ? verb_view(&settings)
				     : verbs[settings.verb.kind](&settings);
	shared_state_note_history_error();
	if (fflush(stdout) != 0 || ferror(stdout)) {
		diag("cannot write the output: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	return status;
}

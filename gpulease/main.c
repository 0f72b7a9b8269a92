/*
 * gpulease: leases GPUs of a shared machine to commands.  main() parses the command line and calls
 * the function of the verb.
 */
#include <errno.h>

#include "command_line.h"
#include "diag.h"
#include "engine_choice.h"
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
	[VERB_WINDOWS] = verb_windows,
	[VERB_HISTORY] = verb_history,
	[VERB_CANCEL] = verb_cancel,
	[VERB_NOTE] = verb_note,
	[VERB_RELEASE] = verb_release,
	[VERB_REQUEUE] = verb_requeue,
	[VERB_EXTEND] = verb_extend,
	[VERB_PAUSE] = verb_pause,
	[VERB_RESUME] = verb_resume,
	[VERB_DOCTOR] = verb_doctor,
	[VERB_SHOW_CONFIG] = verb_doctor,
	[VERB_DOCKER_ARGS] = verb_docker_args,
	[VERB_LOG] = verb_log,
	[VERB_FOLLOW] = verb_follow,
	[VERB_WAIT_FOR] = verb_wait_for,
	[VERB_SIGNAL_JOB] = verb_signal_job,
	[VERB_ATTACH] = verb_attach,
	[VERB_SESSIONS] = verb_view,
	[VERB_ENTER_SESSION] = verb_enter_session,
	[VERB_ACCOUNTING] = verb_accounting,
	[VERB_BATCH] = verb_batch,
	[VERB_ADD] = verb_view,
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
	[VERB_SET_PRIORITY] = verb_set_priority,
};

/*
 * The verbs that mean this machine whatever the engine: gpulease starts itself by them, or the
 * configuration is that of this machine.
 */
#define LOCAL_VERBS                                             \
	(VERB_BIT(VERB_SAMPLE) | VERB_BIT(VERB_ENTER_SESSION) | \
		VERB_BIT(VERB_SHOW_CONFIG))

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
	(void)fflush(stdout);
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
		engine_try_line();
		slurm_program_try_line();
		fail_shell(argv);
		other_program_become(VIEW_PROGRAM, "view"); /* which says what is wrong */
		diag("cannot read this command line; " VIEW_PROGRAM
		     ", which would say what is wrong with it, is not installed");
		return EXIT_MISUSE;
	}
	diag_setup(settings.output.verbose, settings.output.quiet);
	if (LOCAL_VERBS & VERB_BIT(settings.verb.kind))
		settings.machine.engine = ENGINE_LOCAL;
	status = settings.look.hosts ? verb_view(&settings)
				     : verbs[settings.verb.kind](&settings);
	shared_state_note_history_error();
	if (fflush(stdout) != 0 || ferror(stdout)) {
		diag("cannot write the output: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	return status;
}

/*
 * gpulease: leases GPUs of a shared machine to commands.
 */
#include <errno.h>
#include <fcntl.h>

#include "cli.h"
#include "diag.h"
#include "exitcodes.h"
#include "help.h"
#include "parse.h"
#include "privilege.h"
#include "state.h"
#include "verbs.h"

static int verb_help(struct settings *settings)
{
	char topics[160];
	struct text text = TEXT_ON(topics);

	if (help_print(settings->topic, stdout) == 0)
		return EXIT_DONE;
	help_add_topics(&text);
	diag("there is no help on '%s'; the topics are %s", quote(settings->topic).text,
		topics);
	return EXIT_MISUSE;
}

static int verb_version(struct settings *settings)
{
	(void)settings;
	version_print(stdout);
	return EXIT_DONE;
}

static int verb_list_options(struct settings *settings)
{
	(void)settings;
	options_print(stdout);
	return EXIT_DONE;
}

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
	[VERB_VERSION] = verb_version,
	[VERB_LIST_OPTIONS] = verb_list_options,
};

/*
 * No state file may get number 0, 1 or 2, where a message or the command would find it.
 * Closed again on exec: the command gets what we got.
 */
static void fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close_fd(&fd);
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct why why = WHY_NONE;
	int status;

	fill_standard_fds();
	if (privilege_begin(argc, argv) < 0) {
		diag("must not be set-user-ID; set-group-ID is what make install makes it");
		return EXIT_MISUSE;
	}
	if (cli_parse(argv, &settings, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	diag_setup(settings.verbose, settings.quiet);
	for (unsigned i = 0; i < settings.ignored_count; i++)
		verbose("--%s is accepted and ignored", settings.ignored[i]);
	status = verbs[settings.verb](&settings);
	state_note_trouble();
	if (fflush(stdout) != 0 || ferror(stdout)) {
		diag("cannot write the output: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	return status;
}

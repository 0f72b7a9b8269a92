/*
 * gpulease-view: shows what gpulease knows.  gpulease executes it with the user's rights alone, and
 * it is never set-group-ID: it reads the JSON that gpulease prints (machine_read.h), and acts by
 * running gpulease; only for --doctor and --show-config gpulease has told it what it found.  Its
 * command line is that of gpulease.
 */
#include <errno.h>
#include <signal.h>

#include "add.h"
#include "command_line.h"
#include "completion.h"
#include "diag.h"
#include "doctor.h"
#include "exitcodes.h"
#include "help.h"
#include "hook_runner.h"
#include "hosts.h"
#include "metrics.h"
#include "missing_program.h"
#include "notifier.h"
#include "sessions.h"
#include "standard_fds.h"
#include "timeline.h"
#include "top.h"

static int refuse(void)
{
	diag("gpulease-view is a part of gpulease and is started by it; "
	     "try gpulease --top");
	return EXIT_MISUSE;
}

static int show(const struct settings *settings)
{
	switch (settings->verb.kind) {
	case VERB_TOP:
		return top_main(settings);
	case VERB_TIMELINE:
		return timeline_main(settings);
	case VERB_METRICS:
		return metrics_main(settings);
	case VERB_SESSIONS:
		return sessions_main(settings);
	case VERB_ADD:
		return add_main(settings);
	case VERB_DOCTOR:
	case VERB_SHOW_CONFIG:
		return doctor_main(settings);
	case VERB_HELP:
		return help_main(settings);
	case VERB_LIST_OPTIONS:
		options_print(stdout);
		return EXIT_DONE;
	case VERB_COMPLETE:
		completion_print(
			settings->verb.operands, settings->verb.operand_count, stdout);
		return EXIT_DONE;
	default:
		if (settings->look.hosts)
			return hosts_main(settings);
		return refuse();
	}
}

int main(int argc, char **argv)
{
	struct settings settings;
	struct why why = WHY_NONE;
	int status;

	standard_fds_open();
	(void)signal(SIGCHLD, SIG_DFL); /* if it is ignored, no exit status is left */
	/* gpulease puts the word `view` between the name of this program and its own */
	if (argc > 2 && strcmp(argv[1], "view") == 0)
		argv += 2;
	else if (argc > 2 && strncmp(argv[1], MISSING_PROGRAM_PART,
				     sizeof(MISSING_PROGRAM_PART) - 1) == 0)
		return missing_program_main(argv[1] + sizeof(MISSING_PROGRAM_PART) - 1);
	else if (argc > 2 && strcmp(argv[1], NOTIFIER_PART) == 0)
		return hook_main(argv + 2);
	if (argc < 2)
		return refuse();
	if (command_line_parse(argv, &settings, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	diag_setup(settings.output.verbose, settings.output.quiet);
	status = show(&settings);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		diag("cannot write the output: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	return status;
}

/*
 * --doctor: checks the driver, the state directory and the installation.  To add a check: a
 * function in doctor/ and a row here.
 */
#include "clock.h"
#include "diag.h"
#include "doctor_checks.h"
#include "exitcodes.h"
#include "terminal.h"
#include "verbs.h"

static struct doctor doctor; /* too big for the stack */

int verb_doctor(struct settings *settings)
{
	const struct doctor_report *report = &doctor.report;
	struct table_style style = terminal_style();
	int status;

	doctor_examine(&doctor, settings);
	doctor_check_all(&doctor);
	if (settings->output.json)
		doctor_print_json(report,
			doctor.directory_error == 0 ? doctor.path : NULL, clock_real_ms(),
			stdout);
	else
		doctor_print(report, &style, stdout);
	status = doctor_worst(report) == DOCTOR_FAIL ? EXIT_NOT_DONE : EXIT_DONE;
	if (report->is_short_of_memory) {
		diag("not enough memory to show everything");
		status = EXIT_MISUSE;
	}
	doctor_release(&doctor);
	return status;
}

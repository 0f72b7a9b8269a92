#include <stdlib.h>
#include <sys/stat.h>

#include "clock.h"
#include "diag.h"
#include "doctor_checks.h"
#include "exitcodes.h"
#include "fdio.h"
#include "show_config.h"
#include "terminal.h"

static struct doctor doctor; /* too big for the stack */

const struct doctor_item *doctor_next(
	const struct doctor *from, unsigned kinds, size_t *at)
{
	while (*at < from->state.item_count) {
		const struct doctor_item *item = &from->items[(*at)++];

		if (kinds >> item->kind & 1)
			return item;
	}
	return NULL;
}

const struct probe *doctor_probe(const struct doctor *from)
{
	const struct doctor_state *state = &from->state;
	bool is_there = state->has_run || state->sim_gpus;

	return is_there && !state->probe.trouble.text[0] ? &state->probe : NULL;
}

/* Whether stdin has what a gpulease of this build has told, all of it. */
static bool read_told(void)
{
	struct doctor_state *state = &doctor.state;
	size_t size, got;
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode) ||
		fdio_pread(STDIN_FILENO, state, sizeof(*state), 0, &got) < 0 ||
		got != sizeof(*state) ||
		strncmp(state->version, GPULEASE_VERSION, sizeof(state->version)) != 0 ||
		(size_t)st.st_size < sizeof(*state))
		return false;
	size = (size_t)st.st_size - sizeof(*state);
	if (size % sizeof(*doctor.items) != 0 ||
		size / sizeof(*doctor.items) != state->item_count)
		return false;
	doctor.items = malloc(size + 1);
	return doctor.items &&
	       fdio_pread(STDIN_FILENO, doctor.items, size, sizeof(*state), &got) == 0 &&
	       got == size;
}

int doctor_main(const struct settings *settings)
{
	const struct doctor_report *report = &doctor.report;
	struct table_style style = terminal_style();
	int status;

	if (!read_told()) {
		diag("this needs the gpulease that belongs to this gpulease-view, and some "
		     "memory; install gpulease again: make install");
		return EXIT_MISUSE;
	}
	if (settings->verb.kind == VERB_SHOW_CONFIG)
		return show_config(settings, &doctor.state);
	doctor_check_all(&doctor);
	if (settings->output.json)
		doctor_print_json(report,
			doctor.state.directory_error == 0 ? doctor.state.path : NULL,
			clock_real_ms(), stdout);
	else
		doctor_print(report, &style, stdout);
	status = doctor_worst(report) == DOCTOR_FAIL ? EXIT_NOT_DONE : EXIT_DONE;
	if (report->is_short_of_memory) {
		diag("not enough memory to show everything");
		status = EXIT_MISUSE;
	}
	free(doctor.items);
	doctor_report_release(&doctor.report);
	return status;
}

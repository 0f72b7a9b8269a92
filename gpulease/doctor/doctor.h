/*
 * --doctor in gpulease-view: checks what gpulease has told (doctor_state.h), and what a process
 * with the user's rights alone can see itself; then prints the findings.  For --show-config it
 * prints the configuration (show_config.h).
 */
#ifndef GPULEASE_DOCTOR_H
#define GPULEASE_DOCTOR_H

#include "doctor_report.h"
#include "doctor_state.h"

struct doctor {
	struct doctor_state state;
	struct doctor_item *items; /* ->state.item_count */
	struct doctor_report report;
};

/*
 * Returns the next item of the kinds @kinds, a set of bits 1 << enum doctor_item_kind, or NULL.
 * *@at is 0 at first.
 */
const struct doctor_item *doctor_next(
	const struct doctor *doctor, unsigned kinds, size_t *at);

/* Returns what nvidia-smi has answered now; NULL if it failed or was not run. */
const struct probe *doctor_probe(const struct doctor *doctor);

/* Reads from stdin what gpulease has told.  Returns the exit status. */
int doctor_main(const struct settings *settings);

#endif

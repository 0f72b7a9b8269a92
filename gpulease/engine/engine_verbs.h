/*
 * The verbs of gpulease on a cluster: one function for each, which returns the exit status.
 */
#ifndef GPULEASE_ENGINE_VERBS_H
#define GPULEASE_ENGINE_VERBS_H

#include "engine_line.h"

int engine_run(
	struct engine_line *line); /* a command, in the foreground or with --submit */
int engine_log(struct engine_line *line); /* --log, --follow */
int engine_wait_for(struct engine_line *line);
int engine_cancel(struct engine_line *line); /* --cancel, --signal-job */
int engine_change(struct engine_line *line); /* --release, --extend */
int engine_status(struct engine_line *line); /* --status, --queue */
int engine_history(struct engine_line *line);
int engine_accounting(struct engine_line *line);
int engine_batch(struct engine_line *line);
int engine_doctor(struct engine_line *line);

#endif

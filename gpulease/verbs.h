/*
 * What gpulease can do: one function for each verb, which returns the exit status.
 */
#ifndef GPULEASE_VERBS_H
#define GPULEASE_VERBS_H

#include "cli.h"

int verb_run(struct settings *settings);
int verb_status(struct settings *settings);
int verb_queue(struct settings *settings);
int verb_history(struct settings *settings);
int verb_cancel(struct settings *settings);
int verb_pause(struct settings *settings);
int verb_resume(struct settings *settings);
int verb_doctor(struct settings *settings);
int verb_show_config(struct settings *settings);
int verb_docker_args(struct settings *settings);

#endif

/*
 * The verbs: one function for each, which returns the exit status.  verb_X() is in verb_X.c or in
 * the file of a related verb.
 */
#ifndef GPULEASE_VERBS_H
#define GPULEASE_VERBS_H

#include "settings.h"

int verb_run(struct settings *settings);
int verb_status(struct settings *settings);
int verb_queue(struct settings *settings);
int verb_windows(struct settings *settings);
int verb_history(struct settings *settings);
int verb_cancel(struct settings *settings);
int verb_note(struct settings *settings);
int verb_release(struct settings *settings);
int verb_requeue(struct settings *settings);
int verb_extend(struct settings *settings);
int verb_pause(struct settings *settings);
int verb_resume(struct settings *settings);
int verb_doctor(struct settings *settings);
int verb_docker_args(struct settings *settings);
int verb_log(struct settings *settings);
int verb_follow(struct settings *settings);
int verb_wait_for(struct settings *settings);
int verb_signal_job(struct settings *settings);
int verb_set_priority(struct settings *settings);
int verb_attach(struct settings *settings);
int verb_enter_session(struct settings *settings);
int verb_accounting(struct settings *settings);
int verb_batch(struct settings *settings);
int verb_help(struct settings *settings);
int verb_script(struct settings *settings);
int verb_version(struct settings *settings);
int verb_complete(struct settings *settings);
int verb_container(struct settings *settings);

/* Takes a sample of how a job uses its GPUs, for its watchdog or supervisor (use_watch.h). */
int verb_sample(struct settings *settings);

/* gpulease-view shows this.  Returns only if it cannot be executed. */
int verb_view(struct settings *settings);

#endif

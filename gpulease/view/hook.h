/*
 * What the command of --notify is told: which event, when, and in which words.  Pure.
 *
 * The process that looks after the job writes a line for each thing that happens (notifier.h):
 *
 *	EVENT JOB AT NUMBER TEXT
 *
 * AT is the time of CLOCK_BOOTTIME in ms.  One event comes from the clock alone: the job has waited
 * for long.
 */
#ifndef GPULEASE_HOOK_H
#define GPULEASE_HOOK_H

#include "history.h"

enum {
	HOOK_LONG_MS = 10 * 60 * 1000, /* a job that waits for so long waits long */
	HOOK_KILL_MS = 30 * 1000,      /* after so long the command is killed */

	HOOK_TEXT_SIZE = 640,
};

/* The job, as far as the notifier knows it. */
struct hook_job {
	uint64_t id;
	const char *name; /* "": none */
	char gpus[128];
	int64_t long_ms;    /* HOOK_LONG_MS */
	int64_t waits_ms;   /* since when it waits; 0: it does not wait */
	int64_t started_ms; /* when its attempt has started; 0: it does not run */
	int64_t ran_ms;     /* how long the last attempt ran */
	bool has_started, has_waited_long, has_ended;
};

/* What the command is told. */
struct hook_event {
	const char *name;  /* GPULEASE_EVENT */
	const char *state; /* GPULEASE_STATE */
	char status[8];    /* "": not known */
	int64_t ran_ms;
	char text[HOOK_TEXT_SIZE];
};

/*
 * Notes in @job what @line says.  Returns whether the command is to be run, and fills in *@ret
 * then.  A line that it does not understand changes nothing.
 */
bool hook_take(struct hook_job *job, const char *line, struct hook_event *ret);

/* The same for what the clock says. */
bool hook_tick(struct hook_job *job, int64_t now_ms, struct hook_event *ret);

/* Returns when hook_tick() has something to do; INT64_MAX: never. */
int64_t hook_wake_ms(const struct hook_job *job);

#endif

/*
 * What --top knows and has chosen.  top.c is the loop, top_control.c what the keys do.
 */
#ifndef GPULEASE_TOP_STATE_H
#define GPULEASE_TOP_STATE_H

#include "top_act.h"
#include "top_keys.h"
#include "top_source.h"
#include "top_terminal.h"

struct top {
	const struct settings *settings;
	struct host_list list; /* of --host */
	struct top_host *hosts;
	struct top_source *sources;
	size_t count; /* of both */
	char own_user[MACHINE_NAME_SIZE];
	struct top_view view;
	struct top_frame *frame;
	struct top_terminal terminal;
	struct top_keys keys;
	size_t chosen_at;  /* index of the chosen job in the frame */
	int64_t notice_ms; /* when the notice vanishes; INT64_MAX: with the answer to it */
	int64_t cancel_job; /* the job that the notice asks about; -1: it asks nothing */
	int64_t cancel_until_ms;
	struct top_action action, cancelling;
	struct answer cancel;
	bool is_cancelling;
	int signal_fd;
	int64_t tick_ms; /* when it is drawn again without any news */
	bool is_dirty;   /* the screen is to be drawn */
	bool is_done;    /* and so is --top */
	int end_signal;  /* the signal that has ended it; 0: none */
	int fault;       /* a negative errno: the terminal is gone */
};

/* Shows @text in the last line for some seconds. */
void top_notice(struct top *top, const char *text);

/* Does what a key asks for. */
void top_control_key(struct top *top, int key);

/* Looks after the program that cancels a job. */
void top_control_step(struct top *top, int64_t now_ms);

/* Keeps the chosen job while the screen still shows it. */
void top_control_settle(struct top *top);

/* Whether the job @job of the shown machine belongs to this user. */
bool top_is_own_job(const struct top *top, int64_t job);

#endif

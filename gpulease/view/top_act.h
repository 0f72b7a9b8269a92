/*
 * What --top does for a job by running gpulease, here or by ssh: following and entering it with
 * the whole terminal, and cancelling it beside the screen.
 */
#ifndef GPULEASE_TOP_ACT_H
#define GPULEASE_TOP_ACT_H

#include "gpulease_words.h"
#include "host_words.h"

/* The words of one action.  The struct must not be copied. */
struct top_action {
	struct gpulease_words here;
	struct host_words there;
	char *ssh[10], command[64], job[24];
	char *const *words;
};

/*
 * Sets ->words to the words that run `gpulease VERB JOB` with a terminal.  @remote is the machine;
 * NULL: this one.  Returns 0, or EXIT_MISUSE after a message.
 */
MUST_CHECK int top_action_on_terminal(struct top_action *action,
	const struct settings *settings, const char *remote, const char *verb,
	int64_t job);

/* The same for `gpulease --cancel JOB --yes`, without a terminal. */
MUST_CHECK int top_action_cancel(struct top_action *action,
	const struct settings *settings, const char *remote, int64_t job);

/*
 * Runs the words as a job of the terminal @tty_fd, in the foreground and in a process group of its
 * own, and waits for the end.  Ctrl-Z stops the program and this process.  @signal_fd is a
 * signalfd(2) with at least CHLD; CONT continues the program, and it gets TERM, HUP, QUIT and INT.
 * Returns 0, or a negative errno.  Sets *@ret_status to the status of waitpid(2), and *@ret_signal
 * to the signal that this process should end by, or 0.
 */
MUST_CHECK int top_act_run(
	char *const *words, int tty_fd, int signal_fd, int *ret_status, int *ret_signal);

/*
 * Waits until the user presses Enter or Ctrl-C on the terminal @tty_fd, which must not be in raw
 * mode.  Returns 0, or the signal that this process should end by.
 */
int top_act_wait_for_enter(int tty_fd, int signal_fd);

/* Stops this process as Ctrl-Z does; returns once it is continued. */
void top_act_stop(int signal_number);

#endif

/*
 * The supervisor: gpulease as the parent of a job's command, for options that need one (--retries,
 * --submit, --report, …).  It starts the command, passes signals on, ends the command at the time
 * limit, on a cancel request or a preemption, and learns how it ended.
 *
 * The supervisor stays in the command's process group and session, so the terminal treats both as
 * one job.  Keyboard signals reach the command directly and have no effect on the supervisor.  If
 * the command stops, the supervisor stops as well, so that the shell sees it, and both are
 * continued together (job_control.h).  TERM, HUP, INT, QUIT, USR1, USR2, TSTP, TTIN and TTOU that
 * were sent to the supervisor alone are passed on to the command; one that was ignored at the
 * start does not count as an order to end.  Processes that the command leaves running become the
 * supervisor's children (it is a subreaper).
 *
 * The supervisor is the owner of the lease and shares the lease's FIFO with the command.  Killed,
 * it frees no GPU that is still in use: the lease lives as long as the command, which it names
 * (broker_note_command()), or another process that holds the FIFO.
 *
 * It sleeps until an event, or until a time at which something is due.
 *
 * A window sends a preemptible job back when it begins.  No process acts for the window, so each
 * supervisor of such a job reads the windows itself: once its command runs, and whenever the bell
 * is rung, because a process that has changed the windows rings all bells.  It then sets its alarm
 * for the begin of the first window that binds its user on its GPUs, and reads the windows again
 * at that time.  From there on all is as if a job of higher priority had asked.  The job's new
 * ticket waits, because the plan keeps the GPUs from it (policy_windows.h).
 */
#ifndef GPULEASE_SUPERVISE_H
#define GPULEASE_SUPERVISE_H

#include "job_observer.h"
#include "launch.h"
#include "sampler.h"
#include "use_watch.h"

struct supervision {
	const struct launch *launch; /* what the command gets */
	struct broker *broker;       /* of the lease; also reads requests about the job */
	struct sampler *sampler;     /* NULL: the GPUs are not sampled */
	const struct use_words *use; /* NULL: the use of its GPUs is not watched */
	int64_t use_interval_ms;
	const struct job_observer *observer; /* NULL: none */
	int64_t waited_ms;                   /* in the queue, for the observer */
	int64_t limit_ms;                    /* time limit; 0: none */
	int64_t grace_ms;                    /* from TERM to KILL */
	int warn_signal; /* sent to the command ->warn_ms before the limit; 0: none */
	int64_t warn_ms;
	bool warns_steps;  /* the steps of the command get ->warn_signal in its place */
	bool is_sent_back; /* at its limit the job goes back into the queue */
	int done_status;   /* a command that exits with it is done for good; -1: none */
};

/* Makes this process a subreaper; call it once, before all the others. */
void supervise_prepare(void);

/*
 * Starts the command and returns when it has ended.  At the limit, when cancelled, or when
 * preempted by a job or a window, ends the command with all that it has started: TERM, after the
 * grace KILL (teardown.h).  A preempted job with a ->warn_signal first gets that signal and
 * ->warn_ms of time, as before a limit.
 *
 * A command counts as warned once ->warn_signal was sent to it while it lived.  Its handler may
 * save and exit.  So whatever its status is then, also 0, only the attempt has ended: the cause is
 * preemption, or the limit for a job that goes back into the queue at its limit.  Exceptions: the
 * user has told the job to end, or the command exits with ->done_status.  For a job that ends at
 * its limit, the cause is the limit if the command dies of ->warn_signal.
 *
 * A job that its user wants back in the queue is ended in the same way, a second after the request.
 * The request counts, and not the limit, also if it comes while the command is being ended at its
 * limit, or just before the command ends by itself: a handler saves, asks for its own job, and
 * exits with 0.
 *
 * With ->warns_steps the steps that run at that moment get the signal, and the command does not;
 * the job counts as warned if there is one.  A step that starts later gets no signal, as in Slurm.
 *
 * Returns 0 with *@ret set, or a negative errno if the command could not be started (-ECANCELED:
 * the observer did not let it start).  Afterwards signals are treated as before the call; signals
 * for the job that came too late to be passed on are dropped.
 */
MUST_CHECK int supervise(const struct supervision *supervision, struct attempt_end *ret);

/*
 * Ends the processes that the last command has left, in the same way, before the job is tried
 * again.
 */
void supervise_end_leftovers(const struct supervision *supervision);

/*
 * Lets this process end as the command has ended: returns the exit status, or, if the command died
 * of a signal, kills this process by the same signal, without a core file.
 */
int supervise_exit_like(const struct attempt_end *end);

#endif

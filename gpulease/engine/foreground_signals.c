#include <errno.h>
#include <sys/signalfd.h>

#include "clock.h"
#include "diag.h"
#include "foreground.h"
#include "signals.h"

enum { LAUNCH_MS = 1000 }; /* for a step that is being started to take a signal */

static const int taken[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2,
	SIGTSTP };

/* --- taking them --------------------------------------------------------------------------- */

int foreground_take_signals(struct foreground *fg)
{
	(void)sigemptyset(&fg->signals);
	(void)sigprocmask(SIG_SETMASK, NULL, &fg->mask_before);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		struct sigaction action;

		/* nohup(1) ignores HUP, for the job as well */
		if (sigaction(taken[i], NULL, &action) == 0 &&
			action.sa_handler != SIG_IGN &&
			!sigismember(&fg->mask_before, taken[i]))
			(void)sigaddset(&fg->signals, taken[i]);
	}
	(void)sigaddset(&fg->signals, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &fg->signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	fg->signal_fd = signalfd(-1, &fg->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return fg->signal_fd < 0 ? -errno : 0;
}

void foreground_release_signals(struct foreground *fg)
{
	close_fd(&fg->signal_fd);
	answer_release(&fg->scancel);
	if (fg->by_signal) /* it ends this process once it is not blocked */
		(void)raise(fg->by_signal);
	(void)sigprocmask(SIG_SETMASK, &fg->mask_before, NULL);
}

/* --- passing them on ----------------------------------------------------------------------- */

static int begin_scancel(struct foreground *fg, int signal)
{
	struct slurm_words words = { .count = 0 };
	int r;

	slurm_words_add(&words, "scancel");
	slurm_words_addf(&words, "--signal=%d", signal); /* it knows no PIPE by name */
	if (fg->has_step)
		slurm_words_addf(&words, "%llu.%llu", (unsigned long long)fg->job,
			(unsigned long long)fg->step);
	else
		slurm_words_addf(&words, "%llu", (unsigned long long)fg->job);
	r = slurm_ask_begin(&words, &fg->scancel);
	slurm_words_release(&words);
	return r;
}

int64_t foreground_send_ms(const struct foreground *fg)
{
	int poll_ms = answer_poll_ms(&fg->scancel);

	if (fg->scancel.pid)
		return poll_ms < 0 ? fg->scancel_until_ms : clock_boot_ms() + poll_ms;
	if (!fg->held_count)
		return INT64_MAX;
	return fg->is_started ? 0 : fg->held_ms + LAUNCH_MS;
}

void foreground_send_signals(struct foreground *fg, int64_t now_ms)
{
	if (fg->scancel.pid) {
		answer_take(&fg->scancel);
		if (now_ms >= fg->scancel_until_ms) {
			diag("scancel does not answer in %d s; srun gets a signal to end the job",
				SLURM_DEADLINE_MS / 1000);
			answer_end(&fg->scancel);
			(void)kill(fg->srun.pid, SIGTERM);
		}
		if (!answer_is_complete(&fg->scancel))
			return;
		/* there is no task yet */
		if (fg->scancel.status != 0 && !fg->is_started)
			foreground_end(fg, 128 + SIGTERM);
	}
	if (!fg->held_count || !fg->srun.pid || now_ms < foreground_send_ms(fg))
		return;
	fg->scancel_until_ms = now_ms + SLURM_DEADLINE_MS;
	if (begin_scancel(fg, fg->held[0]) < 0)
		(void)kill(fg->srun.pid, SIGTERM);
	fg->held_count--;
	memmove(fg->held, fg->held + 1, fg->held_count * sizeof(*fg->held));
}

void foreground_hold_signal(struct foreground *fg, int signal)
{
	if (!fg->held_count)
		fg->held_ms = clock_boot_ms();
	if (fg->held_count < ARRAY_SIZE(fg->held))
		fg->held[fg->held_count++] = signal;
}

/* Ctrl-Z: the tasks stop, then this process; the tasks go on after it. */
static void suspend(struct foreground *fg)
{
	foreground_hold_signal(fg, SIGSTOP);
	while (fg->held_count || fg->scancel.pid) {
		foreground_send_signals(fg, clock_boot_ms());
		answer_wait(&fg->scancel, SLURM_DEADLINE_MS);
	}
	(void)raise(SIGSTOP);
	foreground_hold_signal(fg, SIGCONT);
}

static void obey(struct foreground *fg, int signal)
{
	bool has_srun = fg->srun.pid; /* or only its last output is carried */

	if (signal == SIGTSTP && !(fg->is_started && has_srun)) {
		(void)raise(SIGSTOP);
	} else if (signal == SIGTSTP) {
		suspend(fg);
	} else if ((fg->is_started || fg->has_step) && has_srun) {
		/* output of the task may come before srun says that it runs */
		foreground_hold_signal(fg, signal);
	} else {
		fg->by_signal = signal;
		foreground_end(fg, 128 + signal);
	}
}

void foreground_obey_signals(struct foreground *fg)
{
	struct signalfd_siginfo info;

	while (read(fg->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			obey(fg, (int)info.ssi_signo);
}

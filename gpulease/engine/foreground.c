#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "foreground.h"
#include "parse.h"
#include "srun_messages.h"

enum {
	PATIENCE_MS = 5000, /* for srun to end a job that is given up */
	LEFTOVER_MS = 500,  /* for output that comes after the end of srun */
	TERMINAL_MS = 1000, /* between looks whether the terminal may be read again */
};

/* --- what srun prints ---------------------------------------------------------------------- */

static void keep_error(struct foreground *fg, const char *text)
{
	bool is_again = strcmp(fg->error_text, text) == 0;

	if (!fg->first_error[0] && !answer_is_advice(text))
		text_copy(fg->first_error, sizeof(fg->first_error), text);
	text_copy(fg->error_text, sizeof(fg->error_text), text);
	/* before the start the end of srun tells whether it matters */
	if (fg->is_started && !is_again)
		diag("Slurm says: %s", text);
}

static void note_job(struct foreground *fg, const struct srun_line *line)
{
	if (!line->job)
		return;
	if (!fg->job)
		verbose("job %llu of Slurm", (unsigned long long)line->job);
	fg->job = line->job;
	fg->has_answered = true;
}

static void obey_line(struct foreground *fg, const char *text)
{
	struct srun_line line = srun_line_read(text);

	verbose("%s", text);
	note_job(fg, &line);
	switch (line.kind) {
	case SRUN_QUEUED:
		fg->is_queued = true;
		break;
	case SRUN_LAUNCHING:
		fg->has_step = true;
		fg->step = line.step;
		/* fall through */
	case SRUN_ALLOCATED:
		fg->is_allocated = true;
		srun_give_terminal(&fg->srun);
		break;
	case SRUN_STARTED:
		fg->is_started = true;
		break;
	case SRUN_TASK:
		if (!fg->streams.is_one_task)
			note("%s", line.text);
		break;
	case SRUN_BUSY:
		fg->is_busy = true;
		/* fall through */
	case SRUN_ERROR:
		keep_error(fg, line.text);
		break;
	case SRUN_OTHER:
		note("%s", line.text);
		break;
	case SRUN_CANCELLED:
		fg->is_cancelled = true;
		break;
	case SRUN_INFO:
		break;
	}
}

static void take_messages(struct foreground *fg)
{
	char bytes[1024];
	ssize_t size = read(fg->srun.message_fd, bytes, sizeof(bytes));

	if (size == 0)
		close_fd(&fg->srun.message_fd);
	for (ssize_t i = 0; i < size; i++) {
		if (bytes[i] != '\n' && fg->message_size < sizeof(fg->message) - 1) {
			fg->message[fg->message_size++] = bytes[i];
		} else if (bytes[i] == '\n') {
			fg->message[fg->message_size] = '\0';
			fg->message_size = 0;
			obey_line(fg, fg->message);
		}
	}
}

/* --- streams ------------------------------------------------------------------------------- */

/* Reads into an empty pump; closes *@from at its end. */
static void pump_fill(struct foreground_pump *pump, int *from)
{
	ssize_t size = read(*from, pump->bytes, sizeof(pump->bytes));

	if (size > 0)
		pump->size = (size_t)size;
	else if (size == 0 || (errno != EAGAIN && errno != EINTR))
		close_fd(from);
}

/* Writes what is in the pump; a pipe that is ready has room for all of it. */
static int pump_empty(struct foreground_pump *pump, int to)
{
	int r = fdio_write(to, pump->bytes, pump->size);

	pump->size = 0;
	return r;
}

/* Writes output of the command.  If its reader has ended, closes *@from and sends SIGPIPE. */
static void pass_output(
	struct foreground *fg, struct foreground_pump *pump, int to, int *from)
{
	if (pump_empty(pump, to) != -EPIPE || *from < 0)
		return;
	close_fd(from);
	foreground_hold_signal(fg, SIGPIPE);
}

/* --- the loop ------------------------------------------------------------------------------ */

enum { MESSAGES, SIGNALS, OUTPUT, ERROR, INPUT, QUESTION, SCANCEL, FDS };

static void add(struct pollfd *fd, int number, short events)
{
	*fd = (struct pollfd){ number, events, 0 };
}

static void collect(struct foreground *fg, struct pollfd fds[FDS])
{
	bool reads_input = fg->srun.input_fd >= 0 && srun_may_read_input();

	add(&fds[MESSAGES], fg->srun.message_fd, POLLIN);
	add(&fds[SIGNALS], fg->signal_fd, POLLIN);
	add(&fds[OUTPUT], fg->output.size ? STDOUT_FILENO : fg->srun.output_fd,
		fg->output.size ? POLLOUT : POLLIN);
	add(&fds[ERROR], fg->error.size ? STDERR_FILENO : fg->srun.error_fd,
		fg->error.size ? POLLOUT : POLLIN);
	add(&fds[INPUT],
		fg->input.size ? fg->srun.input_fd
		: reads_input  ? 0
			       : -1,
		fg->input.size ? POLLOUT : POLLIN);
	add(&fds[QUESTION], fg->question.pid ? fg->question.out_fd : -1, POLLIN);
	add(&fds[SCANCEL], fg->scancel.pid ? fg->scancel.out_fd : -1, POLLIN);
}

/* Returns the time at which something is due without an event. */
static int64_t due_ms(const struct foreground *fg, int64_t now_ms)
{
	const struct run_request *request = &fg->line->settings.request;
	int64_t due = foreground_look_ms(fg);

	if (fg->is_ending)
		due = min_i64(due, fg->kill_ms);
	else if (!fg->has_answered)
		due = min_i64(due, fg->begun_ms + SLURM_DEADLINE_MS);
	if (!fg->is_allocated && request->max_wait_ms >= 0 && !fg->is_ending)
		due = min_i64(due, fg->begun_ms + request->max_wait_ms);
	due = min_i64(due, foreground_send_ms(fg));
	if (fg->srun.input_fd >= 0 && !srun_may_read_input())
		due = min_i64(due, now_ms + TERMINAL_MS);
	return due;
}

static void obey_input(struct foreground *fg)
{
	int terminal = STDIN_FILENO;

	if (fg->input.size) {
		if (pump_empty(&fg->input, fg->srun.input_fd) < 0)
			close_fd(&fg->srun.input_fd);
		return;
	}
	pump_fill(&fg->input, &terminal);
	if (terminal < 0 || !fg->input.size) /* Ctrl-D */
		close_fd(&fg->srun.input_fd);
}

static void take_error(struct foreground *fg)
{
	pump_fill(&fg->error, &fg->srun.error_fd);
	fg->error.size =
		srun_remove_ends(fg->error.bytes, fg->error.size, &fg->error_begins_line);
}

static void obey_events(struct foreground *fg, const struct pollfd fds[FDS])
{
	if (fds[MESSAGES].revents)
		take_messages(fg);
	if (fds[SIGNALS].revents)
		foreground_obey_signals(fg);
	if (fds[OUTPUT].revents && fg->output.size)
		pass_output(fg, &fg->output, STDOUT_FILENO, &fg->srun.output_fd);
	else if (fds[OUTPUT].revents)
		pump_fill(&fg->output, &fg->srun.output_fd);
	if (fds[ERROR].revents && fg->error.size)
		pass_output(fg, &fg->error, STDERR_FILENO, &fg->srun.error_fd);
	else if (fds[ERROR].revents)
		take_error(fg);
	if (fds[INPUT].revents && fg->srun.input_fd >= 0)
		obey_input(fg);
}

void foreground_end(struct foreground *fg, int status)
{
	if (fg->is_ending)
		return;
	fg->is_ending = true;
	fg->status = status;
	fg->kill_ms = clock_boot_ms() + (fg->job ? PATIENCE_MS : 0);
	if (fg->srun.pid)
		(void)kill(fg->srun.pid, SIGTERM);
}

/* srun has not ended the job: ends both. */
static void kill_all(struct foreground *fg)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;

	(void)kill(fg->srun.pid, SIGKILL);
	fg->kill_ms = INT64_MAX;
	if (!fg->job)
		return;
	slurm_words_add(&words, "scancel");
	slurm_words_addf(&words, "%llu", (unsigned long long)fg->job);
	if (slurm_ask(&words, -1, SLURM_DEADLINE_MS, &answer) == 0)
		answer_release(&answer);
}

static void give_up_waiting(struct foreground *fg)
{
	char waited[DURATION_SIZE];

	format_duration(fg->line->settings.request.max_wait_ms, waited);
	note("gave up after %s: %s", waited,
		fg->why[0] ? fg->why : "waits for Slurm to look at it");
	foreground_end(fg, EXIT_GAVE_UP);
}

static void obey_clock(struct foreground *fg, int64_t now_ms)
{
	const struct run_request *request = &fg->line->settings.request;

	foreground_look(fg, now_ms);
	foreground_send_signals(fg, now_ms);
	if (fg->is_ending) {
		if (now_ms >= fg->kill_ms)
			kill_all(fg);
		return;
	}
	if (!fg->has_answered && now_ms >= fg->begun_ms + SLURM_DEADLINE_MS) {
		diag("srun does not answer in %d s; gpulease --engine slurm --doctor looks "
		     "for the reason",
			SLURM_DEADLINE_MS / 1000);
		foreground_end(fg, EXIT_MISUSE);
	} else if (!fg->is_allocated && request->max_wait_ms >= 0 &&
		   now_ms >= fg->begun_ms + request->max_wait_ms) {
		give_up_waiting(fg);
	}
}

static void wait_for_events(struct foreground *fg)
{
	struct pollfd fds[FDS];
	int64_t now_ms = clock_boot_ms(), due = due_ms(fg, now_ms);
	int timeout_ms =
		due == INT64_MAX ? -1 : (int)max_i64(0, min_i64(due - now_ms, 60000));

	collect(fg, fds);
	if (poll(fds, FDS, timeout_ms) > 0)
		obey_events(fg, fds);
	obey_clock(fg, clock_boot_ms());
}

static bool has_output(const struct foreground *fg)
{
	return fg->srun.message_fd >= 0 || fg->srun.output_fd >= 0 ||
	       fg->srun.error_fd >= 0 || fg->output.size || fg->error.size;
}

/* Takes what is left in the pipes, however long its readers take; a signal ends that. */
static void drain(struct foreground *fg)
{
	int64_t until_ms = clock_boot_ms() + LEFTOVER_MS;

	while (has_output(fg) && !fg->by_signal) {
		struct pollfd fds[FDS];
		bool is_held = fg->output.size || fg->error.size;
		int64_t left_ms = max_i64(until_ms - clock_boot_ms(), 0);

		collect(fg, fds);
		fds[INPUT].fd = fds[QUESTION].fd = fds[SCANCEL].fd = -1;
		if (poll(fds, FDS, is_held ? -1 : (int)left_ms) == 0 && !left_ms)
			return;
		obey_events(fg, fds);
	}
}

int foreground_run(struct foreground *fg, struct slurm_words *words)
{
	int r;

	fg->begun_ms = clock_boot_ms();
	fg->question = fg->scancel = ANSWER_NONE;
	fg->error_begins_line = true;
	r = foreground_take_signals(fg);
	if (r == 0 && words->is_cut)
		r = -ENOMEM;
	if (r == 0)
		r = srun_start(&fg->streams, words, &fg->srun);
	if (r < 0) {
		diag("cannot start srun: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	diag_hurry(DIAG_HURRY_MS);
	while (!srun_has_ended(&fg->srun))
		wait_for_events(fg);
	drain(fg);
	diag_hurry(DIAG_PATIENCE_MS);
	answer_release(&fg->question);
	r = foreground_status(fg);
	foreground_release_signals(fg);
	return r;
}

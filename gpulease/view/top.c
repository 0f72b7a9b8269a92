#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "local_user.h"
#include "parse.h"
#include "top.h"
#include "top_log.h"
#include "top_state.h"

enum {
	INTERVAL_LEAST_MS = 50,
	ESCAPE_MS = 50, /* how long the rest of a key may take after its ESC */
	FIRST_MS = 500,
	PLAIN_COLUMNS = 80,
	WAIT_MOST_MS = 60 * 60 * 1000,
	FDS_MAX = 2 + 2 * (HOSTS_MAX + 1),
};

/* --- drawing ------------------------------------------------------------------------------ */

/* Sets the times of the view to now. */
static void set_times(struct top_view *view)
{
	time_t now;
	struct tm local;

	view->now_unix_ms = clock_real_ms();
	now = (time_t)(view->now_unix_ms / 1000);
	if (!localtime_r(&now, &local))
		return;
	view->utc_offset_s = (int32_t)local.tm_gmtoff;
	local.tm_hour = local.tm_min = local.tm_sec = 0;
	local.tm_isdst = -1;
	view->today_unix_ms = (int64_t)mktime(&local) * 1000;
}

/* Asks for the log of the chosen job, if it is shown, and reads its end. */
static void set_log(struct top *top)
{
	struct top_source *source = &top->sources[top->view.host];
	bool is_wanted = !source->remote && top->view.columns >= TOP_WIDE_COLUMNS &&
			 top->view.chosen_job >= 0 &&
			 top_is_own_job(top, top->view.chosen_job);

	source->log_job = is_wanted ? top->view.chosen_job : -1;
	top->view.log_count = 0;
	if (is_wanted && source->log_known == source->log_job && source->log[0])
		top_log_read(&top->view, source->log);
}

static void draw(struct top *top)
{
	top->view.columns = top->terminal.columns;
	top->view.rows = top->terminal.rows;
	set_times(&top->view);
	set_log(top);
	top_screen_draw(top->hosts, top->count, &top->view, top->frame);
	top_control_settle(top);
	top->fault = top_terminal_show(&top->terminal, top->frame);
	top->is_dirty = false;
}

/* --- events ------------------------------------------------------------------------------- */

/* Gives the terminal back, stops, and goes on where it was. */
static void suspend(struct top *top)
{
	top_terminal_leave(&top->terminal);
	top_act_stop(SIGTSTP);
	for (size_t i = 0; i < top->count; i++)
		top_source_restart(&top->sources[i]);
	top->fault = top_terminal_enter(&top->terminal);
}

static void take_signals(struct top *top)
{
	struct signalfd_siginfo info;

	while (read(top->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		top->is_dirty |= info.ssi_signo != SIGCHLD;
		switch (info.ssi_signo) {
		case SIGCHLD: /* the next step looks at it */
			break;
		case SIGWINCH:
			top_terminal_measure(&top->terminal);
			break;
		case SIGTSTP:
			suspend(top);
			break;
		case SIGCONT: /* after STOP; after TSTP it changes nothing */
			top->fault = top_terminal_repair(&top->terminal);
			break;
		default:
			top->end_signal = (int)info.ssi_signo;
		}
	}
}

static void take_keys(struct top *top)
{
	unsigned char bytes[64];
	ssize_t n = read(top->terminal.fd, bytes, sizeof(bytes));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		top->fault = n == 0 ? -EIO : -errno;
	for (ssize_t i = 0; i < n && !top->is_done && !top->end_signal; i++) {
		int key = top_keys_take(&top->keys, bytes[i]);

		if (key != TOP_KEY_NONE)
			top_control_key(top, key);
	}
}

/* Adds what an answer waits for.  Returns how many descriptors that are. */
static size_t add_answer(struct pollfd *fds, const struct answer *answer)
{
	fds[0] = (struct pollfd){ .fd = answer->out_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = answer->err_fd, .events = POLLIN };
	return 2;
}

/* Returns how long poll(2) may wait at @now_ms. */
static int wait_ms(const struct top *top, int64_t now_ms)
{
	int64_t until_ms = min_i64(now_ms + WAIT_MOST_MS, top->tick_ms);
	int reap_ms = answer_poll_ms(&top->cancel);

	for (size_t i = 0; i < top->count; i++)
		until_ms =
			min_i64(until_ms, top_source_wake_ms(&top->sources[i], now_ms));
	if (top->view.notice[0])
		until_ms = min_i64(until_ms, top->notice_ms);
	if (top->is_cancelling)
		until_ms = min_i64(
			until_ms, reap_ms >= 0 ? now_ms + reap_ms : top->cancel_until_ms);
	if (top_keys_is_escape(&top->keys))
		until_ms = min_i64(until_ms, now_ms + ESCAPE_MS);
	return (int)max_i64(0, until_ms - now_ms);
}

/* Waits for the next event.  Without a terminal only answers count. */
static void wait_for_event(struct top *top, int64_t now_ms)
{
	struct pollfd fds[FDS_MAX] = {
		{ .fd = top->terminal.fd, .events = POLLIN },
		{ .fd = top->signal_fd, .events = POLLIN },
	};
	size_t count = 2;

	if (top_terminal_is_busy(&top->terminal))
		fds[0].events |= POLLOUT;
	for (size_t i = 0; i < top->count; i++)
		count += add_answer(&fds[count], &top->sources[i].answer);
	count += add_answer(&fds[count], &top->cancel);
	if (poll(fds, count, wait_ms(top, now_ms)) < 0)
		return;
	if (fds[1].revents)
		take_signals(top);
	if (fds[0].revents & POLLOUT && top->fault == 0)
		top->fault = top_terminal_flush(&top->terminal);
	if (fds[0].revents & ~POLLOUT && top->fault == 0)
		take_keys(top);
	else if (!fds[0].revents && top_keys_is_escape(&top->keys))
		top_control_key(top, top_keys_end(&top->keys));
}

/* --- the loop ------------------------------------------------------------------------------- */

/* Lets the sources go on. */
static void step(struct top *top, int64_t now_ms)
{
	for (size_t i = 0; i < top->count; i++)
		top->is_dirty |= top_source_step(&top->sources[i], now_ms);
}

static void loop(struct top *top)
{
	top->fault = top_terminal_enter(&top->terminal);
	/* the first frame has something to show, unless that takes too long */
	top->is_dirty = false;
	top->tick_ms = clock_boot_ms() + FIRST_MS;
	while (!top->is_done && !top->end_signal && top->fault == 0) {
		int64_t now_ms = clock_boot_ms();

		step(top, now_ms);
		top_control_step(top, now_ms);
		if (now_ms >= top->tick_ms) { /* the clock goes on without an answer */
			top->tick_ms = now_ms + top->settings->look.interval_ms;
			top->is_dirty = true;
		}
		if (top->is_dirty && !top_terminal_is_busy(&top->terminal))
			draw(top);
		if (top->fault == 0)
			wait_for_event(top, now_ms);
	}
	top_terminal_close(&top->terminal);
}

/* Blocks the signals that the loop reads. */
static int open_signals(void)
{
	static const int numbers[] = { SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGQUIT,
		SIGTERM, SIGHUP, SIGCHLD };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		(void)sigaddset(&set, numbers[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, it would reap the children */
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Ends by the signal, so that a shell or make(1) sees that. */
static int end_by_signal(int number)
{
	sigset_t set;

	(void)signal(number, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, number);
	(void)raise(number);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	return 128 + number;
}

static int show_live(struct top *top)
{
	top->signal_fd = open_signals();
	if (top->signal_fd < 0) {
		diag("cannot wait for signals: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	loop(top);
	if (top->end_signal)
		return end_by_signal(top->end_signal);
	if (top->fault == 0 || top->fault == -EIO) /* the terminal has hung up */
		return EXIT_DONE;
	diag("cannot use the terminal: %s", strerror(-top->fault));
	return EXIT_MISUSE;
}

/* --- one frame ------------------------------------------------------------------------------ */

/* Whether all that a frame shows is there, or will not come. */
static bool is_settled(const struct top *top)
{
	for (size_t i = 0; i < top->count; i++) {
		const struct top_source *source = &top->sources[i];

		if (!source->host->trouble[0] &&
			!(source->has_machine && source->has_ended))
			return false;
	}
	return true;
}

static unsigned plain_columns(const struct top *top)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width;

	if (columns && parse_u64(columns, 10000, &width, NULL) == 0 && width)
		return (unsigned)width;
	return top->view.columns ? top->view.columns : PLAIN_COLUMNS;
}

/* Prints a frame without the line of keys, and without the blank rows above it. */
static void print(const struct top_frame *frame)
{
	unsigned rows = frame->rows;

	if (rows == TOP_ROWS_MAX)
		rows--;
	while (rows && !frame->row[rows - 1][0])
		rows--;
	for (unsigned i = 0; i < rows; i++)
		(void)printf("%s\n", frame->row[i]);
}

static int show_once(struct top *top)
{
	int status = EXIT_DONE;

	for (int64_t now_ms = clock_boot_ms(); step(top, now_ms), !is_settled(top);
		now_ms = clock_boot_ms())
		wait_for_event(top, now_ms);
	if (!top->settings->look.hosts && !top->sources[0].has_machine) {
		diag("%s", top->hosts[0].trouble);
		return EXIT_MISUSE;
	}
	top->view.columns = plain_columns(top);
	top->view.rows = TOP_ROWS_MAX;
	set_times(&top->view);
	top_screen_draw(top->hosts, top->count, &top->view, top->frame);
	print(top->frame);
	for (size_t i = 0; i < top->count; i++)
		if (top->hosts[i].trouble[0]) {
			if (i != top->view.host) /* the frame says it of that one */
				diag("%s: %s", top->hosts[i].name, top->hosts[i].trouble);
			status = EXIT_NOT_DONE;
		}
	return status;
}

/* --- life ----------------------------------------------------------------------------------- */

/* Whether the terminal understands the sequences that the screen needs. */
static bool is_able(void)
{
	const char *term = getenv("TERM");

	return term && term[0] && strcmp(term, "dumb") != 0;
}

static int begin_sources(struct top *top)
{
	bool is_remote = top->settings->look.hosts;
	struct why why = WHY_NONE;

	if (is_remote &&
		host_list_read(top->settings->look.hosts, &top->list, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	top->count = is_remote ? top->list.count : 1;
	top->hosts = calloc(top->count, sizeof(*top->hosts));
	top->sources = calloc(top->count, sizeof(*top->sources));
	top->frame = calloc(1, sizeof(*top->frame));
	if (!top->hosts || !top->sources || !top->frame) {
		diag("%s", strerror(ENOMEM));
		return EXIT_MISUSE;
	}
	for (size_t i = 0; i < top->count; i++) {
		int r = top_source_begin(&top->sources[i], top->settings, &top->hosts[i],
			is_remote ? top->list.name[i] : NULL);

		if (r != 0)
			return r;
	}
	return 0;
}

static void begin_view(struct top *top, bool is_live)
{
	const char *no_colour = getenv("NO_COLOR");

	(void)setlocale(LC_CTYPE, "");
	top->view.has_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	top->view.has_colour = is_live && !(no_colour && no_colour[0]);
	top->view.chosen_job = -1;
	top->view.can_act = !top->settings->look.is_look;
	top->view.user = top->settings->verb.user;
	top->view.own_user = top->own_user;
	local_user_name(getuid(), top->own_user, sizeof(top->own_user));
	if (!top->own_user[0])
		(void)snprintf(
			top->own_user, sizeof(top->own_user), "%u", (unsigned)getuid());
}

static void release(struct top *top)
{
	for (size_t i = 0; top->sources && i < top->count; i++)
		top_source_release(&top->sources[i]);
	answer_release(&top->cancel);
	top_terminal_close(&top->terminal);
	close_fd(&top->signal_fd);
	free(top->sources);
	free(top->hosts);
	free(top->frame);
}

int top_main(const struct settings *settings)
{
	static struct top top = { .terminal = { .fd = -1 }, .signal_fd = -1 };
	bool is_live;
	int r;

	if (settings->look.interval_ms < INTERVAL_LEAST_MS) {
		diag("--interval: it must be %dms or more; the default is 2s",
			INTERVAL_LEAST_MS);
		return EXIT_MISUSE;
	}
	top.settings = settings;
	top.cancel = ANSWER_NONE;
	top.cancel_job = -1;
	top.notice_ms = top.tick_ms = INT64_MAX;
	r = top_terminal_open(&top.terminal);
	if (r < 0 && r != -ENOTTY) {
		diag("cannot open the terminal: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	is_live = r == 0 && is_able();
	if (r == 0 && !is_live) {
		top.view.columns = top.terminal.columns;
		top_terminal_close(&top.terminal);
	}
	begin_view(&top, is_live);
	r = begin_sources(&top);
	if (r == 0)
		r = is_live ? show_live(&top) : show_once(&top);
	release(&top);
	return r;
}

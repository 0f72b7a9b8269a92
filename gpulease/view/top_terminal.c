#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "clock.h"
#include "top_terminal.h"

enum {
	ROW_ROOM = TOP_ROW_SIZE + 32,
	OUT_ROOM = TOP_ROWS_MAX * ROW_ROOM,
	LEAVE_MS = 300, /* how long the end waits for a terminal that takes nothing */
};

/*
 * The alternate screen without a cursor.  A row that is too wide, because the terminal has just
 * become narrower, must not continue in the next row: lines are not wrapped.
 */
#define SEQUENCE_ENTER "\033[?1049h\033[?25l\033[?7l\033[0m\033[2J"
/*
 * CAN ends a sequence that was written in part.  In the last row, a terminal that has no other
 * screen goes on below the frame.
 */
#define SEQUENCE_LEAVE "\030\033[999;1H\033[0m\033[K\033[?7h\033[?25h\033[?1049l"

/* --- life ----------------------------------------------------------------------------------- */

/* Opens the terminal again: O_NONBLOCK must not change what other programs have open. */
static int open_again(void)
{
	char name[64];
	int fd = open("/proc/self/fd/1", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && ttyname_r(STDOUT_FILENO, name, sizeof(name)) == 0)
		fd = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	/* the terminal of another user, after su(1) */
	if (fd < 0)
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return fd < 0 ? -errno : fd;
}

int top_terminal_open(struct top_terminal *terminal)
{
	*terminal = TOP_TERMINAL_NONE;
	if (!isatty(STDOUT_FILENO))
		return -ENOTTY;
	terminal->fd = open_again();
	if (terminal->fd < 0)
		return terminal->fd;
	terminal->shown = calloc(1, sizeof(*terminal->shown));
	terminal->out = malloc(OUT_ROOM);
	if (!terminal->shown || !terminal->out) {
		top_terminal_close(terminal);
		return -ENOMEM;
	}
	top_terminal_measure(terminal);
	return 0;
}

/* What the modes become: keys come at once and are not shown; Ctrl-C and Ctrl-Z are signals. */
static void make_raw(struct termios *modes)
{
	modes->c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR | ISTRIP);
	modes->c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
	modes->c_lflag |= ISIG;
	modes->c_cc[VMIN] = 1;
	modes->c_cc[VTIME] = 0;
}

/* Sets the raw modes.  In the background this process stops here, with nothing changed. */
static int set_raw(struct top_terminal *terminal)
{
	while (tcsetattr(terminal->fd, TCSANOW, &terminal->raw) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int set_screen(struct top_terminal *terminal)
{
	terminal->out_at = 0;
	terminal->out_size = strlen(SEQUENCE_ENTER);
	memcpy(terminal->out, SEQUENCE_ENTER, terminal->out_size);
	top_terminal_measure(terminal);
	return top_terminal_flush(terminal);
}

int top_terminal_enter(struct top_terminal *terminal)
{
	int r;

	if (terminal->is_entered)
		return 0;
	if (tcgetattr(terminal->fd, &terminal->usual) < 0)
		return -errno;
	terminal->raw = terminal->usual;
	make_raw(&terminal->raw);
	r = set_raw(terminal);
	if (r < 0)
		return r;
	terminal->is_entered = true;
	top_guard_begin(&terminal->guard, terminal->fd, &terminal->usual, &terminal->raw,
		SEQUENCE_LEAVE);
	return set_screen(terminal);
}

int top_terminal_repair(struct top_terminal *terminal)
{
	/* the modes may be those of the shell or of this process: neither changes ->usual */
	int r = terminal->is_entered ? set_raw(terminal) : 0;

	return r < 0 || !terminal->is_entered ? r : set_screen(terminal);
}

void top_terminal_leave(struct top_terminal *terminal)
{
	int64_t until_ms = clock_boot_ms() + LEAVE_MS;
	struct pollfd fd = { .fd = terminal->fd, .events = POLLOUT };

	if (!terminal->is_entered)
		return;
	if (top_terminal_is_busy(terminal)) /* nobody needs the rest of the frame */
		(void)tcflush(terminal->fd, TCOFLUSH);
	terminal->out_at = 0;
	terminal->out_size = strlen(SEQUENCE_LEAVE);
	memcpy(terminal->out, SEQUENCE_LEAVE, terminal->out_size);
	while (top_terminal_flush(terminal) == 0 && top_terminal_is_busy(terminal) &&
		clock_boot_ms() < until_ms)
		(void)poll(&fd, 1, LEAVE_MS);
	terminal->out_at = terminal->out_size = 0;
	while (tcsetattr(terminal->fd, TCSANOW, &terminal->usual) < 0 && errno == EINTR)
		;
	terminal->is_entered = false;
	top_guard_end(&terminal->guard);
}

void top_terminal_close(struct top_terminal *terminal)
{
	top_terminal_leave(terminal);
	close_fd(&terminal->fd);
	free(terminal->shown);
	free(terminal->out);
	*terminal = TOP_TERMINAL_NONE;
}

void top_terminal_measure(struct top_terminal *terminal)
{
	struct winsize size = { .ws_col = 0 };

	(void)ioctl(terminal->fd, TIOCGWINSZ, &size);
	terminal->columns = size.ws_col ? size.ws_col : 80;
	terminal->rows = (unsigned)min_i64(size.ws_row ? size.ws_row : 24, TOP_ROWS_MAX);
	terminal->is_blank = true;
}

/* --- writing ---------------------------------------------------------------------------------- */

bool top_terminal_is_busy(const struct top_terminal *terminal)
{
	return terminal->out_at < terminal->out_size;
}

int top_terminal_flush(struct top_terminal *terminal)
{
	while (top_terminal_is_busy(terminal)) {
		ssize_t n = write(terminal->fd, terminal->out + terminal->out_at,
			terminal->out_size - terminal->out_at);

		if (n > 0)
			terminal->out_at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return 0;
		else if (n == 0 || errno != EINTR)
			return n == 0 ? -EIO : -errno;
	}
	return 0;
}

/* Appends a row to what is to be written. */
static void add_row(struct text *out, unsigned at, const char *row)
{
	text_addf(out, "\033[%u;1H\033[2K", at + 1);
	text_add(out, row);
	text_add(out, "\033[0m");
}

int top_terminal_show(struct top_terminal *terminal, const struct top_frame *frame)
{
	struct top_frame *shown = terminal->shown;
	unsigned rows =
		(unsigned)min_i64(max_i64(frame->rows, shown->rows), terminal->rows);
	struct text out = text_on(terminal->out, OUT_ROOM);

	if (terminal->is_blank) {
		text_add(&out, "\033[0m\033[2J");
		shown->rows = 0;
		rows = (unsigned)min_i64(frame->rows, terminal->rows);
	}
	for (unsigned i = 0; i < rows; i++) {
		const char *row = i < frame->rows ? frame->row[i] : "";

		if (i < shown->rows && strcmp(shown->row[i], row) == 0)
			continue;
		add_row(&out, i, row);
		text_copy(shown->row[i], sizeof(shown->row[i]), row);
	}
	shown->rows = frame->rows;
	terminal->is_blank = false;
	terminal->out_at = 0;
	terminal->out_size = out.used;
	return top_terminal_flush(terminal);
}

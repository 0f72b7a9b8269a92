/*
 * onterminal: runs a command with a terminal as its standard output.
 *
 *	onterminal COLUMNS command…
 *
 * The output on the terminal is copied to standard output without carriage returns.  Exits with the
 * status of the command.
 */
#include "tool.h"

#include <sys/ioctl.h>
#include <termios.h>

static int open_terminal(unsigned short columns, char name[64])
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0 ||
		ptsname_r(fd, name, 64) != 0 || ioctl(fd, TIOCSWINSZ, &size) < 0)
		die("no terminal: %s", strerror(errno));
	return fd;
}

static void become(const char *terminal, char **command) __attribute__((noreturn));
static void become(const char *terminal, char **command)
{
	int fd = open(terminal, O_RDWR | O_NOCTTY);

	if (fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0)
		(void)execvp(command[0], command);
	_exit(127);
}

/* Copies until no process has the terminal open any more. */
static void copy(int fd)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (bytes[i] != '\r')
				(void)putchar(bytes[i]);
		(void)fflush(stdout); /* for a process that reads it meanwhile */
	}
}

int main(int argc, char **argv)
{
	char name[64];
	int fd, status;
	pid_t pid;

	if (argc < 3)
		die("usage: onterminal COLUMNS command...");
	fd = open_terminal((unsigned short)number(argv[1], "columns"), name);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0)
		become(name, argv + 2);
	copy(fd);
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return TOOL_MISUSE;
	return WEXITSTATUS(status);
}

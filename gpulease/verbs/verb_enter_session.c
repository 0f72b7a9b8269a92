/*
 * --enter-session FOLDER: the first process in a session of --screen; users do not call it.
 * Executes gpulease with the arguments, environment, directory and umask of the process that made
 * the session, which has saved them in FOLDER/start (session.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "job_environment.h"
#include "rlimits.h"
#include "parse.h"
#include "privilege.h"
#include "session.h"
#include "verbs.h"

enum { START_MAX = 8 * 1024 * 1024 };

/* The rest of the strings of a file, each of which ends with NUL. */
struct strings {
	char *at, *end;
};

/* Takes the next string; NULL if there is none. */
static char *strings_next(struct strings *strings)
{
	char *string = strings->at;
	size_t size = strnlen(string, (size_t)(strings->end - string));

	if (string + size >= strings->end)
		return NULL;
	strings->at += size + 1;
	return string;
}

/*
 * Reads the file @path, which must belong to this user.  Returns 0 or a negative errno.  ->at of
 * *@ret is never freed.
 */
static int strings_read(const char *path, struct strings *ret)
{
	autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	size_t used = 0;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != getuid() || st.st_size > START_MAX)
		return -EINVAL;
	ret->at = malloc((size_t)st.st_size + 1);
	if (!ret->at)
		return -ENOMEM;
	r = fdio_pread(fd, ret->at, (size_t)st.st_size, 0, &used);
	ret->end = ret->at + used;
	return r;
}

/*
 * Takes the strings up to an empty one, or with @to_the_end all that are left.  Returns them as a
 * NULL-terminated array with room for one more, or NULL without memory.
 */
static char **strings_list(struct strings *strings, bool to_the_end)
{
	size_t count = 0;
	char **out, *string;

	for (const char *at = strings->at; at < strings->end; at++)
		count += *at == '\0';
	out = calloc(count + 2, sizeof(*out));
	for (count = 0;
		out && (string = strings_next(strings)) && (*string || to_the_end);)
		out[count++] = string;
	return out;
}

/*
 * Makes the FIFO @path stderr: the process that made the session reads it until there is a ticket.
 */
static void session_redirect_stderr(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fcntl(fd, F_SETFL, 0);
	(void)dup2(fd, STDERR_FILENO);
	close_fd(&fd);
}

/* Executes the saved command line.  Returns only on failure: a negative errno. */
static int session_start(const char *folder)
{
	char path[PATH_MAX], **arguments, **environment;
	const char *directory, *mask, *program;
	struct strings strings;
	uint64_t bits;
	int r;

	(void)snprintf(path, sizeof(path), "%s/said", folder);
	session_redirect_stderr(path);
	(void)snprintf(path, sizeof(path), "%s/start", folder);
	r = strings_read(path, &strings);
	if (r < 0)
		return r;
	directory = strings_next(&strings);
	mask = strings_next(&strings);
	program = strings_next(&strings);
	environment = program ? strings_list(&strings, false) : NULL;
	arguments = environment ? strings_list(&strings, true) : NULL;
	if (!arguments || !arguments[0] || parse_u64(mask, 0777, &bits, NULL) < 0)
		return -EINVAL;
	/* the server of tmux or screen has the tag of a lease if it was started in one */
	rlimits_untag();
	for (r = 0; environment[r]; r++)
		;
	environment[r] = (char *)SESSION_VARIABLE "=1";
	if (*directory && chdir(directory) < 0)
		return -errno;
	(void)umask((mode_t)bits);
	(void)execve(program, arguments, environment);
	return -errno;
}

int verb_enter_session(struct settings *settings)
{
	int r = privilege_drop();

	if (r == 0)
		r = session_start(
			settings->verb.operand_count ? settings->verb.operands[0] : "");
	diag("cannot start the job of this session: %s", strerror(-r));
	return EXIT_MISUSE;
}

/*
 * --enter-session FOLDER, which nobody types: what a session of --screen begins with.  Becomes
 * gpulease as it was called, with its arguments, environment and directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "limits.h"
#include "parse.h"
#include "privilege.h"
#include "session.h"
#include "verbs.h"

enum { START_MAX = 8 * 1024 * 1024 };

/* The strings of the file, each ended by a NUL, in order. */
struct strings {
	char *at, *end;
};

static char *next(struct strings *strings)
{
	char *string = strings->at;
	size_t size = strnlen(string, (size_t)(strings->end - string));

	if (string + size >= strings->end)
		return NULL;
	strings->at += size + 1;
	return string;
}

static int read_all(const char *path, struct strings *ret)
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

/* Strings up to an empty one, or all that are left, as an array with room for one more. */
static char **list(struct strings *strings, bool to_the_end)
{
	size_t count = 0;
	char **out, *string;

	for (const char *at = strings->at; at < strings->end; at++)
		count += *at == '\0';
	out = calloc(count + 2, sizeof(*out));
	for (count = 0; out && (string = next(strings)) && (*string || to_the_end);)
		out[count++] = string;
	return out;
}

/* Until the job has its ticket, who asked for it reads what goes wrong. */
static void speak_through(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fcntl(fd, F_SETFL, 0);
	(void)dup2(fd, STDERR_FILENO);
	close_fd(&fd);
}

static int enter(const char *folder)
{
	char path[PATH_MAX], **arguments, **environment;
	const char *directory, *mask, *program;
	struct strings strings;
	uint64_t bits;
	int r;

	(void)snprintf(path, sizeof(path), "%s/said", folder);
	speak_through(path);
	(void)snprintf(path, sizeof(path), "%s/start", folder);
	r = read_all(path, &strings);
	if (r < 0)
		return r;
	directory = next(&strings);
	mask = next(&strings);
	program = next(&strings);
	environment = program ? list(&strings, false) : NULL;
	arguments = environment ? list(&strings, true) : NULL;
	if (!arguments || !arguments[0] || parse_u64(mask, 0777, &bits, NULL) < 0)
		return -EINVAL;
	/* the server may have been started in a lease, whose tag it has */
	limits_untag();
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
		r = enter(settings->operand_count ? settings->operands[0] : "");
	diag("cannot begin the job of this session: %s", strerror(-r));
	return EXIT_MISUSE;
}

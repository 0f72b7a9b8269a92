#include <errno.h>
#include <fcntl.h>

#include "execute.h"
#include "exitcodes.h"
#include "parse.h"

/*
 * Executes a script without `#!` by /bin/sh, as a shell or env(1) does.  Returns only if that
 * fails.
 */
static void execute_script(const char *program, char **command, char **environment)
{
	static char shell[] = "/bin/sh";
	size_t words = 0;
	char **script;

	while (command[words])
		words++;
	script = calloc(words + 2, sizeof(*script));
	if (!script)
		return;
	script[0] = shell;
	script[1] = (char *)program;
	memcpy(script + 2, command + 1, words * sizeof(*script));
	(void)execve(script[0], script, environment);
	free(script);
}

/*
 * Explains ENOENT for a program that exists: its interpreter after `#!` is missing, or, for a
 * binary, the dynamic loader that it names.
 */
static void explain_interpreter(const char *program, struct why *why)
{
	autofd int fd = open(program, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char head[256] = "";
	ssize_t size = fd < 0 ? 0 : read(fd, head, sizeof(head) - 1);
	char *name = head + 2, *end;

	if (size < 2 || head[0] != '#' || head[1] != '!') {
		why_set(why, "cannot execute '%s': its dynamic loader does not exist",
			program);
		return;
	}
	head[size] = '\0';
	name += strspn(name, " \t");
	end = name + strcspn(name, " \t\n");
	why_set(why, "cannot execute '%s': its interpreter '%s' does not exist", program,
		quote_bytes(name, (size_t)(end - name)).text);
}

int execute(const char *program, char **command, char **environment, struct why *why)
{
	int error;

	(void)execve(program, command, environment);
	error = errno;
	if (error == ENOEXEC)
		execute_script(program, command, environment);
	if (error == ENOENT && access(program, F_OK) == 0)
		explain_interpreter(program, why);
	else
		why_set(why, "cannot execute '%s': %s", program, strerror(error));
	return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

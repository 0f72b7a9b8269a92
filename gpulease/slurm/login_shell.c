#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fdio.h"
#include "login_shell.h"
#include "text.h"
#include "words.h"

enum { LINE_SIZE = 256, CODE_SIZE = 4 * PATH_MAX + 64 };

/* The first line of a script: its interpreter, and the words behind it. */
struct shebang {
	char line[LINE_SIZE];
	char *interpreter, *argument; /* in ->line */
};

static bool has_shebang(const char *path, struct shebang *ret)
{
	autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t size = fd < 0 ? -1 : read(fd, ret->line, sizeof(ret->line) - 1);
	char *end, *rest = ret->line + 2;

	if (size < 2 || strncmp(ret->line, "#!", 2) != 0)
		return false;
	ret->line[size] = '\0';
	ret->line[strcspn(ret->line, "\n")] = '\0';
	ret->interpreter = rest + strspn(rest, " \t");
	end = ret->interpreter + strcspn(ret->interpreter, " \t");
	ret->argument = end + strspn(end, " \t");
	*end = '\0';
	return true;
}

/* Whether @shebang starts a shell that reads the profile, and that has `-c` and `.`. */
static bool is_login_shell(const struct shebang *shebang)
{
	static const char *const shells[] = { "bash", "sh", "dash", "ksh", "zsh" };
	const char *argument = shebang->argument;

	if (strcmp(argument, "--login") != 0 &&
		(argument[0] != '-' || argument[1] == '-' || !strchr(argument, 'l') ||
			argument[strcspn(argument, " \t")]))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (strcmp(text_base_name(shebang->interpreter), shells[i]) == 0)
			return true;
	return false;
}

int login_shell_wrap(char **command, const char *folder, char ***ret)
{
	static struct shebang shebang;
	static char code[CODE_SIZE], run[] = "-c";
	struct text text = TEXT_ON(code);
	char **words, **next;
	size_t count = 0;

	if (!has_shebang(command[0], &shebang) || !is_login_shell(&shebang)) {
		*ret = command;
		return 0;
	}
	while (command[count])
		count++;
	words = next = calloc(count + 5, sizeof(*words));
	if (!words)
		return -ENOMEM;
	text_add(&text, "PATH=");
	words_add_quoted(&text, folder);
	text_add(&text, ":$PATH; . \"$0\"");
	*next++ = shebang.interpreter;
	*next++ = shebang.argument;
	*next++ = run;
	*next++ = code;
	memcpy(next, command, count * sizeof(*next));
	*ret = words;
	return 0;
}

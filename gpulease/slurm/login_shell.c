#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fdio.h"
#include "login_shell.h"
#include "set_again.h"
#include "text.h"
#include "words.h"

#define LOGIN_SHELL "the login shell" /* in a message */

enum { LINE_SIZE = 256, CODE_SIZE = 4 * PATH_MAX + SET_AGAIN_SIZE };

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

/* Whether the shell @shell with the word @option reads the profile, and has `-c` and `.`. */
static bool reads_profile(const char *shell, const char *option)
{
	static const char *const shells[] = { "bash", "sh", "dash", "ksh", "zsh" };

	if (strcmp(option, "--login") != 0 &&
		(option[0] != '-' || option[1] == '-' || !strchr(option, 'l') ||
			option[strcspn(option, " \t")]))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (strcmp(text_base_name(shell), shells[i]) == 0)
			return true;
	return false;
}

/* Also for `#!/usr/bin/env -S bash -l`, which passes words behind its own on. */
static bool is_login_shell(const struct shebang *shebang)
{
	const char *words = shebang->argument + 2, *option;
	char shell[LINE_SIZE];

	if (strcmp(text_base_name(shebang->interpreter), "env") != 0 ||
		strncmp(shebang->argument, "-S", 2) != 0)
		return reads_profile(shebang->interpreter, shebang->argument);
	words += strspn(words, " \t");
	option = words + strcspn(words, " \t");
	(void)snprintf(shell, sizeof(shell), "%.*s", (int)(option - words), words);
	return reads_profile(shell, option + strspn(option, " \t"));
}

int login_shell_wrap(char **command, const char *folder, char ***environment, char ***ret)
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
	/* its strings are in the first one, which stays */
	if (set_again_add(*environment, 0, environment) < 0)
		return -ENOMEM;
	while (command[count])
		count++;
	words = next = calloc(count + 5, sizeof(*words));
	if (!words)
		return -ENOMEM;
	set_again_begin(&text);
	set_again_check(LOGIN_SHELL, &text);
	set_again_end(&text);
	if (folder) {
		text_add(&text, "PATH=");
		words_add_quoted(&text, folder);
		text_add(&text, ":$PATH\n");
	}
	text_add(&text, ". \"$0\"");
	*next++ = shebang.interpreter;
	*next++ = shebang.argument;
	*next++ = run;
	*next++ = code;
	memcpy(next, command, count * sizeof(*next));
	*ret = words;
	return 0;
}

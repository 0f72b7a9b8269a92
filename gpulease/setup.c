#include <errno.h>

#include "conda.h"
#include "diag.h"
#include "exitcodes.h"
#include "setup.h"
#include "words.h"

/* What stands before the command: the shell, -c, the script, and what the script calls $0. */
enum { SETUP_WORDS = 4 };

bool setup_is_wanted(const struct settings *settings)
{
	return settings->setup || settings->conda;
}

size_t setup_words(const struct settings *settings)
{
	return setup_is_wanted(settings) ? SETUP_WORDS : 0;
}

/*
 * The script.  What is set up sees no arguments: files that it reads in would take those of the
 * command for their own.  bash keeps them in an array; in its functions `declare` is local, so
 * the set-up is in none.  Other shells know no arrays and no `declare`: there it is a function,
 * and a line, which has no arguments either, is kept in a variable.
 *
 * However the set-up ends the shell, also by `exit`, a wrong word or a signal, it says so; with
 * status 0 it would look as if the command had succeeded.  Its status is asked for apart from
 * running it, for `set -e` would not count within a condition.
 */
struct script {
	const char *begin, *middle, *end, *end_of_line;
};

static const struct script bash_script = {
	.begin = "gpulease_command=(\"$@\"); set --\n",
	.middle = "\n",
	.end = "exec \"${gpulease_command[@]}\"",
	.end_of_line = "\"${gpulease_command[@]}\"",
};

static const struct script sh_script = {
	.begin = "gpulease_setup() {\n",
	.middle = "\n}\ngpulease_setup\n",
	.end = "exec \"$@\"",
	.end_of_line = "gpulease_line=$2; set --\neval \"$gpulease_line\"",
};

static void write_script(const struct settings *settings, const struct conda *conda,
	const struct script *script, bool is_line, struct text *out)
{
	text_addf(out,
		"trap 'case $? in 0) echo \"gpulease: the set-up stopped before its end; "
		"the command was not run\" >&2; exit %d ;; *) echo \"gpulease: the set-up "
		"failed with status $?; the command was not run\" >&2 ;; esac' EXIT\n",
		EXIT_MISUSE);
	text_add(out, script->begin);
	if (settings->conda)
		conda_add_activation(conda, out);
	text_add(out, "eval ");
	words_add_in_quotes(out, settings->setup ? settings->setup : "");
	text_add(out, script->middle);
	text_add(out, "case $? in 0) ;; *) exit ;; esac\ntrap - EXIT\n");
	text_add(out, is_line ? script->end_of_line : script->end);
}

/* A line for a shell, and nothing that can be executed. */
static bool is_line(char *const command[])
{
	char program[PATH_MAX];

	return !command[1] && command[0][strcspn(command[0], " \t\n|&;<>()$`")] &&
	       find_program(command[0], program) != 0;
}

/* The command behind @script, run by @shell. */
static int put_before(const struct settings *settings, char *shell, char *script,
	bool is_line, char ***ret)
{
	static char minus_c[] = "-c", eval[] = "eval";
	size_t words = 0;
	char **out;

	while (settings->command[words])
		words++;
	out = calloc(SETUP_WORDS + words + 2, sizeof(*out));
	if (!out)
		return -ENOMEM;
	out[0] = out[3] = shell;
	out[1] = minus_c;
	out[2] = script;
	out[SETUP_WORDS] = eval;
	memcpy(out + SETUP_WORDS + is_line, settings->command, words * sizeof(*out));
	*ret = out;
	return 0;
}

static int make(const struct settings *settings, const struct conda *conda, bool is_line,
	char ***ret)
{
	static char bash[] = "bash", sh[] = "/bin/sh";
	char program[PATH_MAX];
	bool has_bash = find_program(bash, program) == 0;
	/* within quotes a character becomes four at most */
	size_t size = 2048 + 4 * (settings->setup ? strlen(settings->setup) : 0) +
		      4 * sizeof(*conda);
	char *script = malloc(size);
	struct text text;

	if (!script)
		return -ENOMEM;
	text = text_on(script, size);
	write_script(
		settings, conda, has_bash ? &bash_script : &sh_script, is_line, &text);
	return put_before(settings, has_bash ? bash : sh, script, is_line, ret);
}

int setup_wrap(const struct settings *settings, char ***ret)
{
	bool line = settings->line || is_line(settings->command);
	struct why why = WHY_NONE;
	struct conda conda = { .is_micromamba = false };
	int r = settings->conda ? conda_find(settings->conda, &conda, &why) : 0;

	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (line && settings->inject) {
		diag("--inject cannot tell where in '%s' its option belongs; write {gpus} "
		     "there",
			settings->command[0]);
		return EXIT_MISUSE;
	}
	r = make(settings, &conda, line, ret);
	if (r == 0)
		return 0;
	diag("cannot set the command up: %s", strerror(-r));
	return EXIT_MISUSE;
}

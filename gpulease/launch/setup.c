#include <errno.h>
#include <stdio.h>

#include "conda.h"
#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "set_again.h"
#include "setup.h"
#include "words.h"

/* The words before the command: the shell, -c, the script, and $0 of the script. */
enum { SETUP_WORDS = 4 };

bool setup_is_wanted(const struct run_environment *environment)
{
	return environment->setup || environment->conda;
}

size_t setup_words(const struct run_environment *environment)
{
	return setup_is_wanted(environment) ? SETUP_WORDS : 0;
}

/*
 * The script, in parts.  The set-up must see no arguments: a file that it sources would take the
 * command's arguments as its own.
 *
 * bash keeps the arguments in an array and runs the set-up at top level: in a function of bash,
 * `declare` would be local.  Other shells have neither arrays nor `declare`: there the set-up is a
 * function, which has arguments of its own, and a line for the shell is kept in a variable.
 *
 * The EXIT trap reports every way in which the set-up can end the shell: `exit`, a syntax error, a
 * signal.  With status 0 it would otherwise look as if the command had succeeded.  The script tests
 * the status of the set-up in a separate `case`: inside a condition `set -e` has no effect.
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

/* Appends the check after --conda, or after --setup, in the words of the user. */
static void check_after(
	const struct run_environment *environment, const char *option, struct text *out)
{
	char words[16];

	/* a line of a jobs file has attributes */
	(void)snprintf(words, sizeof(words), environment->line ? "%s=" : "--%s", option);
	set_again_check(words, out);
}

static void write_script(const struct run_environment *environment,
	const struct conda *conda, const struct script *script, bool is_line,
	struct text *out)
{
	text_addf(out,
		"trap 'case $? in 0) echo \"gpulease: the set-up stopped before its end; "
		"the command was not run\" >&2; exit %d ;; *) echo \"gpulease: the set-up "
		"failed with status $?; the command was not run\" >&2 ;; esac' EXIT\n",
		EXIT_MISUSE);
	set_again_begin(out);
	text_add(out, script->begin);
	if (environment->conda) {
		conda_add_activation(conda, out);
		check_after(environment, "conda", out);
	}
	text_add(out, "eval ");
	words_add_in_quotes(out, environment->setup ? environment->setup : "");
	text_add(out, script->middle);
	text_add(out, "case $? in 0) ;; *) exit ;; esac\n");
	if (environment->setup)
		check_after(environment, "setup", out);
	set_again_end(out);
	text_add(out, "trap - EXIT\n");
	text_add(out, is_line ? script->end_of_line : script->end);
}

/* Whether the command is one word that is a line for a shell and no program. */
static bool command_is_line(char *const command[])
{
	char program[PATH_MAX];

	return !command[1] && command[0][strcspn(command[0], " \t\n|&;<>()$`")] &&
	       find_program(command[0], program) != 0;
}

/* Makes the words: @shell, -c, @script, $0, and the command after them. */
static int make_words(const struct run_environment *environment, char *shell,
	char *script, bool is_line, char ***ret)
{
	static char minus_c[] = "-c", eval[] = "eval";
	size_t words = 0;
	char **out;

	while (environment->command[words])
		words++;
	out = calloc(SETUP_WORDS + words + 2, sizeof(*out));
	if (!out)
		return -ENOMEM;
	out[0] = out[3] = shell;
	out[1] = minus_c;
	out[2] = script;
	out[SETUP_WORDS] = eval;
	memcpy(out + SETUP_WORDS + is_line, environment->command, words * sizeof(*out));
	*ret = out;
	return 0;
}

static int make_command(const struct run_environment *environment,
	const struct conda *conda, bool is_line, char ***ret)
{
	static char bash[] = "bash", sh[] = "/bin/sh";
	char program[PATH_MAX];
	bool has_bash = find_program(bash, program) == 0;
	/* quoting makes four characters of one at most */
	size_t size = 2048 + SET_AGAIN_SIZE +
		      4 * (environment->setup ? strlen(environment->setup) : 0) +
		      4 * sizeof(*conda);
	char *script = malloc(size);
	struct text text;

	if (!script)
		return -ENOMEM;
	text = text_on(script, size);
	write_script(
		environment, conda, has_bash ? &bash_script : &sh_script, is_line, &text);
	return make_words(environment, has_bash ? bash : sh, script, is_line, ret);
}

int setup_wrap(const struct run_environment *environment, char ***ret)
{
	bool line = environment->line || command_is_line(environment->command);
	struct why why = WHY_NONE;
	struct conda conda = { .is_micromamba = false };
	int r = environment->conda ? conda_find(environment->conda, &conda, &why) : 0;

	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (line && environment->inject) {
		diag("--inject cannot add its option to the shell line '%s'; write {gpus} "
		     "where the GPUs belong",
			environment->command[0]);
		return EXIT_MISUSE;
	}
	r = make_command(environment, &conda, line, ret);
	if (r == 0)
		return 0;
	diag("cannot prepare the shell for --setup or --conda: %s", strerror(-r));
	return EXIT_MISUSE;
}

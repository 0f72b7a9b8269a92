#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "diag.h"
#include "exitcodes.h"
#include "slurm_program.h"
#include "task_words.h"
#include "text.h"

enum { WORDS_MAX = 32, NUMBER_SIZE = 24 };

/* Appends an option and, unless it is NULL, its value. */
static char **add(char **words, const char *option, const char *value)
{
	*words++ = (char *)option;
	if (value)
		*words++ = (char *)value;
	return words;
}

/*
 * Returns room for the words of gpulease-slurm and of @command, of which the first two are set; or
 * NULL after it has printed the reason.
 */
static char **begin(const char *part, char **command)
{
	static char runner[PATH_MAX];
	size_t size = 0;
	char **words;

	if (other_program_find(SLURM_PROGRAM, runner) < 0) {
		diag("this needs gpulease-slurm, which is not installed; install gpulease "
		     "again: make install");
		return NULL;
	}
	while (command[size])
		size++;
	words = calloc(WORDS_MAX + size + 1, sizeof(*words));
	if (words)
		(void)add(words, runner, part);
	else
		diag("cannot start the command: %s", strerror(ENOMEM));
	return words;
}

static void append(char **words, char **command)
{
	while (*command)
		*words++ = *command++;
}

int task_words_wrap(const struct settings *s, char ***command)
{
	static char count[NUMBER_SIZE], per_node[NUMBER_SIZE], wait[NUMBER_SIZE];
	const struct {
		bool is_given;
		const char *option, *value;
	} wishes[] = {
		{ true, "--ntasks", count },
		{ s->tasks.per_node, "--per-node", per_node },
		{ s->tasks.cpus, "--cpus", s->tasks.cpus },
		{ s->tasks.bind, "--bind", s->tasks.bind },
		{ s->tasks.wait_ms, "--wait", wait },
		{ s->tasks.labels, "--label", NULL },
		{ s->tasks.kills, "--kill-on-bad-exit", NULL },
		{ s->tasks.forwards, "--disable-status", NULL },
		{ s->tasks.pty, "--pty", NULL },
		{ s->environment.unbuffered, "--unbuffered", NULL },
		{ s->output.out, "--output", s->output.out },
		{ s->output.err, "--error", s->output.err },
		{ s->output.in, "--input", s->output.in },
		{ s->request.name, "--name", s->request.name },
		{ s->output.append, "--append", NULL },
		{ s->output.quiet, "--quiet", NULL },
		{ s->environment.submit, "--submit", NULL },
	};
	char **words = begin("tasks", *command), **next;

	if (!words)
		return EXIT_MISUSE;
	(void)snprintf(count, sizeof(count), "%u", s->tasks.count);
	(void)snprintf(per_node, sizeof(per_node), "%u", s->tasks.per_node);
	(void)snprintf(wait, sizeof(wait), "%lldms", (long long)s->tasks.wait_ms);
	next = words + 2;
	for (size_t i = 0; i < ARRAY_SIZE(wishes); i++)
		if (wishes[i].is_given)
			next = add(next, wishes[i].option, wishes[i].value);
	*next++ = (char *)"--";
	append(next, *command);
	*command = words;
	return 0;
}

int task_words_add_parent(
	const struct step_lock *lock, const char **program, char ***command)
{
	static char locks[GPUSET_MAX * NUMBER_SIZE];
	struct text text = TEXT_ON(locks);
	char **words = begin("step", *command);

	if (!words)
		return EXIT_MISUSE;
	for (unsigned i = 0; i < lock->count; i++) {
		(void)fcntl(lock->fds[i], F_SETFD, 0);
		text_addf(&text, i ? ",%d" : "%d", lock->fds[i]);
	}
	append(add(words + 2, locks, *program), *command);
	*program = words[0];
	*command = words;
	return 0;
}

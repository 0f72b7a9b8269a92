#include <errno.h>
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

int task_words_wrap(const struct settings *s, char ***command)
{
	static char runner[PATH_MAX], count[NUMBER_SIZE], per_node[NUMBER_SIZE],
		wait[NUMBER_SIZE];
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
		{ s->environment.unbuffered, "--unbuffered", NULL },
		{ s->output.out, "--output", s->output.out },
		{ s->output.err, "--error", s->output.err },
		{ s->output.in, "--input", s->output.in },
		{ s->request.name, "--name", s->request.name },
		{ s->output.append, "--append", NULL },
		{ s->output.quiet, "--quiet", NULL },
	};
	size_t size = 0;
	char **words, **next;

	if (slurm_program_find(runner) < 0) {
		diag("several tasks need gpulease-slurm, which is not installed; install "
		     "gpulease again: make install");
		return EXIT_MISUSE;
	}
	while ((*command)[size])
		size++;
	words = next = calloc(WORDS_MAX + size + 1, sizeof(*words));
	if (!words) {
		diag("cannot start the tasks: %s", strerror(ENOMEM));
		return EXIT_MISUSE;
	}
	(void)snprintf(count, sizeof(count), "%u", s->tasks.count);
	(void)snprintf(per_node, sizeof(per_node), "%u", s->tasks.per_node);
	(void)snprintf(wait, sizeof(wait), "%lldms", (long long)s->tasks.wait_ms);
	next = add(next, runner, "tasks");
	for (size_t i = 0; i < ARRAY_SIZE(wishes); i++)
		if (wishes[i].is_given)
			next = add(next, wishes[i].option, wishes[i].value);
	*next++ = (char *)"--";
	memcpy(next, *command, size * sizeof(*words));
	*command = words;
	return 0;
}

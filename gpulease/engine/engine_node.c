#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "diag.h"
#include "engine_node.h"
#include "execute.h"
#include "exitcodes.h"
#include "find_program.h"
#include "missing_program.h"
#include "node_supervise.h"
#include "node_variables.h"
#include "set_again.h"
#include "setup.h"

/* The command as it will be executed. */
struct node_command {
	char program[PATH_MAX];
	char **words;
	size_t fixed; /* words that have no placeholders */
};

/* Enters the folder of the job, where Slurm may have left this process in /tmp. */
static int enter_folder(const char *folder)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (!folder || chdir(folder) == 0)
		return 0;
	(void)gethostname(host, sizeof(host) - 1);
	diag("cannot change to '%s' on %s: %s; name a folder that the nodes have: -D DIR",
		folder, host, strerror(errno));
	return EXIT_MISUSE;
}

/* Finds the program, with the shell of --setup or --conda before it. */
static int find_command(const struct node_order *order, struct node_command *ret)
{
	struct run_environment environment = { .command = order->command,
		.setup = order->setup,
		.conda = order->conda,
		.inject = order->inject };
	int r = 0;

	ret->words = order->command;
	ret->fixed = setup_words(&environment) + 1;
	if (setup_is_wanted(&environment))
		r = setup_wrap(&environment, &ret->words);
	if (r != 0)
		return r;
	r = find_program(ret->words[0], ret->program);
	return r == 0 ? 0 : missing_program_refuse(ret->words[0], r);
}

/* What become() needs. */
struct node_job {
	const struct node_order *order;
	const struct node_command *command;
};

/* Becomes the command of the node_job @context.  Returns only if that fails: the exit status. */
static int become(const void *context, unsigned attempt)
{
	const struct node_job *job = context;
	char **environment, **words;
	struct why why = WHY_NONE;
	int r = node_environment_make(job->order, attempt, &environment);

	if (r == 0 && (job->order->setup || job->order->conda))
		r = set_again_add(environment, SET_AGAIN_ONLY_SET, &environment);
	if (r == 0)
		r = node_fill(
			job->order, job->command->words, job->command->fixed, &words);
	if (r == -ENOMEM)
		diag("cannot start the command: %s", strerror(ENOMEM));
	if (r < 0)
		return EXIT_MISUSE;
	r = execute(job->command->program, words, environment, &why);
	diag("%s", why.text);
	return r;
}

/* Several tasks would be tried again one by one, and not together. */
static int check_tasks(const struct node_order *order)
{
	const char *tasks = getenv("SLURM_NTASKS");

	if (!order->retries || !tasks || strcmp(tasks, "1") == 0)
		return 0;
	diag("--retries: gpulease tries one task again, and this job has %s", tasks);
	return EXIT_MISUSE;
}

int engine_node(char **words)
{
	struct node_command command;
	struct node_order order;
	struct node_job job = { &order, &command };
	struct why why = WHY_NONE;
	int r = node_order_read(words, &order, &why);

	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (order.merges)
		(void)dup2(STDOUT_FILENO, STDERR_FILENO);
	r = enter_folder(order.folder);
	if (r == 0)
		r = find_command(&order, &command);
	if (r == 0)
		r = check_tasks(&order);
	if (r != 0)
		return r;
	return node_needs_parent(&order) ? node_supervise(&order, become, &job)
					 : become(&job, 1);
}

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "diag.h"
#include "execute.h"
#include "exitcodes.h"
#include "job_variables.h"
#include "login_shell.h"
#include "option_parser.h"
#include "parse.h"
#include "script_part.h"
#include "slurm_programs.h"

/* What the job was submitted with.  sbatch.c writes these options. */
struct script_order {
	const char *name, *folder, *host;
	/* as given; NULL: not given */
	const char *tasks, *per_node, *per_gpu, *gpus_per_task, *cpus, *gpus,
		*gpus_per_node;
};

#define TEXT(name_, field)                                                           \
	{                                                                            \
		.kind = OPTION_TEXT, .name = (name_), .metavar = "TEXT", .verbs = 1, \
		.offset = offsetof(struct script_order, field)                       \
	}

/* clang-format off */
static const struct option_def table[] = {
	TEXT("name", name),
	TEXT("submit-dir", folder),
	TEXT("submit-host", host),
	TEXT("ntasks", tasks),
	TEXT("per-node", per_node),
	TEXT("per-gpu", per_gpu),
	TEXT("gpus-per-task", gpus_per_task),
	TEXT("cpus", cpus),
	TEXT("gpus", gpus),
	TEXT("gpus-per-node", gpus_per_node),
	{ .kind = OPTION_END },
};
/* clang-format on */

/* The number in @text; @otherwise if it has none. */
static unsigned number_in(const char *text, unsigned otherwise)
{
	uint64_t number;

	return text && parse_u64(text, UINT16_MAX, &number, NULL) == 0 ? (unsigned)number
								       : otherwise;
}

/* Writes $PATH with the folder of the links first, if there is an srun in it. */
static void set_path(struct job_variables *variables, char *path, size_t size)
{
	char folder[PATH_MAX];
	struct text text = text_on(path, size);

	if (slurm_programs_links(folder) < 0)
		return;
	text_addf(&text, "%s:%s", folder, job_variables_value_of("PATH"));
	if (!text.cut)
		job_variables_set(variables, "PATH", path);
}

static int make_environment(const struct script_order *order, char ***ret)
{
	static char path[128 * 1024];
	extern char **environ;
	struct job_variables variables = { .count = 0 };
	const char *gpus = getenv("GPULEASE_GPUS");
	const struct {
		const char *name, *value;
	} given[] = {
		{ "SLURM_NTASKS", order->tasks },
		{ "SLURM_NPROCS", order->tasks },
		{ "SLURM_NTASKS_PER_NODE", order->per_node },
		{ "SLURM_NTASKS_PER_GPU", order->per_gpu },
		{ "SLURM_GPUS_PER_TASK", order->gpus_per_task },
		{ "SLURM_CPUS_PER_TASK", order->cpus },
		{ "SLURM_GPUS", order->gpus },
		{ "SLURM_GPUS_PER_NODE", order->gpus_per_node },
		{ "SLURM_JOB_GPUS", gpus },
	};
	unsigned tasks = number_in(order->tasks, 1);

	job_variables_describe(&variables, order->name ? order->name : "sbatch",
		order->folder ? order->folder : "");
	job_variables_set_task(&variables, 0);
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		if (given[i].value && *given[i].value)
			job_variables_set(&variables, given[i].name, given[i].value);
	job_variables_set_number(&variables, "SLURM_TASKS_PER_NODE", tasks);
	job_variables_set_number(
		&variables, "SLURM_CPUS_ON_NODE", tasks * number_in(order->cpus, 1));
	job_variables_set_number(
		&variables, "SLURM_JOB_CPUS_PER_NODE", tasks * number_in(order->cpus, 1));
	job_variables_set(
		&variables, "SLURM_SUBMIT_HOST", order->host ? order->host : "");
	job_variables_set_number(&variables, "SLURM_JOB_UID", getuid());
	job_variables_set(&variables, "ENVIRONMENT", "BATCH");
	set_path(&variables, path, sizeof(path));
	return childenv_make(environ, "SLURM_TASK_", NULL, NULL, variables.changes,
		variables.count, ret);
}

int script_main(char **argv)
{
	struct script_order order = { .name = NULL };
	struct options_result result;
	struct why why = WHY_NONE;
	char **environment = NULL, **command, folder[PATH_MAX];
	int r = options_parse(table, argv, &order, &result, &why);

	if (r == 0 && !result.rest_count) {
		why_set(&why, "sbatch starts this program itself");
		r = -EINVAL;
	}
	if (r == 0) {
		r = make_environment(&order, &environment);
		if (r < 0)
			why_set(&why, "cannot start the script: %s", strerror(-r));
	}
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	command = result.rest;
	if (slurm_programs_links(folder) == 0 &&
		login_shell_wrap(result.rest, folder, &command) < 0)
		command = result.rest;
	r = execute(command[0], command, environment, &why);
	diag("%s", why.text);
	return r;
}

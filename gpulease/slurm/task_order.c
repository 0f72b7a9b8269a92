#include <errno.h>
#include <unistd.h>

#include "file_pattern.h"
#include "job_variables.h"
#include "local_user.h"
#include "option_parser.h"
#include "parse.h"
#include "task_order.h"

static int read_count(const char *value, void *count, struct why *why)
{
	uint64_t number;
	int r = parse_u64(value, TASKS_MAX, &number, why);

	if (r == 0)
		*(unsigned *)count = (unsigned)number;
	return r;
}

#define AT(field) offsetof(struct task_order, field)
#define COUNT(name_, field)                                                         \
	{                                                                           \
		.kind = OPTION_CUSTOM, .name = (name_), .metavar = "N", .verbs = 1, \
		.read = read_count, .offset = AT(field)                             \
	}
#define TEXT(name_, field)                                                           \
	{                                                                            \
		.kind = OPTION_TEXT, .name = (name_), .metavar = "TEXT", .verbs = 1, \
		.offset = AT(field)                                                  \
	}
#define FLAG(name_, field)                                                            \
	{                                                                             \
		.kind = OPTION_FLAG, .name = (name_), .verbs = 1, .offset = AT(field) \
	}

/* clang-format off */
static const struct option_def table[] = {
	COUNT("ntasks", count),
	COUNT("cpus", cpus),
	COUNT("per-node", per_node),
	TEXT("bind", bind),
	TEXT("output", out),
	TEXT("error", err),
	TEXT("input", in),
	TEXT("name", name),
	{ .kind = OPTION_DURATION, .name = "wait", .metavar = "DUR", .verbs = 1, .offset = AT(wait_ms) },
	FLAG("label", labels),
	FLAG("unbuffered", unbuffered),
	FLAG("append", appends),
	FLAG("kill-on-bad-exit", kills),
	FLAG("disable-status", forwards),
	FLAG("pty", pty),
	FLAG("quiet", quiet),
	FLAG("submit", has_log),
	{ .kind = OPTION_END },
};
/* clang-format on */

/* Reads the number in the variable @name, at most @most.  Leaves *@ret if there is none. */
static int read_variable(const char *name, uint64_t most, uint64_t *ret, struct why *why)
{
	const char *value = getenv(name);
	struct why reason = WHY_NONE;

	if (!value || !*value || parse_u64(value, most, ret, &reason) == 0)
		return 0;
	why_wrap(why, &reason, "%s: ", name);
	return -EINVAL;
}

/*
 * Reads the variables that stand for options of srun.  Only a job script and its tasks have them:
 * gpulease takes them away from other commands.
 */
static int read_variables(struct task_order *order, struct why *why)
{
	const char *label = getenv("SLURM_LABELIO"),
		   *unbuffered = getenv("SLURM_UNBUFFEREDIO"),
		   *kill = getenv("SLURM_KILL_BAD_EXIT");
	uint64_t kills = kill && !*kill, wait_s = 0;
	int r;

	/* gpulease lets this one through to the steps of a job script alone */
	if (!getenv("SLURM_JOB_NAME"))
		return 0;
	r = read_variable("SLURM_KILL_BAD_EXIT", 1, &kills, why);
	if (r == 0)
		r = read_variable("SLURM_WAIT", UINT32_MAX, &wait_s, why);
	order->labels = label && is_job_variable_on(label);
	order->unbuffered = unbuffered && is_job_variable_on(unbuffered);
	order->kills = kills != 0;
	order->wait_ms = (int64_t)wait_s * 1000;
	return r;
}

int task_order_read(char **argv, struct task_order *ret, struct why *why)
{
	struct options_result result;
	int r;

	*ret = (struct task_order){ .count = 1 };
	r = read_variables(ret, why);
	if (r == 0)
		r = options_parse(table, argv, ret, &result, why);
	if (r < 0)
		return r;
	if (!ret->count || !result.rest_count) {
		why_set(why,
			"gpulease starts this program itself: gpulease --ntasks 2 command");
		return -EINVAL;
	}
	ret->command = result.rest;
	/* as with srun */
	ret->pty = ret->pty && isatty(STDIN_FILENO);
	if (ret->pty && (ret->out || ret->err || ret->in)) {
		why_set(why, "--pty leaves task 0 the terminal, so -o, -e and -i cannot "
			     "be given with it");
		return -EINVAL;
	}
	if (ret->pty) {
		static const char terminal[] = "0"; /* the number of the task */

		ret->out = ret->err = ret->in = terminal;
		ret->unbuffered = true;
		ret->labels = false;
	}
	return 0;
}

/* Returns the number in the variable @name; 0 if there is none. */
static uint64_t number_of(const char *name)
{
	uint64_t number;

	return parse_u64(job_variables_value_of(name), UINT64_MAX, &number, NULL) == 0
		       ? number
		       : 0;
}

/* The name of the job: of the job script around it, as with Slurm also if -J names the step. */
static const char *name_of(const struct task_order *order)
{
	const char *name = getenv("SLURM_JOB_NAME");

	if (!name)
		name = order->name;
	return name ? name : text_base_name(order->command[0]);
}

int task_order_expand(const struct task_order *order, const char *pattern, unsigned task,
	char out[PATH_MAX], struct why *why)
{
	char host[HOST_NAME_MAX + 1] = "", user[64];
	/* gpulease passes on Slurm's variables to the steps of a job script alone */
	struct file_pattern_values values = {
		.job = number_of("GPULEASE_ID"),
		.array = number_of("SLURM_ARRAY_JOB_ID"),
		.index = number_of("SLURM_ARRAY_TASK_ID"),
		.name = name_of(order),
		.user = user,
		.host = host,
		.task = task,
		.step = job_variables_step(),
	};

	(void)gethostname(host, sizeof(host) - 1);
	local_user_name(getuid(), user, sizeof(user));
	return file_pattern_expand(pattern, &values, out, PATH_MAX, why);
}

bool task_order_is_number(const char *text, unsigned task, bool *ret_is_of)
{
	uint64_t number;

	if (!text || parse_u64(text, UINT32_MAX, &number, NULL) < 0)
		return false;
	*ret_is_of = number == task;
	return true;
}

#include <errno.h>

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
	FLAG("quiet", quiet),
	FLAG("submit", has_log),
	{ .kind = OPTION_END },
};
/* clang-format on */

int task_order_read(char **argv, struct task_order *ret, struct why *why)
{
	struct options_result result;
	int r;

	*ret = (struct task_order){ .count = 1 };
	r = options_parse(table, argv, ret, &result, why);
	if (r < 0)
		return r;
	if (!ret->count || !result.rest_count) {
		why_set(why,
			"gpulease starts this program itself: gpulease --ntasks 2 command");
		return -EINVAL;
	}
	ret->command = result.rest;
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

/* The name of the job: that of -J, of the job script around it, or of the program. */
static const char *name_of(const struct task_order *order)
{
	const char *name = order->name ? order->name : getenv("SLURM_JOB_NAME");

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

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

int task_order_expand(const struct task_order *order, const char *pattern, unsigned task,
	char out[PATH_MAX], struct why *why)
{
	char host[HOST_NAME_MAX + 1] = "", user[64];
	const char *id = getenv("GPULEASE_ID");
	uint64_t job = 0;
	struct file_pattern_values values = {
		.name = order->name ? order->name : text_base_name(order->command[0]),
		.user = user,
		.host = host,
		.task = task,
		.step = job_variables_step(),
	};

	/* gpulease has set it */
	if (id && parse_u64(id, UINT64_MAX, &job, NULL) == 0)
		values.job = job;
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

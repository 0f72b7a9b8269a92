#include <errno.h>
#include <strings.h>

#include "childenv.h"
#include "cli_table.h"
#include "gpuset.h"
#include "parse.h"
#include "pattern.h"

enum { SIM_DEFAULT_MIB = 24 << 10 };

/*
 * Copies the @size bytes at @model into @wish; -EINVAL where they are none or too many.
 */
static int set_model(struct gpu_wish *wish, const char *model, size_t size,
	const char *value, struct why *why)
{
	if (size == 0 || size >= sizeof(wish->model)) {
		why_set(why, "'%s' has %s TYPE", quote(value).text,
			size ? "too long a" : "no");
		return -EINVAL;
	}
	memcpy(wish->model, model, size);
	wish->model[size] = '\0';
	return 0;
}

/* `[TYPE:]N`. */
int read_gpus(const char *value, void *at, struct why *why)
{
	struct gpu_wish wish = { .given = true };
	const char *colon = strrchr(value, ':');
	int r;

	if (strchr(value, ',')) {
		why_set(why, "'%s' asks for several kinds of GPU; ask for one",
			quote(value).text);
		return -EINVAL;
	}
	if (colon) {
		r = set_model(&wish, value, (size_t)(colon - value), value, why);
		if (r < 0)
			return r;
	}
	r = parse_gpu_count(
		colon ? colon + 1 : value, &wish.count, &wish.share_percent, why);
	if (r < 0)
		return r;
	*(struct gpu_wish *)at = wish;
	return 0;
}

/* `gpu`, `gpu:N`, `gpu:TYPE`, `gpu:TYPE:N`, `none`. */
int read_gres(const char *value, void *at, struct why *why)
{
	struct gpu_wish wish = { .given = true, .count = 1 };
	const char *rest = value + strcspn(value, ":,");
	int r = 0;

	if (strcasecmp(value, "none") == 0) {
		wish.count = 0;
		*(struct gpu_wish *)at = wish;
		return 0;
	}
	if (strchr(value, ',') || rest - value != 3 || memcmp(value, "gpu", 3) != 0) {
		why_set(why,
			"'%s' is not gpu[:TYPE][:N]; gpulease leases GPUs and nothing "
			"else",
			quote(value).text);
		return -EINVAL;
	}
	/* a last part that begins with a letter is a type */
	if (*rest && (strchr(rest + 1, ':') ||
			     (rest[1] && !strchr("-.0123456789", rest[1])))) {
		size_t size = strcspn(++rest, ":");

		r = set_model(&wish, rest, size, value, why);
		rest += size;
	}
	if (r == 0 && *rest)
		r = parse_gpu_count(rest + 1, &wish.count, &wish.share_percent, why);
	if (r < 0)
		return r;
	*(struct gpu_wish *)at = wish;
	return 0;
}

int read_immediate(const char *value, void *at, struct why *why)
{
	struct command_line *line = at;

	line->settings.immediate = true;
	line->settings.immediate_ms = 0;
	return value ? parse_duration_ms(value, &line->settings.immediate_ms, why) : 0;
}

/* `N[xSIZE]`. */
int read_sim(const char *value, void *at, struct why *why)
{
	struct settings *settings = at;
	size_t digits = strspn(value, "0123456789");
	uint64_t count = 0, mib = SIM_DEFAULT_MIB;
	char number[8];

	text_copy(number, sizeof(number), value);
	if (digits < sizeof(number)) {
		number[digits] = '\0';
		if (parse_u64(number, GPUSET_MAX, &count, NULL) < 0)
			count = 0;
	}
	if (count == 0 || (value[digits] && value[digits] != 'x')) {
		why_set(why,
			"'%s' is not a number of GPUs to simulate; write 1 to %d, or "
			"4x80G",
			quote(value).text, GPUSET_MAX);
		return -EINVAL;
	}
	if (value[digits] && parse_size_mib(value + digits + 1, &mib, why) < 0)
		return -EINVAL;
	settings->sim_gpus = (unsigned)count;
	settings->sim_mib = mib;
	return 0;
}

/* srun's `N` or `MIN-MAX`: this machine will do wherever one node is enough. */
int read_nodes(const char *value, void *unused, struct why *why)
{
	const char *dash = strchr(value, '-');
	char least[16];
	uint64_t nodes, most = 1;

	(void)unused;
	text_copy(least, sizeof(least), value);
	least[strcspn(least, "-")] = '\0';
	if (parse_u64(least, UINT32_MAX, &nodes, NULL) < 0 ||
		(dash && parse_u64(dash + 1, UINT32_MAX, &most, NULL) < 0)) {
		why_set(why, "'%s' is not a number of nodes; write 1", quote(value).text);
		return -EINVAL;
	}
	if (nodes == 1 && most > 0)
		return 0;
	why_set(why,
		"gpulease knows only this machine, not %s nodes; leave the option out, "
		"or start gpulease on each machine",
		quote(value).text);
	return -EINVAL;
}

int read_one_task(const char *value, void *unused, struct why *why)
{
	uint64_t tasks;
	int r = parse_u64(value, UINT32_MAX, &tasks, why);

	(void)unused;
	if (r < 0)
		return r;
	if (tasks == 1)
		return 0;
	why_set(why,
		"gpulease starts one process, not %llu tasks; leave the option out and "
		"let the command start its own, as torchrun does",
		(unsigned long long)tasks);
	return -EINVAL;
}

/* A file is written anew, as with srun where nothing is said. */
int read_open_mode(const char *value, void *unused, struct why *why)
{
	(void)unused;
	if (strcmp(value, "truncate") == 0 || strcmp(value, "t") == 0)
		return 0;
	why_set(why,
		"'%s' is not truncate, and files of --output are always written anew; "
		"append with >> instead",
		quote(value).text);
	return -EINVAL;
}

int read_export(const char *value, void *at, struct why *why)
{
	const char **list = at;
	int r = childenv_check(value, why);

	if (r == 0)
		*list = value;
	return r;
}

/*
 * srun's file patterns, and its words for no redirection, nothing, and one task's only.
 */
int read_file(const char *value, void *at, struct why *why)
{
	const char **pattern = at;

	if (!*value) {
		why_set(why, "its value is empty");
		return -EINVAL;
	}
	if (strcmp(value, "all") == 0 || strcmp(value, "0") == 0) {
		*pattern = NULL;
		return 0;
	}
	if (strcmp(value, "none") == 0) {
		*pattern = "/dev/null";
		return 0;
	}
	if (value[strspn(value, "0123456789")] == '\0') {
		why_set(why,
			"'%s' is the number of a task, and the only one is 0; for a file "
			"of that name write ./%s",
			quote(value).text, quote(value).text);
		return -EINVAL;
	}
	if (pattern_check(value, why) < 0)
		return -EINVAL;
	*pattern = value;
	return 0;
}

int read_history(const char *value, uint64_t *ret, struct why *why)
{
	uint64_t count;

	if (strcmp(value, "all") == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	if (parse_u64(value, INT64_MAX, &count, NULL) < 0 || !count) {
		why_set(why, "--history: '%s' is not a number of jobs; write one, or all",
			quote(value).text);
		return -EINVAL;
	}
	*ret = count;
	return 0;
}

int read_engine(const char *value, bool *ret_podman, struct why *why)
{
	*ret_podman = strcmp(value, "podman") == 0;
	if (*ret_podman || strcmp(value, "docker") == 0)
		return 0;
	why_set(why, "--docker-args: '%s' is neither docker nor podman",
		quote(value).text);
	return -EINVAL;
}

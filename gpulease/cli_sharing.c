/*
 * The values of the options that say which GPUs, how much of them, and when.
 */
#include <errno.h>

#include "choice.h"
#include "cli_table.h"
#include "gpuset.h"
#include "operands.h"
#include "parse.h"

enum { PRIORITY_MAX = 1000000 };

/* --- how much ---------------------------------------------------------------------- */

int read_size(const char *value, void *at, struct why *why)
{
	return parse_size_mib(value, at, why);
}

int read_model(const char *value, void *at, struct why *why)
{
	if (!*value || strlen(value) >= MODEL_SIZE) {
		why_set(why, "'%s' is %s", quote(value).text,
			*value ? "too long" : "in every name; leave the option out");
		return -EINVAL;
	}
	text_copy(at, MODEL_SIZE, value);
	return 0;
}

/* srun's `user` and `mcs` are about others than oneself: nobody is all of them. */
int read_exclusive(const char *value, void *at, struct why *why)
{
	(void)value;
	(void)why;
	*(bool *)at = true;
	return 0;
}

int read_bind(const char *value, void *at, struct why *why)
{
	bool is_no = value && strcmp(value, "no") == 0;

	if (value && !is_no && strcmp(value, "yes") != 0) {
		why_set(why, "'%s' is neither yes nor no", quote(value).text);
		return -EINVAL;
	}
	*(enum bind_wish *)at = is_no ? BIND_NO : BIND_YES;
	return 0;
}

/* --- which ------------------------------------------------------------------------- */

static int read_list(const char *value, unsigned most, const char **ret, struct why *why)
{
	unsigned count;
	int r = operand_count_gpus(value, most, &count, why);

	if (r == 0)
		*ret = value;
	return r;
}

int read_gpu_ids(const char *value, void *at, struct why *why)
{
	int r = read_list(value, GPUSET_MAX, at, why);

	return r == 0 && operand_has_twice(value, why) ? -EINVAL : r;
}

int read_gpu_list(const char *value, void *at, struct why *why)
{
	return read_list(value, UINT32_MAX, at, why);
}

int read_prefer(const char *value, void *at, struct why *why)
{
	return read_list(value, PREFER_MAX, at, why);
}

/* --- when -------------------------------------------------------------------------- */

int read_priority(const char *value, void *at, struct why *why)
{
	struct settings *settings = at;
	bool is_negative = value[0] == '-';
	uint64_t size;

	if (parse_u64(value + is_negative, PRIORITY_MAX, &size, NULL) < 0) {
		why_set(why,
			"'%s' is not a priority; write a whole number from -%d to %d",
			quote(value).text, PRIORITY_MAX, PRIORITY_MAX);
		return -EINVAL;
	}
	settings->priority = is_negative ? -(int64_t)size : (int64_t)size;
	settings->priority_given = true;
	return 0;
}

/* Adds @list, "12,15", to the ids at @ids, of AFTER_SIZE bytes. */
static int add_ids(char *ids, const char *list, struct why *why)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_JOB);
	struct operand job = { .first = 1 };
	struct text text = text_on(ids + strlen(ids), AFTER_SIZE - strlen(ids));
	unsigned count = 0;
	int r;

	for (const char *at = ids; *at; at++)
		count += at == ids || *at == ',';
	while ((r = operand_next(&walk, &job, why)) == 0 && job.first > 0) {
		text_addf(
			&text, "%s%llu", count ? "," : "", (unsigned long long)job.first);
		count++;
	}
	if (r == 0) /* number 0 is the head of the ticket file */
		why_set(why, "'0' is not the id of a job; they begin at 1");
	else if (r == OPERAND_DONE && (count > AFTER_MAX || text.cut))
		why_set(why, "'%s' names too many jobs; at most %d, in %d characters",
			quote(list).text, AFTER_MAX, AFTER_SIZE - 1);
	else
		return r < 0 ? r : 0;
	return -EINVAL;
}

int read_after(const char *value, void *at, struct why *why)
{
	char *ids = at;

	ids[0] = '\0'; /* given twice, the last one counts */
	return add_ids(ids, value, why);
}

/* One item of srun's list, `singleton` or `KIND:ID[:ID…]`. */
static int read_condition(struct settings *settings, char *item, struct why *why)
{
	static const char any[] = "afterany:", ok[] = "afterok:";
	char *ids = strchr(item, ':');
	bool is_any = strncmp(item, any, sizeof(any) - 1) == 0;

	if (strcmp(item, "singleton") == 0) {
		settings->singleton = true;
		return 0;
	}
	/* `?` is srun's "or" */
	if (strchr(item, '?') || (!is_any && strncmp(item, ok, sizeof(ok) - 1) != 0)) {
		why_set(why,
			"'%s' is not supported; write singleton, afterany:ID or "
			"afterok:ID, commas between them",
			quote(item).text);
		return -EINVAL;
	}
	for (char *at = ++ids; *at; at++)
		if (*at == ':')
			*at = ',';
	return add_ids(is_any ? settings->after_ids : settings->after_ok_ids, ids, why);
}

int read_dependency(const char *value, void *at, struct why *why)
{
	struct settings *settings = at, read = { .singleton = settings->singleton };
	char list[256], *rest = list, *item;

	if (strlen(value) >= sizeof(list)) {
		why_set(why, "'%s' is too long", quote(value).text);
		return -EINVAL;
	}
	text_copy(list, sizeof(list), value);
	while ((item = strsep(&rest, ",")))
		if (read_condition(&read, item, why) < 0)
			return -EINVAL;
	settings->singleton = read.singleton;
	if (read.after_ids[0])
		memcpy(settings->after_ids, read.after_ids, AFTER_SIZE);
	if (read.after_ok_ids[0])
		memcpy(settings->after_ok_ids, read.after_ok_ids, AFTER_SIZE);
	return 0;
}

/* --- what goes together ------------------------------------------------------------ */

/* The list of --gpu-ids says how many; who says it twice says the same. */
static int settle_ids(struct settings *s, const char *spelled, struct why *why)
{
	unsigned count = 0;
	int r = operand_count_gpus(s->gpu_ids, GPUSET_MAX, &count, why);

	if (r < 0)
		return r;
	if (s->gpus_given && s->share_percent && count != 1)
		why_set(why, "%s asks for a share of one GPU and --gpu-ids names %u",
			spelled, count);
	else if (s->gpus_given && s->gpus != count)
		why_set(why, "%s asks for %u GPU%s and --gpu-ids names %u; leave one out",
			spelled, s->gpus, s->gpus == 1 ? "" : "s", count);
	else
		r = 1;
	s->gpus = count;
	return r == 1 ? 0 : -EINVAL;
}

int settle_sharing(struct settings *s, const char *spelled, struct why *why)
{
	s->need_given = s->gpus_given || s->vram_mib;
	if (s->gpu_ids && settle_ids(s, spelled, why) < 0)
		return -EINVAL;
	if (s->gpus == 0 && s->vram_mib) {
		why_set(why,
			"%s asks for no GPU and --vram for memory of one; leave "
			"one out",
			spelled);
		return -EINVAL;
	}
	if (s->share_percent && s->exclusive) {
		why_set(why,
			"%s asks for a share of a GPU and --exclusive for all of it; "
			"leave one out",
			spelled);
		return -EINVAL;
	}
	return 0;
}

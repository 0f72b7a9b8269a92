#include <errno.h>
#include <string.h>

#include "parse.h"
#include "task_gpus.h"

/* Appends item number @at of @list, which has commas between its items.  Whether it has one. */
static bool add_item(const char *list, uint64_t at, struct text *out)
{
	while (at > 0 && list) {
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
		at--;
	}
	if (!list || !*list)
		return false;
	text_addf(out, "%s%.*s", out->used ? "," : "", (int)strcspn(list, ","), list);
	return true;
}

static int refuse(const char *bind, struct why *why)
{
	why_set(why,
		"--gpu-bind: '%s' is not known here; write none, single:N, per_task:N or "
		"map_gpu:LIST",
		quote(bind).text);
	return -EINVAL;
}

/* The GPUs number @first to @first + @count - 1. */
static int add_range(const char *gpus, uint64_t first, uint64_t count, unsigned task,
	struct text *out, struct why *why)
{
	for (uint64_t i = first; i < first + count; i++)
		if (!add_item(gpus, i, out)) {
			why_set(why, "task %u would have GPU number %llu of %u", task,
				(unsigned long long)i + 1, text_count_items(gpus));
			return -EINVAL;
		}
	return 0;
}

static int add_mapped(const char *list, const char *gpus, unsigned task, struct text *out,
	struct why *why)
{
	char words[16];
	struct text item = TEXT_ON(words);
	uint64_t at;

	if (!text_count_items(list) ||
		!add_item(list, task % text_count_items(list), &item) ||
		parse_u64(words, UINT16_MAX, &at, NULL) < 0)
		return refuse(list, why);
	return add_range(gpus, at, 1, task, out, why);
}

/* Sets *@ret to the part of @bind after the word @word and a colon.  Whether it begins so. */
static bool take_word(const char *bind, const char *word, const char **ret)
{
	size_t size = strlen(word);

	if (strncmp(bind, word, size) != 0 || bind[size] != ':')
		return false;
	*ret = bind + size + 1;
	return true;
}

int task_gpus(const char *bind, const char *gpus, unsigned task, struct text *out,
	struct why *why)
{
	const char *how = bind, *value;
	uint64_t number;

	if (how && (strncmp(how, "verbose,", 8) == 0 || strncmp(how, "v,", 2) == 0))
		how = strchr(how, ',') + 1;
	if (!how || strcmp(how, "none") == 0 || strcmp(how, "closest") == 0) {
		text_add(out, gpus);
		return 0;
	}
	if (take_word(how, "map_gpu", &value))
		return add_mapped(value, gpus, task, out, why);
	if (take_word(how, "per_task", &value) &&
		parse_u64(value, UINT16_MAX, &number, NULL) == 0)
		return add_range(gpus, task * number, number, task, out, why);
	if (take_word(how, "single", &value) &&
		parse_u64(value, UINT16_MAX, &number, NULL) == 0 && number)
		return *gpus ? add_range(gpus, task / number % text_count_items(gpus), 1,
				       task, out, why)
			     : 0;
	return refuse(bind, why);
}

#include <errno.h>
#include <strings.h>

#include "gpu_options.h"
#include "gpuset.h"
#include "operands.h"
#include "parse.h"
#include "parse_gpus.h"
#include "task_options.h"

#include "no_messages.h" /* the last one */

/* Returns the place in struct command_line of what the option @source asks for. */
static size_t gpu_options_offset(int source)
{
	return offsetof(struct command_line, gpus) +
	       (size_t)source * sizeof(struct gpu_wish);
}

/*
 * Checks that all given options `[TYPE:]N` ask for the same.  Sets *@ret_source to the first of
 * them, -1 when none was given.
 */
static int gpu_options_agree(const struct command_line *line,
	const struct options_result *result, int *ret_source, struct why *why)
{
	int first = -1;

	for (int i = 0; i < GPU_SOURCES; i++) {
		const struct gpu_wish *wish = &line->gpus[i];

		if (!wish->given)
			continue;
		if (first < 0) {
			first = i;
		} else if (wish->count != line->gpus[first].count ||
			   wish->share_percent != line->gpus[first].share_percent ||
			   strcmp(wish->model, line->gpus[first].model) != 0) {
			why_set(why, "%s and %s ask for different GPUs; give one",
				option_given_spelling(result, gpu_options_offset(first))
					.text,
				option_given_spelling(result, gpu_options_offset(i))
					.text);
			return -EINVAL;
		}
	}
	*ret_source = first;
	return 0;
}

/*
 * Refuses the number 0 for all lines of a jobs file, if the option @spelled sets it.  Other
 * programs use such an option for the index of a GPU, and the lines would run without a GPU.
 */
static int gpu_options_check_lines(
	const struct settings *s, unsigned count, const char *spelled, struct why *why)
{
	if (count || (s->verb.kind != VERB_BATCH && s->verb.kind != VERB_ADD))
		return 0;
	why_set(why,
		"%s 0 is no GPU at all; write --allow 0 for GPU 0, or -n 0 to run without "
		"a GPU",
		spelled);
	return -EINVAL;
}

/* Sets in @request what @wish, given by the option @spelled, asks for. */
static int gpu_options_set_wish(struct run_request *request, const struct gpu_wish *wish,
	const char *spelled, struct why *why)
{
	if (wish->model[0] && request->model[0] &&
		strcasecmp(wish->model, request->model) != 0) {
		why_set(why, "%s asks for '%s' and --model for '%s'; give one", spelled,
			quote(wish->model).text, quote(request->model).text);
		return -EINVAL;
	}
	if (wish->model[0])
		memcpy(request->model, wish->model, sizeof(request->model));
	request->gpus = wish->count;
	request->share_percent = wish->share_percent;
	request->gpus_given = true;
	return 0;
}

/*
 * Sets how many GPUs.  -n is their number, except beside one of srun's GPU options: such a line
 * was written for srun, where -n is the number of tasks.  *@ret_spelled is the option that decided.
 */
static int gpu_options_set_count(struct command_line *line,
	const struct options_result *result, struct option_spelling *ret_spelled,
	struct why *why)
{
	struct run_request *request = &line->settings.request;
	struct why reason = WHY_NONE;
	int source;

	*ret_spelled = (struct option_spelling){ .text = "-n" };
	if (gpu_options_agree(line, result, &source, why) < 0)
		return -EINVAL;
	if (source >= 0) {
		*ret_spelled = option_given_spelling(result, gpu_options_offset(source));
		if (gpu_options_check_lines(&line->settings, line->gpus[source].count,
			    ret_spelled->text, why) < 0)
			return -EINVAL;
		return gpu_options_set_wish(
			request, &line->gpus[source], ret_spelled->text, why);
	}
	if (!line->n || task_options_own_n(line))
		return 0;
	request->gpus_given = true;
	if (parse_gpu_count(line->n, &request->gpus, &request->share_percent, &reason) ==
		0)
		return 0;
	why_set(why, "-n: %s", reason.text);
	return -EINVAL;
}

/*
 * Sets the number of GPUs to the length of --gpu-ids.  A number that is given as well, by the
 * option @spelled, has to be the same.
 */
static int gpu_options_set_ids(
	struct run_request *request, const char *spelled, struct why *why)
{
	unsigned count = 0;
	int r = operand_count_gpus(request->gpu_ids, GPUSET_MAX, &count, why);

	if (r < 0)
		return r;
	if (request->gpus_given && request->share_percent && count != 1) {
		why_set(why, "%s asks for a share of one GPU and --gpu-ids names %u",
			spelled, count);
		return -EINVAL;
	}
	if (request->gpus_given && request->gpus != count) {
		why_set(why, "%s asks for %u GPU%s and --gpu-ids names %u; leave one out",
			spelled, request->gpus, request->gpus == 1 ? "" : "s", count);
		return -EINVAL;
	}
	request->gpus = count;
	return 0;
}

/* Checks --vram and --exclusive against the number of GPUs, which the option @spelled gave. */
static int gpu_options_check_share(
	const struct run_request *request, const char *spelled, struct why *why)
{
	if (request->gpus == 0 && request->vram_mib) {
		why_set(why,
			"%s asks for no GPU and --vram for memory of one; leave one out",
			spelled);
		return -EINVAL;
	}
	if (request->share_percent && request->exclusive) {
		why_set(why,
			"%s asks for a share of a GPU and --exclusive for all of it; "
			"leave one out",
			spelled);
		return -EINVAL;
	}
	return 0;
}

/* Checks the numbers of --gpu-bind=map_gpu:LIST, if the number of GPUs is known yet. */
static int gpu_options_check_map(const struct settings *s, struct why *why)
{
	const char *bind = s->tasks.bind,
		   *at = bind && s->request.gpus_given ? strstr(bind, "map_gpu:") : NULL;
	unsigned number = 0;

	for (; at && *at; at++) {
		number = is_digit(*at) ? number * 10 + (unsigned)(*at - '0') : 0;
		if (number < s->request.gpus || !number)
			continue;
		why_set(why, "--gpu-bind: '%s' has GPU %u, and there %s %u, from 0 on",
			bind, number, s->request.gpus == 1 ? "is" : "are",
			s->request.gpus);
		return -EINVAL;
	}
	return 0;
}

int gpu_options_settle(
	struct command_line *line, const struct options_result *result, struct why *why)
{
	struct run_request *request = &line->settings.request;
	struct option_spelling spelled;

	if (task_options_settle(line, result, why) < 0)
		return -EINVAL;
	if (gpu_options_set_count(line, result, &spelled, why) < 0)
		return -EINVAL;
	request->need_given = request->gpus_given || request->vram_mib;
	if (request->gpu_ids && gpu_options_set_ids(request, spelled.text, why) < 0)
		return -EINVAL;
	if (gpu_options_check_share(request, spelled.text, why) < 0)
		return -EINVAL;
	return gpu_options_check_map(&line->settings, why);
}

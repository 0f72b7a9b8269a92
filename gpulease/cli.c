#include <errno.h>
#include <limits.h>
#include <strings.h>

#include "cli_table.h"
#include "parse.h"

static const struct command_line DEFAULTS = {
	.settings = {
		.verb = VERB_RUN,
		.gpus = 1,
		.max_wait_ms = -1,
		.grace_ms = 10 * 1000,
		.history_count = 20,
		.until_ms = INT64_MAX,
		.warn_ms = 60 * 1000,
		.max_requeues = UINT_MAX,
		.done_status = -1,
	},
};

static const struct option_use *use_of(
	const struct options_result *result, const struct option_def *def)
{
	return &result->use[def - cli_options];
}

/* The first row at @offset that was given, spelled as it was; "" where none was. */
static struct option_spelling spell_given(
	const struct options_result *result, size_t offset)
{
	for (const struct option_def *def = cli_options; def->kind; def++)
		if (def->offset == offset && use_of(result, def)->times &&
			def->kind != OPTION_NOTHING)
			return option_spell(def, use_of(result, def)->by_letter);
	return (struct option_spelling){ .text = "" };
}

#define SPELL(result, field) \
	spell_given(result, offsetof(struct command_line, field)).text

/* --- what goes together ------------------------------------------------------------ */

/* "--pause or --resume": the verbs that @option goes with. */
static void list_verbs(const struct option_def *option, struct text *out)
{
	const struct option_def *last = NULL;

	for (const struct option_def *def = cli_options; def->kind; def++) {
		if (def->kind != OPTION_VERB || !(option->verbs & def->verbs))
			continue;
		if (last)
			text_addf(out, "%s--%s", out->used ? ", " : "", last->name);
		last = def;
	}
	if (last)
		text_addf(out, "%s--%s", out->used ? " or " : "", last->name);
}

/* Every option that was given has a meaning for the verb. */
static int check_verb(
	const struct options_result *result, enum verb verb, struct why *why)
{
	for (const struct option_def *def = cli_options; def->kind; def++) {
		const struct option_use *use = use_of(result, def);
		struct option_spelling spelled = option_spell(def, use->by_letter);
		char list[128];
		struct text verbs = TEXT_ON(list);

		if (!use->times || def->verbs & 1u << verb)
			continue;
		list_verbs(def, &verbs);
		if (verb == VERB_RUN)
			why_set(why, "%s goes only with %s", spelled.text, list);
		else
			why_set(why, "--%s and %s do not go together", result->verb->name,
				spelled.text);
		return -EINVAL;
	}
	return 0;
}

static int check_pairs(const struct command_line *line, struct why *why)
{
	const struct settings *s = &line->settings;

	if (s->verbose && s->quiet) {
		why_set(why, "-v and -Q exclude each other; give one");
		return -EINVAL;
	}
	if (s->immediate && s->max_wait_ms >= 0) {
		why_set(why, "--immediate and --max-wait exclude each other; give one");
		return -EINVAL;
	}
	if (s->singleton && !s->name) {
		why_set(why, "--singleton needs --name: it waits for jobs of that name");
		return -EINVAL;
	}
	/* what is cut off tells no jobs apart */
	if (s->singleton && strlen(s->name) >= NAME_SIZE_MAX) {
		why_set(why,
			"--singleton: '%s' has %zu bytes, and jobs are told apart by the "
			"first %d of their names; shorten it",
			quote(s->name).text, strlen(s->name), NAME_SIZE_MAX - 1);
		return -EINVAL;
	}
	return settle_care(s, why);
}

/* --- GPUs and tasks ---------------------------------------------------------------- */

static size_t wish_offset(int source)
{
	return offsetof(struct command_line, gpus) +
	       (size_t)source * sizeof(struct gpu_wish);
}

/* All of srun's GPU options that were given say the same; *@ret is the first, or NULL. */
static int agree_on_gpus(const struct command_line *line,
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
				spell_given(result, wish_offset(first)).text,
				spell_given(result, wish_offset(i)).text);
			return -EINVAL;
		}
	}
	*ret_source = first;
	return 0;
}

/* @text of the option @spelled is srun's number of tasks. */
static int check_tasks(
	const char *spelled, const char *text, const char *instead, struct why *why)
{
	struct why reason = WHY_NONE;
	uint64_t tasks;

	if (parse_u64(text, UINT32_MAX, &tasks, &reason) < 0) {
		why_set(why, "%s: %s", spelled, reason.text);
		return -EINVAL;
	}
	if (tasks == 1)
		return 0;
	why_set(why, "%s: gpulease starts one process, not %llu tasks; %s", spelled,
		(unsigned long long)tasks, instead);
	return -EINVAL;
}

/* What one of srun's GPU options, @spelled so, asks for. */
static int take_wish(struct settings *s, const struct gpu_wish *wish, const char *spelled,
	struct why *why)
{
	if (wish->model[0] && s->model[0] && strcasecmp(wish->model, s->model) != 0) {
		why_set(why, "%s asks for '%s' and --model for '%s'; give one", spelled,
			quote(wish->model).text, quote(s->model).text);
		return -EINVAL;
	}
	if (wish->model[0])
		memcpy(s->model, wish->model, sizeof(s->model));
	s->gpus = wish->count;
	s->share_percent = wish->share_percent;
	s->gpus_given = true;
	return 0;
}

/*
 * -n is the number of GPUs, as long as no GPU option of srun's says that the line was
 * written for srun, where it is the number of tasks.
 */
static int settle_gpus(struct command_line *line, const struct options_result *result,
	struct option_spelling *ret_spelled, struct why *why)
{
	static const char alone[] =
		"with a GPU option beside it -n counts tasks: leave it out and let the "
		"command start its processes, as torchrun does";
	static const char ntasks[] = "write -n for GPUs, and let the command start its "
				     "processes, as torchrun does";
	struct settings *s = &line->settings;
	struct why reason = WHY_NONE;
	int source;

	*ret_spelled = (struct option_spelling){ .text = "-n" };
	if (agree_on_gpus(line, result, &source, why) < 0)
		return -EINVAL;
	if (line->tasks && check_tasks("--ntasks", line->tasks, ntasks, why) < 0)
		return -EINVAL;
	if (source >= 0) {
		*ret_spelled = spell_given(result, wish_offset(source));
		return line->n && check_tasks("-n", line->n, alone, why) < 0
			       ? -EINVAL
			       : take_wish(
					 s, &line->gpus[source], ret_spelled->text, why);
	}
	if (!line->n)
		return 0;
	s->gpus_given = true;
	if (parse_gpu_count(line->n, &s->gpus, &s->share_percent, &reason) == 0)
		return 0;
	why_set(why, "-n: %s", reason.text);
	return -EINVAL;
}

/* --- commands and operands --------------------------------------------------------- */

int check_operands(const struct settings *s, unsigned count, const char *verb,
	enum operand_kind kind, struct why *why)
{
	struct operand_walk walk = OPERAND_WALK(s->operands, count, kind);
	struct why reason = WHY_NONE;
	struct operand operand;
	int r;

	if (!count) {
		why_set(why, "--%s wants %s", verb,
			kind == OPERAND_JOB
				? "the id of a job; --queue and --status show them"
				: "a GPU: its index or UUID; --status shows them");
		return -EINVAL;
	}
	do {
		r = operand_next(&walk, &operand, &reason);
	} while (r == 0);
	if (r == OPERAND_DONE)
		return 0;
	why_set(why, "--%s: %s", verb, reason.text);
	return r;
}

static int settle_operands(
	struct settings *s, const struct options_result *result, struct why *why)
{
	const char *verb = result->verb->name;
	unsigned most = s->verb == VERB_HISTORY || s->verb == VERB_DOCKER_ARGS ||
					s->verb == VERB_ENTER_SESSION
				? 1
				: 0;
	int r;

	s->operands = result->rest;
	s->operand_count = result->rest_count;
	if (s->verb == VERB_CANCEL)
		return check_operands(s, s->operand_count, verb, OPERAND_JOB, why);
	if (s->verb == VERB_PAUSE || s->verb == VERB_RESUME)
		return check_operands(s, s->operand_count, verb, OPERAND_GPU, why);
	r = settle_job_operands(s, verb, why);
	if (r == 0)
		r = settle_batch(s, verb, why);
	if (r != 0)
		return r < 0 ? r : 0;
	if (s->operand_count > most) {
		why_set(why, "--%s takes no command or operand, not '%s'", verb,
			quote(s->operands[most]).text);
		return -EINVAL;
	}
	if (!s->operand_count || s->verb == VERB_ENTER_SESSION)
		return 0;
	s->operand_count = 0;
	if (s->verb == VERB_DOCKER_ARGS)
		return read_engine(s->operands[0], &s->podman, why);
	return read_history(s->operands[0], &s->history_count, why);
}

static int settle_command(
	struct settings *s, const struct options_result *result, struct why *why)
{
	if (s->lease_only || s->shell)
		return refuse_command(
			s, result->rest_count ? result->rest[0] : NULL, why);
	if (!result->rest_count) {
		/* srun's --wait takes a number, too */
		why_set(why, "no command given; write gpulease [options] command, or %s",
			use_of(result, options_find(cli_options, "wait", 4))->times
				? "--wait-for ID"
				: "--help");
		return -EINVAL;
	}
	s->command = result->rest;
	return 0;
}

/* The jobs that this one comes after: their ids, but in a line for a jobs file. */
static int settle_after(struct command_line *line, struct why *why)
{
	static const char *const names[] = { "--after", "--after-ok" };
	const char *const given[] = { line->after, line->after_ok };
	char *const ids[] = { line->settings.after_ids, line->settings.after_ok_ids };

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		struct why reason = WHY_NONE;

		if (!given[i] || line->settings.verb != VERB_RUN ||
			read_after(given[i], ids[i], &reason) == 0)
			continue;
		why_set(why, "%s: %s", names[i], reason.text);
		return -EINVAL;
	}
	return 0;
}

/* An operand of --follow, which is no verb beside --submit. */
static int check_stray(const struct options_result *result, struct why *why)
{
	if (!result->stray)
		return 0;
	why_set(why, "'%s' is no option; the command comes last",
		quote(result->stray).text);
	return -EINVAL;
}

static void list_ignored(struct settings *s, const struct options_result *result)
{
	for (const struct option_def *def = cli_options; def->kind; def++)
		if (def->group == GROUP_IGNORED && use_of(result, def)->times &&
			s->ignored_count < IGNORED_MAX)
			s->ignored[s->ignored_count++] = def->name;
}

int cli_parse(char **argv, struct settings *ret, struct why *why)
{
	struct command_line line = DEFAULTS;
	struct settings *s = &line.settings;
	struct options_result result;
	struct option_spelling spelled;
	int r = options_parse(cli_options, argv, &line, &result, why);

	if (r < 0)
		return r;
	s->verb = result.verb ? (enum verb)result.verb->value : VERB_RUN;
	/* `--submit --follow` is no verb */
	if (s->verb == VERB_FOLLOW && s->submit) {
		result.use[result.verb - cli_options].times = 0;
		result.verb = NULL;
		s->verb = VERB_RUN;
		s->follow = true;
	}
	s->grace_given = *SPELL(&result, settings.grace_ms);
	s->limit_given = *SPELL(&result, settings.limit_ms);
	s->retries_given = *SPELL(&result, settings.retries);
	s->oom_retries_given = *SPELL(&result, settings.oom_retries);
	/* --help and its like ask for nothing else, whatever stands beside them */
	if (!result.verb || result.verb->kind == OPTION_VERB) {
		r = check_verb(&result, s->verb, why);
		if (r == 0)
			r = check_stray(&result, why);
		if (r == 0)
			r = settle_after(&line, why);
		if (r == 0)
			r = check_pairs(&line, why);
		if (r == 0)
			r = settle_gpus(&line, &result, &spelled, why);
		if (r == 0)
			r = settle_sharing(s, spelled.text, why);
		if (r == 0)
			r = result.verb ? settle_operands(s, &result, why)
					: settle_command(s, &result, why);
	}
	if (r < 0)
		return r;
	list_ignored(s, &result);
	*ret = line.settings;
	ret->after = ret->after_ids[0] ? ret->after_ids : NULL;
	ret->after_ok = ret->after_ok_ids[0] ? ret->after_ok_ids : NULL;
	if (s->verb == VERB_ADD) {
		ret->after = line.after;
		ret->after_ok = line.after_ok;
	}
	return 0;
}

#include <errno.h>
#include <limits.h>

#include "command_line.h"
#include "gpu_options.h"
#include "option_conflicts.h"
#include "option_table.h"
#include "option_values.h"
#include "parse.h"
#include "process_lease.h"
#include "verb_operands.h"

#include "no_messages.h" /* the last one */

/* What a command line without options asks for. */
static const struct command_line DEFAULTS = {
	.settings = {
		.verb = { .kind = VERB_RUN, .history_count = 20, .until_ms = INT64_MAX,
			.for_ms = -1 },
		.request = { .gpus = 1, .max_wait_ms = -1 },
		.tasks = { .count = 1 },
		.look = { .interval_ms = 2000 },
		.care = {
			.grace_ms = GRACE_DEFAULT_MS,
			.warn_ms = 60 * 1000,
			.max_requeues = UINT_MAX,
			.done_status = -1,
		},
	},
};

#define IS_GIVEN(result, field)                                                       \
	(*option_given_spelling(result, offsetof(struct command_line, field)).text != \
		'\0')

static void command_line_note_given(
	struct run_care *care, const struct options_result *result)
{
	care->grace_given = IS_GIVEN(result, settings.care.grace_ms);
	care->limit_given = IS_GIVEN(result, settings.care.limit_ms);
	care->retries_given = IS_GIVEN(result, settings.care.retries);
	care->oom_retries_given = IS_GIVEN(result, settings.care.oom_retries);
}

/* Sets the command to run; without --lease-only and --shell there must be one. */
static int command_line_set_command(
	struct settings *s, const struct options_result *result, struct why *why)
{
	static char *no_command[] = { NULL };

	if (s->request.lease_only || s->request.shell) {
		s->environment.command = no_command;
		if (!result->rest_count)
			return 0;
		why_set(why, "%s takes no command, not '%s'",
			s->request.shell ? "--shell" : "--lease-only",
			quote(result->rest[0]).text);
		return -EINVAL;
	}
	if (!result->rest_count) {
		const struct option_def *wait = options_find(option_table, "wait", 4);

		/* srun's --wait takes seconds; its user may have meant --wait-for and an id */
		why_set(why, "no command given; write gpulease [options] command, or %s",
			option_use_of(result, wait)->times ? "--wait-for ID" : "--help");
		return -EINVAL;
	}
	s->environment.command = result->rest;
	return 0;
}

/*
 * Reads the ids of --after and --after-ok.  With --add they stay as given, because a line of a
 * jobs file may name other lines there.
 */
static int command_line_read_after(struct command_line *line, struct why *why)
{
	static const char *const names[] = { "--after", "--after-ok" };
	const char *const given[] = { line->after, line->after_ok };
	char *const ids[] = { line->settings.request.after_ids,
		line->settings.request.after_ok_ids };

	if (line->after) /* it replaces the list of --dependency */
		line->settings.request.after_start = 0;
	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		struct why reason = WHY_NONE;

		if (!given[i] || line->settings.verb.kind != VERB_RUN ||
			read_after(given[i], ids[i], &reason) == 0)
			continue;
		why_set(why, "%s: %s", names[i], reason.text);
		return -EINVAL;
	}
	return 0;
}

/*
 * Lists the given options that have no effect here, with the notes on them: options of srun, and
 * what chooses GPUs for a job that gets none.  Lines of a jobs file may have another number.
 */
static void command_line_list_ignored(
	struct settings *s, const struct options_result *result)
{
	static const char no_gpu[] = "no GPU is leased";
	size_t models = offsetof(struct command_line, settings.request.models);
	bool has_gpus = s->request.gpus || s->verb.kind == VERB_BATCH;

	for (const struct option_def *def = option_table; def->kind; def++) {
		const char *note = def->kind == OPTION_NOTED ? def->help : NULL;

		if (def->group == GROUP_CHOOSE && !has_gpus)
			note = no_gpu;
		else if (def->offset == models && s->request.need_given)
			note = "-n, --gpus or --vram says what a job needs";
		else if (def->group != GROUP_IGNORED)
			continue;
		if (option_use_of(result, def)->times && s->ignored_count < IGNORED_MAX)
			s->ignored[s->ignored_count++] =
				(struct ignored_option){ def->name, note };
	}
}

/* Checks what the options mean together, and sets what follows from it.  Returns 0 or -EINVAL. */
static int command_line_settle(
	struct command_line *line, const struct options_result *result, struct why *why)
{
	int r = option_conflicts_check_verb(result, line->settings.verb.kind, why);

	if (r == 0)
		r = command_line_read_after(line, why);
	if (r == 0)
		r = option_conflicts_check_pairs(result, &line->settings, why);
	if (r == 0)
		r = gpu_options_settle(line, result, why);
	if (r < 0)
		return r;
	/* a session shows what a job in the background prints */
	line->settings.environment.submit |= line->settings.environment.screen;
	return result->verb ? verb_operands_settle(&line->settings, result, why)
			    : command_line_set_command(&line->settings, result, why);
}

/* Points at the copies in @s itself, which is why this comes after the last copy of it. */
static void command_line_point_at_copies(
	struct settings *s, const struct command_line *line)
{
	struct run_request *request = &s->request;
	bool is_add = s->verb.kind == VERB_ADD;

	request->after = request->after_ids[0] ? request->after_ids : NULL;
	request->after_ok = request->after_ok_ids[0] ? request->after_ok_ids : NULL;
	if (is_add) {
		request->after = line->after;
		request->after_ok = line->after_ok;
	}
	if (s->tasks.bind_text[0])
		s->tasks.bind = s->tasks.bind_text;
}

int command_line_parse(char **argv, struct settings *ret, struct why *why)
{
	struct command_line line = DEFAULTS;
	struct settings *s = &line.settings;
	struct options_result result;
	int r;

	option_table_make();
	r = options_parse(option_table, argv, &line, &result, why);
	if (r < 0)
		return r;
	line.is_srun = strcmp(text_base_name(argv[0]), "srun") == 0;
	line.is_in_lease = getenv(PROCESS_LEASE_TOKEN_VARIABLE) != NULL;
	s->verb.kind = result.verb ? (enum verb)result.verb->value : VERB_RUN;
	/* `--submit --follow` runs a command and follows its log: --follow is no verb then */
	if (s->verb.kind == VERB_FOLLOW && s->environment.submit) {
		result.use[result.verb - option_table].times = 0;
		result.verb = NULL;
		s->verb.kind = VERB_RUN;
		s->environment.follow = true;
	}
	command_line_note_given(&s->care, &result);
	/* --help and --version ignore everything beside them, also what is wrong */
	if (!result.verb || result.verb->kind == OPTION_VERB) {
		r = command_line_settle(&line, &result, why);
		if (r < 0)
			return r;
	} else {
		s->look.hosts = NULL;
	}
	command_line_list_ignored(s, &result);
	*ret = line.settings;
	command_line_point_at_copies(ret, &line);
	return 0;
}

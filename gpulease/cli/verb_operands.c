#include <errno.h>

#include "operands.h"
#include "option_table.h"
#include "option_values.h"
#include "parse.h"
#include "signals.h"
#include "verb_operands.h"

#include "no_messages.h" /* the last one */

/*
 * Checks that there are operands, and that the first @count can be read as jobs or GPUs, as @kind
 * says.  @verb is for the message.
 */
static int verb_operands_check(char **operands, unsigned count, const char *verb,
	enum operand_kind kind, struct why *why)
{
	struct operand_walk walk = OPERAND_WALK(operands, count, kind);
	struct why reason = WHY_NONE;
	struct operand operand;
	int r;

	if (!count) {
		why_set(why, "--%s needs %s", verb,
			kind == OPERAND_GPU
				? "a GPU: its index or UUID; --status shows them"
				: "the id of a job; --queue and --status show them");
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

static int verb_operands_check_all(const struct verb_settings *verb, const char *name,
	enum operand_kind kind, struct why *why)
{
	return verb_operands_check(verb->operands, verb->operand_count, name, kind, why);
}

/* Checks that there are at most @most operands. */
static int verb_operands_check_most(const struct verb_settings *verb, const char *name,
	unsigned most, struct why *why)
{
	if (verb->operand_count <= most)
		return 0;
	why_set(why, "--%s takes no command or operand, not '%s'%s", name,
		quote(verb->operands[most]).text,
		verb->kind == VERB_QUEUE ? "; --status ID shows one job" : "");
	return -EINVAL;
}

/* --- jobs ---------------------------------------------------------------------------- */

/* ID SIGNAL, for --signal-job. */
static int verb_operands_set_signal(
	struct verb_settings *verb, const char *name, struct why *why)
{
	unsigned count = verb->operand_count;

	verb->signal = count ? signal_number(verb->operands[count - 1]) : 0;
	if (count == 2 && verb->signal)
		return verb_operands_check(verb->operands, 1, name, OPERAND_JOB, why);
	if (count == 2)
		why_set(why, "--signal-job: there is no signal '%s'",
			quote(verb->operands[1]).text);
	else
		why_set(why, "--signal-job needs the id of a job and a signal: "
			     "--signal-job 12 USR1");
	return -EINVAL;
}

/* ID... DUR, for --extend.  A number without a unit is refused: --time and others differ. */
static int verb_operands_set_span(
	struct verb_settings *verb, const char *name, struct why *why)
{
	unsigned count = verb->operand_count;
	const char *span = count > 1 ? verb->operands[count - 1] : "";

	if (span[strspn(span, "0123456789.")] &&
		parse_time_limit_ms(span, &verb->extend_ms, NULL) == 0 && verb->extend_ms)
		return verb_operands_check(
			verb->operands, count - 1, name, OPERAND_JOB, why);
	why_set(why, "--extend needs the id of a job and a time: --extend 12 2h, 90m or "
		     "1:30:00");
	return -EINVAL;
}

/* ID N, for --set-priority. */
static int verb_operands_set_priority(
	struct settings *s, const char *name, struct why *why)
{
	struct why reason = WHY_NONE;

	if (s->verb.operand_count != 2) {
		why_set(why, "--set-priority needs the id of a job and a priority: "
			     "--set-priority 12 5");
		return -EINVAL;
	}
	if (read_priority(s->verb.operands[1], &s->request, &reason) < 0) {
		why_wrap(why, &reason, "--%s: ", name);
		return -EINVAL;
	}
	return verb_operands_check(s->verb.operands, 1, name, OPERAND_JOB, why);
}

/* One ID, for --log, --follow, --attach and --sample. */
static int verb_operands_check_one_job(
	const struct verb_settings *verb, const char *name, struct why *why)
{
	if (verb->operand_count > 1) {
		why_set(why, "--%s takes one job, not '%s' as well", name,
			quote(verb->operands[1]).text);
		return -EINVAL;
	}
	return verb_operands_check_all(verb, name,
		verb->kind == VERB_LOG || verb->kind == VERB_FOLLOW ? OPERAND_NAME
								    : OPERAND_JOB,
		why);
}

/* --- jobs files ---------------------------------------------------------------------- */

/* FILE COMMAND, for --add: the words after FILE are the command of the new line. */
static int verb_operands_set_added(struct settings *s, struct why *why)
{
	if (strcmp(s->verb.operands[0], "-") == 0) {
		why_set(why,
			"--add needs a file, not '-'; for one of that name write ./-");
		return -EINVAL;
	}
	if (s->verb.operand_count > 1) {
		s->environment.command = s->verb.operands + 1;
		return 0;
	}
	why_set(why, "--add needs a command: --add %s -- python train.py",
		quote(s->verb.operands[0]).text);
	return -EINVAL;
}

/* FILE, for --batch and --add. */
static int verb_operands_check_file(struct settings *s, const char *name, struct why *why)
{
	if (!s->verb.operand_count || !s->verb.operands[0][0]) {
		why_set(why, "--%s needs the name of a jobs file", name);
		return -EINVAL;
	}
	if (s->verb.kind == VERB_ADD)
		return verb_operands_set_added(s, why);
	if (s->batch.watch && strcmp(s->verb.operands[0], "-") == 0) {
		why_set(why,
			"standard input is read to its end; leave out --watch, or give "
			"a file to edit");
		return -EINVAL;
	}
	if (s->verb.operand_count > 1) {
		why_set(why, "--batch takes one file, not '%s' as well",
			quote(s->verb.operands[1]).text);
		return -EINVAL;
	}
	return 0;
}

/* --- what is not a list -------------------------------------------------------------- */

/* `docker` or `podman`, for --docker-args. */
static int verb_operands_read_engine(const char *value, bool *ret_podman, struct why *why)
{
	*ret_podman = strcmp(value, "podman") == 0;
	if (*ret_podman || strcmp(value, "docker") == 0)
		return 0;
	why_set(why, "--docker-args: '%s' is neither docker nor podman",
		quote(value).text);
	return -EINVAL;
}

/* Reads an operand that may be left out, for --history and --docker-args. */
static int verb_operands_read_optional(
	struct verb_settings *verb, const struct options_result *result, struct why *why)
{
	const size_t count = offsetof(struct command_line, settings.verb.history_count);
	const char *name = result->verb->name;
	struct why reason = WHY_NONE;
	int r = verb_operands_check_most(verb, name, 1, why);

	if (r != 0 || !verb->operand_count)
		return r;
	verb->operand_count = 0;
	if (verb->kind == VERB_DOCKER_ARGS)
		return verb_operands_read_engine(verb->operands[0], &verb->podman, why);
	if (option_given_spelling(result, count).text[0])
		why_set(&reason, "--last gives the number, too; give it once");
	else if (read_last(verb->operands[0], &verb->history_count, &reason) == 0)
		return 0;
	why_set(why, "--history: %s", reason.text);
	return -EINVAL;
}

/* `look`, for --top. */
static int verb_operands_read_look(struct settings *s, struct why *why)
{
	struct verb_settings *verb = &s->verb;
	int r = verb_operands_check_most(verb, "top", 1, why);

	if (r != 0 || !verb->operand_count)
		return r;
	s->look.is_look = strcmp(verb->operands[0], "look") == 0;
	if (s->look.is_look)
		return 0;
	why_set(why, "--top: '%s' is not look", quote(verb->operands[0]).text);
	return -EINVAL;
}

/* TEXT, for --note. */
static int verb_operands_check_text(const struct verb_settings *verb, struct why *why)
{
	if (verb->operand_count == 1)
		return 0;
	why_set(why, "--note needs one text: --note \"epoch 5/100\"; \"\" removes it");
	return -EINVAL;
}

int verb_operands_settle(
	struct settings *s, const struct options_result *result, struct why *why)
{
	struct verb_settings *verb = &s->verb;
	const char *name = result->verb->name;

	verb->operands = result->rest;
	verb->operand_count = result->rest_count;
	switch (verb->kind) {
	case VERB_WAIT_FOR:
		return verb_operands_check_all(verb, name, OPERAND_NAME, why);
	case VERB_STATUS:
		return verb->operand_count
			       ? verb_operands_check_all(verb, name, OPERAND_JOB, why)
			       : 0;
	case VERB_CANCEL:
		return verb_operands_check_all(verb, name, OPERAND_JOBS, why);
	case VERB_NOTE:
		return verb_operands_check_text(verb, why);
	case VERB_PAUSE:
	case VERB_RESUME:
		return verb_operands_check_all(verb, name, OPERAND_GPU, why);
	case VERB_RELEASE:
	case VERB_REQUEUE:
		return verb_operands_check_all(verb, name, OPERAND_JOB, why);
	case VERB_EXTEND:
		return verb_operands_set_span(verb, name, why);
	case VERB_SIGNAL_JOB:
		return verb_operands_set_signal(verb, name, why);
	case VERB_SET_PRIORITY:
		return verb_operands_set_priority(s, name, why);
	case VERB_LOG:
	case VERB_FOLLOW:
	case VERB_ATTACH:
	case VERB_SAMPLE:
		return verb_operands_check_one_job(verb, name, why);
	case VERB_BATCH:
	case VERB_ADD:
		return verb_operands_check_file(s, name, why);
	case VERB_HISTORY:
	case VERB_DOCKER_ARGS:
		return verb_operands_read_optional(verb, result, why);
	case VERB_COMPLETE:
		return 0;
	case VERB_TOP:
		return verb_operands_read_look(s, why);
	case VERB_METRICS:
		return verb_operands_check_most(verb, name, 1, why);
	case VERB_ENTER_SESSION:
		return verb_operands_check_most(verb, name, 1, why);
	default:
		return verb_operands_check_most(verb, name, 0, why);
	}
}

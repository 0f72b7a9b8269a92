#include <errno.h>
#include <limits.h>

#include "option_conflicts.h"
#include "option_table.h"
#include "parse.h"

#include "no_messages.h" /* the last one */

/* Writes the verbs that @option goes with: "--pause or --resume". */
static void option_conflicts_list_verbs(const struct option_def *option, struct text *out)
{
	const struct option_def *last = NULL;

	/* one verb late, to know whether a comma or an "or" comes before it */
	for (const struct option_def *def = option_table; def->kind; def++) {
		if (def->kind != OPTION_VERB || !(option->verbs & def->verbs))
			continue;
		if (last)
			text_addf(out, "%s--%s", out->used ? ", " : "", last->name);
		last = def;
	}
	if (last)
		text_addf(out, "%s--%s", out->used ? " or " : "", last->name);
}

int option_conflicts_check_verb(
	const struct options_result *result, enum verb verb, struct why *why)
{
	for (const struct option_def *def = option_table; def->kind; def++) {
		const struct option_use *use = option_use_of(result, def);
		struct option_spelling spelled = option_spell(def, use->by_letter);
		char list[128];
		struct text verbs = TEXT_ON(list);

		if (!use->times || def->verbs & VERB_BIT(verb))
			continue;
		option_conflicts_list_verbs(def, &verbs);
		if (verb == VERB_RUN)
			why_set(why, "%s goes only with %s", spelled.text, list);
		else
			why_set(why, "--%s and %s do not go together", result->verb->name,
				spelled.text);
		return -EINVAL;
	}
	/* `--follow 12 --submit cmd`: --submit has made --follow an option, so 12 is left over */
	if (result->stray) {
		why_set(why, "'%s' is not an option; the command comes last",
			quote(result->stray).text);
		return -EINVAL;
	}
	return 0;
}

/* --- pairs of options --------------------------------------------------------------- */

/* Long names of options of which one would have no effect beside the other, or contradicts it. */
static const struct {
	char first[12], second[12];
} excluding[] = {
	{ "verbose", "quiet" },
	{ "immediate", "max-wait" },
	{ "immediate", "hold" },
	{ "submit", "screen" },
	{ "submit", "dry-run" },
	{ "submit", "pty" },
	{ "screen", "dry-run" },
	{ "lease-only", "shell" },
	{ "gpu-ids", "prefer-gpus" },
	{ "exclusive", "margin" },
	{ "exclusive", "overlap" },
	{ "submit", "jobid" },
	{ "keep-going", "fail-fast" },
	{ "json", "csv" },
};

/* Sets *@ret to the option with the long name @name as the user spelled it, if it was given. */
static bool option_conflicts_is_given(const struct options_result *result,
	const char *name, struct option_spelling *ret)
{
	const struct option_def *def = options_find(option_table, name, strlen(name));
	const struct option_use *use = option_use_of(result, def);

	*ret = option_spell(def, use->by_letter);
	return use->times;
}

static int option_conflicts_check_excluding(
	const struct options_result *result, struct why *why)
{
	struct option_spelling first, second;

	for (size_t i = 0; i < ARRAY_SIZE(excluding); i++) {
		if (!option_conflicts_is_given(result, excluding[i].first, &first) ||
			!option_conflicts_is_given(result, excluding[i].second, &second))
			continue;
		why_set(why, "%s and %s exclude each other; give one", first.text,
			second.text);
		return -EINVAL;
	}
	return 0;
}

/* A rule about values: @is_broken says that the command line breaks it, @message what to do. */
struct option_rule {
	bool is_broken;
	const char *message;
};

static int option_conflicts_apply(
	const struct option_rule *rules, size_t count, struct why *why)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i].is_broken) {
			why_set(why, "%s", rules[i].message);
			return -EINVAL;
		}
	return 0;
}

/* Whether the job may go back into the queue after an attempt. */
static bool option_conflicts_has_attempts(const struct run_care *care)
{
	return care->preemptible || care->on_limit == ON_LIMIT_REQUEUE || care->retries ||
	       care->oom_retries;
}

/* Whether an option is given for a command: how it starts, or where its output goes. */
static bool option_conflicts_has_command_options(const struct settings *s)
{
	const struct run_environment *environment = &s->environment;

	return environment->setup || environment->conda || environment->inject ||
	       environment->inject_style != INJECT_LOCAL || environment->chdir ||
	       environment->export_list || environment->bind == BIND_YES ||
	       s->output.out || s->output.err || s->output.in;
}

/* Whether an option chooses GPUs or waits for jobs. */
static bool option_conflicts_has_choice(const struct run_request *request)
{
	return request->gpu_ids || request->allow || request->except || request->prefer ||
	       request->model[0] || request->min_vram_mib || has_own_usage(request) ||
	       request->after_ids[0] || request->after_ok_ids[0] || request->singleton ||
	       request->begin_ms || request->hold;
}

/* Whether @command has numbers of GPUs in its arguments; see inject.h. */
static bool option_conflicts_has_gpus(char *const *command)
{
	while (*command)
		if (strstr(*command++, "{gpus}"))
			return true;
	return false;
}

static int option_conflicts_check_name(const struct run_request *request, struct why *why)
{
	if (request->singleton && !request->name)
		why_set(why, "--singleton needs --name: it waits for jobs of that name");
	else if (request->name && strlen(request->name) >= NAME_SIZE_MAX)
		why_set(why, "--name: '%s' has %zu bytes, and a name has %d at most",
			quote(request->name).text, strlen(request->name),
			NAME_SIZE_MAX - 1);
	else
		return 0;
	return -EINVAL;
}

/* The rules for running @command, or leasing without one. */
static int option_conflicts_check_run(
	const struct settings *s, char *const *command, struct why *why)
{
	const struct run_request *request = &s->request;
	const char *inject = s->environment.inject;
	bool no_command = request->lease_only || request->shell;
	bool adopts = request->lease_only && request->adopt_pid;
	const struct option_rule rules[] = {
		{ request->adopt_pid && !no_command,
			"--pid goes only with --lease-only and --shell" },
		{ no_command && is_supervision_wanted(s),
			"there is no command to supervise; leave out --submit, --retries "
			"and the like" },
		{ no_command && option_conflicts_has_command_options(s),
			"there is no command to set up; leave out --setup, -D, -o, --bind "
			"and the like" },
		{ inject && !inject[strspn(inject, "=")],
			"--inject: its value is not an option; write --inject=--cuda" },
		{ s->environment.inject_style != INJECT_LOCAL && !inject &&
				!option_conflicts_has_gpus(command),
			"--inject-style is for the numbers of --inject and {gpus}, and "
			"neither is given" },
		{ s->care.max_requeues != UINT_MAX &&
				s->care.on_limit != ON_LIMIT_REQUEUE,
			"--max-requeues goes only with --on-limit requeue" },
		{ s->care.runs_once && (s->care.preemptible ||
					       s->care.on_limit == ON_LIMIT_REQUEUE),
			"--no-requeue excludes --preemptible and --on-limit requeue" },
		{ s->care.done_status >= 0 && !option_conflicts_has_attempts(&s->care),
			"--done-status goes only with --preemptible, --on-limit requeue "
			"and --retries" },
		{ s->output.json && !request->dry_run,
			"--json goes only with --dry-run, --batch and reports such as "
			"--status, --queue and --history" },
		{ adopts && s->environment.notify,
			"--lease-only --pid and --notify exclude each other; give one" },
		{ adopts && request->dry_run,
			"--lease-only --pid and --dry-run exclude each other; give one" },
		{ adopts && option_conflicts_has_choice(request),
			"--pid leases the GPUs that the process uses already, at once; "
			"leave out options that choose GPUs or wait for jobs" },
		{ request->thresholds[OWN_TOLERANCE] && !is_supervision_wanted(s),
			"--tolerance is for a job that is watched; add --report" },
	};

	return option_conflicts_apply(rules, ARRAY_SIZE(rules), why);
}

int option_conflicts_check_pairs(
	const struct options_result *result, const struct settings *s, struct why *why)
{
	int r = option_conflicts_check_excluding(result, why);

	if (r == 0)
		r = option_conflicts_check_name(&s->request, why);
	if (r == 0 && s->verb.kind == VERB_RUN)
		r = option_conflicts_check_run(s, result->rest, why);
	return r;
}

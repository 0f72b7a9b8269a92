#include <errno.h>
#include <limits.h>

#include "option_conflicts.h"
#include "option_table.h"
#include "parse.h"

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

		if (!use->times || def->verbs & 1u << verb)
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

/* One rule: @is_broken says that the command line breaks it, @message what to do. */
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

/* The rules for verbs and commands alike. */
static int option_conflicts_check_common(const struct settings *s, struct why *why)
{
	const struct option_rule rules[] = {
		{ s->output.verbose && s->output.quiet,
			"-v and -Q exclude each other; give one" },
		{ s->request.immediate && s->request.max_wait_ms >= 0,
			"--immediate and --max-wait exclude each other; give one" },
		{ s->request.singleton && !s->request.name,
			"--singleton needs --name: it waits for jobs of that name" },
	};
	int r = option_conflicts_apply(rules, ARRAY_SIZE(rules), why);

	/* a record keeps NAME_SIZE_MAX - 1 bytes: two longer names could look the same */
	if (r == 0 && s->request.singleton && strlen(s->request.name) >= NAME_SIZE_MAX) {
		why_set(why,
			"--singleton: '%s' has %zu bytes, and jobs are told apart by the "
			"first %d of their names; shorten it",
			quote(s->request.name).text, strlen(s->request.name),
			NAME_SIZE_MAX - 1);
		return -EINVAL;
	}
	return r;
}

/* The rules for running a command, or leasing without one. */
static int option_conflicts_check_run(const struct settings *s, struct why *why)
{
	const struct run_request *request = &s->request;
	const struct run_environment *environment = &s->environment;
	const char *inject = environment->inject;
	bool no_command = request->lease_only || request->shell;
	const struct option_rule rules[] = {
		{ environment->submit && environment->screen,
			"--submit and --screen exclude each other; give one" },
		{ request->lease_only && request->shell,
			"--lease-only and --shell exclude each other; give one" },
		{ request->adopt_pid && !no_command,
			"--pid goes only with --lease-only and --shell" },
		{ no_command && is_supervision_wanted(s),
			"there is no command to supervise; leave out --submit, --retries "
			"and the like" },
		{ no_command && (environment->setup || environment->conda || inject),
			"there is no command to set up; leave out --setup, --conda and "
			"--inject" },
		{ inject && !inject[strspn(inject, "=")],
			"--inject: its value is not an option; write --inject=--cuda" },
		{ s->care.max_requeues != UINT_MAX &&
				s->care.on_limit != ON_LIMIT_REQUEUE,
			"--max-requeues goes only with --on-limit requeue" },
		{ s->care.done_status >= 0 && !option_conflicts_has_attempts(&s->care),
			"--done-status goes only with --preemptible, --on-limit requeue "
			"and --retries" },
		{ s->output.json && !request->dry_run,
			"--json goes only with --dry-run, --batch and reports such as "
			"--status, --queue and --history" },
		{ environment->submit && request->dry_run,
			"--submit and --dry-run exclude each other; give one" },
		{ environment->screen && request->dry_run,
			"--screen and --dry-run exclude each other; give one" },
		{ request->lease_only && request->adopt_pid && request->dry_run,
			"--lease-only --pid and --dry-run exclude each other; give one" },
		{ request->lease_only && request->adopt_pid && has_own_usage(request),
			"--lease-only --pid takes the GPUs that the process uses already; "
			"leave out --margin, --spike-buffer and --idle-threshold" },
		{ request->thresholds[OWN_TOLERANCE] && !is_supervision_wanted(s),
			"--tolerance is for a job that is watched; add --report" },
	};

	return option_conflicts_apply(rules, ARRAY_SIZE(rules), why);
}

int option_conflicts_check_pairs(const struct settings *s, struct why *why)
{
	int r = option_conflicts_check_common(s, why);

	if (r == 0 && s->verb.kind == VERB_RUN)
		r = option_conflicts_check_run(s, why);
	return r;
}

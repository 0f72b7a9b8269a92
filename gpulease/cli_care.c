/* What the command line says of jobs that are looked after, and of leases without a command. */
#include <limits.h>
#include <errno.h>
#include <strings.h>

#include "cli_table.h"
#include "parse.h"
#include "signals.h"

enum { TIMES_MAX = 1000000, STATUS_MAX = 255 };

bool care_is_wanted(const struct settings *s)
{
	return s->warn_signal || s->on_limit != ON_LIMIT_KILL || s->preemptible ||
	       s->retries || s->oom_retries || s->report || s->submit || s->screen;
}

/* --- values ------------------------------------------------------------------------ */

/* `SIG[@SECONDS]`; what srun may put before SIG says whom to send it to: all, for us. */
int read_warning(const char *value, void *at, struct why *why)
{
	struct settings *settings = at;
	const char *time = strchr(value, '@'), *colon = strchr(value, ':');
	char name[16];
	size_t size;
	int r;

	if (colon && (!time || colon < time))
		value = colon + 1;
	size = time ? (size_t)(time - value) : strlen(value);
	if (size < sizeof(name)) {
		memcpy(name, value, size);
		name[size] = '\0';
		settings->warn_signal = signal_number(name);
	}
	if (size >= sizeof(name) || !settings->warn_signal) {
		why_set(why, "there is no signal '%s'; write one like USR1@60",
			quote_bytes(value, size).text);
		return -EINVAL;
	}
	if (!time)
		return 0;
	r = parse_duration_ms(time + 1, &settings->warn_ms, why);
	return r < 0 ? -EINVAL : 0;
}

int read_on_limit(const char *value, void *at, struct why *why)
{
	enum on_limit *what = at;

	if (strcasecmp(value, "kill") == 0)
		*what = ON_LIMIT_KILL;
	else if (strcasecmp(value, "requeue") == 0)
		*what = ON_LIMIT_REQUEUE;
	else {
		why_set(why, "'%s' is neither kill nor requeue", quote(value).text);
		return -EINVAL;
	}
	return 0;
}

int read_status(const char *value, void *at, struct why *why)
{
	uint64_t status;

	if (parse_u64(value, STATUS_MAX, &status, why) < 0)
		return -EINVAL;
	*(int *)at = (int)status;
	return 0;
}

int read_times(const char *value, void *at, struct why *why)
{
	uint64_t times;

	if (parse_u64(value, TIMES_MAX, &times, why) < 0)
		return -EINVAL;
	*(unsigned *)at = (unsigned)times;
	return 0;
}

int read_style(const char *value, void *at, struct why *why)
{
	enum inject_style *style = at;

	if (strcasecmp(value, "local") == 0)
		*style = INJECT_LOCAL;
	else if (strcasecmp(value, "physical") == 0)
		*style = INJECT_PHYSICAL;
	else {
		why_set(why, "'%s' is neither local nor physical", quote(value).text);
		return -EINVAL;
	}
	return 0;
}

int read_pid(const char *value, void *at, struct why *why)
{
	uint64_t pid;

	if (parse_u64(value, INT32_MAX, &pid, why) < 0)
		return -EINVAL;
	if (pid < 2) {
		why_set(why, "'%s' is not the number of a process of yours",
			quote(value).text);
		return -EINVAL;
	}
	*(uint32_t *)at = (uint32_t)pid;
	return 0;
}

/* --- what goes together ------------------------------------------------------------ */

static int refuse(struct why *why, const char *text)
{
	why_set(why, "%s", text);
	return -EINVAL;
}

/* Whether the job can go back into the queue. */
static bool is_sent_back(const struct settings *s)
{
	return s->preemptible || s->on_limit == ON_LIMIT_REQUEUE || s->retries ||
	       s->oom_retries;
}

int settle_care(const struct settings *s, struct why *why)
{
	bool no_command = s->lease_only || s->shell;

	if (s->verb != VERB_RUN)
		return 0;
	if (s->submit && s->screen)
		return refuse(why, "--submit and --screen exclude each other; give one");
	if (s->lease_only && s->shell)
		return refuse(
			why, "--lease-only and --shell exclude each other; give one");
	if (s->adopt_pid && !no_command)
		return refuse(why, "--pid goes only with --lease-only and --shell");
	if (no_command && care_is_wanted(s))
		return refuse(why, "there is no command to be looked after; leave "
				   "--submit, --retries and the like out");
	if (no_command && (s->setup || s->conda || s->inject))
		return refuse(why, "there is no command to be set up; leave --setup, "
				   "--conda and --inject out");
	if (s->inject && !s->inject[strspn(s->inject, "=")])
		return refuse(
			why, "--inject: its value is no option; write --inject=--cuda");
	if (s->max_requeues != UINT_MAX && s->on_limit != ON_LIMIT_REQUEUE)
		return refuse(why, "--max-requeues goes only with --on-limit requeue");
	if (s->done_status >= 0 && !is_sent_back(s))
		return refuse(why,
			"--done-status goes only with --preemptible, --on-limit "
			"requeue and --retries");
	if (s->submit && s->dry_run)
		return refuse(why, "--submit and --dry-run exclude each other; give one");
	if (s->screen && s->dry_run)
		return refuse(why, "--screen and --dry-run exclude each other; give one");
	if (s->lease_only && s->adopt_pid && s->dry_run)
		return refuse(why, "--lease-only --pid and --dry-run exclude each other: "
				   "it waits for nothing, and tells at once");
	return 0;
}

int refuse_command(struct settings *s, const char *word, struct why *why)
{
	static char *nothing[] = { NULL };

	s->command = nothing;
	if (!word)
		return 0;
	why_set(why, "%s takes no command, not '%s'",
		s->shell ? "--shell" : "--lease-only", quote(word).text);
	return -EINVAL;
}

/* --- operands ---------------------------------------------------------------------- */

static bool is_word_for_jobs(const char *text)
{
	return strcmp(text, "all") == 0 || strcmp(text, "mine") == 0;
}

static int want_jobs(
	const struct settings *s, unsigned count, const char *verb, struct why *why)
{
	int r = check_operands(s, count, verb, OPERAND_JOB, why);

	return r < 0 ? r : 1;
}

int settle_job_operands(struct settings *s, const char *verb, struct why *why)
{
	unsigned count = s->operand_count;

	switch (s->verb) {
	case VERB_WAIT_FOR:
		if (count == 1 && is_word_for_jobs(s->operands[0]))
			return 1;
		return want_jobs(s, count, verb, why);
	case VERB_SIGNAL_JOB:
		s->signal = count ? signal_number(s->operands[count - 1]) : 0;
		if (count == 2 && s->signal)
			return want_jobs(s, 1, verb, why);
		if (count == 2)
			why_set(why, "--signal-job: there is no signal '%s'",
				quote(s->operands[1]).text);
		else
			why_set(why, "--signal-job wants the id of a job and a signal: "
				     "--signal-job 12 USR1");
		return -EINVAL;
	case VERB_LOG:
	case VERB_FOLLOW:
	case VERB_ATTACH:
		if (count > 1) {
			why_set(why, "--%s takes one job, not '%s' as well", verb,
				quote(s->operands[1]).text);
			return -EINVAL;
		}
		return want_jobs(s, count, verb, why);
	default:
		return 0;
	}
}

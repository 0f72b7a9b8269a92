#include "diag.h"
#include "exitcodes.h"
#include "need.h"
#include "parse.h"
#include "request.h"

/* --- what is asked for ------------------------------------------------------------- */

/* For people to read: words with blanks in them are shown in quotes. */
static void join_command(char *const command[], char *out, size_t size)
{
	struct text text = text_on(out, size);

	for (; *command && !text.cut; command++) {
		bool has_blank = !**command || strpbrk(*command, " \t\n");

		text_addf(&text, has_blank ? "%s'%s'" : "%s%s", text.used ? " " : "",
			*command);
	}
}

/* Where it is not the user's own. */
static void tell_limit(const struct settings *settings, const char *key)
{
	char limit[DURATION_SIZE];

	format_duration(settings->limit_ms, limit);
	verbose("the time limit is %s: %s in the configuration", limit, key);
}

/*
 * None was given: the default.  0 was given: none.  The limits of time bind users, not root;
 * where none is not allowed it is the longest.
 */
static int find_limit(struct settings *settings, const struct config *config)
{
	char asked[DURATION_SIZE], most[DURATION_SIZE];

	if (!settings->limit_given && config->default_time_ms) {
		settings->limit_ms = config->default_time_ms;
		tell_limit(settings, "default-time");
	}
	if (!config->max_time_ms || getuid() == 0)
		return 0;
	if (!settings->limit_ms) {
		settings->limit_ms = config->max_time_ms;
		tell_limit(settings, "max-time");
	}
	if (settings->limit_ms <= config->max_time_ms)
		return 0;
	format_duration(settings->limit_ms, asked);
	format_duration(config->max_time_ms, most);
	diag("a time limit of %s is too long: max-time in the configuration allows %s",
		asked, most);
	return EXIT_MISUSE;
}

/* What happens at a time limit, or before, needs one, which may be the configuration's. */
static int check_warning(const struct settings *settings)
{
	if (settings->on_limit == ON_LIMIT_REQUEUE && !settings->limit_ms)
		diag("--on-limit requeue needs a time limit; add --time");
	else if (settings->warn_signal && !settings->limit_ms && !settings->preemptible)
		diag("--signal is sent before a time limit; add --time");
	else if (settings->warn_signal && settings->limit_ms &&
		 settings->warn_ms >= settings->limit_ms)
		diag("--signal would come before the command: its time has to be shorter "
		     "than that of --time");
	else if (settings->grace_given && !settings->limit_ms &&
		 !care_is_wanted(settings))
		diag("--grace is the time from TERM to KILL after --time; give both");
	else
		return 0;
	return EXIT_MISUSE;
}

static int check_priority(const struct settings *settings, const struct config *config)
{
	if (getuid() == 0 || settings->priority <= (int64_t)config->max_priority)
		return 0;
	diag("priority %lld is too high: users may have %u at most (max-priority in the "
	     "configuration)",
		(long long)settings->priority, config->max_priority);
	return EXIT_MISUSE;
}

/* What it may take until a job that is sent back has ended. */
static int64_t find_leave_ms(const struct settings *settings)
{
	if (!settings->preemptible)
		return 0;
	return settings->grace_ms + (settings->warn_signal ? settings->warn_ms : 0);
}

int request_make(
	struct settings *settings, const struct context *context, struct request *ret)
{
	struct why why = WHY_NONE;
	int r;

	if (need_from_model(settings, context, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	r = find_limit(settings, &context->config);
	if (r == 0)
		r = check_warning(settings);
	if (r == 0)
		r = check_priority(settings, &context->config);
	if (r != 0)
		return r;
	*ret = (struct request){
		.gpus = settings->gpus,
		.share_percent =
			settings->exclusive ? WHOLE_PERCENT : settings->share_percent,
		.vram_mib = settings->vram_mib,
		.priority = settings->priority,
		.limit_ms = settings->limit_ms,
		.grace_ms = settings->limit_ms || care_is_wanted(settings)
				    ? settings->grace_ms
				    : 0,
		.is_singleton = settings->singleton,
		.is_supervised = care_is_wanted(settings),
		.is_preemptible = settings->preemptible,
		.leave_ms = find_leave_ms(settings),
		.allow = GPUSET_ALL,
	};
	if (settings->name)
		text_copy(ret->name, sizeof(ret->name), settings->name);
	if (settings->after)
		text_copy(ret->after, sizeof(ret->after), settings->after);
	if (settings->after_ok)
		text_copy(ret->after_ok, sizeof(ret->after_ok), settings->after_ok);
	if (settings->lease_only || settings->shell)
		text_copy(ret->command, sizeof(ret->command),
			settings->shell ? "--shell" : "--lease-only");
	else if (settings->line)
		text_copy(ret->command, sizeof(ret->command), settings->line);
	else
		join_command(settings->command, ret->command, sizeof(ret->command));
	return 0;
}

struct plan_limits request_limits(const struct config *config)
{
	return (struct plan_limits){
		.user_percent = config->user_gpus * WHOLE_PERCENT,
		.user_leases = config->user_jobs,
		.all_percent = config->all_gpus * WHOLE_PERCENT,
		.all_leases = config->all_jobs,
	};
}

#include "settings.h"
#include "diag.h"
#include "exitcodes.h"
#include "model_need.h"
#include "own_limits.h"
#include "parse.h"
#include "request.h"

/* --- what is asked for ------------------------------------------------------------- */

/* Joins the words of the command for people to read: a word with blanks gets quotes. */
static void join_command(char *const command[], char *out, size_t size)
{
	struct text text = text_on(out, size);

	for (; *command && !text.cut; command++) {
		bool has_blank = !**command || strpbrk(*command, " \t\n");

		text_addf(&text, has_blank ? "%s'%s'" : "%s%s", text.used ? " " : "",
			*command);
	}
}

void limit_source(const struct config *config, enum config_key key, char out[SOURCE_SIZE])
{
	struct text text = text_on(out, SOURCE_SIZE);

	own_limits_add_source(config->lines[key], config_key_name(key), &text);
}

/* Tells which time limit the configuration has set. */
static void report_limit(
	const struct run_care *care, const struct config *config, enum config_key key)
{
	char limit[DURATION_SIZE], source[SOURCE_SIZE];

	limit_source(config, key, source);
	format_duration(care->limit_ms, limit);
	verbose("the time limit is %s: %s", limit, source);
}

/*
 * Sets the time limit.  Without --time it is default-time of the configuration; --time 0 means
 * none. max-time binds users, not root: a longer limit is refused, and no limit becomes max-time.
 * [limits] may have other values for this user.
 */
static int set_time_limit(struct run_care *care, const struct config *config)
{
	char asked[DURATION_SIZE], most[DURATION_SIZE], source[SOURCE_SIZE];

	if (!care->limit_given && config->default_time_ms) {
		care->limit_ms = config->default_time_ms;
		report_limit(care, config, CONFIG_DEFAULT_TIME);
	}
	if (!config->max_time_ms || getuid() == 0)
		return 0;
	if (!care->limit_ms) {
		care->limit_ms = config->max_time_ms;
		report_limit(care, config, CONFIG_MAX_TIME);
	}
	if (care->limit_ms <= config->max_time_ms)
		return 0;
	format_duration(care->limit_ms, asked);
	format_duration(config->max_time_ms, most);
	limit_source(config, CONFIG_MAX_TIME, source);
	diag("a time limit of %s is too long: %s allows %s", asked, source, most);
	return EXIT_MISUSE;
}

/*
 * Refuses options that act at a time limit if there is none, also none from the configuration.  A
 * job script may have --signal all the same, as in Slurm.
 */
static int check_limit_options(struct settings *settings)
{
	if (settings->environment.shown && settings->care.warn_signal &&
		!settings->care.limit_ms && !settings->care.preemptible) {
		note("--signal has no effect without a time limit; add --time");
		settings->care.warn_signal = 0;
	}
	if (settings->care.on_limit == ON_LIMIT_REQUEUE && !settings->care.limit_ms)
		diag("--on-limit requeue needs a time limit; add --time");
	else if (settings->care.warn_signal && !settings->care.limit_ms &&
		 !settings->care.preemptible)
		diag("--signal is sent before a time limit; add --time");
	else if (settings->care.warn_signal && settings->care.limit_ms &&
		 settings->care.warn_ms >= settings->care.limit_ms)
		diag("--signal would be sent before the command starts: its time has to be "
		     "shorter than that of --time");
	else if (settings->care.grace_given && !settings->care.limit_ms &&
		 !is_supervision_wanted(settings))
		diag("--grace is the time from TERM to KILL after --time; give both");
	else
		return 0;
	return EXIT_MISUSE;
}

/*
 * Refuses options that count declared memory if the job declares none, also not by its model.  The
 * options of --batch are for the lines that do.
 */
static int check_memory_options(const struct settings *settings)
{
	const char *const *given = settings->request.thresholds;

	if (settings->request.vram_mib || settings->environment.line ||
		(!given[OWN_MARGIN] && !given[OWN_TOLERANCE]))
		return 0;
	diag("--%s is about declared memory; add --vram",
		given[OWN_MARGIN] ? "margin" : "tolerance");
	return EXIT_MISUSE;
}

int request_check_priority(int64_t priority, const struct context *context)
{
	unsigned most = context->config.max_priority;
	char source[SOURCE_SIZE];

	if (getuid() == 0 || context->dir.is_private || priority <= (int64_t)most)
		return 0;
	limit_source(&context->config, CONFIG_MAX_PRIORITY, source);
	diag("priority %lld is too high: users may have %u at most (%s)",
		(long long)priority, most, source);
	return EXIT_MISUSE;
}

/* Returns how long a preempted job may take to end: warning and grace; 0: it is not preemptible. */
static int64_t request_leave_ms(const struct run_care *care)
{
	if (!care->preemptible)
		return 0;
	return care->grace_ms + (care->warn_signal ? care->warn_ms : 0);
}

/* Fills in the name, the jobs that come first, and the command. */
static void copy_texts(const struct settings *settings, struct request *ret)
{
	if (settings->request.name)
		ret->name_hash = job_name_copy(ret->name, settings->request.name);
	if (settings->request.after)
		text_copy(ret->after, sizeof(ret->after), settings->request.after);
	if (settings->request.after_ok)
		text_copy(
			ret->after_ok, sizeof(ret->after_ok), settings->request.after_ok);
	if (settings->request.lease_only || settings->request.shell)
		text_copy(ret->command, sizeof(ret->command),
			settings->request.shell ? "--shell" : "--lease-only");
	else if (settings->environment.shown)
		text_copy(
			ret->command, sizeof(ret->command), settings->environment.shown);
	else if (settings->environment.line)
		text_copy(ret->command, sizeof(ret->command), settings->environment.line);
	else
		join_command(settings->environment.command, ret->command,
			sizeof(ret->command));
}

int request_make(
	struct settings *settings, const struct context *context, struct request *ret)
{
	struct why why = WHY_NONE;
	int r;

	if (model_need_apply(&settings->request, &settings->environment, context, &why) <
		0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	r = set_time_limit(&settings->care, &context->config);
	if (r == 0)
		r = check_limit_options(settings);
	if (r == 0)
		r = check_memory_options(settings);
	if (r == 0)
		r = request_check_priority(settings->request.priority, context);
	if (r != 0)
		return r;
	*ret = (struct request){
		.gpus = settings->request.gpus,
		.share_percent = settings->request.exclusive
					 ? WHOLE_PERCENT
					 : settings->request.share_percent,
		.vram_mib = settings->request.vram_mib,
		.priority = settings->request.priority,
		.limit_ms = settings->care.limit_ms,
		.grace_ms = settings->care.limit_ms || is_supervision_wanted(settings)
				    ? settings->care.grace_ms
				    : 0,
		.after_start = settings->request.after_start,
		.is_singleton = settings->request.singleton,
		.is_supervised = is_supervision_wanted(settings),
		.is_preemptible = settings->care.preemptible,
		.runs_once = settings->care.runs_once,
		.leave_ms = request_leave_ms(&settings->care),
		.unused_ok_ms = settings->care.unused_ok_ms,
		.allow = GPUSET_ALL,
		.most_gpus = context->most_gpus,
		.most_jobs = context->most_jobs,
		.limits_line = context->limits_line,
	};
	copy_texts(settings, ret);
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

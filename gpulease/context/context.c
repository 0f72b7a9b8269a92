#include <errno.h>

#include "config_file.h"
#include "context.h"
#include "diag.h"
#include "directory_choice.h"
#include "engine_choice.h"
#include "environment.h"
#include "exitcodes.h"
#include "find_program.h"
#include "ignored_options.h"
#include "own_limits.h"
#include "own_thresholds.h"
#include "privacy.h"
#include "rights.h"
#include "setid.h"

extern char **environ;

int context_load_config(
	struct settings *settings, struct context *context, struct why *why)
{
	const char *named = environment_directory(&settings->machine);
	int r = environment_read_sim(&settings->machine, why);

	*context = (struct context){ .settings = settings, .dir = STATEDIR_NONE };
	context->named = settings->machine.sim_gpus ? NULL : named;
	slurm_allocation_read(&context->allocation);
	if (r == 0)
		r = config_file_load(settings->machine.config, &context->config,
			&context->has_config, why);
	/* in a user namespace, root's own file seems to belong to another user */
	if (r == -EACCES && !config_file_named(settings->machine.config))
		setid_explain_denial(CONFIG_FILE, why);
	if (r < 0)
		config_default(&context->config);
	if (context->config.shows_own_commands_only)
		privacy_hide_others();
	if (r == 0)
		r = engine_become(&settings->machine, &context->config, why);
	if (r == 0) /* on a cluster they have an effect */
		ignored_options_note(settings);
	return r;
}

/*
 * Appends the folder of this program to $PATH, so that jobs of a simulation find gpulease-simjob
 * also before it is installed: it is built beside gpulease.
 */
static void context_add_own_folder(void)
{
	const char *path = getenv("PATH");
	char own[PATH_MAX] = "", *slash;
	autofree char *longer = NULL;
	size_t size;

	if (!path || readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		return;
	slash = strrchr(own, '/');
	if (slash)
		*slash = '\0';
	size = strlen(own);
	/* a simulated job has inherited it already */
	if (strlen(path) >= size && strcmp(path + strlen(path) - size, own) == 0)
		return;
	if (asprintf(&longer, "%s:%s", path, own) < 0)
		longer = NULL;
	else
		(void)setenv("PATH", longer, 1);
}

/* Sets ->nvidia_smi by the configuration, or else by $PATH; "" if it is not found. */
static void context_find_nvidia_smi(struct context *context)
{
	char *out = context->nvidia_smi;

	if (context->config.nvidia_smi[0])
		text_copy(out, sizeof(context->nvidia_smi), context->config.nvidia_smi);
	else if (rights_are_lent()) /* $PATH is under the user's control */
		text_copy(out, sizeof(context->nvidia_smi), "/usr/bin/nvidia-smi");
	else if (find_program("nvidia-smi", out) < 0)
		out[0] = '\0';
}

static struct usage_policy usage_of(const struct config *config)
{
	return (struct usage_policy){
		.idle_mib = config->idle.mib,
		.idle_percent = config->idle.percent,
		.busy_percent = config->busy_percent,
		.settle_ms = config->settle_ms,
		.linger_ms = config->linger_ms,
		.margin_mib = config->margin_mib,
		.spike_percent = config->spike_buffer_percent,
	};
}

/* Reads the thresholds of this job.  Returns 0, or -EINVAL with the message in @why. */
static int context_read_thresholds(struct context *context, struct why *why)
{
	struct config own = context->config;
	int r = own_thresholds_apply(&context->settings->request, &own, why);

	context->usage = usage_of(&own);
	context->config.tolerance_percent = own.tolerance_percent;
	return r;
}

void context_find_driver(struct context *context)
{
	static char path[] = "PATH=/usr/bin:/bin", locale[] = "LC_ALL=C";
	static char *const clean[] = { path, locale, NULL };
	const struct machine_settings *machine = &context->settings->machine;
	const struct config *config = &context->config;

	if (!machine->sim_gpus)
		context_find_nvidia_smi(context);
	context->prober = (struct prober_config){
		.nvidia_smi = context->nvidia_smi[0] ? context->nvidia_smi : NULL,
		.environment = rights_are_lent() ? clean : environ,
		.usage = usage_of(config),
		.limit_ms = config->probe_deadline_ms,
		.sim_gpus = machine->sim_gpus,
		.sim_mib = machine->sim_mib,
	};
}

int context_open(struct settings *settings, struct context *context)
{
	struct why why = WHY_NONE;
	int r = context_load_config(settings, context, &why);

	if (r == 0)
		own_limits_apply(context);
	if (r == 0)
		r = context_read_thresholds(context, &why);
	if (r == 0)
		r = directory_choice_open(context, &why);
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	directory_choice_note(context);
	context_find_driver(context);
	if (settings->machine.sim_gpus)
		context_add_own_folder();
	return 0;
}

int64_t context_patience_ms(const struct context *context)
{
	/* first the probe of another process may have to end, or to reach its deadline */
	return max_i64(context->prober.limit_ms, PROBE_LIMIT_MS) + 2000;
}

int context_no_gpus(void)
{
	diag("nvidia-smi was not found in PATH: without it gpulease knows no GPUs; "
	     "install the NVIDIA driver, or try --sim 4 for simulated ones");
	return EXIT_MISUSE;
}

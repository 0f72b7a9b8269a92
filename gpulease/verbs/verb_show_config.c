/*
 * --show-config: prints the configuration in force and its source.  Needs no state directory,
 * because users look here when the directory cannot be used.
 */
#include "clock.h"
#include "config_file.h"
#include "context.h"
#include "diag.h"
#include "directory_choice.h"
#include "exitcodes.h"
#include "own_limits.h"
#include "rights.h"
#include "show_config.h"
#include "verbs.h"

/* Writes the absolute path of the directory @named to @out, or @named if there is none. */
static void show_config_make_absolute(const char *named, char out[PATH_MAX])
{
	char here[PATH_MAX];

	if (realpath(named, out))
		return;
	if (named[0] == '/' || !getcwd(here, sizeof(here)))
		text_copy(out, PATH_MAX, named);
	else if (snprintf(out, PATH_MAX, "%s/%s", here, named) >= PATH_MAX)
		text_copy(out, PATH_MAX, named);
}

int verb_show_config(struct settings *settings)
{
	static struct context context;
	static struct config own;
	static char directory[PATH_MAX];
	struct config_view view = { .config = &context.config };
	struct why why = WHY_NONE;

	if (context_load_config(settings, &context, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	context_find_driver(&context);
	view.file = settings->machine.config ? settings->machine.config : CONFIG_FILE;
	view.has_file = context.has_config;
	view.is_simulated = settings->machine.sim_gpus != 0;
	view.nvidia_smi = context.nvidia_smi;
	view.is_searched = !rights_are_lent();
	if (context.config.limits.line) {
		view.process = own_limits_process();
		view.own = view.process->uid ? &own : NULL;
		limits_find(&context.config, view.process, &own);
	}
	if (context.named) {
		show_config_make_absolute(context.named, directory);
		view.directory = directory;
		view.directory_by = settings->machine.dir ? "--dir" : "GPULEASE_DIR";
	} else if (context.allocation.job && directory_choice_open(&context, &why) == 0 &&
		   context.has_allocation) {
		view.directory = context.dir.path;
		view.directory_by = "SLURM_JOB_ID";
	}
	if (settings->output.json)
		show_config_json(&view, clock_real_ms(), stdout);
	else
		show_config(&view, stdout);
	return EXIT_DONE;
}

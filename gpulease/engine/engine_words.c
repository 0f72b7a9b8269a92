#include <errno.h>
#include <limits.h>
#include <time.h>

#include "clock.h"
#include "command_line.h"
#include "config_file.h"
#include "diag.h"
#include "engine_after.h"
#include "engine_options.h"
#include "engine_words.h"
#include "exitcodes.h"
#include "gpu_words.h"
#include "inject.h"
#include "node_order.h"
#include "parse.h"
#include "setup.h"
#include "signals.h"

/* --- options that are passed on ------------------------------------------------------------ */

/* Appends each given option with @action, in the order of the table. */
static void add_passed(const struct engine_line *line, enum engine_action action,
	struct slurm_words *words)
{
	for (size_t i = 0; option_table[i].kind; i++) {
		const struct engine_option *option = engine_option_find(&option_table[i]);
		const char *name;

		if (!option || option->action != action || !line->given.use[i].times)
			continue;
		name = option->text ? option->text : option->name;
		if (line->values[i])
			slurm_words_addf(words, "--%s=%s", name, line->values[i]);
		else
			slurm_words_addf(words, "--%s", name);
	}
}

/* --- what gpulease writes in its own way --------------------------------------------------- */

/* The limit in minutes, rounded up: Slurm counts no seconds. */
static void add_limit(const struct engine_line *line, struct slurm_words *words)
{
	enum { MINUTE_MS = 60 * 1000 };
	int64_t limit_ms = line->settings.care.limit_ms;

	if (!engine_line_has(line, "time"))
		return;
	if (limit_ms)
		slurm_words_addf(words, "--time=%lld",
			(long long)(limit_ms + MINUTE_MS - 1) / MINUTE_MS);
	else
		slurm_words_add(words, "--time=UNLIMITED");
}

/* When the job begins, as a date with a time: Slurm knows no days of the week. */
static void add_begin(const struct run_request *request, struct slurm_words *words)
{
	int64_t from_now_ms = request->begin_ms - clock_boot_ms();
	time_t at_s = (time_t)((clock_real_ms() + from_now_ms + 999) / 1000);
	struct tm at;
	char text[32];

	if (!request->begin_ms || !localtime_r(&at_s, &at) ||
		!strftime(text, sizeof(text), "%FT%T", &at))
		return;
	slurm_words_addf(words, "--begin=%s", text);
}

/*
 * With a limit on this line the node sends the signal, to the second, unless it is for the steps.
 * The script of sbatch is the command itself, and gets it only after `B:`.
 */
static void add_signal(const struct run_care *care, struct slurm_words *words)
{
	bool is_batch = strcmp(words->list[0], "sbatch") == 0;

	if (care->warn_signal && (!care->limit_ms || care->warns_steps))
		slurm_words_addf(words, "--signal=%s%s@%lld",
			is_batch && !care->warns_steps ? "B:" : "",
			signal_name(care->warn_signal).text,
			(long long)(care->warn_ms + 999) / 1000);
}

static int add_priority(const struct run_request *request, struct slurm_words *words)
{
	if (request->priority > 0) {
		diag("--priority: Slurm lets only operators raise the priority of a job; "
		     "lower that of the others, or use a partition or QOS of higher "
		     "priority: -p NAME, -q NAME");
		return EXIT_MISUSE;
	}
	if (request->priority < 0)
		slurm_words_addf(words, "--nice=%lld", (long long)-request->priority);
	return 0;
}

void engine_add_most(const struct engine_line *line, const char *error, struct text *out)
{
	unsigned wish = gpu_words_of_node(line);
	struct cluster_gpus gpus;

	if (!strstr(error, "node configuration is not available") || !wish ||
		cluster_gpus_ask(&gpus) != 0 || wish <= gpus.most)
		return;
	text_addf(out, "; a node has %u GPUs at most", gpus.most);
}

/* --- the words ----------------------------------------------------------------------------- */

static int add_gpus(const struct engine_line *line, struct slurm_words *words)
{
	static struct cluster_gpus gpus; /* a batch asks once */
	static bool is_asked;
	struct why why = WHY_NONE;
	int r = 0;

	if (!is_asked && gpu_words_need_types(line)) {
		r = cluster_gpus_ask(&gpus);
		is_asked = r == 0;
	}
	if (r != 0 || gpu_words_add(line, &gpus, words, &why) == 0)
		return r;
	diag("%s", why.text);
	return EXIT_MISUSE;
}

int engine_job_words(const struct engine_line *line, struct slurm_words *words)
{
	const struct settings *settings = &line->settings;
	int r = add_gpus(line, words);

	if (r == 0)
		r = add_priority(&settings->request, words);
	if (r != 0)
		return r;
	slurm_words_addf(words, "--job-name=%s",
		settings->request.name
			? settings->request.name
			: text_base_name(settings->environment.command[0]));
	add_begin(&settings->request, words);
	add_limit(line, words);
	add_signal(&settings->care, words);
	engine_after_words(line, words);
	add_passed(line, ENGINE_JOB, words);
	return 0;
}

int engine_step_words(const struct engine_line *line, struct slurm_words *words)
{
	add_passed(line, ENGINE_STEP, words);
	if (engine_line_has(line, "overlap"))
		slurm_words_add(words, "--overlap");
	if (engine_line_value(line, "open-mode"))
		slurm_words_addf(
			words, "--open-mode=%s", engine_line_value(line, "open-mode"));
	return 0;
}

int engine_enter_folder(const struct engine_line *line)
{
	const char *folder = line->settings.environment.chdir;

	if (!folder || chdir(folder) == 0)
		return 0;
	diag("cannot change to '%s': %s", folder, strerror(errno));
	return EXIT_MISUSE;
}

/* Sets @path to this program, which is expected at the same place on the nodes. */
static int find_engine(char path[PATH_MAX])
{
	ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (size < 0)
		return -errno;
	path[size] = '\0';
	return 0;
}

/* The delays are those of the configuration here, which a node need not have. */
static void add_delays(const struct engine_line *line, struct node_order *order)
{
	static struct config config;
	struct why why = WHY_NONE;

	if (!order->retries)
		return;
	if (config_file_load(engine_line_value(line, "config"), &config, NULL, &why) < 0)
		config_default(&config);
	order->retry_delay_ms = config.retry_delay_ms;
	order->retry_delay_max_ms = config.retry_delay_max_ms;
}

/* Whether the words differ.  Both lists have the same length. */
static bool is_other(char *const *a, char *const *b)
{
	for (size_t i = 0; a[i]; i++)
		if (strcmp(a[i], b[i]) != 0)
			return true;
	return false;
}

/*
 * Sets ->fills.  Returns 0, or EXIT_MISUSE after a message: a word asks for what Slurm does not
 * tell, which the node would say only once the job runs.
 */
static int find_placeholders(
	const struct run_environment *environment, struct node_order *order)
{
	static const struct inject_values some = { "", "", "", "" },
					  others = { "", "", "x", "" };
	/* a line for the shell of --setup is filled; the name of a program is not */
	size_t fixed = !setup_is_wanted(environment) || environment->command[1];
	autofree char **filled = NULL, **again = NULL;

	if (inject_arguments(environment->command, fixed, NULL, &some, &filled) < 0 ||
		inject_arguments(environment->command, fixed, NULL, &others, &again) <
			0) {
		diag("%s", strerror(ENOMEM));
		return EXIT_MISUSE;
	}
	order->fills = is_other(environment->command, filled);
	if (!is_other(filled, again))
		return 0;
	diag("{uuids}: Slurm does not tell the UUIDs of the GPUs; write {gpus}");
	return EXIT_MISUSE;
}

int engine_node_words(
	const struct engine_line *line, bool merges, struct slurm_words *words)
{
	static char engine[PATH_MAX], folder[PATH_MAX]; /* they stay in @words */
	struct node_order order;
	int r = find_engine(engine);

	if (r < 0) {
		diag("cannot find gpulease-engine: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	node_order_make(&line->settings, &order);
	add_delays(line, &order);
	r = find_placeholders(&line->settings.environment, &order);
	if (r != 0)
		return r;
	order.merges = merges;
	order.folder = getcwd(folder, sizeof(folder));
	if (!order.folder) {
		diag("cannot tell the name of the current folder: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	node_order_add(&order, engine, words);
	return 0;
}

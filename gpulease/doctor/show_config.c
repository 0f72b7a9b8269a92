#include "clock.h"
#include "config_file.h"
#include "diag.h"
#include "exitcodes.h"
#include "json_members.h"
#include "own_limits.h"
#include "show_config.h"
#include "strview.h"

struct config_view {
	const struct doctor_state *state;
	const struct config *config;
	/* with the limits of [limits] for this process; NULL: it is root, or there are none */
	const struct config *own;
	const char *directory; /* in place of the configured one, absolute; NULL: none */
	const char *directory_by; /* "--dir", "GPULEASE_DIR" or "SLURM_JOB_ID" */
};

enum { WIDTH_MAX = 48 }; /* wider settings do not move the column of the comments */

/* One key: the value in force, and where it comes from. */
struct config_row {
	const char *key;
	char value[PATH_MAX]; /* "": not set */
	char source[PATH_MAX];
	bool is_valid; /* a file may set it so */
};

/* Whether a file with the line as it is printed would set the key to this value again. */
static bool config_row_is_valid(enum config_key key, const struct config_row *row)
{
	char line[PATH_MAX + 64], again[CONFIG_PATH_SIZE], printable[PATH_MAX];
	struct text text = TEXT_ON(line), value = TEXT_ON(again),
		    shown = TEXT_ON(printable);
	struct config config;

	text_add_visible(&shown, row->value);
	if (strcmp(printable, row->value) != 0)
		return false;
	text_addf(&text, "%s = %s\n", row->key, row->value);
	config_default(&config);
	if (config_parse("", line, text.used, &config, NULL) < 0)
		return false;
	config_format(&config, key, &value);
	return strcmp(again, row->value) == 0;
}

/* Returns the source of an nvidia-smi that the configuration does not set. */
static const char *nvidia_smi_source(const struct config_view *view)
{
	if (view->state->sim_gpus)
		return "not looked for";
	if (!view->state->is_searched)
		return "default";
	return view->state->nvidia_smi[0] ? "found in PATH" : "not found in PATH";
}

static void config_row_make(
	const struct config_view *view, enum config_key key, struct config_row *row)
{
	struct text value = TEXT_ON(row->value), source = TEXT_ON(row->source);
	unsigned line = view->config->lines[key];

	row->key = config_key_name(key);
	if (key == CONFIG_DIRECTORY && view->directory) {
		text_add(&value, view->directory);
		text_add(&source, view->directory_by);
	} else if (key == CONFIG_NVIDIA_SMI && !line) {
		text_add(&value, view->state->nvidia_smi);
		text_add(&source, nvidia_smi_source(view));
	} else {
		config_format(view->config, key, &value);
		if (line)
			text_addf(&source, "%s, line %u", view->state->config_file, line);
		else
			text_add(&source, row->value[0] ? "default" : "default: none");
	}
	/* an nvidia-smi that was found in one user's PATH is no setting for all users */
	row->is_valid =
		!(key == CONFIG_NVIDIA_SMI && !line && view->state->is_searched) &&
		config_row_is_valid(key, row);
}

/* --- as text ----------------------------------------------------------------------- */

static void config_row_add_setting(const struct config_row *row, struct text *out)
{
	text_addf(out, "%s%s =%s", row->is_valid ? "" : "# ", row->key,
		row->value[0] ? " " : "");
	text_add_visible(out, row->value);
}

static size_t config_row_width(const struct config_row *row)
{
	char line[PATH_MAX + 64];
	struct text text = TEXT_ON(line);

	config_row_add_setting(row, &text);
	return text_columns(line, text.used);
}

static void config_row_print(const struct config_row *row, size_t width, FILE *out)
{
	char line[2 * PATH_MAX + 64];
	struct text text = TEXT_ON(line);
	size_t columns;

	config_row_add_setting(row, &text);
	columns = text_columns(line, text.used);
	text_addf(&text, "%*s  # ", columns < width ? (int)(width - columns) : 0, "");
	text_add_visible(&text, row->source);
	(void)fprintf(out, "%s\n", line);
}

/* Prints the lines of a section as they stand in the file, up to the next section. */
static void print_section(const char *name, struct strview rest, FILE *out)
{
	char line[PATH_MAX + 64];

	(void)fprintf(out, "%s\n", name);
	while (rest.begin < rest.end) {
		struct strview part = strview_take_line(&rest);
		struct text text = TEXT_ON(line);

		if (strview_is(part, "[models]"))
			return;
		text_add_printable(&text, part.begin, strview_size(part));
		if (text.used)
			(void)fprintf(out, "%s\n", line);
	}
}

/* The keys for which [limits] may have other values; default-time is at most max-time. */
static const enum config_key limited_keys[] = { CONFIG_USER_GPUS, CONFIG_USER_JOBS,
	CONFIG_MAX_TIME, CONFIG_DEFAULT_TIME, CONFIG_MAX_PRIORITY };

/* Finds the next line of [limits] whose name has no number. */
static bool next_unknown(const struct config_view *view, struct limits_line *line)
{
	while (limits_next(&view->config->limits, line))
		if (!limits_is_known(line, own_limits_process()))
			return true;
	return false;
}

/* Prints [limits] and, as comments, what it means for this user. */
static void print_limits(const struct config_view *view, size_t width, FILE *out)
{
	const struct limits_table *table = &view->config->limits;
	struct limits_line line = { .number = 0 };
	struct config_view own = *view;
	struct config_row row;

	if (!table->line)
		return;
	print_section("[limits]", table->text, out);
	while (next_unknown(view, &line))
		(void)fprintf(out, "# line %u: %s has no such name\n", line.number,
			line.is_group ? "/etc/group" : "/etc/passwd");
	own.config = view->own;
	(void)fprintf(out, own.config ? "# what binds you:\n" : "# root is not bound\n");
	for (size_t i = 0; i < ARRAY_SIZE(limited_keys) && own.config; i++) {
		config_row_make(&own, limited_keys[i], &row);
		row.is_valid = false; /* a comment */
		config_row_print(&row, width, out);
	}
}

/* Prints the table of models, as it stands in the file. */
static void print_models(const struct config_view *view, FILE *out)
{
	const struct model_table *models = &view->config->models;

	if (models->text)
		print_section("[models]",
			(struct strview){ models->text, models->text + models->size },
			out);
}

static void print_config(const struct config_view *view, FILE *out)
{
	char line[PATH_MAX + 64];
	struct text missing = TEXT_ON(line);
	struct config_row row;
	size_t width = 0;

	for (int key = 0; key < CONFIG_KEYS; key++) {
		config_row_make(view, (enum config_key)key, &row);
		if (config_row_width(&row) <= WIDTH_MAX && config_row_width(&row) > width)
			width = config_row_width(&row);
	}
	if (!view->state->has_config) {
		text_add_visible(&missing, view->state->config_file);
		(void)fprintf(out, "# there is no %s\n", line);
	}
	if (view->state->sim_gpus)
		(void)fprintf(
			out, "# --sim: neither the directory nor nvidia-smi is used\n");
	for (int key = 0; key < CONFIG_KEYS; key++) {
		config_row_make(view, (enum config_key)key, &row);
		config_row_print(&row, width, out);
	}
	print_limits(view, width, out);
	print_models(view, out);
}

/* --- as JSON ----------------------------------------------------------------------- */

static void json_put_key(
	struct json *json, const struct config_view *view, enum config_key key)
{
	struct config_row row;

	config_row_make(view, key, &row);
	json_key(json, row.key);
	json_begin_object(json);
	json_put_text(json, "value", row.value);
	json_put_text(json, "source", row.source);
	json_end(json);
}

static void member_limits(struct json *json, const struct config_view *view)
{
	struct limits_line line = { .number = 0 };
	struct config_view own = *view;

	own.config = view->own;
	member_number_if(json, "limits_line", view->config->limits.line,
		view->config->limits.line);
	json_key(json, "own_limits");
	if (own.config) {
		json_begin_object(json);
		for (size_t i = 0; i < ARRAY_SIZE(limited_keys); i++)
			json_put_key(json, &own, limited_keys[i]);
		json_end(json);
	} else {
		json_null(json);
	}
	json_key(json, "unknown_names");
	json_begin_array(json);
	while (next_unknown(view, &line))
		json_unsigned(json, line.number);
	json_end(json);
}

static void print_json(const struct config_view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "config", clock_real_ms(), NULL);
	json_put_text(
		&json, "file", view->state->has_config ? view->state->config_file : "");
	member_bool(&json, "simulated", view->state->sim_gpus);
	json_key(&json, "config");
	json_begin_object(&json);
	for (int key = 0; key < CONFIG_KEYS; key++)
		json_put_key(&json, view, (enum config_key)key);
	json_end(&json);
	member_limits(&json, view);
	member_number_if(&json, "models_line", view->config->models.text,
		view->config->models.line);
	document_finish(&json);
}

/* --- both -------------------------------------------------------------------------- */

/* Writes the absolute path of the directory @named to @out, or @named if there is none. */
static void make_absolute(const char *named, char out[PATH_MAX])
{
	char here[PATH_MAX];

	if (realpath(named, out))
		return;
	if (named[0] == '/' || !getcwd(here, sizeof(here)) ||
		snprintf(out, PATH_MAX, "%s/%s", here, named) >= PATH_MAX)
		text_copy(out, PATH_MAX, named);
}

/* Sets ->directory if it is not the configured one. */
static void find_directory(const char *option, struct config_view *view)
{
	static char directory[PATH_MAX];
	const struct doctor_state *state = view->state;

	if (state->is_named) {
		make_absolute(option ? option : getenv("GPULEASE_DIR"), directory);
		view->directory = directory;
		view->directory_by = option ? "--dir" : "GPULEASE_DIR";
	} else if (state->has_allocation && state->directory_error == 0) {
		view->directory = state->path;
		view->directory_by = "SLURM_JOB_ID";
	}
}

int show_config(const struct settings *settings, const struct doctor_state *state)
{
	static struct config config, own;
	struct config_view view = { .state = state, .config = &config };
	struct why why = state->config_trouble;

	config_default(&config);
	if (!why.text[0] && state->has_config)
		(void)!config_file_load(state->config_file, &config, NULL, &why);
	if (why.text[0]) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (config.limits.line && getuid() != 0) {
		view.own = &own;
		limits_find(&config, own_limits_process(), &own);
	}
	find_directory(settings->machine.dir, &view);
	if (settings->output.json)
		print_json(&view, stdout);
	else
		print_config(&view, stdout);
	return EXIT_DONE;
}

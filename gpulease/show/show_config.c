#include <limits.h>

#include "strview.h"
#include "json_members.h"
#include "show_config.h"

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

	text_add_printable(&shown, row->value, strlen(row->value));
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
	if (view->is_simulated)
		return "not looked for";
	if (!view->is_searched)
		return "default";
	return view->nvidia_smi[0] ? "found in PATH" : "not found in PATH";
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
		text_add(&value, view->nvidia_smi);
		text_add(&source, nvidia_smi_source(view));
	} else {
		config_format(view->config, key, &value);
		if (line)
			text_addf(&source, "%s, line %u", view->file, line);
		else
			text_add(&source, row->value[0] ? "default" : "default: none");
	}
	/* an nvidia-smi that was found in one user's PATH is no setting for all users */
	row->is_valid = !(key == CONFIG_NVIDIA_SMI && !line && view->is_searched) &&
			config_row_is_valid(key, row);
}

/* --- as text ----------------------------------------------------------------------- */

static void config_row_add_setting(const struct config_row *row, struct text *out)
{
	text_addf(out, "%s%s =%s", row->is_valid ? "" : "# ", row->key,
		row->value[0] ? " " : "");
	text_add_printable(out, row->value, strlen(row->value));
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
	text_add_printable(&text, row->source, strlen(row->source));
	(void)fprintf(out, "%s\n", line);
}

/* Prints the table of models, as it stands in the file. */
static void print_models(const struct config_view *view, FILE *out)
{
	const struct model_table *models = &view->config->models;
	struct strview rest = { models->text, models->text + models->size };
	char line[PATH_MAX + 64];

	if (!models->text)
		return;
	(void)fprintf(out, "[models]\n");
	while (rest.begin < rest.end) {
		struct strview part = strview_take_line(&rest);
		struct text text = TEXT_ON(line);

		text_add_printable(&text, part.begin, strview_size(part));
		if (text.used)
			(void)fprintf(out, "%s\n", line);
	}
}

void show_config(const struct config_view *view, FILE *out)
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
	if (!view->has_file) {
		text_add_printable(&missing, view->file, strlen(view->file));
		(void)fprintf(out, "# there is no %s\n", line);
	}
	if (view->is_simulated)
		(void)fprintf(
			out, "# --sim: neither the directory nor nvidia-smi is used\n");
	for (int key = 0; key < CONFIG_KEYS; key++) {
		config_row_make(view, (enum config_key)key, &row);
		config_row_print(&row, width, out);
	}
	print_models(view, out);
}

/* --- as JSON ----------------------------------------------------------------------- */

void show_config_json(const struct config_view *view, int64_t now_ms, FILE *out)
{
	struct json json = JSON_ON(out);
	struct config_row row;

	document_begin(&json, "config", now_ms, NULL);
	json_put_text(&json, "file", view->has_file ? view->file : "");
	member_bool(&json, "simulated", view->is_simulated);
	json_key(&json, "config");
	json_begin_object(&json);
	for (int key = 0; key < CONFIG_KEYS; key++) {
		config_row_make(view, (enum config_key)key, &row);
		json_key(&json, row.key);
		json_begin_object(&json);
		json_put_text(&json, "value", row.value);
		json_put_text(&json, "source", row.source);
		json_end(&json);
	}
	json_end(&json);
	member_number_if(&json, "models_line", view->config->models.text,
		view->config->models.line);
	document_finish(&json);
}

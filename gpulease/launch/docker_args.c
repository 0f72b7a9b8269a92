#include <limits.h>
#include <stdarg.h>

#include "docker_args.h"
#include "words.h"

/* Two paths, each with all of its quotes doubled. */
enum { WORD_SIZE = 4 * PATH_MAX + 256 };

static const char *const PLAIN = "-./:,=@+" NAME_BYTES;

/* --- words ------------------------------------------------------------------------- */

void docker_args_quote(const char *word, struct text *out)
{
	if (word[0] && !word[strspn(word, PLAIN)]) {
		text_add(out, word);
		return;
	}
	words_add_in_quotes(out, word);
}

static void add_word(struct text *out, const char *word)
{
	if (out->used)
		text_add(out, " ");
	docker_args_quote(word, out);
}

static void add_option(struct text *out, const char *name, const char *value)
{
	add_word(out, name);
	add_word(out, value);
}

PRINTF_LIKE(3, 4)
static void add_optionf(struct text *out, const char *name, const char *format, ...)
{
	char value[WORD_SIZE];
	va_list args;
	int wanted;

	va_start(args, format);
	wanted = vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	if (wanted < 0 || (size_t)wanted >= sizeof(value))
		out->cut = true;
	add_option(out, name, value);
}

/* --- mounts ------------------------------------------------------------------------ */

/* Adds a field of --mount, which the engines read as comma-separated values (CSV). */
static void add_field(struct text *out, const char *key, const char *value)
{
	bool is_plain = !value[strcspn(value, ",\"\r\n")];

	text_addf(out, "%s%s%s=", out->used ? "," : "", is_plain ? "" : "\"", key);
	for (; *value; value++) {
		if (*value == '"')
			text_add(out, "\"");
		text_add_bytes(out, value, 1);
	}
	if (!is_plain)
		text_add(out, "\"");
}

/* Adds a bind mount: --volume, which people know, or --mount for a path with a colon. */
static void add_mount(
	struct text *out, const char *source, const char *target, bool is_readonly)
{
	char value[WORD_SIZE];
	struct text text = TEXT_ON(value);

	if (!strchr(source, ':') && !strchr(target, ':')) {
		add_optionf(out, "--volume", "%s:%s%s", source, target,
			is_readonly ? ":ro" : "");
		return;
	}
	add_field(&text, "type", "bind");
	add_field(&text, "source", source);
	add_field(&text, "target", target);
	if (is_readonly)
		text_add(&text, ",readonly");
	out->cut = out->cut || text.cut;
	add_option(out, "--mount", value);
}

/* --- GPUs -------------------------------------------------------------------------- */

bool docker_args_are_uuids(const char *uuids)
{
	for (size_t i = 0; uuids[i]; i++) {
		bool is_end = !uuids[i + 1] || uuids[i + 1] == ',';

		if (uuids[i] == ','
				? i == 0 || is_end
				: !strchr(PLAIN, uuids[i]) || strchr("=:@+", uuids[i]))
			return false;
	}
	return true;
}

static void add_docker_gpus(const char *uuids, struct text *out)
{
	if (!uuids)
		add_option(out, "--gpus", "all");
	else if (uuids[0])
		/* docker itself needs the quotes: it would split the list at the commas */
		add_optionf(out, "--gpus", "\"device=%s\"", uuids);
	else
		/*
		 * with NVIDIA's runtime as docker's default, the image itself could ask for all
		 * GPUs
		 */
		add_option(out, "--env", "NVIDIA_VISIBLE_DEVICES=void");
}

static void add_podman_gpus(const char *uuids, struct text *out)
{
	if (!uuids)
		add_option(out, "--device", "nvidia.com/gpu=all");
	while (uuids && *uuids) {
		size_t size = strcspn(uuids, ",");

		add_optionf(out, "--device", "nvidia.com/gpu=%.*s", (int)size, uuids);
		uuids += size + (uuids[size] == ',');
	}
}

/* --- all of them ------------------------------------------------------------------- */

static void add_groups(const struct docker_args *args, struct text *out)
{
	if (args->is_podman)
		add_option(out, "--group-add", "keep-groups");
	else if (args->group)
		add_optionf(out, "--group-add", "%u", (unsigned)args->group);
}

/*
 * Adds the variables by which a gpulease inside finds its lease.  Adds no indices, because the
 * container numbers its GPUs from 0, unlike the host.
 */
static void add_environment(const struct docker_args *args, struct text *out)
{
	const struct {
		const char *name, *value;
	} variables[] = {
		{ "GPULEASE_ID", args->id },
		{ "GPULEASE_TOKEN", args->token },
		{ "GPULEASE_UUIDS", args->uuids },
		{ "GPULEASE_DIR", args->is_directory_named ? args->directory : NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (variables[i].value)
			add_optionf(out, "--env", "%s=%s", variables[i].name,
				variables[i].value);
}

void docker_args_format(const struct docker_args *args, struct text *out)
{
	if (args->is_podman)
		add_podman_gpus(args->uuids, out);
	else
		add_docker_gpus(args->uuids, out);
	add_groups(args, out);
	if (args->directory)
		add_mount(out, args->directory, args->directory, false);
	if (args->config)
		add_mount(out, args->config, "/etc/gpulease.conf", true);
	if (args->program)
		add_mount(out, args->program, "/usr/local/bin/gpulease", true);
	if (args->view)
		add_mount(out, args->view, "/usr/local/lib/gpulease/gpulease-view", true);
	add_environment(args, out);
}

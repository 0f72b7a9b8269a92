#include <strings.h>

#include "batch_settings.h"
#include "setup.h"

/* Returns the number of GPUs; a job that declares memory gets at least one. */
static unsigned settings_count_gpus(
	const struct batch_attributes *line, const struct run_request *request)
{
	if (line->given & 1u << BATCH_GPUS)
		return line->gpus;
	return request->gpus || !line->vram_mib ? request->gpus : 1;
}

/*
 * Sets GPUs and memory.  `gpus` of the line replaces all that the command line says about GPUs, and
 * `vram` all that it says about memory.
 */
static void settings_set_need(
	const struct batch_attributes *line, struct run_request *request)
{
	bool has_gpus = line->given & 1u << BATCH_GPUS;
	bool has_vram = line->given & 1u << BATCH_VRAM;

	request->gpus = settings_count_gpus(line, request);
	if (has_gpus) {
		request->share_percent = line->share_percent;
		request->gpus_given = true;
		/* no GPU means no memory, and a share cannot be exclusive */
		if (!request->gpus)
			request->vram_mib = 0;
		if (request->share_percent)
			request->exclusive = false;
	}
	if (has_vram) {
		request->vram_mib = line->vram_mib;
		/* memory says how much of a GPU, so a share for all lines no longer applies */
		if (!has_gpus)
			request->share_percent = 0;
	}
	request->need_given = request->need_given || has_gpus || has_vram;
}

/* Sets the other attributes of the line; they win over the command line. */
static void settings_set_rest(const struct batch_attributes *line, struct settings *s)
{
	if (line->given & 1u << BATCH_TIMEOUT) {
		s->care.limit_ms = line->limit_ms;
		s->care.limit_given = true;
	}
	if (line->given & 1u << BATCH_RETRIES)
		s->care.oom_retries = line->oom_retries;
	if (line->given & 1u << BATCH_FAIL_RETRIES)
		s->care.retries = line->retries;
	if (line->given & 1u << BATCH_PRIORITY) {
		s->request.priority = line->priority;
		s->request.priority_given = true;
	}
	if (line->given & 1u << BATCH_ALLOW)
		s->request.allow = line->allow;
	if (line->given & 1u << BATCH_CONDA)
		s->environment.conda = line->conda;
	if (line->given & 1u << BATCH_SETUP)
		s->environment.setup = line->setup;
	s->request.name = line->given & 1u << BATCH_NAME ? line->name : NULL;
}

/* Turns the settings of --batch into those of one job: drops what concerns the batch as a whole. */
static void settings_drop_batch(struct settings *s)
{
	s->verb.kind = VERB_RUN;
	s->environment.submit = true; /* it is supervised, and its output goes to a log */
	s->output.json = s->output.quiet = s->batch.watch = s->batch.once =
		s->batch.fresh = s->batch.fail_fast = false;
	s->verb.operands = NULL;
	s->verb.operand_count = 0;
	s->batch.log_dir = s->environment.inject = NULL;
	/* the runner waits for other jobs, before this one has a ticket */
	s->request.after = s->request.after_ok = NULL;
	s->request.after_ids[0] = s->request.after_ok_ids[0] = '\0';
}

void batch_settings(const struct settings *defaults, const struct batch_line *line,
	uint64_t vram_mib, char *words[4], struct settings *ret)
{
	static char shell[] = "/bin/sh", minus_c[] = "-c";
	size_t count = 0;

	*ret = *defaults;
	settings_drop_batch(ret);
	settings_set_need(&line->attributes, &ret->request);
	settings_set_rest(&line->attributes, ret);
	if (vram_mib && ret->request.gpus)
		ret->request.vram_mib = vram_mib;
	ret->environment.line = line->command;
	/* the shell that runs the setup also runs the line */
	if (!setup_is_wanted(&ret->environment)) {
		words[count++] = shell;
		words[count++] = minus_c;
	}
	words[count++] = (char *)line->command;
	words[count] = NULL;
	ret->environment.command = words;
}

uint64_t batch_environment(const struct settings *defaults, const char *directory,
	const struct batch_line *line)
{
	const struct run_environment *given = &defaults->environment;
	const struct batch_attributes *said = &line->attributes;
	const char *exported = given->export_list;
	/* all variables are exported without the option, too */
	bool is_all = exported && strcasecmp(exported, "ALL") == 0;
	const char *const parts[] = { directory, is_all ? NULL : exported,
		said->given & 1u << BATCH_CONDA ? said->conda : given->conda,
		said->given & 1u << BATCH_SETUP ? said->setup : given->setup };
	uint64_t hash = TEXT_HASH_BEGIN;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const char *part = parts[i] ? parts[i] : "";

		hash = text_hash(hash, part, strlen(part) + 1);
	}
	return hash ? hash : 1;
}

/* --- the GPUs as the value of an option -------------------------------------------- */

/* Whether @line has the word of @size bytes at @option, alone or followed by `=`. */
static bool has_option_word(const char *line, const char *option, size_t size)
{
	static const char blanks[] = " \t", ends[] = " \t=";
	const char *at = line;

	while ((at = memmem(at, strlen(at), option, size))) {
		if ((at == line || strchr(blanks, at[-1])) &&
			(!at[size] || strchr(ends, at[size])))
			return true;
		at++;
	}
	return false;
}

char *batch_inject(const struct settings *defaults, const struct batch_line *line)
{
	static const char gpus[] = "{gpus}";
	const struct batch_attributes *said = &line->attributes;
	const char *option = defaults->environment.inject, *command = line->command;
	bool has_gpus = settings_count_gpus(said, &defaults->request) > 0;
	size_t size = option ? strcspn(option, "=") : 0;
	size_t room = strlen(command) + (option ? strlen(option) : 0) + sizeof(gpus) + 2;
	char *out = malloc(room);
	struct text text;

	if (!out)
		return NULL;
	text = text_on(out, room);
	text_add(&text, command);
	if (option && has_gpus && !has_option_word(command, option, size))
		text_addf(&text, " %s%s%s", option, option[size] ? "" : " ", gpus);
	return out;
}

#include <strings.h>

#include "batch_settings.h"
#include "inject.h"
#include "setup.h"
#include "words.h"

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
	/* without these options the hash is that of earlier versions */
	if (given->inject)
		hash = text_hash(hash, given->inject, strlen(given->inject) + 1);
	if (given->inject_style == INJECT_PHYSICAL)
		hash = text_hash(hash, "physical", sizeof("physical"));
	return hash ? hash : 1;
}

/* --- the GPUs as the value of an option -------------------------------------------- */

/*
 * Finds the first word at or after @at that is @option in one of its forms; @size is the length of
 * @option without a final `=`.  Sets *@ret_end to the end of its value.  @word has room for each
 * word.  NULL: there is none.
 */
static const char *find_option(const char *at, const char *option, size_t size,
	struct text word, const char **ret_end)
{
	struct text taken = word;

	for (const char *begin = at; words_take(&at, &taken); begin = at, taken = word) {
		const char *value = at + strspn(at, " \t");

		if (strncmp(word.at, option, size) != 0 ||
			(word.at[size] != '=' && word.at[size] != option[size]))
			continue;
		taken = word;
		if (!word.at[size] && !strchr("#;|&<>()", *value) &&
			words_take(&value, &taken) && inject_is_value(word.at))
			at = value;
		*ret_end = at;
		return begin + strspn(begin, " \t;|&<>()");
	}
	return NULL;
}

char *batch_inject(const struct settings *defaults, const struct batch_line *line)
{
	static const char gpus[] = "{gpus}";
	const char *option = defaults->environment.inject, *at = line->command, *found;
	bool is_wanted = settings_count_gpus(&line->attributes, &defaults->request) > 0;
	size_t size, room = strlen(at) + 1, grown;
	char *made;
	struct text out;

	if (!option)
		return strdup(at);
	size = strcspn(option, "=");
	grown = room + strlen(option) + sizeof(gpus) + 2;
	made = malloc(grown + room);
	if (!made)
		return NULL;
	out = text_on(made, grown);
	do {
		const char *end = at;

		found = find_option(at, option, size, text_on(made + grown, room), &end);
		text_add_bytes(&out, at, found ? (size_t)(found - at) : strlen(at));
		if (is_wanted)
			text_addf(&out, "%s%.*s%s%s", found ? "" : " ", (int)size, option,
				option[size] || (found && found[size] == '=') ? "=" : " ",
				gpus);
		is_wanted = false;
		at = end;
	} while (found);
	return made;
}

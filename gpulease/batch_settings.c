/* What a line of a jobs file, and the command line for all of them, ask for together. */
#include "batch_child.h"
#include "setup.h"

/* How many GPUs: one that declares memory has at least one. */
static unsigned count_gpus(
	const struct batch_attributes *line, const struct settings *defaults)
{
	if (line->given & 1u << BATCH_GPUS)
		return line->gpus;
	return defaults->gpus || !line->vram_mib ? defaults->gpus : 1;
}

/* What a line says of its GPUs is all that counts of those, and so it is of memory. */
static void settle_need(const struct batch_attributes *line, struct settings *s)
{
	bool has_gpus = line->given & 1u << BATCH_GPUS;
	bool has_vram = line->given & 1u << BATCH_VRAM;

	s->gpus = count_gpus(line, s);
	if (has_gpus) {
		s->share_percent = line->share_percent;
		s->gpus_given = true;
		/* no GPU has no memory, and a share is not all of one */
		if (!s->gpus)
			s->vram_mib = 0;
		if (s->share_percent)
			s->exclusive = false;
	}
	if (has_vram) {
		s->vram_mib = line->vram_mib;
		/* it says how much of a GPU, better than what goes for any line */
		if (!has_gpus)
			s->share_percent = 0;
	}
	s->need_given = s->need_given || has_gpus || has_vram;
}

/* What has its place in the attributes beats what goes for all lines. */
static void settle_rest(const struct batch_attributes *line, struct settings *s)
{
	if (line->given & 1u << BATCH_TIMEOUT) {
		s->limit_ms = line->limit_ms;
		s->limit_given = true;
	}
	if (line->given & 1u << BATCH_RETRIES)
		s->oom_retries = line->oom_retries;
	if (line->given & 1u << BATCH_FAIL_RETRIES)
		s->retries = line->retries;
	if (line->given & 1u << BATCH_PRIORITY) {
		s->priority = line->priority;
		s->priority_given = true;
	}
	if (line->given & 1u << BATCH_ALLOW)
		s->allow = line->allow;
	if (line->given & 1u << BATCH_CONDA)
		s->conda = line->conda;
	if (line->given & 1u << BATCH_SETUP)
		s->setup = line->setup;
	s->name = line->given & 1u << BATCH_NAME ? line->name : NULL;
}

/* --batch is no verb any more; what it does with all jobs is not theirs. */
static void become_job(struct settings *s)
{
	s->verb = VERB_RUN;
	s->submit = true; /* supervised, reported, its output is a log */
	s->json = s->quiet = s->watch = s->once = s->fresh = s->fail_fast = false;
	s->operands = NULL;
	s->operand_count = 0;
	s->log_dir = s->inject = NULL;
	/* others are waited for before it has a ticket */
	s->after = s->after_ok = NULL;
	s->after_ids[0] = s->after_ok_ids[0] = '\0';
}

void batch_settings(const struct settings *defaults, const struct batch_line *line,
	uint64_t vram_mib, char *words[4], struct settings *ret)
{
	static char shell[] = "/bin/sh", minus_c[] = "-c";
	size_t count = 0;

	*ret = *defaults;
	become_job(ret);
	settle_need(&line->attributes, ret);
	settle_rest(&line->attributes, ret);
	if (vram_mib && ret->gpus)
		ret->vram_mib = vram_mib;
	ret->line = line->command;
	/* a shell that sets it up evaluates the line as well */
	if (!setup_is_wanted(ret)) {
		words[count++] = shell;
		words[count++] = minus_c;
	}
	words[count++] = (char *)line->command;
	words[count] = NULL;
	ret->command = words;
}

/* --- the GPUs as the value of an option -------------------------------------------- */

/* Whether @line has the word of the @size bytes at @option, with a value behind `=` or without. */
static bool has_option(const char *line, const char *option, size_t size)
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
	const char *option = defaults->inject, *command = line->command;
	bool has_gpus = count_gpus(said, defaults) > 0;
	size_t size = option ? strcspn(option, "=") : 0;
	size_t room = strlen(command) + (option ? strlen(option) : 0) + sizeof(gpus) + 2;
	char *out = malloc(room);
	struct text text;

	if (!out)
		return NULL;
	text = text_on(out, room);
	text_add(&text, command);
	if (option && has_gpus && !has_option(command, option, size))
		text_addf(&text, " %s%s%s", option, option[size] ? "" : " ", gpus);
	return out;
}

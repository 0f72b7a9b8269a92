#include "diag.h"
#include "ignored_options.h"
#include "text.h"

void ignored_options_note(struct settings *settings)
{
	char words[640];
	struct text text = TEXT_ON(words);

	for (unsigned i = 0; i < settings->ignored_count; i++) {
		const struct ignored_option *option = &settings->ignored[i];
		const char *next =
			i + 1 < settings->ignored_count ? option[1].note : NULL;

		if (!option->note) {
			verbose("--%s is accepted and ignored", option->name);
			continue;
		}
		text_addf(&text, "%s--%s", text.used ? ", " : "", option->name);
		/* neighbours in the table of options share their note */
		if (!next || strcmp(next, option->note) != 0)
			text_addf(&text, " (%s)", option->note);
	}
	if (text.used)
		note("no effect here: %s", words);
	if (settings->tasks.note)
		note("%s", settings->tasks.note);
	/* once: a process of a batch goes on with a copy */
	settings->ignored_count = 0;
	settings->tasks.note = NULL;
}

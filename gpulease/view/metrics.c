#include <errno.h>
#include <stdio.h>

#include "gpulease_words.h"
#include "diag.h"
#include "exitcodes.h"
#include "metrics.h"
#include "metrics_text.h"
#include "replace_file.h"

/* gpulease waits 2 s for nvidia-smi; the rest is for a machine that is busy. */
enum { DEADLINE_MS = 30 * 1000 };

/* Prints the machine to memory first, so that an error leaves the file as it was. */
static int write_machine(const char *path, const struct machine *machine)
{
	autofree char *text = NULL;
	struct why why = WHY_NONE;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int r = memory ? metrics_text_print(machine, memory) : -errno;

	if (memory && fclose(memory) != 0 && r == 0)
		r = -errno;
	if (r < 0)
		why_set(&why, "cannot make the metrics: %s", strerror(-r));
	else /* another user reads it, whatever the umask is */
		r = replace_file(path, text, size, 0644, &why);
	if (r < 0)
		diag("%s", why.text);
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}

int metrics_main(const struct settings *settings)
{
	const struct verb_settings *verb = &settings->verb;
	struct machine machine = MACHINE_NONE;
	struct gpulease_words words;
	struct answer answer;
	int r = gpulease_words_begin(&words, settings);

	if (r)
		return r;
	gpulease_words_add(&words, "--status");
	gpulease_words_add(&words, "--json");
	r = gpulease_words_run(&words, DEADLINE_MS, &answer);
	if (r)
		return r;
	if (answer.error[0]) /* a warning of gpulease, such as that it ignores --config */
		(void)fprintf(stderr, "%s\n", answer.error);
	r = machine_read(answer.text, answer.size, &machine);
	answer_release(&answer);
	if (r == 0)
		r = write_machine(
			verb->operand_count ? verb->operands[0] : "-", &machine);
	else {
		diag("cannot read what gpulease prints: %s", strerror(-r));
		r = EXIT_MISUSE;
	}
	machine_release(&machine);
	return r;
}

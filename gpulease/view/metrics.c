#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "answer.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "metrics.h"
#include "metrics_text.h"

/* gpulease waits 2 s for nvidia-smi; the rest is for a machine that is busy. */
enum { DEADLINE_MS = 30 * 1000 };

/* --- the file --------------------------------------------------------------------------- */

/* Writes the new file @temporary, which ends with XXXXXX, and renames it to @path. */
static int replace(const char *path, char *temporary, const char *text, size_t size)
{
	autofd int fd = mkostemp(temporary, O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = fdio_pwrite(fd, text, size, 0);
	/* another user reads it, whatever the umask is */
	if (r == 0 && fchmod(fd, 0644) < 0)
		r = -errno;
	if (r == 0 && close(take_fd(&fd)) < 0)
		r = -errno;
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(temporary);
	return r;
}

static int write_file(const char *path, const char *text, size_t size)
{
	char temporary[PATH_MAX];
	struct text name = TEXT_ON(temporary);
	struct stat st;
	int r;

	/* rename(2) would put a file in the place of /dev/stdout, if root asks for that */
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		diag("cannot write '%s': it is no regular file; name a file, or `-` to print",
			path);
		return EXIT_MISUSE;
	}
	text_add_bytes(&name, path, (size_t)(text_base_name(path) - path));
	text_add(&name, ".gpulease-metrics.XXXXXX");
	r = name.cut ? -ENAMETOOLONG : replace(path, temporary, text, size);
	if (r == 0)
		return EXIT_DONE;
	diag("cannot write '%s': %s", path, strerror(-r));
	return EXIT_MISUSE;
}

/* --- all of it -------------------------------------------------------------------------- */

static int write_text(const char *path, const char *text, size_t size)
{
	if (path && strcmp(path, "-") != 0)
		return write_file(path, text, size);
	(void)fwrite(text, 1, size, stdout); /* view_main.c checks stdout */
	return EXIT_DONE;
}

/* Prints the machine to memory first, so that an error leaves the file as it was. */
static int write_machine(const char *path, const struct machine *machine)
{
	autofree char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);
	int r = memory ? metrics_text_print(machine, memory) : -errno;

	if (memory && fclose(memory) != 0 && r == 0)
		r = -errno;
	if (r == 0)
		return write_text(path, text, size);
	diag("cannot make the metrics: %s", strerror(-r));
	return EXIT_MISUSE;
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
			verb->operand_count ? verb->operands[0] : NULL, &machine);
	else {
		diag("cannot read what gpulease prints: %s", strerror(-r));
		r = EXIT_MISUSE;
	}
	machine_release(&machine);
	return r;
}

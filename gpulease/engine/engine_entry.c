#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "diag.h"
#include "engine_entry.h"
#include "exitcodes.h"
#include "fdio.h"
#include "parse.h"
#include "slurm_ask.h"
#include "submit_output.h"

enum { ENTRY_SIZE_MAX = 1024 * 1024 };

/* What stands before the state of the job in the file. */
static const char stop_marks[][2] = {
	[STOP_NONE] = "", [STOP_TRIED] = "?", [STOP_TAKEN] = "!"
};

/* --- the file -------------------------------------------------------------------------- */

/* Takes the next text, with its NUL, from what is left.  NULL: there is none. */
static char *take_text(char **at, const char *end)
{
	char *text = *at,
	     *nul = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

	if (nul)
		*at = nul + 1;
	return nul ? text : NULL;
}

/* Reads the @size bytes at @text into the fields.  Returns 0 or -EINVAL. */
static int parse_entry(struct engine_entry *entry, char *text, size_t size)
{
	const char *end = text + size;
	char *token = take_text(&text, end), *id = take_text(&text, end),
	     *state = take_text(&text, end), *status = take_text(&text, end),
	     *ran = take_text(&text, end), *log = take_text(&text, end);
	uint64_t number, code, seconds;

	if (!log || text == end || end[-1] ||
		parse_u64(id, UINT64_MAX, &number, NULL) < 0 ||
		parse_u64(status, 255, &code, NULL) < 0 ||
		parse_u64(ran, UINT64_MAX, &seconds, NULL) < 0)
		return -EINVAL;
	text_copy(entry->token, sizeof(entry->token), token);
	entry->stop = STOP_NONE;
	for (size_t i = STOP_TRIED; i < ARRAY_SIZE(stop_marks); i++)
		if (state[0] == stop_marks[i][0])
			entry->stop = (enum entry_stop)i;
	text_copy(entry->end, sizeof(entry->end), state + (entry->stop != STOP_NONE));
	entry->id = number;
	entry->status = code;
	entry->ran_s = seconds;
	entry->log = log;
	entry->words = (struct entry_words){ text, (size_t)(end - text) };
	return 0;
}

int entry_read(struct engine_entry *entry)
{
	char *text;
	size_t size;
	int r = fdio_read_all(AT_FDCWD, entry->path, 1, ENTRY_SIZE_MAX, &text, &size);

	if (r != 0)
		return r == FDIO_NONE ? ENTRY_NONE : r;
	r = parse_entry(entry, text, size);
	if (r < 0)
		free(text);
	else
		entry->text = text;
	return r;
}

int entry_write(const struct engine_entry *entry)
{
	char temporary[PATH_MAX + 8], *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	(void)fprintf(out, "%s%c%llu%c%s%s%c%llu%c%llu%c%s%c", entry->token, '\0',
		(unsigned long long)entry->id, '\0', stop_marks[entry->stop], entry->end,
		'\0', (unsigned long long)entry->status, '\0',
		(unsigned long long)entry->ran_s, '\0', entry->log, '\0');
	(void)fwrite(entry->words.at, 1, entry->words.size, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	(void)snprintf(temporary, sizeof(temporary), "%s.new", entry->path);
	(void)unlink(temporary); /* a process that was killed may have left it */
	r = fdio_replace(AT_FDCWD, entry->path, temporary, text, size, 0600);
	free(text);
	return r;
}

void entry_forget_job(struct engine_entry *entry, bool is_last)
{
	entry->token[0] = entry->end[0] = '\0';
	entry->stop = STOP_NONE;
	entry->id = entry->status = entry->ran_s = 0;
	if (is_last || entry_write(entry) < 0)
		(void)unlink(entry->path);
}

/* --- its job --------------------------------------------------------------------------- */

static int report_file(const struct engine_entry *entry, int error)
{
	diag("cannot write '%s': %s", entry->path, strerror(-error));
	return EXIT_MISUSE;
}

/* Submits the job with the token of the entry.  Returns like entry_submit(). */
static int send_job(struct engine_entry *entry)
{
	static struct engine_line line; /* too big for the stack */
	char log[PATH_MAX * 2];
	struct text text = TEXT_ON(log);
	struct submission job = { .line = &line, .log = log };
	struct why why = WHY_NONE;
	int r = entry_words_read(&entry->words, &line, &why);

	if (r < 0) {
		diag("%s", why.text[0] ? why.text : strerror(-r));
		return EXIT_MISUSE;
	}
	submit_output_literally(entry->log, &text);
	text_copy(job.token, sizeof(job.token), entry->token);
	r = submission_send(&job, &entry->id);
	if (r == 0)
		submission_link_log(&job, entry->id);
	return r;
}

int entry_submit(struct engine_entry *entry)
{
	bool is_new = !entry->token[0];
	int r;

	if (entry->id)
		return 0;
	if (is_new) {
		submission_make_token(entry->token);
		r = entry_write(entry);
		if (r < 0)
			return report_file(entry, r);
	}
	r = is_new ? SUBMISSION_NONE
		   : submission_find(entry->token, SLURM_DEADLINE_MS, &entry->id);
	if (r == SUBMISSION_NONE)
		r = send_job(entry);
	if (r == SUBMISSION_LOST)
		diag("Slurm does not answer");
	if (r != 0)
		return r;
	r = entry_write(entry);
	/* without its id the job is found by its token */
	return r < 0 ? report_file(entry, r) : 0;
}

int entry_cancel(const struct engine_entry *entry, bool is_waiting)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	int r;

	slurm_words_add(&words, "scancel");
	if (is_waiting)
		slurm_words_add(&words, "--state=PENDING");
	slurm_words_addf(&words, "%llu", (unsigned long long)entry->id);
	r = slurm_ask_well(&words, -1, &answer);
	slurm_words_release(&words);
	if (r == 0)
		answer_release(&answer);
	return r;
}

static void note_stop(struct engine_entry *entry, enum entry_stop stop)
{
	if (entry->stop >= stop)
		return;
	entry->stop = stop;
	if (entry_write(entry) < 0)
		verbose("cannot write '%s'", entry->path);
}

int entry_stop(struct engine_entry *entry)
{
	int r;

	note_stop(entry, STOP_TRIED);
	r = entry_cancel(entry, false);
	if (r == 0)
		note_stop(entry, STOP_TAKEN);
	return r;
}

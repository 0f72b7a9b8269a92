/*
 * --note TEXT: a job says something of itself, which --status then shows: "epoch 5/100".  The text
 * is kept in the lease, so it ends with it.
 */
#include "broker.h"
#include "clock.h"
#include "commit.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "job_step.h"
#include "rlimits.h"
#include "verbs.h"

enum { LOCK_TRIES = 20 }; /* of 50 ms each */

static struct context context;
static struct broker broker; /* too big for the stack */

/* Writes @text into the lease of this process.  Returns 0 or an exit status after a message. */
static int note_write(const char *text)
{
	const struct snapshot_lease *own = job_step_find_lease(&broker.view);
	char token[TOKEN_SIZE], note_text[NOTE_SIZE];
	struct gpuset gpus;
	int r = COMMIT_LOCKED;

	if (!own) {
		diag("--note is for the inside of a job that has GPUs, and this process is in none");
		return EXIT_NOT_DONE;
	}
	text_copy(token, sizeof(token), own->lease.owner.token);
	text_copy(note_text, sizeof(note_text), text);
	gpus = own->lease.gpus;
	for (int tries = LOCK_TRIES; tries > 0 && r == COMMIT_LOCKED; tries--)
		r = commit_note_text(&broker.view, token, &gpus, note_text);
	if (r == 0)
		return 0;
	diag("cannot write the note into the lease: %s",
		r < 0 ? strerror(-r) : "its file is locked by another process");
	return EXIT_MISUSE;
}

int verb_note(struct settings *settings)
{
	int r;

	rlimits_raise();
	r = context_open(settings, &context);
	if (r != 0)
		return r;
	r = broker_init(&broker, &context.dir, &context.prober);
	if (r == 0)
		r = broker_survey(&broker);
	if (r == 0)
		return note_write(settings->verb.operands[0]);
	diag("cannot use the state in '%s': %s", context.dir.path, strerror(-r));
	return EXIT_MISUSE;
}

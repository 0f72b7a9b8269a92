/*
 * The command line that runs gpulease from gpulease-view.
 */
#ifndef GPULEASE_GPULEASE_WORDS_H
#define GPULEASE_GPULEASE_WORDS_H

#include "answer.h"
#include "settings.h"

enum { GPULEASE_WORDS_MAX = 32 };

/* The words of a command that runs gpulease. */
struct gpulease_words {
	char *list[GPULEASE_WORDS_MAX + 1];
	size_t count;
	char program[4096], sim[48];
};

/*
 * Begins with the path of gpulease and the options of @settings that say which machine it is:
 * --engine, --config, --dir, --sim.  Returns 0, or EXIT_MISUSE after a message.
 */
MUST_CHECK int gpulease_words_begin(
	struct gpulease_words *words, const struct settings *settings);

/* Appends a word, which has to stay. */
void gpulease_words_add(struct gpulease_words *words, const char *word);

/*
 * Runs the words and waits, for @deadline_ms at most.  Returns 0 with the answer, which the caller
 * releases, or EXIT_MISUSE after a message: its own, or that of gpulease.
 */
MUST_CHECK int gpulease_words_run(
	struct gpulease_words *words, int64_t deadline_ms, struct answer *ret);

#endif

/*
 * A job of a batch, in its own process: what it tells the runner and the journal.  Everywhere
 * else these do nothing.
 *
 * The runner holds the other end of a socket.  Through it go events, a line each, to the
 * runner; and from it single bytes: BATCH_RECALL, the line is gone or was changed, which counts
 * while no command runs; BATCH_STOP, the end that comes now is the runner's doing; BATCH_BY_LINE,
 * it is cancelled by the word in its line.  When the runner dies the socket ends: who has not
 * started yet gives up, who has goes on.
 *
 * A full socket loses what is told: the journal has what counts, and the runner learns of the
 * end of its child in any case.  An event that could not be put into the journal, an end for some
 * seconds, has BATCH_UNKEPT in front of its line: the runner is to do it.
 */
#ifndef GPULEASE_BATCH_MEMBER_H
#define GPULEASE_BATCH_MEMBER_H

#include "batch_event.h"
#include "care.h"
#include "launch.h"
#include "sampler.h"

enum { BATCH_RECALL = 'r', BATCH_STOP = 's', BATCH_BY_LINE = 'l', BATCH_UNKEPT = '!' };

struct batch_member {
	uint64_t number;
	uint64_t declared_mib; /* as its line said */
	int runner_fd, journal_fd, lock_fd;
	bool tells_memory;
};

/*
 * This process is that job from now on.  TERM is treated as usual, but for one that follows
 * BATCH_STOP: that one does not end it while it waits, for it leaves the queue by itself.
 */
void batch_member_begin(const struct batch_member *member);

bool in_batch(void);

/* To be watched while it waits; -1 elsewhere, and once the runner has died. */
int batch_leash(void);

/* Whether it is to give up, or has, while it waits: for its first attempt or for another. */
bool batch_is_recalled(void);

/* Whether the runner has said that what ends it now is its doing: nothing is tried again. */
bool batch_is_stopped(void);

/*
 * It cannot begin now, for @text; another time.  False elsewhere; else the runner was told, and
 * the process is to end without a word.
 */
bool batch_is_put_off(const char *text);

/* It has its ticket; why it waits. */
void batch_tell_queued(uint64_t ticket);
void batch_tell_waiting(const char *words);

/* It was cancelled, while it waits, by the user of this name. */
void batch_note_cancel(const char *by);

/*
 * The command is about to be started, for the first time or again; TERM is blocked.  In the
 * journal before it is, and the lock is let go.  0; or -ECANCELED, and then it must not be: it
 * was recalled, or it was put off, for the journal cannot be written.
 */
MUST_CHECK int batch_tell_started(
	const struct broker *broker, const struct launch *launch, int64_t waited_ms);

/* What it uses has grown by so much that it is worth a line. */
void batch_tell_memory(const struct sampler *sampler);

/* The attempt that was told last has ended, and @next comes after it. */
struct batch_attempt {
	const struct attempt_end *end;
	const struct sampler *sampler;
	enum care_next next;
	int64_t delay_ms;
	uint64_t next_mib; /* what the next one declares */
	const char *by;    /* the name of who cancelled it, "" */
};

void batch_tell_attempt(const struct batch_attempt *attempt);

/* The attempt that was told last was the last one, after all: the job has ended as it has. */
void batch_tell_no_other(void);

/*
 * The process is about to end with @status, and no command of it runs.  Where no end was told
 * yet, that of a job that could not be run is, or not again, with the reason; or that it was
 * cancelled while it waited.  Who was recalled has no end: before its first attempt nothing is
 * told, and its log is as if it had not waited; after one that it was interrupted.
 */
void batch_member_end(int status);

#endif

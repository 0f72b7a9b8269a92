/*
 * The two FIFOs of a ticket.
 *
 * live/TOKEN says "somebody of this lease still lives": its owner and the command it becomes
 * hold it open for writing, the kernel lets go with the last of them.  It tells across users,
 * pid namespaces and hidden /proc alike.  bell/TOKEN is the doorbell of a waiting ticket: a
 * byte written to it wakes its owner.
 *
 * A FIFO gets its final name only after its owner has opened it, so a named one without a
 * writer proves death, and anybody may remove it.  A crash before the rename leaves a
 * temporary name that carries its owner's identity; beacon_sweep() removes both kinds.
 */
#ifndef GPULEASE_BEACON_H
#define GPULEASE_BEACON_H

#include "owner.h"

struct statedir;

#define BEACON_LIVE "live"
#define BEACON_BELL "bell"

/* HELD: somebody has it open for writing.  GONE: nobody, or it has been removed. */
enum beacon_state { BEACON_GONE, BEACON_HELD, BEACON_UNDECIDED };

/*
 * Makes the FIFO of @owner in @folder (BEACON_LIVE or BEACON_BELL) below the state directory.
 * Returns its descriptor, open for reading and writing, non-blocking, or a negative errno.
 */
MUST_CHECK int beacon_create(
	const struct statedir *dir, const char *folder, const struct owner *owner);

/*
 * Looks at live/@token.  When HELD, *@ret_fd becomes a descriptor that polls POLLHUP once the
 * last writer goes (read first, as was done here: one opened too late never reports it).
 * @ret_fd may be NULL.  UNDECIDED: no descriptor left, or not readable for this user.  A FIFO whose
 * owner has made it unreadable for others is GONE.
 */
enum beacon_state beacon_look(const struct statedir *dir, const char *token, int *ret_fd);

/* Looks again at a descriptor from beacon_look(). */
enum beacon_state beacon_look_again(int fd);

/*
 * Closes what this process has inherited of live/@token: the job may be over then although this
 * process goes on.
 */
void beacon_let_go(const struct statedir *dir, const char *token);

/* Whether the FIFO of @token has its name in @folder; a bell is not looked into. */
bool beacon_is_named(const struct statedir *dir, const char *folder, const char *token);

/* Removes the FIFO of @token from @folder, if it is there. */
void beacon_remove(const struct statedir *dir, const char *folder, const char *token);

/* Rings the doorbell of @token; nothing happens where nobody has it open. */
void beacon_ring(const struct statedir *dir, const char *token);

/*
 * Rings every doorbell, however many there are: a pause, a resume or a new limit concerns all
 * tickets that wait.  Removes the bells of dead owners.
 */
void beacon_ring_all(const struct statedir *dir);

/* Empties the own bell @fd. */
void beacon_drain(int fd);

/*
 * Removes the litter of crashes from both folders: FIFOs that no process holds, temporary names
 * whose makers are dead.  In a folder with many names one sweep looks into about a thousand of
 * them, chosen by chance.
 */
void beacon_sweep(const struct statedir *dir);

/*
 * Calls @act with the token of every FIFO in live/ that has a writer or may have one, until @act
 * returns something but 0.  Returns 0 (also where there is no live/), what @act returned, or
 * another negative errno.
 */
MUST_CHECK int beacon_each_held(
	const struct statedir *dir, int (*act)(void *arg, const char *token), void *arg);

#endif

/*
 * The live FIFO, live/TOKEN: tells whether any process of a lease still lives.
 *
 * The owner of the lease and the command that it becomes hold it open for writing.  The kernel
 * closes it with the last of these processes.  So a reader sees the end across users, pid
 * namespaces and a hidden /proc.  See fifo.h for how the FIFO is made, and what a crash leaves.
 */
#ifndef GPULEASE_LIVE_FIFO_H
#define GPULEASE_LIVE_FIFO_H

#include "fifo.h"

/*
 * HELD: a process has it open for writing.  GONE: no process has, or the FIFO was removed, or this
 * process may not read it because its owner has changed the access to it.  UNDECIDED: this process
 * cannot tell, because it has no descriptor left, may not read the FIFO for another reason, or
 * found something else in its place.
 */
enum live_fifo_state { LIVE_FIFO_GONE, LIVE_FIFO_HELD, LIVE_FIFO_UNDECIDED };

/*
 * Looks at live/@token.  If it is HELD, sets *@ret_fd to a descriptor that polls POLLHUP when the
 * last writer closes it; else to -1.  @ret_fd may be NULL.
 *
 * The function reads from the descriptor before it returns it.  Poll alone would not do: a FIFO
 * that is opened after its last writer has gone never reports POLLHUP.
 */
enum live_fifo_state live_fifo_look(
	const struct statedir *dir, const char *token, int *ret_fd);

/* Looks again at a descriptor from live_fifo_look(). */
enum live_fifo_state live_fifo_look_again(int fd);

/*
 * Closes the writing ends of live/@token that this process has inherited, so that the job can be
 * over while this process goes on.
 */
void live_fifo_close_inherited(const struct statedir *dir, const char *token);

/*
 * Calls @act with the token of every FIFO in live/ that is HELD or UNDECIDED, until @act returns
 * something but 0.  Returns 0 (also if there is no live/), what @act returned, or another
 * negative errno (-ENOTDIR: live/ was removed and something else has its name, which may stand
 * for a job).
 */
MUST_CHECK int live_fifo_each_held(
	const struct statedir *dir, int (*act)(void *arg, const char *token), void *arg);

/*
 * Removes FIFOs without a writer from live/, and what belongs to them: fifo_sweep_folder().
 * @is_leased and @leases are as in struct fifo_sweep.
 */
void live_fifo_sweep(const struct statedir *dir,
	bool (*is_leased)(void *leases, const char *token), void *leases);

#endif

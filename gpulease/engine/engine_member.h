/*
 * gpulease-engine member FILE PID: the command of the local job that stands for a job of Slurm.
 * FILE is that of an entry of a batch (engine_entry.h), PID its supervisor.
 *
 * It waits for the end of the job and exits with its status.  TERM, HUP and INT cancel the job of
 * Slurm; its end is still waited for.  The state in which that ended is in the file, for the cause
 * that the journal of the batch gets.
 *
 * Killed, it leaves the job of Slurm running: its supervisor cancels that job.  Without its
 * supervisor it ends at once, and the next one takes its place.
 */
#ifndef GPULEASE_ENGINE_MEMBER_H
#define GPULEASE_ENGINE_MEMBER_H

/* Runs it.  @argv begins with FILE.  Returns the exit status. */
int engine_member(char **argv);

#endif

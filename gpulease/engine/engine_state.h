/*
 * The folder of this user for one cluster: STATE/gpulease/slurm/CLUSTER, where STATE is
 * $XDG_STATE_HOME or ~/.local/state.  The nodes have to see it, too, as they see the home
 * directory.
 *
 *	logs/ID.log     what a job of --submit prints; with -o a link
 *	logs/ID.status  written by the script of the job on its node: the token of the job, and
 *			once the command has ended a blank, its exit status, and " told" if the
 *			script was told before to end; "reused" until then if another job had
 *			the id
 *	poll.*          the last answer of squeue, and locks (engine_poll.h)
 *
 * A job that is killed leaves a status file without a status.
 */
#ifndef GPULEASE_ENGINE_STATE_H
#define GPULEASE_ENGINE_STATE_H

#include <limits.h>

#include "text.h"

/*
 * Makes the folder and logs/ in it.  Returns its path, which stays; NULL after a message.  The name
 * of the cluster is read from slurm.conf, or else asked for and kept.
 */
const char *engine_state_folder(void);

/* Writes the path of the log of job @id.  Returns 0, or EXIT_MISUSE after a message. */
MUST_CHECK int engine_state_log(uint64_t id, char out[PATH_MAX]);

/* Returns the exit status that the script of job @id has recorded; -1: none. */
int engine_state_record(uint64_t id);

/*
 * Returns the status of a job that had ended some seconds before @end_s, when Slurm says that it
 * has, and before any process told it to; -1: there is none.  Of a job that Slurm cancels at the
 * moment of its end, the script may not have seen the signal.
 */
int engine_state_record_untold(uint64_t id, int64_t end_s);

/* Whether LOGS/ID.log may be that of another job, which had the id before this one, which waits. */
bool engine_state_has_old_log(uint64_t id);

/*
 * Finds `ClusterName = NAME` in @text, which is changed: slurm.conf, or what scontrol prints.
 * Returns whether there is a name that can be the name of a folder.  Pure.
 */
bool engine_state_read_name(char *text, char *out, size_t size);

#endif

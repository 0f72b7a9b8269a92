/*
 * The script that sbatch gets for --submit.
 */
#ifndef GPULEASE_SUBMIT_SCRIPT_H
#define GPULEASE_SUBMIT_SCRIPT_H

#include "base.h"

/*
 * The script itself begins with these words of node_order_add(), `/bin/sh -c TEXT gpulease`, unless
 * its command is srun: so squeue shows the command and not the text.
 */
enum { SUBMIT_SCRIPT_HAS = 4 };

/*
 * Returns a descriptor from which the script can be read, or a negative errno.  Its arguments are
 * the folder of the logs, the token of the job, and the words for the node, or for srun.
 */
MUST_CHECK int submit_script_open(void);

#endif

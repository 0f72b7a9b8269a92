/*
 * `gpulease-slurm array`: the command of the job that stands for an array.  It takes no GPU.  It
 * submits the tasks, as jobs of their own with the names N_i, no more at a time than the limit
 * says, and exits with the highest of their statuses.
 *
 * A long array does not fill the queue: at most 16 of its tasks wait there, as with the lines of a
 * jobs file.
 *
 * The process has a parent, which starts it again if it is killed; array_record.h has what was done
 * by then.  If the parent is killed, the process goes on.  The tasks need neither of them.
 */
#ifndef GPULEASE_ARRAY_PART_H
#define GPULEASE_ARRAY_PART_H

/* Runs the array that @argv, which begins with the word `array`, describes. */
int array_main(char **argv);

#endif

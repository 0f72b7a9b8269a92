/*
 * scontrol: the parts of it that scripts use, above all `show hostnames`.
 */
#ifndef GPULEASE_SCONTROL_H
#define GPULEASE_SCONTROL_H

/* Runs scontrol with its words; the first is its name.  Returns the exit status. */
int scontrol_main(char **argv);

#endif

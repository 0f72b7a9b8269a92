/*
 * /proc/PID of any process, as far as the kernel shows it to this one.
 *
 * Mounted with hidepid it shows a process only to who might trace it, and that takes equal
 * groups: with a group lent (rights.h) this process would see none of its user's others, not
 * even its children.  So what is not to be seen with the rights of this process is looked for
 * with the user's.  A process that has a group lent itself stays hidden to its user: that it
 * is not seen does not mean that it has ended.
 *
 * Not between rights_as_user_begin() and its end.
 */
#ifndef GPULEASE_PROC_H
#define GPULEASE_PROC_H

#include "base.h"

/* Opens /proc/@pid/@name for reading: a descriptor, or a negative errno (not there, hidden). */
int proc_open(uint32_t pid, const char *name);

/* Reads it as text: at most @size - 1 bytes and a NUL.  0 or a negative errno. */
MUST_CHECK int proc_read_text(uint32_t pid, const char *name, char *out, size_t size);

/* The effective user of process @pid.  0 or a negative errno. */
MUST_CHECK int proc_find_user(uint32_t pid, uint32_t *ret_uid);

/*
 * The real user of process @pid: unlike the effective one it stays the same in a set-user-ID
 * program.  0 or a negative errno.
 */
MUST_CHECK int proc_find_real_user(uint32_t pid, uint32_t *ret_uid);

/*
 * The pids that are to be seen, as a new array *@ret (freed by the caller) of *@ret_count.  0 or
 * a negative errno.
 */
MUST_CHECK int proc_list(uint32_t **ret, size_t *ret_count);

/*
 * Likewise the children of this process, hidden ones too.  One may be missing while another
 * ends; all are where the kernel does not tell (before Linux 4.2, or built without it).
 */
MUST_CHECK int proc_list_children(uint32_t **ret, size_t *ret_count);

#endif

/*
 * Reads /proc/PID of any process, as far as the kernel shows it.
 *
 * /proc that is mounted with hidepid shows a process only to those that may trace it.  Tracing
 * takes equal groups, so with a lent group (rights.h) gpulease would not even see its own children.
 * Therefore, if a read fails with the rights of this process, it is repeated with the user's.  A
 * process that has a lent group itself stays hidden from its user: a process that cannot be seen
 * may still live.
 *
 * These functions must not be called between rights_as_user_begin() and rights_as_user_end().
 *
 * They fail with -ENOTSUP if /proc is that of another pid namespace (namespaces.h): its numbers
 * mean other processes.  Users are numbered as outside of the user namespace, as in records.
 */
#ifndef GPULEASE_PROC_H
#define GPULEASE_PROC_H

#include "base.h"

/* Writes the path /proc/@pid/@name.  Returns 0 or -ENOTSUP. */
enum { PROC_PATH_SIZE = 64 };
MUST_CHECK int proc_path(uint32_t pid, const char *name, char out[PROC_PATH_SIZE]);

/* Opens /proc/@pid/@name for reading.  Returns a descriptor or a negative errno. */
int proc_open(uint32_t pid, const char *name);

/*
 * Reads /proc/@pid/@name as text: at most @size - 1 bytes, and a NUL.  Returns 0 or a negative
 * errno.
 */
MUST_CHECK int proc_read_text(uint32_t pid, const char *name, char *out, size_t size);

/*
 * Reads the variable @name of the environment that process @pid was started with: at most @size - 1
 * bytes, and a NUL.  Returns PROC_FOUND; 0 if there is no such variable; -E2BIG if it is not among
 * the first 256 KiB of a longer environment; or another negative errno.
 */
enum proc_outcome { PROC_FOUND = 1 };
MUST_CHECK int proc_read_variable(uint32_t pid, const char *name, char *out, size_t size);

/* Finds the effective user of process @pid.  Returns 0 or a negative errno. */
MUST_CHECK int proc_find_user(uint32_t pid, uint32_t *ret_uid);

/*
 * Finds the real user of process @pid, which stays the same in a set-user-ID program, unlike the
 * effective user.  Returns 0 or a negative errno.
 */
MUST_CHECK int proc_find_real_user(uint32_t pid, uint32_t *ret_uid);

/*
 * Lists the visible processes with a pid of @from or higher; if /proc cannot be read from @from on,
 * the list also has lower pids.  Returns 0 and sets *@ret, which the caller frees, and *@ret_count;
 * or a negative errno.
 */
MUST_CHECK int proc_list(uint32_t from, uint32_t **ret, size_t *ret_count);

/*
 * Finds the pid of process @pid in its own pid namespace, which may be below this one.  Returns 0
 * or a negative errno (-ENODATA: the kernel does not tell, before Linux 4.1).
 */
MUST_CHECK int proc_find_inner_pid(uint32_t pid, uint32_t *ret);

/*
 * Lists the children of this process, also those that /proc hides; else like proc_list().  A child
 * may be missing while another one ends.  The list is empty if the kernel does not tell (before
 * Linux 4.2, or built without it).
 */
MUST_CHECK int proc_list_children(uint32_t **ret, size_t *ret_count);

#endif

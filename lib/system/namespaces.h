/*
 * The namespaces of this process, as far as they change what a number means: a pid in /proc, and a
 * uid in a record.
 *
 * Everything is read once, and kept across a fork.  A process that enters another namespace
 * afterwards gets stale answers; gpulease enters none.
 */
#ifndef GPULEASE_NAMESPACES_H
#define GPULEASE_NAMESPACES_H

#include "base.h"

/* Returns the inode of the pid namespace of this process; 0 if /proc does not show it. */
uint64_t namespaces_pidns(void);

/*
 * Whether /proc shows the pid namespace of this process.  After `unshare -p` without
 * `--mount-proc`, or `nsenter -m`, it is that of other processes: its numbers are theirs.  proc.h
 * reads nothing of such a /proc.
 */
bool namespaces_has_own_proc(void);

/*
 * Whether /proc shows all processes of the machine, of every pid namespace: this process is in the
 * first one, and nothing is hidden from it.
 */
bool namespaces_sees_all(void);

/*
 * Returns the number that user @uid of this user namespace has outside of it.  Records hold these
 * numbers, because the kernel shows them to processes outside.  Of a user namespace within another
 * one the kernel tells only one step.  A user without a number outside keeps the one inside.
 */
uint32_t namespaces_user_outside(uint32_t uid);

/* The same for the real user of this process: the owner of its tickets, leases and requests. */
uint32_t namespaces_own_user(void);

/* The same for @map, the text of a uid_map.  Pure. */
uint32_t namespaces_map_user(const char *map, uint32_t uid);

#endif

/*
 * To which lease a process belongs.  Three signs, each of which a process can lose, so any of
 * them is enough: the lease's owner is an ancestor; GPULEASE_TOKEN in the environment it was
 * started with; the tag, 63 bits of the token as its soft limit of file locks, which the
 * kernel has not enforced since 2.4, which is inherited over everything and readable for
 * all.
 *
 * All users can read a tag and put it on processes of their own.  So a sign counts only if the
 * process's real user is the lease's.  A lease of root's also includes processes that its owner has
 * started as another user.  A user can still forge the signs of that user's own leases.
 */
#ifndef GPULEASE_KIN_H
#define GPULEASE_KIN_H

#include "owner.h"

#define KIN_TOKEN_VARIABLE "GPULEASE_TOKEN"

/* The tag of @token: its lower 63 bits; 0 where it is no token. */
uint64_t kin_tag(const char *token);

/* The tag of process @pid, 0: none, or not to be seen. */
uint64_t kin_tag_of_process(uint32_t pid);

/* What process @pid shows of the lease it was started in, read once. */
struct kin {
	uint32_t pid, uid; /* its real user */
	bool has_uid;      /* false: its user cannot be seen, so it belongs to no lease */
	uint64_t tag;      /* 0: none */
	char token[TOKEN_SIZE]; /* "": none, or not to be seen */
};

void kin_read(uint32_t pid, struct kin *ret);

/* Reads only ->token, which costs most, into @kin. */
void kin_read_token(uint32_t pid, struct kin *kin);

/* Whether the process carries @token in its tag or its environment, whatever its user. */
bool kin_matches(const struct kin *kin, const char *token);

/* Whether the process carries the token of @owner, and its real user is that of @owner. */
bool kin_belongs(const struct kin *kin, const struct owner *owner);

/*
 * Whether @owner, a live process of this pid namespace, is an ancestor of the process, and has the
 * same real user or is root's.
 */
bool kin_descends(const struct kin *kin, const struct owner *owner);

/*
 * Whether process @pid carries @token in its tag or its environment.  False for processes
 * of others whose environment cannot be read and whose limits do not show it.
 */
bool kin_carries_token(uint32_t pid, const char *token);

/* The same as kin_belongs(), for a process that is looked at once. */
bool kin_is_of(uint32_t pid, const struct owner *owner);

/*
 * The name of a process that looks after a job of its own (--submit): started from within
 * another lease it may have that one's owner among its parents, and is no part of it all the
 * same, nor is what it has started.
 */
#define KIN_SUBMITTED "gpulease-job"

/*
 * Whether @ancestor is among the parents of process @pid, or is it; those beyond a submitted
 * job do not count.
 */
bool kin_is_descendant(uint32_t pid, uint32_t ancestor);

/*
 * Which of them: those that have called this process are its parents, who wait for it, and who
 * reads what it prints through a pipe.
 */
enum kin_range { KIN_ALL, KIN_BUT_CALLERS, KIN_CALLERS };

/*
 * Sends @signal to the processes in @range of the real user @uid that carry @token, but not to
 * process @but, the owner, nor to this one.  If @uid is root, descendants of the owner that carry
 * @token get it whatever their user.  Returns how many live processes it reached.
 */
unsigned kin_signal(
	const char *token, uint32_t uid, int signal, uint32_t but, enum kin_range range);

/* To all of them. */
unsigned kin_signal_all(const char *token, uint32_t uid, int signal, uint32_t but);

#endif

/*
 * Quotas: how much the users may have at once by the limits of the administrator, and how much they
 * have.  Pure.
 *
 * GPUs count in percent: half a GPU as 50.  Declared memory alone is no part of a GPU that could be
 * added up, so it counts as a whole GPU.  The limits of one user do not bind root.  No limit binds
 * a job without GPUs.
 *
 * No ticket overtakes a ticket that a limit holds back, if the limit binds both.  Else small jobs
 * could keep a big one waiting for ever.
 */
#ifndef GPULEASE_QUOTA_H
#define GPULEASE_QUOTA_H

#include "room.h"

/* The most at once; 0: any number. */
struct plan_limits {
	unsigned user_percent, user_leases; /* of one user */
	unsigned all_percent, all_leases;   /* of all together */
};

/* The live leases of user ->uid. */
struct plan_user {
	uint32_t uid;
	unsigned percent, leases;
	uint64_t held; /* the first ticket that waits for a limit, 0: none */
};

enum limit_kind {
	LIMIT_USER_GPUS,
	LIMIT_USER_LEASES,
	LIMIT_ALL_GPUS,
	LIMIT_ALL_LEASES,
	LIMIT_KINDS
};

static inline bool limit_is_for_all(enum limit_kind kind)
{
	return kind == LIMIT_ALL_GPUS || kind == LIMIT_ALL_LEASES;
}

/* A limit that would be exceeded: GPUs in percent, or leases. */
struct quota_excess {
	enum limit_kind kind;
	unsigned most, used;
};

/* Of so many users at once, each is counted.  Further users count only towards all together. */
enum { PLAN_USERS_MAX = 128 };

struct quota {
	const struct plan_limits *limits;
	struct plan_user all;
	size_t user_count;
	struct plan_user users[PLAN_USERS_MAX];
};

/* Returns the entry of user @uid, which it adds if need be, or NULL if there are too many users. */
struct plan_user *plan_user_enter(
	struct plan_user users[PLAN_USERS_MAX], size_t *count, uint32_t uid);

/* Returns the percent that a lease of @gpus GPUs with @need counts. */
unsigned quota_percent(unsigned gpus, const struct need *need);

/* Begins with the @count users that have leases.  The caller keeps @limits. */
void quota_begin(struct quota *quota, const struct plan_limits *limits,
	const struct plan_user *users, size_t count);

/* Copies *@from to *@to, of the array of users only what is in use. */
void quota_copy(struct quota *to, const struct quota *from);

/* Whether a limit forbids user @uid one more lease.  Sets *@ret to the limit if it returns true. */
bool quota_forbids(const struct quota *quota, uint32_t uid, unsigned gpus,
	const struct need *need, struct quota_excess *ret);

/*
 * Notes that a limit of that kind holds back @ticket of user @uid.  Later tickets that the limit
 * binds then have to wait, too.
 */
void quota_hold(struct quota *quota, uint32_t uid, enum limit_kind kind, uint64_t ticket);

/* Returns the ticket before which no job of user @uid with @gpus GPUs may start; 0: none. */
uint64_t quota_held(const struct quota *quota, uint32_t uid, unsigned gpus);

/* Counts one more lease. */
void quota_count(
	struct quota *quota, uint32_t uid, unsigned gpus, const struct need *need);

#endif

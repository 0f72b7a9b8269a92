/*
 * How much the users may have at once, as the administrator has it, and have.  Pure.
 *
 * GPUs are counted in percent: a share of a half as 50.  Memory alone is no part of a GPU that
 * could be added up, and is counted as all of it.  Root is bound by no user's limit, a job
 * without GPUs by none at all.
 *
 * Whoever is held back by a limit is not overtaken within it: nobody behind him whom it binds
 * as well may start, or small jobs would keep a big one waiting for ever.
 */
#ifndef GPULEASE_QUOTA_H
#define GPULEASE_QUOTA_H

#include "room.h"

/* At once; 0: any number. */
struct plan_limits {
	unsigned user_percent, user_leases; /* of one user */
	unsigned all_percent, all_leases;   /* of all together */
};

/* What live leases of user @uid there are. */
struct plan_user {
	uint32_t uid;
	unsigned percent, leases;
	uint64_t held; /* their ticket that waits for a limit, 0: none */
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

/* Should more users have leases at once, those beyond are not counted on their own. */
enum { PLAN_USERS_MAX = 128 };

struct quota {
	const struct plan_limits *limits;
	struct plan_user all;
	size_t user_count;
	struct plan_user users[PLAN_USERS_MAX];
};

/* The entry of user @uid, a new one where there is none; NULL: there are too many. */
struct plan_user *plan_user_enter(
	struct plan_user users[PLAN_USERS_MAX], size_t *count, uint32_t uid);

/* What a lease of @gpus GPUs with @need counts. */
unsigned quota_percent(unsigned gpus, const struct need *need);

/* Begins with the @count users that have leases; @limits stays the caller's. */
void quota_begin(struct quota *quota, const struct plan_limits *limits,
	const struct plan_user *users, size_t count);

/* Makes *@to the same as *@from; the users that there are not are not touched. */
void quota_copy(struct quota *to, const struct quota *from);

/* Whether a limit forbids user @uid one more lease; then *@ret is which. */
bool quota_forbids(const struct quota *quota, uint32_t uid, unsigned gpus,
	const struct need *need, struct quota_excess *ret);

/*
 * Has those wait who come behind @ticket of user @uid, which a limit of that kind holds back;
 * and the ticket that somebody is so behind, 0: none.
 */
void quota_hold(struct quota *quota, uint32_t uid, enum limit_kind kind, uint64_t ticket);
uint64_t quota_held(const struct quota *quota, uint32_t uid, unsigned gpus);

/* Counts one more lease. */
void quota_count(
	struct quota *quota, uint32_t uid, unsigned gpus, const struct need *need);

#endif

/*
 * Quotas: how much the users may have at once by the limits of the administrator, and how much they
 * have.  Pure.
 *
 * The configuration of the reader limits all users together, and each user.  A ticket may carry
 * limits of its user (plan_row.h): these count in place of those of each user, so that every reader
 * plans with the same ones.
 *
 * GPUs count in percent: half a GPU as 50.  Declared memory alone is no part of a GPU that could
 * be added up, so it counts as a whole GPU.  A share with more memory than its part counts as the
 * part that the memory is: of the GPU that the lease has, and before that of the largest GPU.  The
 * limits of one user do not bind root.  No limit binds a job without GPUs.
 *
 * No ticket overtakes a ticket that a limit holds back, if the limit binds both.  Else small jobs
 * could keep a big one waiting for ever.
 */
#ifndef GPULEASE_QUOTA_H
#define GPULEASE_QUOTA_H

#include "plan_row.h"

/* The most at once; 0: any number. */
struct plan_limits {
	unsigned user_percent, user_leases; /* of one user, if the ticket has no others */
	unsigned all_percent, all_leases;   /* of all together */
	uint64_t gpu_mib; /* the memory of the largest GPU; 0: not known */
};

/* The live leases of user ->uid. */
struct plan_user {
	uint32_t uid;
	unsigned percent, leases;
	uint16_t next; /* in its chain, as in struct plan_users */
	uint64_t held; /* the first ticket that waits for a limit, 0: none */
};

/*
 * There cannot be more leases and heads, so each user that has one is counted.  If tickets have
 * limits that not even their first lease may keep to, users without a lease are noted as well, and
 * beyond this number they are not.
 */
enum { PLAN_USERS_MAX = GPUSET_MAX * (ROOM_LEASES + 1), PLAN_CHAINS = 256 };

/* Users in the order in which they came, found by chains: an index in ->all plus 1, 0: no more. */
struct plan_users {
	size_t count;
	uint16_t chains[PLAN_CHAINS];
	struct plan_user all[PLAN_USERS_MAX]; /* only what is in use is touched */
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
	uint32_t
		line; /* of the configuration, if the limit is that of the ticket; 0: it is not */
};

struct quota {
	const struct plan_limits *limits;
	struct plan_user all;
	struct plan_users users;
};

/* Begins without users. */
void plan_users_begin(struct plan_users *users);

/* Returns the entry of user @uid, which it adds if need be, or NULL if there are too many users. */
struct plan_user *plan_users_enter(struct plan_users *users, uint32_t uid);

/* Returns the percent that a lease of @gpus GPUs of @gpu_mib (0: not known) with @need counts. */
unsigned quota_percent(unsigned gpus, const struct need *need, uint64_t gpu_mib);

/* Returns the percent that a lease of @gpu counts. */
unsigned quota_gpu_percent(const struct plan_gpu *gpu, const struct need *need);

/* Begins with the @count users that have leases.  The caller keeps @limits. */
void quota_begin(struct quota *quota, const struct plan_limits *limits,
	const struct plan_user *users, size_t count);

/* Copies *@from to *@to, of the array of users only what is in use. */
void quota_copy(struct quota *to, const struct quota *from);

/* Whether there is a limit, of which kind it may be, for a job like @row. */
bool quota_has_limit(const struct plan_limits *limits, const struct plan_row *row);

/* A part of what a user has, and of what all have. */
struct quota_part {
	unsigned percent, leases, all_percent, all_leases;
};

/*
 * Whether a limit forbids the job one more lease, beside what all have but @without (NULL: beside
 * all of it).  Sets *@ret to the limit if it returns true.
 */
bool quota_forbids(const struct quota *quota, const struct plan_row *row,
	const struct quota_part *without, struct quota_excess *ret);

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

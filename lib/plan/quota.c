#include "quota.h"

unsigned quota_percent(unsigned gpus, const struct need *need)
{
	return gpus * (need->percent ? need->percent : WHOLE_PERCENT);
}

static bool limits_are_set(const struct plan_limits *limits)
{
	return limits->user_percent || limits->user_leases || limits->all_percent ||
	       limits->all_leases;
}

void quota_begin(struct quota *quota, const struct plan_limits *limits,
	const struct plan_user *users, size_t count)
{
	/* the array is not cleared: mostly there are no limits, and it is not touched */
	quota->limits = limits;
	quota->all = (struct plan_user){ .leases = 0 };
	quota->user_count = 0;
	for (size_t i = 0; limits_are_set(limits) && i < count; i++) {
		quota->all.percent += users[i].percent;
		quota->all.leases += users[i].leases;
		if (quota->user_count < PLAN_USERS_MAX)
			quota->users[quota->user_count++] = users[i];
	}
}

void quota_copy(struct quota *to, const struct quota *from)
{
	to->limits = from->limits;
	to->all = from->all;
	to->user_count = from->user_count;
	for (size_t i = 0; i < from->user_count; i++)
		to->users[i] = from->users[i];
}

static struct plan_user quota_find_user(const struct quota *quota, uint32_t uid)
{
	for (size_t i = 0; i < quota->user_count; i++)
		if (quota->users[i].uid == uid)
			return quota->users[i];
	return (struct plan_user){ .uid = uid };
}

/* A limit, how much of it is used, and how much one more lease would add. */
struct limit_use {
	unsigned most, used, more;
};

bool quota_forbids(const struct quota *quota, uint32_t uid, unsigned gpus,
	const struct need *need, struct quota_excess *ret)
{
	const struct plan_limits *limits = quota->limits;
	const struct plan_user user = quota_find_user(quota, uid), *all = &quota->all;
	unsigned percent = quota_percent(gpus, need);
	unsigned user_percent = uid ? limits->user_percent : 0;
	unsigned user_leases = uid ? limits->user_leases : 0;
	const struct limit_use uses[LIMIT_KINDS] = {
		[LIMIT_USER_GPUS] = { user_percent, user.percent, percent },
		[LIMIT_USER_LEASES] = { user_leases, user.leases, 1 },
		[LIMIT_ALL_GPUS] = { limits->all_percent, all->percent, percent },
		[LIMIT_ALL_LEASES] = { limits->all_leases, all->leases, 1 },
	};

	for (unsigned kind = 0; kind < LIMIT_KINDS && gpus; kind++) {
		const struct limit_use *use = &uses[kind];

		if (!use->most || use->used + use->more <= use->most)
			continue;
		*ret = (struct quota_excess){ .kind = (enum limit_kind)kind,
			.most = use->most,
			.used = use->used };
		return true;
	}
	return false;
}

struct plan_user *plan_user_enter(
	struct plan_user users[PLAN_USERS_MAX], size_t *count, uint32_t uid)
{
	size_t at = 0;

	while (at < *count && users[at].uid != uid)
		at++;
	if (at == PLAN_USERS_MAX)
		return NULL;
	if (at == *count)
		users[(*count)++] = (struct plan_user){ .uid = uid };
	return &users[at];
}

void quota_hold(struct quota *quota, uint32_t uid, enum limit_kind kind, uint64_t ticket)
{
	struct plan_user *user =
		limit_is_for_all(kind)
			? &quota->all
			: plan_user_enter(quota->users, &quota->user_count, uid);

	if (user && !user->held)
		user->held = ticket;
}

uint64_t quota_held(const struct quota *quota, uint32_t uid, unsigned gpus)
{
	if (!gpus || !limits_are_set(quota->limits))
		return 0;
	return quota->all.held ? quota->all.held : quota_find_user(quota, uid).held;
}

void quota_count(
	struct quota *quota, uint32_t uid, unsigned gpus, const struct need *need)
{
	unsigned percent = quota_percent(gpus, need);
	struct plan_user *user;

	if (!gpus || !limits_are_set(quota->limits))
		return;
	quota->all.percent += percent;
	quota->all.leases++;
	user = plan_user_enter(quota->users, &quota->user_count, uid);
	if (user) {
		user->percent += percent;
		user->leases++;
	}
}

#include "quota.h"

unsigned quota_percent(unsigned gpus, const struct need *need)
{
	return gpus * (need->percent ? need->percent : WHOLE_PERCENT);
}

static bool has_limits(const struct plan_limits *limits)
{
	return limits->user_percent || limits->user_leases || limits->all_percent ||
	       limits->all_leases;
}

void quota_begin(struct quota *quota, const struct plan_limits *limits,
	const struct plan_user *users, size_t count)
{
	/* not the array: mostly there are no limits */
	quota->limits = limits;
	quota->all = (struct plan_user){ .leases = 0 };
	quota->user_count = 0;
	for (size_t i = 0; has_limits(limits) && i < count; i++) {
		quota->all.percent += users[i].percent;
		quota->all.leases += users[i].leases;
		if (quota->user_count < PLAN_USERS_MAX)
			quota->users[quota->user_count++] = users[i];
	}
}

static struct plan_user find_user(const struct quota *quota, uint32_t uid)
{
	for (size_t i = 0; i < quota->user_count; i++)
		if (quota->users[i].uid == uid)
			return quota->users[i];
	return (struct plan_user){ .uid = uid };
}

bool quota_forbids(const struct quota *quota, uint32_t uid, unsigned gpus,
	const struct need *need, struct quota_excess *ret)
{
	const struct plan_limits *limits = quota->limits;
	unsigned percent = quota_percent(gpus, need);
	bool is_bound = uid != 0;
	struct plan_user user = { .uid = uid };

	if (!gpus || !has_limits(limits))
		return false;
	user = find_user(quota, uid);
	const struct {
		unsigned most, used, more;
	} uses[LIMIT_KINDS] = {
		[LIMIT_USER_GPUS] = { is_bound ? limits->user_percent : 0, user.percent,
			percent },
		[LIMIT_USER_LEASES] = { is_bound ? limits->user_leases : 0, user.leases,
			1 },
		[LIMIT_ALL_GPUS] = { limits->all_percent, quota->all.percent, percent },
		[LIMIT_ALL_LEASES] = { limits->all_leases, quota->all.leases, 1 },
	};

	for (unsigned kind = 0; kind < LIMIT_KINDS; kind++) {
		if (!uses[kind].most ||
			uses[kind].used + uses[kind].more <= uses[kind].most)
			continue;
		*ret = (struct quota_excess){ .kind = (enum limit_kind)kind,
			.most = uses[kind].most,
			.used = uses[kind].used };
		return true;
	}
	return false;
}

/* The entry of user @uid, a new one where there is none; NULL: there are too many. */
static struct plan_user *enter_user(struct quota *quota, uint32_t uid)
{
	size_t at = 0;

	while (at < quota->user_count && quota->users[at].uid != uid)
		at++;
	if (at == PLAN_USERS_MAX)
		return NULL;
	if (at == quota->user_count)
		quota->users[quota->user_count++] = (struct plan_user){ .uid = uid };
	return &quota->users[at];
}

void quota_hold(struct quota *quota, uint32_t uid, enum limit_kind kind, uint64_t ticket)
{
	bool is_for_all = kind == LIMIT_ALL_GPUS || kind == LIMIT_ALL_LEASES;
	struct plan_user *user = is_for_all ? &quota->all : enter_user(quota, uid);

	if (user && !user->held)
		user->held = ticket;
}

uint64_t quota_held(const struct quota *quota, uint32_t uid, unsigned gpus)
{
	if (!gpus || !has_limits(quota->limits))
		return 0;
	return quota->all.held ? quota->all.held : find_user(quota, uid).held;
}

void quota_count(
	struct quota *quota, uint32_t uid, unsigned gpus, const struct need *need)
{
	unsigned percent = quota_percent(gpus, need);
	struct plan_user *user;

	if (!gpus || !has_limits(quota->limits))
		return;
	quota->all.percent += percent;
	quota->all.leases++;
	user = enter_user(quota, uid);
	if (user) {
		user->percent += percent;
		user->leases++;
	}
}

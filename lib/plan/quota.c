#include "quota.h"

unsigned quota_percent(unsigned gpus, const struct need *need, uint64_t gpu_mib)
{
	uint64_t part = need->percent ? need->percent : WHOLE_PERCENT, mib = need->mib;

	if (gpu_mib && mib >= gpu_mib)
		part = WHOLE_PERCENT;
	else if (gpu_mib && mib * WHOLE_PERCENT / gpu_mib > part)
		part = mib * WHOLE_PERCENT / gpu_mib;
	return gpus * (unsigned)part;
}

unsigned quota_gpu_percent(const struct plan_gpu *gpu, const struct need *need)
{
	return gpu->is_solo ? WHOLE_PERCENT : quota_percent(1, need, gpu->total_mib);
}

/* --- the users --------------------------------------------------------------------- */

void plan_users_begin(struct plan_users *users)
{
	/* ->all is not cleared: its pages are touched only as far as there are users */
	users->count = 0;
	memset(users->chains, 0, sizeof(users->chains));
}

/* The chain of a user: the upper bits of a product, as numbers often come in steps. */
static unsigned chain_of(uint32_t uid)
{
	return uid * 2654435761u >> 24;
}

/* Returns the index of the user plus 1; 0: it has no entry. */
static unsigned users_find(const struct plan_users *users, uint32_t uid)
{
	unsigned at = users->chains[chain_of(uid)];

	while (at && users->all[at - 1].uid != uid)
		at = users->all[at - 1].next;
	return at;
}

struct plan_user *plan_users_enter(struct plan_users *users, uint32_t uid)
{
	uint16_t *chain = &users->chains[chain_of(uid)];
	unsigned at = users_find(users, uid);

	if (at)
		return &users->all[at - 1];
	if (users->count == PLAN_USERS_MAX)
		return NULL;
	users->all[users->count] = (struct plan_user){ .uid = uid, .next = *chain };
	*chain = (uint16_t)++users->count;
	return &users->all[*chain - 1];
}

/* --- what they have ---------------------------------------------------------------- */

void quota_begin(struct quota *quota, const struct plan_limits *limits,
	const struct plan_user *users, size_t count)
{
	quota->limits = limits;
	quota->all = (struct plan_user){ .leases = 0 };
	plan_users_begin(&quota->users);
	for (size_t i = 0; i < count; i++) {
		struct plan_user *user = plan_users_enter(&quota->users, users[i].uid);

		quota->all.percent += users[i].percent;
		quota->all.leases += users[i].leases;
		if (!user)
			continue;
		user->percent += users[i].percent;
		user->leases += users[i].leases;
	}
}

void quota_copy(struct quota *to, const struct quota *from)
{
	to->limits = from->limits;
	to->all = from->all;
	to->users.count = from->users.count;
	memcpy(to->users.chains, from->users.chains, sizeof(to->users.chains));
	for (size_t i = 0; i < from->users.count; i++)
		to->users.all[i] = from->users.all[i];
}

static struct plan_user quota_find_user(const struct quota *quota, uint32_t uid)
{
	unsigned at = users_find(&quota->users, uid);

	return at ? quota->users.all[at - 1] : (struct plan_user){ .uid = uid };
}

/* --- what the limits say ----------------------------------------------------------- */

/* Returns the limit of one user: @own that of its ticket, else @key; 0: none.  Root has none. */
static unsigned limit_of_user(uint32_t uid, unsigned own, unsigned key)
{
	if (!uid || own == PLAN_NO_LIMIT)
		return 0;
	return own ? own : key;
}

/*
 * A limit, how much of it is used, how much one more lease would add, and the line of the
 * configuration if the ticket has the limit.
 */
struct limit_use {
	unsigned most, used, more;
	uint32_t line;
};

bool quota_has_limit(const struct plan_limits *limits, const struct plan_row *row)
{
	return row->gpus &&
	       (limits->all_percent || limits->all_leases ||
		       limit_of_user(row->uid, row->most_percent, limits->user_percent) ||
		       limit_of_user(row->uid, row->most_leases, limits->user_leases));
}

bool quota_forbids(const struct quota *quota, const struct plan_row *row,
	const struct quota_part *without, struct quota_excess *ret)
{
	const struct quota_part none = { 0 }, *less = without ? without : &none;
	const struct plan_limits *limits = quota->limits;
	const struct plan_user user = quota_find_user(quota, row->uid),
			       *all = &quota->all;
	unsigned percent = quota_percent(row->gpus, &row->need, limits->gpu_mib);
	const struct limit_use uses[LIMIT_KINDS] = {
		[LIMIT_USER_GPUS] = { limit_of_user(row->uid, row->most_percent,
					      limits->user_percent),
			user.percent - less->percent, percent,
			row->most_percent ? row->limits_line : 0 },
		[LIMIT_USER_LEASES] = { limit_of_user(row->uid, row->most_leases,
						limits->user_leases),
			user.leases - less->leases, 1,
			row->most_leases ? row->limits_line : 0 },
		[LIMIT_ALL_GPUS] = { limits->all_percent,
			all->percent - less->all_percent, percent, 0 },
		[LIMIT_ALL_LEASES] = { limits->all_leases, all->leases - less->all_leases,
			1, 0 },
	};

	for (unsigned kind = 0; kind < LIMIT_KINDS && row->gpus; kind++) {
		const struct limit_use *use = &uses[kind];

		if (!use->most || use->used + use->more <= use->most)
			continue;
		*ret = (struct quota_excess){ .kind = (enum limit_kind)kind,
			.most = use->most,
			.used = use->used,
			.line = use->line };
		return true;
	}
	return false;
}

void quota_hold(struct quota *quota, uint32_t uid, enum limit_kind kind, uint64_t ticket)
{
	struct plan_user *user = limit_is_for_all(kind)
					 ? &quota->all
					 : plan_users_enter(&quota->users, uid);

	if (user && !user->held)
		user->held = ticket;
}

uint64_t quota_held(const struct quota *quota, uint32_t uid, unsigned gpus)
{
	if (!gpus)
		return 0;
	return quota->all.held ? quota->all.held : quota_find_user(quota, uid).held;
}

void quota_count(
	struct quota *quota, uint32_t uid, unsigned gpus, const struct need *need)
{
	unsigned percent = quota_percent(gpus, need, quota->limits->gpu_mib);
	struct plan_user *user;

	if (!gpus)
		return;
	quota->all.percent += percent;
	quota->all.leases++;
	user = plan_users_enter(&quota->users, uid);
	if (user) {
		user->percent += percent;
		user->leases++;
	}
}

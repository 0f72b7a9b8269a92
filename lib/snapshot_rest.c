/* Looking for processes of leases that seem to be over. */
#include <errno.h>

#include "snapshot.h"

/* The life of lease @at if a look is needed to know whether it is over; else NULL. */
static struct life *unsettled(
	struct snapshot *snapshot, size_t at, const struct gpuset *set)
{
	const struct snapshot_lease *lease = &snapshot->leases[at];
	struct gpuset common = set ? gpuset_and(set, &lease->seen) : lease->seen;
	bool is_wanted = lease->is_over && !gpuset_is_empty(&common);
	struct life *life;

	if (!lease->is_of_this_boot || (!is_wanted && !lease->is_unclear))
		return NULL;
	life = lives_find(&snapshot->lives, lease->lease.owner.token);
	return life && life_wants_look(life) ? life : NULL;
}

bool snapshot_wants_look(struct snapshot *snapshot, const struct gpuset *set)
{
	for (size_t i = 0; i < snapshot->lease_count; i++)
		if (unsettled(snapshot, i, set))
			return true;
	return false;
}

/* Notes in the lives which processes were found.  Returns how many leases have one. */
static int note(struct snapshot *snapshot, const struct leftover_search *searches,
	size_t count, int64_t now_ms)
{
	int found = 0;

	for (size_t i = 0; i < count; i++) {
		struct life *life =
			lives_find(&snapshot->lives, searches[i].owner->token);

		if (!life)
			continue;
		if (!searches[i].is_found) {
			life_leave_nothing(life);
			continue;
		}
		life_leave(&snapshot->lives, life, &searches[i].found, true, now_ms);
		found++;
	}
	return found;
}

int snapshot_look(struct snapshot *snapshot, const struct gpuset *set, int64_t now_ms)
{
	autofree struct leftover_search *searches = NULL;
	size_t count = 0;
	int r;

	if (!snapshot_wants_look(snapshot, set))
		return 0;
	searches = calloc(snapshot->lease_count, sizeof(*searches));
	if (!searches)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->lease_count; i++)
		if (unsettled(snapshot, i, set))
			searches[count++] = LEFTOVER_OF(&snapshot->leases[i].lease.owner);
	r = leftover_find(searches, count, snapshot->dir->pidns);
	if (r == -ENOMEM)
		return r;
	/* where this process cannot look, the FIFO has decided */
	return note(snapshot, searches, count, now_ms);
}

int snapshot_read_and_look(struct snapshot *snapshot, int64_t now_ms)
{
	int r = snapshot_read(snapshot, now_ms);

	if (r == 0)
		r = snapshot_look(snapshot, NULL, now_ms);
	return r > 0 ? snapshot_read(snapshot, now_ms) : r;
}

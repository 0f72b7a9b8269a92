/*
 * A broker on simulated GPUs, in a state directory of its own.
 */
#ifndef GPULEASE_TESTS_FIXTURE_BROKER_H
#define GPULEASE_TESTS_FIXTURE_BROKER_H

#include "broker.h"
#include "fixture.h"

/* So many GPUs, of 24 GiB each. */
#define SIMULATED(gpus)                                                               \
	{                                                                             \
		.sim_gpus = (gpus), .sim_mib = 24576,                                 \
		.usage = { .idle_mib = 200, .settle_ms = 60000, .linger_ms = 60000 }, \
	}

/*
 * For ->set_up() of a struct fixture: opens the directory and lets the broker survey its GPUs.
 * Returns 0 or -1.
 */
static inline int fixture_broker_open(
	struct broker *broker, struct statedir *dir, const struct prober_config *config)
{
	memset(broker, 0, sizeof(*broker));
	return broker_init(broker, dir, config) < 0 || broker_survey(broker) < 0 ? -1 : 0;
}

/* Opens the lease files of the first @count slots, as another process has them.  0, or -1. */
static inline int fixture_open_files(int dirfd, struct lease_file *files, unsigned count)
{
	struct statedir dir = fixture_dir_of(dirfd);
	int r = 0;

	for (unsigned slot = 0; slot < count && r == 0; slot++)
		r = lease_open_slot(&dir, slot, &files[slot]);
	statedir_release(&dir);
	return r == 0 ? 0 : -1;
}

static inline void fixture_release_files(struct lease_file *files, unsigned count)
{
	for (unsigned slot = 0; slot < count; slot++)
		lease_release(&files[slot]);
}

/* Takes a ticket for @request, which may name slots: so the GPUs are read before, if need be. */
static inline void fixture_join(struct broker *broker, const struct request *request)
{
	struct why why = WHY_NONE;

	if (!broker->view.known && broker_survey(broker) < 0)
		fail_msg("the GPUs cannot be read");
	if (broker_join(broker, request, "alice", &why) < 0)
		fail_msg("%s", why.text);
}

/* Takes a turn and checks that it comes to @wanted. */
static inline void fixture_check_turn(struct broker *broker, int wanted)
{
	struct why why = WHY_NONE;
	int r = broker_turn(broker);

	if (r != wanted)
		fail_msg("the turn comes to %d, not %d; %s", r, wanted, why.text);
}

#endif

/*
 * The GPUs of a probe as lease files, for tests of what follows from that.
 */
#ifndef GPULEASE_TESTS_FIXTURE_INVENTORY_H
#define GPULEASE_TESTS_FIXTURE_INVENTORY_H

#include "fixture.h"
#include "inventory.h"

/*
 * Makes lease files for the GPUs of @view's probe, and reads all of it again.  Returns what
 * inventory_adopt() returns.
 */
static inline int fixture_adopt(struct snapshot *view, int64_t now_ms)
{
	int r;

	assert_int_equal(snapshot_read(view, now_ms), 0);
	r = inventory_adopt(view, "");
	fixture_look(view, now_ms);
	if (r > 0) { /* new files learn which slots they have got */
		assert_true(inventory_adopt(view, "") >= 0);
		fixture_look(view, now_ms);
	}
	return r;
}

#endif

/*
 * The tables and the JSON of several machines.  Pure but for memory: the output depends only on
 * what was read, the time zone and the style.
 */
#ifndef GPULEASE_HOSTS_TABLE_H
#define GPULEASE_HOSTS_TABLE_H

#include "hosts_read.h"
#include "render_table.h"

struct hosts_states {
	struct host_state list[HOSTS_MAX];
	size_t count;
	int64_t now_ms; /* CLOCK_REALTIME */
};

/* These print a table.  They return 0, or -ENOMEM. */

/* One row for each machine, also for one that could not be asked. */
MUST_CHECK int hosts_table_status(
	const struct hosts_states *states, const struct table_style *style, FILE *out);

/* The queues, one machine after the other. */
MUST_CHECK int hosts_table_queue(
	const struct hosts_states *states, const struct table_style *style, FILE *out);

/* The last @most ended jobs of all machines, the latest end last. */
MUST_CHECK int hosts_table_history(const struct hosts_states *states, uint64_t most,
	const struct table_style *style, FILE *out);

/* Prints one JSON object with the objects of all machines. */
void hosts_json(const struct hosts_states *states, enum hosts_kind kind, FILE *out);

#endif

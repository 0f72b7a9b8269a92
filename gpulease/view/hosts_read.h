/*
 * What machines have answered, read from their JSON.  Pure but for memory.
 */
#ifndef GPULEASE_HOSTS_READ_H
#define GPULEASE_HOSTS_READ_H

#include "hosts_ask.h"
#include "machine_read.h"

/* What one asks for: one of --status, --queue and --history. */
enum hosts_kind { HOSTS_STATUS, HOSTS_QUEUE, HOSTS_HISTORY, HOSTS_KINDS };

/* For how many GPUs --status asks when a job would start. */
enum { HOST_STARTS = 2 };
extern const unsigned host_start_gpus[HOST_STARTS];

/* When a job with so many GPUs would start. */
enum start_kind {
	START_NEVER, /* the machine has not as many GPUs, or its gpulease cannot say */
	START_UNKNOWN,
	START_KNOWN,
};

struct host_start {
	enum start_kind kind;
	int64_t in_ms;            /* 0: now */
	struct json_value object; /* of --dry-run; without ->at there is none */
};

/* One machine.  The objects point into its answer. */
struct host_state {
	const char *host;
	char trouble[MACHINE_WHY_SIZE]; /* why it has no answer; "": it has one */
	struct json_value object;
	struct machine machine;  /* of --status and --queue */
	struct ended_jobs ended; /* of --history */
	struct host_start starts[HOST_STARTS];
};

/* Appends the words that ask for @kind, of --status with those of two dry runs. */
void hosts_add_words(struct host_words *words, enum hosts_kind kind);

/* Reads @answer.  The caller releases *@ret. */
void host_state_read(
	const struct host_answer *answer, enum hosts_kind kind, struct host_state *ret);

void host_state_release(struct host_state *state);

/* What --status shows of one machine, counted. */
struct host_counts {
	/*
	 * GPUs, and MIG instances in the place of a GPU that is divided.  ->leased: with a lease;
	 * ->other: neither idle nor leased
	 */
	unsigned gpus, idle, leased, other;
	size_t waiting;
	int64_t next_free_ms; /* until limits free the next leased GPU; -1: unknown */
};

struct host_counts host_counts_of(const struct machine *machine);

#endif

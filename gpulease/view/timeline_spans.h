/*
 * Who had which GPU when: from what was read of a machine to spans of time on each GPU, and sums
 * for each user.  Pure but for memory.
 *
 * The spans add up to the GPU time of --accounting (accounting.h): a share counts as its part,
 * declared memory without a share as a whole GPU, a MIG instance as a GPU.  If the end of a job was
 * not seen, its span has a part between the moments when it was last seen alive and first seen
 * over, which is the difference of the least and the most GPU time.
 */
#ifndef GPULEASE_TIMELINE_SPANS_H
#define GPULEASE_TIMELINE_SPANS_H

#include "machine_read.h"

/* Users that have a letter of their own; all further users share TIMELINE_REST. */
enum { TIMELINE_LETTERS = 26, TIMELINE_REST = TIMELINE_LETTERS, TIMELINE_PLACES };

/* Parts of a span, one after the other; any of them may be empty. */
enum timeline_part {
	PART_USED,
	PART_UNUSED, /* at 0 % utilization up to its end, or up to now */
	PART_UNSEEN, /* it had ended somewhere in this time */
	TIMELINE_PARTS
};

/* An attempt of a job on one GPU, or on all of its GPUs that are not recorded.  Times are in the
 * period and rise; ->until_ms is behind ->from_ms. */
struct timeline_span {
	size_t row, user;
	int64_t from_ms, unused_ms, alive_ms,
		until_ms; /* where each part begins; its end */
	uint32_t percent; /* of a GPU: the height of the span */
	uint32_t y; /* where it lies in its row, in percent of a GPU; from the top */
	int64_t job, attempt;
	bool is_running;
	const char *name; /* of the job, in what the timeline was made of */
};

struct timeline_row {
	const char *node; /* of a cluster, in what the timeline was made of; "": none */
	size_t place; /* among the GPUs of the machine; of a cluster, by which rows are sorted */
	int64_t index, instance; /* ->index -1: of GPUs that are not recorded */
	bool is_present;         /* the machine has it now */
	bool is_paused, is_divided;
	char paused_by[MACHINE_NAME_SIZE];
	uint32_t height;     /* in percent of a GPU: 100, or more if jobs share it */
	size_t first, count; /* its spans */
	uint64_t least;      /* GPU time, in percent times milliseconds */
};

struct timeline_user {
	char name[MACHINE_NAME_SIZE];
	uint64_t jobs, attempts, running;
	uint64_t least, most;        /* GPU time, in percent times milliseconds */
	uint64_t busy, measured;     /* utilization, as in accounting.h */
	uint64_t unused;             /* GPU time at 0 %, as far as it is known */
	uint64_t wait_sum_ms, waits; /* of attempts that have ended */
};

struct timeline {
	int64_t from_ms, until_ms;
	struct timeline_row *rows; /* by index and instance; without an index last */
	size_t row_count, row_room;
	struct timeline_user *users; /* the largest use first */
	size_t user_count, user_room;
	struct timeline_user total;
	struct timeline_span *spans; /* by row and begin */
	size_t span_count, span_room;
};

#define TIMELINE_NONE ((struct timeline){ .from_ms = 0 })

/*
 * Makes the timeline from @from_ms up to when @ended was read.  It shows all jobs in @ended, and
 * the running jobs of @user, or of all users if @user is NULL.  @ended and @machine have to stay.
 * Returns 0, or -ENOMEM with nothing to release in *@ret.
 */
MUST_CHECK int timeline_make(const struct ended_jobs *ended,
	const struct machine *machine, int64_t from_ms, const char *user,
	struct timeline *ret);

void timeline_release(struct timeline *timeline);

/* The place of a user among the letters: its index, or TIMELINE_REST. */
size_t timeline_place(size_t user);

/* Returns how many places there are: one for each user, or TIMELINE_PLACES. */
size_t timeline_places(const struct timeline *timeline);

/* Returns where a moment of the period is, in percent of the width. */
double timeline_x(const struct timeline *timeline, int64_t at_ms);

/* Returns 'a' to 'z', or '+' for TIMELINE_REST. */
char timeline_letter(size_t place);

/* Returns when @part of @span begins; of TIMELINE_PARTS, when the span ends. */
int64_t timeline_part_ms(const struct timeline_span *span, unsigned part);

/* Adds the figures of @user to @sum. */
void timeline_user_add(struct timeline_user *sum, const struct timeline_user *user);

/* Figures of a user; -1 without any data. */
int64_t timeline_mean_wait_ms(const struct timeline_user *user);
int timeline_utilization(const struct timeline_user *user);

/* Returns @gpu_time, in percent times milliseconds, as a part of @gpus GPUs in the whole period, in
 * tenths of a percent; -1 if there are none. */
int64_t timeline_permille(
	const struct timeline *timeline, uint64_t gpu_time, uint64_t gpus);

/* Returns how many GPUs the machine has, as --accounting counts them: instances, not their GPU. */
uint64_t timeline_gpus(const struct timeline *timeline);

/* Writes hours, as "12.34". */
enum { TIMELINE_HOURS_SIZE = 32 };
void timeline_format_hours(uint64_t gpu_time, char out[TIMELINE_HOURS_SIZE]);

/* Writes the name of a row: "GPU 3", "GPU 0:1", "GPU not recorded". */
enum { TIMELINE_LABEL_SIZE = 48 }; /* a long name of a node is cut */
void timeline_format_row(const struct timeline_row *row, char out[TIMELINE_LABEL_SIZE]);

#endif

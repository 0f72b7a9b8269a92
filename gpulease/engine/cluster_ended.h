/*
 * The jobs that have run on the cluster, as sacct prints them: one entry for each attempt.
 *
 * sacct answers for the accounting of the cluster (slurmdbd), which not every cluster keeps.  Slurm
 * uses ids again after a long time, so a question has a bound: entries that were over before that
 * time are left out.
 */
#ifndef GPULEASE_CLUSTER_ENDED_H
#define GPULEASE_CLUSTER_ENDED_H

#include "cluster_jobs.h"
#include "history.h"

/* An attempt.  Its ->gpus are the nodes, because Slurm does not keep indices: "2 on n[1-2]". */
struct cluster_end {
	struct history_end end;
	bool is_over; /* else it runs, and ends now */
	bool goes_on; /* its job was queued again, so the next attempt is of the same job */
	int64_t submit_s; /* of this attempt */
	size_t line;      /* in what sacct has printed */
};

/* Entries in an answer; further ones are an error (-E2BIG), so that memory has a bound. */
enum { CLUSTER_ENDS_MAX = 1 << 18 };

/* The latest last: those that run, which end now, are at the end. */
struct cluster_ends {
	struct cluster_end *list;
	size_t count, room;
};

#define CLUSTER_ENDS_NONE ((struct cluster_ends){ .list = NULL })

/* Which jobs are asked for. */
struct ended_question {
	int64_t from_ms, until_ms; /* CLOCK_REALTIME; INT64_MAX: now */
	const char *ids;           /* with commas between them; NULL: all */
	const char *user;          /* NULL: any */
	int64_t deadline_ms;
	/* the option, for a message: "--history"; NULL: an accounting that fails has no entry */
	const char *wanted_by;
};

/*
 * Asks sacct.  Returns 0, and the caller releases *@ret, or EXIT_MISUSE after a message: also that
 * the cluster keeps no accounting.
 */
MUST_CHECK int cluster_ends_ask(
	const struct ended_question *question, struct cluster_ends *ret);

/*
 * Reads what sacct has printed at @text, which is changed, with @mark between the fields.  Lines
 * that are none of a job that has begun or ended are skipped.  Pure but for memory.  Returns 0,
 * -E2BIG or -ENOMEM.
 */
MUST_CHECK int cluster_ends_read(
	char *text, const char *mark, int64_t now_ms, struct cluster_ends *ret);

/* Describes the end of @job, as squeue prints it for some minutes. */
void cluster_end_of_job(const struct cluster_job *job, struct history_end *ret);

void cluster_ends_release(struct cluster_ends *ends);

#endif

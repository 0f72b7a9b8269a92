/*
 * The jobs of the cluster, as squeue prints them.
 *
 * One question is for all jobs that a caller wants to know of, because each question costs the
 * controller some time.  Slurm forgets a job some minutes after its end (MinJobAge), and uses ids
 * again after a long time.
 */
#ifndef GPULEASE_CLUSTER_JOBS_H
#define GPULEASE_CLUSTER_JOBS_H

#include "job_name.h"
#include "slurm_state.h"

/* Times are seconds since 1970, 0: not known.  Texts are as Slurm prints them. */
struct cluster_job {
	uint64_t id;
	const struct slurm_state *state;
	int wait_status; /* of its command, as wait(2) returns it; 0 until it has ended */
	uint32_t uid;
	unsigned gpus; /* that it has, or asks for */
	unsigned shards;
	unsigned nodes;
	uint64_t array_id;    /* of the array that it is a task of; 0: of none */
	unsigned array_tasks; /* of an array that waits: how many; else 0 */
	char task[64]; /* its index in the array, "3"; of an array that waits, "2-9%2" */
	unsigned attempt;             /* from 1 */
	char after[64], after_ok[64]; /* ids of jobs, with commas between them */
	bool is_singleton;
	int64_t priority;
	int64_t submit_s, start_s,
		end_s;   /* of a job that waits, ->start_s is Slurm's estimate */
	int64_t limit_s; /* 0: none */
	char user[64], partition[64];
	char name[NAME_SIZE_MAX +
		  1];        /* of one that is longer than names of gpulease: more */
	char reason[64];     /* why it waits, or "None" */
	char node_list[256]; /* "n[1-2]"; "": none yet */
	char comment[64];
	char command
		[256]; /* the path of the script; of --submit the command, up to a line feed */
};

struct cluster_jobs {
	struct cluster_job *list;
	size_t count, room;
};

#define CLUSTER_JOBS_NONE ((struct cluster_jobs){ .list = NULL })

/*
 * Asks for jobs in any state: those in @ids, with commas between them, as far as Slurm knows them;
 * NULL: all.  Returns 0, and the caller releases *@ret, or EXIT_MISUSE after a message.
 */
MUST_CHECK int cluster_jobs_ask(const char *ids, struct cluster_jobs *ret);

/*
 * Likewise for all jobs that wait or run, in the order in which Slurm takes those that wait.  The
 * tasks of an array that wait are one job.
 */
MUST_CHECK int cluster_jobs_ask_live(struct cluster_jobs *ret);

/*
 * Reads what squeue has printed at @text, which is changed.  Lines without @mark (slurm_ask.h) are
 * skipped: they are parts of names.  Pure but for memory.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int cluster_jobs_read(char *text, const char *mark, struct cluster_jobs *ret);

/* Returns the job @id, or NULL: Slurm does not know it (any more). */
const struct cluster_job *cluster_jobs_find(const struct cluster_jobs *jobs, uint64_t id);

void cluster_jobs_release(struct cluster_jobs *jobs);

#endif

/*
 * How long jobs like a given one have run, and how much memory they have used: the quantiles of the
 * last 16 runs in the history.  For words only; no decision rests on them.  Pure.
 *
 * Jobs are alike if they are of one user and have the same name.  Jobs without a name are alike if
 * their commands differ in nothing but numbers.
 */
#ifndef GPULEASE_USUAL_H
#define GPULEASE_USUAL_H

#include "history.h"

/* With fewer runs nothing is said. */
enum { USUAL_RUNS = 16, USUAL_LEAST = 3 };

enum { USUAL_KIND_SIZE = 128 };

/* What makes jobs alike. */
struct usual_kind {
	uint32_t uid;
	uint64_t name_key; /* job_name.h; 0: it has no name, and ->text decides */
	bool is_cut;       /* ->text is the beginning of a longer command */
	char text[USUAL_KIND_SIZE]; /* the command without its digits */
};

/* Returns the kind of a job; @name is "" if it has none, or may be a beginning (job_name.h). */
struct usual_kind usual_kind_of(
	uint32_t uid, const char *name, uint64_t name_hash, const char *command);

bool usual_kind_is_same(const struct usual_kind *a, const struct usual_kind *b);

struct usual {
	unsigned runs, peaks; /* the runs that were noted; those with samples of memory */
	int64_t ran_ms[USUAL_RUNS];   /* ascending */
	int64_t peak_mib[USUAL_RUNS]; /* of the GPU that used the most; ascending */
};

/*
 * Notes the run of @end if it is of @kind.  The caller begins with the newest end and with a zeroed
 * @usual; runs after the 16th are not noted.  A run counts if it ended by itself or at its time
 * limit, as far as that is recorded, and if its length is known within a tenth.
 */
void usual_note(struct usual *usual, const struct usual_kind *kind,
	const struct history_end *end);

/*
 * Returns the time within which @percent of the runs ended, of those that took longer than
 * @past_ms; 0: there is no such run, or too few runs are known.
 */
int64_t usual_run_ms(const struct usual *usual, unsigned percent, int64_t past_ms);

/* Returns the memory that @percent of the runs did not exceed, in MiB; 0: too few are known. */
int64_t usual_peak_mib(const struct usual *usual, unsigned percent);

#endif

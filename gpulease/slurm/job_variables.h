/*
 * The variables by which Slurm describes a job on one node to its processes.
 */
#ifndef GPULEASE_JOB_VARIABLES_H
#define GPULEASE_JOB_VARIABLES_H

#include "childenv.h"

enum { JOB_VARIABLES_MAX = 80 };

/* Changes of an environment, and the texts of their numbers.  {} is the empty value. */
struct job_variables {
	struct childenv_change changes[JOB_VARIABLES_MAX];
	char numbers[JOB_VARIABLES_MAX][24];
	size_t count;
};

/* The variables of another task, which a task or a script does not pass on; for childenv_make(). */
extern const char *const job_variables_gone[];

/* The value of a variable of this process; "" if it is not set. */
const char *job_variables_value_of(const char *name);

/*
 * Whether @value of a variable sets an option without a value: it is empty, "yes" or a number other
 * than 0.
 */
bool is_job_variable_on(const char *value);

/* The number of this step of its job, from GPULEASE_STEP: "NUMBER.LEVEL". */
unsigned job_variables_step(void);

/* The name of this host up to its first dot, as Slurm names nodes. */
const char *job_variables_node(void);

/* Append one variable.  @value has to stay as it is until the environment is made. */
void job_variables_set(
	struct job_variables *variables, const char *name, const char *value);
void job_variables_set_number(
	struct job_variables *variables, const char *name, uint64_t value);

/*
 * Appends what is the same in a job script and in each task: the ids of the job, its one node, its
 * GPUs, its @name, and the @folder where it was submitted.  Its user, partition, account, QOS, and
 * when it starts and ends are appended unless they are set already: for a script by the caller, for
 * a task of a script by the script.
 */
void job_variables_describe(
	struct job_variables *variables, const char *name, const char *folder);

/* Appends the place of a process in its step: task @task, on node 0. */
void job_variables_set_task(struct job_variables *variables, unsigned task);

#endif

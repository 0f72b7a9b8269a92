/*
 * The checks of --doctor on a cluster, in the order of their lines.
 *
 *	engine_doctor.c          this machine: the setting, Slurm's programs, slurm.conf, munge
 *	engine_doctor_cluster.c  the controller, partitions, nodes, GPUs, accounting, gpulease there
 *
 * A check adds one finding or more (doctor_report.h).  The checks of the second file run only if
 * the controller answers, so that --doctor takes as long as one question without an answer at most.
 */
#ifndef GPULEASE_ENGINE_DOCTOR_H
#define GPULEASE_ENGINE_DOCTOR_H

#include <limits.h>

#include "cluster_nodes.h"
#include "doctor_report.h"
#include "engine_line.h"

struct engine_doctor {
	const struct engine_line *line;
	struct doctor_report report;
	char conf[PATH_MAX];          /* slurm.conf; "": none was found */
	bool has_programs, has_nodes; /* what the checks before have found */
	char *config;                 /* what `scontrol show config` prints, or NULL */
	struct cluster_nodes nodes;   /* if ->has_nodes */
};

struct answer;

/*
 * Runs the words up to NULL, without a message, for @deadline_ms at most.  Returns 0, and the
 * caller releases the answer; or a negative errno, -ETIMEDOUT among them.
 */
MUST_CHECK int engine_doctor_ask(
	const char *const *words, int64_t deadline_ms, struct answer *ret);

/* Adds a finding about a program that did not run well: @r and @answer of engine_doctor_ask(). */
struct doctor_finding *engine_doctor_add_failure(struct engine_doctor *doctor,
	enum doctor_result result, const char *program, int r,
	const struct answer *answer);

/* Whether the controller answers; else the finding says why not. */
bool engine_check_controller(struct engine_doctor *doctor);

void engine_check_version(struct engine_doctor *doctor);
void engine_check_settings(struct engine_doctor *doctor);
void engine_check_partitions(struct engine_doctor *doctor);
void engine_check_nodes(struct engine_doctor *doctor);
void engine_check_gpus(struct engine_doctor *doctor);
void engine_check_shards(struct engine_doctor *doctor);
void engine_check_accounting(struct engine_doctor *doctor);
void engine_check_on_nodes(struct engine_doctor *doctor);

/*
 * Copies the value of @name from the output of `scontrol show config` at @text to @out; "" if it is
 * not there.  Pure.
 */
void engine_doctor_setting(const char *text, const char *name, char *out, size_t size);

/*
 * Copies the path of munge's socket from the text of slurm.conf to @out: that of AuthInfo, else the
 * usual one.  Returns false if the cluster does not use munge.  Pure.
 */
bool engine_doctor_munge_socket(const char *conf, char *out, size_t size);

#endif

/*
 * The limits of users and groups: the lines below `[limits]` in the configuration.
 *
 *	group students = gpus 1, jobs 4, time 8h, priority 0
 *	user alice     = gpus 4
 *
 * The first line that matches a process binds it.  `gpus` stands for the key user-gpus, `jobs` for
 * user-jobs, `time` for max-time and `priority` for max-priority; a key that the line does not name
 * stays as it is.  A name is looked up in the texts of /etc/passwd and /etc/group; digits are a
 * number.
 *
 * A name that the text does not have can be that of any number without a name there.  So a line
 * with such a name may be about each process that has such a number, and it is not known which.  It
 * makes the limits of these processes smaller, never greater.  No name service is asked, because
 * one that hangs would stop the queue.
 *
 * Nothing is kept in memory: each question reads the lines again.  Pure.
 */
#ifndef GPULEASE_USER_LIMITS_H
#define GPULEASE_USER_LIMITS_H

#include "config.h"

/* A line of the table. */
struct limits_line {
	bool is_group;
	struct strview name;  /* or a number */
	struct strview words; /* "gpus 1, jobs 4" */
	unsigned number;      /* of the line in the file */
};

/* What is known of a process, and the texts of /etc/passwd and /etc/group. */
struct limits_process {
	uint32_t uid;
	const uint32_t *gids;
	size_t gid_count;
	struct strview passwd, group;
};

/*
 * Checks the line @text with that number.  Returns 0; or -EINVAL, and @why names the allowed forms.
 */
MUST_CHECK int limits_check(const struct config *config, struct strview text,
	unsigned number, struct why *why);

/*
 * Reads the lines of a checked table one by one; begins with *@line all zero.  Returns false after
 * the last.
 */
bool limits_next(const struct limits_table *table, struct limits_line *line);

/* Whether the name of @line is a number, or has one in the text of @process. */
bool limits_is_known(
	const struct limits_line *line, const struct limits_process *process);

/*
 * Copies @config to *@ret, with the values that bind @process.  ->lines of a key is the number of
 * the line that has set it.  default-time is at most max-time.
 */
void limits_find(const struct config *config, const struct limits_process *process,
	struct config *ret);

/* Appends what binds in @config as a line says it: "gpus 1, jobs none, time 8h, priority 0". */
void limits_format(const struct config *config, struct text *out);

#endif

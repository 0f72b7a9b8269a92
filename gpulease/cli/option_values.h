/*
 * The readers of option values, as the table of options names them.  Pure, except that read_when()
 * reads the clock and $TZ, and read_nodelist() and
 * read_jobid() the names of this host and of the job around this process.
 *
 * Each reader gets the value as the user wrote it, NULL when an optional value was left out, and
 * the place in struct command_line that its row in option_table.c names.  It returns 0, or
 * -EINVAL (some -ERANGE) when the value is wrong: @why then says what is allowed, without the name
 * of the option.  Texts are kept as pointers, not copied.  The same readers serve the attributes
 * of a line of a jobs file, --sim also GPULEASE_SIM.
 */
#ifndef GPULEASE_OPTION_VALUES_H
#define GPULEASE_OPTION_VALUES_H

#include "text.h"

/* Which GPUs, and how much of them. */
int read_gpus(const char *value, void *wish, struct why *why);
int read_gres(const char *value, void *wish, struct why *why);
int read_size(const char *value, void *mib, struct why *why);
int read_model(const char *value, void *model, struct why *why);
int read_exclusive(const char *value, void *flag, struct why *why);
int read_bind(const char *value, void *wish, struct why *why);
int read_gpu_ids(const char *value, void *list, struct why *why);
int read_gpu_list(const char *value, void *list, struct why *why);
int read_prefer(const char *value, void *list, struct why *why);

/* When to start. */
int read_priority(const char *value, void *request, struct why *why);
int read_after(const char *value, void *ids, struct why *why);
int read_dependency(const char *value, void *request, struct why *why);
int read_immediate(const char *value, void *request, struct why *why);

/* What the supervisor does. */
int read_warning(const char *value, void *care, struct why *why);
int read_status(const char *value, void *status, struct why *why);
int read_on_limit(const char *value, void *what, struct why *why);
int read_times(const char *value, void *count, struct why *why);

/* What the command gets. */
int read_export(const char *value, void *list, struct why *why);
int read_file(const char *value, void *pattern, struct why *why);
int read_idle_ok(const char *value, void *ok_ms, struct why *why);
int read_pty(const char *value, void *is_pty, struct why *why);
int read_style(const char *value, void *style, struct why *why);

int read_begin(const char *value, void *boot_ms, struct why *why); /* 0: at once */
int read_at(const char *value, void *real_ms, struct why *why);

/* Which ended jobs to show. */
int read_when(const char *value, void *real_ms, struct why *why);
int read_last(const char *value, void *count, struct why *why); /* `all`: UINT64_MAX */
int read_states(const char *value, void *list, struct why *why);

/* Jobs files. */
int read_batch_format(const char *value, void *format, struct why *why);
int read_jobs(const char *value, void *count, struct why *why);

/* Everything else. */
int read_engine(const char *value, void *at, struct why *why);
int read_pid(const char *value, void *pid, struct why *why);
MUST_CHECK int read_sim(const char *value, void *machine, struct why *why);
int read_nodes(const char *value, void *unused, struct why *why);
int read_nodelist(const char *value, void *unused, struct why *why);
int read_jobid(const char *value, void *job, struct why *why);
int read_mpi(const char *value, void *note, struct why *why);
int read_kills(const char *value, void *flag, struct why *why);
int read_open_mode(const char *value, void *is_append, struct why *why);

#endif

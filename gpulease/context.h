/*
 * What every verb begins with: the settings, the state directory, and how to ask for GPUs.
 */
#ifndef GPULEASE_CONTEXT_H
#define GPULEASE_CONTEXT_H

#include "allocation.h"
#include "cli.h"
#include "config.h"
#include "prober.h"
#include "statedir.h"

struct context {
	struct settings *settings;
	struct config config;
	bool has_config;   /* there is a file of it */
	const char *named; /* the directory that the user names, NULL: none */
	struct allocation allocation;
	bool has_allocation; /* ->dir is the directory of that allocation alone */
	bool is_copy; /* the installed gpulease has the rights that this program lacks */
	struct statedir dir;
	struct prober_config prober;
	char nvidia_smi[PATH_MAX]; /* "": none was found */
};

/*
 * Reads the configuration, opens the state directory and finds nvidia-smi.  0, or an exit
 * status after an error was told.  The memory is one for the whole run of the program.
 */
MUST_CHECK int context_open(struct settings *settings, struct context *context);

/*
 * The same in parts, for who goes on where one of them fails.  Each returns 0, or a negative
 * errno with the reason in @why.
 *
 * First what the user and the configuration say; where that fails ->config is what is in
 * force without one.  Then the directory, for which a lent group may be given up.  Last the
 * way to nvidia-smi, which cannot fail: ->nvidia_smi is "" where there is none.
 */
MUST_CHECK int context_load_config(
	struct settings *settings, struct context *context, struct why *why);
MUST_CHECK int context_open_directory(struct context *context, struct why *why);
void context_find_driver(struct context *context);

/*
 * Appends which directory is used in a Slurm allocation, why, and which GPUs it has.  Appends
 * nothing outside of an allocation.
 */
void context_explain_allocation(const struct context *context, struct text *out);

/* How long to wait for a probe without which nothing can be done: beyond its own deadline. */
int64_t context_patience_ms(const struct context *context);

/* Says that there are no GPUs to be had, and what helps; the exit status for it. */
MUST_CHECK int context_no_gpus(void);

/*
 * Where @program is found in $PATH (or named by a path): *@ret is its full name.  0, -ENOENT
 * or -EACCES: found, but nothing that this user may execute.
 */
MUST_CHECK int find_program(const char *program, char ret[PATH_MAX]);

/*
 * The home of the user: $HOME where that is an absolute path, else what the system's list of
 * users has, so that all jobs of a user meet however they are started.  NULL: none is known.
 */
const char *find_home(void);

/* The name of user @uid without asking a name service: from /etc/passwd; "" if not there. */
void local_user_name(uid_t uid, char *out, size_t size);

#endif

/*
 * The line that runs a command in a container, by the program that this machine has for it, in the
 * place of srun with the options of pyxis.  Pure, except that relative paths begin at ->folder.
 */
#ifndef GPULEASE_CONTAINER_LINE_H
#define GPULEASE_CONTAINER_LINE_H

#include <sys/types.h>

#include "container_options.h"

enum container_engine {
	ENGINE_DOCKER,
	ENGINE_PODMAN,
	ENGINE_ENROOT,    /* for squashfs files */
	ENGINE_APPTAINER, /* also for these */
	ENGINES
};

extern const char *const container_engine_names[ENGINES];

/* What else the line depends on. */
struct container_place {
	const char *program;  /* gpulease, as it was called */
	const char *gpulease; /* a name of it that is not srun */
	const char *folder, *home;
	char **variables; /* the environment of the caller */
	uid_t uid;
	gid_t gid;
	bool has_tasks; /* SLURM_… are set for the command */
	bool is_bound;  /* each task has GPUs of its own */
	unsigned count; /* of the tasks */
};

/* Whether @image is the path of a squashfs file, which docker cannot run. */
bool container_image_is_file(const char *image);

/*
 * Writes the line.  Returns 0, or -EINVAL with the reason in @why: an option says something that
 * the program cannot do.
 */
MUST_CHECK int container_line_write(enum container_engine engine,
	const struct container_wish *wish, const struct container_words *words,
	const struct container_place *place, struct text *out, struct why *why);

#endif

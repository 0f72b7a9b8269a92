/*
 * The arguments that give `docker run` or `podman run` the GPUs of a lease and the queue of the
 * host, as words for a shell.  Pure.
 */
#ifndef GPULEASE_DOCKER_ARGS_H
#define GPULEASE_DOCKER_ARGS_H

#include <sys/types.h>

#include "text.h"

/* What to pass on; NULL: do not pass it on. */
struct docker_args {
	bool is_podman;
	const char
		*uuids; /* of the lease, a,b,c; "": it has no GPUs; NULL: pass all GPUs */
	const char *id, *token;  /* of the lease */
	const char *directory;   /* the state directory, mounted under the same path */
	bool is_directory_named; /* inside, gpulease needs GPULEASE_DIR to find it */
	const char *config;      /* mounted as /etc/gpulease.conf */
	const char *program;     /* mounted as /usr/local/bin/gpulease */
	const char *view; /* gpulease-view, mounted where this gpulease looks for it */
	gid_t group;      /* that shares the directory; 0: it is not shared by a group */
};

/*
 * Appends the words to @out, each quoted and with blanks between them, so that
 * `eval "docker run $(…) IMAGE"` passes each word unchanged.  @out->cut says that not all fitted.
 */
void docker_args_format(const struct docker_args *args, struct text *out);

/* Whether @uuids is a list as gpulease writes it: no character in it is special to an engine. */
bool docker_args_are_uuids(const char *uuids);

/* Appends @word so that sh(1) reads it as one word, whatever bytes but NUL it has. */
void docker_args_quote(const char *word, struct text *out);

#endif

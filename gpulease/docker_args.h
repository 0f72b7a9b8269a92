/*
 * The arguments that give `docker run` or `podman run` the GPUs of a lease and the queue of the
 * host, as words for a shell.  Pure.
 */
#ifndef GPULEASE_DOCKER_ARGS_H
#define GPULEASE_DOCKER_ARGS_H

#include <sys/types.h>

#include "text.h"

/* What to pass on; NULL: not that. */
struct docker_args {
	bool is_podman;
	const char *uuids;       /* of the lease, a,b,c; "": it has none */
	const char *id, *token;  /* of the lease */
	const char *directory;   /* of the state, under the same path inside */
	bool is_directory_named; /* gpulease would not look for it there by itself */
	const char *config;      /* becomes /etc/gpulease.conf */
	const char *program;     /* becomes /usr/local/bin/gpulease */
	gid_t group;             /* whose members share the directory; 0: not by that */
};

/*
 * Appends the words to @out, with blanks between them and every one quoted, so that
 * `eval "docker run $(…) IMAGE"` gets each as it is.  @out says whether all fitted.
 */
void docker_args_format(const struct docker_args *args, struct text *out);

/* Whether @uuids is a list as gpulease writes it: nothing that an engine would take apart. */
bool docker_args_are_uuids(const char *uuids);

/* Appends @word so that sh(1) reads it as one, whatever bytes it has but NUL. */
void docker_args_quote(const char *word, struct text *out);

#endif

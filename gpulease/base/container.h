/*
 * Whether this process runs in a container: it sees its own files, and of the host's files only
 * those that were mounted.
 */
#ifndef GPULEASE_CONTAINER_H
#define GPULEASE_CONTAINER_H

#include "base.h"

/* Whether this process runs in a container, by the files with which Docker and Podman mark one. */
bool container_is_inside(void);

/*
 * Whether the open directory @fd is on another mount than the root directory.  In a container this
 * means that it was mounted from the host.
 */
bool container_has_mounted(int fd);

#endif

/*
 * Whether this process runs in a container, which has files of its own and of the host's only
 * those that were mounted there.
 */
#ifndef GPULEASE_CONTAINER_H
#define GPULEASE_CONTAINER_H

#include "base.h"

/* Whether it does: by the marks that Docker and Podman leave. */
bool container_is_inside(void);

/*
 * Whether the open directory @fd lies on another mount than the root: in a container, whether
 * it comes from outside.
 */
bool container_has_mounted(int fd);

#endif

/*
 * Binding this process, and the command that it becomes, to the CPUs and the memory near its GPUs.
 *
 * The kernel shows both for every PCI device in sysfs.  The binding is help, not enforcement: the
 * process may bind itself elsewhere, and the kernel takes memory from other nodes once the near
 * ones are full.
 */
#ifndef GPULEASE_BIND_H
#define GPULEASE_BIND_H

#include "base.h"

enum bind_outcome { BIND_NOTHING = 1 };
enum { BIND_CPUS_MAX = 8192, BIND_NODES_MAX = 1024 };
enum { BIND_WORD = 8 * sizeof(unsigned long) };

/* Bits, as sched_setaffinity(2) reads them. */
struct bind_cpus {
	unsigned long bits[BIND_CPUS_MAX / BIND_WORD];
};

/*
 * Adds the CPUs of a list as sysfs writes it ("0-3,8,10-11"; an empty one has none) to @cpus.
 * Returns 0, or -EINVAL if @text is no such list or names a CPU from BIND_CPUS_MAX on; @cpus may
 * then hold a part of the list.
 */
MUST_CHECK int bind_read_cpulist(const char *text, struct bind_cpus *cpus);

/*
 * Binds the calling thread to those CPUs that are near any of the @count devices with the PCI
 * addresses @bus_ids and that it may use now, and has it prefer the memory of the devices' NUMA
 * nodes.  @sysfs is "/sys", except in tests.
 *
 * Returns 0; BIND_NOTHING if the CPUs near one of the devices are unknown, or this process may use
 * none of the near ones: nothing has changed then; or a negative errno.  It is no failure if the
 * memory cannot be chosen (one node, an old kernel, a container).
 */
MUST_CHECK int bind_near(const char *const bus_ids[], unsigned count, const char *sysfs);

#endif

/*
 * Binding this process, and the command it becomes, to the CPUs and the memory near its GPUs.
 *
 * The kernel tells both for every PCI device.  It is help, no wall: whoever is bound may bind
 * himself elsewhere, and memory comes from other nodes once the near ones are full.
 */
#ifndef GPULEASE_BIND_H
#define GPULEASE_BIND_H

#include "base.h"

enum { BIND_NOTHING = 1, BIND_CPUS_MAX = 8192, BIND_NODES_MAX = 1024 };
enum { BIND_WORD = 8 * sizeof(unsigned long) };

/* Bits, as the kernel reads them. */
struct bind_cpus {
	unsigned long bits[BIND_CPUS_MAX / BIND_WORD];
};

/*
 * Adds what a list as the kernel writes it names (`0-3,8,10-11`; nothing: none) to @cpus.
 * 0, or -EINVAL where it is none or names one beyond BIND_CPUS_MAX; then @cpus may hold some
 * of it.
 */
MUST_CHECK int bind_read_cpulist(const char *text, struct bind_cpus *cpus);

/*
 * Binds the calling thread to the CPUs near any of the @count devices with the PCI addresses
 * @bus_ids, of those it may use now, and has it prefer the memory of their NUMA nodes.
 * @sysfs: "/sys".  0; BIND_NOTHING: for one of them nothing is known, or this process may use
 * none of those CPUs, and then all is left as it is; or a negative errno.  That the memory
 * cannot be chosen (one node, an old kernel, a container) is no failure.
 */
MUST_CHECK int bind_near(const char *const bus_ids[], unsigned count, const char *sysfs);

#endif

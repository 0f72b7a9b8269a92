#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>

#include "bind.h"
#include "fdio.h"
#include "smivalue.h"
#include "text.h"

enum { TEXT_SIZE = 4096 /* sysfs gives one page at most */ };

/* Modes of set_mempolicy(2); libc has no header for them. */
enum { PREFERRED = 1, PREFERRED_MANY = 5 };

/* Bits, as set_mempolicy(2) reads them. */
struct nodes {
	unsigned long bits[BIND_NODES_MAX / BIND_WORD];
	unsigned count; /* bits that are set */
};

static bool cpus_add_range(struct span range, struct bind_cpus *cpus)
{
	struct span first;
	uint64_t from, to;

	if (!span_take_until(&range, '-', &first) ||
		!span_to_number(first, BIND_CPUS_MAX - 1, &from))
		return false;
	to = from;
	if (range.at && (!span_to_number(range, BIND_CPUS_MAX - 1, &to) || to < from))
		return false;
	for (; from <= to; from++)
		cpus->bits[from / BIND_WORD] |= 1ul << from % BIND_WORD;
	return true;
}

int bind_read_cpulist(const char *text, struct bind_cpus *cpus)
{
	struct span rest = { text, strcspn(text, "\n") }, range;

	if (rest.size == 0)
		return 0;
	while (span_take_until(&rest, ',', &range))
		if (!cpus_add_range(range, cpus))
			return -EINVAL;
	return 0;
}

/* Reads the attribute @name of the device.  Returns false if it cannot be read. */
static bool device_read_attribute(
	const char *sysfs, const char *bus_id, const char *name, char out[TEXT_SIZE])
{
	struct span in = { bus_id, strlen(bus_id) };
	char path[PATH_MAX], address[32];

	/*
	 * the address comes from a lease file, which other users can write: it becomes a path here
	 */
	if (!span_take_bus_id(&in, address, sizeof(address)) || in.size > 0)
		return false;
	(void)snprintf(
		path, sizeof(path), "%s/bus/pci/devices/%s/%s", sysfs, address, name);
	return fdio_read_text(AT_FDCWD, path, out, TEXT_SIZE) == 0;
}

/* Collects the CPUs near any of the devices.  Returns false if those of one device are unknown. */
static bool devices_find_cpus(const char *const bus_ids[], unsigned count,
	const char *sysfs, struct bind_cpus *cpus)
{
	char text[TEXT_SIZE];

	for (unsigned i = 0; i < count; i++)
		if (!device_read_attribute(sysfs, bus_ids[i], "local_cpulist", text) ||
			!text[strspn(text, "\n")] || bind_read_cpulist(text, cpus) < 0)
			return false;
	return count > 0;
}

/* Returns the NUMA nodes of the devices; none if the node of one is unknown (-1 in sysfs). */
static struct nodes devices_find_nodes(
	const char *const bus_ids[], unsigned count, const char *sysfs)
{
	struct nodes nodes = { .count = 0 };
	char text[TEXT_SIZE];

	for (unsigned i = 0; i < count; i++) {
		unsigned long *word, bit;
		uint64_t node;

		if (!device_read_attribute(sysfs, bus_ids[i], "numa_node", text) ||
			!span_to_number((struct span){ text, strcspn(text, "\n") },
				BIND_NODES_MAX - 1, &node))
			return (struct nodes){ .count = 0 };
		word = &nodes.bits[node / BIND_WORD];
		bit = 1ul << node % BIND_WORD;
		nodes.count += !(*word & bit);
		*word |= bit;
	}
	return nodes;
}

/* Has the kernel prefer memory of @nodes.  It reads one bit less than the number it is given. */
static void memory_prefer_nodes(const struct nodes *nodes)
{
	if (nodes->count > 0)
		(void)syscall(SYS_set_mempolicy,
			nodes->count > 1 ? PREFERRED_MANY : PREFERRED, nodes->bits,
			(unsigned long)BIND_NODES_MAX + 1);
}

int bind_near(const char *const bus_ids[], unsigned count, const char *sysfs)
{
	struct bind_cpus near = { .bits = { 0 } }, now = { .bits = { 0 } };
	unsigned long any = 0;
	struct nodes nodes;

	if (!devices_find_cpus(bus_ids, count, sysfs, &near))
		return BIND_NOTHING;
	if (sched_getaffinity(0, sizeof(now.bits), (cpu_set_t *)(void *)now.bits) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(near.bits); i++)
		any |= near.bits[i] &= now.bits[i];
	if (!any)
		return BIND_NOTHING;
	nodes = devices_find_nodes(bus_ids, count, sysfs);
	if (sched_setaffinity(0, sizeof(near.bits), (cpu_set_t *)(void *)near.bits) < 0)
		return -errno;
	memory_prefer_nodes(&nodes);
	return 0;
}

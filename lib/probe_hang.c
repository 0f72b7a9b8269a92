#include "probe_hang.h"
#include "proc.h"

enum { COMM_MAX = 15, STAT_SIZE = 512 };

/* Whether the @size bytes at @comm are what the kernel calls the program @path. */
static bool is_name_of(const char *comm, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = strnlen(name, COMM_MAX);

	return length && size == length && memcmp(comm, name, length) == 0;
}

bool probe_is_hanging(const char *stat, const char *path)
{
	const char *comm = strchr(stat, '('), *end = strrchr(stat, ')');
	size_t size;

	if (!comm || !end || end < ++comm || end[1] != ' ' || end[2] != 'D')
		return false;
	size = (size_t)(end - comm);
	return is_name_of(comm, size, path) || is_name_of(comm, size, "nvidia-smi");
}

unsigned probe_count_hanging(const char *path)
{
	autofree uint32_t *pids = NULL;
	unsigned hanging = 0;
	size_t count = 0;

	if (proc_list(&pids, &count) < 0)
		return 0;
	for (size_t i = 0; i < count && hanging < PROBE_HANGING_MAX; i++) {
		char stat[STAT_SIZE];

		hanging += proc_read_text(pids[i], "stat", stat, sizeof(stat)) == 0 &&
			   probe_is_hanging(stat, path);
	}
	return hanging;
}

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fdio.h"
#include "parse.h"
#include "record.h"
#include "sim_memory.h"

static const char FOLDER[] = "sim";

enum {
	FILES_MAX = 4096, /* the most that are read */
	READ_TRIES = 3,   /* of a record that its process is rewriting */
	NAME_SIZE = 12,
};

#define FIELD(key, kind, field)                              \
	{                                                    \
		key, kind, offsetof(struct sim_use, field),  \
			sizeof(((struct sim_use *)0)->field) \
	}

static const struct record_field fields[] = {
	FIELD("boot", RECORD_TEXT, boot),
	FIELD("pidns", RECORD_U64, pidns),
	FIELD("start", RECORD_U64, start),
	FIELD("gpus", RECORD_SET, gpus),
	FIELD("used", RECORD_U64, used_mib),
	FIELD("peak", RECORD_U64, peak_mib),
	FIELD("utilization", RECORD_U32, utilization),
};

static const struct record_schema schema = RECORD_SCHEMA("sim/1", fields);

static int open_sim_folder(int dirfd)
{
	int fd = openat(dirfd, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

/* --- showing ----------------------------------------------------------------------- */

static void own_name(char out[NAME_SIZE])
{
	(void)snprintf(out, NAME_SIZE, "%d", (int)getpid());
}

static int create_sim_file(int folder_fd)
{
	char name[NAME_SIZE];
	int fd;

	own_name(name);
	/* the file of an earlier process with this pid, which was killed */
	(void)unlinkat(folder_fd, name, 0);
	fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		0600);
	return fd < 0 ? -errno : fd;
}

int sim_memory_begin(
	const struct statedir *dir, const struct gpuset *gpus, struct sim_memory *ret)
{
	struct sim_memory memory = SIM_MEMORY_INIT;
	struct process_stat self;
	int r = process_stat_read((uint32_t)getpid(), &self);

	if (r < 0)
		return r;
	memory.use = (struct sim_use){
		.pidns = dir->pidns, .start = self.start, .gpus = *gpus
	};
	text_copy(memory.use.boot, sizeof(memory.use.boot), dir->boot);
	if (mkdirat(dir->fd, FOLDER, 0700) < 0 && errno != EEXIST)
		return -errno;
	memory.folder_fd = open_sim_folder(dir->fd);
	if (memory.folder_fd < 0)
		return memory.folder_fd;
	memory.fd = create_sim_file(memory.folder_fd);
	r = memory.fd < 0 ? memory.fd : sim_memory_show(&memory, 0, 0);
	if (r < 0)
		sim_memory_end(&memory);
	else
		*ret = memory;
	return r;
}

int sim_memory_show(struct sim_memory *memory, uint64_t used_mib, uint32_t utilization)
{
	char raw[RECORD_SIZE];
	int r;

	memory->use.used_mib = used_mib;
	memory->use.utilization = utilization;
	if (used_mib > memory->use.peak_mib)
		memory->use.peak_mib = used_mib;
	r = record_encode(&schema, &memory->use, raw);
	return r < 0 ? r : fdio_pwrite(memory->fd, raw, sizeof(raw), 0);
}

void sim_memory_end(struct sim_memory *memory)
{
	char name[NAME_SIZE];

	own_name(name);
	if (memory->fd >= 0)
		(void)unlinkat(memory->folder_fd, name, 0);
	close_fd(&memory->fd);
	close_fd(&memory->folder_fd);
}

/* --- reading ----------------------------------------------------------------------- */

static int read_use(int folder_fd, const char *name, struct sim_use *ret)
{
	autofd int fd =
		openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int r = -EBADMSG;

	if (fd < 0)
		return -errno;
	for (int i = 0; i < READ_TRIES && r == -EBADMSG; i++) {
		char raw[RECORD_SIZE] = "";
		size_t size;

		r = fdio_pread(fd, raw, sizeof(raw), 0, &size);
		if (r == 0)
			r = record_decode(&schema, raw, ret);
	}
	return r;
}

/* Whether process @pid runs, and, unless @start is 0, is the one that began then. */
static bool process_is_running(uint32_t pid, uint64_t start)
{
	struct process_stat stat;

	if (process_stat_read(pid, &stat) < 0)
		return false;
	/* a zombie holds no memory */
	return (!start || stat.start == start) && !process_has_ended(&stat);
}

static void add_use(uint32_t pid, const struct sim_use *use, struct probe *probe)
{
	int busy = use->utilization < 100 ? (int)use->utilization : 100;

	gpuset_for_each (index, &use->gpus) {
		struct probe_gpu *gpu = &probe->gpus[index];
		uint64_t most_mib;

		if ((uint32_t)index >= probe->gpu_count ||
			probe->process_count == PROBE_PROCESSES_MAX)
			return;
		most_mib = gpu->total_mib;
		probe->processes[probe->process_count++] = (struct probe_process){
			.gpu = (uint32_t)index,
			.pid = (int32_t)pid,
			.used_mib = use->used_mib < most_mib ? use->used_mib : most_mib,
			.peak_mib = use->peak_mib < most_mib ? use->peak_mib : most_mib,
			.start = use->start,
		};
		gpu->used_mib = use->used_mib < most_mib - gpu->used_mib
					? gpu->used_mib + use->used_mib
					: most_mib;
		if (busy > gpu->utilization)
			gpu->utilization = busy;
	}
}

/* Adds the use in file @name to @probe, or removes the file if its process has ended. */
static void count_or_remove(
	const struct statedir *dir, int folder_fd, const char *name, struct probe *probe)
{
	struct sim_use use;
	uint64_t pid;
	bool is_over;
	int r;

	if (parse_u64(name, INT32_MAX, &pid, NULL) < 0)
		return;
	r = read_use(folder_fd, name, &use);
	if (r < 0) /* just created and still empty, or no file of gpulease */
		is_over = !process_is_running((uint32_t)pid, 0);
	else if (strcmp(use.boot, dir->boot) != 0)
		is_over = true;
	else if (use.pidns != dir->pidns)
		return;
	else
		is_over = !process_is_running((uint32_t)pid, use.start);
	if (is_over)
		(void)unlinkat(folder_fd, name, 0);
	else if (r == 0)
		add_use((uint32_t)pid, &use, probe);
}

int sim_memory_read(const struct statedir *dir, struct probe *probe)
{
	int fd = open_sim_folder(dir->fd);
	struct dirent *entry;
	DIR *folder;

	if (fd < 0)
		return fd == -ENOENT ? SIM_MEMORY_NONE : fd;
	folder = fdopendir(fd);
	if (!folder) {
		int error = errno;

		close_fd(&fd);
		return -error;
	}
	for (int left = FILES_MAX; left > 0 && (entry = readdir(folder)); left--)
		count_or_remove(dir, fd, entry->d_name, probe);
	(void)closedir(folder);
	return 0;
}

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "clock.h"
#include "fdio.h"
#include "lease.h"
#include "statedir.h"

enum { BAD_SUM_TRIES = 5, PATH_SIZE = 128, SLOT_NAME_SIZE = 16 };

#define AT(field) offsetof(struct gpu_record, field)
static const struct record_field gpu_fields[] = {
	{ "uuid", RECORD_TEXT, AT(uuid), UUID_SIZE },
	{ "index", RECORD_U32, AT(index), 0 },
	{ "mig", RECORD_U32, AT(has_mig), 0 },
	{ "device", RECORD_U32, AT(device), 0 },
	{ "paused", RECORD_U32, AT(is_paused), 0 },
	{ "lost", RECORD_U32, AT(is_lost), 0 },
	{ "slot", RECORD_TEXT, AT(slot), SLOT_TEXT_SIZE },
	{ "by", RECORD_TEXT, AT(paused_by), USER_SIZE },
	{ "bus", RECORD_TEXT, AT(bus_id), 32 },
	{ "memory", RECORD_U64, AT(total_mib), 0 },
	{ "boot", RECORD_TEXT, AT(boot), BOOT_SIZE },
	{ "model", RECORD_TEXT, AT(model), MODEL_NAME_SIZE },
	{ "", RECORD_EXTRA, AT(extra), 64 },
	{ "reason", RECORD_REST, AT(reason), REASON_SIZE },
};
#undef AT

#define AT(field) offsetof(struct lease, field)
static const struct record_field lease_fields[] = {
	{ "ticket", RECORD_U64, AT(ticket), 0 },
	{ "job", RECORD_U64, AT(job), 0 },
	{ "attempt", RECORD_U32, AT(attempt), 0 },
	OWNER_FIELDS(struct lease, owner),
	COMMAND_FIELDS(struct lease, runs),
	{ "boot", RECORD_TEXT, AT(boot), BOOT_SIZE },
	{ "gpus", RECORD_SET, AT(gpus), 0 },
	{ "share", RECORD_U32, AT(share_percent), 0 },
	{ "counts", RECORD_U32, AT(counts_percent), 0 },
	{ "recorded", RECORD_U32, AT(is_recorded), 0 },
	{ "recorded-by", RECORD_TEXT, AT(recorded_by), RECORDER_SIZE },
	{ "vram", RECORD_U64, AT(vram_mib), 0 },
	{ "peak", RECORD_U64, AT(peak_mib), 0 },
	{ "limit", RECORD_MS, AT(limit_ms), 0 },
	{ "grace", RECORD_MS, AT(grace_ms), 0 },
	{ "since", RECORD_MS, AT(since_ms), 0 },
	{ "waited", RECORD_MS, AT(waited_ms), 0 },
	{ "early", RECORD_MS, AT(early), 0 },
	{ "released", RECORD_MS, AT(released_ms), 0 },
	{ "left", RECORD_TEXT, AT(left), LEFTOVER_TEXT_SIZE },
	{ "priority", RECORD_I64, AT(priority), 0 },
	{ "supervised", RECORD_U32, AT(is_supervised), 0 },
	{ "preemptible", RECORD_U32, AT(is_preemptible), 0 },
	{ "leave", RECORD_MS, AT(leave_ms), 0 },
	{ "idleok", RECORD_MS, AT(unused_ok_ms), 0 },
	{ "shell", RECORD_U32, AT(is_shell), 0 },
	{ "cancelled-by", RECORD_TEXT, AT(cancelled_by), UID_TEXT_SIZE },
	{ "user", RECORD_TEXT, AT(user), USER_SIZE },
	{ "note", RECORD_TEXT, AT(note), NOTE_SIZE },
	{ "name", RECORD_TEXT, AT(name), NAME_KEPT_SIZE },
	{ "nh", RECORD_HEX, AT(name_hash), 0 },
	{ "", RECORD_EXTRA, AT(extra), 48 },
	{ "command", RECORD_REST, AT(command), COMMAND_SIZE_MAX },
};
#undef AT

static const struct record_schema gpu_schema = RECORD_SCHEMA("gpu/1", gpu_fields);
static const struct record_schema lease_schema = RECORD_SCHEMA("lease/1", lease_fields);

/*
 * The target of a link that stands in for a lost one.  Readers stop at the first slot without a
 * link, so a gap would hide all later GPUs.
 */
#define NO_GPU "-"

/* --- names ------------------------------------------------------------------------- */

/* Builds the name of the lease file in gpu/.  Letters, digits and dashes stand for themselves. */
static void lease_file_name(char out[PATH_SIZE], const char *uuid)
{
	int used = 0;

	/*
	 * Every other byte is escaped: old MIG UUIDs contain a slash.  A long UUID is cut; that
	 * leaves room for one more escape and the suffix.
	 */
	for (; *uuid && used < PATH_SIZE - 16; uuid++) {
		unsigned char c = (unsigned char)*uuid;
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			     (c >= 'A' && c <= 'Z') || c == '-';

		used += snprintf(out + used, (size_t)(PATH_SIZE - used),
			plain ? "%c" : "%%%02X", c);
	}
	(void)snprintf(out + used, (size_t)(PATH_SIZE - used), ".lease");
}

/* Reads the UUID back from a name that lease_file_name() has built. */
static void lease_name_uuid(const char *name, char out[UUID_SIZE])
{
	size_t used = 0;
	unsigned byte = 0;

	while (*name && *name != '.' && used < UUID_SIZE - 1) {
		if (*name == '%' && sscanf(name, "%%%2X", &byte) == 1) {
			out[used++] = (char)byte;
			/* a damaged name may end within the escape */
			name += strlen(name) < 3 ? strlen(name) : 3;
		} else {
			out[used++] = *name++;
		}
	}
	out[used] = '\0';
}

static void slot_link_name(char out[SLOT_NAME_SIZE], uint32_t slot)
{
	(void)snprintf(out, SLOT_NAME_SIZE, "slot.%u", slot);
}

/*
 * Reads the link of slot @slot: the name of a file in gpu/, never of one elsewhere.  Returns 0,
 * -ENOENT (there is no such slot), -ENXIO (its link was lost: NO_GPU), -ELOOP (gpulease has not
 * made the link), or another negative errno.
 */
static int slot_read_link(int gpu_fd, uint32_t slot, char name[PATH_SIZE])
{
	char link[SLOT_NAME_SIZE];
	ssize_t n;

	slot_link_name(link, slot);
	n = readlinkat(gpu_fd, link, name, PATH_SIZE - 1);
	if (n < 0)
		return -errno;
	name[n] = '\0';
	if (strcmp(name, NO_GPU) == 0)
		return -ENXIO;
	return strchr(name, '/') || name[0] == '.' ? -ELOOP : 0;
}

/*
 * Opens the lease file @name, or returns a negative errno.  Anything but a regular file may stand
 * in its place after damage: O_NONBLOCK keeps the open of a FIFO from waiting for a writer.
 */
static int lease_open_named(int gpu_fd, const char *name)
{
	autofd int fd = -1;
	struct stat st;

	fd = openat(gpu_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == EROFS) /* a reader needs no more */
		fd = openat(gpu_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? take_fd(&fd) : -EINVAL;
}

int lease_open_slot(const struct statedir *dir, uint32_t slot, struct lease_file *file)
{
	char name[PATH_SIZE];
	int r = dir->gpu_fd < 0 ? -ENOENT : slot_read_link(dir->gpu_fd, slot, name);

	*file = (struct lease_file){ .fd = -1, .slot = slot };
	if (r < 0)
		return r == -ENOENT ? LEASE_NO_SLOT : r;
	lease_name_uuid(name, file->gpu.uuid);
	r = lease_open_named(dir->gpu_fd, name);
	if (r < 0)
		return r;
	file->fd = r;
	return 0;
}

void lease_release(struct lease_file *file)
{
	close_fd(&file->fd);
	file->is_locked = false;
}

bool lease_file_is_current(const struct statedir *dir, const struct lease_file *file)
{
	char name[PATH_SIZE];

	lease_file_name(name, file->gpu.uuid);
	return fdio_is_named(dir->gpu_fd, name, file->fd);
}

bool lease_slot_is_current(const struct statedir *dir, const struct lease_file *file)
{
	char name[PATH_SIZE], link[PATH_SIZE];

	lease_file_name(name, file->gpu.uuid);
	return slot_read_link(dir->gpu_fd, file->slot, link) == 0 &&
	       strcmp(link, name) == 0;
}

/* --- new GPUs ---------------------------------------------------------------------- */

/*
 * Makes the file with record 0 and 31 void records, unless another process makes it first.  A crash
 * leaves `tmp.<token>`.
 */
static int lease_make_file(int gpu_fd, const char *name, const struct gpu_record *gpu)
{
	/* the whole file: a lease that is written later then needs no new block of a full disk */
	static char bytes[LEASE_FILE_BYTES];
	char temporary[64], token[TOKEN_SIZE];
	int r = record_encode(&gpu_schema, gpu, bytes);

	if (r == 0)
		r = token_make(token);
	if (r < 0)
		return r;
	(void)snprintf(temporary, sizeof(temporary), "tmp.%s", token);
	return fdio_publish(
		gpu_fd, name, temporary, bytes, sizeof(bytes), FDIO_MODE_SHARED);
}

/* Returns the slot with a link to @name, or -ENOENT.  Looks at all slots: a link may be missing. */
static int lease_find_slot(int gpu_fd, const char *name)
{
	char taken[PATH_SIZE];

	for (uint32_t slot = 0; slot < GPUSET_MAX; slot++)
		if (slot_read_link(gpu_fd, slot, taken) == 0 && strcmp(taken, name) == 0)
			return (int)slot;
	return -ENOENT;
}

/* Makes the missing links before slot @end.  Readers stop at the first slot without a link. */
static void slot_fill_holes(int gpu_fd, uint32_t end)
{
	char link[SLOT_NAME_SIZE];

	for (uint32_t slot = 0; slot < end; slot++) {
		slot_link_name(link, slot);
		(void)!symlinkat(NO_GPU, gpu_fd, link);
	}
}

int lease_add_gpu(
	const struct statedir *dir, const struct gpu_record *gpu, uint32_t *ret_slot)
{
	char name[PATH_SIZE], taken[PATH_SIZE], link[SLOT_NAME_SIZE];
	int gpu_fd = dir->gpu_fd, r, known;
	struct gpu_record first = *gpu;
	struct stat st;

	lease_file_name(name, gpu->uuid);
	known = lease_find_slot(gpu_fd, name);
	if (fstatat(gpu_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		/* a slot without its file: the file was deleted, and its leases are lost */
		first.is_lost = first.is_lost || known >= 0;
		r = lease_make_file(gpu_fd, name, &first);
		if (r < 0)
			return r;
	}
	/* symlinkat() takes the first free slot atomically, even if other processes add GPUs now */
	for (uint32_t slot = known < 0 ? 0 : (uint32_t)known; slot < GPUSET_MAX; slot++) {
		slot_link_name(link, slot);
		if (symlinkat(name, gpu_fd, link) < 0 && errno != EEXIST)
			return -errno;
		/* EEXIST: the link is another GPU's, or another process has made it for this one */
		if (slot_read_link(gpu_fd, slot, taken) == 0 &&
			strcmp(taken, name) == 0) {
			/* a slot found above may come after a slot that has lost its link */
			if (known > 0)
				slot_fill_holes(gpu_fd, slot);
			*ret_slot = slot;
			return 0;
		}
	}
	return LEASE_NO_SLOT;
}

bool lease_slot_is_lost(const struct statedir *dir, uint32_t slot)
{
	char name[PATH_SIZE];

	return slot_read_link(dir->gpu_fd, slot, name) == -ENXIO;
}

int lease_reuse_slot(const struct statedir *dir, uint32_t slot, const char *uuid)
{
	char name[PATH_SIZE], link[SLOT_NAME_SIZE], temporary[64], token[TOKEN_SIZE];
	int r = token_make(token);

	if (r < 0)
		return r;
	lease_file_name(name, uuid);
	slot_link_name(link, slot);
	(void)snprintf(temporary, sizeof(temporary), "tmp.%s", token);
	/* rename(2) replaces the link at once, so that no reader finds the slot without a link */
	if (symlinkat(name, dir->gpu_fd, temporary) < 0)
		return -errno;
	if (renameat(dir->gpu_fd, temporary, dir->gpu_fd, link) < 0) {
		r = -errno;
		(void)unlinkat(dir->gpu_fd, temporary, 0);
	}
	return r;
}

/* --- the lock ---------------------------------------------------------------------- */

int lease_lock(struct lease_file *file, int64_t until_ms)
{
	int how = until_ms == INT64_MAX ? LOCK_EX : LOCK_EX | LOCK_NB;

	for (;;) {
		if (flock(file->fd, how) == 0) {
			file->is_locked = true;
			return 0;
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_boot_ms() >= until_ms)
			return LEASE_LOCKED;
		/* other processes hold the lock for microseconds, unless they are stopped */
		(void)poll(NULL, 0, 1);
	}
}

void lease_unlock(struct lease_file *file)
{
	if (file->is_locked)
		(void)flock(file->fd, LOCK_UN);
	file->is_locked = false;
}

/*
 * Returns the device number by which /proc/locks lists the file: that of its mount.  On overlayfs
 * and Btrfs, fstat(2) may give another number.
 */
static dev_t lock_device(int fd, const struct stat *st)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	dev_t out = st->st_dev;
	char line[4096];
	uint64_t wanted;

	if (mounts && fdio_mount_id(fd, "", false, &wanted) == 0)
		while (fgets(line, sizeof(line), mounts)) {
			unsigned long long id;
			unsigned major_nr, minor_nr;

			/* 36 35 98:0 /root /place … */
			if (sscanf(line, "%llu %*u %u:%u ", &id, &major_nr, &minor_nr) ==
					3 &&
				id == wanted)
				out = makedev(major_nr, minor_nr);
		}
	if (mounts)
		(void)fclose(mounts);
	return out;
}

uint32_t lease_lock_holder(const struct lease_file *file)
{
	FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	struct stat st;
	unsigned found = 0;
	dev_t device;

	if (!locks || fstat(file->fd, &st) < 0) {
		if (locks)
			(void)fclose(locks);
		return 0;
	}
	device = lock_device(file->fd, &st);
	while (!found && fgets(line, sizeof(line), locks)) {
		unsigned pid = 0, major_nr = 0, minor_nr = 0;
		unsigned long inode = 0;

		/* 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF */
		if (sscanf(line, "%*s FLOCK %*s %*s %u %x:%x:%lu", &pid, &major_nr,
			    &minor_nr, &inode) == 4 &&
			inode == st.st_ino && major_nr == major(device) &&
			minor_nr == minor(device))
			found = pid;
	}
	(void)fclose(locks);
	return found;
}

/* --- records ----------------------------------------------------------------------- */

/*
 * Whether the sum of any lease record is bad.  @records counts record 0, too, which is left out
 * here: lease_read_gpu() checks it.
 */
static bool lease_has_bad_sum(const char *raw, unsigned records)
{
	for (unsigned i = 1; i < records; i++)
		if (record_judge(raw + (size_t)i * RECORD_SIZE) == RECORD_BROKEN)
			return true;
	return false;
}

bool lease_has_moved(const struct lease_file *file)
{
	char slot[SLOT_TEXT_SIZE];

	lease_name_slot(file, slot);
	return file->gpu.slot[0] && strcmp(file->gpu.slot, slot) != 0;
}

void lease_name_slot(const struct lease_file *file, char out[SLOT_TEXT_SIZE])
{
	(void)snprintf(out, SLOT_TEXT_SIZE, "%u", file->slot & 0xff);
}

/*
 * Reads record 0 into @file->gpu.  Returns false if it is broken, or is that of another GPU than
 * the file's name.
 */
static bool lease_read_gpu(struct lease_file *file, const char *raw)
{
	char named[PATH_SIZE], said[PATH_SIZE];
	struct gpu_record gpu;

	if (record_decode(&gpu_schema, raw, &gpu) != 0)
		return false;
	if (strcmp(file->gpu.uuid, gpu.uuid) != 0) {
		/*
		 * The UUID may be read from a file name, which cuts a long one: compare the names.
		 */
		lease_file_name(named, file->gpu.uuid);
		lease_file_name(said, gpu.uuid);
		if (strcmp(named, said) != 0)
			return false;
	}
	file->gpu = gpu;
	return true;
}

int lease_read(struct lease_file *file, char raw[LEASE_FILE_BYTES], unsigned *ret_records)
{
	bool is_good = false, is_bad = true;
	unsigned records = 0;

	/* a reader without the lock may meet a record that is being written: read again */
	for (int i = 0; i < BAD_SUM_TRIES && (is_bad || !is_good); i++) {
		size_t bytes = 0;
		int r = fdio_pread(file->fd, raw, LEASE_FILE_BYTES, 0, &bytes);

		if (r < 0)
			return r;
		records = (unsigned)(bytes / RECORD_SIZE);
		is_bad = lease_has_bad_sum(raw, records);
		is_good = records > 0 && lease_read_gpu(file, raw);
	}
	/* the last test: the file is too short for record 0 and all lease records */
	file->is_doubtful = is_bad || !is_good || file->gpu.is_lost ||
			    lease_has_moved(file) || records <= LEASES_PER_GPU;
	*ret_records = records ? records - 1 : 0;
	return is_good ? 0 : LEASE_TROUBLE;
}

enum lease_kind lease_decode(const char *raw, unsigned at, struct lease *lease)
{
	const char *record = raw + (size_t)at * RECORD_SIZE;

	/* most records are void, and judging the first byte is cheap */
	if (!record[0] && record_judge(record) == RECORD_VOID)
		return LEASE_NONE;
	return record_decode(&lease_schema, record, lease) == 0 &&
			       is_token(lease->owner.token)
		       ? LEASE_RECORD
		       : LEASE_BROKEN;
}

int lease_find(
	struct lease_file *file, const char *token, struct lease *ret, unsigned *ret_at)
{
	static char raw[LEASE_FILE_BYTES];
	unsigned records = 0;
	int r = lease_read(file, raw, &records);

	*ret_at = 0;
	for (unsigned at = 1; at <= records && r >= 0 && !*ret_at; at++)
		if (lease_decode(raw, at, ret) == LEASE_RECORD &&
			strcmp(ret->owner.token, token) == 0)
			*ret_at = at;
	return r < 0 ? r : 0;
}

static int lease_write_raw(struct lease_file *file, unsigned at, const char *raw)
{
	return fdio_pwrite(file->fd, raw, RECORD_SIZE, (off_t)at * RECORD_SIZE);
}

int lease_write(struct lease_file *file, unsigned at, const struct lease *lease)
{
	struct lease shorter;
	char raw[RECORD_SIZE];
	int r = record_encode(&lease_schema, lease, raw);

	if (r == -EMSGSIZE && lease->name_hash) {
		shorter = *lease;
		job_name_shorten(shorter.name);
		r = record_encode(&lease_schema, &shorter, raw);
	}
	return r < 0 ? r : lease_write_raw(file, at, raw);
}

int lease_clear(struct lease_file *file, unsigned at)
{
	return lease_write_raw(file, at, record_void);
}

int lease_write_gpu(struct lease_file *file, const struct gpu_record *gpu)
{
	char raw[RECORD_SIZE];
	int r = record_encode(&gpu_schema, gpu, raw);

	return r < 0 ? r : lease_write_raw(file, 0, raw);
}

int lease_mend_begin(struct lease_file *file, const char *raw, unsigned records)
{
	struct lease lease;
	int r;

	/* mark first: a crash between clearing a record and the last write leaves it in doubt */
	file->gpu.is_lost = 1;
	r = lease_write_gpu(file, &file->gpu);
	/* clearing the records that the file lacks also gives it its full length */
	for (unsigned at = 1; at <= LEASES_PER_GPU && r == 0; at++)
		if (at > records || lease_decode(raw, at, &lease) == LEASE_BROKEN)
			r = lease_clear(file, at);
	return r;
}

int lease_mend_end(struct lease_file *file)
{
	struct gpu_record gpu = file->gpu;
	int r;

	gpu.is_lost = 0;
	r = lease_write_gpu(file, &gpu);
	if (r == 0) {
		file->gpu = gpu;
		file->is_doubtful = false;
	}
	return r;
}

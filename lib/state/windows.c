#include "windows.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include "array.h"
#include "clock.h"
#include "fdio.h"
#include "statedir.h"

#define FILE_NAME "windows"
#define FILE_NEW "windows.new"
#define FILE_PART "windows.part"

enum { LOCK_PAUSE_MS = 10 };

#define AT(field) offsetof(struct window, field)
static const struct record_field fields[] = {
	{ "id", RECORD_U64, AT(id), 0 },
	{ "uuid", RECORD_TEXT, AT(uuid), UUID_SIZE },
	{ "from", RECORD_I64, AT(from_ms), 0 },
	{ "until", RECORD_I64, AT(until_ms), 0 },
	{ "but", RECORD_TEXT, AT(but), WINDOW_USERS_SIZE },
	{ "by", RECORD_TEXT, AT(by), USER_SIZE },
	{ "", RECORD_EXTRA, AT(extra), 48 },
	{ "reason", RECORD_REST, AT(reason), REASON_SIZE },
};
#undef AT

static const struct record_schema schema = RECORD_SCHEMA("window/1", fields);

/* --- one window ---------------------------------------------------------------------- */

bool window_exempts(const struct window *window, uint32_t uid)
{
	char number[12];
	size_t size = (size_t)snprintf(number, sizeof(number), "%u", uid);

	for (const char *at = window->but; *at;) {
		size_t length = strcspn(at, ",");

		if (length == size && memcmp(at, number, size) == 0)
			return true;
		at += length;
		at += *at == ',';
	}
	return false;
}

static bool window_is_over(const struct window *window, int64_t real_ms)
{
	return window->until_ms && window->until_ms <= real_ms;
}

void window_place(struct window *window, int slot, int64_t real_ms, int64_t boot_ms)
{
	window->slot = slot;
	window->begin_ms = window->from_ms - real_ms + boot_ms;
	window->end_ms =
		window->until_ms ? window->until_ms - real_ms + boot_ms : INT64_MAX;
}

int64_t windows_begin_ms(const struct windows *windows, const struct gpuset *gpus,
	uint32_t uid, int64_t now_ms)
{
	int64_t begin_ms = INT64_MAX;

	for (size_t i = 0; i < windows->count; i++) {
		const struct window *window = &windows->all[i];

		if (window->slot >= 0 && gpuset_has(gpus, (unsigned)window->slot) &&
			window->end_ms > now_ms && !window_exempts(window, uid))
			begin_ms = min_i64(begin_ms, window->begin_ms);
	}
	return begin_ms;
}

/* --- reading --------------------------------------------------------------------------- */

int windows_add(struct windows *windows, const struct window *window)
{
	struct window *all;

	if (windows->count >= WINDOWS_MAX)
		return -E2BIG;
	all = array_grow(windows->all, sizeof(*all), windows->count, &windows->room);
	if (!all)
		return -ENOMEM;
	windows->all = all;
	all[windows->count++] = *window;
	return 0;
}

static int windows_read_records(struct windows *windows, const char *bytes, size_t size)
{
	struct window window;
	int r = 0;

	for (size_t at = 0; at + RECORD_SIZE <= size && r == 0; at += RECORD_SIZE) {
		if (record_judge(bytes + at) == RECORD_VOID)
			continue;
		if (record_decode(&schema, bytes + at, &window) < 0 || !window.uuid[0] ||
			window.from_ms < 0 || window.until_ms < 0) {
			windows->broken++;
			continue;
		}
		window.slot = -1;
		r = windows_add(windows, &window);
	}
	return r;
}

int windows_read(const struct statedir *dir, struct windows *windows)
{
	struct windows found = WINDOWS_NONE;
	autofree char *bytes = NULL;
	size_t size = 0;
	int r = dir->gpu_fd < 0 ? FDIO_NONE
				: fdio_read_all(dir->gpu_fd, FILE_NAME, 0,
					  WINDOWS_MAX * RECORD_SIZE, &bytes, &size);

	if (r == 0)
		r = windows_read_records(&found, bytes, size);
	if (r < 0) {
		windows_release(&found);
		return r;
	}
	windows_release(windows);
	*windows = found;
	return 0;
}

void windows_release(struct windows *windows)
{
	free(windows->all);
	*windows = WINDOWS_NONE;
}

/* --- writing --------------------------------------------------------------------------- */

int windows_lock(const struct statedir *dir, int64_t until_ms)
{
	while (flock(dir->gpu_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_boot_ms() >= until_ms)
			return -errno;
		(void)poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return 0;
}

void windows_unlock(const struct statedir *dir)
{
	(void)flock(dir->gpu_fd, LOCK_UN);
}

uint64_t windows_next_id(const struct windows *windows)
{
	uint64_t last = 0;

	for (size_t i = 0; i < windows->count; i++)
		if (windows->all[i].id > last)
			last = windows->all[i].id;
	return last + 1;
}

void windows_remove(struct windows *windows, const char *uuid, int64_t real_ms)
{
	size_t kept = 0;

	for (size_t i = 0; i < windows->count; i++) {
		const struct window *window = &windows->all[i];

		if (!window_is_over(window, real_ms) &&
			!(uuid && strcmp(window->uuid, uuid) == 0))
			windows->all[kept++] = *window;
	}
	windows->count = kept;
}

/* Makes the complete file @name, and waits until its bytes are on the disk. */
static int windows_make_file(int dirfd, const char *name, const char *bytes, size_t size)
{
	autofd int fd = -1;
	int r;

	/* of a writer that was killed */
	(void)unlinkat(dirfd, FILE_PART, 0);
	r = fdio_replace(dirfd, name, FILE_PART, bytes, size, FDIO_MODE_SHARED);
	if (r < 0)
		return r;
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int windows_write(const struct statedir *dir, const struct windows *windows)
{
	autofree char *bytes = calloc(windows->count + 1, RECORD_SIZE);
	int r = bytes ? 0 : -ENOMEM;

	for (size_t i = 0; i < windows->count && r == 0; i++)
		r = record_encode(&schema, &windows->all[i], bytes + i * RECORD_SIZE);
	if (r < 0)
		return r;
	if (!windows->count) {
		if (unlinkat(dir->gpu_fd, FILE_NAME, 0) < 0 && errno != ENOENT)
			return -errno;
	} else {
		r = windows_make_file(
			dir->gpu_fd, FILE_NEW, bytes, windows->count * RECORD_SIZE);
		if (r < 0)
			return r;
		if (renameat(dir->gpu_fd, FILE_NEW, dir->gpu_fd, FILE_NAME) < 0)
			return -errno;
	}
	return fsync(dir->gpu_fd) < 0 ? -errno : 0;
}

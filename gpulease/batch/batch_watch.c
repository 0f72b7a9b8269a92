#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>

#include "batch_watch.h"
#include "statedir.h"
#include "text.h"
#include "userfile.h"

enum {
	FOLDER_EVENTS = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM |
			IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR,
	FILE_EVENTS = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB,
};

void batch_watch_begin(struct batch_watch *watch)
{
	*watch = BATCH_WATCH_NONE;
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

/*
 * Replaces the watch *@id by one on @path.  The new one is added first, so that no event is missed.
 */
static void watch_replace(
	struct batch_watch *watch, const char *path, uint32_t events, int *id)
{
	int before = *id;

	*id = inotify_add_watch(watch->fd, path, events);
	if (*id == before || before < 0)
		return;
	/* two names in one folder share one watch: keep it while the other needs it */
	if (before != watch->folders[0].id && before != watch->folders[1].id)
		(void)inotify_rm_watch(watch->fd, before);
}

/* Whether other machines may write to @folder, of which inotify says nothing. */
static bool is_on_shared_disk(const char *folder)
{
	autofd int fd = userfile_open(folder, O_PATH | O_DIRECTORY, 0);

	return fd < 0 || statedir_unshared_name(fd);
}

static void watch_set_folder(
	struct batch_watch *watch, const char *path, struct batch_watch_folder *folder)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	struct text text = TEXT_ON(parent);

	if (slash == path)
		text_add(&text, "/");
	else if (slash)
		text_add_bytes(&text, path, (size_t)(slash - path));
	else
		text_add(&text, ".");
	text_copy(folder->name, sizeof(folder->name), text_base_name(path));
	watch_replace(watch, parent, FOLDER_EVENTS, &folder->id);
	if (folder->id < 0 || is_on_shared_disk(parent))
		watch->needs_timer = true;
}

void batch_watch_renew(struct batch_watch *watch, const char *path)
{
	autofree char *real = NULL;

	watch->needs_timer = watch->fd < 0;
	if (watch->fd < 0)
		return;
	watch_set_folder(watch, path, &watch->folders[0]);
	/* the folder of the link is watched already, so a change of the link is not missed */
	real = realpath(path, NULL);
	if (!real)
		return;
	watch_set_folder(watch, real, &watch->folders[1]);
	watch_replace(watch, real, FILE_EVENTS, &watch->file);
	if (watch->file < 0)
		watch->needs_timer = true;
}

/* Whether the event concerns the file, and not another one in its folder. */
static bool is_own_event(
	const struct batch_watch *watch, const struct inotify_event *event)
{
	if (event->wd == watch->file || event->mask & (IN_Q_OVERFLOW | IN_UNMOUNT))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(watch->folders); i++) {
		const struct batch_watch_folder *folder = &watch->folders[i];

		if (event->wd == folder->id &&
			(!event->len || strcmp(event->name, folder->name) == 0))
			return true;
	}
	return false;
}

/* Returns when to look at the file after an event with @mask; @look_ms was the moment before. */
static int64_t watch_next_look(uint32_t mask, int64_t now_ms, int64_t look_ms)
{
	/* it is being written, or was created to be written: wait until it is quiet */
	if (mask & (IN_MODIFY | IN_CREATE))
		return now_ms + BATCH_QUIET_MS;
	if (mask & IN_ATTRIB)
		return min_i64(look_ms, now_ms + BATCH_QUIET_MS);
	return now_ms;
}

int64_t batch_watch_read(struct batch_watch *watch, int64_t now_ms, int64_t look_ms)
{
	_Alignas(struct inotify_event) char buffer[4096];
	ssize_t size;

	if (watch->fd < 0)
		return look_ms;
	while ((size = read(watch->fd, buffer, sizeof(buffer))) > 0) {
		for (char *at = buffer; at < buffer + size;) {
			const struct inotify_event *event = (void *)at;

			at += sizeof(*event) + event->len;
			if (is_own_event(watch, event) &&
				event->mask & ~(uint32_t)IN_IGNORED)
				look_ms = watch_next_look(event->mask, now_ms, look_ms);
		}
	}
	return look_ms;
}

void batch_watch_release(struct batch_watch *watch)
{
	close_fd(&watch->fd);
	*watch = BATCH_WATCH_NONE;
}

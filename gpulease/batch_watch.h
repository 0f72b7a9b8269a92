/*
 * When a file may have changed: inotify on the folder that it is in, on the one that it lies in
 * where its name is a link, and on the file itself.  What else is in the folders is heard of
 * only when it is closed after writing, made or removed.
 *
 * Where that cannot be had, or others write the file on other machines, a timer is left.
 */
#ifndef GPULEASE_BATCH_WATCH_H
#define GPULEASE_BATCH_WATCH_H

#include <limits.h>

#include "base.h"

enum {
	BATCH_QUIET_MS = 1000, /* nobody has written for so long: whoever did is done */
	BATCH_LOOK_MS = 1000,  /* without inotify */
};

struct batch_watch {
	int fd; /* inotify; -1: none */
	int file;
	struct batch_watch_folder {
		int id; /* of the watch; -1: none */
		char name[NAME_MAX + 1];
	} folders[2];
	bool needs_timer;
};

#define BATCH_WATCH_NONE                                   \
	((struct batch_watch){                             \
		.fd = -1,                                  \
		.file = -1,                                \
		.folders = { { .id = -1 }, { .id = -1 } }, \
		.needs_timer = true,                       \
	})

/* Begins; without inotify ->fd stays -1. */
void batch_watch_begin(struct batch_watch *watch);

/*
 * Watches what @path is now.  To be called with the user's rights, before the file is looked
 * at: what happens to it from then on is seen.
 */
void batch_watch_renew(struct batch_watch *watch, const char *path);

/*
 * Reads what has happened.  Returns when the file is to be looked at (CLOCK_BOOTTIME, as
 * @now_ms is): @look_ms, unless something says otherwise.
 */
int64_t batch_watch_read(struct batch_watch *watch, int64_t now_ms, int64_t look_ms);

void batch_watch_release(struct batch_watch *watch);

#endif

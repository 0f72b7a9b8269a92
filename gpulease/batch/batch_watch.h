/*
 * Watches a file for changes.  inotify watches the folder of its name, the folder of the file that
 * the name leads to if it is a symbolic link, and the file itself.  Other files in these folders
 * cause an event only when they are created, removed, or closed after writing.
 *
 * If inotify is not available, or if another machine may write the file (a network file system),
 * the caller has to look at the file by a timer: ->needs_timer.
 */
#ifndef GPULEASE_BATCH_WATCH_H
#define GPULEASE_BATCH_WATCH_H

#include <limits.h>

#include "base.h"

enum {
	BATCH_QUIET_MS = 1000, /* a file that was not written for so long is complete */
	BATCH_LOOK_MS = 1000,  /* between two looks at the file, without inotify */
};

struct batch_watch {
	int fd;   /* inotify; -1: none */
	int file; /* the watch on the file itself; -1: none */
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

/* Sets up *@watch, which watches nothing yet; without inotify ->fd is -1. */
void batch_watch_begin(struct batch_watch *watch);

/*
 * Watches the file that @path names now, instead of the one before.  Call this with the user's
 * rights and before the file is looked at, so that no later change is missed.
 */
void batch_watch_renew(struct batch_watch *watch, const char *path);

/*
 * Reads the pending events.  Returns when to look at the file (CLOCK_BOOTTIME, as @now_ms is):
 * @look_ms, or another moment if an event says so.
 */
int64_t batch_watch_read(struct batch_watch *watch, int64_t now_ms, int64_t look_ms);

void batch_watch_release(struct batch_watch *watch);

#endif

/*
 * The history: what ended, one record of 512 bytes a line, appended.  Written by whoever
 * removes the lowest lease of a job, so once; a crash between the line and the removal can
 * repeat it.  Nothing depends on it: a failure to write is not an error of the job.
 *
 * When `history` has reached its size it is renamed to `history.1`, over the older one, and a
 * new one begins: whatever was told with less than that size told after it can be read.  Who
 * renames holds the flock of the file that he renames, and looks under it whether that still
 * has the name; nobody waits for it, a file whose lock is held just grows.  Writers follow
 * the name.  One that can no longer look it up (the watchdog, without the group) writes to
 * the file it has, as long as that has any name.
 *
 * If the lease names a recorder (lease.h), the process that replaces the lease appends a
 * provisional line.  The recorder knows more and appends the exact line, whether the lease still
 * stands or not.  Readers show both as one end (history_book.h).  If the recorder was killed only
 * the provisional line is there.
 *
 * A crash leaves: nothing while renaming; no `history` before the new one is made, which
 * whoever tells the next end makes; `tmp.history.TOKEN` while it is made, which is free to
 * remove; a line that was cut (a full disk), which is skipped.
 */
#ifndef GPULEASE_HISTORY_H
#define GPULEASE_HISTORY_H

#include "lease.h"
#include "statedir.h"

enum { HISTORY_PEAKS_SIZE = 64 };

/* The size where the state directory does not say. */
enum { HISTORY_BYTES = 16 * 1024 * 1024 };

/* What is known of an end.  Times are CLOCK_REALTIME in milliseconds. */
struct history_end {
	uint64_t ticket;  /* the id of the job */
	uint32_t attempt; /* where it was tried again: 2, 3 … */
	uint32_t uid;
	char user[USER_SIZE];
	char gpus[64]; /* indices, as people call them: "0,3" */
	uint32_t gpu_count;
	uint32_t share_percent; /* of each, 0: as ->vram_mib says */
	uint64_t vram_mib;      /* declared, of each */
	int64_t waited_ms;
	int64_t since_ms;          /* when it got its GPUs; 0: never */
	int64_t alive_ms, gone_ms; /* last seen alive, first seen over */
	/*
	 * What was seen of a supervised job: the most memory on each GPU in MiB, in the order of
	 * ->gpus, "18000,17990"; how busy they were, mean and peak in percent, "87/100".
	 */
	char peaks[HISTORY_PEAKS_SIZE];
	char utilization[8];
	uint32_t log_is_full; /* of a background job: output was lost */
	/* the lease names a recorder, and the line is another process's; the recorder's own */
	uint32_t is_provisional, is_exact;
	char how[16];       /* HISTORY_CANCEL …, "" where unknown */
	char by[USER_SIZE]; /* who cancelled it */
	/* how many lines after this one could not be written, and when the last of them was due */
	uint32_t missing;
	int64_t missing_ms;
	char status[4]; /* its exit status, 128 + the signal's number; "" where unknown */
	char name[NAME_SIZE_MAX];
	char command[COMMAND_SIZE_MAX];
};

/* What became of a job. */
enum end_state {
	END_UNKNOWN, /* "ended": nobody saw how */
	END_FINISHED,
	END_FAILED,
	END_CANCELLED,
	END_TIMED_OUT,
	END_OOM,       /* failed, for lack of GPU memory by its own words */
	END_PREEMPTED, /* sent back into the queue by one of higher priority */
	END_LOST,      /* the machine went down, or the supervisor was killed */
	END_STATES
};

/* By what is recorded.  Pure. */
enum end_state history_state(const struct history_end *end);

/* "finished", "timed-out" … */
extern const char *const end_state_names[END_STATES];

/* The words of ->how that decide it, and those that do not: END_UNKNOWN. */
#define HISTORY_CANCEL "cancel"
#define HISTORY_LIMIT "limit"
#define HISTORY_OOM "oom"
#define HISTORY_PREEMPT "preempt"
#define HISTORY_REBOOT "reboot"
#define HISTORY_LOST "lost"
#define HISTORY_LINGERED "lingered"

/*
 * Appends @end.  0 or a negative errno: if there is no room the line before is marked, in place,
 * and readers say that a line is missing.
 */
MUST_CHECK int history_append(const struct statedir *dir, const struct history_end *end);

/*
 * The same in two steps, for who may not be able to open it later.  Opening makes the file
 * where it is missing.  Both return 0 or a negative errno; the second, once there is 0, that
 * the line stands in a file that has a name.
 */
struct history_file {
	int dirfd; /* the caller's */
	int fd;
	uint64_t bytes; /* at which it is put aside */
};

#define HISTORY_FILE_NONE ((struct history_file){ .dirfd = -1, .fd = -1 })

MUST_CHECK int history_open(const struct statedir *dir, struct history_file *ret);
MUST_CHECK int history_write(struct history_file *file, const struct history_end *end);
void history_release(struct history_file *file);

/* Marks in the last line of the file that one more is missing.  A failure is ignored. */
void history_mark_missing(const struct history_file *file);

/*
 * Returns the error of the last line that this process could not write, a negative errno, and
 * forgets it; 0: there is none.
 */
int history_take_trouble(void);

/*
 * Reading, the newest entry first, as far as there were any when it was opened; what is put
 * aside meanwhile stays open.
 */
enum { HISTORY_CHUNK = 64 };

/* Lines that could not be written. */
struct history_gap {
	uint64_t missing;
	int64_t last_ms; /* when the last of them was due */
};

/* Counts all lines that are missing from the history.  0 or a negative errno. */
MUST_CHECK int history_find_gap(int dirfd, struct history_gap *ret);

struct history_reader {
	int fds[2];                /* the newer file, the older one */
	size_t all[2];             /* records of each when it was opened */
	size_t left[2];            /* of these, how many are still to be read */
	size_t ready;              /* records in ->raw; the last one is the next */
	struct history_gap gap;    /* among what was read */
	struct history_book *book; /* which lines tell one end; NULL: not needed yet */
	char raw[HISTORY_CHUNK * RECORD_SIZE];
};

/* 0, also where there is no history, or a negative errno. */
MUST_CHECK int history_reader_open(int dirfd, struct history_reader *reader);
void history_reader_release(struct history_reader *reader);

/*
 * Reads the next end.  Several lines that tell the same end count as one.  0, HISTORY_NONE after
 * the oldest, or a negative errno.
 */
enum { HISTORY_NONE = 1 };
MUST_CHECK int history_next(struct history_reader *reader, struct history_end *ret);

/*
 * Finds the newest entry of ticket @ticket among the newest HISTORY_SEARCHED, or an older entry of
 * the same attempt if only that has a status.  Jobs that began (got their GPUs) before @since_ms do
 * not count, because numbers begin anew with a new ticket file.
 * 0; HISTORY_NONE; or a negative errno.
 */
enum { HISTORY_SEARCHED = 32768 };
MUST_CHECK int history_find(
	int dirfd, uint64_t ticket, int64_t since_ms, struct history_end *ret);

/*
 * Likewise, of one that began at @since_ms of CLOCK_BOOTTIME or later, by a clock that may have
 * been set by up to a minute since.
 */
MUST_CHECK int history_find_of_boot(
	int dirfd, uint64_t ticket, int64_t since_ms, struct history_end *ret);

/* Which end a line tells. */
struct history_key {
	uint64_t ticket;
	uint32_t attempt, uid;
	int64_t since_ms;
};
struct history_key history_key(const struct history_end *end);

/* Whether both are the same end, although the clock may have been set in between.  Pure. */
bool history_key_is_same(const struct history_key *a, const struct history_key *b);

/* How many GPUs it had: records of earlier versions have only their names.  Pure. */
uint32_t history_gpu_count(const struct history_end *end);

/* What the history says of the end of @lease, as seen at @now_ms (CLOCK_BOOTTIME). */
void history_describe(const struct lease *lease, int64_t alive_ms, int64_t gone_ms,
	struct history_end *end);

#endif

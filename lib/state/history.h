/*
 * The history: the jobs that have ended.  One record of 512 bytes is one line, which is appended.
 *
 * Normally the process that replaces the job's record in the lease file of its lowest GPU writes
 * the line, so it is written once (end_record.h).  A crash between the line and the replacement can
 * repeat the line.  Nothing depends on the history: a failure to write it is not an error of the
 * job.
 *
 * When `history` has reached its size, it becomes `history.1`.  So at least that many bytes of
 * lines can always be read.  Of the lines that were in `history.1`, and in `history.2` before,
 * `history.2` keeps a fair part for each user (history_keep.h).  Then `history.1` is emptied, and
 * the two files change their names.  The first time there is no `history.1`, and a new file begins.
 * The process that does this holds the flock of the file, and checks under it that the file still
 * has the name.  No process waits for this lock: while the lock is held, the file just grows.
 * Writers follow the name.  A writer that can no longer look the name up (the watchdog, without the
 * group) writes to the file that it has open, as long as that has any name.
 *
 * If the lease names a recorder (lease.h), the process that replaces the lease appends a
 * provisional line.  The recorder has all facts and appends the exact line, whether the lease still
 * stands or not.  Readers show both as one end (history_book.h).  If the recorder was killed, only
 * the provisional line is there.
 *
 * Of a long name (job_name.h) a line has the beginning.  Lines of another type, just before it,
 * have the whole: the writer appends them together, so no other line comes between them.
 *
 * An event is a line of another type: GPUs were paused or resumed, or a window of theirs was set or
 * removed.  Only a reader that asks for events finds them.  So no other reader, also no earlier
 * version, takes them for jobs.
 *
 * A crash while a process renames leaves nothing.  A crash before the new file is made leaves no
 * `history`; the next process that records an end makes it.  A crash while it is made leaves
 * `tmp.history.TOKEN`, which may be removed.  A line that was cut (a full disk) is skipped.
 */
#ifndef GPULEASE_HISTORY_H
#define GPULEASE_HISTORY_H

#include "end_cause.h"
#include "lease.h"
#include "statedir.h"
#include "windows.h"

enum { HISTORY_PEAKS_SIZE = 64, HISTORY_BOOT_SIZE = 9 };

/* The size at which the history is renamed, if struct statedir has none. */
enum { HISTORY_BYTES = 16 * 1024 * 1024 };

/*
 * The end of one attempt of a job.  Times are CLOCK_REALTIME in milliseconds, for people.  What
 * names the attempt are the boot and a time of the boot clock: nobody sets that clock.
 */
struct history_end {
	uint64_t ticket;  /* the id of the job */
	uint32_t attempt; /* 2, 3 …; 0: the first */
	uint32_t uid;
	/*
	 * The beginning of the boot id, and in that boot CLOCK_BOOTTIME when the job got its GPUs,
	 * or when it ended if it never did: a time of the namespace of the job.  "": an earlier
	 * version wrote the line.
	 */
	char boot[HISTORY_BOOT_SIZE];
	int64_t at_ms;
	char user[USER_SIZE];
	char gpus[64]; /* indices, as people call them: "0,3" */
	uint32_t gpu_count;
	uint32_t share_percent; /* of each GPU, 0: only memory is declared */
	uint64_t vram_mib;      /* declared, of each GPU */
	int64_t waited_ms;
	int64_t since_ms;          /* when it got its GPUs; 0: never */
	int64_t alive_ms, gone_ms; /* last seen alive, first seen over */
	/*
	 * Measured for a supervised job: the most memory on each GPU in MiB, in the order of
	 * ->gpus, "18000,17990"; how busy the GPUs were, mean and peak in percent, "87/100".
	 */
	char peaks[HISTORY_PEAKS_SIZE];
	uint32_t spans_run; /* the samples of ->peaks span its run */
	char utilization[8];
	/* known if there are samples; see lease_use.h */
	uint32_t use_samples;
	int64_t unused_ms, unused_at_end_ms;
	uint32_t log_is_full; /* of a background job: output was lost */
	/* a line of the process that replaced the lease of a recorder; the recorder's own line */
	uint32_t is_provisional, is_exact;
	char how[16];       /* end_cause_word(); HISTORY_PAUSE … of an event */
	char by[USER_SIZE]; /* the user that cancelled it; HISTORY_BY_WINDOW */
	/* how many lines after this one could not be written; when the last of them was due */
	uint32_t missing;
	int64_t missing_ms;
	/* of its command: exit status, 128 + a signal's number; "": unknown */
	char status[4];
	char name[NAME_SIZE_MAX]; /* see job_name.h: perhaps only its beginning */
	uint64_t name_hash;
	char command[COMMAND_SIZE_MAX];
	/*
	 * Of an event: when it was is ->gone_ms, ->uid did it, the GPUs are kept from ->since_ms
	 * to ->until_ms (0: until they are resumed), but for the users ->but (windows.h).  The
	 * reason is the ->command.
	 */
	int64_t until_ms;
	char but[WINDOW_USERS_SIZE];
};

/* Returns how the job of @end ended, or what the event is.  Pure. */
enum end_state history_state(const struct history_end *end);

/* Returns why the job of @end has ended.  Pure. */
enum end_cause history_cause(const struct history_end *end);

/*
 * Returns the exit status of the job of @end, as its cause says (end_cause_status()); -1: not
 * known.  ->status is that of its command, so no reader uses it directly.  Pure.
 */
int history_status(const struct history_end *end);

/* Returns the exit status of the command, whatever the cause; STATUS_UNKNOWN.  Pure. */
int history_command_status(const struct history_end *end);

/* Whether @end is no end of a job, but an event.  Pure. */
bool history_is_event(const struct history_end *end);

/* "finished", "timed-out" … */
extern const char *const end_state_names[END_WORDS];

/* ->by of a job that a window has sent back */
#define HISTORY_BY_WINDOW "window"

/* ->how of an event */
#define HISTORY_PAUSE "pause"
#define HISTORY_RESUME "resume"
#define HISTORY_WINDOW "window"
#define HISTORY_NO_WINDOW "no-window"

/*
 * Appends @end.  Returns 0 or a negative errno.  If there is no room it marks the line before, in
 * place, and readers then report that a line is missing.
 */
MUST_CHECK int history_append(const struct statedir *dir, const struct history_end *end);

/*
 * The steps of history_append(), for a process that may not be able to open the file later.
 * history_open() makes the file if it is missing.  Both return 0 or a negative errno.  After 0 of
 * history_write() the line stands in a file that has a name.
 */
struct history_file {
	int dirfd; /* of the caller, which keeps it open */
	int fd;
	uint64_t bytes; /* the size at which the file is renamed */
};

#define HISTORY_FILE_NONE ((struct history_file){ .dirfd = -1, .fd = -1 })

MUST_CHECK int history_open(const struct statedir *dir, struct history_file *ret);
MUST_CHECK int history_write(struct history_file *file, const struct history_end *end);
void history_release(struct history_file *file);

/*
 * Finds the newest line of ticket @ticket among the last lines of the open file, for a process that
 * cannot open files any more.  Returns 0 with *@ret, or HISTORY_NONE.
 */
MUST_CHECK int history_find_in(
	const struct history_file *file, uint64_t ticket, struct history_end *ret);

/* Marks in the last line of the file that one more is missing.  A failure is ignored. */
void history_mark_missing(const struct history_file *file);

/*
 * Returns the error of the last line that this process could not write, a negative errno, and
 * forgets it; 0: there is none.
 */
int history_take_trouble(void);

/*
 * A reader goes from the newest line to the oldest, beginning with the newest when it was opened.
 * A file that is renamed meanwhile stays open.
 */
enum { HISTORY_CHUNK = 64, HISTORY_FILES = 3 };

/* Lines that could not be written. */
struct history_gap {
	uint64_t missing;
	int64_t last_ms; /* when the last of them was due */
};

/* Counts all lines that are missing from the history.  Returns 0 or a negative errno. */
MUST_CHECK int history_find_gap(int dirfd, struct history_gap *ret);

struct history_reader {
	int fds[HISTORY_FILES];     /* from the newest file to the oldest */
	size_t all[HISTORY_FILES];  /* records of each when it was opened */
	size_t left[HISTORY_FILES]; /* of these, how many are still to be read */
	size_t ready;               /* records in ->raw; the last one is the next */
	bool wants_events;          /* history_next() also returns events */
	struct history_gap gap;     /* in the lines that were read */
	struct history_book *book;  /* lines that record one end; NULL: not needed yet */
	char raw[HISTORY_CHUNK * RECORD_SIZE];
};

/* Opens the history.  Returns 0, even if there is none, or a negative errno. */
MUST_CHECK int history_reader_open(int dirfd, struct history_reader *reader);
void history_reader_release(struct history_reader *reader);

/* NONE: there is no further end, or none that fits. */
enum history_outcome { HISTORY_NONE = 1 };

/*
 * Reads the next end, with its whole name.  Several lines that record the same end count as one.
 * Returns 0,
 * HISTORY_NONE after the oldest, or a negative errno.
 */
MUST_CHECK int history_next(struct history_reader *reader, struct history_end *ret);

/*
 * Reads the next line of a user for which @wants returns true, even if it records the same end as
 * another line.  Unlike history_next() it decodes only lines that are wanted.  Of a long name it
 * reads the beginning.  Subtracts these lines from *@left, and decodes no more than that: however
 * many lines other users have.  Returns as history_next().
 */
typedef bool history_wants_fn(const void *arg, uint32_t uid);
MUST_CHECK int history_next_line_of(struct history_reader *reader,
	history_wants_fn *wants, const void *arg, size_t *left, struct history_end *ret);

/*
 * Finds the newest line of ticket @ticket among the newest HISTORY_SEARCHED, which are all unless
 * the files are made larger than 64 MiB, or an older line of
 * the same attempt if only that has a status.  Jobs that began (got their GPUs) before @since_ms do
 * not count, because numbers begin anew with a new ticket file.  Returns 0, HISTORY_NONE, or a
 * negative errno.
 */
enum { HISTORY_SEARCHED = 3 << 17 };
MUST_CHECK int history_find(
	int dirfd, uint64_t ticket, int64_t since_ms, struct history_end *ret);

/*
 * Does the same for a job that began in this boot at @since_ms of CLOCK_BOOTTIME or later, as the
 * namespace of the job counts.  With lines of earlier versions, the real-time clock may have been
 * set by up to a minute since.
 */
MUST_CHECK int history_find_of_boot(const struct statedir *dir, uint64_t ticket,
	int64_t since_ms, struct history_end *ret);

/* Names the end that a line records. */
struct history_key {
	uint64_t ticket;
	uint32_t attempt, uid;
	char boot[HISTORY_BOOT_SIZE];
	int64_t at_ms, since_ms;
};
struct history_key history_key(const struct history_end *end);

/*
 * Whether both keys name the same end.  If a version without ->boot wrote one of the lines, the
 * real-time clock may have been set by up to a minute in between.  Pure.
 */
bool history_key_is_same(const struct history_key *a, const struct history_key *b);

/* Returns how many GPUs the job had.  Records of earlier versions have only their names.  Pure. */
uint32_t history_gpu_count(const struct history_end *end);

/* Describes the end of @lease: last seen alive and first seen over at these CLOCK_BOOTTIMEs. */
void history_describe(const struct lease *lease, int64_t alive_ms, int64_t gone_ms,
	struct history_end *end);

#endif

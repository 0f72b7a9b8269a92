/*
 * The ticket file, `tickets`: the queue that all processes share.
 *
 * A process takes a ticket by one O_APPEND write of a record.  The offset / 512 is the number of
 * the ticket, and so the order of arrival.  Only the owner writes the ticket again, in place: every
 * turn ends with a new turn number and time there.  To cancel or preempt a job, another process
 * appends a control record.  Record 0 is the header with the hint, the number of a record: no
 * waiting ticket with a live owner lies before that record.  Processes move the hint forward; an
 * old hint costs time, nothing else.
 *
 * There is no lock.  A crash leaves a ticket with a dead owner, which is void.  An append that was
 * cut short (a full disk, RLIMIT_FSIZE) leaves a size that is no multiple of 512.  The next process
 * that sees such a size fills the block with zeros, which makes it a void record.
 */
#ifndef GPULEASE_TICKET_H
#define GPULEASE_TICKET_H

#include "gpuset.h"
#include "job_name.h"
#include "owner.h"
#include "text.h"

struct statedir;

enum { USER_SIZE = 33, COMMAND_SIZE_MAX = 400 };

/* In the place of a time: the ticket waits for its release (CONTROL_RELEASE). */
#define TICKET_HELD INT64_MAX

/* Between TERM and KILL at a time limit, unless a job asks for another grace. */
enum { GRACE_DEFAULT_MS = 10 * 1000 };

/* A ticket has room for at least so many bytes of the command. */
enum { COMMAND_LEAST = 64 };

/* LEFT: the lease was given back, or the place given up; the job goes on with another ticket. */
enum { TICKET_WAITING = 1, TICKET_GRANTED = 2, TICKET_LEFT = 3 };

/* The ids of the jobs that a job waits for, "12,15": six ids of seven digits. */
enum { AFTER_MAX = 6, AFTER_SIZE = 48 };

/* 16 slots in the order of preference, two hexadecimal digits each. */
enum { PREFER_SIZE = 2 * 16 + 1 };

/*
 * Why the owner of a ticket takes turns but cannot start: a code (see passover.h), a colon, and a
 * text of at most 32 bytes, in which an underscore stands for a space.
 */
enum { STUCK_TEXT_MAX = 32, STUCK_SIZE = 48 };

/* What a job asks for. */
struct request {
	uint32_t gpus;
	uint32_t share_percent; /* of each GPU; 0: only memory is declared */
	uint64_t vram_mib;      /* per GPU, 0: not declared */
	int64_t priority;       /* higher first */
	int64_t limit_ms;       /* 0: none */
	int64_t grace_ms;
	uint32_t is_singleton;   /* waits for jobs of the same user and name */
	uint32_t is_supervised;  /* the owner stays as the parent of the command */
	uint32_t is_preemptible; /* a job of higher priority may send it back */
	uint32_t runs_once;      /* its user may not put it back into the queue */
	int64_t unused_ok_ms; /* --idle-ok: for so long its GPUs may be unused; -1: always */
	int64_t leave_ms; /* how long it may take to end then: its warning and its grace */
	char after[AFTER_SIZE];    /* jobs that must have ended */
	uint32_t after_start;      /* bit i: for place i in ->after the start is enough */
	char after_ok[AFTER_SIZE]; /* jobs that must have ended with status 0 */
	/*
	 * How many GPUs and leases the user may have at once, by line ->limits_line of [limits].
	 * 0: no line says it, so each reader goes by its configuration; UINT32_MAX: any number.
	 */
	uint32_t most_gpus, most_jobs, limits_line;
	char prefer[PREFER_SIZE];
	struct gpuset allow;      /* the slots that may be chosen */
	char name[NAME_SIZE_MAX]; /* as read from a record perhaps only its beginning */
	uint64_t name_hash;       /* see job_name.h */
	char command[COMMAND_SIZE_MAX];
};

/*
 * A job that is retried, or was sent back into the queue, takes a new ticket for each attempt.  A
 * waiting job takes a new ticket to change its place in the queue.  The id of a job is the number
 * of its first ticket.
 */
struct ticket {
	uint32_t state; /* TICKET_… */
	uint32_t
		attempt; /* 2, 3 …; 0, 1: the first; in a ticket with ->latest: of that one */
	uint64_t job;    /* the number of the job's first ticket, 0: this one */
	uint64_t latest; /* in the first ticket: the number of the latest, 0: this one */
	struct command runs; /* of a supervised job: the command that was started last */
	uint32_t goes_back;  /* this attempt ends, and the job goes back into the queue */
	uint64_t turn;
	int64_t turn_ms, since_ms; /* CLOCK_BOOTTIME */
	/*
	 * CLOCK_BOOTTIME: where the ticket stands among those of its priority (queue_order.h), and
	 * by how much that is later than ->since_ms.  ->order_ms 0: by its number.
	 */
	int64_t order_ms, late_ms;
	/* why the owner could not act in its last turn; "": it could */
	char stuck[STUCK_SIZE];
	int64_t not_before_ms; /* CLOCK_BOOTTIME; 0: at once; TICKET_HELD: once released */
	struct owner owner;
	char boot[BOOT_SIZE];
	char user[USER_SIZE];
	struct request request;
};

/*
 * A request about a job, which any process may append.  Readers obey a request to cancel or to
 * release if ->uid may do that.  They obey a request to preempt while the ticket ->by waits.  The
 * owner of a waiting job obeys a request for another priority if ->uid may ask for it.  The
 * supervisor of a job obeys a request to put it back into the queue if ->uid may ask for it and
 * ->by is the ticket of the attempt that runs: so a late request ends no later attempt.  Earlier
 * versions know no such request, and do nothing.
 */
enum {
	CONTROL_CANCEL = 1,
	CONTROL_PREEMPT = 2,
	CONTROL_PRIORITY = 3,
	CONTROL_RELEASE = 4,
	CONTROL_REQUEUE = 5
};

struct control {
	uint32_t verb; /* CONTROL_… */
	uint32_t uid;
	uint64_t ticket; /* the id of the job */
	uint64_t by; /* PREEMPT: the ticket that waits; REQUEUE: that of the attempt */
	int64_t priority; /* CONTROL_PRIORITY: of the job from now on */
	int64_t at_ms;
	char boot[BOOT_SIZE];
};

struct ticket_header {
	uint64_t hint; /* see above */
	/* dead pages before this record are holes: given back to the disk */
	uint64_t punched;
	uint64_t swept; /* the cursor of the sweep, see queue_sweep.h */
	uint64_t lap;   /* where the file ended when the cursor began its lap */
	char extra[128];
};

/* The file, open twice, because pwrite(2) on an O_APPEND descriptor appends. */
struct ticket_file {
	int fd, append_fd; /* -1 while not open */
};

#define TICKET_FILE_NONE ((struct ticket_file){ .fd = -1, .append_fd = -1 })

/* The content of a record.  OTHER: the header, or a record of another version. */
enum ticket_kind {
	TICKET_RECORD,
	TICKET_CONTROL,
	TICKET_VOID,
	TICKET_BROKEN,
	TICKET_OTHER
};

/* Opens the file, and makes it with its header if it is missing.  Returns 0 or a negative errno. */
MUST_CHECK int ticket_open(int dirfd, struct ticket_file *file);
void ticket_release(struct ticket_file *file);

/* Returns the id of the job that has taken @ticket, number @number.  Pure. */
static inline uint64_t ticket_job(uint64_t number, const struct ticket *ticket)
{
	return ticket->job ? ticket->job : number;
}

/*
 * Opens the file for reading.  Makes and repairs nothing, and needs no right to write.  Returns 0
 * or a negative errno.
 */
MUST_CHECK int ticket_open_to_read(int dirfd, struct ticket_file *file);

enum { TICKET_FILE_REPLACED = 1 };

/*
 * Looks whether the name in the directory still leads to @file.  Returns 0; TICKET_FILE_REPLACED:
 * the file was deleted or replaced; or a negative errno: that cannot be told now.
 */
MUST_CHECK int ticket_file_check(int dirfd, const struct ticket_file *file);

/*
 * Append a ticket or a control.  *@ret_number is the number of the ticket.  Return 0 or a negative
 * errno (-ENOSPC; -EFBIG: RLIMIT_FSIZE; -EMSGSIZE: the lists of the request leave no room for
 * COMMAND_LEAST bytes of the command).  After a failure the file has no valid record of it.
 */
MUST_CHECK int ticket_append(
	struct ticket_file *file, const struct ticket *ticket, uint64_t *ret_number);
MUST_CHECK int ticket_append_control(
	struct ticket_file *file, const struct control *control);

/*
 * Rewrites a ticket; only its owner may do so.  Shortens a long name and leaves ->stuck out if
 * there would be no room for COMMAND_LEAST bytes of the command.  Returns 0 or a negative errno.
 */
MUST_CHECK int ticket_rewrite(
	struct ticket_file *file, uint64_t number, const struct ticket *ticket);

/*
 * Lock and unlock the jobs of user @uid with @name, for the moment in which one of several
 * singletons takes its GPUs.  The lock is a range of bytes that the file never has (fcntl(2),
 * F_OFD_SETLK); it ends with the descriptor.  Two names may share a lock.  Returns 0;
 * TICKET_LOCKED: another process has held it until @until_ms (CLOCK_BOOTTIME); or a negative errno.
 */
enum ticket_lock_outcome { TICKET_LOCKED = 1 };
MUST_CHECK int ticket_lock_name(
	const struct ticket_file *file, uint32_t uid, const char *name, int64_t until_ms);
void ticket_unlock_name(const struct ticket_file *file, uint32_t uid, const char *name);

/*
 * Sets *@ret_end to the number after the last record.  Repairs a size that is no multiple of 512.
 * Returns 0 or a negative errno.
 */
MUST_CHECK int ticket_end(struct ticket_file *file, uint64_t *ret_end);

/*
 * Reads @count records from @number on into @raw.  *@ret_count may be less at the end of the file.
 * Returns 0 or a negative errno.
 */
MUST_CHECK int ticket_read_raw(struct ticket_file *file, uint64_t number, size_t count,
	char *raw, size_t *ret_count);

/*
 * Returns the first record from @number on that is not in a hole.  Returns @number if the file
 * system does not tell, and a number past the end if only holes follow.
 */
uint64_t ticket_skip_hole(const struct ticket_file *file, uint64_t number);

/*
 * Reads ticket @number, again a few times while its sum is bad.  Returns what the record is, an
 * enum ticket_kind, or a negative errno.
 */
MUST_CHECK int ticket_read(struct ticket_file *file, uint64_t number, struct ticket *ret);

/*
 * Calls @each for every ticket from record @number on and before @end, until @each returns
 * something but 0.  Skips records that are void, broken or no tickets.  Returns what @each
 * returned, -EFBIG (there are more records than it reads), or another negative errno.
 */
typedef int ticket_each_fn(void *arg, uint64_t number, const struct ticket *ticket);
MUST_CHECK int ticket_each(struct ticket_file *file, uint64_t number, uint64_t end,
	ticket_each_fn *each, void *arg);

/*
 * Finds a request to cancel job @job of user @owner_uid among the last TICKET_CANCELS records, for
 * a process whose job has just ended: a request that has ended it is one of them.  Returns whether
 * there is one, with *@ret_uid, the user.
 */
enum { TICKET_CANCELS = 4096 };
bool ticket_find_cancel(
	struct ticket_file *file, uint64_t job, uint32_t owner_uid, uint32_t *ret_uid);

/* Decodes the record at @raw into @ticket or @control.  Returns what the record is.  Pure. */
enum ticket_kind ticket_decode(
	const char *raw, struct ticket *ticket, struct control *control);

/* Returns what the record at @raw is by its first bytes; does not check its sum.  Pure. */
enum ticket_kind ticket_glance(const char *raw);

/*
 * Reads the priority and the order of the ticket at @raw from its first bytes.  They never change
 * while the ticket exists, so they are right even while the owner rewrites the record.  A priority
 * of INT64_MAX or an order of 1: it is no number, so the caller has to decode the record.  Pure.
 */
void ticket_glance_place(const char *raw, int64_t *ret_priority, int64_t *ret_order_ms);

/*
 * Whether a process that needs @ticket may live: its owner, the owner's command, or, unless it asks
 * for 0 GPUs, a process that holds its FIFO.
 */
bool ticket_may_live(const struct statedir *dir, const struct ticket *ticket);

/*
 * Whether the owner of the ticket, or the command that it runs, lives.  Where that cannot be
 * judged, the FIFO decides.  Processes that the job has left do not count.  Keeps no descriptor.
 */
bool ticket_has_process(const struct statedir *dir, const struct ticket *ticket);

/* Reads the header.  If it is broken or missing, the hint is the start of the file. */
void ticket_read_header(struct ticket_file *file, struct ticket_header *header);
MUST_CHECK int ticket_write_header(
	struct ticket_file *file, const struct ticket_header *header);

#endif

/*
 * The shared ticket file: the queue.
 *
 * A ticket is taken by one O_APPEND write of a record; its offset / 512 is its number and the
 * order of arrival.  Only its owner writes it again, in place: every turn ends with its turn
 * counter and time there.  What others want of a ticket is a control record appended behind
 * it.  Record 0 is the header with a hint: no waiting ticket with a live owner lies before
 * it.  It only moves forward; a stale one costs time, nothing else.
 *
 * No lock.  A crash leaves a ticket with a dead owner, which is void.  An append that was cut
 * short (a full disk, RLIMIT_FSIZE) leaves a size that is no multiple of 512; whoever sees it
 * fills the block with zeros: a void record.
 */
#ifndef GPULEASE_TICKET_H
#define GPULEASE_TICKET_H

#include "gpuset.h"
#include "owner.h"
#include "text.h"

struct statedir;

enum { USER_SIZE = 33, NAME_SIZE_MAX = 33, COMMAND_SIZE_MAX = 400 };

/* So many bytes of the command are in a ticket at least. */
enum { COMMAND_LEAST = 64 };

/* LEFT: its lease was given back, the job has gone on to another ticket. */
enum { TICKET_WAITING = 1, TICKET_GRANTED = 2, TICKET_LEFT = 3 };

/* Jobs that one waits for: their ids, "12,15"; six of seven digits. */
enum { AFTER_MAX = 6, AFTER_SIZE = 48 };

/* Slots in the order of preference, two hexadecimal digits each. */
enum { PREFER_SIZE = 2 * 16 + 1 };

/*
 * Why a ticket's owner takes turns and cannot start: a code (see passover.h), a colon, and a
 * text of at most 32 bytes, in which an underscore stands for a space.
 */
enum { STUCK_TEXT_MAX = 32, STUCK_SIZE = 48 };

/* What a job asks for. */
struct request {
	uint32_t gpus;
	uint32_t share_percent; /* of each GPU; 100: alone; 0: as ->vram_mib says */
	uint64_t vram_mib;      /* per GPU, 0: not declared */
	int64_t priority;       /* higher first */
	int64_t limit_ms;       /* 0: none */
	int64_t grace_ms;
	uint32_t is_singleton;  /* waits for those of the same user and name */
	uint32_t is_supervised; /* its owner stays, as the parent of the command */
	uint32_t
		is_preemptible; /* may be sent back into the queue by a higher priority */
	int64_t leave_ms;       /* what it needs for that: its warning and its grace */
	char after[AFTER_SIZE]; /* have to have ended */
	char after_ok[AFTER_SIZE]; /* have to have ended with status 0 */
	char prefer[PREFER_SIZE];
	struct gpuset allow; /* the slots that may be chosen */
	char name[NAME_SIZE_MAX];
	char command[COMMAND_SIZE_MAX];
};

/*
 * A job that is tried again, or was sent back, takes a new ticket each time; its id is the
 * number of the first.
 */
struct ticket {
	uint32_t state;      /* TICKET_… */
	uint32_t attempt;    /* behind the first: 2, 3 … */
	uint64_t job;        /* the number of the job's first ticket, 0: this one */
	uint64_t latest;     /* in the first: the number of its latest, 0: this one */
	struct command runs; /* of a supervised job: the command started last */
	uint64_t turn;
	int64_t turn_ms, since_ms; /* CLOCK_BOOTTIME */
	char stuck[STUCK_SIZE]; /* why it could not act in its last turn; "": it could */
	int64_t not_before_ms;  /* CLOCK_BOOTTIME; 0: at once */
	struct owner owner;
	char boot[BOOT_SIZE];
	char user[USER_SIZE];
	struct request request;
};

/*
 * A wish about a job of somebody, by its id: appended, obeyed if @uid may.  Preempting one is
 * asked for by a waiting ticket, and is that one's right as long as it waits.
 */
enum { CONTROL_CANCEL = 1, CONTROL_PREEMPT = 2 };

struct control {
	uint32_t verb; /* CONTROL_… */
	uint32_t uid;
	uint64_t ticket;
	uint64_t by; /* CONTROL_PREEMPT: the ticket that waits */
	int64_t at_ms;
	char boot[BOOT_SIZE];
};

struct ticket_header {
	uint64_t hint; /* see above */
	uint64_t
		punched; /* pages before this one's were given back, but for live tickets */
	uint64_t swept; /* the cursor of the sweep, see queue.h */
	uint64_t lap;   /* where the file ended when the cursor began its lap */
	char extra[128];
};

/* The file, open twice: pwrite(2) on an O_APPEND descriptor appends. */
struct ticket_file {
	int fd, append_fd; /* -1 while not open */
};

#define TICKET_FILE_NONE ((struct ticket_file){ .fd = -1, .append_fd = -1 })

/* What is in a record of the file. */
enum ticket_kind {
	TICKET_RECORD,
	TICKET_CONTROL,
	TICKET_VOID,
	TICKET_BROKEN,
	TICKET_OTHER
};

/* Opens the file, making it with its header where it is missing.  0 or a negative errno. */
MUST_CHECK int ticket_open(int dirfd, struct ticket_file *file);
void ticket_release(struct ticket_file *file);

/* The id of the job whose ticket number @number is.  Pure. */
static inline uint64_t ticket_job(uint64_t number, const struct ticket *ticket)
{
	return ticket->job ? ticket->job : number;
}

/*
 * Opens the file to read alone, as it is: also where one may not write; nothing is made or
 * repaired.  0 or a negative errno.
 */
MUST_CHECK int ticket_open_to_read(int dirfd, struct ticket_file *file);

/* Whether @file is still the one named in the directory; false once deleted or replaced. */
bool ticket_file_is_current(int dirfd, const struct ticket_file *file);

/*
 * Appends a ticket or a control.  *@ret_number is the ticket's number.  0 or a negative
 * errno (-ENOSPC; -EFBIG: RLIMIT_FSIZE; -EMSGSIZE: the lists of the request leave no room for
 * COMMAND_LEAST bytes of the command); nothing valid is left in the file then.
 */
MUST_CHECK int ticket_append(
	struct ticket_file *file, const struct ticket *ticket, uint64_t *ret_number);
MUST_CHECK int ticket_append_control(
	struct ticket_file *file, const struct control *control);

/*
 * Rewrites the ticket of this process; without ->stuck if that would leave no room for
 * COMMAND_LEAST bytes of the command.  0 or a negative errno.
 */
MUST_CHECK int ticket_rewrite(
	struct ticket_file *file, uint64_t number, const struct ticket *ticket);

/* The number behind the last record, repairing a size that is no multiple of 512. */
MUST_CHECK int ticket_end(struct ticket_file *file, uint64_t *ret_end);

/* Reads the @count records from @number on into @raw; *@ret_count may be fewer at the end. */
MUST_CHECK int ticket_read_raw(struct ticket_file *file, uint64_t number, size_t count,
	char *raw, size_t *ret_count);

/* The first record from @number on that is not given back to the file system, or @number. */
uint64_t ticket_skip_hole(const struct ticket_file *file, uint64_t number);

/* Reads ticket @number, again a few times while its sum is bad.  What it is, or -errno. */
MUST_CHECK int ticket_read(struct ticket_file *file, uint64_t number, struct ticket *ret);

/*
 * Calls @each for every ticket from record @number on and before @end, until one returns
 * something else than 0, and returns that; else 0, -EFBIG (there is more than anybody reads), or
 * another negative errno.  What is void, broken or no ticket is passed over.
 */
typedef int ticket_each_fn(void *arg, uint64_t number, const struct ticket *ticket);
MUST_CHECK int ticket_each(struct ticket_file *file, uint64_t number, uint64_t end,
	ticket_each_fn *each, void *arg);

/* Decodes the record at @raw into @ticket or @control, or says what else it is.  Pure. */
enum ticket_kind ticket_decode(
	const char *raw, struct ticket *ticket, struct control *control);

/* What @raw is at a glance, by its first bytes: no sum is checked.  Pure. */
enum ticket_kind ticket_glance(const char *raw);

/*
 * The priority of the ticket at @raw, by its first bytes.  They are the same for its whole
 * life, so also in a half-copied record; INT64_MAX: no number, so look at it.  Pure.
 */
int64_t ticket_glance_priority(const char *raw);

/* Whether the owner of @ticket, its command, or a process that holds its FIFO, may live. */
bool ticket_may_live(const struct statedir *dir, const struct ticket *ticket);

/* The header; a broken or missing one reads as the start of the file. */
void ticket_read_header(struct ticket_file *file, struct ticket_header *header);
MUST_CHECK int ticket_write_header(
	struct ticket_file *file, const struct ticket_header *header);

#endif

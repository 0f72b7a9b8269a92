/*
 * The identity of a process in records, and whether that process still lives.
 *
 * A pid alone does not identify a process, because pids are reused.  A process is identified by its
 * pid, its pid namespace, and either the inode of its pidfd (unique within a boot since Linux 6.9)
 * or its start time.  Death is final, so OWNER_DEAD stays true.
 */
#ifndef GPULEASE_OWNER_H
#define GPULEASE_OWNER_H

#include "base.h"
#include "record.h"

struct stat;

enum { TOKEN_SIZE = 17, BOOT_SIZE = 33 };

struct owner {
	uint32_t pid;
	uint32_t uid;
	uint64_t inode; /* of the pidfd; 0: the kernel has no unique ones */
	uint64_t start; /* clock ticks after boot, from /proc/PID/stat */
	uint64_t pidns; /* inode of the pid namespace */
	char token[TOKEN_SIZE];
	uint32_t is_adopted; /* one of enum owner_adoption */
};

/*
 * Whether the owner of a lease is older than the lease, and so holds no FIFO.  WATCHED: its
 * watchdog holds the FIFO in its place.  UNWATCHED: no process does, as in leases of earlier
 * versions.
 */
enum owner_adoption { OWNER_NOT_ADOPTED, OWNER_UNWATCHED, OWNER_WATCHED };

/*
 * The command that an owner runs as its supervisor: a child of the owner, in the same pid
 * namespace.
 */
struct command {
	uint32_t pid;   /* 0: there is no command, or its pid is unknown */
	uint64_t inode; /* of the pidfd, as in struct owner */
	uint64_t start; /* as in struct owner; 0: unknown */
};

#define COMMAND_NONE ((struct command){ .pid = 0 })

/* The record fields of a struct command that is the member @member of a struct @type. */
#define COMMAND_FIELDS(type, member)                                       \
	{ "runs", RECORD_U32, offsetof(type, member.pid), 0 },             \
		{ "rinode", RECORD_U64, offsetof(type, member.inode), 0 }, \
	{                                                                  \
		"rstart", RECORD_U64, offsetof(type, member.start), 0      \
	}

/* The record fields of a struct owner that is the member @member of a struct @type. */
#define OWNER_FIELDS(type, member)                                                  \
	{ "pid", RECORD_U32, offsetof(type, member.pid), 0 },                       \
		{ "uid", RECORD_U32, offsetof(type, member.uid), 0 },               \
		{ "inode", RECORD_U64, offsetof(type, member.inode), 0 },           \
		{ "start", RECORD_U64, offsetof(type, member.start), 0 },           \
		{ "pidns", RECORD_U64, offsetof(type, member.pidns), 0 },           \
		{ "token", RECORD_TEXT, offsetof(type, member.token), TOKEN_SIZE }, \
	{                                                                           \
		"adopted", RECORD_U32, offsetof(type, member.is_adopted), 0         \
	}

/*
 * OWNER_ALIVE and OWNER_DEAD are certain.  OWNER_UNDECIDED: the owner is in another pid namespace,
 * /proc hides it, or a call failed (EMFILE …).  The caller must not take that for death: the
 * owner's live FIFO decides.
 */
enum owner_state { OWNER_DEAD, OWNER_ALIVE, OWNER_UNDECIDED };

/* Sets *@owner to the calling process, with a new token.  Returns 0 or a negative errno. */
MUST_CHECK int owner_self(struct owner *owner);

/*
 * Sets *@owner to process @pid of this pid namespace, without a token.  Returns 0 or a negative
 * errno (-ESRCH: there is no such process).
 */
MUST_CHECK int owner_of_pid(uint32_t pid, struct owner *owner);

/*
 * Finds out whether @owner lives; @my_pidns is the pid namespace of the caller.  If it lives,
 * *@ret_pidfd becomes a pidfd, which polls readable once the owner has ended; else, or without
 * pidfds, -1.  @ret_pidfd may be NULL.
 */
enum owner_state owner_judge(
	const struct owner *owner, uint64_t my_pidns, int *ret_pidfd);

/*
 * Searches all visible processes for @owner, which is of another pid namespace.  OWNER_ALIVE: it
 * lives; *@ret, if not NULL, becomes @owner as it is called in this pid namespace, and *@ret_pidfd
 * its pidfd (-1 without pidfds).  OWNER_DEAD: this process sees all processes of the machine, and
 * @owner is not among them.
 */
enum owner_state owner_seek(const struct owner *owner, struct owner *ret, int *ret_pidfd);

/*
 * Sets *@command to the child @pid of this process.  Returns 0, or COMMAND_HIDDEN if only its pid
 * can be found: before Linux 6.9, /proc with hidepid hides a set-group-ID child until it has
 * executed the command.  The caller tries again later then.
 */
enum command_outcome { COMMAND_HIDDEN = 1 };
MUST_CHECK int command_of_child(uint32_t pid, struct command *command);

/* Returns @owner with the process of its @command instead of its own.  Pure. */
struct owner owner_as_command(const struct owner *owner, const struct command *command);

/*
 * Finds out whether a job lives.  OWNER_DEAD: both @owner and its @command, if it has one, are
 * dead.  OWNER_ALIVE: one of them lives.
 */
enum owner_state owner_judge_job(
	const struct owner *owner, const struct command *command, uint64_t my_pidns);

/* Whether the process of @pidfd has ended; a zombie has. */
bool pidfd_has_ended(int pidfd);

/*
 * Finds out how the process of @pidfd ended; any process that opened the pidfd in time may ask.
 * Returns 0 and sets *@ret_status to the exit status, or to 128 plus the number of the signal;
 * PIDFD_NOT_REAPED if the process runs or is a zombie; or a negative errno if the kernel does not
 * tell (before Linux 6.15).
 */
enum pidfd_outcome { PIDFD_NOT_REAPED = 1 };
MUST_CHECK int pidfd_exit_status(int pidfd, int *ret_status);

/* Tests whether the kernel tells a process that is not the parent how a process ended. */
bool pidfd_can_tell_exit(void);

/* Returns a pidfd of process @pid, or a negative errno (-ENOSYS, -EPERM: no pidfds here). */
int pidfd_open_process(uint32_t pid);

/*
 * Sends @signal to process @pid, by @pidfd if it is not negative and pidfds work here: then the
 * signal cannot reach a later process with the same pid.  The pid in a record may be wrong or
 * forged, and root may signal every process, so the real user of the process has to be @uid.
 * @uid is PROCESS_ANY_USER for a process that is known from elsewhere.  Returns 0,
 * PROCESS_OF_ANOTHER if the process belongs to another user, or a negative errno.
 */
#define PROCESS_ANY_USER UINT32_MAX
enum process_outcome { PROCESS_OF_ANOTHER = 1 };
MUST_CHECK int process_signal(uint32_t pid, int pidfd, uint32_t uid, int signal);

/*
 * Sends @signal to the process group of @pid if @pid is its leader, else to the process alone.
 * Process 1 is always signaled alone, because kill(2) of -1 reaches every process.  Returns as
 * process_signal().
 */
MUST_CHECK int process_signal_group(uint32_t pid, int pidfd, uint32_t uid, int signal);

/* Whether no process of this pid namespace has the pid @pid, not even one that /proc hides. */
bool process_has_vanished(uint32_t pid);

/* The fields of /proc/PID/stat that gpulease needs. */
struct process_stat {
	char comm[64]; /* the name; it may hold any byte but NUL */
	char state;
	uint32_t parent, threads;
	uint64_t start;
};

/* Reads /proc/@pid/stat.  Returns 0 or a negative errno (-ENOENT: no process, or hidden). */
MUST_CHECK int process_stat_read(uint32_t pid, struct process_stat *stat);

/*
 * Whether the process has ended, reaped or not.  If the main thread of a process has exited before
 * the others, the process looks like a zombie, but lives.  Pure.
 */
bool process_has_ended(const struct process_stat *stat);

/* Reads the text of a stat file, split at its last `)`.  Returns 0 or -EBADMSG.  Pure. */
MUST_CHECK int process_stat_parse(const char *text, struct process_stat *stat);

/*
 * Whether process @pid has @pipe open for reading only, or for writing.  Return 1 for yes, 0 for
 * no, or a negative errno if the user's rights do not allow to see the files of that process.
 */
MUST_CHECK int process_reads_from(uint32_t pid, const struct stat *pipe);
MUST_CHECK int process_writes_to(uint32_t pid, const struct stat *pipe);

/* Writes the id of this boot: 32 hexadecimal digits.  Returns 0 or a negative errno. */
MUST_CHECK int boot_id_read(char out[BOOT_SIZE]);

/* Writes a new token: 16 random hexadecimal digits.  Returns 0 or a negative errno. */
MUST_CHECK int token_make(char out[TOKEN_SIZE]);

/* Whether @text has the form of a token: 16 hexadecimal digits.  It is a safe file name then. */
bool is_token(const char *text);

#endif

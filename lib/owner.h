/*
 * The identity of a process, as records name it, and whether that process still lives.
 *
 * A pid alone is no identity: it is used again.  Together with the inode of its pidfd
 * (Linux 6.9 and later: unique within a boot) or its start time, and the pid namespace in
 * which it counts, it is.  Death is final, so a verdict never goes stale.
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
	uint64_t inode; /* of the pidfd; 0 where the kernel has none */
	uint64_t start; /* clock ticks after boot, from /proc/PID/stat */
	uint64_t pidns; /* inode of the pid namespace */
	char token[TOKEN_SIZE];
	uint32_t is_adopted; /* of a lease: it was there before, and holds no FIFO */
};

/*
 * The command that an owner runs as its supervisor: a child of the owner, in the same pid
 * namespace.
 */
struct command {
	uint32_t pid;   /* 0: there is none, or it is not known */
	uint64_t inode; /* of the pidfd, as in an owner */
	uint64_t start; /* likewise; 0: not known */
};

#define COMMAND_NONE ((struct command){ .pid = 0 })

/* The fields of a command embedded as @member in a struct of a record. */
#define COMMAND_FIELDS(type, member)                                       \
	{ "runs", RECORD_U32, offsetof(type, member.pid), 0 },             \
		{ "rinode", RECORD_U64, offsetof(type, member.inode), 0 }, \
	{                                                                  \
		"rstart", RECORD_U64, offsetof(type, member.start), 0      \
	}

/* The fields of an owner embedded as @member in a struct of a record. */
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
 * ALIVE and DEAD are certain.  UNDECIDED: another pid namespace, a hidden /proc, or no means
 * to look (EMFILE …): never to be read as death; the owner's FIFO in live/ decides.
 */
enum owner_state { OWNER_DEAD, OWNER_ALIVE, OWNER_UNDECIDED };

/* Fills in the calling process with a fresh token.  0 or a negative errno. */
MUST_CHECK int owner_self(struct owner *owner);

/* Fills in the process @pid of this pid namespace, without a token.  0 or -ESRCH, -errno. */
MUST_CHECK int owner_of_pid(uint32_t pid, struct owner *owner);

/*
 * Judges @owner from the pid namespace @my_pidns.  For a live one *@ret_pidfd becomes a pidfd
 * that polls readable when it dies, or -1 where there is none.  @ret_pidfd may be NULL.
 */
enum owner_state owner_judge(
	const struct owner *owner, uint64_t my_pidns, int *ret_pidfd);

/*
 * Fills in @command for the child @pid of this process.  0; or COMMAND_HIDDEN: only its pid is
 * known (before Linux 6.9 with hidepid, until a set-group-ID child has become the command): call
 * again later.
 */
enum { COMMAND_HIDDEN = 1 };
MUST_CHECK int command_of_child(uint32_t pid, struct command *command);

/* @command, which @owner runs, as an owner of its own with the same token.  Pure. */
struct owner owner_as_command(const struct owner *owner, const struct command *command);

/*
 * Judges the job itself: @owner and, where it has one, its @command.  DEAD: both are; ALIVE: one
 * of them lives.
 */
enum owner_state owner_judge_job(
	const struct owner *owner, const struct command *command, uint64_t my_pidns);

/* Whether the process behind @pidfd has ended (a zombie has). */
bool pidfd_has_ended(int pidfd);

/*
 * Asks how the process behind @pidfd ended, which anybody may who had it open before.  0 with
 * its exit status, 128 + the number for a signal; PIDFD_NOT_REAPED: it runs, or its parent has
 * not waited for it yet; or a negative errno: it cannot be told (before Linux 6.15).
 */
enum { PIDFD_NOT_REAPED = 1 };
MUST_CHECK int pidfd_exit_status(int pidfd, int *ret_status);

/* Opens a pidfd, or returns a negative errno (-ENOSYS, -EPERM: this system has none). */
int pidfd_open_process(uint32_t pid);

/*
 * Sends @signal to process @pid.  Uses @pidfd (which may be negative) where that works: then the
 * signal reaches the process that was looked at, never a later one with the same pid.  The real
 * user of the process has to be @uid, because the pid in a record may be wrong or forged, and
 * root's signals reach every process.  For a process that is known otherwise, @uid is
 * PROCESS_ANY_USER.  0, PROCESS_OF_ANOTHER, or a negative errno.
 */
#define PROCESS_ANY_USER UINT32_MAX
enum { PROCESS_OF_ANOTHER = 1 };
MUST_CHECK int process_signal(uint32_t pid, int pidfd, uint32_t uid, int signal);

/*
 * Signals the process group of @pid if @pid leads one; else the process alone.  Process 1 is always
 * signalled alone: kill(2) of -1 reaches every process.  Returns as process_signal().
 */
MUST_CHECK int process_signal_group(uint32_t pid, int pidfd, uint32_t uid, int signal);

/* Whether nobody in our own pid namespace is process @pid, also where /proc hides some. */
bool process_has_vanished(uint32_t pid);

/* What /proc/PID/stat says that gpulease needs. */
struct process_stat {
	char comm[64]; /* as the kernel has it: any bytes but NUL */
	char state;
	uint32_t parent, threads;
	uint64_t start;
};

/* 0, or a negative errno: -ENOENT no such process, or a hidden one. */
MUST_CHECK int process_stat_read(uint32_t pid, struct process_stat *stat);

/*
 * Whether it has ended, known to its parent or not.  A leader that has left before its threads
 * looks like a zombie, and lives.  Pure.
 */
bool process_has_ended(const struct process_stat *stat);

/* Reads the fields from the text of a stat file, split at its last `)`.  Pure. */
MUST_CHECK int process_stat_parse(const char *text, struct process_stat *stat);

/*
 * Whether process @pid has @pipe open for reading alone, or for writing: 1, 0, or a negative errno:
 * with the user's rights this process cannot see what it has open.
 */
MUST_CHECK int process_reads_from(uint32_t pid, const struct stat *pipe);
MUST_CHECK int process_writes_to(uint32_t pid, const struct stat *pipe);

/* Writes the id of this boot as 32 hexadecimal digits.  0 or a negative errno. */
MUST_CHECK int boot_id_read(char out[BOOT_SIZE]);

/* Writes 16 fresh random hexadecimal digits.  0 or a negative errno. */
MUST_CHECK int token_make(char out[TOKEN_SIZE]);

/* Whether @text is a token: 16 hexadecimal digits, so also safe as a file name. */
bool is_token(const char *text);

#endif

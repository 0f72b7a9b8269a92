#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "fdio.h"
#include "namespaces.h"
#include "owner.h"
#include "proc.h"
#include "rights.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* The file system of pidfds since Linux 6.9.  Before, all pidfds shared one inode. */
enum { PIDFS_MAGIC = 0x50494446 };

/*
 * struct pidfd_info in its first form (Linux 6.13).  The caller sets the bits of ->mask for the
 * fields that it needs; the kernel sets those for the fields that it has filled in.
 */
struct exit_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code; /* as in wait(2) */
};

enum { WANT_EXIT = 1 << 3 };

int token_make(char out[TOKEN_SIZE])
{
	uint64_t bits = 0;

	if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return -errno;
	(void)snprintf(out, TOKEN_SIZE, "%016llx", (unsigned long long)bits);
	return 0;
}

bool is_token(const char *text)
{
	return strspn(text, "0123456789abcdef") == TOKEN_SIZE - 1 &&
	       !text[TOKEN_SIZE - 1];
}

int boot_id_read(char out[BOOT_SIZE])
{
	char text[64];
	size_t used = 0;
	int r = fdio_read_text(
		AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof(text));

	if (r < 0)
		return r;
	/* the file has dashes and a newline */
	for (const char *at = text; *at && used < BOOT_SIZE - 1; at++)
		if (isxdigit((unsigned char)*at))
			out[used++] = *at;
	out[used] = '\0';
	return used == BOOT_SIZE - 1 ? 0 : -EBADMSG;
}

/* --- /proc/PID/stat ---------------------------------------------------------------- */

int process_stat_parse(const char *text, struct process_stat *stat)
{
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')'); /* the name itself may hold any bytes */
	unsigned long long start = 0;
	unsigned parent = 0, threads = 0;
	char state = 0;

	if (!open || !close || close < open)
		return -EBADMSG;
	/* fields 3 (state), 4 (parent), 20 (threads), 22 (start) of proc(5) */
	if (sscanf(close + 1,
		    " %c %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %u "
		    "%*s %llu",
		    &state, &parent, &threads, &start) != 4)
		return -EBADMSG;
	*stat = (struct process_stat){
		.state = state, .parent = parent, .threads = threads, .start = start
	};
	(void)snprintf(stat->comm, sizeof(stat->comm), "%.*s", (int)(close - open - 1),
		open + 1);
	return 0;
}

bool process_has_ended(const struct process_stat *stat)
{
	return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}

int process_stat_read(uint32_t pid, struct process_stat *stat)
{
	char text[1024];
	int r = proc_read_text(pid, "stat", text, sizeof(text));

	if (r < 0)
		return r == -ESRCH ? -ENOENT : r; /* it ended between open and read */
	return process_stat_parse(text, stat);
}

/* --- pidfd ------------------------------------------------------------------------- */

int pidfd_open_process(uint32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);

	return fd < 0 ? -errno : fd;
}

bool pidfd_has_ended(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & (POLLIN | POLLHUP));
}

/*
 * Asks the kernel for the exit status (PIDFD_GET_INFO).  Uses syscall(2), because C libraries
 * differ in the type of ioctl's request.  Returns 0 or a negative errno.
 */
static int pidfd_read_exit(int pidfd, struct exit_info *info)
{
	*info = (struct exit_info){ .mask = WANT_EXIT };
	return syscall(SYS_ioctl, pidfd, _IOWR(0xFF, 11, struct exit_info), info) < 0
		       ? -errno
		       : 0;
}

int pidfd_exit_status(int pidfd, int *ret_status)
{
	struct exit_info info;
	int r = pidfd_read_exit(pidfd, &info);

	/* the process may have been reaped between the two steps of the kernel: ask again */
	if (r == -ESRCH)
		r = pidfd_read_exit(pidfd, &info);
	if (r < 0)
		return r;
	/* for a process that runs, the kernel answers without the status */
	if (!(info.mask & WANT_EXIT))
		return PIDFD_NOT_REAPED;
	*ret_status = WIFSIGNALED(info.exit_code) ? 128 + WTERMSIG(info.exit_code)
						  : WEXITSTATUS(info.exit_code);
	return 0;
}

bool pidfd_can_tell_exit(void)
{
	int status, pidfd;
	pid_t child = fork();
	bool can_tell;

	if (child == 0) {
		(void)poll(NULL, 0, 1000); /* until the parent has its pidfd */
		_exit(0);
	}
	if (child < 0)
		return false;
	pidfd = pidfd_open_process((uint32_t)child);
	(void)kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	can_tell = pidfd >= 0 && pidfd_exit_status(pidfd, &status) == 0;
	close_fd(&pidfd);
	return can_tell;
}

/* Returns 0 if the real user of process @pid is @uid; else as process_signal(). */
static int process_check_user(uint32_t pid, int pidfd, uint32_t uid)
{
	uint32_t user;
	int r;

	if (uid == PROCESS_ANY_USER)
		return 0;
	r = proc_find_real_user(pid, &user);
	if (r == 0 && user == uid)
		return 0;
	/* the process has just been reaped, and its pid is free or another process's */
	if (pidfd >= 0 ? pidfd_has_ended(pidfd) : process_has_vanished(pid))
		return -ESRCH;
	if (r == 0)
		return PROCESS_OF_ANOTHER;
	/* /proc hides the process: kill(2) checks the user, but not for root */
	return geteuid() == 0 ? -EPERM : 0;
}

/* Sends the signal without a check of the user.  Returns 0 or a negative errno. */
static int process_send_signal(uint32_t pid, int pidfd, int signal)
{
	if (pidfd >= 0) {
		if (syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0u) == 0)
			return 0;
		if (errno == ESRCH)
			return -ESRCH;
		/* any other error: a sandbox may forbid the call, so try kill(2) */
	}
	/* to kill(2), 0 and negative numbers mean process groups */
	if (pid == 0 || pid > INT32_MAX)
		return -ESRCH;
	return kill((pid_t)pid, signal) < 0 ? -errno : 0;
}

int process_signal(uint32_t pid, int pidfd, uint32_t uid, int signal)
{
	int r = process_check_user(pid, pidfd, uid);

	return r == 0 ? process_send_signal(pid, pidfd, signal) : r;
}

int process_signal_group(uint32_t pid, int pidfd, uint32_t uid, int signal)
{
	int r = process_check_user(pid, pidfd, uid);

	if (r != 0)
		return r;
	if (pid <= 1 || pid > INT32_MAX || getpgid((pid_t)pid) != (pid_t)pid)
		return process_send_signal(pid, pidfd, signal);
	/*
	 * While the process of @pidfd lives the pid is its own, and so is the group of that number.
	 */
	if (pidfd >= 0 && pidfd_has_ended(pidfd))
		return -ESRCH;
	return kill(-(pid_t)pid, signal) < 0 ? -errno : 0;
}

/* Returns the inode of the pidfd; 0: the kernel has no unique ones (before Linux 6.9). */
static uint64_t pidfd_inode(int pidfd)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(pidfd, &fs) < 0 || fs.f_type != PIDFS_MAGIC || fstat(pidfd, &st) < 0)
		return 0;
	return st.st_ino;
}

/* --- identity ---------------------------------------------------------------------- */

/* Sets *@owner but its token, and its user only if that is not this process's own. */
static int identify(uint32_t pid, bool is_self, struct owner *owner)
{
	struct process_stat stat;
	autofd int pidfd = pidfd_open_process(pid);
	struct owner out = { .pid = pid, .pidns = namespaces_pidns() };
	int r;

	/*
	 * The pidfd is open first, so its end shows that what is read next may be of another
	 * process.
	 */
	if (pidfd == -ESRCH)
		return -ESRCH;
	out.inode = pidfd >= 0 ? pidfd_inode(pidfd) : 0;
	r = process_stat_read(pid, &stat);
	if (r < 0)
		return r;
	out.start = stat.start;
	/* /proc/PID belongs to the effective user, or to root if this process is not dumpable */
	if (is_self)
		out.uid = namespaces_own_user();
	else
		r = proc_find_user(pid, &out.uid);
	if (r < 0)
		return r;
	if (!out.pidns)
		return -ENOENT;
	if (pidfd >= 0 && pidfd_has_ended(pidfd))
		return -ESRCH;
	*owner = out;
	return 0;
}

int owner_of_pid(uint32_t pid, struct owner *owner)
{
	return identify(pid, false, owner);
}

int owner_self(struct owner *owner)
{
	int r = identify((uint32_t)getpid(), true, owner);

	return r < 0 ? r : token_make(owner->token);
}

int command_of_child(uint32_t pid, struct command *command)
{
	autofd int pidfd = pidfd_open_process(pid);
	struct process_stat stat;

	*command = (struct command){ .pid = pid };
	if (pidfd >= 0)
		command->inode = pidfd_inode(pidfd);
	/* a child keeps its pid until this process reaps it, so this is the child */
	if (process_stat_read(pid, &stat) == 0)
		command->start = stat.start;
	return command->inode || command->start ? 0 : COMMAND_HIDDEN;
}

struct owner owner_as_command(const struct owner *owner, const struct command *command)
{
	struct owner out = *owner;

	out.pid = command->pid;
	out.inode = command->inode;
	out.start = command->start;
	return out;
}

enum owner_state owner_judge_job(
	const struct owner *owner, const struct command *command, uint64_t my_pidns)
{
	enum owner_state state = owner_judge(owner, my_pidns, NULL);
	struct owner as_command = owner_as_command(owner, command);

	return state == OWNER_DEAD && command->pid
		       ? owner_judge(&as_command, my_pidns, NULL)
		       : state;
}

bool process_has_vanished(uint32_t pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/*
 * What it means that /proc/PID/stat could not be read, with @error.  A lack of descriptors or
 * memory says nothing of the process, and must not leave the decision to its FIFO, which it may
 * have closed.
 */
static enum owner_state judge_unread(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM ? OWNER_ALIVE
									: OWNER_UNDECIDED;
}

/* Judges @owner without a pidfd, by the start time and state in /proc. */
static enum owner_state judge_by_proc(const struct owner *owner)
{
	struct process_stat stat;
	int r = process_stat_read(owner->pid, &stat);

	if (r < 0) /* /proc may hide a process that lives */
		return process_has_vanished(owner->pid) ? OWNER_DEAD : judge_unread(r);
	if (!owner->start) /* unknown, of a command: see command_of_child() */
		return OWNER_UNDECIDED;
	if (stat.start != owner->start) /* a later process has the pid */
		return OWNER_DEAD;
	if (process_has_ended(&stat))
		return OWNER_DEAD;
	return OWNER_ALIVE;
}

/*
 * Judges @owner by @pidfd, which was opened by its pid just now.  It may be the pidfd of a later
 * process with that pid.
 */
static enum owner_state judge_by_pidfd(const struct owner *owner, int pidfd)
{
	uint64_t inode = owner->inode ? pidfd_inode(pidfd) : 0;
	struct process_stat stat;
	int r;

	if (pidfd_has_ended(pidfd))
		return OWNER_DEAD;
	if (inode)
		return inode == owner->inode ? OWNER_ALIVE : OWNER_DEAD;
	/* the kernel, or the record, has no inode: compare the start times */
	r = process_stat_read(owner->pid, &stat);
	if (r < 0)
		return pidfd_has_ended(pidfd) ? OWNER_DEAD : judge_unread(r);
	if (!owner->start)
		return OWNER_UNDECIDED;
	return stat.start == owner->start ? OWNER_ALIVE : OWNER_DEAD;
}

/*
 * Whether the descriptor @name in the folder @fds is an end of @pipe.  @rights is S_IWUSR for an
 * end that can write, S_IRUSR for an end that can only read.
 */
static bool is_pipe_end(int fds, const char *name, const struct stat *pipe, mode_t rights)
{
	struct stat file, link;

	/* the mode of the link shows how the file was opened */
	return fstatat(fds, name, &file, 0) == 0 && file.st_ino == pipe->st_ino &&
	       file.st_dev == pipe->st_dev &&
	       fstatat(fds, name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (rights == S_IRUSR ? (link.st_mode & (S_IRUSR | S_IWUSR)) == S_IRUSR
				  : (link.st_mode & rights) != 0);
}

/* Looks for such an end among the descriptors of process @pid.  Returns as process_reads_from(). */
static int process_has_pipe_end(uint32_t pid, const struct stat *pipe, mode_t rights)
{
	struct dirent *entry;
	char path[PROC_PATH_SIZE];
	int result = proc_path(pid, "fd", path);
	DIR *fds;

	if (result < 0)
		return result;
	/* a set-group-ID program shows only what the user could see */
	rights_as_user_begin();
	fds = opendir(path);
	if (!fds)
		result = -errno;
	while (fds && !result && (entry = readdir(fds)))
		result = isdigit((unsigned char)entry->d_name[0]) &&
			 is_pipe_end(dirfd(fds), entry->d_name, pipe, rights);
	rights_as_user_end();
	if (fds)
		(void)closedir(fds);
	return result;
}

int process_reads_from(uint32_t pid, const struct stat *pipe)
{
	return process_has_pipe_end(pid, pipe, S_IRUSR);
}

int process_writes_to(uint32_t pid, const struct stat *pipe)
{
	return process_has_pipe_end(pid, pipe, S_IWUSR);
}

/*
 * Judges whether process @pid of this pid namespace is @owner, which is of another one.  Returns
 * OWNER_DEAD if it is another process, or is @owner and has ended.
 */
static enum owner_state judge_other_name(
	const struct owner *owner, uint32_t pid, int *ret_pidfd)
{
	autofd int pidfd = pidfd_open_process(pid);
	uint64_t inode = owner->inode && pidfd >= 0 ? pidfd_inode(pidfd) : 0;
	struct process_stat stat = { .start = 0 };
	uint32_t inner = 0;
	int r = 0;

	if (pidfd == -ESRCH || (pidfd >= 0 && pidfd_has_ended(pidfd)))
		return OWNER_DEAD;
	if (!inode) {
		r = process_stat_read(pid, &stat);
		if (r == 0 && stat.start == owner->start)
			r = proc_find_inner_pid(pid, &inner);
	}
	if (r < 0)
		return process_has_vanished(pid) ? OWNER_DEAD : OWNER_UNDECIDED;
	if (inode ? inode != owner->inode
		  : inner != owner->pid || process_has_ended(&stat))
		return OWNER_DEAD;
	*ret_pidfd = take_fd(&pidfd);
	return OWNER_ALIVE;
}

enum owner_state owner_seek(const struct owner *owner, struct owner *ret, int *ret_pidfd)
{
	enum owner_state state = namespaces_sees_all() ? OWNER_DEAD : OWNER_UNDECIDED;
	autofree uint32_t *pids = NULL;
	size_t count = 0;

	*ret_pidfd = -1;
	if (proc_list(0, &pids, &count) < 0)
		return OWNER_UNDECIDED;
	for (size_t i = 0; i < count; i++) {
		enum owner_state one = judge_other_name(owner, pids[i], ret_pidfd);

		if (one == OWNER_ALIVE && ret) {
			*ret = *owner;
			ret->pid = pids[i];
			ret->pidns = namespaces_pidns();
		}
		if (one == OWNER_ALIVE)
			return one;
		if (one == OWNER_UNDECIDED)
			state = one;
	}
	return state;
}

enum owner_state owner_judge(const struct owner *owner, uint64_t my_pidns, int *ret_pidfd)
{
	autofd int pidfd = -1;
	enum owner_state state;

	if (ret_pidfd)
		*ret_pidfd = -1;
	if (owner->pidns != my_pidns)
		return OWNER_UNDECIDED;
	pidfd = pidfd_open_process(owner->pid);
	if (pidfd == -ESRCH)
		return OWNER_DEAD;
	state = pidfd >= 0 ? judge_by_pidfd(owner, pidfd) : judge_by_proc(owner);
	if (state == OWNER_ALIVE && ret_pidfd && pidfd >= 0)
		*ret_pidfd = take_fd(&pidfd);
	return state;
}

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "batch_journal.h"
#include "clock.h"
#include "date_time.h"
#include "fdio.h"
#include "parse.h"
#include "rights.h"
#include "userfile.h"

static const char journal_name[] = "journal.jsonl", lock_name[] = "lock";

enum { LOCK_PATIENCE_MS = 5000, LOCK_STEP_MS = 10 };

/* --- files ------------------------------------------------------------------------- */

/*
 * Opens @name in the folder; a new file is for this user only.  Tries without O_CREAT first,
 * because fs.protected_regular makes that fail on another user's file.  Returns a descriptor or a
 * negative errno: -EPERM if the file belongs to another user, because its contents cannot be
 * trusted; -EINVAL if it is not a regular file.
 */
static int journal_open_file(int folder_fd, const char *name, int flags)
{
	enum { ATTEMPTS = 10 };
	int all = flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, r = -EAGAIN;

	for (int i = 0; i < ATTEMPTS; i++) {
		autofd int fd = openat(folder_fd, name, all);
		struct stat st;

		if (fd < 0 && errno == ENOENT)
			fd = openat(folder_fd, name, all | O_CREAT | O_EXCL, 0600);
		if (fd >= 0)
			return fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -EINVAL
			       : st.st_uid != getuid()                    ? -EPERM
									  : take_fd(&fd);
		r = -errno;
		/* -EEXIST: another process created it between the two calls */
		if (r != -EEXIST)
			break;
	}
	return r;
}

/* Sets the reason why @name cannot be opened; returns @error. */
static int journal_refuse(
	const struct batch_journal *journal, const char *name, int error, struct why *why)
{
	why_set(why, "cannot open '%s/%s': %s; --log-dir DIR names another folder",
		journal->folder, name,
		error == -EINVAL  ? "it is not a regular file"
		: error == -EPERM ? "it belongs to another user"
				  : strerror(-error));
	return error;
}

static int journal_open_folder(struct batch_journal *journal, struct why *why)
{
	int r = userfile_mkdir(journal->folder, 0700);

	if (r == 0 || r == -EEXIST)
		r = userfile_open(journal->folder, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		journal->folder_fd = r;
	else
		why_set(why,
			"cannot make the folder '%s': %s; --log-dir DIR names another",
			journal->folder, strerror(-r));
	return r < 0 ? r : 0;
}

static int journal_open_events(struct batch_journal *journal, struct why *why)
{
	int fd = journal_open_file(journal->folder_fd, journal_name, O_APPEND);

	if (fd < 0)
		return journal_refuse(journal, journal_name, fd, why);
	close_fd(&journal->fd);
	journal->fd = fd;
	journal->read = 0;
	return 0;
}

/* --- the lock ---------------------------------------------------------------------- */

/* The runner that took the lock last, as its text says. */
struct holder {
	uint64_t pid, since_ms;
};

/* Reads the text of the lock file.  Returns false if it has none that can be read. */
static bool holder_read(const struct batch_journal *journal, struct holder *ret)
{
	char text[64], *blank, *end;
	size_t size = 0;

	if (fdio_pread(journal->lock_fd, text, sizeof(text) - 1, 0, &size) < 0)
		return false;
	text[size] = '\0';
	blank = strchr(text, ' ');
	end = strchr(text, '\n');
	if (!blank || !end || end < blank)
		return false;
	*blank = *end = '\0';
	return parse_u64(text, INT32_MAX, &ret->pid, NULL) == 0 && ret->pid > 0 &&
	       parse_u64(blank + 1, INT64_MAX, &ret->since_ms, NULL) == 0;
}

/*
 * Whether the process lives.  A zombie has closed its lock.  A process that /proc hides from this
 * user counts as alive.
 */
static bool is_holder_alive(const struct holder *holder)
{
	struct process_stat stat;

	if (process_stat_read((uint32_t)holder->pid, &stat) == 0)
		return !process_has_ended(&stat);
	return kill((pid_t)holder->pid, 0) == 0 || errno == EPERM;
}

static void holder_write(const struct batch_journal *journal)
{
	char line[64];
	struct text text = TEXT_ON(line);

	text_addf(&text, "%d %lld\n", (int)getpid(), (long long)clock_real_ms());
	/* only for the message of another runner, so a failure does not matter */
	if (fdio_pwrite(journal->lock_fd, line, text.used, 0) == 0)
		(void)!ftruncate(journal->lock_fd, (off_t)text.used);
}

static int journal_refuse_held(const struct batch_journal *journal,
	const struct holder *holder, bool is_known, struct why *why)
{
	char words[32];
	struct text since = TEXT_ON(words);

	if (!is_known) {
		why_set(why,
			"jobs of a run that was killed still hold '%s/%s'; try again when "
			"they have ended",
			journal->folder, lock_name);
		return -EBUSY;
	}
	date_time_add_since((int64_t)holder->since_ms, clock_real_ms(), &since);
	why_set(why,
		"another gpulease (pid %llu, since %s) works on '%s'; it notices changes "
		"of the file by itself",
		(unsigned long long)holder->pid, words, journal->folder);
	return -EBUSY;
}

static int journal_open_lock(struct batch_journal *journal, struct why *why)
{
	journal->lock_fd = journal_open_file(journal->folder_fd, lock_name, 0);
	return journal->lock_fd < 0
		       ? journal_refuse(journal, lock_name, journal->lock_fd, why)
		       : 0;
}

/*
 * Takes the lock and writes its text.  If the runner in the text is dead, it was killed: its jobs
 * that have not started inherited the lock and are about to close it, so wait for them.  Waits as
 * well if the text is missing or that of an earlier runner, because the lock's holder may not have
 * written it yet.
 */
static int journal_take_lock(struct batch_journal *journal, struct why *why)
{
	int64_t until_ms = clock_boot_ms() + LOCK_PATIENCE_MS;
	struct holder holder = { .pid = 0 };
	bool is_known;

	while (flock(journal->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return journal_refuse(journal, lock_name, -errno, why);
		is_known = holder_read(journal, &holder) && is_holder_alive(&holder);
		if (is_known || clock_boot_ms() >= until_ms)
			return journal_refuse_held(journal, &holder, is_known, why);
		(void)poll(NULL, 0, LOCK_STEP_MS);
	}
	holder_write(journal);
	return 0;
}

/* --- opening ----------------------------------------------------------------------- */

int batch_journal_open(const char *folder, struct batch_journal *ret, struct why *why)
{
	struct batch_journal journal = BATCH_JOURNAL_NONE;
	struct text text = TEXT_ON(journal.folder);
	int r;

	text_add(&text, folder);
	if (text.cut) {
		why_set(why, "the name of the folder for logs is too long");
		return -ENAMETOOLONG;
	}
	rights_as_user_begin();
	r = journal_open_folder(&journal, why);
	if (r == 0)
		r = journal_open_lock(&journal, why);
	rights_as_user_end();
	/* with all rights, because the user's alone may not see the other process: see proc.h */
	if (r == 0)
		r = journal_take_lock(&journal, why);
	rights_as_user_begin();
	if (r == 0)
		r = journal_open_events(&journal, why);
	rights_as_user_end();
	if (r < 0)
		batch_journal_release(&journal);
	else
		*ret = journal;
	return r;
}

int batch_journal_renew(struct batch_journal *journal, struct why *why)
{
	char old[sizeof(journal_name) + 1];
	int r = 0;

	(void)snprintf(old, sizeof(old), "%s~", journal_name);
	rights_as_user_begin();
	if (renameat(journal->folder_fd, journal_name, journal->folder_fd, old) < 0 &&
		errno != ENOENT) {
		r = -errno;
		why_set(why, "cannot put '%s/%s' aside: %s", journal->folder,
			journal_name, strerror(-r));
	}
	if (r == 0)
		r = journal_open_events(journal, why);
	rights_as_user_end();
	return r;
}

void batch_journal_release(struct batch_journal *journal)
{
	close_fd(&journal->fd);
	close_fd(&journal->lock_fd);
	close_fd(&journal->folder_fd);
}

/* --- appending --------------------------------------------------------------------- */

/*
 * Sets *@ret to whether the last line is incomplete, because its writer was killed or the disk was
 * full.  Returns 0, or -ENOENT if the journal was removed: nothing would ever read what is written
 * to it.
 */
static int journal_check_tail(int fd, bool *ret)
{
	struct stat st;
	char last = '\n';

	*ret = false;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (!st.st_nlink)
		return -ENOENT;
	*ret = st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
	return 0;
}

int batch_journal_append_lines(int fd, const char *lines, size_t size)
{
	char newline = '\n';
	bool is_torn;
	int r = journal_check_tail(fd, &is_torn);
	/*
	 * another writer may append between the check and the write; then a blank line is skipped
	 */
	struct iovec parts[] = { { &newline, is_torn }, { (void *)lines, size } };
	ssize_t n;

	if (r < 0 || !size)
		return r;
	do
		n = writev(fd, parts, ARRAY_SIZE(parts));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* do not write the rest: a line of another writer may stand between */
	return (size_t)n == parts[0].iov_len + size ? 0 : -ENOSPC;
}

int batch_journal_append(int fd, const struct batch_event *event)
{
	size_t room = BATCH_EVENT_SIZE + event->jobs_size;
	autofree char *line = malloc(room);
	struct text text;

	if (!line)
		return -ENOMEM;
	text = text_on(line, room);
	batch_event_write(event, &text);
	return text.cut ? -EMSGSIZE : batch_journal_append_lines(fd, line, text.used);
}

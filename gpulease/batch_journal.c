#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "batch_journal.h"
#include "clock.h"
#include "fdio.h"
#include "parse.h"
#include "rights.h"
#include "userfile.h"

static const char journal_name[] = "journal.jsonl", lock_name[] = "lock";

enum { LOCK_PATIENCE_MS = 5000, LOCK_STEP_MS = 10 };

/* --- files ------------------------------------------------------------------------- */

/*
 * Opens @name in the folder, for this user alone where it is new.  First without O_CREAT, which
 * fs.protected_regular refuses on a file of somebody else.  What somebody else has put there is
 * not believed.  A descriptor or a negative errno: -EPERM then.
 */
static int open_file(int folder_fd, const char *name, int flags)
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
		if (r != -EEXIST)
			break;
	}
	return r;
}

static int refuse(
	const struct batch_journal *journal, const char *name, int error, struct why *why)
{
	why_set(why, "cannot open '%s/%s': %s; --log-dir DIR names another folder",
		journal->folder, name,
		error == -EINVAL  ? "it is no regular file"
		: error == -EPERM ? "it belongs to somebody else"
				  : strerror(-error));
	return error;
}

static int open_folder(struct batch_journal *journal, struct why *why)
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

static int open_journal(struct batch_journal *journal, struct why *why)
{
	int fd = open_file(journal->folder_fd, journal_name, O_APPEND);

	if (fd < 0)
		return refuse(journal, journal_name, fd, why);
	close_fd(&journal->fd);
	journal->fd = fd;
	journal->read = 0;
	return 0;
}

/* --- the lock ---------------------------------------------------------------------- */

/* Who has the lock, as its text says. */
struct holder {
	uint64_t pid, since_ms;
};

static bool read_holder(const struct batch_journal *journal, struct holder *ret)
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

/* One that its parent has not waited for yet has let go; one that is hidden may be there. */
static bool is_alive(const struct holder *holder)
{
	struct process_stat stat;

	if (process_stat_read((uint32_t)holder->pid, &stat) == 0)
		return !process_has_ended(&stat);
	return kill((pid_t)holder->pid, 0) == 0 || errno == EPERM;
}

static void write_holder(const struct batch_journal *journal)
{
	char line[64];
	struct text text = TEXT_ON(line);

	text_addf(&text, "%d %lld\n", (int)getpid(), (long long)clock_real_ms());
	/* it only says whom to ask */
	if (fdio_pwrite(journal->lock_fd, line, text.used, 0) == 0)
		(void)!ftruncate(journal->lock_fd, (off_t)text.used);
}

static int refuse_held(const struct batch_journal *journal, const struct holder *holder,
	bool is_known, struct why *why)
{
	time_t since = (time_t)(holder->since_ms / 1000);
	char words[32] = "";
	struct tm local;

	if (!is_known) {
		why_set(why,
			"jobs of a run that was killed still hold '%s/%s'; try again when "
			"they have ended",
			journal->folder, lock_name);
		return -EBUSY;
	}
	if (localtime_r(&since, &local))
		(void)strftime(words, sizeof(words),
			clock_age_ms(clock_real_ms(), (int64_t)holder->since_ms) <
					INT64_C(86400000)
				? "%H:%M:%S"
				: "%Y-%m-%d %H:%M",
			&local);
	why_set(why,
		"another gpulease (pid %llu, since %s) works on '%s'; it sees changes of "
		"the file by itself",
		(unsigned long long)holder->pid, words, journal->folder);
	return -EBUSY;
}

static int open_lock(struct batch_journal *journal, struct why *why)
{
	journal->lock_fd = open_file(journal->folder_fd, lock_name, 0);
	return journal->lock_fd < 0 ? refuse(journal, lock_name, journal->lock_fd, why)
				    : 0;
}

/*
 * Who wrote into it and is dead was killed: jobs that have not started hold it with him, and
 * are about to leave.  Its text may be of before, or not be written yet.
 */
static int take_lock(struct batch_journal *journal, struct why *why)
{
	int64_t until_ms = clock_boot_ms() + LOCK_PATIENCE_MS;
	struct holder holder = { .pid = 0 };
	bool is_known;

	while (flock(journal->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return refuse(journal, lock_name, -errno, why);
		is_known = read_holder(journal, &holder) && is_alive(&holder);
		if (is_known || clock_boot_ms() >= until_ms)
			return refuse_held(journal, &holder, is_known, why);
		(void)poll(NULL, 0, LOCK_STEP_MS);
	}
	write_holder(journal);
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
	r = open_folder(&journal, why);
	if (r == 0)
		r = open_lock(&journal, why);
	rights_as_user_end();
	/* whether another lives is not asked with the user's rights alone: see proc.h */
	if (r == 0)
		r = take_lock(&journal, why);
	rights_as_user_begin();
	if (r == 0)
		r = open_journal(&journal, why);
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
		r = open_journal(journal, why);
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
 * Whether what was written last is no whole line: its writer was killed, the disk was full.
 * -ENOENT: the journal was removed, so nobody would ever read what is written into it.
 */
static int find_torn(int fd, bool *ret)
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
	int r = find_torn(fd, &is_torn);
	struct iovec parts[] = { { &newline, is_torn }, { (void *)lines, size } };
	ssize_t n;

	if (r < 0 || !size)
		return r;
	do
		n = writev(fd, parts, ARRAY_SIZE(parts));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* the rest would no longer be in one write */
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

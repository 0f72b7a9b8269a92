#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "batch_log.h"
#include "fdio.h"
#include "rights.h"

/* --- names ------------------------------------------------------------------------- */

enum { NAME_COLUMNS = 40 };

/* A word of a command; it has no NUL. */
struct word {
	const char *at;
	size_t size;
};

/* Takes the next word at *@at, without the quotes around it; its size is 0 if there is none. */
static struct word word_next(const char **at)
{
	static const char blanks[] = " \t", quotes[] = "'\"";
	struct word word;

	*at += strspn(*at, blanks);
	word.at = *at;
	*at += strcspn(*at, blanks);
	while (word.at < *at && strchr(quotes, *word.at))
		word.at++;
	word.size = (size_t)(*at - word.at);
	while (word.size && strchr(quotes, word.at[word.size - 1]))
		word.size--;
	return word;
}

static bool is_in_names(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
	       (c && strchr("._+-", c));
}

/* Returns the part after the last slash; slashes at the end do not count. */
static struct word word_base(struct word word)
{
	const char *slash;

	while (word.size && word.at[word.size - 1] == '/')
		word.size--;
	slash = memrchr(word.at, '/', word.size);
	if (slash) {
		word.size -= (size_t)(slash + 1 - word.at);
		word.at = slash + 1;
	}
	return word;
}

/* Whether @base is a program that runs what another word names. */
static bool is_interpreter(struct word base)
{
	static const char names[][12] = { "python", "bash", "sh", "zsh", "dash", "env",
		"exec", "nohup", "nice", "time", "torchrun", "accelerate", "launch",
		"deepspeed", "Rscript", "julia", "perl", "node" };
	size_t size = base.size;

	/* python3, python3.11 */
	while (size && (is_digit(base.at[size - 1]) || base.at[size - 1] == '.'))
		size--;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (size == strlen(names[i]) && memcmp(names[i], base.at, size) == 0)
			return true;
	return false;
}

/* Whether @word says little about a job: an option, VAR=value, or a number. */
static bool is_uninformative(struct word word)
{
	size_t digits = 0;

	while (digits < word.size && is_digit(word.at[digits]))
		digits++;
	return digits == word.size || word.at[0] == '-' ||
	       memchr(word.at, '=', word.size);
}

/*
 * Returns the word of @command that says most about it: the first that is informative and not an
 * interpreter, else the first interpreter; its size is 0 if there is neither.
 */
static struct word word_find(const char *command)
{
	struct word first = { .size = 0 }, word;
	const char *at = command;

	for (word = word_next(&at); *word.at; word = word_next(&at)) {
		struct word base = word_base(word);

		if (is_uninformative(word) || !base.size)
			continue;
		if (!is_interpreter(base))
			return base;
		if (!first.size)
			first = base;
	}
	return first;
}

static void log_add_name(struct text *out, struct word word)
{
	size_t size = word.size < NAME_COLUMNS ? word.size : NAME_COLUMNS;

	if (!size)
		text_add(out, "job");
	for (size_t i = 0; i < size; i++)
		text_add_bytes(out, is_in_names(word.at[i]) ? &word.at[i] : "_", 1);
}

void batch_log_name(
	uint64_t number, const char *name, const char *command, struct text *out)
{
	struct word word = name && name[0] ? (struct word){ name, strlen(name) }
					   : word_find(command);

	text_addf(out, "%llu-", (unsigned long long)number);
	log_add_name(out, word);
	text_add(out, ".log");
}

/* --- files ------------------------------------------------------------------------- */

enum { LOG_FLAGS = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY };

/*
 * Opens a log that is there already.  -EPERM: it belongs to another user, who could read it and may
 * have put it there for this purpose.
 */
static int log_open_existing(int folder_fd, const char *name, off_t *ret_size)
{
	autofd int fd = openat(folder_fd, name, LOG_FLAGS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*ret_size = st.st_size;
	return !S_ISREG(st.st_mode)    ? -EINVAL
	       : st.st_uid != getuid() ? -EPERM
				       : take_fd(&fd);
}

/*
 * Opens or creates the log.  With @is_first, a log that is not empty, or what another user has put
 * in its place, is renamed to NAME~ first.  Returns a descriptor or a negative errno.
 */
static int log_open(int folder_fd, const char *name, bool is_first)
{
	off_t size = 0;
	autofd int there = log_open_existing(folder_fd, name, &size);
	char old[128];
	int fd;

	/* an empty log may have been created for this job by a runner that then crashed */
	if (there >= 0 && (!is_first || size == 0))
		return take_fd(&there);
	if (there < 0 && there != -ENOENT && !is_first)
		return there;
	if (there != -ENOENT) {
		(void)snprintf(old, sizeof(old), "%s~", name);
		(void)renameat(folder_fd, name, folder_fd, old);
	}
	fd = openat(folder_fd, name, LOG_FLAGS | O_CREAT | O_EXCL, 0600);
	return fd < 0 ? -errno : fd;
}

int batch_log_open(const struct batch_journal *journal, uint64_t number, const char *name,
	const char *command, bool is_first, char path[PATH_MAX])
{
	struct text text = text_on(path, PATH_MAX);
	char file[96];
	struct text file_text = TEXT_ON(file);
	int r;

	batch_log_name(number, name, command, &file_text);
	text_addf(&text, "%s/%s", journal->folder, file);
	rights_as_user_begin();
	r = log_open(journal->folder_fd, file, is_first);
	rights_as_user_end();
	return r;
}

int batch_folder_write(const struct batch_journal *journal, const char *name,
	const char *text, size_t size)
{
	char temporary[64];
	int r;

	(void)snprintf(temporary, sizeof(temporary), "%s.new", name);
	rights_as_user_begin();
	/* a runner that was killed may have left it */
	(void)unlinkat(journal->folder_fd, temporary, 0);
	r = fdio_replace(journal->folder_fd, name, temporary, text, size, 0600);
	rights_as_user_end();
	return r;
}

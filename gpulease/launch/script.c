#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "diag.h"
#include "fdio.h"
#include "parse.h"
#include "rights.h"
#include "script.h"
#include "userfile.h"
#include "words.h"

enum { HEAD_SIZE = 4096 }; /* bytes of a script in which its lines for sbatch begin */

/* Returns the script that a command with these first two words runs; NULL: unknown, or none. */
static const char *script_among(const char *first, const char *second)
{
	static const char *const interpreters[] = { "python", "python3", "bash", "sh" };
	const char *name = text_base_name(first);

	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++)
		if (strcmp(name, interpreters[i]) == 0)
			return second && *second && *second != '-' ? second : NULL;
	return name > first ? first : NULL;
}

/*
 * Appends the next word of the shell command at *@at.  False if there is none, or if the shell may
 * make something else of it; a `~/` at its beginning becomes what the shell makes of it.
 */
static bool script_take_word(const char **at, struct text *out)
{
	static const char blanks[] = " \t", special[] = "$`\"*?[]{}()|&;<>=~!#\\";
	const char *home = getenv("HOME"), *begin = *at + strspn(*at, blanks);

	if (home && strncmp(begin, "~/", 2) == 0) {
		text_add(out, home);
		begin++;
	}
	*at = begin;
	return words_take(at, out) && !out->cut && (!**at || strchr(blanks, **at)) &&
	       strcspn(begin, special) >= (size_t)(*at - begin);
}

bool script_is_missing(const char *line, struct text *out)
{
	char words[2][PATH_MAX];
	struct text first = TEXT_ON(words[0]), second = TEXT_ON(words[1]);
	const char *script = NULL;
	bool is_missing;

	if (script_take_word(&line, &first))
		script = script_among(
			words[0], script_take_word(&line, &second) ? words[1] : NULL);
	if (!script)
		return false;
	rights_as_user_begin();
	is_missing = access(script, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
	rights_as_user_end();
	if (is_missing)
		text_add(out, script);
	return is_missing;
}

/* Reads the beginning of the regular file @path, with a NUL after it.  0 or a negative errno. */
static int script_read_head(const char *path, char head[HEAD_SIZE])
{
	autofd int fd = -1;
	struct stat st;
	size_t size;
	int r;

	/* asked first, because opening may disturb a FIFO or a device */
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = userfile_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	r = fdio_pread(fd, head, HEAD_SIZE - 1, 0, &size);
	if (r == 0)
		head[size] = '\0';
	return r;
}

void script_note_directives(char *const command[])
{
	const char *script = script_among(command[0], command[1]);
	char head[HEAD_SIZE];
	int r;

	if (!script)
		return;
	rights_as_user_begin();
	r = script_read_head(script, head);
	rights_as_user_end();
	if (r == 0 && strstr(head, "\n#SBATCH"))
		note("the #SBATCH lines of '%s' are not read; give their options to gpulease, "
		     "as in -n 2 -t 1h",
			quote(text_base_name(script)).text);
}

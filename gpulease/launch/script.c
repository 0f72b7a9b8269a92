#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "diag.h"
#include "fdio.h"
#include "find_program.h"
#include "parse.h"
#include "rights.h"
#include "script.h"
#include "userfile.h"
#include "words.h"

enum {
	HEAD_SIZE = 4096, /* bytes of a script in which its lines for sbatch begin */
	WORDS = 5,        /* words of a command in which its script is looked for */
};

/* Whether the program @name runs the script that the first word behind its options names. */
static bool is_interpreter(const char *name)
{
	static const char python[] = "python";
	size_t size = sizeof(python) - 1;

	if (strncmp(name, python, size) == 0) /* python3, python3.11 */
		return !name[size + strspn(name + size, "0123456789.")];
	return strcmp(name, "bash") == 0 || strcmp(name, "sh") == 0;
}

/* Returns the script that a command with these first words runs; NULL: unknown, or none. */
static const char *script_of(char *const *words)
{
	/* options of python, bash and sh that take no value and do not replace the script */
	static const char flags[] = "BEbeuvx";
	const char *first = words[0], *name = text_base_name(first), *word;

	if (!is_interpreter(name))
		return name > first ? first : NULL;
	do
		word = *++words;
	while (word && word[0] == '-' && word[1] && !word[1 + strspn(word + 1, flags)]);
	return word && *word && !strchr("-+", *word) ? word : NULL;
}

/*
 * Appends the next word of the shell command at *@at.  Returns false if there is none, or if the
 * shell may expand it.  A `~/` at its beginning becomes $HOME, as in the shell.
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

/*
 * Sets @ret to the first words of the shell command @line, up to one that its shell may change, and
 * a NULL.  They stay until the next call.
 */
static void script_take_words(const char *line, char *ret[WORDS + 1])
{
	static char words[WORDS][PATH_MAX];
	size_t count = 0;

	for (; count < WORDS; count++) {
		struct text word = TEXT_ON(words[count]);

		if (!script_take_word(&line, &word))
			break;
		ret[count] = word.at;
	}
	ret[count] = NULL;
}

bool script_is_missing(const struct run_environment *environment, struct text *out)
{
	char *words[WORDS + 1], *const *command = environment->command;
	char in_path[PATH_MAX];
	const char *script;
	bool is_missing;

	if (environment->line) {
		script_take_words(environment->line, words);
		command = words;
	}
	script = *command ? script_of(command) : NULL;
	/* {gpus} is replaced later; the first word may be a line for the shell of --conda */
	if (!script || environment->setup || strchr(script, '{') ||
		(!environment->line && script == *command))
		return false;
	rights_as_user_begin();
	is_missing = access(script, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
	rights_as_user_end();
	/* bash looks in $PATH as well */
	if (!is_missing || find_program(script, in_path) != -ENOENT)
		return false;
	text_add(out, script);
	return true;
}

const char *script_runner(const char *name, const char *python)
{
	const char *end = strrchr(name, '.');

	if (!end || end == name)
		return NULL;
	if (strcmp(end, ".py") == 0)
		return python;
	return strcmp(end, ".sh") == 0 ? "bash" : NULL;
}

const char *script_python(void)
{
	char program[PATH_MAX];

	return find_program("python", program) == 0 ? "python" : "python3";
}

const char *script_lacks_runner(const char *line, const char *python)
{
	char word[PATH_MAX], program[PATH_MAX];
	struct text text = TEXT_ON(word);

	if (!script_take_word(&line, &text) || find_program(word, program) == 0)
		return NULL;
	return script_runner(word, python);
}

/*
 * Reads the beginning of the regular file @path, with a NUL after it.  Returns 0 or a negative
 * errno.
 */
static int script_read_head(const char *path, char head[HEAD_SIZE])
{
	autofd int fd = -1;
	struct stat st;
	size_t size;
	int r;

	/* check first, because opening may disturb a FIFO or a device */
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
	const char *script = script_of(command);
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

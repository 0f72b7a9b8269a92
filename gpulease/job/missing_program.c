#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "missing_program.h"
#include "option_table.h"
#include "other_program.h"
#include "rights.h"
#include "suggestion.h"
#include "words.h"

#ifdef WITHOUT_HELP

/* Becomes gpulease-view.  If that is not installed, there is no guess. */
static void suggest(const char *word, int error, struct why *why)
{
	autofree char *part = NULL;

	(void)why;
	if (asprintf(&part, MISSING_PROGRAM_PART "%c%s", error == -EACCES ? 'x' : '-',
		    word) >= 0)
		other_program_become("gpulease-view", part);
}

#else

/* How a file runs that is no program, by the end of its name.  Without pointers to relocate. */
static const struct {
	char end[7], before[9];
} kinds[] = {
	{ ".py", "python3 " },
	{ ".sh", "sh " },
	{ ".slurm", "sh " },
	{ ".txt", "--batch " },
	{ ".csv", "--batch " },
	{ ".jobs", "--batch " },
};

/* Whether @word begins with `NAME=`, as a shell has it before a command. */
static bool is_assignment(const char *word)
{
	size_t size = strspn(word, NAME_BYTES);

	return size && !is_digit(word[0]) && word[size] == '=';
}

/* Whether @word is a whole line for a shell: it has blanks, and what only a shell understands. */
static bool is_shell_line(const char *word)
{
	return strpbrk(word, " \t\n") &&
	       (strpbrk(word, "|&;<>$`") || is_assignment(word));
}

/* Whether the first of the words in @line is a program. */
static bool is_first_word_found(const char *line)
{
	char program[PATH_MAX];
	autofree char *first = strndup(line, strcspn(line, " \t\n"));

	return first && find_program(first, program) == 0;
}

/* Adds to @why how the file @name can run.  Returns false if its kind is not known. */
static bool suggest_for_file(const char *name, struct why *why)
{
	struct stat st = { .st_mode = 0 };
	size_t size = strlen(name);
	const char *before = NULL;
	char quoted[128];
	struct text text = TEXT_ON(quoted);

	rights_as_user_begin(); /* a lent group could see folders that are closed to the user */
	if (stat(name, &st) == 0 && S_ISREG(st.st_mode) && access(name, X_OK) == 0)
		before = "./";
	rights_as_user_end();
	for (size_t i = 0; !before && S_ISREG(st.st_mode) && i < ARRAY_SIZE(kinds); i++) {
		size_t end = strlen(kinds[i].end);

		if (size > end && strcmp(name + size - end, kinds[i].end) == 0)
			before = kinds[i].before;
	}
	words_add_quoted(&text, name);
	if (!before || text.cut)
		return false;
	why_add_remedy(why, "did you mean %s%s?", before, quoted);
	return true;
}

/* Adds to @why a guess at what @word, in the place of a command, was meant to be. */
static void suggest(const char *word, int error, struct why *why)
{
	(void)error;
	if (suggest_for_file(word, why) || suggestion_for_word(option_table, word, why))
		return;
	if (*word && !word[strspn(word, "0123456789,-")])
		why_add_remedy(why, "write a list as one word: 0,1");
	else if (is_shell_line(word))
		why_add_remedy(why, "put sh -c before it");
	else if (is_assignment(word))
		why_add_remedy(why, "put env before it");
	else if (strpbrk(word, " \t\n") && is_first_word_found(word))
		why_add_remedy(why, "remove the quotes around it");
}

#endif

int missing_program_refuse(const char *word, int error)
{
	struct why guess = WHY_NONE; /* a remedy without a reason: the word may be long */

	suggest(word, error, &guess);
	if (error == -EACCES) {
		diag("cannot execute '%s': %s%s", word, strerror(EACCES), guess.text);
		return EXIT_CANNOT_EXECUTE;
	}
	diag("command '%s' was not found%s", word, guess.text);
	return EXIT_NOT_FOUND;
}

int missing_program_main(const char *rest)
{
	option_table_make(); /* nothing has read the command line */
	return missing_program_refuse(
		rest + (*rest != '\0'), *rest == 'x' ? -EACCES : -ENOENT);
}

#include <unistd.h>

#include "cancel_confirm.h"
#include "fdio.h"

enum {
	QUESTION_SIZE = 512,
	/*
	 * the longest line of a terminal: the shell would run the rest of the answer as a command
	 */
	LINE_SIZE = 4096,
};

bool cancel_confirm(size_t count, const struct text *jobs)
{
	char bytes[QUESTION_SIZE], answer[LINE_SIZE];
	struct text question = TEXT_ON(bytes);

	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return true;
	text_addf(&question, "gpulease: cancel %zu jobs (", count);
	text_add_printable(&question, jobs->at, jobs->used);
	text_addf(&question, "%s)? [y/N] ", jobs->cut ? ", ..." : "");
	return write(STDERR_FILENO, question.at, question.used) >= 0 &&
	       read(STDIN_FILENO, answer, sizeof(answer)) > 0 &&
	       (answer[0] | 0x20) == 'y';
}

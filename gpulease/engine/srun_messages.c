#include <string.h>

#include "srun_messages.h"

/* Lines without `error:`, by what they contain; the first that fits counts. */
static const struct {
	const char *begin; /* after "srun: " */
	const char *has;   /* later in the line; NULL: nothing */
	enum srun_line_kind kind;
} infos[] = {
	{ "job ", " queued and waiting", SRUN_QUEUED },
	{ "job ", " has been allocated", SRUN_ALLOCATED },
	{ "jobid ", ": nodes(", SRUN_ALLOCATED },
	{ "launching StepId=", NULL, SRUN_LAUNCHING },
	{ "launch/slurm: ", " tasks started", SRUN_STARTED },
	{ "Node ", " tasks started", SRUN_STARTED },
	{ "Complete ", " received", SRUN_CANCELLED },
	{ "Job step aborted", NULL, SRUN_CANCELLED },
	{ "Force Terminated ", NULL, SRUN_CANCELLED },
};

/* Errors that say that a job of --immediate does not start now. */
static const char *const busy[] = { "Requested nodes are busy",
	"Immediate execution impossible",
	"Requested node configuration is not available now" };

/* Moves *@at behind @prefix if it begins with that. */
static bool skip(const char **at, const char *prefix)
{
	size_t size = strlen(prefix);

	if (strncmp(*at, prefix, size) != 0)
		return false;
	*at += size;
	return true;
}

/* Reads the first number at or after @at, and moves *@at behind it; 0: there is none. */
static uint64_t take_number(const char **at)
{
	uint64_t number = 0;

	*at += strcspn(*at, "0123456789\n");
	while (is_digit(**at))
		number = number * 10 + (uint64_t)(*(*at)++ - '0');
	return number;
}

/* Whether @text is "n1: task 0: Killed" or "n[1-2]: tasks 0-1: Exited with exit code 7". */
static bool is_of_task(const char *text)
{
	const char *at = strstr(text, ": task");

	if (!at)
		return false;
	at += strlen(": task");
	at += *at == 's';
	if (*at++ != ' ')
		return false;
	return *at && at[strspn(at, "0123456789,-[]")] == ':';
}

static struct srun_line read_error(const char *text)
{
	struct srun_line line = { SRUN_ERROR, 0, 0, text };

	if (is_of_task(text))
		line.kind = SRUN_TASK;
	if (strncmp(text, "*** ", 4) == 0)
		line.kind = SRUN_CANCELLED;
	for (size_t i = 0; i < ARRAY_SIZE(busy); i++)
		if (strstr(text, busy[i]))
			line.kind = SRUN_BUSY;
	return line;
}

static struct srun_line read_info(const char *text)
{
	struct srun_line line = { SRUN_INFO, 0, 0, text };

	for (size_t i = 0; i < ARRAY_SIZE(infos) && line.kind == SRUN_INFO; i++) {
		const char *at = text;

		if (!skip(&at, infos[i].begin) ||
			(infos[i].has && !strstr(at, infos[i].has)))
			continue;
		line.kind = infos[i].kind;
		if (line.kind != SRUN_STARTED && line.kind != SRUN_CANCELLED)
			line.job = take_number(&at);
		if (line.kind == SRUN_LAUNCHING && *at == '.')
			line.step = take_number(&at);
	}
	return line;
}

struct srun_line srun_line_read(const char *line)
{
	const char *at = line;

	if (skip(&at, "srun: "))
		return skip(&at, "error: ") || skip(&at, "fatal: ") ? read_error(at)
								    : read_info(at);
	/* "slurmstepd-n1: error: " with several nodes on one host, else "slurmstepd: error: " */
	if (strncmp(at, "slurmstepd", strlen("slurmstepd")) == 0) {
		at += strcspn(at, ":");
		if (skip(&at, ": error: "))
			return read_error(at);
	}
	return (struct srun_line){ SRUN_OTHER, 0, 0, line };
}

/* Whether the @size bytes at @line are "slurmstepd-n1: error: *** STEP 4.0 ... ***". */
static bool is_end_of_step(const char *line, size_t size)
{
	char text[256];

	if (size >= sizeof(text) || size < strlen("slurmstepd") || line[0] != 's')
		return false;
	memcpy(text, line, size);
	text[size] = '\0';
	return srun_line_read(text).kind == SRUN_CANCELLED;
}

size_t srun_remove_ends(char *bytes, size_t size, bool *begins_line)
{
	size_t kept = 0;

	for (size_t at = 0; at < size;) {
		char *end = memchr(bytes + at, '\n', size - at);
		size_t line = end ? (size_t)(end - bytes) + 1 - at : size - at;

		if (!*begins_line || !end || !is_end_of_step(bytes + at, line - 1)) {
			memmove(bytes + kept, bytes + at, line);
			kept += line;
		}
		*begins_line = end != NULL;
		at += line;
	}
	return kept;
}

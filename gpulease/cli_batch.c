/* What the command line says of jobs files: --batch, --add. */
#include <errno.h>
#include <strings.h>

#include "cli_table.h"
#include "parse.h"

enum { JOBS_MAX = 4096 };

int read_batch_format(const char *value, void *at, struct why *why)
{
	enum batch_format *format = at;

	if (strcasecmp(value, "lines") == 0)
		*format = BATCH_LINES;
	else if (strcasecmp(value, "csv") == 0)
		*format = BATCH_CSV;
	else {
		why_set(why, "'%s' is neither lines nor csv", quote(value).text);
		return -EINVAL;
	}
	return 0;
}

int read_jobs(const char *value, void *at, struct why *why)
{
	uint64_t jobs;

	if (parse_u64(value, JOBS_MAX, &jobs, why) < 0)
		return -EINVAL;
	*(unsigned *)at = (unsigned)jobs;
	if (jobs)
		return 0;
	why_set(why,
		"0 jobs at once would never end; leave it out for as many as the queue gives");
	return -EINVAL;
}

/* The words behind --add FILE, which belong to its line. */
static int settle_added(struct settings *s, struct why *why)
{
	if (strcmp(s->operands[0], "-") == 0) {
		why_set(why,
			"--add wants a file, not '-'; for one of that name write ./-");
		return -EINVAL;
	}
	if (s->operand_count > 1) {
		s->command = s->operands + 1;
		return 1;
	}
	why_set(why, "--add wants a command: --add %s -- python train.py",
		quote(s->operands[0]).text);
	return -EINVAL;
}

int settle_batch(struct settings *s, const char *verb, struct why *why)
{
	if (s->verb != VERB_BATCH && s->verb != VERB_ADD)
		return 0;
	if (!s->operand_count || !s->operands[0][0]) {
		why_set(why, "--%s wants the name of a jobs file", verb);
		return -EINVAL;
	}
	if (s->verb == VERB_ADD)
		return settle_added(s, why);
	if (s->operand_count > 1) {
		why_set(why, "--batch takes one file, not '%s' as well",
			quote(s->operands[1]).text);
		return -EINVAL;
	}
	if (s->inject && s->batch_format != BATCH_CSV) {
		why_set(why,
			"--inject cannot tell where in a line its option belongs; write "
			"{gpus} there");
		return -EINVAL;
	}
	return 1;
}

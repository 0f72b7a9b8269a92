#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "fdio.h"
#include "namespaces.h"
#include "own_limits.h"

enum { ENTRIES_BYTES_MAX = 64 * 1024 * 1024 };

static const struct limits_table *table; /* NULL: there is none, or it does not bind */
static unsigned own_line;

/* Reads a file like /etc/passwd.  One that cannot be read has no names, which is the safe side. */
static struct strview read_entries(const char *path)
{
	char *text = NULL; /* kept until the program ends */
	size_t size = 0;

	if (fdio_read_all(AT_FDCWD, path, 0, ENTRIES_BYTES_MAX, &text, &size) != 0)
		size = 0;
	return (struct strview){ text, text + size };
}

const struct limits_process *own_limits_process(void)
{
	static gid_t groups[NGROUPS_MAX + 1];
	static struct limits_process process;
	int count;

	if (process.gids)
		return &process;
	/* not the effective group, which may be lent */
	groups[0] = getgid();
	count = getgroups(NGROUPS_MAX, groups + 1);
	process = (struct limits_process){ .uid = namespaces_own_user(),
		.gids = groups,
		.gid_count = count < 0 ? 1 : (size_t)count + 1,
		.passwd = read_entries("/etc/passwd"),
		.group = read_entries("/etc/group") };
	return &process;
}

/* Returns the value in a ticket of a limit that a line may have set; 0 stands for no limit. */
static uint32_t ticket_value(unsigned line, unsigned value)
{
	if (line <= table->line)
		return 0;
	return value ? value : UINT32_MAX;
}

void own_limits_apply(struct context *context)
{
	struct config *config = &context->config, found;
	unsigned gpus_line, jobs_line;

	if (!config->limits.line || namespaces_own_user() == 0)
		return;
	table = &config->limits;
	limits_find(config, own_limits_process(), &found);
	gpus_line = found.lines[CONFIG_USER_GPUS];
	jobs_line = found.lines[CONFIG_USER_JOBS];
	context->most_gpus = ticket_value(gpus_line, found.user_gpus);
	context->most_jobs = ticket_value(jobs_line, found.user_jobs);
	/* a ticket has room for one line: the two differ only if a name is unknown */
	if (context->most_gpus && (!context->most_jobs || gpus_line == jobs_line))
		context->limits_line = gpus_line;
	else if (context->most_jobs && !context->most_gpus)
		context->limits_line = jobs_line;
	own_line = context->limits_line;
	found.user_gpus = config->user_gpus;
	found.user_jobs = config->user_jobs;
	*config = found;
}

void own_limits_add_source(unsigned line, const char *key, struct text *out)
{
	struct limits_line found = { .number = 0 };

	while (table && found.number < line && limits_next(table, &found))
		;
	if (!found.number || found.number != line) {
		text_addf(out, "%s in the configuration", key);
		return;
	}
	text_addf(out, "line %u of %s for %s ", line, table->file,
		found.is_group ? "group" : "user");
	text_add_printable(out, found.name.begin, strview_size(found.name));
}

void own_limits_add_line(unsigned line, struct text *out)
{
	if (line == own_line)
		own_limits_add_source(line, "a line", out);
	else
		text_addf(out, "line %u of the configuration", line);
}

#include <grp.h>
#include <pwd.h>
#include <time.h>

#include "slurm_format.h"

/* --- times --------------------------------------------------------------------------- */

void slurm_format_span(int64_t ms, bool is_long, struct text *out)
{
	long long seconds = ms > 0 ? (long long)(ms / 1000) : 0;
	long long days = seconds / 86400, hours = seconds / 3600 % 24;

	if (days)
		text_addf(out, "%lld-", days);
	if (days || hours || is_long)
		text_addf(out, days || is_long ? "%02lld:" : "%lld:", hours);
	text_addf(out, days || hours || is_long ? "%02lld:%02lld" : "%lld:%02lld",
		seconds / 60 % 60, seconds % 60);
}

void slurm_format_time(int64_t unix_ms, const char *if_none, struct text *out)
{
	time_t seconds = (time_t)(unix_ms / 1000);
	struct tm parts;
	char text[32];

	if (unix_ms < 0 || !localtime_r(&seconds, &parts) ||
		!strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts))
		text_add(out, if_none);
	else
		text_add(out, text);
}

void slurm_format_dependency(const struct slurm_job *job, struct text *out)
{
	if (job->held_by >= 0)
		text_addf(out, "afterany:%lld(unfulfilled)", (long long)job->held_by);
	else
		text_add(out, "(null)");
}

/* --- fields -------------------------------------------------------------------------- */

static void put_number(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_addf(out, "%lld", (long long)job->id);
}

static void put_array(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_addf(out, "%lld", (long long)(job->array >= 0 ? job->array : job->id));
}

static void put_task(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	if (job->array >= 0)
		text_addf(out, "%lld", (long long)job->task);
	else
		text_add(out, "N/A");
}

static void put_id(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	put_array(jobs, job, out);
	if (job->array >= 0)
		text_addf(out, "_%lld", (long long)job->task);
}

static void put_name(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_add(out, job->name);
}

static void put_user(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_add(out, job->user);
}

static void put_uid(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	const struct passwd *entry = getpwnam(job->user);

	(void)jobs;
	if (entry)
		text_addf(out, "%lu", (unsigned long)entry->pw_uid);
	else
		text_add(out, job->user);
}

static void put_letters(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_add(out, slurm_states[job->state].letters);
}

static void put_state(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_add(out, slurm_states[job->state].name);
}

static void put_ran(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	slurm_format_span(job->state == SLURM_PENDING ? 0 : job->ran_ms, false, out);
}

static void put_limit(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	if (job->limit_ms > 0)
		slurm_format_span(job->limit_ms, false, out);
	else
		text_add(out, "UNLIMITED");
}

static void put_left(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	int64_t ran_ms = job->state == SLURM_PENDING ? 0 : max_i64(0, job->ran_ms);

	(void)jobs;
	if (job->limit_ms > 0)
		slurm_format_span(job->limit_ms - ran_ms, false, out);
	else
		text_add(out, "UNLIMITED");
}

/* The node of a job that has started. */
static void put_node(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	if (job->state != SLURM_PENDING && job->started_ms >= 0)
		text_add(out, jobs->host);
}

static void put_node_or_reason(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	if (job->state == SLURM_PENDING)
		text_addf(out, "(%s)", slurm_job_reason(job));
	else
		put_node(jobs, job, out);
}

static void put_host(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	if (job->state == SLURM_PENDING)
		text_add(out, "n/a");
	else
		put_node(jobs, job, out);
}

static void put_scheduled_node(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	text_add(out, job->state == SLURM_PENDING && job->starts_ms >= 0 ? jobs->host
									 : "(null)");
}

static void put_reason(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_add(out, slurm_job_reason(job));
}

static void put_submitted(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	slurm_format_time(job->submitted_ms, "N/A", out);
}

static void put_start(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	slurm_format_time(job->state == SLURM_PENDING ? job->starts_ms : job->started_ms,
		"N/A", out);
}

static void put_end(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	int64_t end_ms = job->ended_ms;

	(void)jobs;
	if (is_slurm_job_live(job) && job->started_ms >= 0 && job->limit_ms > 0)
		end_ms = job->started_ms + job->limit_ms;
	slurm_format_time(end_ms, "N/A", out);
}

static void put_gpus(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	if (job->gpus > 0)
		text_addf(out, "gres:gpu:%lld", (long long)job->gpus);
	else
		text_add(out, "N/A");
}

static void put_priority(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_addf(out, "%lld", (long long)job->priority);
}

static void put_command(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_add(out, job->command[0] ? job->command : "(null)");
}

static void put_gid(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	const struct passwd *entry = getpwnam(job->user);

	(void)jobs;
	if (entry)
		text_addf(out, "%lu", (unsigned long)entry->pw_gid);
	else
		text_add(out, "N/A");
}

static void put_group(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	const struct passwd *entry = getpwnam(job->user);
	const struct group *group = entry ? getgrgid(entry->pw_gid) : NULL;

	if (group)
		text_add(out, group->gr_name);
	else
		put_gid(jobs, job, out);
}

static void put_dependency(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	slurm_format_dependency(job, out);
}

/* The priority as a part of 1. */
static void put_priority_part(
	const struct slurm_jobs *jobs, const struct slurm_job *job, struct text *out)
{
	(void)jobs;
	text_addf(out, "%.14f", (double)max_i64(0, job->priority) / 4294967296.0);
}

struct field {
	char letter;
	const char *heading;
	void (*put)(const struct slurm_jobs *jobs, const struct slurm_job *job,
		struct text *out);
	const char *always; /* without ->put: what each job has */
};

static const struct field fields[] = {
	{ 'A', "JOBID", put_number, NULL },
	{ 'B', "EXEC_HOST", put_host, NULL },
	{ 'C', "CPUS", NULL, "1" },
	{ 'D', "NODES", NULL, "1" },
	{ 'E', "DEPENDENCY", put_dependency, NULL },
	{ 'F', "ARRAY_JOB_ID", put_array, NULL },
	{ 'G', "GROUP", put_gid, NULL },
	{ 'H', "SOCKETS_PER_NODE", NULL, "*" },
	{ 'I', "CORES_PER_SOCKET", NULL, "*" },
	{ 'J', "THREADS_PER_CORE", NULL, "*" },
	{ 'K', "ARRAY_TASK_ID", put_task, NULL },
	{ 'L', "TIME_LEFT", put_left, NULL },
	{ 'M', "TIME", put_ran, NULL },
	{ 'N', "NODELIST", put_node, NULL },
	{ 'O', "CONTIGUOUS", NULL, "0" },
	{ 'P', "PARTITION", NULL, "gpulease" },
	{ 'Q', "PRIORITY", put_priority, NULL },
	{ 'R', "NODELIST(REASON)", put_node_or_reason, NULL },
	{ 'S', "START_TIME", put_start, NULL },
	{ 'T', "STATE", put_state, NULL },
	{ 'U', "UID", put_uid, NULL },
	{ 'V', "SUBMIT_TIME", put_submitted, NULL },
	{ 'W', "LICENSES", NULL, "(null)" },
	{ 'X', "CORE_SPEC", NULL, "N/A" },
	{ 'Y', "SCHEDNODES", put_scheduled_node, NULL },
	{ 'Z', "WORK_DIR", NULL, "N/A" },
	{ 'a', "ACCOUNT", NULL, "(null)" },
	{ 'b', "TRES_PER_NODE", put_gpus, NULL },
	{ 'c', "MIN_CPUS", NULL, "1" },
	{ 'd', "MIN_TMP_DISK", NULL, "0" },
	{ 'e', "END_TIME", put_end, NULL },
	{ 'f', "FEATURES", NULL, "(null)" },
	{ 'g', "GROUP", put_group, NULL },
	{ 'h', "OVER_SUBSCRIBE", NULL, "OK" },
	{ 'i', "JOBID", put_id, NULL },
	{ 'j', "NAME", put_name, NULL },
	{ 'k', "COMMENT", NULL, "(null)" },
	{ 'l', "TIME_LIMIT", put_limit, NULL },
	{ 'm', "MIN_MEMORY", NULL, "0" },
	{ 'n', "REQ_NODES", NULL, "" },
	{ 'o', "COMMAND", put_command, NULL },
	{ 'p', "PRIORITY", put_priority_part, NULL },
	{ 'q', "QOS", NULL, "(null)" },
	{ 'r', "REASON", put_reason, NULL },
	{ 's', "", NULL, "" },
	{ 't', "ST", put_letters, NULL },
	{ 'u', "USER", put_user, NULL },
	{ 'v', "RESERVATION", NULL, "(null)" },
	{ 'w', "WCKEY", NULL, "(null)" },
	{ 'x', "EXC_NODES", NULL, "" },
	{ 'y', "NICE", NULL, "0" },
	{ 'z', "S:C:T", NULL, "*:*:*" },
};

/* --- lines --------------------------------------------------------------------------- */

enum { WIDTH_MAX = 512 };

/* A field as it stands in a format, at its `%`. */
struct part {
	const struct field *field; /* NULL: the letter is not known */
	char letter;               /* 0: there is none */
	bool is_right;
	size_t width; /* 0: as wide as the text */
	const char *end;
};

static struct part part_at(const char *at)
{
	struct part part = { .is_right = at[1] == '.' };

	at += part.is_right ? 2 : 1;
	for (; is_digit(*at); at++)
		if (part.width < WIDTH_MAX)
			part.width = part.width * 10 + (size_t)(*at - '0');
	if (part.width > WIDTH_MAX)
		part.width = WIDTH_MAX;
	part.letter = *at;
	if (*at == '%') /* which begins the next field */
		part.letter = '\0';
	part.end = part.letter ? at + 1 : at;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].letter == part.letter)
			part.field = &fields[i];
	return part;
}

/* Returns how many bytes of @text fit into @columns, in whole characters. */
static size_t fitting(const char *text, size_t columns)
{
	size_t size = 0, next = 0;

	while (text[size]) {
		next = size + 1;
		while (((unsigned char)text[next] & 0xc0) == 0x80)
			next++;
		if (text_columns(text, next) > columns)
			break;
		size = next;
	}
	return size;
}

static void put_blanks(size_t count, struct text *out)
{
	while (count--)
		text_add(out, " ");
}

static void put_part(const struct part *part, const struct slurm_jobs *jobs,
	const struct slurm_job *job, struct text *out)
{
	char cell[1024];
	struct text text = TEXT_ON(cell);
	size_t size, columns;

	if (!job)
		text_add(&text, part->field->heading);
	else if (part->field->put)
		part->field->put(jobs, job, &text);
	else
		text_add(&text, part->field->always);
	size = part->width ? fitting(cell, part->width) : text.used;
	columns = text_columns(cell, size);
	if (part->is_right && columns < part->width)
		put_blanks(part->width - columns, out);
	text_add_bytes(out, cell, size);
	if (!part->is_right && columns < part->width)
		put_blanks(part->width - columns, out);
}

/* Whether the `%` at @at stands before another one, or at the end: then it means nothing. */
static bool is_lone(const char *at)
{
	return at[0] == '%' && (!at[1] || at[1] == '%');
}

void slurm_format_line(const char *format, const struct slurm_jobs *jobs,
	const struct slurm_job *job, struct text *out)
{
	while (*format) {
		struct part part = { .end = format + 1 };

		if (*format == '%')
			part = part_at(format);
		if (part.field)
			put_part(&part, jobs, job, out);
		else if (!is_lone(format))
			text_add_bytes(out, format, (size_t)(part.end - format));
		format = part.end;
	}
}

int slurm_format_next_unknown(const char **format)
{
	while ((*format = strchr(*format, '%'))) {
		struct part part = part_at(*format);
		bool is_unknown = !is_lone(*format) && !part.field;

		*format = part.end;
		if (is_unknown)
			return (unsigned char)part.letter;
	}
	return -1;
}

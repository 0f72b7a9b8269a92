#include <errno.h>
#include <limits.h>
#include <strings.h>

#include "childenv.h"
#include "choice.h"
#include "clock.h"
#include "begin_time.h"
#include "date_time.h"
#include "ended_filter.h"
#include "file_pattern.h"
#include "gpuset.h"
#include "operands.h"
#include "option_table.h"
#include "option_values.h"
#include "parse.h"
#include "parse_gpus.h"
#include "signals.h"

enum { PRIORITY_MAX = 1000000, TIMES_MAX = 1000000, STATUS_MAX = 255, JOBS_MAX = 4096 };
enum { SIM_DEFAULT_MIB = 24 << 10 };

/* Sets *@ret to whether @value is the word @second.  -EINVAL if it is not @first either. */
static int read_one_of(const char *value, const char *first, const char *second,
	bool *ret, struct why *why)
{
	*ret = strcasecmp(value, second) == 0;
	if (*ret || strcasecmp(value, first) == 0)
		return 0;
	why_set(why, "'%s' is neither %s nor %s", quote(value).text, first, second);
	return -EINVAL;
}

/* --- how many GPUs ------------------------------------------------------------------ */

/* Copies the @size bytes at @model, a part of @value, to @wish.  -EINVAL: none, or too many. */
static int set_wished_model(struct gpu_wish *wish, const char *model, size_t size,
	const char *value, struct why *why)
{
	if (size == 0 || size >= sizeof(wish->model)) {
		why_set(why, "'%s' has %s TYPE", quote(value).text,
			size ? "too long a" : "no");
		return -EINVAL;
	}
	memcpy(wish->model, model, size);
	wish->model[size] = '\0';
	return 0;
}

/* `[TYPE:]N`. */
int read_gpus(const char *value, void *at, struct why *why)
{
	struct gpu_wish wish = { .given = true };
	const char *colon = strrchr(value, ':');
	int r;

	/* a list of indices is explained below */
	if (strchr(value, ',') && value[strspn(value, "0123456789,-")]) {
		why_set(why, "'%s' asks for several kinds of GPU; ask for one",
			quote(value).text);
		return -EINVAL;
	}
	if (colon) {
		r = set_wished_model(&wish, value, (size_t)(colon - value), value, why);
		if (r < 0)
			return r;
	}
	r = parse_gpu_count(
		colon ? colon + 1 : value, &wish.count, &wish.share_percent, why);
	if (r < 0)
		return r;
	*(struct gpu_wish *)at = wish;
	return 0;
}

/* `gpu`, `gpu:N`, `gpu:TYPE`, `gpu:TYPE:N`, `none`. */
int read_gres(const char *value, void *at, struct why *why)
{
	struct gpu_wish wish = { .given = true, .count = 1 };
	const char *rest = value + strcspn(value, ":,");
	int r = 0;

	if (strcasecmp(value, "none") == 0) {
		wish.count = 0;
		*(struct gpu_wish *)at = wish;
		return 0;
	}
	if (strchr(value, ',') || rest - value != 3 || memcmp(value, "gpu", 3) != 0) {
		why_set(why,
			"'%s' is not gpu[:TYPE][:N]; gpulease leases GPUs and nothing "
			"else",
			quote(value).text);
		return -EINVAL;
	}
	/* gpu:TYPE and gpu:N differ only by how the last part begins */
	if (*rest && (strchr(rest + 1, ':') ||
			     (rest[1] && !strchr("-.0123456789", rest[1])))) {
		size_t size = strcspn(++rest, ":");

		r = set_wished_model(&wish, rest, size, value, why);
		rest += size;
	}
	if (r == 0 && *rest)
		r = parse_gpu_count(rest + 1, &wish.count, &wish.share_percent, why);
	if (r < 0)
		return r;
	*(struct gpu_wish *)at = wish;
	return 0;
}

/* `[DUR]` */
int read_immediate(const char *value, void *at, struct why *why)
{
	struct run_request *request = at;

	request->immediate = true;
	request->immediate_ms = 0;
	return value ? parse_duration_ms(value, &request->immediate_ms, why) : 0;
}

int read_idle_ok(const char *value, void *at, struct why *why)
{
	int64_t *ok_ms = at;

	*ok_ms = -1;
	if (!value)
		return 0;
	return parse_duration_ms(value, ok_ms, why);
}

int read_pty(const char *value, void *at, struct why *why)
{
	(void)value; /* the terminal of this process, whatever its descriptor */
	(void)why;
	*(bool *)at = true;
	return 0;
}

/* `N[xSIZE]`. */
int read_sim(const char *value, void *at, struct why *why)
{
	struct machine_settings *machine = at;
	size_t digits = strspn(value, "0123456789");
	uint64_t count = 0, mib = SIM_DEFAULT_MIB;
	char number[8];

	text_copy(number, sizeof(number), value);
	if (digits < sizeof(number)) {
		number[digits] = '\0';
		if (parse_u64(number, GPUSET_MAX, &count, NULL) < 0)
			count = 0;
	}
	if (count == 0 || (value[digits] && value[digits] != 'x')) {
		why_set(why,
			"'%s' is not a number of GPUs to simulate; write 1 to %d, or "
			"4x80G",
			quote(value).text, GPUSET_MAX);
		return -EINVAL;
	}
	if (value[digits] && parse_size_mib(value + digits + 1, &mib, why) < 0)
		return -EINVAL;
	machine->sim_gpus = (unsigned)count;
	machine->sim_mib = mib;
	return 0;
}

/* srun's `N` or `MIN-MAX`: accepted if one node, this machine, is enough. */
int read_nodes(const char *value, void *unused, struct why *why)
{
	const char *dash = strchr(value, '-');
	char least[16];
	uint64_t nodes, most = 1;

	(void)unused;
	text_copy(least, sizeof(least), value);
	least[strcspn(least, "-")] = '\0';
	if (parse_u64(least, UINT32_MAX, &nodes, NULL) < 0 ||
		(dash && parse_u64(dash + 1, UINT32_MAX, &most, NULL) < 0)) {
		why_set(why, "'%s' is not a number of nodes; write 1", quote(value).text);
		return -EINVAL;
	}
	if (nodes == 1 && most > 0)
		return 0;
	why_set(why,
		"gpulease knows only this machine, not %s nodes; leave the option out, "
		"or start gpulease on each machine",
		quote(value).text);
	return -EINVAL;
}

/* A list of one host: this one. */
int read_nodelist(const char *value, void *unused, struct why *why)
{
	const char *node = getenv("SLURMD_NODENAME");
	char host[HOST_NAME_MAX + 1] = "";

	(void)unused;
	(void)gethostname(host, sizeof(host) - 1);
	if (strcmp(value, host) == 0 || strcmp(value, "localhost") == 0 ||
		(node && strcmp(value, node) == 0))
		return 0;
	host[strcspn(host, ".")] = '\0';
	if (strcmp(value, host) == 0)
		return 0;
	why_set(why,
		"gpulease knows only this machine, %s; run it on the other one: ssh HOST "
		"gpulease ...",
		host);
	return -EINVAL;
}

/* The job around this process needs no option: what it starts is a step of it anyway. */
int read_jobid(const char *value, void *at, struct why *why)
{
	const char *own = getenv("GPULEASE_ID");
	uint64_t *job = at;
	int r = parse_u64(value, UINT64_MAX, job, why);

	if (r == 0 && own && strcmp(value, own) == 0)
		*job = 0;
	return r;
}

int read_mpi(const char *value, void *note, struct why *why)
{
	static const char no_pmi[] =
		"--mpi: there is no PMI here; MPI programs need mpirun";

	if (strncmp(value, "pmi", 3) == 0)
		*(const char **)note = no_pmi;
	if (strcmp(value, "list") != 0)
		return 0;
	why_set(why, "%s", no_pmi + strlen("--mpi: ")); /* gpulease-slurm prints it */
	return -EINVAL;
}

int read_kills(const char *value, void *flag, struct why *why)
{
	uint64_t yes = 1;
	int r = value ? parse_u64(value, 1, &yes, why) : 0;

	if (r == 0)
		*(bool *)flag = yes != 0;
	return r;
}

int read_open_mode(const char *value, void *is_append, struct why *why)
{
	static const char *const words[] = { "append", "a", "truncate", "t" };

	*(bool *)is_append = *value == 'a';
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(value, words[i]) == 0)
			return 0;
	why_set(why, "'%s' is not append or truncate", quote(value).text);
	return -EINVAL;
}

int read_export(const char *value, void *at, struct why *why)
{
	const char **list = at;
	int r = childenv_check(value, why);

	if (r == 0)
		*list = value;
	return r;
}

/*
 * srun's file patterns and its words: `all` is no redirection, `none` is /dev/null.  A number means
 * that task alone; task_options.c checks it.
 */
int read_file(const char *value, void *at, struct why *why)
{
	const char **pattern = at;

	if (strcmp(value, "all") == 0) {
		*pattern = NULL;
		return 0;
	}
	if (strcmp(value, "none") == 0) {
		*pattern = "/dev/null";
		return 0;
	}
	if (file_pattern_check(value, why) < 0)
		return -EINVAL;
	*pattern = value;
	return 0;
}

/* --- how much of each GPU ------------------------------------------------------------ */

int read_size(const char *value, void *at, struct why *why)
{
	return parse_size_mib(value, at, why);
}

int read_model(const char *value, void *at, struct why *why)
{
	if (strlen(value) >= MODEL_SIZE) {
		why_set(why, "'%s' is too long", quote(value).text);
		return -EINVAL;
	}
	text_copy(at, MODEL_SIZE, value);
	return 0;
}

/* The value is srun's `user` or `mcs`: a job alone on its GPUs satisfies both. */
int read_exclusive(const char *value, void *at, struct why *why)
{
	(void)value;
	(void)why;
	*(bool *)at = true;
	return 0;
}

int read_bind(const char *value, void *at, struct why *why)
{
	bool is_no = value && strcmp(value, "no") == 0;

	if (value && !is_no && strcmp(value, "yes") != 0) {
		why_set(why, "'%s' is neither yes nor no", quote(value).text);
		return -EINVAL;
	}
	*(enum bind_wish *)at = is_no ? BIND_NO : BIND_YES;
	return 0;
}

/* --- which GPUs ---------------------------------------------------------------------- */

/* Checks that @value is a list of at most @most GPUs, and keeps it as text. */
static int read_list_of_gpus(
	const char *value, unsigned most, const char **ret, struct why *why)
{
	unsigned count;
	int r = operand_count_gpus(value, most, &count, why);

	if (r == 0)
		*ret = value;
	return r;
}

int read_gpu_ids(const char *value, void *at, struct why *why)
{
	int r = read_list_of_gpus(value, GPUSET_MAX, at, why);

	return r == 0 && operand_has_twice(value, why) ? -EINVAL : r;
}

int read_gpu_list(const char *value, void *at, struct why *why)
{
	return read_list_of_gpus(value, UINT32_MAX, at, why);
}

int read_prefer(const char *value, void *at, struct why *why)
{
	return read_list_of_gpus(value, PREFER_MAX, at, why);
}

/* --- when to start ------------------------------------------------------------------- */

int read_priority(const char *value, void *at, struct why *why)
{
	struct run_request *request = at;
	bool is_negative = value[0] == '-';
	uint64_t size;

	if (parse_u64(value + is_negative, PRIORITY_MAX, &size, NULL) < 0) {
		why_set(why,
			"'%s' is not a priority; write a whole number from -%d to %d",
			quote(value).text, PRIORITY_MAX, PRIORITY_MAX);
		return -EINVAL;
	}
	request->priority = is_negative ? -(int64_t)size : (int64_t)size;
	request->priority_given = true;
	return 0;
}

/* Appends @list, "12,15", to the list of ids at @ids, which has AFTER_SIZE bytes. */
static int append_ids(char *ids, const char *list, struct why *why)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_JOB);
	struct operand job = { .first = 1 };
	struct text text = text_on(ids + strlen(ids), AFTER_SIZE - strlen(ids));
	unsigned count = 0;
	int r;

	for (const char *at = ids; *at; at++)
		count += at == ids || *at == ',';
	while ((r = operand_next(&walk, &job, why)) == 0 && job.first > 0) {
		text_addf(
			&text, "%s%llu", count ? "," : "", (unsigned long long)job.first);
		count++;
	}
	if (r == 0) /* record 0 is the header of the ticket file */
		why_set(why, "'0' is not the id of a job; they begin at 1");
	else if (r == OPERAND_DONE && (count > AFTER_MAX || text.cut))
		why_set(why,
			"'%s' names too many jobs; at most %d, in %d characters; let jobs "
			"with -n 0 wait for some of them",
			quote(list).text, AFTER_MAX, AFTER_SIZE - 1);
	else
		return r < 0 ? r : 0;
	return -EINVAL;
}

int read_after(const char *value, void *at, struct why *why)
{
	char *ids = at;

	ids[0] = '\0'; /* an option that is given twice has its last value */
	return append_ids(ids, value, why);
}

/* One item of srun's list, `singleton` or `KIND:ID[:ID…]`. */
static int read_condition(struct run_request *request, char *item, struct why *why)
{
	static const char start[] = "after:", any[] = "afterany:", ok[] = "afterok:";
	char *ids = strchr(item, ':');
	bool is_start = strncmp(item, start, sizeof(start) - 1) == 0,
	     is_ok = strncmp(item, ok, sizeof(ok) - 1) == 0;
	unsigned count = text_count_items(request->after_ids);
	int r;

	if (strcmp(item, "singleton") == 0) {
		request->singleton = true;
		return 0;
	}
	/* srun separates conditions by `?` when one of them is enough: not supported */
	if (strchr(item, '?') ||
		(!is_start && !is_ok && strncmp(item, any, sizeof(any) - 1) != 0)) {
		why_set(why,
			"'%s' is not supported; write singleton, after:ID, afterany:ID "
			"or afterok:ID, commas between them",
			quote(item).text);
		return -EINVAL;
	}
	for (char *at = ++ids; *at; at++)
		if (*at == ':')
			*at = ',';
	r = append_ids(is_ok ? request->after_ok_ids : request->after_ids, ids, why);
	if (r == 0 && is_start)
		request->after_start |=
			(1u << text_count_items(request->after_ids)) - (1u << count);
	return r;
}

int read_dependency(const char *value, void *at, struct why *why)
{
	struct run_request *request = at, read = { .singleton = request->singleton };
	char list[256], *rest = list, *item;

	if (strlen(value) >= sizeof(list)) {
		why_set(why, "'%s' is too long", quote(value).text);
		return -EINVAL;
	}
	text_copy(list, sizeof(list), value);
	while ((item = strsep(&rest, ",")))
		if (read_condition(&read, item, why) < 0)
			return -EINVAL;
	request->singleton = read.singleton;
	if (read.after_ids[0]) {
		memcpy(request->after_ids, read.after_ids, AFTER_SIZE);
		request->after_start = read.after_start;
	}
	if (read.after_ok_ids[0])
		memcpy(request->after_ok_ids, read.after_ok_ids, AFTER_SIZE);
	return 0;
}

/* --- what the supervisor does -------------------------------------------------------- */

/*
 * `SIG[@DUR]`.  The prefix `S:` is for the steps that the command starts.  `R:` and `B:` of Slurm
 * are skipped: without `S:` the command gets the signal.
 */
int read_warning(const char *value, void *at, struct why *why)
{
	struct run_care *care = at;
	const char *time = strchr(value, '@'), *colon = strchr(value, ':');
	char name[16];
	size_t size;
	int r;

	care->warns_steps = false;
	if (colon && (!time || colon < time)) {
		care->warns_steps = memchr(value, 'S', (size_t)(colon - value)) != NULL;
		value = colon + 1;
	}
	size = time ? (size_t)(time - value) : strlen(value);
	if (size < sizeof(name)) {
		memcpy(name, value, size);
		name[size] = '\0';
		care->warn_signal = signal_number(name);
	}
	if (size >= sizeof(name) || !care->warn_signal) {
		why_set(why, "there is no signal '%s'; write one like USR1@60",
			quote_bytes(value, size).text);
		return -EINVAL;
	}
	if (!time)
		return 0;
	r = parse_duration_ms(time + 1, &care->warn_ms, why);
	return r < 0 ? -EINVAL : 0;
}

int read_on_limit(const char *value, void *at, struct why *why)
{
	bool is_second;
	int r = read_one_of(value, "kill", "requeue", &is_second, why);

	if (r == 0)
		*(enum on_limit *)at = is_second ? ON_LIMIT_REQUEUE : ON_LIMIT_KILL;
	return r;
}

int read_status(const char *value, void *at, struct why *why)
{
	uint64_t status;

	if (parse_u64(value, STATUS_MAX, &status, why) < 0)
		return -EINVAL;
	*(int *)at = (int)status;
	return 0;
}

int read_times(const char *value, void *at, struct why *why)
{
	uint64_t times;

	if (parse_u64(value, TIMES_MAX, &times, why) < 0)
		return -EINVAL;
	*(unsigned *)at = (unsigned)times;
	return 0;
}

int read_style(const char *value, void *at, struct why *why)
{
	bool is_second;
	int r = read_one_of(value, "local", "physical", &is_second, why);

	if (r == 0)
		*(enum inject_style *)at = is_second ? INJECT_PHYSICAL : INJECT_LOCAL;
	return r;
}

int read_engine(const char *value, void *at, struct why *why)
{
	enum engine *engine = at;

	*engine = strcmp(value, "slurm") == 0 ? ENGINE_SLURM : ENGINE_LOCAL;
	if (*engine == ENGINE_SLURM || strcmp(value, "local") == 0)
		return 0;
	why_set(why, "'%s' is neither local nor slurm", quote(value).text);
	return -EINVAL;
}

int read_pid(const char *value, void *at, struct why *why)
{
	uint64_t pid;

	if (parse_u64(value, INT32_MAX, &pid, why) < 0)
		return -EINVAL;
	if (pid < 2) {
		why_set(why, "'%s' is not the number of a process of yours",
			quote(value).text);
		return -EINVAL;
	}
	*(uint32_t *)at = (uint32_t)pid;
	return 0;
}

/* --- jobs files ---------------------------------------------------------------------- */

int read_batch_format(const char *value, void *at, struct why *why)
{
	bool is_second;
	int r = read_one_of(value, "lines", "csv", &is_second, why);

	if (r == 0)
		*(enum batch_format *)at = is_second ? BATCH_CSV : BATCH_LINES;
	return r;
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

/* --- which ended jobs to show -------------------------------------------------------- */

int read_states(const char *value, void *at, struct why *why)
{
	unsigned states;

	if (ended_states_parse(value, &states, why) < 0)
		return -EINVAL;
	*(const char **)at = value;
	return 0;
}

int read_last(const char *value, void *at, struct why *why)
{
	uint64_t count = UINT64_MAX;

	if (strcmp(value, "all") != 0 &&
		(parse_u64(value, INT64_MAX, &count, NULL) < 0 || !count)) {
		why_set(why, "'%s' is not a number of jobs; write one, or all",
			quote(value).text);
		return -EINVAL;
	}
	*(uint64_t *)at = count;
	return 0;
}

int read_begin(const char *value, void *at, struct why *why)
{
	int64_t now_ms = clock_real_ms(), at_ms, *begin_ms = at;

	if (begin_time_parse(value, now_ms, &at_ms, why) < 0)
		return -EINVAL;
	/* as in Slurm, a time that has passed means now */
	*begin_ms = at_ms > now_ms ? clock_boot_ms() + at_ms - now_ms : 0;
	return 0;
}

int read_at(const char *value, void *at, struct why *why)
{
	return begin_time_parse(value, clock_real_ms(), at, why);
}

int read_when(const char *value, void *at, struct why *why)
{
	return date_time_parse(value, clock_real_ms(), at, why);
}

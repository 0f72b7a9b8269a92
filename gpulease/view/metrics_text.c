#include <errno.h>

#include "array.h"
#include "metrics_text.h"

/* --- what is added up by user ----------------------------------------------------------- */

/* The values of reason_kind, and of the label `reason`. */
static const char *const reasons[] = { "leased", "behind", "gpu", "held", "limit",
	"none" };
enum { REASONS = ARRAY_SIZE(reasons), REASON_NONE = REASONS - 1 };

struct user_sum {
	const char *user; /* in the machine */
	double leased_gpus, idle_gpus, waiting_gpus, running_jobs;
	double waiting_jobs[REASONS];
};

struct sums {
	const struct machine *machine;
	struct user_sum *users; /* in the order of their names */
	size_t count, room;
};

/* Returns the sum of @user, which is added if it is new; NULL without memory. */
static struct user_sum *sum_of(struct sums *sums, const char *user)
{
	struct user_sum *users;

	for (size_t i = 0; i < sums->count; i++)
		if (strcmp(sums->users[i].user, user) == 0)
			return &sums->users[i];
	users = array_grow(sums->users, sizeof(*users), sums->count, &sums->room);
	if (!users)
		return NULL;
	sums->users = users;
	users[sums->count] = (struct user_sum){ .user = user };
	return &users[sums->count++];
}

/* How much of each of its GPUs a job has, by the rule of --accounting. */
static double weight(double share)
{
	return share > 0 && share < 1 ? share : 1;
}

/* Whether a lease before the one at @at is of the same job, which has one for each of its GPUs. */
static bool is_counted(const struct machine *machine, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (machine->leases[i].job == machine->leases[at].job)
			return true;
	return false;
}

static int add_leases(struct sums *sums)
{
	const struct machine *machine = sums->machine;

	for (size_t i = 0; i < machine->lease_count; i++) {
		const struct machine_lease *lease = &machine->leases[i];
		struct user_sum *sum = sum_of(sums, lease->user);

		if (!sum)
			return -ENOMEM;
		if (lease->gpu != SIZE_MAX)
			sum->leased_gpus += weight(lease->share);
		if (lease->gpu != SIZE_MAX && lease->is_unused)
			sum->idle_gpus += weight(lease->share);
		/* a lingering lease outlives its job */
		if (!lease->is_lingering && !is_counted(machine, i))
			sum->running_jobs++;
	}
	return 0;
}

static size_t reason_of(const struct machine_ticket *ticket)
{
	size_t reason = 0;

	while (reason < REASON_NONE && strcmp(reasons[reason], ticket->reason_kind) != 0)
		reason++;
	return reason;
}

static int add_queue(struct sums *sums)
{
	for (size_t i = 0; i < sums->machine->queue_count; i++) {
		const struct machine_ticket *ticket = &sums->machine->queue[i];
		struct user_sum *sum = sum_of(sums, ticket->user);

		if (!sum)
			return -ENOMEM;
		sum->waiting_jobs[reason_of(ticket)]++;
		if (ticket->gpus > 0)
			sum->waiting_gpus += (double)ticket->gpus * weight(ticket->share);
	}
	return 0;
}

static int compare_users(const void *a, const void *b)
{
	const struct user_sum *x = a, *y = b;

	return strcmp(x->user, y->user);
}

/* --- samples ---------------------------------------------------------------------------- */

struct label {
	const char *name, *value;
};

struct family {
	const char *name;
	const char *unit; /* the end of the name; NULL: none */
	const char *help;
	void (*print)(const struct family *family, const struct sums *sums, FILE *out);
	size_t offset; /* of the double in a struct user_sum, for print_users() */
};

/* A backslash, a quote and a line feed are escaped; all else stands for itself. */
static void print_label(const struct label *label, char before, FILE *out)
{
	(void)fprintf(out, "%c%s=\"", before, label->name);
	for (const char *at = label->value; *at; at++) {
		if (*at == '\\' || *at == '"' || *at == '\n')
			(void)fputc('\\', out);
		(void)fputc(*at == '\n' ? 'n' : *at, out);
	}
	(void)fputc('"', out);
}

/* @labels ends with a label without a name; NULL: there is none. */
static void print_sample(
	const struct family *family, const struct label *labels, double value, FILE *out)
{
	(void)fputs(family->name, out);
	for (size_t i = 0; labels && labels[i].name; i++)
		print_label(&labels[i], i == 0 ? '{' : ',', out);
	/* 15 digits: a number of bytes stays exact, and 0.1 is printed as 0.1 */
	(void)fprintf(out, "%s %.15g\n", labels ? "}" : "", value);
}

/* --- GPUs ------------------------------------------------------------------------------- */

/* The values of the label `state`. */
static const char *const states[] = { "idle", "leased", "lingering", "settling", "locked",
	"external", "unknown", "paused" };

static bool is_unknown(const struct machine_gpu *gpu)
{
	return strcmp(gpu->state, "unknown") == 0;
}

/* Whether the two have the same label (label_gpu()). */
static bool is_same_index(const struct machine_gpu *a, const struct machine_gpu *b)
{
	return a->index == b->index && strcmp(a->node, b->node) == 0 &&
	       max_i64(a->instance, -1) == max_i64(b->instance, -1);
}

/*
 * Whether the GPU at @at has samples.  The instances of a divided GPU have them in its place.
 * Indices can repeat after a GPU was taken out of the machine; of two GPUs with one index, the one
 * that nvidia-smi shows is printed.
 */
static bool is_shown(const struct machine *machine, size_t at)
{
	const struct machine_gpu *gpu = &machine->gpus[at];

	for (size_t i = 0; i < machine->gpu_count && !gpu->is_divided; i++) {
		const struct machine_gpu *other = &machine->gpus[i];
		bool is_worse = is_unknown(gpu) && !is_unknown(other);
		bool is_equal = is_unknown(gpu) == is_unknown(other);

		if (i != at && !other->is_divided && is_same_index(gpu, other) &&
			(is_worse || (is_equal && i < at)))
			return false;
	}
	return !gpu->is_divided;
}

enum { GPU_LABEL_SIZE = MACHINE_NAME_SIZE + 48 };

/* The index, `0:1` for the MIG instance 1 of GPU 0, or `n1/0` for GPU 0 of the node n1. */
static void label_gpu(const struct machine_gpu *gpu, char label[GPU_LABEL_SIZE])
{
	struct text text = text_on(label, GPU_LABEL_SIZE);

	if (gpu->node[0])
		text_addf(&text, "%s/", gpu->node);
	text_addf(&text, "%lld", (long long)gpu->index);
	if (gpu->instance >= 0)
		text_addf(&text, ":%lld", (long long)gpu->instance);
}

static void print_gpu_info(
	const struct family *family, const struct sums *sums, FILE *out)
{
	for (size_t i = 0; i < sums->machine->gpu_count; i++) {
		const struct machine_gpu *gpu = &sums->machine->gpus[i];
		char index[GPU_LABEL_SIZE];

		label_gpu(gpu, index);
		if (is_shown(sums->machine, i))
			print_sample(family,
				(const struct label[]){ { "gpu", index },
					{ "uuid", gpu->uuid }, { "model", gpu->model },
					{ gpu->node[0] ? "node" : NULL, gpu->node },
					{ NULL, NULL } },
				1, out);
	}
}

static void print_state(
	const struct family *family, const struct machine_gpu *gpu, FILE *out)
{
	char index[GPU_LABEL_SIZE];

	label_gpu(gpu, index);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		print_sample(family,
			(const struct label[]){ { "gpu", index }, { "state", states[i] },
				{ NULL, NULL } },
			strcmp(gpu->state, states[i]) == 0, out);
}

static void print_gpu_state(
	const struct family *family, const struct sums *sums, FILE *out)
{
	for (size_t i = 0; i < sums->machine->gpu_count; i++)
		if (is_shown(sums->machine, i))
			print_state(family, &sums->machine->gpus[i], out);
}

/* Whether the list of names, "0,1:2", has @name. */
static bool is_named(const char *names, const char *name)
{
	size_t size = strlen(name);

	for (const char *at = names; *at;) {
		size_t length = strcspn(at, ",");

		if (length == size && memcmp(at, name, size) == 0)
			return true;
		at += length;
		at += *at == ',';
	}
	return false;
}

/* Whether a window that has begun keeps the GPU with this label, which is its name there, too. */
static bool is_kept(const struct machine *machine, const char *label)
{
	for (size_t i = 0; i < machine->window_count; i++)
		if (machine->windows[i].has_begun &&
			is_named(machine->windows[i].gpus, label))
			return true;
	return false;
}

static void print_gpu_window(
	const struct family *family, const struct sums *sums, FILE *out)
{
	const struct machine *machine = sums->machine;

	if (machine->engine[0]) /* the windows of a cluster are not known */
		return;
	for (size_t i = 0; i < machine->gpu_count; i++) {
		char index[GPU_LABEL_SIZE];

		label_gpu(&machine->gpus[i], index);
		if (is_shown(machine, i))
			print_sample(family,
				(const struct label[]){
					{ "gpu", index }, { NULL, NULL } },
				is_kept(machine, index), out);
	}
}

/* ->offset: of an int64_t in a struct machine_gpu; the unit says by how much it is multiplied */
static void print_gpu_number(
	const struct family *family, const struct sums *sums, FILE *out)
{
	double factor = strcmp(family->unit, "bytes") == 0 ? 1024 * 1024 : 0.01;

	for (size_t i = 0; i < sums->machine->gpu_count; i++) {
		const struct machine_gpu *gpu = &sums->machine->gpus[i];
		char index[GPU_LABEL_SIZE];
		int64_t number;

		memcpy(&number, (const char *)gpu + family->offset, sizeof(number));
		if (number < 0 || !is_shown(sums->machine, i))
			continue;
		label_gpu(gpu, index);
		print_sample(family,
			(const struct label[]){ { "gpu", index }, { NULL, NULL } },
			(double)number * factor, out);
	}
}

/* --- users ------------------------------------------------------------------------------ */

static void print_users(const struct family *family, const struct sums *sums, FILE *out)
{
	for (size_t i = 0; i < sums->count; i++) {
		const struct user_sum *sum = &sums->users[i];
		double value;

		memcpy(&value, (const char *)sum + family->offset, sizeof(value));
		print_sample(family,
			(const struct label[]){ { "user", sum->user }, { NULL, NULL } },
			value, out);
	}
}

static void print_waiting_jobs(
	const struct family *family, const struct sums *sums, FILE *out)
{
	for (size_t i = 0; i < sums->count; i++)
		for (size_t reason = 0; reason < REASONS; reason++)
			if (sums->users[i].waiting_jobs[reason] > 0)
				print_sample(family,
					(const struct label[]){
						{ "user", sums->users[i].user },
						{ "reason", reasons[reason] },
						{ NULL, NULL } },
					sums->users[i].waiting_jobs[reason], out);
}

/* --- the machine ------------------------------------------------------------------------ */

static void print_build_info(
	const struct family *family, const struct sums *sums, FILE *out)
{
	print_sample(family,
		(const struct label[]){
			{ "version", sums->machine->version }, { NULL, NULL } },
		1, out);
}

static void print_longest_wait(
	const struct family *family, const struct sums *sums, FILE *out)
{
	int64_t longest_ms = 0;

	for (size_t i = 0; i < sums->machine->queue_count; i++)
		longest_ms = max_i64(longest_ms, sums->machine->queue[i].waits_ms);
	print_sample(family, NULL, (double)longest_ms / 1000, out);
}

static void print_probe_age(
	const struct family *family, const struct sums *sums, FILE *out)
{
	if (sums->machine->answer_age_ms >= 0)
		print_sample(
			family, NULL, (double)sums->machine->answer_age_ms / 1000, out);
}

/* An nvidia-smi that fails after it has printed its rows leaves all GPUs without used memory. */
static bool has_used_memory(const struct machine *machine)
{
	for (size_t i = 0; i < machine->gpu_count; i++)
		if (machine->gpus[i].used_mib >= 0)
			return true;
	return machine->gpu_count == 0;
}

static void print_probe_success(
	const struct family *family, const struct sums *sums, FILE *out)
{
	const struct machine *machine = sums->machine;

	if (machine->engine[0]) /* a cluster is not asked through nvidia-smi */
		return;
	print_sample(family, NULL,
		machine->answer_age_ms >= 0 && !machine->is_answer_old &&
			!machine->trouble[0] && has_used_memory(machine),
		out);
}

/* clang-format off */
static const struct family families[] = {
	{ "gpulease_build_info", NULL, "The version of gpulease; the value is 1.",
		print_build_info, 0 },
	{ "gpulease_gpu_info", NULL, "A GPU or MIG instance; the value is 1.",
		print_gpu_info, 0 },
	{ "gpulease_gpu_state", NULL, "1 for the state that the GPU is in, 0 for the others.",
		print_gpu_state, 0 },
	{ "gpulease_gpu_window", NULL,
		"1 if a window that has begun keeps the GPU, for some users or for none, else 0.",
		print_gpu_window, 0 },
	{ "gpulease_gpu_memory_bytes", "bytes", "Memory of the GPU.",
		print_gpu_number, offsetof(struct machine_gpu, total_mib) },
	{ "gpulease_gpu_memory_used_bytes", "bytes", "Memory in use on the GPU.",
		print_gpu_number, offsetof(struct machine_gpu, used_mib) },
	{ "gpulease_gpu_utilization_ratio", "ratio", "Utilization of the GPU, from 0 to 1.",
		print_gpu_number, offsetof(struct machine_gpu, utilization_percent) },
	{ "gpulease_leased_gpus", NULL, "GPUs that the user has leased; a share counts as its part.",
		print_users, offsetof(struct user_sum, leased_gpus) },
	{ "gpulease_idle_leased_gpus", NULL,
		"Leased GPUs that the user's jobs have left at 0 % for longer than idle-after.",
		print_users, offsetof(struct user_sum, idle_gpus) },
	{ "gpulease_running_jobs", NULL, "Jobs of the user that run, also without a GPU.",
		print_users, offsetof(struct user_sum, running_jobs) },
	{ "gpulease_waiting_jobs", NULL, "Jobs of the user that wait, by reason.",
		print_waiting_jobs, 0 },
	{ "gpulease_waiting_gpus", NULL,
		"GPUs that the user's waiting jobs need; a share counts as its part.",
		print_users, offsetof(struct user_sum, waiting_gpus) },
	{ "gpulease_longest_wait_seconds", "seconds",
		"How long the job has waited that has waited longest; 0 if none waits.",
		print_longest_wait, 0 },
	{ "gpulease_probe_age_seconds", "seconds", "Age of the answer of nvidia-smi.",
		print_probe_age, 0 },
	{ "gpulease_probe_success", NULL, "1 if nvidia-smi has answered in time and shows GPUs, else 0.",
		print_probe_success, 0 },
};
/* clang-format on */

int metrics_text_print(const struct machine *machine, FILE *out)
{
	struct sums sums = { .machine = machine };
	int r = add_leases(&sums);

	if (r == 0)
		r = add_queue(&sums);
	if (r == 0 && sums.count)
		qsort(sums.users, sums.count, sizeof(*sums.users), compare_users);
	for (size_t i = 0; i < ARRAY_SIZE(families) && r == 0; i++) {
		const struct family *family = &families[i];

		(void)fprintf(out, "# TYPE %s gauge\n", family->name);
		if (family->unit)
			(void)fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
		(void)fprintf(out, "# HELP %s %s\n", family->name, family->help);
		family->print(family, &sums, out);
	}
	if (r == 0)
		(void)fputs("# EOF\n", out);
	free(sums.users);
	return r;
}

/*
 * The checks of --doctor that ask the cluster.  Declared in engine_doctor.h.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine_doctor.h"
#include "engine_state.h"
#include "find_program.h"
#include "other_program.h"
#include "parse.h"
#include "slurm_ask.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* The exit statuses of what is run on a node. */
enum { HAS_NO_ENGINE = 1, HAS_NO_FILE = 2 };
enum { NODE_DEADLINE_MS = 8 * 1000 };

/* --- the controller -------------------------------------------------------------------- */

/* Sets ->config. */
static void read_config(struct engine_doctor *doctor)
{
	struct answer answer;

	if (engine_doctor_ask(WORDS("scontrol", "show", "config"), SLURM_DEADLINE_MS,
		    &answer) == 0 &&
		answer.status == 0 && answer.text)
		doctor->config = strdup(answer.text);
	answer_release(&answer);
}

bool engine_check_controller(struct engine_doctor *doctor)
{
	struct answer answer;
	int r = engine_doctor_ask(WORDS("scontrol", "ping"), SLURM_DEADLINE_MS, &answer);
	const char *line = r == 0 && answer.text ? answer.text : "";
	bool is_up = r == 0 && answer.status == 0 && strstr(line, " is UP");
	int size = (int)strcspn(line, "\n");

	if (is_up) {
		(void)doctor_add(&doctor->report, DOCTOR_OK, "%.*s", size, line);
		read_config(doctor);
	} else {
		struct doctor_finding *finding =
			size ? doctor_add(
				       &doctor->report, DOCTOR_FAIL, "%.*s", size, line)
			     : engine_doctor_add_failure(
				       doctor, DOCTOR_FAIL, "scontrol ping", r, &answer);

		doctor_remedy(finding,
			"slurmctld has to run on the machine that SlurmctldHost in slurm.conf "
			"names, and this machine has to reach it");
	}
	answer_release(&answer);
	return is_up;
}

/* --- versions and settings ------------------------------------------------------------- */

void engine_doctor_setting(const char *text, const char *name, char *out, size_t size)
{
	size_t length = strlen(name);
	struct text value = text_on(out, size);

	for (const char *line = text; line && *line; line += *line == '\n') {
		const char *at = line + length;

		if (strncmp(line, name, length) == 0 && at[strspn(at, " ")] == '=') {
			at += strspn(at, " ") + 1;
			at += strspn(at, " ");
			text_add_bytes(&value, at, strcspn(at, "\n"));
			return;
		}
		line += strcspn(line, "\n");
	}
}

/* Returns the number at the beginning of @text, 0 if there is none. */
static unsigned number_at(const char *text)
{
	unsigned number = 0;

	for (; is_digit(*text) && number < 1000000; text++)
		number = number * 10 + (unsigned)(*text - '0');
	return number;
}

/* Whether @version, "22.05.8", is 20.11 or later. */
static bool is_tried_version(const char *version)
{
	const char *dot = strchr(version, '.');
	unsigned year = number_at(version), month = dot ? number_at(dot + 1) : 0;

	return year > 20 || (year == 20 && month >= 11);
}

void engine_check_version(struct engine_doctor *doctor)
{
	struct answer answer;
	char there[64];
	int r = engine_doctor_ask(
		WORDS("sinfo", "--version"), SLURM_DEADLINE_MS, &answer);
	const char *line = r == 0 && answer.text ? answer.text : "", *number;
	int size = (int)strcspn(line, "\n");

	engine_doctor_setting(doctor->config, "SLURM_VERSION", there, sizeof(there));
	number = line + strcspn(line, "0123456789");
	if (r < 0 || answer.status != 0)
		(void)engine_doctor_add_failure(
			doctor, DOCTOR_WARN, "sinfo --version", r, &answer);
	else if (!is_tried_version(number))
		doctor_remedy(
			doctor_add(&doctor->report, DOCTOR_WARN, "%.*s", size, line),
			"gpulease was never tried with a Slurm before 20.11");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"%.*s here, %s the controller", size, line,
			there[0] ? there : "unknown");
	answer_release(&answer);
}

void engine_check_settings(struct engine_doctor *doctor)
{
	struct doctor_report *report = &doctor->report;
	char select[64], age[32], wait[32];

	if (!doctor->config) {
		(void)doctor_add(report, DOCTOR_WARN, "scontrol show config has failed");
		return;
	}
	engine_doctor_setting(doctor->config, "SelectType", select, sizeof(select));
	engine_doctor_setting(doctor->config, "MinJobAge", age, sizeof(age));
	engine_doctor_setting(doctor->config, "KillWait", wait, sizeof(wait));
	if (strcmp(select, "select/cons_tres") != 0)
		doctor_remedy(doctor_add(report, DOCTOR_FAIL, "SelectType is %s", select),
			"--gpus needs SelectType=select/cons_tres in slurm.conf");
	if (number_at(age) < 30)
		doctor_remedy(doctor_add(report, DOCTOR_WARN, "MinJobAge is %s", age),
			"set it to 60 or more in slurm.conf: Slurm forgets how a job has "
			"ended before gpulease asks");
	else
		(void)doctor_add(report, DOCTOR_OK, "%s; KillWait is %s, MinJobAge is %s",
			select, wait, age);
}

/* --- partitions and nodes -------------------------------------------------------------- */

void engine_check_partitions(struct engine_doctor *doctor)
{
	struct doctor_report *report = &doctor->report;
	char names[256], *fields[3], *text;
	struct text list = TEXT_ON(names);
	bool has_default = false, has_up = false;
	struct answer answer;
	int r = engine_doctor_ask(WORDS("sinfo", "-h", "-s", "-o", "%P\x1f%a\x1f%D"),
		SLURM_DEADLINE_MS, &answer);

	if (r < 0 || answer.status != 0) {
		(void)engine_doctor_add_failure(doctor, DOCTOR_FAIL, "sinfo", r, &answer);
		answer_release(&answer);
		return;
	}
	text = answer.text;
	while (slurm_next_line(&text, fields, ARRAY_SIZE(fields)) >= 0) {
		char *star = strchr(fields[0], '*');

		if (star)
			*star = '\0';
		has_default |= star != NULL;
		has_up |= strcmp(fields[1], "up") == 0;
		text_addf(&list, "%s%s (%s%s, %s node%s)", list.used ? ", " : "",
			fields[0], fields[1], star ? ", default" : "", fields[2],
			strcmp(fields[2], "1") == 0 ? "" : "s");
	}
	if (!has_up)
		doctor_remedy(doctor_add(report, DOCTOR_FAIL, "none is up%s%s",
				      list.used ? ": " : "", names),
			"scontrol update PartitionName=NAME State=UP");
	else if (!has_default)
		doctor_remedy(
			doctor_add(report, DOCTOR_WARN, "%s; none is the default", names),
			"give -p NAME with each job, or the administrator sets Default=YES");
	else
		(void)doctor_add(report, DOCTOR_OK, "%s", names);
	answer_release(&answer);
}

void engine_check_nodes(struct engine_doctor *doctor)
{
	struct doctor_report *report = &doctor->report;
	const struct cluster_nodes *nodes = &doctor->nodes;
	size_t working = 0, away = 0;
	char names[256];
	struct text list = TEXT_ON(names);

	doctor->has_nodes = cluster_nodes_ask(&doctor->nodes) == 0;
	for (size_t i = 0; doctor->has_nodes && i < nodes->count; i++) {
		const struct cluster_node *node = &nodes->list[i];

		working += node->phase == NODE_WORKS;
		if (node->phase == NODE_WORKS || away++ >= 8)
			continue;
		text_addf(&list, "%s%s (%s%s%s)", list.used ? ", " : "", node->name,
			node->state, node->reason[0] ? ": " : "", node->reason);
	}
	if (away > 8)
		text_addf(&list, " and %zu more", away - 8);
	if (!doctor->has_nodes || nodes->count == 0)
		(void)doctor_add(report, DOCTOR_FAIL, "sinfo shows no node");
	else if (away)
		doctor_remedy(
			doctor_add(report, working ? DOCTOR_WARN : DOCTOR_FAIL,
				"%zu of %zu take no jobs: %s", away, nodes->count, names),
			"sinfo -R tells why; scontrol update NodeName=NAME State=RESUME");
	else
		(void)doctor_add(report, DOCTOR_OK, "%zu, all take jobs", nodes->count);
}

/* --- GPUs and shards ------------------------------------------------------------------- */

enum { TYPES_SHOWN = 12 };

/* The GPUs of all nodes, by type. */
struct type_sum {
	const char *name;
	size_t count;
};

static size_t sum_types(const struct cluster_nodes *nodes, struct type_sum *sums)
{
	size_t count = 0;

	for (size_t n = 0; n < nodes->count; n++)
		for (size_t t = 0; t < nodes->list[n].type_count; t++) {
			const struct node_type *type = &nodes->list[n].types[t];
			size_t i = 0;

			while (i < count && strcmp(sums[i].name, type->name) != 0)
				i++;
			if (i == TYPES_SHOWN)
				continue;
			if (i == count)
				sums[count++] = (struct type_sum){ .name = type->name };
			sums[i].count += type->count;
		}
	return count;
}

void engine_check_gpus(struct engine_doctor *doctor)
{
	struct doctor_report *report = &doctor->report;
	const struct cluster_nodes *nodes = &doctor->nodes;
	struct type_sum sums[TYPES_SHOWN];
	size_t with = 0, count = sum_types(nodes, sums);
	char names[400];
	struct text list = TEXT_ON(names);

	for (size_t n = 0; n < nodes->count; n++)
		with += nodes->list[n].gpus > 0;
	for (size_t i = 0; i < count; i++)
		text_addf(&list, "%s%zu %s", i ? ", " : "", sums[i].count,
			sums[i].name[0] ? sums[i].name : "without a type");
	if (with == 0)
		doctor_remedy(doctor_add(report, DOCTOR_FAIL, "no node has any"),
			"GresTypes=gpu and Gres=gpu:TYPE:N for each node in slurm.conf, and "
			"gres.conf on the nodes");
	else
		(void)doctor_add(report, DOCTOR_OK, "%zu on %zu of %zu nodes: %s",
			nodes->gpus, with, nodes->count, names);
}

void engine_check_shards(struct engine_doctor *doctor)
{
	size_t shards = 0;

	for (size_t n = 0; n < doctor->nodes.count; n++)
		shards += doctor->nodes.list[n].shards;
	if (shards)
		(void)doctor_add(
			&doctor->report, DOCTOR_OK, "%zu; -n 0.5 uses them", shards);
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"none, so shares as in -n 0.5 are refused");
}

/* --- accounting ------------------------------------------------------------------------ */

void engine_check_accounting(struct engine_doctor *doctor)
{
	struct answer answer;
	char path[PATH_MAX];
	int r;

	if (find_program("sacct", path) < 0) {
		(void)doctor_add(&doctor->report, DOCTOR_WARN, "not checked: no sacct");
		return;
	}
	r = engine_doctor_ask(WORDS("sacct", "-n", "-X", "-P", "-o", "JobIDRaw"),
		SLURM_DEADLINE_MS, &answer);
	if (r == 0 && answer.status == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "sacct answers");
	else
		doctor_remedy(engine_doctor_add_failure(
				      doctor, DOCTOR_WARN, "sacct", r, &answer),
			"without slurmdbd there is no --history and no --accounting");
	answer_release(&answer);
}

/* --- gpulease on the nodes ------------------------------------------------------------- */

/* The file in the folder of the user that a node has to see; "" if there is none. */
static void make_shared_file(char path[PATH_MAX])
{
	const char *folder = engine_state_folder();
	int fd;

	path[0] = '\0';
	if (!folder)
		return;
	(void)snprintf(path, PATH_MAX, "%s/doctor.XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		path[0] = '\0';
	else
		(void)close(fd);
}

static void report_on_node(struct engine_doctor *doctor, uint64_t missing,
	const char *engine, const char *file, const char *node)
{
	struct doctor_report *report = &doctor->report;
	int folder = (int)(strrchr(file, '/') - file);

	if (missing & HAS_NO_ENGINE)
		doctor_remedy(doctor_add(report, DOCTOR_WARN, "'%s' is not on node %s",
				      engine, node),
			"install gpulease on the nodes at the same path, or in a folder that "
			"they share; without it there are no --retries, --inject and "
			"limits in seconds");
	else
		(void)doctor_add(
			report, DOCTOR_OK, "'%s' is on node %s, too", engine, node);
	if (missing & HAS_NO_FILE)
		doctor_remedy(doctor_add(report, DOCTOR_FAIL,
				      "node %s does not see the files in '%.*s'", node,
				      folder, file),
			"share the home directories with the nodes, or set XDG_STATE_HOME to a "
			"folder that they share: logs of --submit are there");
	else
		(void)doctor_add(report, DOCTOR_OK, "'%.*s' is that of node %s, too",
			folder, file, node);
}

void engine_check_on_nodes(struct engine_doctor *doctor)
{
	/* it ends well whatever is missing, so that the accounting shows no job that failed */
	static char script[] = "m=0; test -x \"$0\" || m=1; "
			       "test -e \"$1\" || m=$((m + 2)); "
			       "echo \"$SLURMD_NODENAME $m\"";
	struct doctor_report *report = &doctor->report;
	char engine[PATH_MAX], file[PATH_MAX];
	struct answer answer;
	uint64_t missing;
	char *end;
	int r;

	make_shared_file(file);
	if (other_program_find("gpulease-engine", engine) < 0 || !file[0]) {
		(void)doctor_add(report, DOCTOR_WARN,
			"not checked: no gpulease-engine, or no folder for logs");
		return;
	}
	r = engine_doctor_ask(
		WORDS("srun", "-Q", "-N1", "-n1", "-t1", "--immediate=3", "--chdir=/",
			"--job-name=gpulease-doctor", "sh", "-c", script, engine, file),
		NODE_DEADLINE_MS, &answer);
	(void)unlink(file);
	if (answer.text)
		answer.text[strcspn(answer.text, "\n")] = '\0';
	end = answer.text ? strchr(answer.text, ' ') : NULL;
	if (end)
		*end++ = '\0';
	if (r == 0 && end &&
		parse_u64(end, HAS_NO_ENGINE | HAS_NO_FILE, &missing, NULL) == 0)
		report_on_node(doctor, missing, engine, file, answer.text);
	else
		doctor_remedy(engine_doctor_add_failure(
				      doctor, DOCTOR_WARN, "srun", r, &answer),
			"not checked; on a node run: test -x %s", engine);
	answer_release(&answer);
}

/*
 * --doctor on a cluster: the order of the checks, and those of this machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "config_file.h"
#include "diag.h"
#include "engine_doctor.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "fdio.h"
#include "find_program.h"
#include "json_members.h"
#include "slurm_ask.h"
#include "terminal.h"

#define MUNGE_SOCKET "/run/munge/munge.socket.2"

int engine_doctor_ask(const char *const *words, int64_t deadline_ms, struct answer *ret)
{
	int r;

	*ret = ANSWER_NONE;
	r = answer_begin(ret, (char *const *)words);
	if (r < 0)
		return r;
	answer_wait(ret, deadline_ms);
	if (ret->fault < 0)
		answer_end(ret);
	return ret->fault;
}

struct doctor_finding *engine_doctor_add_failure(struct engine_doctor *doctor,
	enum doctor_result result, const char *program, int r,
	const struct answer *answer)
{
	if (r == -ETIMEDOUT)
		return doctor_add(&doctor->report, result, "%s does not answer", program);
	if (r < 0)
		return doctor_add(
			&doctor->report, result, "%s: %s", program, strerror(-r));
	return doctor_add(&doctor->report, result, "%s has failed with status %d%s%s",
		program, answer->status, answer->error[0] ? ": " : "", answer->error);
}

/* --- the setting ----------------------------------------------------------------------- */

static void check_configuration(struct engine_doctor *doctor)
{
	static struct config config;
	const char *file = config_file_named(engine_line_value(doctor->line, "config"));
	const char *variable = getenv("GPULEASE_ENGINE");
	struct why why = WHY_NONE;

	if (config_file_load(file, &config, NULL, &why) < 0)
		(void)doctor_add_why(&doctor->report, DOCTOR_FAIL, &why);
	else if (engine_line_has(doctor->line, "engine"))
		(void)doctor_add(&doctor->report, DOCTOR_OK, "--engine slurm");
	else if (variable && strcmp(variable, "slurm") == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "GPULEASE_ENGINE=slurm");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK, "engine = slurm, in '%s'",
			file ? file : CONFIG_FILE);
}

/* --- programs -------------------------------------------------------------------------- */

/* The programs that the engine runs. */
static const struct {
	const char *name, *purpose; /* NULL: nothing works without it */
} programs[] = {
	{ "srun", NULL },
	{ "sbatch", NULL },
	{ "squeue", NULL },
	{ "scancel", NULL },
	{ "sinfo", NULL },
	{ "scontrol", NULL },
	{ "sacct", "--history and --accounting need it" },
};

static void check_commands(struct engine_doctor *doctor)
{
	struct doctor_report *report = &doctor->report;
	char path[PATH_MAX], *slash;
	struct doctor_finding *finding;

	doctor->has_programs = true;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const char *purpose = programs[i].purpose;

		if (find_program(programs[i].name, path) == 0)
			continue;
		finding = doctor_add(report, purpose ? DOCTOR_WARN : DOCTOR_FAIL,
			"%s is not in PATH%s%s", programs[i].name, purpose ? "; " : "",
			purpose ? purpose : "");
		doctor_remedy(finding,
			"use a machine of the cluster, or install Slurm's client programs: "
			"apt-get install slurm-client");
		doctor->has_programs &= purpose != NULL;
	}
	if (!doctor->has_programs || find_program(programs[0].name, path) < 0)
		return;
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	(void)doctor_add(
		report, DOCTOR_OK, "srun, sbatch and the others are in '%s'", path);
}

/* --- slurm.conf ------------------------------------------------------------------------ */

/* Where packages put it, and where slurmd keeps it if the controller gives it out. */
static const char *const usual_places[] = { "/etc/slurm/slurm.conf",
	"/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf",
	"/usr/local/etc/slurm.conf" };

static void check_slurm_conf(struct engine_doctor *doctor)
{
	struct doctor_report *report = &doctor->report;
	const char *named = getenv("SLURM_CONF");

	if (named && *named) {
		if (access(named, R_OK) < 0) {
			doctor_remedy(
				doctor_add(report, DOCTOR_FAIL, "SLURM_CONF is '%s': %s",
					named, strerror(errno)),
				"set SLURM_CONF to the slurm.conf of the cluster, or unset it");
			return;
		}
		text_copy(doctor->conf, sizeof(doctor->conf), named);
		(void)doctor_add(report, DOCTOR_OK, "'%s', by SLURM_CONF", named);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(usual_places) && !doctor->conf[0]; i++)
		if (access(usual_places[i], R_OK) == 0)
			text_copy(doctor->conf, sizeof(doctor->conf), usual_places[i]);
	if (doctor->conf[0])
		(void)doctor_add(report, DOCTOR_OK, "'%s'", doctor->conf);
	else
		doctor_remedy(doctor_add(report, DOCTOR_WARN,
				      "none in '%s' or the other usual places",
				      usual_places[0]),
			"copy that of the cluster there, or set SLURM_CONF; without it "
			"Slurm's programs ask the name service, and may hang for a minute");
}

/* --- munge ----------------------------------------------------------------------------- */

/* Returns the end of the word at @text: at a blank, a comma, a comment or the end of the line. */
static size_t word_size(const char *text)
{
	return strcspn(text, " \t\r\n,#");
}

/* Returns the value of @key in slurm.conf, whose keys have any case; NULL: it has none. */
static const char *find_key(const char *conf, const char *key)
{
	size_t size = strlen(key);

	for (const char *line = conf; *line; line += *line == '\n') {
		line += strspn(line, " \t\r");
		if (strncasecmp(line, key, size) == 0 && line[size] == '=')
			return line + size + 1;
		line += strcspn(line, "\n");
	}
	return NULL;
}

bool engine_doctor_munge_socket(const char *conf, char *out, size_t size)
{
	static const char name[] = "socket=";
	const char *type = find_key(conf, "AuthType"), *info = find_key(conf, "AuthInfo");
	struct text text = text_on(out, size);

	if (type && strncmp(type, "auth/munge", word_size(type)) != 0)
		return false;
	while (info && strncmp(info, name, strlen(name)) != 0) {
		info += word_size(info);
		info = *info == ',' ? info + 1 : NULL;
	}
	if (info)
		text_add_bytes(
			&text, info + strlen(name), word_size(info + strlen(name)));
	else
		text_add(&text, MUNGE_SOCKET);
	return true;
}

/* Returns 0 if a process answers at the socket @path, or a negative errno. */
static int try_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	text_copy(address.sun_path, sizeof(address.sun_path), path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

static void check_munge(struct engine_doctor *doctor)
{
	struct doctor_report *report = &doctor->report;
	static char conf[256 * 1024];
	char path[PATH_MAX];
	autofd int fd = doctor->conf[0] ? open(doctor->conf, O_RDONLY | O_CLOEXEC) : -1;
	int r;

	if (fd < 0 || fdio_read_text_of(fd, conf, sizeof(conf)) < 0)
		conf[0] = '\0';
	if (!engine_doctor_munge_socket(conf, path, sizeof(path))) {
		(void)doctor_add(
			report, DOCTOR_OK, "not needed: AuthType is another one");
		return;
	}
	r = try_socket(path);
	if (r == 0 || r == -EAGAIN)
		(void)doctor_add(report, DOCTOR_OK, "munged has the socket '%s'", path);
	else
		doctor_remedy(
			doctor_add(report, conf[0] ? DOCTOR_FAIL : DOCTOR_WARN,
				"munged does not answer at '%s': %s", path, strerror(-r)),
			"start it: systemctl start munge; its key has to be that of the "
			"cluster");
}

/* --- all of them ----------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*check)(struct engine_doctor *doctor);
} here[] = {
	{ "configuration", check_configuration },
	{ "commands", check_commands },
	{ "slurm.conf", check_slurm_conf },
	{ "munge", check_munge },
}, there[] = {
	{ "version", engine_check_version },
	{ "settings", engine_check_settings },
	{ "partitions", engine_check_partitions },
	{ "nodes", engine_check_nodes },
	{ "gpus", engine_check_gpus },
	{ "shards", engine_check_shards },
	{ "accounting", engine_check_accounting },
	{ "on the nodes", engine_check_on_nodes },
};

static void check_all(struct engine_doctor *doctor)
{
	for (size_t i = 0; i < ARRAY_SIZE(here); i++) {
		doctor->report.check = here[i].name;
		here[i].check(doctor);
	}
	doctor->report.check = "controller";
	if (!doctor->has_programs || !engine_check_controller(doctor))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		doctor->report.check = there[i].name;
		there[i].check(doctor);
	}
}

static void print_json(const struct doctor_report *report)
{
	struct json json = JSON_ON(stdout);

	document_engine = "slurm";
	document_begin(&json, "doctor", clock_real_ms(), "");
	doctor_put_findings(report, &json);
	document_finish(&json);
}

int engine_doctor(struct engine_line *line)
{
	static struct engine_doctor doctor; /* too big for the stack */
	struct table_style style = terminal_style();
	int status;

	doctor.line = line;
	check_all(&doctor);
	if (line->settings.output.json)
		print_json(&doctor.report);
	else
		doctor_print(&doctor.report, &style, stdout);
	status = doctor_worst(&doctor.report) == DOCTOR_FAIL ? EXIT_NOT_DONE : EXIT_DONE;
	if (doctor.report.is_short_of_memory) {
		diag("not enough memory to show everything");
		status = EXIT_MISUSE;
	}
	doctor_report_release(&doctor.report);
	cluster_nodes_release(&doctor.nodes);
	free(doctor.config);
	return status;
}

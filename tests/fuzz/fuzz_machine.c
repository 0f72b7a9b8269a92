/*
 * Any bytes as the JSON of --status and of --history: all texts that are read are printable, and
 * the metrics of the machine are lines of the right form, each sample once.
 */
#include "metrics_text.h"
#include "fuzz.h"

static void check_printable(const char *text)
{
	char printable[2 * MACHINE_COMMAND_SIZE];
	struct text shown = TEXT_ON(printable);

	text_add_printable(&shown, text, strlen(text));
	MUST(strcmp(printable, text) == 0);
}

/* --- metrics ---------------------------------------------------------------------------- */

/* Returns where the label value ends that begins at @at, behind its closing quote. */
static const char *end_of_value(const char *at)
{
	while (*at != '"') {
		MUST(*at && *at != '\n');
		if (*at == '\\') {
			at++;
			MUST(*at == '\\' || *at == '"' || *at == 'n');
		}
		at++;
	}
	return at + 1;
}

/* Returns the end of the name and the labels of a sample: `name{label="value",label="value"}`. */
static const char *end_of_labels(const char *at)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

	MUST(strncmp(at, "gpulease_", 9) == 0);
	at += strspn(at, letters);
	if (*at != '{')
		return at;
	do {
		at += 1 + strspn(at + 1, letters);
		MUST(at[0] == '=' && at[1] == '"');
		at = end_of_value(at + 2);
	} while (*at == ',');
	MUST(*at == '}');
	return at + 1;
}

/* Returns the line after the one at @line. */
static const char *check_line(const char *whole, const char *line)
{
	const char *end = strchr(line, '\n'), *value;
	size_t size;

	MUST(end && end > line);
	if (*line == '#')
		return end + 1;
	value = end_of_labels(line);
	size = (size_t)(value - line);
	MUST(*value == ' ');
	MUST(value + 1 + strspn(value + 1, "0123456789.e+") == end);
	for (const char *at = whole; at < line; at = strchr(at, '\n') + 1)
		MUST(strncmp(at, line, size + 1) != 0);
	return end + 1;
}

static void check_metrics(const struct machine *machine)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	MUST(out);
	MUST(metrics_text_print(machine, out) == 0);
	MUST(fclose(out) == 0);
	MUST(strlen(text) == size);
	MUST(size > 6 && strcmp(text + size - 6, "# EOF\n") == 0);
	for (const char *line = text; *line;)
		line = check_line(text, line);
	free(text);
}

/* --- reading ---------------------------------------------------------------------------- */

static void check_machine(const struct machine *machine)
{
	check_printable(machine->host);
	check_printable(machine->trouble);
	for (size_t i = 0; i < machine->gpu_count; i++) {
		check_printable(machine->gpus[i].model);
		check_printable(machine->gpus[i].why);
	}
	for (size_t i = 0; i < machine->lease_count; i++) {
		const struct machine_lease *lease = &machine->leases[i];

		MUST(lease->gpu < machine->gpu_count || lease->gpu == SIZE_MAX);
		check_printable(lease->user);
		check_printable(lease->command);
	}
	for (size_t i = 0; i < machine->queue_count; i++) {
		check_printable(machine->queue[i].reason_kind);
		check_printable(machine->queue[i].why);
	}
}

static void check_ended(const struct ended_jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++) {
		MUST(jobs->list[i].gpu_listed <= ARRAY_SIZE(jobs->list[i].gpus));
		check_printable(jobs->list[i].state);
		check_printable(jobs->list[i].command);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct machine machine = MACHINE_NONE;
	struct ended_jobs jobs = ENDED_JOBS_NONE;
	size_t count;

	if (machine_read((const char *)data, size, &machine) < 0)
		MUST(machine.gpu_count + machine.lease_count + machine.queue_count == 0);
	check_machine(&machine);
	check_metrics(&machine);
	/* over what it had */
	count = machine.lease_count;
	(void)!machine_read((const char *)data, size, &machine);
	MUST(machine.lease_count == count);
	if (ended_jobs_read((const char *)data, size, &jobs) < 0)
		MUST(jobs.count == 0);
	check_ended(&jobs);
	machine_release(&machine);
	ended_jobs_release(&jobs);
	return 0;
}

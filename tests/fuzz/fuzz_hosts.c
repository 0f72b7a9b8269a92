/*
 * A list of hosts, a NUL, and any bytes as what ssh prints: no name is an option of ssh, the tables
 * are printable, and the JSON of all hosts is JSON.
 */
#include "hosts_table.h"
#include "json_check.h"
#include "fuzz.h"

static void check_names(const char *list)
{
	static struct host_list hosts;

	if (host_list_read(list, &hosts, NULL) < 0)
		return;
	MUST(hosts.count && hosts.count <= HOSTS_MAX);
	for (size_t i = 0; i < hosts.count; i++)
		MUST(hosts.name[i][0] && hosts.name[i][0] != '-' &&
			!strpbrk(hosts.name[i], " ,'\"\\$`;&|<>(){}*?!~#\n"));
}

/* Whether a terminal may show all lines. */
static void check_lines(const char *text, size_t size)
{
	for (const char *line = text, *end = text + size; line < end;) {
		static char printable[16384];
		struct text shown = TEXT_ON(printable);
		const char *next = memchr(line, '\n', (size_t)(end - line));

		MUST(next);
		text_add_printable(&shown, line, (size_t)(next - line));
		MUST(shown.cut || memcmp(line, printable, shown.used) == 0);
		line = next + 1;
	}
}

static int print(const struct hosts_states *states, enum hosts_kind kind, FILE *out)
{
	const struct table_style style = { .width = 0 };

	switch (kind) {
	case HOSTS_STATUS:
		return hosts_table_status(states, &style, out);
	case HOSTS_QUEUE:
		return hosts_table_queue(states, &style, out);
	default:
		return hosts_table_history(states, 20, &style, out);
	}
}

/* The table, or with @has_json the JSON. */
static void check_output(
	const struct hosts_states *states, enum hosts_kind kind, bool has_json)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct json_walk walk;
	struct json_value whole;

	MUST(out);
	if (has_json)
		hosts_json(states, kind, out);
	else
		MUST(print(states, kind, out) == 0);
	MUST(fclose(out) == 0);
	check_lines(text, size);
	walk = JSON_WALK(text, size);
	/* the reader knows a depth of 8; three levels are around an answer */
	if (has_json && json_take_nested(&walk, &whole) == 0)
		MUST(json_is_clean(&whole) && json_is_at_end(&walk));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct hosts_states states;
	char *all = fuzz_string(data, size);
	struct host_answer answer = { .host = "lab1" };
	size_t names;

	MUST(all);
	names = strlen(all);
	check_names(all);
	answer.answer = ANSWER_NONE;
	answer.answer.text = names < size ? all + names + 1 : all + names;
	answer.answer.size = names < size ? size - names - 1 : 0;
	states.count = 1;
	states.now_ms = 1795491948858;
	for (enum hosts_kind kind = 0; kind < HOSTS_KINDS; kind++) {
		host_state_read(&answer, kind, &states.list[0]);
		check_output(&states, kind, false);
		check_output(&states, kind, true);
		host_state_release(&states.list[0]);
	}
	free(all);
	return 0;
}

/*
 * Any bytes as what sinfo, squeue, scontrol and sacct print, separated by lines of `===`, with the
 * mark "m": tables are printable, JSON is JSON and is read again, and each GPU has one job at most.
 */
#include "cluster_ended.h"
#include "fuzz.h"
#include "json_check.h"
#include "machine_read.h"
#include "show_cluster.h"
#include "show_history.h"
#include "show_queue.h"
#include "show_status.h"

enum { NOW_S = 1795533600 };

/* Cuts the next section off. */
static char *next_section(char **text)
{
	char *section = *text, *end = strstr(section, "\n===\n");

	*text = end ? end + 5 : section + strlen(section);
	if (end)
		end[1] = '\0';
	return section;
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

static void check_is_json(const char *text, size_t size)
{
	struct json_value whole = { .kind = JSON_NESTED, .at = text, .size = size };

	MUST(json_is_clean(&whole));
}

static void check_json(const struct cluster *cluster, const char *text, size_t size)
{
	struct machine machine = MACHINE_NONE;

	check_is_json(text, size);
	MUST(machine_read(text, size, &machine) == 0);
	MUST(machine.gpu_count == cluster->view.gpu_count);
	MUST(machine.queue_count == cluster->view.job_count);
	machine_release(&machine);
}

static void check_outputs(const struct cluster *cluster)
{
	const struct table_style style = { .width = 80 };

	for (unsigned kind = 0; kind < 4; kind++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);

		MUST(out);
		if (kind == 0)
			MUST(show_cluster(cluster, &style, out) == 0);
		else if (kind == 1)
			MUST(show_queue(&cluster->view, &style, out) == 0);
		else if (kind == 2)
			show_status_json(&cluster->view, out);
		else
			show_queue_json(&cluster->view, out);
		MUST(fclose(out) == 0);
		if (kind < 2)
			check_lines(text, size);
		else if (kind == 2)
			check_json(cluster, text, size);
		else
			check_is_json(text, size);
		free(text);
	}
}

static void check_places(const struct cluster *cluster)
{
	const struct cluster_places *places = &cluster->places;

	for (size_t i = 0; i < places->count; i++) {
		const struct cluster_place *place = &places->list[i];

		MUST(place->gpu < cluster->nodes.gpus &&
			place->job < cluster->jobs.count);
		MUST(place->percent > 0 && place->percent <= 100);
		MUST(i == 0 || places->list[i - 1].gpu < place->gpu ||
			(places->list[i - 1].gpu == place->gpu &&
				places->list[i - 1].percent < 100 &&
				place->percent <= 100));
	}
}

static void check_ended(char *text)
{
	const struct table_style style = { .width = 80 };
	struct cluster_ends ends = CLUSTER_ENDS_NONE;

	MUST(cluster_ends_read(text, "\x1f", NOW_S * INT64_C(1000), &ends) == 0);
	for (size_t i = 0; i < ends.count; i++) {
		const struct history_end *end = &ends.list[i].end;
		char *table = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&table, &size);

		MUST(out);
		MUST(end->ticket && end->attempt && end->waited_ms >= 0);
		MUST(end->gone_ms >= end->since_ms);
		MUST(i == 0 || ends.list[i - 1].end.gone_ms <= end->gone_ms);
		MUST(show_history(end, 1, NOW_S * INT64_C(1000), &style, out) == 0);
		MUST(fclose(out) == 0);
		check_lines(table, size);
		free(table);
	}
	cluster_ends_release(&ends);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cluster cluster = CLUSTER_NONE;
	char *text = fuzz_string(data, size), *rest = text;

	if (!text)
		return 0;
	MUST(cluster_nodes_read(next_section(&rest), "m", &cluster.nodes) == 0);
	MUST(cluster_jobs_read(next_section(&rest), "m", &cluster.jobs) == 0);
	MUST(cluster_places_read(next_section(&rest), &cluster.jobs, &cluster.nodes,
		     &cluster.places) == 0);
	MUST(cluster_view_make(&cluster, NOW_S * INT64_C(1000)) == 0);
	check_places(&cluster);
	check_outputs(&cluster);
	check_ended(next_section(&rest));
	cluster_release(&cluster);
	free(text);
	return 0;
}

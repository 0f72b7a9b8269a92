#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "accounting.h"
#include "page.h"
#include "show_history.h"
#include "timeline_bars.h"
#include "timeline_html.h"
#include "timeline_marks.h"
#include "timeline_text.h"
#include "timeline_ticks.h"

enum { HOUR_MS = 3600 * 1000, ENDS_MAX = 6000, GPUS = 8 };

static const int64_t BEGIN_MS = INT64_C(1700006400000); /* 2023-11-15 00:00 UTC */
static const struct timeline_words words = { .host = "lab3" };

static struct history_end ends[ENDS_MAX];
static size_t end_count;
static struct machine machine;
static struct ended_jobs ended;
static struct timeline timeline;

static int setup(void **state)
{
	(void)state;
	(void)setenv("TZ", "UTC", 1);
	end_count = 0;
	machine = MACHINE_NONE;
	ended = ENDED_JOBS_NONE;
	timeline = TIMELINE_NONE;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	machine_release(&machine);
	ended_jobs_release(&ended);
	timeline_release(&timeline);
	return 0;
}

/* --- a machine --------------------------------------------------------------------------- */

static int64_t hour(double hours)
{
	return BEGIN_MS + (int64_t)(hours * HOUR_MS);
}

/* A job on the GPUs @gpus from @from to @to, in hours from the beginning. */
static struct history_end *ran(const char *user, const char *gpus, double from, double to)
{
	struct history_end *end = &ends[end_count++];

	*end = (struct history_end){ .ticket = end_count,
		.gpu_count = text_count_items(gpus),
		.since_ms = hour(from),
		.alive_ms = hour(to),
		.gone_ms = hour(to),
		.status = "0" };
	for (const char *c = user; *c; c++)
		end->uid = end->uid * 31 + (unsigned char)*c;
	text_copy(end->user, sizeof(end->user), user);
	text_copy(end->gpus, sizeof(end->gpus), gpus);
	return end;
}

/* Reads JSON of a machine with @count GPUs, and @more behind the first. */
static void have_gpus(unsigned count, const char *leases_of_first)
{
	struct page page;

	page_begin(&page);
	(void)fprintf(page.out, "{\"host\": \"lab3\", \"taken_unix_ms\": 1, \"gpus\": [");
	for (unsigned i = 0; i < count; i++)
		(void)fprintf(page.out, "%s{\"index\": %u, \"leases\": [%s]}",
			i ? ", " : "", i, i ? "" : leases_of_first);
	(void)fprintf(page.out, "]}");
	assert_int_equal(fclose(page.out), 0);
	assert_int_equal(machine_read(page.text, page.size, &machine), 0);
	free(page.text);
}

/* Makes the timeline of what has run, as it is read from JSON, from @from to @until in hours. */
static void make(double from, double until)
{
	static const struct history_gap gap;
	struct page page;

	page_begin(&page);
	show_history_json(ends, end_count, &gap, hour(until), "/", page.out);
	assert_int_equal(fclose(page.out), 0);
	assert_int_equal(ended_jobs_read(page.text, page.size, &ended), 0);
	free(page.text);
	timeline_release(&timeline);
	assert_int_equal(timeline_make(&ended, &machine, hour(from), NULL, &timeline), 0);
}

static const struct timeline_user *user_of(const char *name)
{
	for (size_t i = 0; i < timeline.user_count; i++)
		if (strcmp(timeline.users[i].name, name) == 0)
			return &timeline.users[i];
	fail_msg("no user %s", name);
	return NULL;
}

/* GPU time in hours, times 100. */
static double hundredths(uint64_t gpu_time)
{
	return (double)gpu_time / HOUR_MS;
}

static void check_letters(size_t row, const char *expected)
{
	char letters[256] = "";
	unsigned char places[256];

	assert_int_equal(timeline_letters(&timeline, &timeline.rows[row],
				 strlen(expected), letters, places),
		0);
	assert_string_equal(letters, expected);
}

/* --- letters ------------------------------------------------------------------------------ */

static void the_user_with_the_most_time_is_a(void **state)
{
	(void)state;
	have_gpus(2, "");
	(void)ran("bob", "0", 0, 2);
	(void)ran("alice", "1", 2, 8);
	(void)ran("bob", "0", 6, 8);
	make(0, 10);
	check_letters(0, "bb....bb..");
	check_letters(1, "..aaaaaa..");
	assert_true(hundredths(user_of("alice")->least) == 600);
	assert_true(hundredths(user_of("bob")->least) == 400);
	assert_int_equal(user_of("bob")->jobs, 2);
}

static void a_job_has_a_span_on_each_of_its_gpus(void **state)
{
	(void)state;
	have_gpus(4, "");
	(void)ran("alice", "0,2,3", 5, 10);
	make(0, 10);
	check_letters(0, ".....aaaaa");
	check_letters(1, "..........");
	check_letters(2, ".....aaaaa");
	check_letters(3, ".....aaaaa");
	assert_int_equal(timeline.total.jobs, 1);
}

static void the_longer_job_has_the_cell(void **state)
{
	(void)state;
	have_gpus(1, "");
	(void)ran("alice", "0", 0, 1);
	(void)ran("bob", "0", 1, 5);
	(void)ran("alice", "0", 5, 10);
	make(0, 10);
	check_letters(0, "abbbbaaaaa");
	check_letters(0, "baa");
}

static void an_end_that_was_not_seen_is_a_question_mark(void **state)
{
	struct history_end *end;

	(void)state;
	have_gpus(1, "");
	end = ran("alice", "0", 0, 4);
	end->gone_ms = hour(8);
	make(0, 10);
	check_letters(0, "aaaa????..");
	assert_true(hundredths(timeline.total.least) == 400);
	assert_true(hundredths(timeline.total.most) == 800);
}

static void time_at_zero_percent_is_a_capital(void **state)
{
	(void)state;
	have_gpus(1, "");
	(void)ran("alice", "0", 0, 8);
	make(0, 10);
	timeline_release(&timeline);
	ended.list[0].unused_at_end_ms = 3 * HOUR_MS;
	ended.list[0].unused_ms = 5 * HOUR_MS;
	assert_int_equal(timeline_make(&ended, &machine, hour(0), NULL, &timeline), 0);
	check_letters(0, "aaaaaAAA..");
	assert_true(hundredths(timeline.total.unused) == 500);
}

static void a_running_job_goes_on_up_to_now(void **state)
{
	char lease[256];

	(void)state;
	(void)snprintf(lease, sizeof(lease),
		"{\"ticket\": 7, \"attempt\": 1, \"user\": \"alice\", "
		"\"started_unix_ms\": %lld, \"unused_for_ms\": %d}",
		(long long)hour(4), 2 * HOUR_MS);
	have_gpus(1, lease);
	make(0, 10);
	check_letters(0, "....aaaaAA");
	assert_int_equal(timeline.total.running, 1);
	assert_int_equal(timeline.total.jobs, 1);
}

static void a_job_that_ends_between_the_two_readings_counts_once(void **state)
{
	char lease[256];

	(void)state;
	(void)snprintf(lease, sizeof(lease),
		"{\"ticket\": 1, \"attempt\": 1, \"user\": \"alice\", "
		"\"started_unix_ms\": %lld}",
		(long long)hour(4) + 5);
	have_gpus(1, lease);
	(void)ran("alice", "0", 4, 9);
	make(0, 10);
	check_letters(0, "....aaaaa.");
	assert_int_equal(timeline.total.attempts, 1);
}

static void further_users_share_a_letter(void **state)
{
	(void)state;
	have_gpus(1, "");
	for (unsigned i = 0; i < 30; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "user%02u", i);
		(void)ran(name, "0", i, i + 1 - i * 0.01);
	}
	make(0, 30);
	check_letters(0, "abcdefghijklmnopqrstuvwxyz++++");
}

static void a_gpu_that_is_not_recorded_has_a_row(void **state)
{
	struct history_end *end;
	char label[TIMELINE_LABEL_SIZE];

	(void)state;
	have_gpus(2, "");
	end = ran("alice", "0", 0, 10);
	end->gpu_count = 3;
	make(0, 10);
	assert_int_equal(timeline.row_count, 3);
	assert_int_equal(timeline_gpus(&timeline), 2);
	timeline_format_row(&timeline.rows[2], label);
	assert_string_equal(label, "GPU not recorded");
	assert_int_equal(timeline.rows[2].height, 200);
	assert_true(hundredths(timeline.total.least) == 3000);
}

/* The order is that of Slurm: n10 follows n9. */
static void gpus_of_several_nodes_have_rows_of_their_own(void **state)
{
	static const char cluster[] =
		"{\"host\": \"login\", \"engine\": \"slurm\", \"taken_unix_ms\": 1, \"gpus\": ["
		"{\"node\": \"n9\", \"index\": 0, \"leases\": []},"
		"{\"node\": \"n9\", \"index\": 1, \"leases\": []},"
		"{\"node\": \"n10\", \"index\": 0, \"leases\": [{\"ticket\": 7, "
		"\"attempt\": 1, \"user\": \"alice\", \"started_unix_ms\": 1700010000000}]}]}";
	char label[TIMELINE_LABEL_SIZE];

	(void)state;
	assert_int_equal(machine_read(cluster, sizeof(cluster) - 1, &machine), 0);
	ran("bob", "2 on n[9-10]", 0, 1)->gpu_count = 2;
	make(0, 2);
	assert_int_equal(timeline.row_count, 4);
	timeline_format_row(&timeline.rows[0], label);
	assert_string_equal(label, "GPU n9/0");
	timeline_format_row(&timeline.rows[2], label);
	assert_string_equal(label, "GPU n10/0");
	assert_int_equal(timeline.rows[2].count, 1);
	timeline_format_row(&timeline.rows[3], label);
	assert_string_equal(label, "GPU not recorded");
	assert_int_equal(timeline.rows[3].height, 200);
}

static void a_gpu_that_is_gone_has_a_row_and_does_not_count(void **state)
{
	(void)state;
	have_gpus(2, "");
	(void)ran("alice", "5", 0, 5);
	(void)ran("alice", "0:1", 5, 10);
	make(0, 10);
	assert_int_equal(timeline.row_count, 4);
	assert_int_equal(timeline_gpus(&timeline), 2);
	assert_int_equal(timeline.rows[1].instance, 1);
	check_letters(1, ".....aaaaa");
	assert_int_equal(timeline.rows[3].index, 5);
	check_letters(3, "aaaaa.....");
}

static void attempts_of_a_job_count_as_one_job(void **state)
{
	(void)state;
	have_gpus(1, "");
	ran("alice", "0", 0, 1)->attempt = 1;
	ran("alice", "0", 1, 2)->attempt = 2;
	ran("alice", "0", 2, 3)->attempt = 0; /* the number came again */
	ends[0].ticket = ends[1].ticket = ends[2].ticket = 5;
	make(0, 10);
	assert_int_equal(timeline.total.attempts, 3);
	assert_int_equal(timeline.total.jobs, 2);
}

/* --- areas ------------------------------------------------------------------------------- */

/* The areas of the parts, in percent times milliseconds. */
struct areas {
	double parts[TIMELINE_PARTS];
	size_t count;
};

static void add_area(const struct timeline_mark *mark, void *taker)
{
	struct areas *areas = taker;

	areas->parts[mark->part] +=
		(double)(mark->until_ms - mark->from_ms) * mark->height;
	areas->count++;
}

static void check_near(double found, double expected, const char *what)
{
	double more = found > expected ? found - expected : expected - found;

	if (more > expected / 1000)
		fail_msg("%s: %.1f, not %.1f", what, found, expected);
}

static void check_areas(const struct areas *areas, const char *what)
{
	double least = areas->parts[PART_USED] + areas->parts[PART_UNUSED];

	check_near(least, (double)timeline.total.least, what);
	check_near(least + areas->parts[PART_UNSEEN], (double)timeline.total.most, what);
}

/* Reads the number behind @key in @text. */
static double number_behind(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	assert_non_null(at);
	return strtod(at + strlen(key), NULL);
}

/* The part that the class of the element shows. */
static enum timeline_part part_of(const char *element)
{
	const char *class = strchr(element, '"') + 1;
	size_t size = strcspn(class, "\"");

	if (memmem(class, size, " idle", 5))
		return PART_UNUSED;
	return memmem(class, size, " pale", 5) ? PART_UNSEEN : PART_USED;
}

static void add_rect(const char *at, struct areas *areas)
{
	double period_ms = (double)(timeline.until_ms - timeline.from_ms);

	areas->parts[part_of(at)] += number_behind(at, "width=\"") / 100 * period_ms *
				     number_behind(at, "height=\"") * 100 / TIMELINE_BAR;
	areas->count++;
}

static void add_path(const char *at, struct areas *areas)
{
	double period_ms = (double)(timeline.until_ms - timeline.from_ms);
	const char *end = strstr(at, "\"><title>");
	enum timeline_part part = part_of(at);

	for (at = strchr(at, 'M'); at && at < end; at = strchr(at + 1, 'M')) {
		areas->parts[part] += number_behind(at, "h") / 1000 * period_ms *
				      number_behind(at, "v") * 100 / TIMELINE_BAR;
		areas->count++;
	}
}

/* Adds up what is painted in @svg: rectangles and paths of the classes ua, ub …. */
static struct areas areas_of(const char *svg)
{
	struct areas areas = { .count = 0 };

	for (const char *at = svg; (at = strchr(at, '<')); at++) {
		const char *end = strchr(at, '\n');

		if (strncmp(at, "<rect class=\"u", 14) == 0 &&
			(!end || memmem(at, (size_t)(end - at), "%\" height", 9)))
			add_rect(at, &areas);
		else if (strncmp(at, "<path class=\"u", 14) == 0)
			add_path(at, &areas);
	}
	return areas;
}

/* Draws the picture and the page, and compares what is painted. */
static size_t check_painted(void)
{
	struct markup out = MARKUP_EMPTY;
	struct areas areas;
	size_t size;

	timeline_svg(&timeline, &words, false, &out);
	assert_false(out.is_short_of_memory);
	areas = areas_of(out.at);
	check_areas(&areas, "the picture");
	markup_empty(&out);
	timeline_html(&timeline, &words, &out);
	size = out.used;
	markup_release(&out);
	return size;
}

/* A random number from 0 to 1, the same in each run. */
static double chance(void)
{
	static uint64_t number = 12345;

	number = number * 6364136223846793005u + 1442695040888963407u;
	return (double)(number >> 40) / (1 << 24);
}

/* Adds @count jobs of @users users in the hours 0 to 168; some began before. */
static void run_random_jobs(unsigned count, unsigned users, double longest)
{
	for (unsigned i = 0; i < count; i++) {
		static const unsigned shares[] = { 0, 0, 0, 25, 50, 33, 100 };
		double from = chance() * 178 - 10, length = chance() * chance() * longest;
		struct history_end *end;
		char name[16], gpus[64] = "";
		struct text list = TEXT_ON(gpus);

		(void)snprintf(name, sizeof(name), "user%u",
			(unsigned)(chance() * chance() * users));
		for (unsigned gpu = (unsigned)(chance() * GPUS); gpu < GPUS; gpu += 3)
			text_addf(&list, "%s%u", list.used ? "," : "", gpu);
		end = ran(name, gpus, from, from + length < 168 ? from + length : 168);
		end->since_ms = min_i64(end->since_ms, end->gone_ms);
		end->attempt = (unsigned)(chance() * 3);
		end->share_percent = shares[(size_t)(chance() * ARRAY_SIZE(shares))];
		end->waited_ms = (int64_t)(chance() * HOUR_MS);
		if (chance() < 0.1)
			end->alive_ms -=
				(int64_t)((double)(end->gone_ms - end->since_ms) *
					  chance());
		if (chance() < 0.05)
			end->gpu_count++;
		if (chance() < 0.02)
			end->since_ms = 0;
		if (chance() < 0.5)
			(void)snprintf(end->utilization, sizeof(end->utilization),
				"%u/100", (unsigned)(chance() * 100));
	}
}

static void check_accounting(const struct accounting_row *row)
{
	const struct timeline_user *user = user_of(row->user);

	assert_int_equal(user->attempts, row->attempts);
	check_near((double)user->least / 100, (double)row->gpu_least_ms, row->user);
	check_near((double)user->most / 100, (double)row->gpu_most_ms, row->user);
	assert_int_equal(timeline_mean_wait_ms(user), accounting_mean_wait_ms(row));
	assert_in_range(timeline_utilization(user) + 2, accounting_utilization(row) + 1,
		accounting_utilization(row) + 3);
}

static void painted_areas_are_the_gpu_hours_of_accounting(void **state)
{
	struct ended_filter filter = { .from_ms = hour(0), .until_ms = INT64_MAX };

	(void)state;
	have_gpus(GPUS, "");
	for (unsigned run = 0; run < 20; run++) {
		struct accounting sums;

		end_count = 0;
		run_random_jobs(200, 40, 1 + run * 5);
		make(0, 168);
		accounting_init(&sums, &filter, hour(168));
		for (size_t i = end_count; i-- > 0;)
			assert_int_equal(accounting_add(&sums, &ends[i], false), 0);
		accounting_finish(&sums);
		assert_int_equal(timeline.user_count, sums.count);
		for (size_t i = 0; i < sums.count; i++)
			check_accounting(&sums.rows[i]);
		(void)check_painted();
		accounting_release(&sums);
	}
}

static void areas_stay_exact_however_much_is_merged(void **state)
{
	static const int64_t merges_ms[] = { 0, 1000, 60000, 600000, HOUR_MS,
		24 * HOUR_MS, 1000 * (int64_t)HOUR_MS };
	size_t before = SIZE_MAX;

	(void)state;
	have_gpus(GPUS, "");
	run_random_jobs(1000, 40, 10);
	make(0, 168);
	for (size_t i = 0; i < ARRAY_SIZE(merges_ms); i++) {
		struct areas areas = { .count = 0 };

		for (size_t row = 0; row < timeline.row_count; row++)
			timeline_marks(&timeline, &timeline.rows[row], merges_ms[i],
				add_area, &areas);
		check_areas(&areas, "merged");
		assert_true(areas.count <= before);
		before = areas.count;
	}
	for (size_t columns = 1; columns <= 1000; columns *= 10) {
		struct areas areas = { .count = 0 };

		for (size_t row = 0; row < timeline.row_count; row++)
			assert_int_equal(timeline_columns(&timeline, &timeline.rows[row],
						 columns, add_area, &areas),
				0);
		check_areas(&areas, "columns");
	}
}

static void no_two_spans_lie_over_each_other(void **state)
{
	(void)state;
	have_gpus(GPUS, "");
	run_random_jobs(300, 10, 20);
	make(0, 168);
	for (size_t i = 0; i < timeline.span_count; i++)
		for (size_t j = i + 1; j < timeline.span_count; j++) {
			const struct timeline_span *a = &timeline.spans[i],
						   *b = &timeline.spans[j];

			assert_false(a->row == b->row && a->from_ms < b->until_ms &&
				     b->from_ms < a->until_ms &&
				     a->y < b->y + b->percent &&
				     b->y < a->y + a->percent);
		}
}

static void a_week_of_5000_jobs_has_at_most_400_kilobytes(void **state)
{
	(void)state;
	have_gpus(GPUS, "");
	run_random_jobs(5000, 40, 4);
	make(0, 168);
	assert_in_range(check_painted(), 50 * 1024, 400 * 1024);
}

struct rectangles {
	struct timeline_mark list[4096];
	size_t count;
};

static void keep_rectangle(const struct timeline_mark *mark, void *taker)
{
	struct rectangles *rectangles = taker;

	assert_true(rectangles->count < ARRAY_SIZE(rectangles->list));
	rectangles->list[rectangles->count++] = *mark;
}

static void check_apart(const struct rectangles *rectangles)
{
	for (size_t i = 0; i < rectangles->count; i++)
		for (size_t j = 0; j < i; j++) {
			const struct timeline_mark *a = &rectangles->list[i],
						   *b = &rectangles->list[j];

			assert_false(a->from_ms < b->until_ms &&
				     b->from_ms < a->until_ms &&
				     a->y < b->y + b->height - 1e-6 &&
				     b->y < a->y + a->height - 1e-6);
		}
}

static void merged_rectangles_do_not_lie_over_each_other(void **state)
{
	static struct rectangles rectangles;

	(void)state;
	have_gpus(GPUS, "");
	run_random_jobs(400, 10, 10);
	make(0, 168);
	for (size_t row = 0; row < timeline.row_count; row++) {
		for (int64_t merge_ms = 0; merge_ms < 100 * HOUR_MS;
			merge_ms = 3 * merge_ms + HOUR_MS) {
			rectangles.count = 0;
			timeline_marks(&timeline, &timeline.rows[row], merge_ms,
				keep_rectangle, &rectangles);
			check_apart(&rectangles);
		}
		rectangles.count = 0;
		assert_int_equal(timeline_columns(&timeline, &timeline.rows[row], 50,
					 keep_rectangle, &rectangles),
			0);
		check_apart(&rectangles);
	}
}

static void so_has_a_week_of_any_number_of_jobs(void **state)
{
	(void)state;
	have_gpus(GPUS, "");
	for (unsigned count = 500; count <= 5500; count += 500) {
		end_count = 0;
		for (unsigned i = 0; i < count; i++) {
			double from = 168.0 * i / count;
			char gpu[8], name[16];

			(void)snprintf(gpu, sizeof(gpu), "%u", i % 2 ? 0 : i / 2 % GPUS);
			(void)snprintf(name, sizeof(name), "user%u", i % 13);
			(void)ran(name, gpu, from, from + 0.8 * 168 * GPUS / count);
		}
		make(0, 180);
		assert_in_range(check_painted(), 10 * 1024, 400 * 1024);
	}
}

static void so_has_a_week_of_5000_users(void **state)
{
	(void)state;
	have_gpus(GPUS, "");
	run_random_jobs(5000, 5000, 200);
	make(0, 168);
	assert_in_range(check_painted(), 50 * 1024, 400 * 1024);
}

/* --- text of others ---------------------------------------------------------------------- */

static void markup_of_others_is_escaped(void **state)
{
	static const struct {
		const char *text, *escaped;
	} cases[] = {
		{ "plain", "plain" },
		{ "<b a='1' c=\"2\">&", "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;" },
		{ "]]>", "]]&gt;" },
		{ "a\033[31m\nb\x01", "a?[31m?b?" },
		{ "\xff\xc3", "??" },
		{ "lé", "lé" },
		{ "\xef\xbf\xbe\xef\xbf\xbf", "??" },
		{ "\xe2\x80\xae", "?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct markup out = MARKUP_EMPTY;

		markup_text(&out, cases[i].text);
		assert_string_equal(out.at, cases[i].escaped);
		markup_release(&out);
	}
}

static void hostile_names_stay_names(void **state)
{
	struct markup out = MARKUP_EMPTY;

	(void)state;
	have_gpus(1, "");
	(void)ran("\"><script>x</script>", "0", 0, 10);
	text_copy(ends[0].name, sizeof(ends[0].name), "</title><script>]]>&x");
	make(0, 10);
	timeline_html(&timeline, &words, &out);
	assert_null(strstr(out.at, "<script"));
	assert_non_null(strstr(out.at, "&lt;script&gt;"));
	assert_non_null(strstr(out.at, "]]&gt;&amp;x"));
	markup_release(&out);
}

static void a_tooltip_says_what_the_job_was(void **state)
{
	struct markup out = MARKUP_EMPTY;

	(void)state;
	have_gpus(1, "");
	ran("alice", "0", 1, 5)->attempt = 2;
	text_copy(ends[0].name, sizeof(ends[0].name), "sft");
	make(0, 10);
	ended.list[0].unused_at_end_ms = HOUR_MS;
	timeline_release(&timeline);
	assert_int_equal(timeline_make(&ended, &machine, hour(0), NULL, &timeline), 0);
	timeline_svg(&timeline, &words, true, &out);
	assert_non_null(strstr(out.at,
		"<rect class=\"ua\" x=\"10.000%\" y=\"66\" width=\"30%\" height=\"20\">"
		"<title>alice: job 1, attempt 2 sft, 4h00m, "
		"Nov 15 01:00 to Nov 15 05:00</title></rect>"));
	assert_non_null(strstr(out.at, "Nov 15 05:00; at 0 % for 1h00m</title>"));
	markup_release(&out);
}

/* --- time ---------------------------------------------------------------------------------- */

static void check_ticks(const char *zone, int64_t from_ms, int64_t until_ms, size_t most,
	const char *expected)
{
	struct timeline_tick ticks[TICKS_MAX];
	char labels[512] = "";
	struct text text = TEXT_ON(labels);
	size_t count;

	(void)setenv("TZ", zone, 1);
	tzset();
	count = timeline_ticks(from_ms, until_ms, most, ticks);
	for (size_t i = 0; i < count; i++) {
		assert_in_range(ticks[i].at_ms, from_ms, until_ms - 1);
		text_addf(&text, "%s%s", i ? ", " : "", ticks[i].label);
	}
	assert_string_equal(labels, expected);
}

static void ticks_are_round_local_times(void **state)
{
	static const char berlin[] = "CET-1CEST,M3.5.0,M10.5.0/3";
	static const int64_t summer_ms =
		INT64_C(1711839600000); /* 2024-03-31 00:00 CET */

	(void)state;
	check_ticks(
		"UTC", hour(0), hour(6), 8, "Nov 15, 01:00, 02:00, 03:00, 04:00, 05:00");
	check_ticks("UTC", hour(0.1), hour(1), 8, "00:10, 00:20, 00:30, 00:40, 00:50");
	check_ticks("UTC", hour(-3.5), hour(20), 8,
		"21:00, Nov 15, 03:00, 06:00, 09:00, 12:00, 15:00, 18:00");
	check_ticks("UTC", hour(1), hour(169), 8,
		"Nov 16, Nov 17, Nov 18, Nov 19, Nov 20, Nov 21, Nov 22");
	check_ticks("UTC", hour(0), hour(24 * 365), 8,
		"Jan 2024, Mar 2024, May 2024, Jul 2024, Sep 2024, Nov 2024");
	check_ticks(berlin, summer_ms - 24 * HOUR_MS, summer_ms + 48 * HOUR_MS, 7,
		"Mar 30, 12:00, Mar 31, 12:00, Apr 1, 12:00, Apr 2");
}

static void nothing_in_the_period_is_said(void **state)
{
	struct markup out = MARKUP_EMPTY;
	static const struct table_style style = { .width = 60 };
	struct page page;

	(void)state;
	have_gpus(2, "");
	make(0, 24);
	page_begin(&page);
	assert_int_equal(timeline_text(&timeline, &words, &style, page.out), 0);
	page_has(&page, "no job had a GPU in this time");
	page_has(&page, "GPU 1 ......");
	assert_int_equal(fclose(page.out), 0);
	free(page.text);
	timeline_svg(&timeline, &words, true, &out);
	assert_non_null(strstr(out.at, "No job had a GPU in this time."));
	markup_release(&out);
}

static void colours_come_only_to_a_terminal_that_has_them(void **state)
{
	static const struct table_style plain = { .width = 60 },
					colours = { .width = 60, .has_colour = true };
	struct page page;

	(void)state;
	have_gpus(1, "");
	(void)ran("alice", "0", 0, 10);
	make(0, 10);
	page_begin(&page);
	assert_int_equal(timeline_text(&timeline, &words, &plain, page.out), 0);
	page_has(&page, "a  alice");
	assert_null(strchr(page.text, '\033'));
	assert_int_equal(timeline_text(&timeline, &words, &colours, page.out), 0);
	page_has(&page, "\033[48;5;214;38;5;16maaaa");
	page_has(&page, "\033[48;5;214;38;5;16ma\033[0m  alice");
	assert_int_equal(fclose(page.out), 0);
	free(page.text);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_user_with_the_most_time_is_a),
		TEST(a_job_has_a_span_on_each_of_its_gpus),
		TEST(the_longer_job_has_the_cell),
		TEST(an_end_that_was_not_seen_is_a_question_mark),
		TEST(time_at_zero_percent_is_a_capital),
		TEST(a_running_job_goes_on_up_to_now),
		TEST(a_job_that_ends_between_the_two_readings_counts_once),
		TEST(further_users_share_a_letter),
		TEST(a_gpu_that_is_not_recorded_has_a_row),
		TEST(gpus_of_several_nodes_have_rows_of_their_own),
		TEST(a_gpu_that_is_gone_has_a_row_and_does_not_count),
		TEST(attempts_of_a_job_count_as_one_job),
		TEST(painted_areas_are_the_gpu_hours_of_accounting),
		TEST(areas_stay_exact_however_much_is_merged),
		TEST(no_two_spans_lie_over_each_other),
		TEST(merged_rectangles_do_not_lie_over_each_other),
		TEST(a_week_of_5000_jobs_has_at_most_400_kilobytes),
		TEST(so_has_a_week_of_any_number_of_jobs),
		TEST(so_has_a_week_of_5000_users),
		TEST(markup_of_others_is_escaped),
		TEST(hostile_names_stay_names),
		TEST(a_tooltip_says_what_the_job_was),
		TEST(ticks_are_round_local_times),
		TEST(nothing_in_the_period_is_said),
		TEST(colours_come_only_to_a_terminal_that_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "clock.h"
#include "diag.h"
#include "engine_dry_run.h"
#include "engine_words.h"
#include "exitcodes.h"
#include "json_members.h"
#include "parse.h"
#include "wait_reason.h"

enum { NODES_SIZE = 200, NOW_S = 2 };

/* --- what srun says ------------------------------------------------------------------------ */

/* Reads a date in local time, or seconds since 1970. */
static int read_time(const char *text, int64_t *ret_s)
{
	struct tm tm = { .tm_isdst = -1 };
	char word[32];
	uint64_t number;

	text_copy(word, sizeof(word), text);
	word[strcspn(word, " ")] = '\0';
	if (parse_u64(word, INT64_MAX, &number, NULL) == 0) {
		*ret_s = (int64_t)number;
		return 0;
	}
	if (!strptime(word, "%Y-%m-%dT%H:%M:%S", &tm))
		return -EINVAL;
	*ret_s = mktime(&tm);
	return 0;
}

int engine_read_test_only(
	const char *line, int64_t *ret_start_s, char *nodes, size_t size)
{
	static const char at[] = " to start at ", on[] = " on nodes ";
	const char *start = strstr(line, at), *where = strstr(line, on);

	if (!start || read_time(start + sizeof(at) - 1, ret_start_s) < 0)
		return -EINVAL;
	text_copy(nodes, size, where ? where + sizeof(on) - 1 : "");
	nodes[strcspn(nodes, " ")] = '\0';
	return 0;
}

/* --- what is printed ----------------------------------------------------------------------- */

static void print_text(int64_t start_s, const char *nodes, bool can_start)
{
	char when[64];
	struct text text = TEXT_ON(when);

	if (can_start) {
		(void)printf("would start now on %s\n", nodes);
		return;
	}
	explain_when(clock_boot_ms() + start_s * 1000 - clock_real_ms(), &text);
	(void)printf("would wait; starts %s on %s\n", when, nodes);
}

static void print_json(int64_t start_s, const char *nodes, bool can_start)
{
	struct json json = JSON_ON(stdout);
	int64_t now_ms = clock_real_ms();

	document_begin(&json, "dry-run", now_ms, "");
	member_text(&json, "engine", "slurm");
	member_bool(&json, "can_start", can_start);
	member_time(&json, "start_at_unix_ms", can_start ? now_ms : start_s * 1000);
	json_key(&json, "gpus");
	json_begin_array(&json);
	json_end(&json);
	json_key(&json, "uuids");
	json_begin_array(&json);
	json_end(&json);
	json_key(&json, "sends_back");
	json_begin_array(&json);
	json_end(&json);
	member_number_if(&json, "step_of", false, 0);
	member_number_if(&json, "position", false, 0);
	json_put_text(&json, "reason_kind", can_start ? "" : "leased");
	json_put_text(
		&json, "why", can_start ? "" : "waits for GPUs or CPUs that are in use");
	member_foretold(&json, &(struct foretold){ .runs = 0 }, 0);
	member_usual(&json, &(struct usual){ .runs = 0 });
	json_put_text(&json, "nodes", nodes);
	document_finish(&json);
}

/* --- all of it ----------------------------------------------------------------------------- */

static int report(const struct engine_line *line, const struct answer *answer)
{
	static const char failure[] = "allocation failure: ";
	const char *why = strstr(answer->error, failure);
	char nodes[NODES_SIZE], more[64] = "";
	struct text most = TEXT_ON(more);
	int64_t start_s;
	bool can_start;

	if (answer->status != 0 || engine_read_test_only(answer->error, &start_s, nodes,
					   sizeof(nodes)) < 0) {
		engine_add_most(line, answer->error, &most);
		diag("Slurm would not start the job: %s%s",
			why ? why + sizeof(failure) - 1 : answer->error, more);
		return EXIT_MISUSE;
	}
	can_start = start_s <= clock_real_ms() / 1000 + NOW_S;
	if (line->settings.output.json)
		print_json(start_s, nodes, can_start);
	else
		print_text(start_s, nodes, can_start);
	return can_start ? EXIT_DONE : EXIT_GAVE_UP;
}

int engine_dry_run(const struct engine_line *line)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	int r;

	slurm_words_add(&words, "srun");
	slurm_words_add(&words, "--test-only");
	r = engine_job_words(line, &words);
	if (r != 0)
		return r;
	slurm_words_add(&words, "--");
	slurm_words_add(&words, "true");
	r = slurm_ask(&words, -1, SLURM_DEADLINE_MS, &answer);
	if (r != 0)
		return r;
	r = report(line, &answer);
	answer_release(&answer);
	return r;
}

#include "clock.h"
#include "cluster_size.h"
#include "diag.h"
#include "exitcodes.h"
#include "foreground.h"
#include "parse.h"
#include "slurm_reason.h"
#include "slurm_state.h"
#include "wait_reason.h"

enum {
	FIRST_MS = 300, /* a job that starts at once is not asked about */
	PAUSE_MS = 1000,
	PAUSE_MAX_MS = 10 * 1000,
	EVERY_MS = 10 * 1000, /* between two lines */
};

enum { WAIT_STATE, WAIT_REASON, WAIT_START, WAIT_FIELDS };

/* Starts the question for the state of the job. */
static void ask(struct foreground *fg)
{
	struct slurm_words words = { .count = 0 };

	slurm_words_add(&words, "squeue");
	slurm_words_add(&words, "-h");
	slurm_words_add(&words, "--states=all");
	slurm_words_addf(&words, "--jobs=%llu", (unsigned long long)fg->job);
	slurm_words_add(&words, "-O");
	slurm_words_add(&words, "State:\x1f,Reason:\x1f,StartTime:\x1f");
	(void)!slurm_ask_begin(&words, &fg->question);
	slurm_words_release(&words);
}

/* Prints why the job waits, and when it is expected to start. */
static void show(struct foreground *fg, char **fields, int64_t now_ms)
{
	char when[64] = "";
	struct text text = TEXT_ON(when);
	uint64_t start_s;

	if (fg->shown_ms && (now_ms < fg->shown_ms + EVERY_MS ||
				    strcmp(fg->reason, fields[WAIT_REASON]) == 0))
		return;
	text_copy(fg->reason, sizeof(fg->reason), fields[WAIT_REASON]);
	fg->shown_ms = now_ms;
	if (parse_u64(fields[WAIT_START], INT32_MAX, &start_s, NULL) == 0 && start_s &&
		slurm_is_estimate((int64_t)start_s - clock_real_ms() / 1000)) {
		text_add(&text, "; starts ");
		explain_when(now_ms + (int64_t)start_s * 1000 - clock_real_ms(), &text);
	}
	note("job %llu is in Slurm's queue: %s%s", (unsigned long long)fg->job, fg->why,
		when);
}

/* Gives up a job that can never start. */
static void give_up(struct foreground *fg, const struct slurm_reason *reason)
{
	bool is_dependency = strcmp(reason->kind, "held") == 0;

	if (is_dependency)
		note("gave up: %s", fg->why);
	else
		diag("Slurm cannot start job %llu: %s", (unsigned long long)fg->job,
			fg->why);
	foreground_end(fg, is_dependency ? EXIT_GAVE_UP : EXIT_MISUSE);
}

static void read_answer(struct foreground *fg, int64_t now_ms)
{
	char *fields[WAIT_FIELDS], *at = fg->question.text;
	struct text text = TEXT_ON(fg->why);
	const struct slurm_reason *reason;

	if (slurm_next_line(&at, fields, WAIT_FIELDS) < 0 ||
		slurm_state_find(fields[WAIT_STATE])->phase != SLURM_WAITS)
		return;
	reason = slurm_reason_find(fields[WAIT_REASON]);
	if (cluster_is_too_small(fg->job, fields[WAIT_REASON], &text)) {
		give_up(fg, reason);
		return;
	}
	slurm_reason_add(fields[WAIT_REASON], &text);
	if (reason->is_for_ever)
		give_up(fg, reason);
	/* Slurm has not looked at it yet */
	else if (strcmp(fields[WAIT_REASON], "None") != 0)
		show(fg, fields, now_ms);
}

void foreground_look(struct foreground *fg, int64_t now_ms)
{
	if (!fg->is_queued || fg->is_allocated || fg->is_ending)
		return;
	if (fg->question.pid) {
		answer_take(&fg->question);
		if (now_ms >= fg->ask_ms + SLURM_DEADLINE_MS)
			answer_end(&fg->question);
		if (!answer_is_complete(&fg->question))
			return;
		if (fg->question.status == 0 && fg->question.size)
			read_answer(fg, now_ms);
		fg->ask_ms = clock_boot_ms() + fg->pause_ms;
		fg->pause_ms = min_i64(fg->pause_ms * 2, PAUSE_MAX_MS);
		return;
	}
	if (!fg->ask_ms) {
		fg->ask_ms = now_ms + FIRST_MS;
		fg->pause_ms = PAUSE_MS;
	}
	if (now_ms < fg->ask_ms)
		return;
	fg->ask_ms = now_ms;
	ask(fg);
}

int64_t foreground_look_ms(const struct foreground *fg)
{
	int poll_ms = answer_poll_ms(&fg->question);

	if (!fg->is_queued || fg->is_allocated || fg->is_ending)
		return INT64_MAX;
	if (!fg->question.pid)
		return fg->ask_ms;
	return poll_ms >= 0 ? clock_boot_ms() + poll_ms : fg->ask_ms + SLURM_DEADLINE_MS;
}

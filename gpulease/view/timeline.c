#include <errno.h>

#include "gpulease_words.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "replace_file.h"
#include "terminal.h"
#include "timeline.h"
#include "timeline_hosts.h"
#include "timeline_html.h"
#include "timeline_text.h"

enum { STATUS_DEADLINE_MS = 60000, HISTORY_DEADLINE_MS = 120000 };

static const int64_t PERIOD_MS = INT64_C(7) * 24 * 3600 * 1000; /* without --since */

/* --- reading ---------------------------------------------------------------------------- */

static int read_failed(const char *what)
{
	diag("cannot read the %s that gpulease has printed; install it again: "
	     "make install",
		what);
	return EXIT_MISUSE;
}

/* Reads `gpulease --status --json`.  Returns 0, or EXIT_MISUSE after a message. */
static int read_machine(const struct settings *settings, struct machine *ret)
{
	struct gpulease_words words;
	struct answer answer = ANSWER_NONE;
	int r = gpulease_words_begin(&words, settings);

	if (r != 0)
		return r;
	gpulease_words_add(&words, "--status");
	gpulease_words_add(&words, "--json");
	r = gpulease_words_run(&words, STATUS_DEADLINE_MS, &answer);
	if (r != 0)
		return r;
	r = machine_read(answer.text, answer.size, ret);
	answer_release(&answer);
	return r < 0 ? read_failed("status") : 0;
}

/* Reads `gpulease --history all --json`, from @from_ms on. */
static int read_ended(
	const struct settings *settings, int64_t from_ms, struct ended_jobs *ret)
{
	struct gpulease_words words;
	struct answer answer = ANSWER_NONE;
	char since[32];
	int r = gpulease_words_begin(&words, settings);

	if (r != 0)
		return r;
	(void)snprintf(since, sizeof(since), "@%lld", (long long)from_ms / 1000);
	gpulease_words_add(&words, "--history");
	gpulease_words_add(&words, "all");
	gpulease_words_add(&words, "--json");
	gpulease_words_add(&words, "--since");
	gpulease_words_add(&words, since);
	if (settings->verb.user) {
		gpulease_words_add(&words, "--user");
		gpulease_words_add(&words, settings->verb.user);
	}
	r = gpulease_words_run(&words, HISTORY_DEADLINE_MS, &answer);
	if (r != 0)
		return r;
	r = ended_jobs_read(answer.text, answer.size, ret);
	answer_release(&answer);
	return r < 0 ? read_failed("history") : 0;
}

/* --- showing ----------------------------------------------------------------------------- */

static int write_file(const struct settings *settings, const struct timeline *timeline,
	const struct timeline_words *words)
{
	const char *path = settings->look.svg ? settings->look.svg : settings->look.html;
	struct markup out = MARKUP_EMPTY;
	struct why why = WHY_NONE;
	int r;

	if (settings->look.svg)
		timeline_svg(timeline, words, true, &out);
	else
		timeline_html(timeline, words, &out);
	if (out.is_short_of_memory) {
		r = -ENOMEM;
		why_set(&why, "%s", strerror(ENOMEM));
	} else {
		r = replace_file(path, out.at, out.used, MODE_BY_UMASK, &why);
	}
	if (r < 0)
		diag("%s", why.text);
	markup_release(&out);
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}

static int print_text(const struct timeline *timeline, const struct timeline_words *words)
{
	struct table_style style = terminal_style();
	int r = timeline_text(timeline, words, &style, stdout);

	if (r < 0)
		diag("%s", strerror(-r));
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}

static int64_t period_begin(const struct settings *settings, int64_t now_ms)
{
	return settings->verb.from_ms > 0 ? settings->verb.from_ms
					  : max_i64(1, now_ms - PERIOD_MS);
}

int timeline_show(const struct settings *settings, const struct ended_jobs *ended,
	const struct machine *machine)
{
	struct timeline timeline;
	struct timeline_words words = {
		.host = machine->host,
		.user = settings->verb.user,
		.missing_lines = (uint64_t)max_i64(0, ended->missing_lines),
	};
	int64_t from_ms = period_begin(settings, ended->taken_unix_ms);
	int r;

	if (from_ms >= ended->taken_unix_ms) {
		diag("--since is not in the past; give an earlier time");
		return EXIT_MISUSE;
	}
	r = timeline_make(ended, machine, from_ms, settings->verb.user, &timeline);
	if (r < 0) {
		diag("%s", strerror(-r));
		return EXIT_MISUSE;
	}
	if (settings->look.svg || settings->look.html)
		r = write_file(settings, &timeline, &words);
	else
		r = print_text(&timeline, &words);
	timeline_release(&timeline);
	return r;
}

int timeline_main(const struct settings *settings)
{
	struct machine machine = MACHINE_NONE;
	struct ended_jobs ended = ENDED_JOBS_NONE;
	int r;

	if (settings->look.svg && settings->look.html) {
		diag("--svg and --html exclude each other; give one");
		return EXIT_MISUSE;
	}
	if (settings->look.hosts)
		return timeline_hosts(settings, period_begin(settings, clock_real_ms()));
	/* the status first: a job that ends in between is in both, and its end counts */
	r = read_machine(settings, &machine);
	if (r == 0)
		r = read_ended(settings, period_begin(settings, clock_real_ms()), &ended);
	if (r == 0)
		r = timeline_show(settings, &ended, &machine);
	machine_release(&machine);
	ended_jobs_release(&ended);
	return r;
}

#include "diag.h"
#include "foretell.h"
#include "generous_limit.h"
#include "parse.h"

enum {
	WORTH_MS = 600000
}; /* a limit that is less above the usual time is not mentioned */

void generous_limit_note(int dirfd, const struct ticket *ticket)
{
	struct usual_kind kind = foretell_kind(ticket);
	int64_t limit_ms = ticket->request.limit_ms, run_ms;
	char usually[DURATION_SIZE], limit[DURATION_SIZE];
	struct usual usual = { .runs = 0 };

	if (!limit_ms || foretell_usual(dirfd, &kind, 1, &usual) < 0)
		return;
	run_ms = usual_run_ms(&usual, 90, 0);
	if (!run_ms || limit_ms / 2 < run_ms || limit_ms - run_ms < WORTH_MS)
		return;
	format_duration(run_ms, usually);
	format_duration(limit_ms, limit);
	note("such jobs usually need %s (%u runs), and the limit is %s; with a lower one this "
	     "job may start sooner",
		usually, usual.runs, limit);
}

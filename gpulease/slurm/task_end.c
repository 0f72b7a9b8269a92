#include <sys/wait.h>

#include "signals.h"
#include "task_end.h"

int task_end_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
					: WEXITSTATUS(wait_status);
}

void task_end_describe(int wait_status, struct text *out)
{
	if (WIFSIGNALED(wait_status))
		text_addf(out, "ended by SIG%s", signal_name(WTERMSIG(wait_status)).text);
	else
		text_addf(out, "exit status %d", WEXITSTATUS(wait_status));
}

void task_end_list(const bool *is_one, unsigned count, struct text *out)
{
	unsigned total = 0;
	const char *comma = "";

	for (unsigned i = 0; i < count; i++)
		total += is_one[i];
	text_add(out, total == 1 ? "task " : "tasks ");
	for (unsigned first = 0; first < count; first++) {
		unsigned last = first;

		if (!is_one[first])
			continue;
		while (last + 1 < count && is_one[last + 1])
			last++;
		text_addf(out, "%s%u", comma, first);
		if (last > first)
			text_addf(out, "-%u", last);
		comma = ",";
		first = last;
	}
}

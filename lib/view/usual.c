#include <ctype.h>
#include <stdlib.h>

#include "clock.h"
#include "usual.h"

enum { BLUR_MS = 5000 }; /* by so much a length may be uncertain, however short it is */

/* --- which jobs are alike ---------------------------------------------------------- */

/* The mark at the end of a command that had no room in its record. */
static const char cut_mark[] = "…";

struct usual_kind usual_kind_of(
	uint32_t uid, const char *name, uint64_t name_hash, const char *command)
{
	struct usual_kind kind = { .uid = uid };
	size_t used = 0;

	if (*name) {
		kind.name_key = job_name_key(name, name_hash);
		return kind;
	}
	for (; *command && used < sizeof(kind.text) - 1; command++) {
		if (strcmp(command, cut_mark) == 0)
			break;
		if (!isdigit((unsigned char)*command))
			kind.text[used++] = *command;
	}
	kind.is_cut = *command != '\0';
	return kind;
}

bool usual_kind_is_same(const struct usual_kind *a, const struct usual_kind *b)
{
	size_t size_a = strlen(a->text), size_b = strlen(b->text);

	if (a->uid != b->uid || a->name_key != b->name_key)
		return false;
	if (a->is_cut && size_a < size_b)
		return memcmp(a->text, b->text, size_a) == 0;
	if (b->is_cut && size_b < size_a)
		return memcmp(a->text, b->text, size_b) == 0;
	return size_a == size_b && memcmp(a->text, b->text, size_a) == 0;
}

/* --- what is noted ----------------------------------------------------------------- */

/* Returns the length of the run, 0 if it does not count. */
static int64_t run_ms(const struct history_end *end)
{
	enum end_state state = history_state(end);
	int64_t ran_ms = end->gone_ms - end->since_ms;
	int64_t blur_ms = end->gone_ms - end->alive_ms;

	if (end->since_ms <= 0 || ran_ms <= 0 || blur_ms > max_i64(ran_ms / 10, BLUR_MS))
		return 0;
	return state == END_FINISHED || state == END_TIMED_OUT || state == END_UNKNOWN
		       ? ran_ms
		       : 0;
}

/* Returns the most memory on any GPU, 0 if it was not sampled over the whole run. */
static int64_t peak_mib(const struct history_end *end)
{
	const char *at = end->spans_run ? end->peaks : "";
	int64_t most = 0;

	while (*at) {
		char *rest;
		int64_t mib = strtoll(at, &rest, 10);

		most = mib > most ? mib : most;
		at = *rest ? rest + 1 : rest;
	}
	return most;
}

static void insert_sorted(int64_t *all, unsigned count, int64_t value)
{
	while (count && all[count - 1] > value) {
		all[count] = all[count - 1];
		count--;
	}
	all[count] = value;
}

void usual_note(
	struct usual *usual, const struct usual_kind *kind, const struct history_end *end)
{
	int64_t ran_ms =
		usual->runs < USUAL_RUNS && end->uid == kind->uid ? run_ms(end) : 0;
	struct usual_kind its;
	int64_t peak;

	if (!ran_ms)
		return;
	its = usual_kind_of(end->uid, end->name, end->name_hash, end->command);
	if (!usual_kind_is_same(kind, &its))
		return;
	insert_sorted(usual->ran_ms, usual->runs++, ran_ms);
	peak = peak_mib(end);
	if (peak)
		insert_sorted(usual->peak_mib, usual->peaks++, peak);
}

/* --- what is said ------------------------------------------------------------------ */

/* Returns the index of the quantile among @count values, ascending. */
static unsigned quantile(unsigned percent, unsigned count)
{
	return (percent * count + 99) / 100 - 1;
}

int64_t usual_run_ms(const struct usual *usual, unsigned percent, int64_t past_ms)
{
	unsigned first = 0;

	while (first < usual->runs && usual->ran_ms[first] <= past_ms)
		first++;
	if (usual->runs < USUAL_LEAST || first == usual->runs)
		return 0;
	return usual->ran_ms[first + quantile(percent, usual->runs - first)];
}

int64_t usual_peak_mib(const struct usual *usual, unsigned percent)
{
	return usual->peaks < USUAL_LEAST
		       ? 0
		       : usual->peak_mib[quantile(percent, usual->peaks)];
}

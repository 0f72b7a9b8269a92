#include <errno.h>
#include <fcntl.h>

#include "fdio.h"
#include "lease_use.h"
#include "statedir.h"

#define AT(field) offsetof(struct lease_use, field)
static const struct record_field fields[] = {
	{ "seen", RECORD_I64, AT(seen_ms), 0 },
	{ "unused", RECORD_I64, AT(unused_ms), 0 },
	{ "now", RECORD_I64, AT(unused_now_ms), 0 },
	{ "samples", RECORD_U32, AT(samples), 0 },
	{ "busy", RECORD_U32, AT(busy), 0 },
	{ "top", RECORD_U32, AT(busy_peak), 0 },
	{ "warned", RECORD_I64, AT(warned_ms), 0 },
	{ "warnings", RECORD_U32, AT(warnings), 0 },
	{ "since", RECORD_TEXT, AT(unused_since), USE_SINCE_SIZE },
	{ "peaks", RECORD_TEXT, AT(peaks), USE_PEAKS_SIZE },
};
#undef AT

static const struct record_schema schema = RECORD_SCHEMA("use/1", fields);

/* --- lists with a number for each GPU ----------------------------------------------------- */

enum {
	NUMBER_MAX = 12, /* digits and the comma */
	IS_USED = -1,
	IS_NOT_KNOWN = -2, /* of a GPU, in the place of its number */
};

/* Reads the next number of a list and moves *@list on; or returns IS_USED or IS_NOT_KNOWN. */
static int64_t list_take(const char **list)
{
	long long number = IS_NOT_KNOWN;

	if (sscanf(*list, "%10lld", &number) != 1 || number < 0)
		number = **list == '-' ? IS_USED : IS_NOT_KNOWN;
	*list += strcspn(*list, ",");
	*list += **list == ',';
	return number;
}

/* Appends a number, "-" for IS_USED, "?" for IS_NOT_KNOWN; nothing if there is no room for it. */
static void list_add(struct text *list, bool is_first, int64_t number)
{
	if (list->used + NUMBER_MAX >= list->size)
		return;
	text_add(list, is_first ? "" : ",");
	if (number < 0)
		text_add(list, number == IS_USED ? "-" : "?");
	else
		text_addf(list, "%lld", (long long)number);
}

/* --- samples -------------------------------------------------------------------------------- */

/* Adds the utilization of all GPUs of the job, if it is known. */
static void add_busy(struct lease_use *use, const struct use_sample *sample)
{
	unsigned sum = 0, peak = 0;

	for (unsigned i = 0; i < sample->count; i++) {
		if (i >= USE_GPUS_MAX || sample->percents[i] < 0)
			return;
		sum += (unsigned)sample->percents[i];
		if ((unsigned)sample->percents[i] > peak)
			peak = (unsigned)sample->percents[i];
	}
	if (!sample->count)
		return;
	use->samples++;
	use->busy += (sum + sample->count / 2) / sample->count;
	if (peak > use->busy_peak)
		use->busy_peak = peak;
}

/* Raises the peaks to what the sample shows. */
static void add_memory(struct lease_use *use, const struct use_sample *sample)
{
	char before[USE_PEAKS_SIZE];
	const char *list = before;
	struct text peaks;

	text_copy(before, sizeof(before), use->peaks);
	peaks = TEXT_ON(use->peaks);
	for (unsigned i = 0; i < sample->count && i < USE_GPUS_MAX; i++)
		list_add(&peaks, i == 0,
			max_i64(max_i64(0, list_take(&list)), (int64_t)sample->mibs[i]));
	if (strspn(use->peaks, "0,") == strlen(use->peaks)) /* none was seen */
		use->peaks[0] = '\0';
}

/*
 * Judges GPU @at.  Returns since when it is unused, in seconds after the lease; or IS_USED or
 * IS_NOT_KNOWN.
 */
static int64_t judge(const struct use_sample *sample, unsigned at, int64_t since_s)
{
	int percent = at < USE_GPUS_MAX ? sample->percents[at] : USE_NOT_KNOWN;

	if (percent < 0)
		return IS_NOT_KNOWN;
	if ((unsigned)percent >= sample->below_percent)
		return IS_USED;
	return since_s >= 0 ? since_s : (sample->at_ms - sample->since_ms) / 1000;
}

void lease_use_add(struct lease_use *use, const struct use_sample *sample)
{
	int64_t passed_ms = sample->at_ms - use->seen_ms, last_s = 0;
	char before[USE_SINCE_SIZE];
	const char *list = before;
	struct text after;
	unsigned unused = 0, still_unused = 0;

	if (passed_ms <= 0 || sample->at_ms < sample->since_ms)
		return;
	text_copy(before, sizeof(before), use->unused_since);
	if (passed_ms >= sample->gap_ms) {
		before[0] = '\0';
		use->warned_ms = use->warnings = 0;
	}
	after = TEXT_ON(use->unused_since);
	for (unsigned i = 0; i < sample->count; i++) {
		int64_t since_s = list_take(&list);
		int64_t now_s = judge(sample, i, since_s);

		unused += now_s >= 0;
		still_unused += now_s >= 0 && since_s >= 0;
		last_s = max_i64(last_s, now_s);
		list_add(&after, i == 0, now_s);
	}
	if (sample->count)
		use->unused_ms += passed_ms * still_unused / sample->count;
	use->seen_ms = sample->at_ms;
	use->unused_now_ms = 0;
	if (sample->count && unused == sample->count)
		use->unused_now_ms =
			max_i64(0, sample->at_ms - sample->since_ms - last_s * 1000);
	else
		use->warned_ms = use->warnings = 0;
	add_busy(use, sample);
	add_memory(use, sample);
}

int64_t lease_use_unused_ms(const struct lease_use *use, unsigned at, int64_t since_ms)
{
	const char *list = use->unused_since;
	int64_t since_s = IS_NOT_KNOWN;

	for (unsigned i = 0; i <= at; i++)
		since_s = list_take(&list);
	if (since_s < 0)
		return since_s == IS_USED ? 0 : USE_NOT_KNOWN;
	return max_i64(0, use->seen_ms - since_ms - since_s * 1000);
}

int lease_use_mean(const struct lease_use *use)
{
	return use->samples ? (int)(use->busy / use->samples) : USE_NOT_KNOWN;
}

uint64_t lease_use_peak_mib(const struct lease_use *use)
{
	const char *list = use->peaks;
	int64_t most = 0;

	while (*list)
		most = max_i64(most, list_take(&list));
	return (uint64_t)most;
}

/* --- the file -------------------------------------------------------------------------------- */

static void file_name(char out[40], const char *token)
{
	(void)snprintf(out, 40, "%s.use", token);
}

void lease_use_encode(const struct lease_use *use, char raw[RECORD_SIZE])
{
	/* the longest values of all fields fit */
	(void)!record_encode(&schema, use, raw);
}

void lease_use_decode(const char *raw, struct lease_use *ret)
{
	if (record_decode(&schema, raw, ret) < 0)
		memset(ret, 0, sizeof(*ret));
}

void lease_use_read(const struct statedir *dir, const char *token, struct lease_use *ret)
{
	char name[40], *raw = NULL;
	size_t size = 0;

	memset(ret, 0, sizeof(*ret));
	file_name(name, token);
	if (fdio_read_all(dir->live_fd, name, RECORD_SIZE, RECORD_SIZE, &raw, &size) == 0)
		lease_use_decode(raw, ret);
	free(raw);
}

int lease_use_write(
	const struct statedir *dir, const char *token, const struct lease_use *use)
{
	char name[40], raw[RECORD_SIZE];
	autofd int fd = -1;

	file_name(name, token);
	fd = fdio_open_shared(dir->live_fd, name, O_WRONLY);
	if (fd < 0)
		return fd;
	lease_use_encode(use, raw);
	return fdio_pwrite(fd, raw, sizeof(raw), 0);
}

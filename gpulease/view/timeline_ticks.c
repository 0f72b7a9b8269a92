#include <stdio.h>
#include <time.h>

#include "timeline_ticks.h"

/* A distance between two ticks, in one of three units. */
struct step {
	int minutes, days, months;
};

static const struct step steps[] = {
	{ 1, 0, 0 },
	{ 2, 0, 0 },
	{ 5, 0, 0 },
	{ 10, 0, 0 },
	{ 15, 0, 0 },
	{ 30, 0, 0 },
	{ 60, 0, 0 },
	{ 120, 0, 0 },
	{ 180, 0, 0 },
	{ 360, 0, 0 },
	{ 720, 0, 0 },
	{ 0, 1, 0 },
	{ 0, 2, 0 },
	{ 0, 7, 0 },
	{ 0, 14, 0 },
	{ 0, 0, 1 },
	{ 0, 0, 2 },
	{ 0, 0, 3 },
	{ 0, 0, 6 },
	{ 0, 0, 12 },
	{ 0, 0, 60 },
	{ 0, 0, 120 },
};

enum { MINUTE_MS = 60000, STEPS_TRIED = 200 };

static int64_t step_ms(const struct step *step)
{
	return (int64_t)(step->minutes + 1440 * step->days + 30 * 1440 * step->months) *
	       MINUTE_MS;
}

static struct tm local_time(int64_t at_ms)
{
	time_t at = (time_t)(at_ms / 1000);
	struct tm local;

	if (!localtime_r(&at, &local))
		local = (struct tm){ .tm_year = 70, .tm_mday = 1 };
	return local;
}

/* Sets @local to the last tick at or before @at_ms: counted from midnight, or from a first day. */
static void begin_at(const struct step *step, int64_t at_ms, struct tm *local)
{
	*local = local_time(at_ms);
	local->tm_sec = 0;
	local->tm_isdst = -1;
	if (step->minutes) {
		int minutes = local->tm_hour * 60 + local->tm_min;

		minutes -= minutes % step->minutes;
		local->tm_hour = minutes / 60;
		local->tm_min = minutes % 60;
		return;
	}
	local->tm_hour = local->tm_min = 0;
	if (step->months) {
		local->tm_mday = 1;
		if (step->months < 12)
			local->tm_mon -= local->tm_mon % step->months;
		else
			local->tm_mon = 0;
	}
}

/* Goes one step on.  mktime() has put the fields into their ranges and set tm_isdst. */
static void go_on(const struct step *step, struct tm *local)
{
	local->tm_min += step->minutes;
	local->tm_mday += step->days;
	local->tm_mon += step->months;
	local->tm_isdst = -1;
}

/* Returns the name of the month, of which three letters count. */
static const char *month_of(const struct tm *local)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	return months +
	       3 * (local->tm_mon >= 0 && local->tm_mon < 12 ? local->tm_mon : 0);
}

static void set_label(struct timeline_tick *tick, const struct step *step)
{
	struct tm local = local_time(tick->at_ms);
	const char *month = month_of(&local);

	if (step->months)
		(void)snprintf(tick->label, sizeof(tick->label), "%.3s %d", month,
			local.tm_year + 1900);
	else if (step->days || (!local.tm_hour && !local.tm_min))
		(void)snprintf(tick->label, sizeof(tick->label), "%.3s %d", month,
			local.tm_mday);
	else
		(void)snprintf(tick->label, sizeof(tick->label), "%02d:%02d",
			local.tm_hour, local.tm_min);
}

size_t timeline_ticks(int64_t from_ms, int64_t until_ms, size_t most,
	struct timeline_tick ticks[TICKS_MAX])
{
	const struct step *step = steps;
	size_t count = 0;
	struct tm local;

	if (most > TICKS_MAX)
		most = TICKS_MAX;
	while (step < steps + ARRAY_SIZE(steps) - 1 &&
		(until_ms - from_ms) / step_ms(step) >= (int64_t)most)
		step++;
	begin_at(step, from_ms, &local);
	for (int i = 0; i < STEPS_TRIED && count < most; i++) {
		struct tm normal = local;
		int64_t at_ms = (int64_t)mktime(&normal) * 1000;

		if (at_ms >= until_ms)
			break;
		if (at_ms >= from_ms && (!count || at_ms > ticks[count - 1].at_ms)) {
			ticks[count].at_ms = at_ms;
			set_label(&ticks[count++], step);
		}
		go_on(step, &local);
	}
	return count;
}

void timeline_format_moment(int64_t at_ms, char out[TIMELINE_MOMENT_SIZE])
{
	struct tm local = local_time(at_ms);

	(void)snprintf(out, TIMELINE_MOMENT_SIZE, "%.3s %d %02d:%02d", month_of(&local),
		local.tm_mday, local.tm_hour, local.tm_min);
}

void timeline_format_date(int64_t at_ms, char out[TIMELINE_MOMENT_SIZE])
{
	struct tm local = local_time(at_ms);

	(void)snprintf(out, TIMELINE_MOMENT_SIZE, "%04d-%02d-%02d %02d:%02d",
		local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
		local.tm_min);
}

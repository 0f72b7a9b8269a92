#include <stdio.h>
#include <string.h>

#include "hook.h"
#include "notifier.h"
#include "parse.h"

/* A line of the process that looks after the job. */
struct hook_line {
	char event;
	uint64_t job;
	int64_t at_ms, number;
	const char *text;
};

/* --- words ------------------------------------------------------------------------- */

/* Begins the sentence: "job 12 'train'".  Returns the text to go on with. */
static struct text say_job(const struct hook_job *job, struct hook_event *event)
{
	struct text text = TEXT_ON(event->text);

	text_addf(&text, "job %llu", (unsigned long long)job->id);
	if (job->name[0]) {
		text_add(&text, " '");
		text_add_visible(&text, job->name);
		text_add(&text, "'");
	}
	return text;
}

static void say_duration(struct text *text, const char *before, int64_t ms)
{
	char words[DURATION_SIZE];

	format_duration(ms, words);
	text_addf(text, "%s%s", before, words);
}

/* Says how the job has ended: @how and @by as in the history. */
static void say_end(const struct hook_job *job, const char *how, const char *by,
	struct hook_event *event)
{
	static const struct {
		const char *how, *words;
	} ends[] = {
		{ HISTORY_CANCEL, " was cancelled" },
		{ HISTORY_LIMIT, " was ended at its time limit" },
		{ HISTORY_UNUSED, " was ended because it did not use its GPUs" },
		{ HISTORY_OOM, " ran out of GPU memory" },
	};
	struct text text = say_job(job, event);
	bool is_plain = true;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (strcmp(how, ends[i].how) != 0)
			continue;
		text_add(&text, ends[i].words);
		is_plain = false;
	}
	if (is_plain)
		text_add(&text, " ended");
	if (by[0]) {
		text_add(&text, " by ");
		text_add_visible(&text, by);
	}
	if (event->status[0] && (is_plain || strcmp(how, HISTORY_OOM) == 0))
		text_addf(&text, ": exit status %s", event->status);
	if (job->started_ms)
		say_duration(&text, ", after ", event->ran_ms);
	else
		text_add(&text, job->has_started ? ", while it waited to start again"
						 : ", before it started");
}

/* --- events ------------------------------------------------------------------------ */

/* Begins an event at @at_ms. */
static void event_begin(
	struct hook_job *job, const char *name, int64_t at_ms, struct hook_event *ret)
{
	if (job->started_ms)
		job->ran_ms = max_i64(0, at_ms - job->started_ms);
	*ret = (struct hook_event){ .name = name,
		.state = job->started_ms ? "running" : "waiting",
		.ran_ms = job->ran_ms };
}

static bool take_queued(
	struct hook_job *job, const struct hook_line *line, struct hook_event *ret)
{
	(void)ret;
	job->waits_ms = line->at_ms;
	return false;
}

static bool take_start(
	struct hook_job *job, const struct hook_line *line, struct hook_event *ret)
{
	struct text text;

	job->waits_ms = 0;
	job->started_ms = line->at_ms;
	job->has_started = true;
	text_copy(job->gpus, sizeof(job->gpus), line->text);
	event_begin(job, "started", line->at_ms, ret);
	text = say_job(job, ret);
	if (job->gpus[0])
		text_addf(&text, " has started on GPU %s", job->gpus);
	else
		text_add(&text, " has started");
	return true;
}

/* The attempt has ended, and the job waits for the next one. */
static bool take_return(
	struct hook_job *job, const struct hook_line *line, struct hook_event *ret)
{
	struct text text;

	event_begin(job, "preempted", line->at_ms, ret);
	ret->state = "waiting";
	job->waits_ms = line->at_ms;
	job->started_ms = 0;
	if (line->event != NOTIFIER_PREEMPTED)
		return false;
	text = say_job(job, ret);
	text_add(&text, " was sent back into the queue");
	if (line->number > 0)
		text_addf(&text, ", for job %llu", (unsigned long long)line->number);
	else
		text_add(&text, " by a window");
	say_duration(&text, ", after ", ret->ran_ms);
	return true;
}

static bool take_idle(
	struct hook_job *job, const struct hook_line *line, struct hook_event *ret)
{
	struct text text = TEXT_ON(ret->text);

	event_begin(job, "idle", line->at_ms, ret);
	text_add_visible(&text, line->text);
	return true;
}

static bool take_soon(
	struct hook_job *job, const struct hook_line *line, struct hook_event *ret)
{
	struct text text;

	event_begin(job, "limit-soon", line->at_ms, ret);
	text = say_job(job, ret);
	say_duration(&text, " reaches its time limit in ",
		max_i64(1, (line->number + 500) / 1000) * 1000);
	return true;
}

static bool take_end(
	struct hook_job *job, const struct hook_line *line, struct hook_event *ret)
{
	struct history_end end = { .how = "" };
	size_t size = strcspn(line->text, " ");
	const char *by = line->text[size] ? line->text + size + 1 : "";

	event_begin(job, "ended", line->at_ms, ret);
	(void)snprintf(end.how, sizeof(end.how), "%.*s", (int)size, line->text);
	if (line->number >= 0)
		(void)snprintf(ret->status, sizeof(ret->status), "%d",
			(int)(line->number & 0xff));
	text_copy(end.status, sizeof(end.status), ret->status);
	ret->state = end_state_names[history_state(&end)];
	job->has_ended = true;
	say_end(job, end.how, by, ret);
	return true;
}

bool hook_take(struct hook_job *job, const char *line, struct hook_event *ret)
{
	static const struct {
		char event;
		bool (*take)(struct hook_job *job, const struct hook_line *line,
			struct hook_event *ret);
	} takers[] = {
		{ NOTIFIER_QUEUED, take_queued },
		{ NOTIFIER_STARTED, take_start },
		{ NOTIFIER_PREEMPTED, take_return },
		{ NOTIFIER_REQUEUED, take_return },
		{ NOTIFIER_IDLE, take_idle },
		{ NOTIFIER_SOON, take_soon },
		{ NOTIFIER_ENDED, take_end },
	};
	struct hook_line parts = { .event = line[0] };
	unsigned long long id;
	long long at_ms, number;
	int used = 0;

	if (sscanf(line + (line[0] != '\0'), " %llu %lld %lld%n", &id, &at_ms, &number,
		    &used) != 3 ||
		line[1 + used] != ' ')
		return false;
	parts.job = id;
	parts.at_ms = at_ms;
	parts.number = number;
	parts.text = line + used + 2;
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++) {
		if (takers[i].event != parts.event)
			continue;
		job->id = parts.job;
		return takers[i].take(job, &parts, ret);
	}
	return false;
}

/* --- the clock --------------------------------------------------------------------- */

int64_t hook_wake_ms(const struct hook_job *job)
{
	return job->waits_ms && !job->has_waited_long ? job->waits_ms + job->long_ms
						      : INT64_MAX;
}

bool hook_tick(struct hook_job *job, int64_t now_ms, struct hook_event *ret)
{
	struct text text;

	if (now_ms < hook_wake_ms(job))
		return false;
	job->has_waited_long = true;
	event_begin(job, "waits-long", now_ms, ret);
	text = say_job(job, ret);
	say_duration(&text, " has waited for ", now_ms - job->waits_ms);
	return true;
}

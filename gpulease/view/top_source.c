#include <errno.h>

#include "json_fields.h"
#include "top_source.h"

enum {
	ANSWER_MS = 15 * 1000,     /* how long gpulease may take on this machine */
	ENDED_MOST_MS = 60 * 1000, /* between two questions for ended jobs */
	CLUSTER_LEAST_MS =
		10 * 1000, /* between two looks: each costs the controller time */
	DAY_MS = 24 * 60 * 60 * 1000,
	SCHEMA = 1, /* of the members that machine_read.h knows */
};

/*
 * How many of the latest ended jobs are asked for, and how long after the last question a change of
 * the jobs is worth another one.  The GPU hours of today need all ends of a day.
 */
static const struct {
	unsigned count;
	const char *text;
	int64_t least_ms;
} ends[] = {
	{ 200, "200", 10 * 1000 },
	{ TOP_ENDED_MOST, "1000", 45 * 1000 },
};

static const struct {
	const char *format, *words[3];
} questions[] = {
	[TOP_ASKS_STATUS] = { "gpulease-status/", { "--json", "--status" } },
	[TOP_ASKS_ENDED] = { "gpulease-history/", { "--json", "--history", "--last" } },
	[TOP_ASKS_LOG] = { "gpulease-job/", { "--json", "--status" } },
};

/* --- questions --------------------------------------------------------------------------- */

static void say_trouble(struct top_source *source, const char *text)
{
	text_copy(source->host->trouble, sizeof(source->host->trouble), text);
}

static void add_word(struct top_source *source, const char *word)
{
	if (source->remote)
		host_words_add(&source->words.there, word);
	else
		gpulease_words_add(&source->words.here, word);
}

/* Starts the program that answers. */
static void ask(struct top_source *source, enum top_question question, int64_t now_ms)
{
	char job[24];
	int r;

	if (source->remote)
		host_words_begin(&source->words.there, source->remote);
	else
		source->words.here.count = source->own_count;
	for (size_t i = 0; i < ARRAY_SIZE(questions[question].words); i++)
		if (questions[question].words[i])
			add_word(source, questions[question].words[i]);
	if (question == TOP_ASKS_LOG) {
		source->log_asked =
			source->log_job; /* the next key may choose another one */
		(void)snprintf(job, sizeof(job), "%lld", (long long)source->log_asked);
		add_word(source, job);
	}
	if (question == TOP_ASKS_ENDED)
		add_word(source, ends[source->has_many_ends].text);
	r = answer_begin(&source->answer,
		source->remote ? source->words.there.list : source->words.here.list);
	if (r < 0) {
		say_trouble(source, strerror(-r));
		return;
	}
	source->question = question;
	source->begun_ms = now_ms;
}

/* Returns a hash of the jobs that run: if it changes, a job has started or ended. */
static uint64_t hash_running(const struct machine *machine)
{
	uint64_t hash = TEXT_HASH_BEGIN;

	for (size_t i = 0; i < machine->lease_count; i++)
		hash = text_hash(hash, (const char *)&machine->leases[i].job,
			sizeof(machine->leases[i].job));
	return hash;
}

static bool is_ended_due(const struct top_source *source, int64_t now_ms)
{
	if (source->ended_ms < 0 || now_ms - source->ended_ms >= ENDED_MOST_MS)
		return true;
	return now_ms >= source->next_ended_ms &&
	       hash_running(&source->host->machine) != source->running;
}

static bool is_log_due(const struct top_source *source)
{
	return source->log_job >= 0 && source->log_job != source->log_known;
}

/* How long after one look at the machine the next one is due. */
static int64_t interval_ms(const struct top_source *source)
{
	int64_t interval_ms = source->settings->look.interval_ms;

	return source->host->machine.engine[0] ? max_i64(interval_ms, CLUSTER_LEAST_MS)
					       : interval_ms;
}

/* Asks the next question that is due. */
static void ask_next(struct top_source *source, int64_t now_ms)
{
	bool is_well = source->has_machine && !source->host->trouble[0];

	if (is_well && is_log_due(source))
		ask(source, TOP_ASKS_LOG, now_ms);
	else if (is_well && is_ended_due(source, now_ms)) {
		source->ended_ms = now_ms;
		source->next_ended_ms = now_ms + ends[source->has_many_ends].least_ms;
		source->running = hash_running(&source->host->machine);
		ask(source, TOP_ASKS_ENDED, now_ms);
	} else if (now_ms >= source->next_ms) {
		source->next_ms = now_ms + interval_ms(source);
		ask(source, TOP_ASKS_STATUS, now_ms);
	}
}

/* --- answers ----------------------------------------------------------------------------- */

/* Each reads an answer.  Returns 0, or a negative errno; what is shown is then as it was. */

static int take_status(struct top_source *source, const struct json_value *json)
{
	struct machine shown = source->host->machine;
	int r = machine_read(json->at, json->size, &source->machine);

	if (r < 0)
		return r;
	source->host->machine = source->machine;
	source->machine = shown;
	source->has_machine = true;
	top_host_sample(source->host);
	source->next_ms =
		max_i64(source->next_ms, source->begun_ms + interval_ms(source));
	return 0;
}

/* Whether more jobs have ended within a day than the usual question asks for. */
static bool has_many(const struct ended_jobs *ended)
{
	size_t usual = ends[0].count;

	return ended->count >= usual &&
	       ended->taken_unix_ms - ended->list[ended->count - usual].gone_unix_ms <
		       DAY_MS;
}

static int take_ended(struct top_source *source, const struct json_value *json)
{
	struct ended_jobs shown = source->host->ended;
	int r = ended_jobs_read(json->at, json->size, &source->ended);

	if (r < 0)
		return r;
	source->host->ended = source->ended;
	source->ended = shown;
	if (has_many(&source->host->ended) && !source->has_many_ends)
		source->ended_ms = -1; /* ask at once for all of them */
	source->has_many_ends = has_many(&source->host->ended);
	return 0;
}

static int take_log_of(const struct json_value *job, void *source)
{
	static const struct json_field fields[] = {
		{ "log", FIELD_TEXT, offsetof(struct top_source, log),
			sizeof(((struct top_source *)0)->log), NULL },
		{ NULL, FIELD_TEXT, 0, 0, NULL },
	};

	return json_fields_read(fields, job, source);
}

static int take_log(struct top_source *source, const struct json_value *json)
{
	static const struct json_field fields[] = {
		{ "jobs", FIELD_EACH, 0, 0, take_log_of },
		{ NULL, FIELD_TEXT, 0, 0, NULL },
	};

	return json_fields_read(fields, json, source);
}

static int (*const takers[])(struct top_source *, const struct json_value *) = {
	[TOP_ASKS_STATUS] = take_status,
	[TOP_ASKS_ENDED] = take_ended,
	[TOP_ASKS_LOG] = take_log,
};

/* Says why there is no answer. */
static void say_fault(struct top_source *source)
{
	const struct answer *answer = &source->answer;
	char text[sizeof(source->host->trouble)];

	if (answer->fault == -ETIMEDOUT && !source->remote)
		(void)snprintf(text, sizeof(text), "gpulease: no answer within %ds",
			ANSWER_MS / 1000);
	else
		host_trouble(answer, text, sizeof(text));
	say_trouble(source, text);
}

/* Reads a complete answer.  Only for the state of the machine is a fault of any interest. */
static void finish(struct top_source *source)
{
	enum top_question question = source->question;
	struct json_value json;
	uint64_t schema = 0;
	size_t at = 0;
	int r = -EINVAL;

	source->question = TOP_ASKS_NOTHING;
	if (question == TOP_ASKS_LOG) {
		source->log_known = source->log_asked;
		source->log[0] = '\0';
	}
	if (!source->answer.fault &&
		host_find(source->answer.text, source->answer.size,
			questions[question].format, &at, &json, &schema) &&
		schema == SCHEMA)
		r = takers[question](source, &json);
	/* an ->ended_ms of -1: more ends are asked for at once */
	if (question == TOP_ASKS_ENDED)
		source->has_ended = source->ended_ms >= 0;
	if (question != TOP_ASKS_STATUS)
		return;
	if (r == 0)
		say_trouble(source, "");
	else if (schema > SCHEMA)
		say_trouble(source, "its gpulease is of a later version");
	else
		say_fault(source);
}

/* --- steps ------------------------------------------------------------------------------- */

static int64_t deadline_ms(const struct top_source *source)
{
	return source->begun_ms + (source->remote ? HOST_ANSWER_MS : ANSWER_MS);
}

bool top_source_step(struct top_source *source, int64_t now_ms)
{
	struct answer *answer = &source->answer;
	bool is_new = false;

	if (source->question != TOP_ASKS_NOTHING) {
		answer_take(answer);
		is_new = answer->fault || answer_is_complete(answer);
		if (!is_new && now_ms >= deadline_ms(source)) {
			answer_end(answer);
			answer->fault = -ETIMEDOUT;
			is_new = true;
		}
		if (is_new)
			finish(source);
	}
	if (source->question == TOP_ASKS_NOTHING)
		ask_next(source, now_ms);
	return is_new;
}

int64_t top_source_wake_ms(const struct top_source *source, int64_t now_ms)
{
	int reap_ms = answer_poll_ms(&source->answer);

	if (source->question == TOP_ASKS_NOTHING)
		return source->next_ms;
	return reap_ms >= 0 ? now_ms + reap_ms : deadline_ms(source);
}

void top_source_restart(struct top_source *source)
{
	answer_end(&source->answer);
	source->question = TOP_ASKS_NOTHING;
	source->next_ms = 0;
	source->ended_ms = -1;
}

int top_source_begin(struct top_source *source, const struct settings *settings,
	struct top_host *host, const char *remote)
{
	int r = 0;

	*source = (struct top_source){
		.settings = settings,
		.host = host,
		.remote = remote,
		.answer = ANSWER_NONE,
		.ended_ms = -1,
		.machine = MACHINE_NONE,
		.ended = ENDED_JOBS_NONE,
		.log_job = -1,
		.log_known = -1,
	};
	*host = (struct top_host){ .machine = MACHINE_NONE, .ended = ENDED_JOBS_NONE };
	if (remote)
		text_copy(host->name, sizeof(host->name), remote);
	else
		r = gpulease_words_begin(&source->words.here, settings);
	source->own_count = r == 0 && !remote ? source->words.here.count : 0;
	return r;
}

void top_source_release(struct top_source *source)
{
	answer_release(&source->answer);
	machine_release(&source->machine);
	ended_jobs_release(&source->ended);
	machine_release(&source->host->machine);
	ended_jobs_release(&source->host->ended);
}

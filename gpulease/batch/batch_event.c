#include <errno.h>

#include "batch_event.h"
#include "hex.h"
#include "json_read.h"
#include "json_text.h"

static const char event_words[BATCH_KINDS][8] = {
	[BATCH_SEEN] = "seen",
	[BATCH_LISTED] = "list",
	[BATCH_STARTED] = "started",
	[BATCH_ATTEMPT] = "attempt",
	[BATCH_OVER] = "ended",
	[BATCH_QUEUED] = "queued",
	[BATCH_WAITING] = "waiting",
	[BATCH_MEMORY] = "memory",
	[BATCH_EXCESS] = "excess",
	[BATCH_NOTE] = "note",
	[BATCH_SUMMARY] = "summary",
};

static const char cause_words[BATCH_CAUSES][10] = {
	[BATCH_ITSELF] = "itself",
	[BATCH_BY_OOM] = "oom",
	[BATCH_BY_LIMIT] = "limit",
	[BATCH_BY_UNUSED] = "unused",
	[BATCH_BY_CANCEL] = "cancelled",
	[BATCH_BY_PREEMPT] = "preempted",
	[BATCH_BY_REQUEUE] = "requeued",
	[BATCH_NOT_RUN] = "not-run",
	[BATCH_IS_LOST] = "lost",
};

bool batch_event_is_kept(enum batch_event_kind kind)
{
	return kind >= BATCH_SEEN && kind <= BATCH_OVER;
}

const char *batch_event_word(enum batch_event_kind kind)
{
	return kind < BATCH_KINDS ? event_words[kind] : NULL;
}

const char *batch_cause_word(enum batch_cause cause)
{
	return cause < BATCH_CAUSES ? cause_words[cause] : NULL;
}

/* --- members ----------------------------------------------------------------------- */

enum kind {
	OF_U64,
	OF_I64,
	OF_U32,
	OF_I32,
	OF_PERCENT, /* int32_t; -1: unknown */
	OF_HEX,
	OF_TEXT,
	OF_TOKEN, /* a text that has to be a token, because it becomes a file name */
	OF_BOOL,
	OF_CAUSE,
};

#define ON(kind) (1u << BATCH_##kind)

/* Sets of events that have a member in common. */
enum {
	ENDS = ON(ATTEMPT) | ON(OVER),
	RUNS = ON(STARTED) | ENDS,
	USES = ON(MEMORY) | ON(EXCESS),
	TICKETS = RUNS | ON(QUEUED) | ON(WAITING) | USES,
	JOBS = TICKETS | ON(SEEN) | ON(NOTE),
	TEXTS = ENDS | ON(WAITING) | ON(NOTE) | ON(SUMMARY),
	STATUSES = ENDS | ON(SUMMARY),
	SIZES = RUNS | USES,
	TIMES = ENDS | ON(SUMMARY),
	ANY = (1u << BATCH_KINDS) - 1,
};

#define MEMBER(name, kind, field, events)                                \
	{                                                                \
		name, kind, offsetof(struct batch_event, field),         \
			sizeof(((struct batch_event *)0)->field), events \
	}

/*
 * The members, in the order of the line.  One that is 0, "" or unknown is left out unless
 * is_required_member().
 */
static const struct member {
	char name[13];
	uint8_t kind;
	uint16_t offset, size, events;
} members[] = {
	MEMBER("at", OF_I64, at_ms, ANY),
	MEMBER("job", OF_U64, job, JOBS),
	MEMBER("key", OF_HEX, key, ON(SEEN)),
	MEMBER("environment", OF_HEX, environment, ON(SEEN) | ON(STARTED)),
	MEMBER("name", OF_TEXT, name, ON(SEEN) | RUNS),
	MEMBER("command", OF_TEXT, command, ON(SEEN)),
	MEMBER("ticket", OF_U64, ticket, TICKETS),
	MEMBER("slurm", OF_U64, slurm_job, TICKETS),
	MEMBER("attempt", OF_U32, attempt, SIZES),
	MEMBER("gpus", OF_TEXT, gpus, RUNS | ON(EXCESS)),
	MEMBER("pid", OF_U32, owner.pid, ON(STARTED)),
	MEMBER("uid", OF_U32, owner.uid, ON(STARTED)),
	MEMBER("inode", OF_U64, owner.inode, ON(STARTED)),
	MEMBER("start", OF_U64, owner.start, ON(STARTED)),
	MEMBER("pidns", OF_U64, owner.pidns, ON(STARTED)),
	MEMBER("token", OF_TOKEN, owner.token, ON(STARTED)),
	MEMBER("boot", OF_TEXT, boot, ON(STARTED)),
	MEMBER("declared_mib", OF_U64, declared_mib, SIZES),
	MEMBER("vram_mib", OF_U64, vram_mib, SIZES),
	MEMBER("next_mib", OF_U64, next_mib, ENDS),
	MEMBER("used_mib", OF_U64, used_mib, USES),
	MEMBER("peak_mib", OF_U64, peak_mib, ENDS | USES),
	MEMBER("spans_run", OF_BOOL, spans_run, ENDS),
	MEMBER("limit_ms", OF_I64, limit_ms, RUNS),
	MEMBER("waited_ms", OF_I64, waited_ms, RUNS),
	MEMBER("ran_ms", OF_I64, ran_ms, TIMES),
	MEMBER("delay_ms", OF_I64, delay_ms, ON(ATTEMPT)),
	MEMBER("status", OF_I32, status, STATUSES),
	MEMBER("cause", OF_CAUSE, cause, ENDS),
	MEMBER("busy_mean", OF_PERCENT, busy_mean, ENDS),
	MEMBER("busy_peak", OF_PERCENT, busy_peak, ENDS),
	MEMBER("interrupted", OF_BOOL, is_interrupted, ON(OVER)),
	MEMBER("by_line", OF_BOOL, is_by_line, ON(OVER)),
	MEMBER("all", OF_U32, counts.all, ON(SUMMARY)),
	MEMBER("waiting", OF_U32, counts.waiting, ON(SUMMARY)),
	MEMBER("running", OF_U32, counts.running, ON(SUMMARY)),
	MEMBER("finished", OF_U32, counts.finished, ON(SUMMARY)),
	MEMBER("failed", OF_U32, counts.failed, ON(SUMMARY)),
	MEMBER("cancelled", OF_U32, counts.cancelled, ON(SUMMARY)),
	MEMBER("dropped", OF_U32, counts.dropped, ON(SUMMARY)),
	MEMBER("text", OF_TEXT, text, TEXTS),
};

_Static_assert(ARRAY_SIZE(members) <= 64, "the parser has one bit per member");

static bool has_member(const struct member *member, enum batch_event_kind kind)
{
	return member->events >> kind & 1;
}

/* Whether the member is written even if it is 0. */
static bool is_required_member(const struct member *member)
{
	return member->kind == OF_CAUSE || member->events == ON(SUMMARY) ||
	       member->offset == offsetof(struct batch_event, status);
}

static bool is_text_member(const struct member *member)
{
	return member->kind == OF_TEXT || member->kind == OF_TOKEN;
}

static void member_clear(const struct member *member, char *field)
{
	if (is_text_member(member))
		field[0] = '\0';
	else
		memset(field, member->kind == OF_PERCENT ? 0xff : 0, member->size);
}

static bool is_member_empty(const struct member *member, const char *field)
{
	const unsigned char none = member->kind == OF_PERCENT ? 0xff : 0;

	if (is_text_member(member))
		return !field[0];
	for (size_t i = 0; i < member->size; i++)
		if ((unsigned char)field[i] != none)
			return false;
	return true;
}

/* --- writing ----------------------------------------------------------------------- */

/* A union instead of casts: the field is one of these. */
union number {
	uint64_t u64;
	int64_t i64;
	uint32_t u32;
	int32_t i32;
	bool bit;
	enum batch_cause cause;
};

static void member_write(const struct member *member, const char *field, struct text *out)
{
	union number is = { .u64 = 0 };

	if (!is_text_member(member))
		memcpy(&is, field, member->size);
	switch ((enum kind)member->kind) {
	case OF_U64:
		text_addf(out, "%llu", (unsigned long long)is.u64);
		break;
	case OF_I64:
		text_addf(out, "%lld", (long long)is.i64);
		break;
	case OF_U32:
		text_addf(out, "%u", is.u32);
		break;
	case OF_I32:
	case OF_PERCENT:
		text_addf(out, "%d", is.i32);
		break;
	case OF_HEX:
		text_addf(out, "\"%016llx\"", (unsigned long long)is.u64);
		break;
	case OF_TEXT:
	case OF_TOKEN:
		json_add_string(out, field, strnlen(field, member->size));
		break;
	case OF_BOOL:
		text_add(out, is.bit ? "true" : "false");
		break;
	case OF_CAUSE:
		text_addf(out, "\"%s\"", batch_cause_word(is.cause));
		break;
	}
}

void batch_event_write(const struct batch_event *event, struct text *out)
{
	text_addf(out, "{\"event\": \"%s\"", batch_event_word(event->kind));
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const struct member *member = &members[i];
		const char *field = (const char *)event + member->offset;

		if (!has_member(member, event->kind) ||
			(is_member_empty(member, field) && !is_required_member(member)))
			continue;
		text_addf(out, ", \"%s\": ", member->name);
		member_write(member, field, out);
	}
	if (event->kind == BATCH_LISTED && event->jobs_size) {
		text_add(out, ", \"jobs\": ");
		json_add_string(out, event->jobs, event->jobs_size);
	}
	text_add(out, "}\n");
}

/* --- reading ----------------------------------------------------------------------- */

static bool is_json_word(const struct json_value *value, const char *word)
{
	return value->kind == JSON_STRING && value->size && value->at[0] == word[0] &&
	       value->size == strlen(word) && memcmp(value->at, word, value->size) == 0;
}

static int member_read_hex(const struct json_value *value, uint64_t *ret)
{
	if (value->kind != JSON_STRING || value->size == 0 || value->size > 16)
		return -EINVAL;
	return hex_read(value->at, value->size, HEX_LOWER, ret);
}

static int member_read_text(
	const struct member *member, const struct json_value *value, char *field)
{
	struct text text = text_on(field, member->size);

	if (value->kind != JSON_STRING)
		return -EINVAL;
	json_unescape(value, &text);
	return member->kind == OF_TOKEN && !is_token(field) ? -EINVAL : 0;
}

/* An unknown cause comes from a later version; the status still says whether the job failed. */
static enum batch_cause member_read_cause(const struct json_value *value)
{
	for (unsigned i = 0; i < BATCH_CAUSES; i++)
		if (is_json_word(value, cause_words[i]))
			return (enum batch_cause)i;
	return BATCH_ITSELF;
}

static int member_read_number(
	const struct member *member, const struct json_value *value, union number *ret)
{
	bool is_wide = member->kind == OF_I64;
	int64_t number = 0;
	int r;

	if (member->kind == OF_U64)
		return json_read_unsigned(value, UINT64_MAX, &ret->u64);
	if (member->kind == OF_U32)
		r = json_read_signed(value, 0, UINT32_MAX, &number);
	else
		r = json_read_signed(value, is_wide ? INT64_MIN : INT32_MIN,
			is_wide ? INT64_MAX : INT32_MAX, &number);
	if (is_wide)
		ret->i64 = number;
	else
		ret->u32 = (uint32_t)number;
	return r;
}

/* Reads the value into @field.  Returns 0, or -EINVAL if it is not of the member's kind. */
static int member_read(
	const struct member *member, const struct json_value *value, char *field)
{
	union number is = { .u64 = 0 };
	int r = 0;

	member_clear(member, field);
	if (value->kind == JSON_NULL)
		return 0;
	if (is_text_member(member))
		return member_read_text(member, value, field);
	if (member->kind == OF_HEX)
		r = member_read_hex(value, &is.u64);
	else if (member->kind == OF_CAUSE)
		is.cause = member_read_cause(value);
	else if (member->kind != OF_BOOL)
		r = member_read_number(member, value, &is);
	else if (value->kind == JSON_BOOL)
		is.bit = value->at[0] == 't';
	else
		r = -EINVAL;
	if (r == 0)
		memcpy(field, &is, member->size);
	return r;
}

/* Returns the member with that name, or NULL.  Looks after @last first: lines follow the table. */
static const struct member *member_find(
	const struct json_value *key, const struct member *last)
{
	const struct member *member = last;

	do {
		if (++member == members + ARRAY_SIZE(members))
			member = members;
		if (is_json_word(key, member->name))
			return member;
	} while (member != last);
	return NULL;
}

static enum batch_event_kind event_read_kind(const struct json_value *value)
{
	for (unsigned i = BATCH_SEEN; i < BATCH_KINDS; i++)
		if (is_json_word(value, event_words[i]))
			return (enum batch_event_kind)i;
	return BATCH_EVENT_NONE;
}

/* What was read of a line. */
struct reading {
	uint64_t seen, bad; /* one bit per member; ->bad: the value is not of its kind */
	bool has_event;
	struct json_value list;
};

static void event_read_member(const struct json_value *key,
	const struct json_value *value, const struct member **last,
	struct reading *reading, struct batch_event *event)
{
	const struct member *member;
	uint64_t bit;

	if (is_json_word(key, "event") && value->kind == JSON_STRING) {
		event->kind = event_read_kind(value);
		reading->has_event = true;
		return;
	}
	if (is_json_word(key, "jobs")) {
		reading->list = *value;
		return;
	}
	member = member_find(key, *last);
	if (!member)
		return;
	*last = member;
	bit = UINT64_C(1) << (member - members);
	reading->seen |= bit;
	reading->bad &= ~bit;
	if (member_read(member, value, (char *)event + member->offset) < 0)
		reading->bad |= bit;
}

/*
 * Clears the members that this kind of event does not have, as the event may stand after them in
 * the line.  Returns 0, or -EINVAL if a member that it has is bad.
 */
static int event_check_members(const struct reading *reading, struct batch_event *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		if (!(reading->seen >> i & 1))
			continue;
		if (!has_member(&members[i], event->kind))
			member_clear(&members[i], (char *)event + members[i].offset);
		else if (reading->bad >> i & 1)
			return -EINVAL;
	}
	if (event->kind != BATCH_LISTED || !reading->list.at)
		return 0;
	if (reading->list.kind != JSON_STRING ||
		!batch_is_numbers(reading->list.at, reading->list.size))
		return -EINVAL;
	event->jobs = reading->list.at;
	event->jobs_size = reading->list.size;
	return 0;
}

int batch_event_parse(const char *line, size_t size, struct batch_event *ret)
{
	struct json_walk walk = JSON_WALK(line, size);
	const struct member *last = members;
	struct json_value key, value;
	struct reading reading = { .bad = 0 };
	int r;

	*ret = BATCH_EVENT_OF(BATCH_EVENT_NONE, 0);
	while ((r = json_next(&walk, &key, &value)) == JSON_MEMBER)
		event_read_member(&key, &value, &last, &reading, ret);
	if (r < 0 || !reading.has_event)
		return -EINVAL;
	return event_check_members(&reading, ret);
}

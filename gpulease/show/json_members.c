#include <sys/utsname.h>

#include "json_members.h"

void member_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

void member_name(struct json *json, const char *name, bool is_cut)
{
	json_put_text(json, "name", name);
	if (is_cut)
		member_bool(json, "name_is_cut", true);
}

void member_bool(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_bool(json, value);
}

void member_number(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_unsigned(json, value);
}

void member_number_if(struct json *json, const char *key, bool is_known, uint64_t value)
{
	json_key(json, key);
	if (is_known)
		json_unsigned(json, value);
	else
		json_null(json);
}

void member_span(struct json *json, const char *key, int64_t value)
{
	member_number_if(json, key, value >= 0, (uint64_t)value);
}

void member_time(struct json *json, const char *key, int64_t value)
{
	member_number_if(json, key, value > 0, (uint64_t)value);
}

void member_share(struct json *json, const char *key, bool is_known, int64_t percent)
{
	json_key(json, key);
	if (is_known)
		json_hundredths(json, (uint64_t)percent);
	else
		json_null(json);
}

void member_gap(struct json *json, const struct history_gap *gap)
{
	member_number(json, "missing_lines", gap->missing);
	member_time(json, "missing_unix_ms", gap->last_ms);
}

void member_need(struct json *json, const struct need *need)
{
	bool is_whole = need_is_whole(need);

	member_share(json, "share", need->percent && !is_whole, need->percent);
	member_number_if(json, "vram_mib", need->mib, need->mib);
	member_bool(json, "exclusive", is_whole);
}

void member_foretold(
	struct json *json, const struct foretold *foretold, int64_t to_real_ms)
{
	bool is_known = foretold->runs;

	member_time(json, "usual_start_from_unix_ms",
		is_known ? foretold->from_ms + to_real_ms : 0);
	member_time(json, "usual_start_to_unix_ms",
		is_known ? foretold->to_ms + to_real_ms : 0);
	member_number_if(json, "usual_start_runs", is_known, foretold->runs);
}

void member_usual(struct json *json, const struct usual *usual)
{
	bool is_known = usual->runs >= USUAL_LEAST;

	member_number_if(json, "usual_runs", is_known, usual->runs);
	member_time(json, "usual_p50_ms", usual_run_ms(usual, 50, 0));
	member_time(json, "usual_p90_ms", usual_run_ms(usual, 90, 0));
	member_time(json, "usual_p50_mib", usual_peak_mib(usual, 50));
	member_time(json, "usual_p90_mib", usual_peak_mib(usual, 90));
}

const char *document_engine;

const char *document_host(void)
{
	static struct utsname name;

	return uname(&name) < 0 ? "" : name.nodename;
}

void document_begin(
	struct json *json, const char *kind, int64_t now_ms, const char *directory)
{
	char format[32];

	(void)snprintf(format, sizeof(format), "gpulease-%s/%d", kind, DOCUMENT_SCHEMA);
	json_begin_object(json);
	member_text(json, "format", format);
	member_number(json, "schema", DOCUMENT_SCHEMA);
	member_text(json, "version", GPULEASE_VERSION);
	member_text(json, "host", document_host());
	if (document_engine)
		member_text(json, "engine", document_engine);
	member_time(json, "taken_unix_ms", now_ms);
	if (directory)
		json_put_text(json, "state_directory", directory);
}

void document_finish(struct json *json)
{
	json_end(json);
	json_finish(json);
}

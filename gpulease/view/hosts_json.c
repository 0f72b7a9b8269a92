#include "hosts_table.h"
#include "json_members.h"

static void put_object(
	struct json *json, const char *key, const struct json_value *object)
{
	json_key(json, key);
	if (object->at)
		json_verbatim(json, object->at, object->size);
	else
		json_null(json);
}

void hosts_json(const struct hosts_states *states, enum hosts_kind kind, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "hosts", states->now_ms, NULL);
	json_key(&json, "hosts");
	json_begin_array(&json);
	for (size_t i = 0; i < states->count; i++) {
		const struct host_state *state = &states->list[i];

		json_begin_object(&json);
		member_text(&json, "name", state->host);
		json_put_text(&json, "error", state->trouble);
		put_object(&json, "answer", &state->object);
		if (kind == HOSTS_STATUS) {
			put_object(&json, "dry_run_1_gpu", &state->starts[0].object);
			put_object(&json, "dry_run_4_gpus", &state->starts[1].object);
		}
		json_end(&json);
	}
	json_end(&json);
	document_finish(&json);
}

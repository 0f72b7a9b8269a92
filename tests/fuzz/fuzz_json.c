/*
 * Any bytes as texts and keys of JSON, in any structure: the output is JSON, in whole lines,
 * without control characters for a terminal.  The same bytes as cells of a table: no line is
 * wider than the terminal.
 */
#include "render_json.h"
#include "render_table.h"
#include "../json_valid.h"
#include "fuzz.h"

enum { KEY_SIZE = 64 };

/* Writes a value: the first bytes choose its structure, the rest is its texts. */
static void write_value(struct json *json, const uint8_t **data, size_t *size)
{
	const char *rest = (const char *)*data + 1;
	uint8_t shape = *size ? **data : 0;
	char key[KEY_SIZE];

	if (*size == 0 || json->depth == JSON_DEPTH_MAX || shape % 4 == 0) {
		json_bytes(json, *size ? rest : "", *size ? *size - 1 : 0);
		return;
	}
	(*data)++;
	(*size)--;
	(void)snprintf(key, sizeof(key), "%.*s", (int)(*size < 60 ? *size : 60), rest);
	if (shape % 4 == 1)
		json_begin_array(json);
	else
		json_begin_object(json);
	for (unsigned i = 0; i < shape / 4 % 4; i++) {
		if (shape % 4 != 1)
			json_key(json, key);
		if (i == 0)
			write_value(json, data, size);
		else
			json_signed(json, shape == 255 ? INT64_MIN : shape - 128);
	}
	json_end(json);
}

static void check_json(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t used = 0, at;
	FILE *out = open_memstream(&text, &used);
	struct json json = JSON_ON(out);

	MUST(out);
	write_value(&json, &data, &size);
	json_finish(&json);
	MUST(fclose(out) == 0);
	MUST(used && text[used - 1] == '\n');
	MUST(json_is_valid(text, used, &at));
	free(text);
}

static void check_lines(const char *text, size_t width)
{
	while (*text) {
		size_t size = strcspn(text, "\n");

		MUST(text[size] == '\n');
		MUST(!width || text_columns(text, size) <= width);
		text += size + 1;
	}
}

static void check_table(const uint8_t *data, size_t size)
{
	static const struct table_column columns[] = {
		{ .title = "A", .is_right = true, .is_optional = true },
		{ .title = "BBBBBBBB", .least = 3 },
		{ .title = "C", .least = 4 },
	};
	struct table_style style = { .width = size ? data[0] : 0 };
	struct table table = TABLE_ON(columns);
	char cell[KEY_SIZE], *text = NULL;
	size_t used = 0;
	FILE *out = open_memstream(&text, &used);

	MUST(out);
	for (size_t i = 0; i < size; i += KEY_SIZE - 1) {
		size_t length = size - i < KEY_SIZE - 1 ? size - i : KEY_SIZE - 1;

		memcpy(cell, data + i, length);
		cell[length] = '\0';
		table_row(&table);
		for (unsigned column = 0; column < ARRAY_SIZE(columns); column++)
			if (data[i] & 1u << column)
				table_put(&table, column, cell);
	}
	MUST(table_print(&table, &style, out) == 0);
	line_print(size ? cell : "", &style, out);
	table_release(&table);
	MUST(fclose(out) == 0);
	if (style.width > 8)
		check_lines(text, style.width);
	MUST(!memchr(text, '\033', used));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_json(data, size);
	check_table(data, size);
	return 0;
}

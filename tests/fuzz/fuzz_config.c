/*
 * Any text as a configuration: if it is refused, the reason is one printable line that names file
 * and line; if it is read, it can be written, and is then read as the same again.  The limits of
 * users are looked up with the same bytes as the text of /etc/passwd and /etc/group: what binds can
 * be written as a line, too.
 */
#include <assert.h>

#include "config.h"
#include "fuzz.h"
#include "user_limits.h"

/* All settings of @config that are set, as a text. */
static void write_all(const struct config *config, struct text *out)
{
	for (int key = 0; key < CONFIG_KEYS; key++) {
		char value[CONFIG_PATH_SIZE];
		struct text text = TEXT_ON(value);

		config_format(config, (enum config_key)key, &text);
		assert(!text.cut);
		if (text.used)
			text_addf(out, "%s = %s\n", config_key_name((enum config_key)key),
				value);
	}
	assert(!out->cut);
}

/* Whoever the process is, what binds it is a line that can be read. */
static void find_limits(const struct config *config, struct strview entries)
{
	static const uint32_t gids[] = { 0, 7, 1000, 70000 };
	struct limits_process process = {
		.gids = gids, .passwd = entries, .group = entries
	};
	struct limits_line line = { .number = 0 };
	struct config found;
	struct why why = WHY_NONE;
	char words[512];

	while (limits_next(&config->limits, &line))
		(void)limits_is_known(&line, &process);
	for (size_t i = 0; i < ARRAY_SIZE(gids); i++) {
		struct text text = TEXT_ON(words);

		process.uid = gids[i];
		process.gid_count = i;
		limits_find(config, &process, &found);
		text_add(&text, "group 7 = ");
		limits_format(&found, &text);
		assert(!text.cut);
		assert(limits_check(&found, (struct strview){ words, words + text.used },
			       UINT32_MAX, &why) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config, again;
	char first[4096], second[4096];
	struct text a = TEXT_ON(first), b = TEXT_ON(second);
	struct why why = WHY_NONE;

	config_default(&config);
	if (config_parse("x", (const char *)data, size, &config, &why) < 0) {
		fuzz_check_line_reason(&why);
		return 0;
	}
	if (config.models.text)
		assert(config.models.text + config.models.size ==
			(const char *)data + size);
	find_limits(&config,
		(struct strview){ (const char *)data, (const char *)data + size });
	write_all(&config, &a);
	config_default(&again);
	assert(config_parse("x", first, a.used, &again, &why) == 0);
	write_all(&again, &b);
	assert(strcmp(first, second) == 0);
	return 0;
}

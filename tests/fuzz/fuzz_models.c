/*
 * Any text as a table of models, in either form: if it is refused, the reason is one printable
 * line that names file and line; if it is read, a lookup finds a valid need or none, and fails
 * only for a name that is set twice.
 */
#include <assert.h>
#include <errno.h>

#include "models.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "a", "default", "Qwen/Qwen2.5-3B", "" };
	struct model_table table = {
		.file = "x", .text = (const char *)data, .size = size, .line = 1
	};
	struct why why = WHY_NONE;
	int checked = models_check(&table, &why);

	if (checked < 0)
		fuzz_check_line_reason(&why);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct model_need need = { .gpus = 0 };
		int r = models_find(&table, names[i], &need, &why);

		if (r < 0) {
			fuzz_check_line_reason(&why);
			assert(checked < 0 || strstr(why.text, "is set twice"));
			continue;
		}
		assert(checked == 0 && (r == 0 || r == MODELS_UNKNOWN));
		assert(need.gpus <= 128 && need.share_percent < 100);
		assert(need.gpus == 1 || (!need.share_percent && !need.vram_mib));
	}
	return 0;
}

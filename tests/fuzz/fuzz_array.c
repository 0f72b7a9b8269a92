/*
 * Any bytes as the indices of an array, and as the id of tasks: the indices ascend, and each can be
 * found.
 */
#include "array_list.h"
#include "fuzz.h"

static void check_list(const struct array_list *list)
{
	MUST(list->count && list->count <= ARRAY_TASKS_MAX && list->step);
	for (unsigned i = 0; i < list->count; i++) {
		MUST(list->indices[i] <= ARRAY_INDEX_MAX);
		MUST(!i || list->indices[i] > list->indices[i - 1]);
		MUST(array_list_find(list, list->indices[i]) == (int)i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct array_list list;
	struct why why = WHY_NONE;
	char *text = fuzz_string(data, size);
	uint64_t array;

	MUST(text);
	if (array_list_read(text, &list, &why) == 0)
		check_list(&list);
	else
		fuzz_check_reason(&why);
	if (array_list_read_id(text, size, &array, &list))
		check_list(&list);
	free(text);
	return 0;
}

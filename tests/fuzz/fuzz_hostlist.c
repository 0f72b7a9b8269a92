/*
 * Any bytes as a list of hosts: as many names as were promised, none too long and none with a
 * comma; and the list into which they are folded means the same names.
 */
#include "hostlist.h"
#include "fuzz.h"

/* What was taken: how many names, and a hash of them. */
struct taken {
	size_t count;
	uint64_t hash;
	struct hostlist_fold *fold;
};

static void take(const char *name, void *context)
{
	struct taken *taken = context;

	MUST(name[0] && strlen(name) < HOSTLIST_NAME_SIZE && !strpbrk(name, "[], \n"));
	taken->count++;
	taken->hash = text_hash(taken->hash, name, strlen(name) + 1);
	if (taken->fold)
		hostlist_fold(taken->fold, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *list = fuzz_string(data, size), *folded = NULL;
	size_t folded_size, count = 0;
	FILE *out = open_memstream(&folded, &folded_size);
	struct hostlist_fold fold = { .out = out };
	struct taken taken = { .hash = TEXT_HASH_BEGIN, .fold = &fold }, again = taken;
	struct why why = WHY_NONE;

	MUST(list && out);
	again.fold = NULL;
	if (hostlist_expand(list, take, &taken, &count, &why) < 0) {
		fuzz_check_reason(&why);
		MUST(!taken.count);
	}
	MUST(taken.count == count && count <= HOSTLIST_HOSTS_MAX);
	hostlist_fold_end(&fold);
	MUST(fclose(out) == 0);
	MUST(hostlist_expand(folded, take, &again, &count, NULL) == 0);
	MUST(again.count == taken.count && again.hash == taken.hash);
	free(folded);
	free(list);
	return 0;
}

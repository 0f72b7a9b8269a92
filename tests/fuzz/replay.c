/*
 * Feeds files, and the files in directories, to a fuzz target, so that its corpus is a test with
 * any compiler.  The target aborts on a failure; prints a line of TAP for each file.
 *
 *	fuzz_smi [FILE | DIRECTORY]…
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

enum { INPUT_MAX = 1 << 20 };

static unsigned count, failed;

static void replay_file(const char *path)
{
	uint8_t *data = malloc(INPUT_MAX);
	FILE *file = fopen(path, "re");
	uint8_t *exact = NULL;
	size_t size;

	count++;
	if (!data || !file) {
		printf("not ok %u - %s: %s\n", count, path, strerror(errno));
		failed++;
		goto out;
	}
	size = fread(data, 1, INPUT_MAX, file);
	/* memory of exactly that size, so that a sanitizer sees a read beyond the end */
	exact = malloc(size ? size : 1);
	if (exact) {
		memcpy(exact, data, size);
		(void)LLVMFuzzerTestOneInput(exact, size);
	}
	printf("ok %u - %s\n", count, path);
	(void)fflush(stdout);
out:
	if (file)
		(void)fclose(file);
	free(exact);
	free(data);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay(const char *path)
{
	struct dirent **entries = NULL;
	char below[PATH_MAX];
	struct stat st;
	int found;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		replay_file(path);
		return;
	}
	found = scandir(path, &entries, is_visible, alphasort);
	for (int i = 0; i < found; i++) {
		(void)snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name);
		replay(below);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("1..%u\n", count);
	return failed > 0 || count == 0;
}

#include "find_program.h"
#include "other_program.h"
#include "privilege.h"
#include "rlimits.h"

static char **words; /* two places, and then the words of this program */

int other_program_find(const char *name, char ret[PATH_MAX])
{
	char installed[64];

	(void)snprintf(installed, sizeof(installed), "../lib/gpulease/%s", name);
	return find_program_beside(name, ret) == 0 ? 0
						   : find_program_beside(installed, ret);
}

void other_program_keep(char *const *argv)
{
	size_t count = 0;

	while (argv[count])
		count++;
	words = calloc(count + 3, sizeof(*words));
	if (words)
		memcpy(words + 2, argv, count * sizeof(*words));
}

char **other_program_words(void)
{
	return words && words[2] ? words + 3 : NULL;
}

void other_program_become(const char *name, const char *part)
{
	static char path[PATH_MAX];

	if (!words || other_program_find(name, path) < 0 || privilege_drop() < 0)
		return;
	privilege_restore_mask();
	rlimits_restore();
	words[0] = path;
	words[1] = (char *)part;
	(void)execve(path, words, privilege_environment());
}

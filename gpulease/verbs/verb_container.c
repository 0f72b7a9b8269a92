/*
 * --container-image and other options of pyxis: gpulease-slurm says which line runs the container.
 */
#include <errno.h>

#include "diag.h"
#include "exitcodes.h"
#include "execute.h"
#include "privilege.h"
#include "task_words.h"
#include "verbs.h"

int verb_container(struct settings *settings)
{
	char **words = settings->environment.command;
	struct why why = WHY_NONE;
	int r = task_words_wrap(settings, &words);

	if (r != 0)
		return r;
	if (privilege_drop() < 0)
		return EXIT_MISUSE;
	privilege_restore_mask();
	r = execute(words[0], words, privilege_environment(), &why);
	diag("%s", why.text);
	return r;
}

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "engine_batch_place.h"
#include "engine_state.h"
#include "exitcodes.h"
#include "statedir.h"
#include "text.h"

/* Makes the directory @path for this user alone.  Returns 0 or a negative errno. */
static int make_own(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EACCES;
}

/* Whether other machines may use the file system of @path, too. */
static bool is_shared(const char *path)
{
	autofd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || statedir_unshared_name(fd);
}

int engine_batch_place(char out[PATH_MAX])
{
	const char *folder = engine_state_folder();
	char parent[PATH_MAX];
	bool is_new;
	int r;

	if (!folder)
		return EXIT_MISUSE;
	if (!is_shared(folder)) {
		(void)snprintf(out, PATH_MAX, "%s/state", folder);
		r = make_own(out);
	} else {
		r = statedir_find_local(false, parent, &is_new);
		if (snprintf(out, PATH_MAX, "%s/slurm-%s", parent,
			    text_base_name(folder)) >= PATH_MAX)
			r = -ENAMETOOLONG;
		if (r == 0)
			r = make_own(out);
	}
	if (r == 0)
		return 0;
	diag("cannot make '%s': %s", out, strerror(-r));
	return EXIT_MISUSE;
}

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "joblog.h"
#include "rights.h"
#include "userfile.h"

/* --- names ------------------------------------------------------------------------- */

/*
 * Writes the path of LOGS.  Returns 0, -ENAMETOOLONG, or -ENOENT if neither XDG_STATE_HOME nor HOME
 * is an absolute path.
 */
static int logs_path(const struct context *context, char out[PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	struct text text = text_on(out, PATH_MAX);

	if (context->settings->machine.sim_gpus)
		text_addf(&text, "%s/logs", context->dir.path);
	else if (state && state[0] == '/')
		text_addf(&text, "%s/gpulease/logs", state);
	else if (home && home[0] == '/')
		text_addf(&text, "%s/.local/state/gpulease/logs", home);
	else
		return -ENOENT;
	/* job ids begin at 1 in each allocation, and the logs outlive its state directory */
	if (context->has_allocation)
		text_addf(&text, "/%s", context->allocation.name);
	return text.cut ? -ENAMETOOLONG : 0;
}

int joblog_path(const struct context *context, uint64_t job, char *out, size_t size)
{
	struct text text = text_on(out, size);
	char logs[PATH_MAX];
	int r = logs_path(context, logs);

	if (r == 0)
		text_addf(&text, "%s/%llu.log", logs, (unsigned long long)job);
	return r == 0 && text.cut ? -ENAMETOOLONG : r;
}

static int explain_create(const char *path, int error, struct why *why)
{
	why_set(why, "cannot create the log '%s': %s; name another file with -o FILE",
		path, strerror(-error));
	return error;
}

/* --- the directory ----------------------------------------------------------------- */

/* Makes the folder and those above it, like mkdir -p; new ones are for this user alone. */
static int logs_make_folders(char *path)
{
	int r;

	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		r = userfile_mkdir(path, 0700);
		*at = '/';
		/*
		 * mkdir(2) may fail for a folder that exists (no right to write above it); the
		 * walk can still go on through it
		 */
		if (r < 0 && r != -EEXIST && access(path, F_OK) < 0)
			return r;
	}
	r = userfile_mkdir(path, 0700);
	return r == -EEXIST ? 0 : r;
}

int joblog_prepare(const struct context *context, struct why *why)
{
	char logs[PATH_MAX];
	int r = logs_path(context, logs);

	if (r < 0) {
		why_set(why,
			r == -ENOENT
				? "HOME is not set, so there is no folder for the log; "
				  "name a file with -o FILE"
				: "the path of the folder for logs is too long; name a "
				  "file with -o FILE");
		return r;
	}
	rights_as_user_begin();
	r = logs_make_folders(logs);
	if (r == 0 && access(logs, W_OK | X_OK) < 0)
		r = -errno;
	rights_as_user_end();
	if (r < 0)
		why_set(why,
			"cannot write logs in '%s': %s; name another file with -o FILE",
			logs, strerror(-r));
	return r;
}

/* --- logs -------------------------------------------------------------------------- */

/* Renames an older log to PATH~: a new state directory begins with job 1 again. */
static void joblog_set_aside(const char *path)
{
	char old[PATH_MAX + 1];

	(void)snprintf(old, sizeof(old), "%s~", path);
	(void)!userfile_rename(path, old);
}

int joblog_create(const struct context *context, uint64_t job, struct why *why)
{
	enum { FLAGS = O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW };
	char path[PATH_MAX] = "";
	int r = joblog_path(context, job, path, sizeof(path));

	if (r < 0)
		return explain_create(path, r, why);
	joblog_set_aside(path);
	r = userfile_open(path, FLAGS, 0600);
	return r < 0 ? explain_create(path, r, why) : r;
}

/* Whether the two paths name one file. */
static bool paths_are_one_file(const char *path, const char *file)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat(file, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int joblog_make_link(const char *path, const char *file)
{
	char target[PATH_MAX] = "";
	struct text text = TEXT_ON(target);

	if (paths_are_one_file(path, file))
		return 0;
	if (file[0] != '/') {
		char here[PATH_MAX];

		if (!getcwd(here, sizeof(here)))
			return -errno;
		text_addf(&text, "%s/", here);
	}
	text_add(&text, file);
	if (text.cut)
		return -ENAMETOOLONG;
	joblog_set_aside(path);
	return userfile_symlink(target, path);
}

int joblog_link(
	const struct context *context, uint64_t job, const char *file, struct why *why)
{
	char path[PATH_MAX] = "";
	int r = joblog_path(context, job, path, sizeof(path));

	if (r == 0) {
		rights_as_user_begin();
		r = joblog_make_link(path, file);
		rights_as_user_end();
	}
	if (r < 0)
		why_set(why,
			"cannot link '%s' to the log, so --log will not find '%s': %s",
			path, file, strerror(-r));
	return r;
}

int joblog_open(const struct context *context, uint64_t job, char out[PATH_MAX])
{
	int r = joblog_path(context, job, out, PATH_MAX);

	/* O_NONBLOCK: with -o the log may be a FIFO, and opening it must not block */
	return r < 0 ? r : userfile_open(out, O_RDONLY | O_NONBLOCK, 0);
}

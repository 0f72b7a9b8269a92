#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "joblog.h"
#include "rights.h"
#include "userfile.h"

/* --- names ------------------------------------------------------------------------- */

/* 0, -ENAMETOOLONG, or -ENOENT: neither $XDG_STATE_HOME nor $HOME says where. */
static int find_logs(const struct context *context, char out[PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	struct text text = text_on(out, PATH_MAX);

	if (context->settings->sim_gpus)
		text_addf(&text, "%s/logs", context->dir.path);
	else if (state && state[0] == '/')
		text_addf(&text, "%s/gpulease/logs", state);
	else if (home && home[0] == '/')
		text_addf(&text, "%s/.local/state/gpulease/logs", home);
	else
		return -ENOENT;
	/* ids begin at 1 in each allocation, and logs outlive its directory */
	if (context->has_allocation)
		text_addf(&text, "/%s", context->allocation.name);
	return text.cut ? -ENAMETOOLONG : 0;
}

int joblog_path(const struct context *context, uint64_t job, char *out, size_t size)
{
	struct text text = text_on(out, size);
	char logs[PATH_MAX];
	int r = find_logs(context, logs);

	if (r == 0)
		text_addf(&text, "%s/%llu.log", logs, (unsigned long long)job);
	return r == 0 && text.cut ? -ENAMETOOLONG : r;
}

static int refuse(const char *path, int error, struct why *why)
{
	why_set(why, "cannot make the log '%s': %s; -o FILE names another", path,
		strerror(-error));
	return error;
}

/* --- the directory ----------------------------------------------------------------- */

/* mkdir -p, every new folder for this user alone. */
static int make_path(char *path)
{
	int r;

	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		r = userfile_mkdir(path, 0700);
		*at = '/';
		/* what is there may be closed to us and lead on all the same */
		if (r < 0 && r != -EEXIST && access(path, F_OK) < 0)
			return r;
	}
	r = userfile_mkdir(path, 0700);
	return r == -EEXIST ? 0 : r;
}

int joblog_prepare(const struct context *context, struct why *why)
{
	char logs[PATH_MAX];
	int r = find_logs(context, logs);

	if (r < 0) {
		why_set(why,
			r == -ENOENT
				? "HOME is not set, so there is no place for the log; "
				  "-o FILE names one"
				: "the name of the folder for logs is too long; -o FILE "
				  "names another");
		return r;
	}
	rights_as_user_begin();
	r = make_path(logs);
	if (r == 0 && access(logs, W_OK | X_OK) < 0)
		r = -errno;
	rights_as_user_end();
	if (r < 0)
		why_set(why, "cannot write logs in '%s': %s; -o FILE names another place",
			logs, strerror(-r));
	return r;
}

/* --- logs -------------------------------------------------------------------------- */

/* Numbers begin again where the state directory does: what is in the way steps aside. */
static void step_aside(const char *path)
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
		return refuse(path, r, why);
	step_aside(path);
	r = userfile_open(path, FLAGS, 0600);
	return r < 0 ? refuse(path, r, why) : r;
}

/* Whether the log's own name is the file that was asked for. */
static bool is_same(const char *path, const char *file)
{
	struct stat a, b;

	return stat(path, &a) == 0 && stat(file, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int make_link(const char *path, const char *file)
{
	char target[PATH_MAX] = "";
	struct text text = TEXT_ON(target);

	if (is_same(path, file))
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
	step_aside(path);
	return userfile_symlink(target, path);
}

int joblog_link(
	const struct context *context, uint64_t job, const char *file, struct why *why)
{
	char path[PATH_MAX] = "";
	int r = joblog_path(context, job, path, sizeof(path));

	if (r == 0) {
		rights_as_user_begin();
		r = make_link(path, file);
		rights_as_user_end();
	}
	if (r < 0)
		why_set(why, "cannot make '%s', so --log will not find '%s': %s", path,
			file, strerror(-r));
	return r;
}

int joblog_open(const struct context *context, uint64_t job, char out[PATH_MAX])
{
	int r = joblog_path(context, job, out, PATH_MAX);

	/* with -o the log may be a FIFO: opening it must not block */
	return r < 0 ? r : userfile_open(out, O_RDONLY | O_NONBLOCK, 0);
}

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "diag.h"
#include "pattern.h"
#include "privilege.h"
#include "redirect.h"
#include "rights.h"
#include "userfile.h"

int redirect_name(const struct context *context, uint64_t job, const char *pattern,
	char out[PATH_MAX])
{
	const struct settings *settings = context->settings;
	const char *command = settings->command[0] ? settings->command[0] : "";
	const char *base = strrchr(command, '/');
	char host[256] = "", user[USER_SIZE];
	struct pattern_values values = { .job = job, .host = host, .user = user };
	struct why why = WHY_NONE;

	(void)gethostname(host, sizeof(host) - 1);
	local_user_name(getuid(), user, sizeof(user));
	values.name = settings->name ? settings->name : base ? base + 1 : command;
	if (pattern_expand(pattern, &values, out, PATH_MAX, &why) == 0)
		return 0;
	diag("%s", why.text[0] ? why.text : "a file name is too long");
	return -EINVAL;
}

/* --- before there is a ticket ------------------------------------------------------ */

/* Up to its last slash; "." where there is none. */
static void cut_to_folder(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path] = '\0';
	else
		text_copy(path, PATH_MAX, ".");
}

/* Whose place depends on the id is left for later. */
static int check_file(const struct context *context, const char *pattern, bool is_input)
{
	char path[PATH_MAX], other[PATH_MAX], place[PATH_MAX];
	int r;

	if (!pattern)
		return 0;
	if (redirect_name(context, 0, pattern, path) < 0 ||
		redirect_name(context, 1, pattern, other) < 0)
		return -EINVAL;
	text_copy(place, sizeof(place), path);
	if (!is_input) {
		cut_to_folder(place);
		cut_to_folder(other);
	}
	if (strcmp(place, other) != 0)
		return 0;
	rights_as_user_begin();
	r = access(path, is_input ? R_OK : W_OK);
	if (r < 0 && !is_input && errno == ENOENT)
		r = access(place, W_OK | X_OK);
	r = r < 0 ? -errno : 0;
	rights_as_user_end();
	if (r == 0)
		return 0;
	diag("cannot open '%s': %s", path, strerror(-r));
	return r;
}

int redirect_check(const struct context *context)
{
	const struct settings *settings = context->settings;
	int r = check_file(context, settings->input, true);

	if (r == 0)
		r = check_file(context, settings->output, false);
	if (r == 0)
		r = check_file(context, settings->error, false);
	return r;
}

/* --- at the start ------------------------------------------------------------------ */

static int open_one(const struct context *context, uint64_t job, const char *pattern,
	int flags, int *ret)
{
	char path[PATH_MAX];
	mode_t ours;
	int fd;

	if (redirect_name(context, job, pattern, path) < 0)
		return -EINVAL;
	ours = umask(privilege_mask());
	fd = userfile_open(path, flags, 0666);
	(void)umask(ours);
	if (fd < 0) {
		diag("cannot open '%s': %s", path, strerror(-fd));
		return fd;
	}
	*ret = fd;
	return 0;
}

/*
 * Where both outputs are one file, whatever its names: each with an offset of its own would write
 * over what the other has written.
 */
static void share_one_file(int out, int *err)
{
	struct stat a, b;

	if (out < 0 || *err < 0 || fstat(out, &a) < 0 || fstat(*err, &b) < 0 ||
		a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return;
	close_fd(err);
	*err = out;
}

int redirect_open(const struct context *context, uint64_t job, struct redirection *ret)
{
	enum { FOR_READING = O_RDONLY, FOR_WRITING = O_WRONLY | O_CREAT | O_TRUNC };
	const struct settings *settings = context->settings;
	const struct {
		const char *pattern;
		int flags;
	} files[] = {
		{ settings->input, FOR_READING },
		{ settings->output, FOR_WRITING },
		{ settings->error, FOR_WRITING },
	};
	int r = 0;

	*ret = REDIRECTION_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++)
		if (files[i].pattern)
			r = open_one(context, job, files[i].pattern, files[i].flags,
				&ret->fds[i]);
	if (r == 0 && settings->output && !settings->error)
		ret->fds[STDERR_FILENO] = ret->fds[STDOUT_FILENO];
	else if (r == 0)
		share_one_file(ret->fds[STDOUT_FILENO], &ret->fds[STDERR_FILENO]);
	return r;
}

int redirect_apply(const struct redirection *redirection)
{
	for (int target = 0; target < 3; target++) {
		int fd = redirection->fds[target];

		if (fd < 0)
			continue;
		if (fd == target ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, target) < 0) {
			diag("cannot redirect: %s", strerror(errno));
			return -EIO;
		}
	}
	return 0;
}

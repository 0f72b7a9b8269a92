#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "diag.h"
#include "file_pattern.h"
#include "local_user.h"
#include "parse.h"
#include "privilege.h"
#include "redirect.h"
#include "rights.h"
#include "text.h"
#include "userfile.h"

int redirect_name(const struct context *context, uint64_t job, const char *pattern,
	char out[PATH_MAX])
{
	const struct settings *settings = context->settings;
	const char *command =
		settings->environment.command[0] ? settings->environment.command[0] : "";
	char host[256] = "", user[USER_SIZE];
	struct file_pattern_values values = { .job = job, .host = host, .user = user };
	struct why why = WHY_NONE;

	(void)gethostname(host, sizeof(host) - 1);
	local_user_name(getuid(), user, sizeof(user));
	values.name =
		settings->request.name ? settings->request.name : text_base_name(command);
	if (file_pattern_expand(pattern, &values, out, PATH_MAX, &why) == 0)
		return 0;
	if (why.text[0])
		diag("%s", why.text);
	else
		diag("the file name that '%s' stands for is too long",
			quote(pattern).text);
	return -EINVAL;
}

/* --- before there is a ticket ------------------------------------------------------ */

/* Cuts @path at its last slash; makes it "." if it has none. */
static void path_cut_to_folder(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path] = '\0';
	else
		text_copy(path, PATH_MAX, ".");
}

static int check_readable(const char *path)
{
	int r;

	rights_as_user_begin();
	r = access(path, R_OK) < 0 ? -errno : 0;
	rights_as_user_end();
	return r;
}

/*
 * Checks one file.  The id is not known yet: if the expansions for two ids differ in what is to be
 * checked (an input file, the folder of an output file), the check is left to redirect_open().  A
 * message has the name as it was given if the id is a part of it.
 */
static int check_file(const struct context *context, const char *pattern, bool is_input)
{
	char path[PATH_MAX], other[PATH_MAX], place[PATH_MAX], *slash, *last;
	struct why why;
	bool has_id;
	int r;

	/* the number of a task is no file; gpulease-slurm knows the array and the script's name */
	if (!pattern || !pattern[strspn(pattern, "0123456789")] ||
		(context->settings->tasks.in_script && strchr(pattern, '%')))
		return 0;
	if (redirect_name(context, 0, pattern, path) < 0 ||
		redirect_name(context, 1, pattern, other) < 0)
		return -EINVAL;
	has_id = strcmp(path, other) != 0;
	text_copy(place, sizeof(place), path);
	if (!is_input) {
		path_cut_to_folder(place);
		path_cut_to_folder(other);
	}
	if (strcmp(place, other) != 0)
		return 0;
	if (!is_input) {
		slash = strrchr(path, '/');
		last = slash ? slash + 1 : path;
		/* a name that is not known yet is shown, and checked, as it was given */
		if (has_id)
			text_copy(last, sizeof(path) - (size_t)(last - path),
				text_base_name(pattern));
		r = userfile_check_output(path, &why);
	} else if ((r = check_readable(path)) < 0) {
		why_set(&why, "cannot open '%s': %s", has_id ? pattern : path,
			strerror(-r));
	}
	if (r < 0)
		diag("%s", why.text);
	return r;
}

int redirect_check(const struct context *context)
{
	const struct output_settings *output = &context->settings->output;
	int r = check_file(context, output->in, true);

	if (r == 0)
		r = check_file(context, output->out, false);
	if (r == 0)
		r = check_file(context, output->err, false);
	return r;
}

/* --- at the start ------------------------------------------------------------------ */

static int open_one(const struct context *context, uint64_t job, const char *pattern,
	int flags, int *ret)
{
	char path[PATH_MAX];
	struct why why;
	mode_t ours;
	int fd;

	if (redirect_name(context, job, pattern, path) < 0)
		return -EINVAL;
	ours = umask(privilege_mask());
	if (flags & O_CREAT)
		fd = userfile_open_output(path, flags, 0666, &why);
	else if ((fd = userfile_open(path, flags, 0)) < 0)
		why_set(&why, "cannot open '%s': %s", path, strerror(-fd));
	(void)umask(ours);
	if (fd < 0) {
		diag("%s", why.text);
		return fd;
	}
	*ret = fd;
	return 0;
}

/*
 * If both outputs are one file, possibly under two names, makes them one descriptor: with an offset
 * each they would overwrite each other.
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
	const struct output_settings *output = &context->settings->output;
	int for_writing = O_WRONLY | O_CREAT | (output->append ? O_APPEND : O_TRUNC);
	const struct {
		const char *pattern;
		int flags;
	} files[] = {
		{ output->in, O_RDONLY },
		{ output->out, for_writing },
		{ output->err, for_writing },
	};
	int r = 0;

	*ret = REDIRECTION_NONE;
	/* each task may have files of its own: gpulease-slurm opens them */
	if (are_tasks_wanted(context->settings))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++)
		if (files[i].pattern)
			r = open_one(context, job, files[i].pattern, files[i].flags,
				&ret->fds[i]);
	if (r == 0 && output->out && !output->err)
		ret->fds[STDERR_FILENO] = ret->fds[STDOUT_FILENO];
	else if (r == 0)
		share_one_file(ret->fds[STDOUT_FILENO], &ret->fds[STDERR_FILENO]);
	return r;
}

int redirect_apply(const struct redirection *redirection)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };

	for (int target = 0; target < 3; target++) {
		int fd = redirection->fds[target];

		if (fd < 0)
			continue;
		if (fd == target ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, target) < 0) {
			diag("cannot redirect %s: %s", names[target], strerror(errno));
			return -EIO;
		}
	}
	return 0;
}

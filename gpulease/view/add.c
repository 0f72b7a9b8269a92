#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "add.h"
#include "batch_list.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "lease.h"
#include "parse.h"
#include "script.h"
#include "userfile.h"

enum { LOCK_MS = 5000, OPEN_TRIES = 10, LINE_SIZE = 2 * BATCH_LINE_MAX };

/* The file that gets the line. */
struct jobs_file {
	const char *path;
	struct lease_file lock; /* only its descriptor and lock are used */
	char *text;             /* the whole file, and room for a line */
	size_t size;
	struct why why;
};

/* --- the line ------------------------------------------------------------------------ */

/* Marks an attribute as given, if @is_given. */
static void add_mark_given(
	struct batch_attributes *attributes, enum batch_attribute which, bool is_given)
{
	attributes->given |= (unsigned)is_given << which;
}

/* Returns the attributes of the line, by the options. */
static struct batch_attributes add_attributes(const struct settings *s)
{
	struct batch_attributes attributes = {
		.gpus = s->request.gpus,
		.share_percent = s->request.share_percent,
		.vram_mib = s->request.vram_mib,
		.limit_ms = s->care.limit_ms,
		.oom_retries = s->care.oom_retries,
		.retries = s->care.retries,
		.priority = s->request.priority,
		.allow = s->request.allow,
		.after = s->request.after,
		.after_ok = s->request.after_ok,
		.name = s->request.name,
		.conda = s->environment.conda,
		.setup = s->environment.setup,
	};

	add_mark_given(&attributes, BATCH_GPUS, s->request.gpus_given);
	add_mark_given(&attributes, BATCH_VRAM, s->request.vram_mib);
	add_mark_given(&attributes, BATCH_TIMEOUT, s->care.limit_given);
	add_mark_given(&attributes, BATCH_RETRIES, s->care.oom_retries_given);
	add_mark_given(&attributes, BATCH_FAIL_RETRIES, s->care.retries_given);
	add_mark_given(&attributes, BATCH_PRIORITY, s->request.priority_given);
	add_mark_given(&attributes, BATCH_ALLOW, s->request.allow);
	add_mark_given(&attributes, BATCH_AFTER, s->request.after);
	add_mark_given(&attributes, BATCH_AFTER_OK, s->request.after_ok);
	add_mark_given(&attributes, BATCH_NAME, s->request.name);
	add_mark_given(&attributes, BATCH_CONDA, s->environment.conda);
	add_mark_given(&attributes, BATCH_SETUP, s->environment.setup);
	return attributes;
}

/* Makes the line for a file of @format.  Returns 0, or -EINVAL with the message in @why. */
static int add_make_line(const struct settings *s, enum batch_format format,
	struct text *line, struct why *why)
{
	const struct run_environment *environment = &s->environment;
	struct batch_attributes attributes = add_attributes(s);
	const char *runner = NULL;

	if (s->request.model[0]) {
		why_set(why,
			"a line cannot ask for a type of card; leave '%s' out, and give "
			"--model to --batch for all lines",
			quote(s->request.model).text);
		return -EINVAL;
	}
	/* what runs a script of a table */
	if (format != BATCH_CSV)
		runner = script_lacks_runner(environment->command[0],
			environment->conda ? "python" : script_python());
	return batch_line_write(
		format, &attributes, runner, environment->command, line, why);
}

/* --- the file ------------------------------------------------------------------------ */

/*
 * Opens the file, or creates it.  Never O_CREAT for a file that may exist: fs.protected_regular
 * then refuses the file of another user in a directory such as /tmp.  Returns a descriptor or a
 * negative errno.
 */
static int jobs_file_open_or_create(const char *path)
{
	enum { FLAGS = O_RDWR | O_APPEND | O_NOCTTY | O_NONBLOCK };
	int fd = userfile_open(path, FLAGS, 0);

	return fd == -ENOENT ? userfile_open(path, FLAGS | O_CREAT | O_EXCL, 0666) : fd;
}

/* Whether @path still names the file @fd.  Editors save by putting a new file in its place. */
static bool jobs_file_is_named(const char *path, int fd)
{
	struct stat opened, named;

	return fstat(fd, &opened) == 0 && stat(path, &named) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Sets ->why to @reason, or else to the text of @error.  Returns @error, a negative errno. */
static int jobs_file_fail(struct jobs_file *file, int error, const char *reason)
{
	why_set(&file->why, "cannot add to '%s': %s", quote(file->path).text,
		reason ? reason : strerror(-error));
	return error;
}

/* Waits for the lock of the file, LOCK_MS at most.  Returns 0 or a negative errno. */
static int jobs_file_lock(struct jobs_file *file)
{
	int r = lease_lock(&file->lock, clock_boot_ms() + LOCK_MS);
	char holder[32] = "another process", reason[96];
	uint32_t pid;

	if (r <= 0)
		return r < 0 ? jobs_file_fail(file, r, NULL) : 0;
	pid = lease_lock_holder(&file->lock);
	if (pid)
		(void)snprintf(holder, sizeof(holder), "process %u", pid);
	(void)snprintf(reason, sizeof(reason),
		"%s has had it locked for %d s; try again later", holder, LOCK_MS / 1000);
	return jobs_file_fail(file, -EBUSY, reason);
}

/* Opens and locks the file that @file names now.  Returns 0 or a negative errno. */
static int jobs_file_open_locked(struct jobs_file *file)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		struct stat st;
		int r = jobs_file_open_or_create(file->path);

		if (r == -EEXIST) /* another process has just created it */
			continue;
		if (r < 0)
			return jobs_file_fail(file, r, NULL);
		file->lock.fd = r;
		if (fstat(r, &st) < 0 || !S_ISREG(st.st_mode))
			return jobs_file_fail(file, -EINVAL, "it is not a regular file");
		r = jobs_file_lock(file);
		if (r < 0 || jobs_file_is_named(file->path, file->lock.fd))
			return r;
		close_fd(&file->lock.fd);
	}
	return jobs_file_fail(file, -EAGAIN,
		"it is a link to a missing file, or it is replaced again and again");
}

/* --- adding --------------------------------------------------------------------------- */

static const char too_big[] = "it would be bigger than 16M";

/* Reads the whole file to memory with room for @room more bytes.  Returns 0 or a negative errno. */
static int jobs_file_read(struct jobs_file *file, size_t room)
{
	struct stat st;
	int r;

	if (fstat(file->lock.fd, &st) < 0)
		return jobs_file_fail(file, -errno, NULL);
	if (st.st_size > BATCH_FILE_MAX)
		return jobs_file_fail(file, -EFBIG, too_big);
	file->text = malloc((size_t)st.st_size + room);
	if (!file->text)
		return jobs_file_fail(file, -ENOMEM, NULL);
	r = fdio_pread(file->lock.fd, file->text, (size_t)st.st_size, 0, &file->size);
	return r < 0 ? jobs_file_fail(file, r, NULL) : 0;
}

/*
 * Parses the first @size bytes.  A table gets no line of another form, even if @format says that it
 * is none.  Returns 0; -EINVAL when they have an error, with the message in
 * @why; or another negative errno.
 */
static int jobs_file_parse(const struct jobs_file *file, enum batch_format format,
	size_t size, struct why *why)
{
	struct batch_list list = BATCH_LIST_NONE;
	int r = batch_list_parse(format == BATCH_CSV ? BATCH_CSV : BATCH_AUTO, file->path,
		file->text, size, "python", NULL, &list, why);

	batch_list_release(&list);
	return r;
}

/*
 * Checks the file with the new line, which then has @size bytes.  An error is accepted only if the
 * file had one before.  Returns 0 or a negative errno.
 */
static int jobs_file_check(struct jobs_file *file, enum batch_format format, size_t size)
{
	struct why before;
	int r = jobs_file_parse(file, format, size, &file->why);

	if (r != -EINVAL)
		return r;
	if (jobs_file_parse(file, format, file->size, &before) != -EINVAL)
		return -EINVAL;
	note("%s; the line was added nevertheless", before.text);
	return 0;
}

/* Appends the new line by one write; removes a part that was written before an error. */
static int jobs_file_append(struct jobs_file *file, size_t size)
{
	size_t added = size - file->size;
	ssize_t done = write(file->lock.fd, file->text + file->size, added);

	if (done == (ssize_t)added)
		return 0;
	if (done < 0)
		return jobs_file_fail(file, -errno, NULL);
	if (ftruncate(file->lock.fd, (off_t)file->size) < 0)
		return jobs_file_fail(file, -errno,
			"the disk is full, and its last line is incomplete: remove that line");
	return jobs_file_fail(file, -ENOSPC, NULL);
}

/* Appends @line to the file.  Returns 0, or a negative errno with the message in ->why. */
static int jobs_file_add(
	struct jobs_file *file, enum batch_format format, const struct text *line)
{
	struct text added = text_on(file->text + file->size, line->used + sizeof("\n\n"));
	int r;

	if (file->size && file->text[file->size - 1] != '\n')
		text_add(&added, "\n");
	text_add_bytes(&added, line->at, line->used);
	text_add(&added, "\n");
	if (file->size + added.used > BATCH_FILE_MAX)
		return jobs_file_fail(file, -EFBIG, too_big);
	r = jobs_file_check(file, format, file->size + added.used);
	return r < 0 ? r : jobs_file_append(file, file->size + added.used);
}

/*
 * Makes the line and adds it to the file.  The line is made before the file is opened, because a
 * wrong line should not create a file.  If the contents of the file show another format than its
 * name, the line is made again.
 */
static int add_to_file(
	const struct settings *s, struct jobs_file *file, struct text *line)
{
	enum batch_format asked = s->batch.format, by_name, format;
	int r;

	by_name = batch_format_of(asked, file->path, "", 0);
	r = add_make_line(s, by_name, line, &file->why);
	if (r < 0)
		return r;
	r = jobs_file_open_locked(file);
	if (r == 0)
		r = jobs_file_read(file, LINE_SIZE);
	if (r < 0)
		return r;
	format = batch_format_of(asked, file->path, file->text, file->size);
	if (format != by_name) {
		*line = text_on(line->at, LINE_SIZE);
		r = add_make_line(s, format, line, &file->why);
	}
	return r == 0 ? jobs_file_add(file, format, line) : r;
}

int add_main(const struct settings *settings)
{
	struct jobs_file file = { .path = settings->verb.operands[0],
		.lock = { .fd = -1 } };
	autofree char *at = malloc(LINE_SIZE);
	struct text line;
	int r = -ENOMEM;

	if (at) {
		line = text_on(at, LINE_SIZE);
		r = add_to_file(settings, &file, &line);
	}
	if (r == 0)
		verbose("added to '%s': %s", file.path, line.at);
	else
		diag("--add: %s", at ? file.why.text : "not enough memory");
	close_fd(&file.lock.fd);
	free(file.text);
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}

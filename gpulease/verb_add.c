#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "batch_list.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "lease.h"
#include "parse.h"
#include "privilege.h"
#include "rights.h"
#include "userfile.h"
#include "verbs.h"

enum { LOCK_MS = 5000, OPEN_TRIES = 10 };

/* One that is to be added to. */
struct jobs_file {
	const char *path;
	struct lease_file lock; /* for its descriptor and lock alone */
	char *text;             /* all of it, and room for a line */
	size_t size;
	struct why why;
};

/* --- what the line says -------------------------------------------------------------- */

static void give(
	struct batch_attributes *attributes, enum batch_attribute which, bool is_given)
{
	attributes->given |= (unsigned)is_given << which;
}

static struct batch_attributes attributes_of(const struct settings *s)
{
	struct batch_attributes said = {
		.gpus = s->gpus,
		.share_percent = s->share_percent,
		.vram_mib = s->vram_mib,
		.limit_ms = s->limit_ms,
		.oom_retries = s->oom_retries,
		.retries = s->retries,
		.priority = s->priority,
		.allow = s->allow,
		.after = s->after,
		.after_ok = s->after_ok,
		.name = s->name,
		.conda = s->conda,
		.setup = s->setup,
	};

	give(&said, BATCH_GPUS, s->gpus_given);
	give(&said, BATCH_VRAM, s->vram_mib);
	give(&said, BATCH_TIMEOUT, s->limit_given);
	give(&said, BATCH_RETRIES, s->oom_retries_given);
	give(&said, BATCH_FAIL_RETRIES, s->retries_given);
	give(&said, BATCH_PRIORITY, s->priority_given);
	give(&said, BATCH_ALLOW, s->allow);
	give(&said, BATCH_AFTER, s->after);
	give(&said, BATCH_AFTER_OK, s->after_ok);
	give(&said, BATCH_NAME, s->name);
	give(&said, BATCH_CONDA, s->conda);
	give(&said, BATCH_SETUP, s->setup);
	return said;
}

static int make_line(const struct settings *s, struct text *line, struct why *why)
{
	struct batch_attributes attributes = attributes_of(s);

	if (s->model[0]) {
		why_set(why,
			"a line cannot ask for a type of card; leave '%s' out, --batch "
			"takes --model for all lines",
			quote(s->model).text);
		return -EINVAL;
	}
	return batch_line_write(s->batch_format, &attributes, s->command, line, why);
}

/* --- the file ------------------------------------------------------------------------ */

/* Not O_CREAT on one that may exist: fs.protected_regular refuses another user's then. */
static int open_or_create(const char *path)
{
	enum { FLAGS = O_RDWR | O_APPEND | O_NOCTTY | O_NONBLOCK };
	int fd = userfile_open(path, FLAGS, 0);
	mode_t ours;

	if (fd == -ENOENT) {
		ours = umask(privilege_mask());
		fd = userfile_open(path, FLAGS | O_CREAT | O_EXCL, 0666);
		(void)umask(ours);
	}
	return fd;
}

/* Whether @path still is the file @fd.  Editors put a new one in its place. */
static bool is_still_there(const char *path, int fd)
{
	struct stat open_one, named;

	return fstat(fd, &open_one) == 0 && stat(path, &named) == 0 &&
	       open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

static int refuse(struct jobs_file *file, int error, const char *reason)
{
	why_set(&file->why, "cannot add to '%s': %s", quote(file->path).text,
		reason ? reason : strerror(-error));
	return error;
}

static int lock(struct jobs_file *file)
{
	int r = lease_lock(&file->lock, clock_boot_ms() + LOCK_MS);
	char holder[32] = "somebody", reason[96];
	uint32_t pid;

	if (r <= 0)
		return r < 0 ? refuse(file, r, NULL) : 0;
	pid = lease_lock_holder(&file->lock);
	if (pid)
		(void)snprintf(holder, sizeof(holder), "process %u", pid);
	(void)snprintf(reason, sizeof(reason),
		"%s has had it locked for %d s; try again later", holder, LOCK_MS / 1000);
	return refuse(file, -EBUSY, reason);
}

/* Opens the file and takes its lock. */
static int open_locked(struct jobs_file *file)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		struct stat st;
		int r = open_or_create(file->path);

		if (r == -EEXIST) /* made a moment ago */
			continue;
		if (r < 0)
			return refuse(file, r, NULL);
		file->lock.fd = r;
		if (fstat(r, &st) < 0 || !S_ISREG(st.st_mode))
			return refuse(file, -EINVAL, "it is not a regular file");
		r = lock(file);
		if (r < 0 || is_still_there(file->path, file->lock.fd))
			return r;
		close_fd(&file->lock.fd);
	}
	return refuse(file, -EAGAIN, "it is a link to nothing, or replaced all the time");
}

/* --- adding --------------------------------------------------------------------------- */

/* Reads all of it, with @room bytes more behind it. */
static int read_file(struct jobs_file *file, size_t room)
{
	struct stat st;
	int r;

	if (fstat(file->lock.fd, &st) < 0)
		return refuse(file, -errno, NULL);
	if (st.st_size > (off_t)(BATCH_FILE_MAX - room))
		return refuse(file, -EFBIG, "it would be bigger than 16 MiB");
	file->text = malloc((size_t)st.st_size + room);
	if (!file->text)
		return refuse(file, -ENOMEM, NULL);
	r = fdio_pread(file->lock.fd, file->text, (size_t)st.st_size, 0, &file->size);
	return r < 0 ? refuse(file, r, NULL) : 0;
}

/* What is wrong with the first @size bytes. */
static int judge(const struct jobs_file *file, enum batch_format format, size_t size,
	struct why *why)
{
	struct batch_list list = BATCH_LIST_NONE;
	int r = batch_list_parse(
		format, file->path, file->text, size, "python", NULL, &list, why);

	batch_list_release(&list);
	return r;
}

/*
 * The file with the line, of @size bytes, is not to be wrong unless it was so before; one of
 * another form takes no line at all.
 */
static int check(struct jobs_file *file, enum batch_format format, size_t size)
{
	struct why before;
	int r = judge(file, format, size, &file->why);

	if (r != -EINVAL)
		return r;
	if (judge(file, format, file->size, &before) != -EINVAL)
		return -EINVAL;
	note("%s; the line was added all the same", before.text);
	return 0;
}

/* One write; what of it did not fit is taken back. */
static int append(struct jobs_file *file, size_t size)
{
	size_t added = size - file->size;
	ssize_t done = write(file->lock.fd, file->text + file->size, added);

	if (done == (ssize_t)added)
		return 0;
	if (done < 0)
		return refuse(file, -errno, NULL);
	if (ftruncate(file->lock.fd, (off_t)file->size) < 0)
		return refuse(file, -errno, "the disk is full; its last line is cut");
	return refuse(file, -ENOSPC, NULL);
}

static int add(struct jobs_file *file, enum batch_format format, const struct text *line)
{
	struct text added;
	int r;

	rights_as_user_begin();
	r = open_locked(file);
	rights_as_user_end();
	if (r == 0)
		r = read_file(file, line->used + sizeof("\n\n"));
	if (r < 0)
		return r;
	added = text_on(file->text + file->size, line->used + sizeof("\n\n"));
	if (file->size && file->text[file->size - 1] != '\n')
		text_add(&added, "\n");
	text_add_bytes(&added, line->at, line->used);
	text_add(&added, "\n");
	r = check(file, format, file->size + added.used);
	return r < 0 ? r : append(file, file->size + added.used);
}

int verb_add(struct settings *settings)
{
	enum { LINE_SIZE = 2 * BATCH_LINE_MAX };
	struct jobs_file file = { .path = settings->operands[0], .lock = { .fd = -1 } };
	autofree char *at = malloc(LINE_SIZE);
	struct text line;
	int r = -ENOMEM;

	if (at) {
		line = text_on(at, LINE_SIZE);
		r = make_line(settings, &line, &file.why);
	}
	if (r == 0)
		r = add(&file, settings->batch_format, &line);
	if (r == 0)
		verbose("added to '%s': %s", file.path, line.at);
	else
		diag("--add: %s", at ? file.why.text : "not enough memory");
	close_fd(&file.lock.fd);
	free(file.text);
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}

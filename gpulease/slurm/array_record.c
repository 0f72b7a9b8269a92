#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "array_record.h"
#include "fdio.h"
#include "parse.h"
#include "spool.h"

enum { RECORD_SIZE_MAX = 1024 * 1024 };

int array_record_create(const char *path, const char *list)
{
	autofd int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	int size = fd < 0 ? 0 : dprintf(fd, "l %s\n", list);

	return fd < 0 || size < 0 ? -errno : 0;
}

/* Writes the path of the link for @array. */
static int link_path(uint64_t array, char out[PATH_MAX])
{
	char name[64];

	(void)snprintf(name, sizeof(name), "array-%llu", (unsigned long long)array);
	return spool_path(name, out);
}

int array_record_link(const char *path, uint64_t array)
{
	char link[PATH_MAX], fresh[PATH_MAX + 8];
	int r = link_path(array, link);

	if (r < 0)
		return r;
	(void)snprintf(fresh, sizeof(fresh), "%s~", link);
	(void)unlink(fresh);
	if (symlink(path, fresh) < 0 || rename(fresh, link) < 0)
		return -errno;
	return 0;
}

/* Takes the next word, which ends with a blank, as a number. */
static bool take_number(char **rest, uint64_t *ret)
{
	char *word = strsep(rest, " ");

	return word && parse_u64(word, UINT64_MAX, ret, NULL) == 0;
}

/* Applies one line.  What is no line of a record is skipped. */
static void apply(struct array_record *record, char *line)
{
	char *rest = line, *event = strsep(&rest, " ");
	struct array_task *task;
	uint64_t index, value = 0;
	int place;

	if (strlen(event) != 1 || !take_number(&rest, &index) || index > ARRAY_INDEX_MAX)
		return;
	place = array_list_find(&record->list, (unsigned)index);
	if (place < 0 || (rest && !take_number(&rest, &value)))
		return;
	task = &record->tasks[place];
	switch ((enum array_event)event[0]) {
	case ARRAY_STARTED:
		task->has_started = true;
		task->job = value;
		break;
	case ARRAY_JOB:
		task->job = value;
		break;
	case ARRAY_CANCELLED:
		task->is_cancelled = true;
		break;
	case ARRAY_ENDED:
		task->has_ended = true;
		task->status = (int)(value & 0xff);
		break;
	case ARRAY_NOT_TRIED:
		task->is_tried = false;
		return;
	case ARRAY_TRIED:
		break;
	}
	task->is_tried = task->is_tried || event[0] != ARRAY_CANCELLED;
}

int array_record_read(struct array_record *record)
{
	struct stat st;
	autofree char *text = NULL;
	char *rest, *line;
	ssize_t n;

	if (fstat(record->fd, &st) < 0)
		return -errno;
	if (st.st_size > RECORD_SIZE_MAX)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = pread(record->fd, text, (size_t)st.st_size, 0);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	rest = strrchr(text, '\n');
	if (!rest || strncmp(text, "l ", 2) != 0)
		return -EINVAL;
	*rest = '\0';
	rest = text;
	line = strsep(&rest, "\n");
	if (!record->list.count && array_list_read(line + 2, &record->list, NULL) < 0)
		return -EINVAL;
	while (rest && (line = strsep(&rest, "\n")))
		apply(record, line);
	return 0;
}

int array_record_open(const char *path, struct array_record *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	text_copy(ret->path, sizeof(ret->path), path);
	ret->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
	r = ret->fd < 0 ? -errno : array_record_read(ret);
	if (r < 0)
		close_fd(&ret->fd);
	return r;
}

int array_record_open_id(uint64_t array, struct array_record *ret)
{
	char link[PATH_MAX];
	int r = link_path(array, link);

	return r < 0 ? r : array_record_open(link, ret);
}

int array_record_find_task(uint64_t array, unsigned index, struct array_task *ret)
{
	static struct array_record record;
	int place, r = array_record_open_id(array, &record);

	if (r < 0)
		return r;
	close_fd(&record.fd);
	place = array_list_find(&record.list, index);
	if (place < 0)
		return -ESRCH;
	*ret = record.tasks[place];
	return 0;
}

static int add_line(int fd, enum array_event event, unsigned index, uint64_t value)
{
	char line[64];
	int size = snprintf(line, sizeof(line), "%c %u %llu\n", (char)event, index,
		(unsigned long long)value);

	return write(fd, line, (size_t)size) == size ? 0 : -EIO;
}

int array_record_add(const struct array_record *record, enum array_event event,
	unsigned index, uint64_t value)
{
	return add_line(record->fd, event, index, value);
}

void array_record_note(
	const char *path, enum array_event event, unsigned index, uint64_t value)
{
	autofd int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd >= 0)
		(void)add_line(fd, event, index, value);
}

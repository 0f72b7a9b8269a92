#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "answer.h"
#include "fdio.h"
#include "parse.h"
#include "poll_share.h"

enum { LOCKS = 4 };

#define HEAD "gpulease-poll-1 "

static bool path_of(const char *folder, const char *name, char out[PATH_MAX])
{
	struct text text = text_on(out, PATH_MAX);

	text_addf(&text, "%s/%s", folder, name);
	return !text.cut;
}

/* --- the answer ------------------------------------------------------------------------ */

/* Reads the first line, `gpulease-poll-1 MS answer` or `… silent`. */
static bool read_head(struct poll_answer *answer)
{
	char *line = answer->memory, *end = strchr(line, '\n'), *word;
	uint64_t at_ms;

	if (!end || strncmp(line, HEAD, strlen(HEAD)) != 0)
		return false;
	*end = '\0';
	line += strlen(HEAD);
	word = strchr(line, ' ');
	if (!word)
		return false;
	*word++ = '\0';
	if (parse_u64(line, INT64_MAX, &at_ms, NULL) < 0)
		return false;
	answer->at_ms = (int64_t)at_ms;
	answer->is_silent = strcmp(word, "silent") == 0;
	answer->text = end + 1;
	return true;
}

int poll_share_read(const char *folder, struct poll_answer *ret)
{
	char path[PATH_MAX], *grown;
	size_t size;
	int r;

	*ret = (struct poll_answer){ .text = NULL };
	if (!path_of(folder, "poll.answer", path))
		return POLL_SHARE_NONE;
	r = fdio_read_all(AT_FDCWD, path, 1, ANSWER_MAX, &ret->memory, &size);
	/* what was read has no NUL behind it */
	grown = r == 0 ? realloc(ret->memory, size + 1) : NULL;
	if (grown) {
		ret->memory = grown;
		grown[size] = '\0';
		if (read_head(ret))
			return 0;
	}
	free(ret->memory);
	ret->memory = NULL;
	return POLL_SHARE_NONE;
}

void poll_share_write(const char *folder, const struct poll_answer *answer)
{
	char path[PATH_MAX], temporary[PATH_MAX], host[65] = "", name[128];
	struct poll_answer last;
	autofree char *text = NULL;
	int size;
	bool is_newer;

	if (poll_share_read(folder, &last) == 0) {
		is_newer =
			last.at_ms > answer->at_ms &&
			last.at_ms < answer->at_ms + 2 * (int64_t)POLL_SHARE_STOPPED_MS;
		free(last.memory);
		if (is_newer)
			return;
	}
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(name, sizeof(name), "poll.%s.%ld", host, (long)getpid());
	size = asprintf(&text, HEAD "%lld %s\n%s", (long long)answer->at_ms,
		answer->is_silent ? "silent" : "answer",
		answer->text ? answer->text : "");
	if (size < 0) {
		text = NULL;
		return;
	}
	if (path_of(folder, "poll.answer", path) && path_of(folder, name, temporary))
		(void)!fdio_replace(AT_FDCWD, path, temporary, text, (size_t)size, 0600);
}

/* --- the lock -------------------------------------------------------------------------- */

/* Whether the holder of @fd has had it for so long that it must be stopped. */
static bool is_stopped(int fd, int64_t now_real_ms)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return true;
	return now_real_ms - (int64_t)st.st_mtim.tv_sec * 1000 > POLL_SHARE_STOPPED_MS;
}

int poll_share_lock(const char *folder, int64_t now_real_ms, int *ret_fd)
{
	*ret_fd = -1;
	for (int i = 0; i < LOCKS; i++) {
		char path[PATH_MAX], name[16];
		autofd int fd = -1;

		(void)snprintf(name, sizeof(name), "poll.lock%d", i);
		if (!path_of(folder, name, path))
			return 0;
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return 0;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			(void)futimens(fd, NULL);
			*ret_fd = take_fd(&fd);
			return 0;
		}
		if (errno != EWOULDBLOCK)
			return 0;
		if (!is_stopped(fd, now_real_ms))
			return POLL_SHARE_BUSY;
	}
	return 0;
}

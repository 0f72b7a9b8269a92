#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "job_name.h"
#include "record.h"
#include "statedir.h"

#define PREFIX "name:"
#define SUFFIX ".name"

enum {
	LINK_NAME_SIZE = TOKEN_SIZE + sizeof(SUFFIX) - 1,
	PREFIX_SIZE = sizeof(PREFIX) - 1,
	OLD_MS = 60 * 1000,
};

/* --- pure ---------------------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
	uint64_t hash = text_hash(TEXT_HASH_BEGIN, name, strlen(name));

	return hash ? hash : 1; /* 0 stands for no hash */
}

uint64_t job_name_hash(const char *name)
{
	return record_text_size(name) < NAME_KEPT_SIZE ? 0 : hash_of(name);
}

void job_name_shorten(char name[NAME_SIZE_MAX])
{
	char least[NAME_LEAST_SIZE];

	text_copy(least, sizeof(least), name);
	text_copy(name, NAME_SIZE_MAX, least);
}

uint64_t job_name_copy(char out[NAME_SIZE_MAX], const char *name)
{
	text_copy(out, NAME_SIZE_MAX, name);
	return job_name_hash(name);
}

bool job_name_is_whole(const char *name, uint64_t hash)
{
	return job_name_hash(name) == hash;
}

uint64_t job_name_key(const char *name, uint64_t hash)
{
	return hash ? hash : hash_of(name);
}

/* --- links --------------------------------------------------------------------------- */

static void link_name(char out[LINK_NAME_SIZE], const char *token)
{
	(void)snprintf(out, LINK_NAME_SIZE, "%s" SUFFIX, token);
}

int job_name_write(const struct statedir *dir, const char *token, const char *name)
{
	char entry[LINK_NAME_SIZE], target[PREFIX_SIZE + NAME_SIZE_MAX];

	link_name(entry, token);
	(void)snprintf(target, sizeof(target), PREFIX "%s", name);
	if (symlinkat(target, dir->live_fd, entry) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

bool job_name_complete(const struct statedir *dir, const char *token, uint64_t hash,
	char name[NAME_SIZE_MAX])
{
	char entry[LINK_NAME_SIZE], target[PREFIX_SIZE + NAME_SIZE_MAX];
	ssize_t size;

	if (job_name_is_whole(name, hash))
		return true;
	if (!is_token(token))
		return false;
	link_name(entry, token);
	size = readlinkat(dir->live_fd, entry, target, sizeof(target));
	if (size <= PREFIX_SIZE || size == sizeof(target) ||
		memcmp(target, PREFIX, PREFIX_SIZE) != 0)
		return false;
	target[size] = '\0';
	if (!job_name_is_whole(target + PREFIX_SIZE, hash))
		return false;
	memcpy(name, target + PREFIX_SIZE, (size_t)size + 1 - PREFIX_SIZE);
	return true;
}

void job_name_remove(const struct statedir *dir, const char *token)
{
	char entry[LINK_NAME_SIZE];

	link_name(entry, token);
	if (is_token(token))
		(void)unlinkat(dir->live_fd, entry, 0);
}

bool job_name_is_link(const char *entry)
{
	return strlen(entry) == LINK_NAME_SIZE - 1 &&
	       strcmp(entry + TOKEN_SIZE - 1, SUFFIX) == 0;
}

bool job_name_is_old(int live_fd, const char *entry)
{
	struct stat st;

	return fstatat(live_fd, entry, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       clock_real_ms() - (int64_t)st.st_mtime * 1000 > OLD_MS;
}

#include <errno.h>
#include <sys/stat.h>

#include "find_program.h"
#include "rights.h"
#include "text.h"

/* @is_path: the user has written it, so a folder in it that is closed to them is worth telling */
static int find_program_check(const char *path, bool is_path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return is_path && errno == EACCES ? -EACCES : -ENOENT;
	/* access() asks for the real user, not for what set-ID bits make of this process */
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

static int find_program_in_path(const char *program, char ret[PATH_MAX])
{
	const char *path = getenv("PATH");
	int result = -ENOENT;

	if (strchr(program, '/')) {
		if (snprintf(ret, PATH_MAX, "%s", program) >= PATH_MAX)
			return -ENOENT;
		return find_program_check(ret, true);
	}
	for (path = path ? path : "/usr/bin:/bin"; *program; path++) {
		size_t size = strcspn(path, ":");
		/* an empty entry of $PATH is the current directory */
		int wanted = snprintf(ret, PATH_MAX, "%.*s%s%s", (int)size, path,
			size ? "/" : "./", program);
		int r = wanted < PATH_MAX ? find_program_check(ret, false) : -ENOENT;

		if (r == 0)
			return 0;
		if (r == -EACCES)
			result = r;
		path += size;
		if (!*path)
			break;
	}
	return result;
}

int find_program(const char *program, char ret[PATH_MAX])
{
	int r;

	/* a lent group could see folders that are closed to the user */
	rights_as_user_begin();
	r = find_program_in_path(program, ret);
	rights_as_user_end();
	return r;
}

int find_program_beside(const char *name, char ret[PATH_MAX])
{
	char own[PATH_MAX] = "";
	struct text text = text_on(ret, PATH_MAX);

	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		return -ENOENT;
	text_add_bytes(&text, own, (size_t)(text_base_name(own) - own));
	text_add(&text, name);
	return text.cut || access(ret, X_OK) < 0 ? -ENOENT : 0;
}

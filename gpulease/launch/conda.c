#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "conda.h"
#include "fdio.h"
#include "find_program.h"
#include "parse.h"
#include "rights.h"
#include "text.h"
#include "userfile.h"
#include "words.h"

enum { LIST_MAX = 64 * 1024 }; /* bytes of conda's list of environments that are read */

/* --- paths ------------------------------------------------------------------------- */

/*
 * Makes @out: @path, with $HOME for a `~` at its beginning, and @suffix.  Returns false if HOME is
 * not set or the result is too long.
 */
static bool path_expand(const char *path, const char *suffix, char out[PATH_MAX])
{
	const char *home = *path == '~' ? getenv("HOME") : "";
	int size;

	if (!home)
		return false;
	size = snprintf(out, PATH_MAX, "%s%s%s", home, path + (*path == '~'), suffix);
	return size > 0 && size < PATH_MAX;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Whether the folder is an environment; conda itself recognizes one by its conda-meta. */
static bool is_environment(const char *prefix)
{
	char path[PATH_MAX];
	struct stat st;

	return *prefix && path_expand(prefix, "/conda-meta", path) &&
	       stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- conda ------------------------------------------------------------------------- */

/* The folders into which conda's installers put it. */
static const char *const homes[] = { "~/miniconda3", "~/anaconda3", "~/miniforge3",
	"~/mambaforge", "~/miniconda", "~/anaconda", "/opt/conda", "/opt/miniconda3",
	"/opt/anaconda3", "/opt/miniforge3" };

/* Finds the program at the path in the environment variable @name. */
static bool find_by_variable(const char *name, char out[PATH_MAX])
{
	const char *path = getenv(name);

	return path && *path != '~' && path_expand(path, "", out) && is_program(out);
}

/* Finds conda in one of its usual folders. */
static bool find_installed(char out[PATH_MAX])
{
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
		if (path_expand(homes[i], "/bin/conda", out) && is_program(out))
			return true;
	return false;
}

/* Chooses the program.  @conda and @micromamba: their paths in PATH; "": not in PATH. */
static bool choose_program(const char *conda, const char *micromamba, struct conda *ret)
{
	char *out = ret->program;

	ret->is_micromamba = false;
	if (find_by_variable("CONDA_EXE", out))
		return true;
	text_copy(out, PATH_MAX, conda);
	if (*out || find_installed(out))
		return true;
	ret->is_micromamba = true;
	if (find_by_variable("MAMBA_EXE", out))
		return true;
	text_copy(out, PATH_MAX, micromamba);
	return *out;
}

/* --- its environments -------------------------------------------------------------- */

/* Whether the folder has the environment @name. */
static bool has_environment(const char *folder, const char *name)
{
	char path[PATH_MAX], suffix[NAME_MAX + 8];
	int size = snprintf(suffix, sizeof(suffix), "/%s", name);

	return (size_t)size < sizeof(suffix) && path_expand(folder, suffix, path) &&
	       is_environment(path);
}

/* Whether one of the folders in the environment variable, separated by colons, has it. */
static bool variable_has_environment(const char *variable, const char *name)
{
	const char *list = getenv(variable);
	char folder[PATH_MAX];

	while (list && *list) {
		size_t size = strcspn(list, ":");

		(void)snprintf(folder, sizeof(folder), "%.*s", (int)size, list);
		if (size && size < sizeof(folder) && has_environment(folder, name))
			return true;
		list += size + (list[size] == ':');
	}
	return false;
}

/* Finds the folder that conda is installed in: PREFIX of PREFIX/bin/conda.  "" if that fails. */
static void find_base(const struct conda *conda, char out[PATH_MAX])
{
	const char *root = getenv("MAMBA_ROOT_PREFIX");

	if (conda->is_micromamba) {
		text_copy(out, PATH_MAX, root && *root ? root : "~/micromamba");
		return;
	}
	if (!realpath(conda->program, out))
		out[0] = '\0';
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(out, '/');

		if (slash)
			*slash = '\0';
	}
}

/* Finds the path of @name in conda's list of the environments that it has made, one path a line. */
static bool find_listed(const char *name, char out[PATH_MAX])
{
	static char noted[LIST_MAX];
	char path[PATH_MAX];
	size_t used = 0;
	autofd int fd = -1;

	if (path_expand("~/.conda/environments.txt", "", path))
		fd = userfile_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fdio_pread(fd, noted, sizeof(noted) - 1, 0, &used) < 0)
		return false;
	noted[used] = '\0';
	for (char *line = noted, *end; *line; line = end + (end < noted + used)) {
		const char *base;

		end = line + strcspn(line, "\n");
		*end = '\0';
		base = text_base_name(line);
		if (base > line && strcmp(base, name) == 0 && strlen(line) < PATH_MAX &&
			is_environment(line)) {
			text_copy(out, PATH_MAX, line);
			return true;
		}
	}
	return false;
}

/* Sets ->environment.  Returns 0, or -ENOENT with the reason in @why. */
static int find_environment(const char *name, struct conda *conda, struct why *why)
{
	char base[PATH_MAX], folder[PATH_MAX];

	text_copy(conda->environment, sizeof(conda->environment), name);
	if (strchr(name, '/')) {
		if (is_environment(name))
			return 0;
		why_set(why,
			"'%s' is no conda environment: it has no folder conda-meta; "
			"`conda env list` shows the environments",
			quote(name).text);
		return -ENOENT;
	}
	find_base(conda, base);
	if (strcmp(name, "base") == 0 ||
		variable_has_environment("CONDA_ENVS_PATH", name) ||
		variable_has_environment("CONDA_ENVS_DIRS", name) ||
		(*name && path_expand(base, "/envs", folder) &&
			has_environment(folder, name)) ||
		has_environment("~/.conda/envs", name) ||
		find_listed(name, conda->environment))
		return 0;
	why_set(why,
		"there is no conda environment '%s' in '%s/envs' or ~/.conda; `conda env "
		"list` shows the environments, and --conda also takes a path",
		quote(name).text, quote(base).text);
	return -ENOENT;
}

int conda_find(const char *name, struct conda *ret, struct why *why)
{
	char conda[PATH_MAX], micromamba[PATH_MAX];
	int r = -ENOENT;

	if (find_program("conda", conda) < 0)
		conda[0] = '\0';
	if (find_program("micromamba", micromamba) < 0)
		micromamba[0] = '\0';
	rights_as_user_begin();
	if (choose_program(conda, micromamba, ret))
		r = find_environment(name, ret, why);
	else
		why_set(why,
			"cannot find conda for --conda '%s': it is not in CONDA_EXE, in PATH, "
			"or in ~/miniconda3, ~/miniforge3, /opt/conda and the like; "
			"set CONDA_EXE to its path",
			quote(name).text);
	rights_as_user_end();
	return r;
}

/* --- activation -------------------------------------------------------------------- */

void conda_add_activation(const struct conda *conda, struct text *out)
{
	text_add(out, "eval \"$(");
	words_add_in_quotes(out, conda->program);
	if (conda->is_micromamba) {
		text_add(out, " shell hook -s posix");
	} else {
		text_add(out, " shell.posix activate ");
		words_add_in_quotes(out, conda->environment);
	}
	/*
	 * The trailing `:` hides the status of the environment's last activation script, which
	 * conda ignores as well; only a failure of conda itself counts.
	 */
	text_add(out, " && printf '\\n:' || printf '\\nexit %d' $?)\" || exit\n");
	if (!conda->is_micromamba)
		return;
	text_add(out, "micromamba activate ");
	words_add_in_quotes(out, conda->environment);
	text_add(out, " || exit\n");
}

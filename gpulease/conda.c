#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "conda.h"
#include "fdio.h"
#include "parse.h"
#include "rights.h"
#include "userfile.h"
#include "words.h"

enum { NOTED_MAX = 64 * 1024 }; /* bytes of the file in which conda notes environments */

/* --- paths ------------------------------------------------------------------------- */

/* @path, whose `~` is $HOME, and @behind; false where that is none or too long. */
static bool expand(const char *path, const char *behind, char out[PATH_MAX])
{
	const char *home = *path == '~' ? getenv("HOME") : "";
	int size;

	if (!home)
		return false;
	size = snprintf(out, PATH_MAX, "%s%s%s", home, path + (*path == '~'), behind);
	return size > 0 && size < PATH_MAX;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As conda itself tells one from any other folder. */
static bool is_environment(const char *prefix)
{
	char path[PATH_MAX];
	struct stat st;

	return *prefix && expand(prefix, "/conda-meta", path) && stat(path, &st) == 0 &&
	       S_ISDIR(st.st_mode);
}

/* --- conda ------------------------------------------------------------------------- */

/* Where its installers put it. */
static const char *const homes[] = { "~/miniconda3", "~/anaconda3", "~/miniforge3",
	"~/mambaforge", "~/miniconda", "~/anaconda", "/opt/conda", "/opt/miniconda3",
	"/opt/anaconda3", "/opt/miniforge3" };

/* The program that the variable @name names. */
static bool is_named(const char *name, char out[PATH_MAX])
{
	const char *path = getenv(name);

	return path && *path != '~' && expand(path, "", out) && is_program(out);
}

static bool is_installed(char out[PATH_MAX])
{
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
		if (expand(homes[i], "/bin/conda", out) && is_program(out))
			return true;
	return false;
}

/* @conda and @micromamba: what PATH has, "" for nothing. */
static bool find_conda(const char *conda, const char *micromamba, struct conda *ret)
{
	char *out = ret->program;

	ret->is_micromamba = false;
	if (is_named("CONDA_EXE", out))
		return true;
	text_copy(out, PATH_MAX, conda);
	if (*out || is_installed(out))
		return true;
	ret->is_micromamba = true;
	if (is_named("MAMBA_EXE", out))
		return true;
	text_copy(out, PATH_MAX, micromamba);
	return *out;
}

/* --- its environments -------------------------------------------------------------- */

static bool is_in(const char *folder, const char *name)
{
	char path[PATH_MAX], behind[NAME_MAX + 8];
	int size = snprintf(behind, sizeof(behind), "/%s", name);

	return (size_t)size < sizeof(behind) && expand(folder, behind, path) &&
	       is_environment(path);
}

/* In one of the folders in the variable, with colons between them. */
static bool is_in_listed(const char *variable, const char *name)
{
	const char *list = getenv(variable);
	char folder[PATH_MAX];

	while (list && *list) {
		size_t size = strcspn(list, ":");

		(void)snprintf(folder, sizeof(folder), "%.*s", (int)size, list);
		if (size && size < sizeof(folder) && is_in(folder, name))
			return true;
		list += size + (list[size] == ':');
	}
	return false;
}

/* The folder that conda is installed in, PREFIX of PREFIX/bin/conda; "" where that fails. */
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

/* conda notes each environment that it makes, one path a line. */
static bool is_noted(const char *name, char out[PATH_MAX])
{
	static char noted[NOTED_MAX];
	char path[PATH_MAX];
	size_t used = 0;
	autofd int fd = -1;

	if (expand("~/.conda/environments.txt", "", path))
		fd = userfile_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fdio_pread(fd, noted, sizeof(noted) - 1, 0, &used) < 0)
		return false;
	noted[used] = '\0';
	for (char *line = noted, *end; *line; line = end + (end < noted + used)) {
		const char *base;

		end = line + strcspn(line, "\n");
		*end = '\0';
		base = strrchr(line, '/');
		if (base && strcmp(base + 1, name) == 0 && strlen(line) < PATH_MAX &&
			is_environment(line)) {
			text_copy(out, PATH_MAX, line);
			return true;
		}
	}
	return false;
}

static int find_environment(const char *name, struct conda *conda, struct why *why)
{
	char base[PATH_MAX], folder[PATH_MAX];

	text_copy(conda->environment, sizeof(conda->environment), name);
	if (strchr(name, '/')) {
		if (is_environment(name))
			return 0;
		why_set(why,
			"'%s' is no conda environment, it has no folder conda-meta; "
			"conda env list shows what there is",
			quote(name).text);
		return -ENOENT;
	}
	find_base(conda, base);
	if (strcmp(name, "base") == 0 || is_in_listed("CONDA_ENVS_PATH", name) ||
		is_in_listed("CONDA_ENVS_DIRS", name) ||
		(*name && expand(base, "/envs", folder) && is_in(folder, name)) ||
		is_in("~/.conda/envs", name) || is_noted(name, conda->environment))
		return 0;
	why_set(why,
		"there is no conda environment '%s' in '%s/envs' or ~/.conda; conda env "
		"list shows what there is, and --conda takes a path, too",
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
	if (find_conda(conda, micromamba, ret))
		r = find_environment(name, ret, why);
	else
		why_set(why,
			"no conda was found for --conda '%s': not by CONDA_EXE, in PATH, "
			"nor as ~/miniconda3, ~/miniforge3, /opt/conda and the like; "
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
	/* how the last script of an environment ends says nothing; conda does not ask either */
	text_add(out, " && printf '\\n:' || printf '\\nexit %d' $?)\" || exit\n");
	if (!conda->is_micromamba)
		return;
	text_add(out, "micromamba activate ");
	words_add_in_quotes(out, conda->environment);
	text_add(out, " || exit\n");
}

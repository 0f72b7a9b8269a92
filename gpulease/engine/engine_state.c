#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "diag.h"
#include "engine_state.h"
#include "exitcodes.h"
#include "fdio.h"
#include "parse.h"
#include "slurm_ask.h"

enum { CONF_SIZE = 256 * 1024, NAME_SIZE = 128 };

/* --- the name of the cluster ----------------------------------------------------------- */

/* A name becomes a folder, so it may have no slash and not begin with a dot. */
static bool is_name(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/');
}

bool engine_state_read_name(char *text, char *out, size_t size)
{
	static const char key[] = "clustername";

	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		line += strspn(line, " \t");
		if (strncasecmp(line, key, strlen(key)) != 0)
			continue;
		line += strlen(key);
		line += strspn(line, " \t");
		if (*line != '=')
			continue;
		line++;
		line += strspn(line, " \t");
		line[strcspn(line, " \t\r#")] = '\0';
		text_copy(out, size, line);
		/* as Slurm does */
		for (char *at = out; *at; at++)
			*at = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
		return is_name(out);
	}
	return false;
}

/* Reads the name in the files that Slurm reads unless it was built for another one. */
static bool name_from_file(char out[NAME_SIZE])
{
	static char text[CONF_SIZE];
	const char *paths[] = { getenv("SLURM_CONF"), "/etc/slurm/slurm.conf",
		"/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf" };
	/* SLURM_CONF decides alone */
	size_t count = paths[0] && paths[0][0] ? 1 : ARRAY_SIZE(paths);

	for (size_t i = 0; i < count; i++) {
		autofd int fd = paths[i] ? open(paths[i], O_RDONLY | O_CLOEXEC) : -1;

		if (fd >= 0 && fdio_read_text_of(fd, text, sizeof(text)) == 0)
			return engine_state_read_name(text, out, NAME_SIZE);
	}
	return false;
}

/*
 * Writes the name of the file that keeps the answer of scontrol.  Machines that share a home
 * directory may belong to several clusters.
 */
static void name_of_kept(const char *base, struct text *path)
{
	const char *conf = getenv("SLURM_CONF");
	char host[65] = "";

	(void)gethostname(host, sizeof(host) - 1);
	text_addf(path, "%s/name-%s-%08llx", base, host,
		(unsigned long long)(text_hash(TEXT_HASH_BEGIN, conf ? conf : "",
					     conf ? strlen(conf) : 0) &
				     UINT32_MAX));
}

/* Asks scontrol.  Returns 0, or EXIT_MISUSE after a message. */
static int name_from_scontrol(char out[NAME_SIZE])
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	bool is_found;
	int r;

	slurm_words_add(&words, "scontrol");
	slurm_words_add(&words, "show");
	slurm_words_add(&words, "config");
	r = slurm_ask_well(&words, -1, &answer);
	slurm_words_release(&words);
	if (r != 0)
		return r;
	is_found = answer.text && engine_state_read_name(answer.text, out, NAME_SIZE);
	answer_release(&answer);
	if (!is_found)
		diag("scontrol show config does not tell the name of the cluster");
	return is_found ? 0 : EXIT_MISUSE;
}

static int find_name(const char *base, char out[NAME_SIZE])
{
	char path[PATH_MAX], temporary[PATH_MAX];
	struct text kept = TEXT_ON(path), text = TEXT_ON(temporary);
	int r;

	if (name_from_file(out))
		return 0;
	name_of_kept(base, &kept);
	if (fdio_read_text(AT_FDCWD, path, out, NAME_SIZE) == 0 && is_name(out))
		return 0;
	r = name_from_scontrol(out);
	text_addf(&text, "%s.%ld", path, (long)getpid());
	if (r == 0 && !kept.cut && !text.cut)
		(void)!fdio_replace(AT_FDCWD, path, temporary, out, strlen(out), 0600);
	return r;
}

/* --- the folder ------------------------------------------------------------------------ */

/* Makes the folder and those above it, like mkdir -p; new ones are for this user alone. */
static int make_folders(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0700);
		*at = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

/* Writes the folder of all clusters.  Returns 0, or EXIT_MISUSE after a message. */
static int write_base(struct text *out)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && state[0] == '/') {
		text_addf(out, "%s/gpulease/slurm", state);
	} else if (home && home[0] == '/') {
		text_addf(out, "%s/.local/state/gpulease/slurm", home);
	} else {
		diag("HOME is not set, so there is no folder for logs and state");
		return EXIT_MISUSE;
	}
	return 0;
}

static int find_folder(char out[PATH_MAX])
{
	char base[PATH_MAX], name[NAME_SIZE], logs[PATH_MAX];
	struct text text = TEXT_ON(base), folder = text_on(out, PATH_MAX),
		    inner = TEXT_ON(logs);
	int r = write_base(&text);

	if (r != 0)
		return r;
	r = text.cut ? -ENAMETOOLONG : make_folders(base);
	if (r == 0) {
		r = find_name(base, name);
		if (r != 0)
			return r;
		text_addf(&folder, "%s/%s", base, name);
		text_addf(&inner, "%s/logs", out);
		r = inner.cut ? -ENAMETOOLONG : make_folders(logs);
	}
	if (r == 0)
		return 0;
	diag("cannot write logs and state in '%s': %s", base, strerror(-r));
	return EXIT_MISUSE;
}

const char *engine_state_folder(void)
{
	static char folder[PATH_MAX];

	if (!folder[0] && find_folder(folder) != 0)
		folder[0] = '\0';
	return folder[0] ? folder : NULL;
}

int engine_state_log(uint64_t id, char out[PATH_MAX])
{
	const char *folder = engine_state_folder();
	struct text text = text_on(out, PATH_MAX);

	if (!folder)
		return EXIT_MISUSE;
	text_addf(&text, "%s/logs/%llu.log", folder, (unsigned long long)id);
	return 0;
}

/* --- the record of a job ----------------------------------------------------------------- */

/* Writes the path of the record of job @id.  Returns false if there is no folder. */
static bool record_path(uint64_t id, char out[PATH_MAX])
{
	const char *folder = engine_state_folder();
	struct text text = text_on(out, PATH_MAX);

	if (!folder)
		return false;
	text_addf(&text, "%s/logs/%llu.status", folder, (unsigned long long)id);
	return true;
}

/* Reads what stands behind the token in the record of job @id.  Returns false if there is none. */
static bool read_record(uint64_t id, char *out, size_t size)
{
	char path[PATH_MAX], line[64];
	const char *word;

	if (!record_path(id, path))
		return false;
	if (fdio_read_text(AT_FDCWD, path, line, sizeof(line)) < 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	word = strchr(line, ' ');
	text_copy(out, size, word ? word + 1 : "");
	return word;
}

/* Returns the status in the record; -1: there is none.  Sets *@ret_was_told. */
static int read_status(uint64_t id, bool *ret_was_told)
{
	char words[16], *end;
	uint64_t status;

	if (!read_record(id, words, sizeof(words)))
		return -1;
	end = strchr(words, ' ');
	*ret_was_told = end && strcmp(end, " told") == 0;
	if (end)
		*end = '\0';
	return parse_u64(words, 255, &status, NULL) < 0 ? -1 : (int)status;
}

int engine_state_record(uint64_t id)
{
	bool was_told;

	return read_status(id, &was_told);
}

int engine_state_record_untold(uint64_t id, int64_t end_s)
{
	enum { SURE_S = 3 };
	char path[PATH_MAX];
	bool was_told = false;
	int status = read_status(id, &was_told);
	struct stat st;

	if (status < 0 || was_told || !record_path(id, path) || stat(path, &st) < 0)
		return -1;
	return st.st_mtime + SURE_S <= end_s ? status : -1;
}

bool engine_state_has_old_log(uint64_t id)
{
	char word[16];

	return read_record(id, word, sizeof(word)) && strcmp(word, "reused") == 0;
}

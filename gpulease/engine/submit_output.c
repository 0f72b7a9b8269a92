#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "diag.h"
#include "exitcodes.h"
#include "job_name.h"
#include "parse.h"
#include "submit_output.h"
#include "userfile.h"

/* --- patterns -------------------------------------------------------------------------- */

/*
 * To Slurm, a pattern with a backslash in it has no other patterns, and each backslash stands for
 * the character after it.
 */
static bool is_escaped(const char *pattern)
{
	return strchr(pattern, '\\');
}

void submit_output_literally(const char *path, struct text *out)
{
	const char doubled = is_escaped(path) ? '\\' : '%';

	for (; *path; path++) {
		if (*path == doubled)
			text_add_bytes(out, path, 1);
		text_add_bytes(out, path, 1);
	}
}

void submit_output_add_pattern(const char *pattern, struct text *out)
{
	for (const char *at = pattern; *at; at++) {
		text_add_bytes(out, at, 1);
		if (*at == '%' && at[1])
			text_add_bytes(out, *++at == 'h' ? "N" : at, 1);
	}
}

int submit_output_pattern(const char *pattern, const char *folder, char out[PATH_MAX])
{
	struct text text = text_on(out, PATH_MAX);

	if (strcmp(pattern, "none") == 0)
		pattern = "/dev/null";
	if (pattern[0] != '/') {
		submit_output_literally(folder, &text);
		text_add(&text, "/");
	}
	submit_output_add_pattern(pattern, &text);
	return text.cut ? -ENAMETOOLONG : 0;
}

/* Writes the path that a pattern with backslashes means. */
static void remove_backslashes(const char *pattern, struct text *out)
{
	for (const char *at = pattern; *at; at++) {
		at += *at == '\\' && at[1];
		text_add_bytes(out, at, 1);
	}
}

int submit_output_path(const char *pattern, uint64_t id, const char *name,
	const char *user, char out[PATH_MAX])
{
	struct text text = text_on(out, PATH_MAX);

	if (is_escaped(pattern)) {
		remove_backslashes(pattern, &text);
		return text.cut ? -ENOENT : 0;
	}
	for (const char *at = pattern; *at; at++) {
		int width = 0;

		if (*at != '%') {
			text_add_bytes(&text, at, 1);
			continue;
		}
		for (at++; is_digit(*at) && width < 10; at++)
			width = 10 * width + (*at - '0');
		if (*at == 'j' || *at == 'A')
			text_addf(&text, "%0*llu", width < 10 ? width : 10,
				(unsigned long long)id);
		else if (*at == 'x' || *at == 'u')
			text_add(&text, *at == 'x' ? name : user);
		else if (*at == '%')
			text_add(&text, "%");
		else
			return -ENOENT;
	}
	return text.cut ? -ENOENT : 0;
}

/* --- the files of a job ------------------------------------------------------------------ */

/* Writes the name of the file that @pattern means, where it names one file. */
static void plain_name(const char *pattern, char out[PATH_MAX])
{
	struct text text = text_on(out, PATH_MAX);

	if (is_escaped(pattern))
		remove_backslashes(pattern, &text);
	else
		text_add(&text, pattern);
}

int submit_output_prepare(
	const struct engine_line *line, const char *pattern, struct why *why)
{
	const char *slash = strrchr(pattern, '/');
	char path[PATH_MAX];
	int r;

	/* the name of the folder is not known yet; Slurm makes it, since 23.02 */
	if (slash && !is_escaped(pattern) &&
		memchr(pattern, '%', (size_t)(slash - pattern)))
		return 0;
	plain_name(pattern, path);
	r = userfile_check_output(path, why);
	if (r == 0 && !line->settings.request.dry_run)
		r = userfile_make_folders(path, why);
	return r;
}

/* Whether the file can be read, as far as this can be known before there is a job. */
static int check_input(const char *pattern, struct why *why)
{
	char path[PATH_MAX];

	plain_name(pattern, path);
	if ((!is_escaped(pattern) && strchr(pattern, '%')) || access(path, R_OK) == 0)
		return 0;
	why_set(why, "cannot open '%s': %s", path, strerror(errno));
	return -EACCES;
}

/*
 * Writes the pattern for the option @name of @line to @out, "" if it is not given.  Returns 0, or
 * EXIT_MISUSE after a message.
 */
static int read_file(const struct engine_line *line, const char *name, char out[PATH_MAX])
{
	const char *value = engine_line_value(line, name);
	char folder[PATH_MAX];
	struct why why;
	int r;

	out[0] = '\0';
	if (!value)
		return 0;
	r = getcwd(folder, sizeof(folder)) ? 0 : -errno;
	if (r == 0)
		r = submit_output_pattern(value, folder, out);
	if (r < 0)
		why_set(&why, "cannot open '%s': %s", quote(value).text, strerror(-r));
	else if (strcmp(name, "input") == 0)
		r = check_input(out, &why);
	else
		r = submit_output_prepare(line, out, &why);
	if (r == 0)
		return 0;
	diag("%s", why.text);
	return EXIT_MISUSE;
}

int submit_output_words(
	const struct engine_line *line, const char *log, struct slurm_words *words)
{
	char out[PATH_MAX], err[PATH_MAX], in[PATH_MAX];
	bool appends;
	int r = read_file(line, "output", out);

	if (r == 0)
		r = read_file(line, "error", err);
	if (r == 0)
		r = read_file(line, "input", in);
	if (r != 0)
		return r;
	appends = line->settings.output.append || (!out[0] && !err[0]);
	slurm_words_addf(words, "--open-mode=%s", appends ? "append" : "truncate");
	slurm_words_addf(words, "--output=%s", out[0] ? out : log);
	if (err[0])
		slurm_words_addf(words, "--error=%s", err);
	if (in[0])
		slurm_words_addf(words, "--input=%s", in);
	return 0;
}

void submit_output_job_name(const struct engine_line *line, char *out, size_t size)
{
	const char *name = line->settings.request.name;
	char **command = line->settings.environment.command;

	text_copy(out, size, name ? name : text_base_name(command[0]));
}

int submit_output_of(const struct engine_line *line, uint64_t id, char out[PATH_MAX])
{
	const char *value = engine_line_value(line, "output");
	const struct passwd *user = getpwuid(getuid());
	char folder[PATH_MAX], pattern[PATH_MAX], name[NAME_SIZE_MAX];

	if (!value || !getcwd(folder, sizeof(folder)) ||
		submit_output_pattern(value, folder, pattern) < 0)
		return -ENOENT;
	submit_output_job_name(line, name, sizeof(name));
	return submit_output_path(pattern, id, name, user ? user->pw_name : "", out);
}

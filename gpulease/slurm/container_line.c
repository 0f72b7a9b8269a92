#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "container_line.h"
#include "parse.h"
#include "words.h"

/* For a script: options that give docker, or podman, the GPUs of one task … */
#define BOUND_DOCKER " --gpus \"\\\"device=$CUDA_VISIBLE_DEVICES\\\"\""
#define BOUND_PODMAN \
	" $(echo \",$CUDA_VISIBLE_DEVICES\" | sed \"s:,: --device=nvidia.com/gpu=:g\")"
/* … and options that pass on the variables of a task */
#define TASK_VARIABLES \
	" $(env | sed -n \"s/^\\(SLURM[A-Z_]*\\)=.*/--env \\1/p\" | tr \"\\n\" \" \")"

const char *const container_engine_names[ENGINES] = {
	[ENGINE_DOCKER] = "docker",
	[ENGINE_PODMAN] = "podman",
	[ENGINE_ENROOT] = "enroot",
	[ENGINE_APPTAINER] = "apptainer",
};

enum { NAME_SIZE = 256 }; /* of a variable */

/* A line being written. */
struct line {
	enum container_engine engine;
	const struct container_wish *wish;
	const struct container_words *words;
	const struct container_place *place;
	struct text *out;
	struct why *why;
};

struct mount {
	char source[PATH_MAX], target[PATH_MAX], flags[64];
};

static bool is_enroot(const struct line *line)
{
	return line->engine == ENGINE_ENROOT;
}

static bool is_apptainer(const struct line *line)
{
	return line->engine == ENGINE_APPTAINER;
}

static void add(struct line *line, const char *word)
{
	if (line->out->used)
		text_add(line->out, " ");
	words_add_quoted(line->out, word);
}

static void add_option(struct line *line, const char *name, const char *value)
{
	add(line, name);
	add(line, value);
}

/* --- the image ----------------------------------------------------------------------- */

bool container_image_is_file(const char *image)
{
	static const char suffix[] = ".sqsh";
	size_t size = strlen(image);

	return strspn(image, "./") ||
	       (size >= sizeof(suffix) &&
		       strcmp(image + size - (sizeof(suffix) - 1), suffix) == 0);
}

/* `[SCHEME://][USER@][REGISTRY#]IMAGE[:TAG][@DIGEST]` as docker writes it: REGISTRY/IMAGE. */
static void add_image(struct line *line, const char *image)
{
	char name[1024];
	struct text text = TEXT_ON(name);
	const char *scheme = strstr(image, "://"), *at, *hash;

	if (scheme)
		image = scheme + 3;
	at = strchr(image, '@');
	hash = strchr(image, '#');
	if (at && (!hash || at < hash) && strncmp(at, "@sha256:", 8) != 0)
		image = at + 1;
	for (; *image; image++)
		text_add(&text, *image == '#' ? "/" : (char[]){ *image, '\0' });
	line->out->cut |= text.cut;
	add(line, name);
}

/* --- mounts -------------------------------------------------------------------------- */

static const char *skip_dots(const char *path)
{
	while (path[0] == '.' && path[1] == '/')
		path += 2;
	return strcmp(path, ".") == 0 ? "" : path;
}

/* The flags of a mount that docker and podman know. */
static int check_flags(const struct line *line, const char *flags)
{
	static const char known[] =
		" ro rw shared rshared slave rslave private rprivate z Z ";

	for (size_t size; *flags; flags += size + (flags[size] == ',')) {
		char word[24];
		int wanted;

		size = strcspn(flags, ",");
		wanted = snprintf(word, sizeof(word), " %.*s ", (int)size, flags);
		if (wanted < (int)sizeof(word) && strstr(known, word))
			continue;
		why_set(line->why,
			"--container-mounts: %s has no flag '%s'; leave it out",
			container_engine_names[line->engine],
			quote_bytes(flags, size).text);
		return -EINVAL;
	}
	return 0;
}

static int add_mount(struct line *line, const struct mount *mount)
{
	char value[2 * PATH_MAX + 128];
	const char *ro = strstr(mount->flags, "ro") == mount->flags ? ":ro" : "";
	bool is_tmpfs = strcmp(mount->source, "tmpfs") == 0;
	int r = 0;

	if (strcmp(mount->source, "umount") == 0 && !is_enroot(line))
		return 0; /* nothing is mounted there */
	if (is_tmpfs && !is_enroot(line)) {
		add_option(line, is_apptainer(line) ? "--scratch" : "--tmpfs",
			mount->target);
		return 0;
	}
	if (is_enroot(line)) {
		(void)snprintf(value, sizeof(value), "%s:%s:%s%s%s", mount->source,
			mount->target,
			is_tmpfs                ? "x-create=dir"
			: *mount->source == 'u' ? "x-detach"
						: "x-create=auto,rbind",
			*mount->flags ? "," : "", mount->flags);
		add_option(line, "--mount", value);
		return 0;
	}
	if (is_apptainer(line)) {
		(void)snprintf(value, sizeof(value), "%s:%s%s", mount->source,
			mount->target, ro);
		add_option(line, "--bind", value);
		return 0;
	}
	r = check_flags(line, mount->flags);
	(void)snprintf(value, sizeof(value), "%s:%s%s%s", mount->source, mount->target,
		*mount->flags ? ":" : "", mount->flags);
	add_option(line, "--volume", value);
	return r;
}

/* Reads `SRC[:DST[:FLAGS]]`.  Returns 0, or -EINVAL with the reason in @why. */
static int read_mount(const struct line *line, char *item, struct mount *ret)
{
	const char *source = strsep(&item, ":"), *target = source;
	bool is_path = strcmp(source, "tmpfs") != 0 && strcmp(source, "umount") != 0;
	bool has_target = item != NULL;

	if (item)
		target = strsep(&item, ":");
	if (!*source || (has_target && !*target)) {
		why_set(line->why,
			"--container-mounts: '%s:%s' lacks a path; write SRC:DST",
			quote(source).text, has_target ? quote(target).text : "");
		return -EINVAL;
	}
	if (!is_path || *source == '/')
		text_copy(ret->source, sizeof(ret->source), source);
	else
		(void)snprintf(ret->source, sizeof(ret->source), "%s/%s",
			line->place->folder, skip_dots(source));
	(void)snprintf(ret->target, sizeof(ret->target), "%s%s",
		*target == '/' ? "" : "/", skip_dots(target));
	text_copy(ret->flags, sizeof(ret->flags), item ? item : "");
	for (char *at = ret->flags; *at; at++)
		if (*at == '+')
			*at = ',';
	return 0;
}

static int add_mounts(struct line *line)
{
	autofree char *copy = strdup(line->wish->mounts ? line->wish->mounts : "");
	char *rest = copy, *item;
	int r = copy ? 0 : -ENOMEM;

	while (r == 0 && line->wish->mounts && (item = strsep(&rest, ","))) {
		struct mount mount;

		r = read_mount(line, item, &mount);
		if (r == 0)
			r = add_mount(line, &mount);
	}
	if (r == 0 && line->wish->has_home) {
		struct mount mount = { .flags = "" };

		text_copy(mount.source, sizeof(mount.source), line->place->home);
		text_copy(mount.target, sizeof(mount.target), line->place->home);
		r = is_apptainer(line) ? 0 : add_mount(line, &mount);
	}
	return r;
}

/* The programs want a path from the root, where a path of pyxis begins anyway. */
static void add_workdir(struct line *line, const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s%s", *line->wish->workdir == '/' ? "" : "/",
		line->wish->workdir);
	add_option(line, name, path);
}

/* --- variables ----------------------------------------------------------------------- */

/* Variables that programs on several GPUs read; pyxis passes on all. */
static const char *const passed[] = { "MASTER_", "NCCL_", "TORCH_", "OMP_", "WANDB_",
	"HF_" };

/* Removes the first item, `NAME` or `NAME=VALUE`, from *@list.  Returns its size, 0 at the end. */
static size_t take_item(const char **list, const char **ret_item, char name[NAME_SIZE])
{
	size_t size;

	if (!*list)
		return 0;
	*list += strspn(*list, ",");
	*ret_item = *list;
	size = strcspn(*list, ",");
	*list += size;
	(void)snprintf(name, NAME_SIZE, "%.*s", (int)size, *ret_item);
	name[strcspn(name, "=")] = '\0';
	return size;
}

/* Whether @name is one of the @count words, in any case. */
static bool is_word(const char *const *words, size_t count, const char *name)
{
	while (count)
		if (strcasecmp(words[--count], name) == 0)
			return true;
	return false;
}

/* Words of --export that are no names. */
static const char *const word_all[] = { "ALL" }, *const none[] = { "NONE", "NIL" };

/* Variables that an image sets itself: pyxis leaves them as they are there. */
static const char *const of_image[] = { "PATH", "LD_LIBRARY_PATH" };

static bool has_all(const char *list)
{
	const char *item;
	char name[NAME_SIZE];

	while (take_item(&list, &item, name))
		if (is_word(word_all, 1, name))
			return true;
	return false;
}

/* Adds an option for each variable that --export names. */
static void add_exported(struct line *line)
{
	const char *list = line->words->exported, *item;
	char name[NAME_SIZE];

	while (take_item(&list, &item, name))
		if (!is_word(word_all, 1, name) &&
			!is_word(none, ARRAY_SIZE(none), name) &&
			!is_word(of_image, ARRAY_SIZE(of_image), name))
			add_option(line, "--env", name);
}

/*
 * Adds --export.  A container gets only the variables for which there is an option, except with
 * apptainer.  The other programs, and the shell that starts them, need the PATH of the user, and
 * other variables such as DOCKER_HOST.  So here --export only sets values.
 */
static void add_export(struct line *line)
{
	const char *list = line->words->exported, *item;
	autofree char *value = NULL;
	char name[NAME_SIZE];
	struct text text;
	size_t size;
	bool has_value = is_apptainer(line);

	if (!list)
		return;
	size = strlen(list) + 16;
	value = malloc(size);
	if (!value) {
		line->out->cut = true;
		return;
	}
	text = text_on(value, size);
	text_addf(&text, "--export=%s", has_value ? list : word_all[0]);
	while (!is_apptainer(line) && (size = take_item(&list, &item, name))) {
		if (!memchr(item, '=', size) ||
			is_word(of_image, ARRAY_SIZE(of_image), name))
			continue;
		text_addf(&text, ",%.*s", (int)size, item);
		has_value = true;
	}
	if (has_value)
		add(line, value);
}

/* Adds an option for each name of --container-env. */
static void add_names(struct line *line)
{
	const char *list = line->wish->variables, *item;
	char name[NAME_SIZE];

	while (take_item(&list, &item, name))
		add_option(line, "--env", name);
}

/* Adds an option for each variable of the caller that programs on several GPUs read. */
static void add_passed(struct line *line)
{
	for (char **at = line->place->variables; at && *at; at++)
		for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
			char name[NAME_SIZE];

			if (strncmp(*at, passed[i], strlen(passed[i])) != 0)
				continue;
			text_copy(name, sizeof(name), *at);
			name[strcspn(name, "=")] = '\0';
			add_option(line, "--env", name);
		}
}

static void add_variables(struct line *line)
{
	/* apptainer passes on all */
	if (is_apptainer(line))
		return;
	if (is_enroot(line))
		add_option(line, "--env", "NVIDIA_VISIBLE_DEVICES");
	if (line->wish->has_home)
		add_option(line, "--env", "HOME");
	add_exported(line);
	add_names(line);
	if (!line->words->exported || has_all(line->words->exported))
		add_passed(line);
}

/* --- the engines --------------------------------------------------------------------- */

static void add_command(struct line *line, const char *const *before)
{
	while (before && *before)
		add(line, *before++);
	for (char **at = line->words->command; *at; at++)
		add(line, *at);
}

/* What a shell in the job does for docker and podman: it asks for the GPUs. */
static void add_docker_shell(struct line *line)
{
	const char *name = container_engine_names[line->engine];
	const struct container_place *place = line->place;
	bool is_podman = line->engine == ENGINE_PODMAN;
	char script[4 * PATH_MAX + 1024], run[256];
	struct text text = TEXT_ON(script);

	/* tasks in several containers share memory by NCCL, which needs the pids of the machine */
	(void)snprintf(run, sizeof(run), "exec %s run%s%s --network host --ipc host",
		name, line->wish->name && place->count == 1 ? "" : " --rm",
		place->count > 1 ? " --pid host" : " --init");
	if (place->is_bound) {
		text_addf(&text, "%s%s%s \"$@\"", run,
			is_podman ? BOUND_PODMAN : BOUND_DOCKER,
			place->has_tasks ? TASK_VARIABLES : "");
	} else {
		text_add(&text, "args=$(");
		words_add_quoted(&text, place->gpulease);
		text_addf(&text, " --docker-args%s) && eval \"%s $args%s \\\"\\$@\\\"\"",
			is_podman ? " podman" : "", run,
			place->has_tasks ? TASK_VARIABLES : "");
	}
	add(line, "sh");
	add_option(line, "-c", script);
	add(line, name);
}

static int add_docker(struct line *line)
{
	const struct container_wish *wish = line->wish;
	char user[48];
	int r;

	add_docker_shell(line);
	add(line, line->words->has_pty && line->place->count == 1 ? "-it" : "-i");
	if (wish->name && line->place->count == 1) {
		char name[256];

		text_copy(name, sizeof(name), wish->name);
		name[strcspn(name, ":")] = '\0';
		add_option(line, "--name", name);
	}
	r = add_mounts(line);
	if (wish->workdir)
		add_workdir(line, "--workdir");
	add_variables(line);
	if (wish->keeps_user && line->engine == ENGINE_PODMAN)
		add_option(line, "--userns", "keep-id");
	else if (wish->keeps_user) {
		(void)snprintf(user, sizeof(user), "%u:%u", (unsigned)line->place->uid,
			(unsigned)line->place->gid);
		add_option(line, "--user", user);
	}
	if (wish->is_readonly)
		add(line, "--read-only");
	if (!wish->has_entrypoint)
		add_option(line, "--entrypoint", "");
	add_image(line, wish->image);
	add_command(line, NULL);
	return r;
}

static int add_enroot(struct line *line)
{
	const struct container_wish *wish = line->wish;
	const char *const change[] = { "sh", "-c", "cd \"$0\" && exec \"$@\"",
		wish->workdir, NULL };
	int r;

	if (line->place->has_tasks) {
		add(line, "sh");
		add_option(line, "-c", "exec enroot start" TASK_VARIABLES " \"$@\"");
		add(line, "enroot");
	} else {
		add_option(line, "enroot", "start");
	}
	if (!wish->keeps_user)
		add(line, "--root");
	if (!wish->is_readonly)
		add(line, "--rw");
	r = add_mounts(line);
	add_variables(line);
	add(line, wish->image);
	add_command(line, wish->workdir ? change : NULL);
	return r;
}

static int add_apptainer(struct line *line)
{
	const struct container_wish *wish = line->wish;
	int r;

	add_option(line, "apptainer", "exec");
	add(line, "--nv");
	if (!wish->has_home)
		add(line, "--no-home");
	if (!wish->is_readonly)
		add(line, "--writable-tmpfs");
	r = add_mounts(line);
	if (wish->workdir)
		add_workdir(line, "--pwd");
	add(line, wish->image);
	add_command(line, NULL);
	return r;
}

int container_line_write(enum container_engine engine, const struct container_wish *wish,
	const struct container_words *words, const struct container_place *place,
	struct text *out, struct why *why)
{
	static int (*const engines[ENGINES])(struct line *) = {
		[ENGINE_DOCKER] = add_docker,
		[ENGINE_PODMAN] = add_docker,
		[ENGINE_ENROOT] = add_enroot,
		[ENGINE_APPTAINER] = add_apptainer,
	};
	struct line line = { engine, wish, words, place, out, why };
	int r;

	add(&line, place->program);
	for (char **at = words->options; *at; at++)
		add(&line, *at);
	add_export(&line);
	add(&line, "--");
	r = engines[engine](&line);
	if (r < 0)
		return r;
	if (!out->cut)
		return 0;
	why_set(why, "the line for %s is too long", container_engine_names[engine]);
	return -EINVAL;
}

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "container_part.h"
#include "container_line.h"
#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "option_table.h"
#include "parse.h"
#include "slurm_programs.h"

extern char **environ;

static bool is_installed(enum container_engine engine)
{
	char path[PATH_MAX];

	return find_program(container_engine_names[engine], path) == 0;
}

/* The program that runs @image: the first that is installed. */
static enum container_engine choose_engine(const char *image)
{
	static const enum container_engine by_kind[][2] = {
		{ ENGINE_DOCKER, ENGINE_PODMAN },
		{ ENGINE_ENROOT, ENGINE_APPTAINER },
	};
	const enum container_engine *of = by_kind[container_image_is_file(image)];

	return !is_installed(of[0]) && is_installed(of[1]) ? of[1] : of[0];
}

/* Whether the options have what a container needs. */
static int check_wish(
	const struct container_wish *wish, const char *first, struct why *why)
{
	if (wish->image && wish->image[0] != '-')
		return 0;
	if (wish->image)
		why_set(why, "--container-image: '%s' is not the name of an image",
			quote(wish->image).text);
	else if (wish->bundle)
		why_set(why, "--container: this is a bundle for runc(8); for docker give "
			     "--container-image IMAGE");
	else if (wish->name)
		why_set(why,
			"--container-name: a container starts from an image here, not "
			"from an earlier step; add --container-image IMAGE");
	else
		why_set(why, "--%s goes only with --container-image", first);
	return -EINVAL;
}

/*
 * Has gpulease's own parser check the options that stay, so that the line is not refused when it is
 * run.
 */
static int settle(char *program, const struct container_words *words,
	struct settings *settings, const char *first, struct why *why)
{
	static char end[] = "--";
	size_t count = 0;
	char **line, **next, *export = NULL;
	int r;

	while (words->command[count])
		count++;
	/* the settings point to it, to the end of this process */
	line = next = calloc(words->count + count + 4, sizeof(*line));
	if (!line || (words->exported &&
			     asprintf(&export, "--export=%s", words->exported) < 0))
		return -ENOMEM;
	*next++ = program;
	memcpy(next, words->options, words->count * sizeof(*next));
	next += words->count;
	if (export)
		*next++ = export;
	*next++ = end;
	memcpy(next, words->command, count * sizeof(*next));
	r = command_line_parse(line, settings, why);
	if (r == 0 && settings->verb.kind == VERB_RUN)
		return 0;
	free(line);
	if (r < 0)
		return r;
	why_set(why, "--%s goes only with a command", first);
	return -EINVAL;
}

/* Says what the line does not do. */
static void note_differences(enum container_engine engine,
	const struct container_wish *wish, const struct container_place *place)
{
	const char *name = container_engine_names[engine];
	bool is_docker = engine == ENGINE_DOCKER || engine == ENGINE_PODMAN;

	if (wish->name && is_docker && place->count == 1)
		diag("--container-name: %s keeps the container until %s rm removes it",
			name, name);
	else if (wish->name)
		diag("--container-name has no effect with %s here; leave it out", name);
	if (wish->save)
		diag("--container-save has no effect: %s writes no squashfs file at the "
		     "end",
			name);
	if (container_image_is_file(wish->image))
		diag("docker cannot run the squashfs file '%s'", wish->image);
	if (!is_installed(engine))
		diag("%s is not installed here", name);
}

static bool is_binding(const struct settings *settings)
{
	const char *bind = settings->tasks.bind;

	return bind && settings->tasks.count > 1 && strcmp(bind, "none") != 0 &&
	       strcmp(bind, "closest") != 0;
}

/* The name of gpulease for a script: @program, if it is that. */
static const char *name_gpulease(const char *program)
{
	static const char name[] = "gpulease";
	static char path[PATH_MAX];

	if (strcmp(text_base_name(program), "srun") != 0)
		return program;
	return find_program(name, path) == 0 || slurm_programs_gpulease(path) < 0 ? name
										  : path;
}

static int print_line(char **argv, struct why *why)
{
	struct container_wish wish = { .image = NULL };
	static struct container_words words;
	struct container_place place = { .program = argv[0], .variables = environ };
	/* to the end of this process: it frees nothing */
	static struct settings settings;
	static char folder[PATH_MAX], line[512 * 1024];
	struct text text = TEXT_ON(line);
	const char *first = "container-image";
	enum container_engine engine;
	int r = container_options_read(argv, &wish, &words, &first, why);

	if (r == 0)
		r = check_wish(&wish, first, why);
	if (r == 0)
		r = settle(argv[0], &words, &settings, first, why);
	if (r < 0)
		return r;
	place.gpulease = name_gpulease(argv[0]);
	place.folder = getcwd(folder, sizeof(folder)) ? folder : ".";
	place.home = getenv("HOME") ? getenv("HOME") : "/root";
	place.uid = getuid();
	place.gid = getgid();
	place.count = settings.tasks.count;
	place.has_tasks = are_tasks_wanted(&settings);
	place.is_bound = is_binding(&settings);
	engine = choose_engine(wish.image);
	r = container_line_write(engine, &wish, &words, &place, &text, why);
	if (r < 0)
		return r;
	note_differences(engine, &wish, &place);
	diag("--%s is an option of pyxis, a plugin of Slurm; this line does the same with "
	     "%s:",
		first, container_engine_names[engine]);
	(void)fprintf(stderr, "%s\n", line);
	return 0;
}

int container_main(char **argv)
{
	struct why why = WHY_NONE;
	int r;

	if (!argv[1]) {
		diag("gpulease starts this program itself");
		return EXIT_MISUSE;
	}
	option_table_make();
	r = print_line(argv + 1, &why);
	if (r < 0)
		diag("%s", why.text[0] ? why.text : strerror(-r));
	return EXIT_MISUSE;
}

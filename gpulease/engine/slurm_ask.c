#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "parse.h"
#include "slurm_ask.h"

extern char **environ;

/* --- the environment ----------------------------------------------------------------------- */

static bool is_of_slurm(const char *variable)
{
	static const char *const kept[] = { "SLURM_CONF", "SLURM_JWT" };
	static const char *const removed[] = { "SLURM_", "SBATCH_", "SALLOC_", "SQUEUE_",
		"SACCT_", "SINFO_", "SCANCEL_" };

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(removed); i++)
		if (strncmp(variable, removed[i], strlen(removed[i])) == 0)
			return true;
	return false;
}

void slurm_environment_clean(void)
{
	char **next = environ;

	for (char **at = environ; *at; at++)
		if (!is_of_slurm(*at))
			*next++ = *at;
	*next = NULL;
}

/* --- words --------------------------------------------------------------------------------- */

/* Appends @word, which is memory of its own, or NULL if there was none. */
static void take_word(struct slurm_words *words, char *word)
{
	size_t room = words->room ? 2 * words->room : 32;
	char **list;

	if (words->count + 1 >= words->room) {
		list = realloc(words->list, room * sizeof(*list));
		words->is_cut |= !list;
		if (list) {
			words->list = list;
			words->room = room;
		}
	}
	words->is_cut |= !word;
	if (words->is_cut) {
		free(word);
		return;
	}
	words->list[words->count++] = word;
	words->list[words->count] = NULL;
}

void slurm_words_add(struct slurm_words *words, const char *word)
{
	take_word(words, word ? strdup(word) : NULL);
}

void slurm_words_addf(struct slurm_words *words, const char *format, ...)
{
	va_list args;
	char *word;

	va_start(args, format);
	if (vasprintf(&word, format, args) < 0)
		word = NULL;
	va_end(args);
	take_word(words, word);
}

void slurm_words_release(struct slurm_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->list[i]);
	free(words->list);
	*words = (struct slurm_words){ .count = 0 };
}

/* --- a question ---------------------------------------------------------------------------- */

static void print_words(const struct slurm_words *words)
{
	static uint64_t last;
	char line[1024];
	struct text text = TEXT_ON(line);
	uint64_t hash;

	for (size_t i = 0; i < words->count; i++)
		text_addf(&text, "%s%s", i ? " " : "", words->list[i]);
	/* not each time that a process looks again */
	hash = text_hash(TEXT_HASH_BEGIN, line, text.used);
	if (hash != last)
		verbose("runs %s", line);
	last = hash;
}

int slurm_find(const char *program)
{
	char path[PATH_MAX];

	if (find_program(program, path) == 0)
		return 0;
	diag("the engine slurm needs %s, which is not in PATH; use a machine of the "
	     "cluster, or --engine local",
		program);
	return EXIT_MISUSE;
}

int slurm_ask_begin(const struct slurm_words *words, struct answer *answer)
{
	int r;

	if (words->is_cut) {
		diag("cannot run a program of Slurm: %s", strerror(ENOMEM));
		return EXIT_MISUSE;
	}
	r = slurm_find(words->list[0]);
	if (r != 0)
		return r;
	print_words(words);
	/* not for longer: jobs must not inherit this */
	(void)setenv("SLURM_TIME_FORMAT", "%s", 1);
	r = answer_begin(answer, words->list);
	(void)unsetenv("SLURM_TIME_FORMAT");
	if (r == 0)
		return 0;
	diag("cannot run %s: %s", words->list[0], strerror(-r));
	return EXIT_MISUSE;
}

int slurm_ask(const struct slurm_words *words, int in_fd, int64_t deadline_ms,
	struct answer *ret)
{
	int r;

	*ret = ANSWER_NONE;
	ret->in_fd = in_fd;
	r = slurm_ask_begin(words, ret);
	if (r != 0)
		return r;
	answer_wait(ret, deadline_ms);
	if (ret->fault == 0)
		return 0;
	if (ret->fault == -ETIMEDOUT)
		diag("%s does not answer in %lld s; gpulease --engine slurm --doctor "
		     "looks for the reason",
			words->list[0], (long long)deadline_ms / 1000);
	else
		diag("cannot read what %s prints: %s", words->list[0],
			strerror(-ret->fault));
	answer_release(ret);
	return EXIT_MISUSE;
}

int slurm_ask_well(const struct slurm_words *words, int in_fd, struct answer *ret)
{
	int r = slurm_ask(words, in_fd, SLURM_DEADLINE_MS, ret);

	if (r != 0 || ret->status == 0)
		return r;
	diag("%s has failed with status %d%s%s", words->list[0], ret->status,
		ret->error[0] ? ": " : "", ret->error);
	answer_release(ret);
	return EXIT_MISUSE;
}

/* --- fields -------------------------------------------------------------------------------- */

struct slurm_mark slurm_mark(void)
{
	struct slurm_mark mark;
	uint64_t number = 0;

	/* without random bytes, it is still not known before the question */
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = (uint64_t)clock_boot_ms() << 20 ^ (uint64_t)getpid();
	(void)snprintf(
		mark.text, sizeof(mark.text), "%016llx", (unsigned long long)number);
	return mark;
}

void slurm_words_add_fields(struct slurm_words *words, const char *const *names,
	size_t count, const struct slurm_mark *mark)
{
	char list[1024];
	struct text text = TEXT_ON(list);

	for (size_t i = 0; i < count; i++)
		if (names[i])
			text_addf(&text, "%s%s:%c", i ? "," : "", names[i],
				SLURM_FIELD_END);
		else
			text_addf(&text, "%s%c", mark->text, SLURM_FIELD_END);
	slurm_words_add(words, "-O");
	slurm_words_addf(words, "%s", list);
}

int slurm_next_line(char **text, char **fields, size_t most)
{
	static char empty[] = "";
	size_t count = 0;
	char *line = *text;

	if (!line || !*line)
		return -1;
	*text += strcspn(line, "\n");
	if (**text)
		*(*text)++ = '\0';
	while (line && count < most) {
		char *end = strchr(line, SLURM_FIELD_END);

		fields[count++] = line;
		if (end)
			*end++ = '\0';
		line = end;
	}
	for (size_t i = count; i < most; i++)
		fields[i] = empty;
	return (int)count;
}

uint64_t slurm_number(const char *text, uint64_t most)
{
	uint64_t number;

	return parse_u64(text, most, &number, NULL) == 0 ? number : 0;
}

#include <errno.h>
#include <stdio.h>

#include "diag.h"
#include "engine_tasks.h"
#include "exitcodes.h"
#include "slurm_ask.h"

/* Whether @word has @size digits, `_` and digits, and nothing else. */
static bool is_task(const char *word, size_t size)
{
	size_t array = strspn(word, "0123456789");
	size_t task = array < size && word[array] == '_'
			      ? strspn(word + array + 1, "0123456789")
			      : 0;

	return array && task && array + 1 + task == size;
}

/* Reads the id that is the first thing in what @words print, which are released; 0: none. */
static uint64_t ask_id(struct slurm_words *words)
{
	struct answer answer = ANSWER_NONE;
	uint64_t id = 0;

	if (slurm_ask_begin(words, &answer) == 0) {
		answer_wait(&answer, SLURM_DEADLINE_MS);
		if (!answer.fault && answer.status == 0 && answer.text) {
			answer.text[strcspn(answer.text, " \n")] = '\0';
			id = slurm_number(answer.text, UINT64_MAX);
		}
	}
	answer_release(&answer);
	slurm_words_release(words);
	return id;
}

static uint64_t find_id(const char *task)
{
	struct slurm_words live = { .count = 0 }, ended = { .count = 0 };
	uint64_t id;

	slurm_words_add(&live, "squeue");
	slurm_words_add(&live, "-h");
	slurm_words_add(&live, "--states=all");
	slurm_words_addf(&live, "--jobs=%s", task);
	slurm_words_add(&live, "-o");
	slurm_words_add(&live, "%A");
	id = ask_id(&live);
	if (id)
		return id;
	slurm_words_add(&ended, "sacct");
	slurm_words_add(&ended, "-n");
	slurm_words_add(&ended, "-P");
	slurm_words_add(&ended, "-X");
	slurm_words_addf(&ended, "--jobs=%s", task);
	slurm_words_add(&ended, "--format=JobIDRaw");
	return ask_id(&ended);
}

/* Writes the list @word to @file with ids for tasks.  Returns 0, or an exit status. */
static int write_list(const char *word, FILE *file)
{
	for (size_t size; *word; word += size) {
		char task[48];
		uint64_t id;

		size = strcspn(word, ",");
		if (!is_task(word, size) || size >= sizeof(task)) {
			size += word[size] == ',';
			(void)fwrite(word, 1, size, file);
			continue;
		}
		text_copy(task, size + 1, word);
		id = find_id(task);
		if (!id) {
			diag("job %s is unknown; --status and --history list the jobs",
				task);
			return EXIT_NOT_DONE;
		}
		(void)fprintf(file, "%llu", (unsigned long long)id);
		if (word[size] == ',')
			(void)fputc(word[size++], file);
	}
	return 0;
}

int engine_tasks_replace(const struct engine_line *line, char **argv)
{
	int r = 0;

	if (!engine_line_has(line, "status"))
		return 0;
	for (char **word = argv + 1; *word && r == 0; word++) {
		char *list = NULL;
		size_t size;
		FILE *file;

		if (!strchr(*word, '_') || (*word)[strspn(*word, "0123456789_,")])
			continue;
		file = open_memstream(&list, &size);
		if (!file) {
			diag("cannot read '%s': %s", *word, strerror(errno));
			return EXIT_MISUSE;
		}
		r = write_list(*word, file);
		(void)fclose(file);
		*word = list; /* it stays as long as the command line */
	}
	return r;
}

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "gpulease_words.h"

void gpulease_words_add(struct gpulease_words *words, const char *word)
{
	if (words->count < GPULEASE_WORDS_MAX)
		words->list[words->count++] = (char *)word;
	words->list[words->count] = NULL;
}

int gpulease_words_begin(struct gpulease_words *words, const struct settings *settings)
{
	const struct machine_settings *machine = &settings->machine;

	words->count = 0;
	if (find_program_beside("gpulease", words->program) < 0 &&
		find_program_beside("../../bin/gpulease", words->program) < 0) {
		diag("cannot find gpulease; install it again: make install");
		return EXIT_MISUSE;
	}
	gpulease_words_add(words, words->program);
	if (machine->config) {
		gpulease_words_add(words, "--config");
		gpulease_words_add(words, machine->config);
	}
	if (machine->engine != ENGINE_AS_CONFIGURED)
		gpulease_words_add(words, machine->engine == ENGINE_SLURM
						  ? "--engine=slurm"
						  : "--engine=local");
	if (machine->dir) {
		gpulease_words_add(words, "--dir");
		gpulease_words_add(words, machine->dir);
	}
	if (machine->sim_gpus) {
		(void)snprintf(words->sim, sizeof(words->sim), "--sim=%ux%llu",
			machine->sim_gpus, (unsigned long long)machine->sim_mib);
		gpulease_words_add(words, words->sim);
	}
	return 0;
}

int gpulease_words_run(
	struct gpulease_words *words, int64_t deadline_ms, struct answer *ret)
{
	int r;

	*ret = ANSWER_NONE;
	r = answer_begin(ret, words->list);
	if (r == 0) {
		answer_wait(ret, deadline_ms);
		r = ret->fault;
	}
	if (r == 0 && ret->status <= EXIT_NOT_DONE)
		return 0;
	if (r < 0)
		diag("cannot run gpulease: %s", strerror(-r));
	else if (ret->error[0]) /* it begins with `gpulease: ` already */
		(void)fprintf(stderr, "%s\n", ret->error);
	else
		diag("gpulease has failed with status %d", ret->status);
	answer_release(ret);
	return EXIT_MISUSE;
}

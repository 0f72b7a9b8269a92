/*
 * Any command line, its words separated by newlines or NULs: no crash, and either settings that
 * keep their promises or a reason of one printable line.
 */
#include <assert.h>

#include "command_line.h"
#include "operands.h"
#include "fuzz.h"

enum { WORDS_MAX = 64 };

static void check_settings(const struct settings *s)
{
	assert(s->request.gpus <= 128 && s->machine.sim_gpus <= 128);
	assert(s->request.max_wait_ms >= -1 && s->care.limit_ms >= 0 &&
		s->care.grace_ms >= 0);
	assert(strlen(s->request.model) < sizeof(s->request.model));
	assert(s->ignored_count <= IGNORED_MAX);
	for (unsigned i = 0; i < s->ignored_count; i++)
		assert(s->ignored[i].name);
	if (s->verb.kind == VERB_RUN)
		assert(s->environment.command && s->environment.command[0]);
	assert(s->request.share_percent < 100 &&
		(s->request.gpus == 1 || !s->request.share_percent));
	assert(s->request.priority >= -1000000 && s->request.priority <= 1000000);
	for (unsigned i = 0; i < s->verb.operand_count; i++)
		assert(s->verb.operands[i]);
}

/* Checks all operands; returns how many GPUs they name. */
static uint64_t walk(struct operand_walk walk)
{
	struct operand operand;
	uint64_t count = 0;
	int r;

	while ((r = operand_next(&walk, &operand, NULL)) == 0) {
		assert(operand.word || operand.first <= operand.last);
		assert(!operand.has_instance || operand.first == operand.last);
		count += operand.last - operand.first + 1;
	}
	assert(r == OPERAND_DONE);
	return count;
}

static void walk_operands(const struct settings *s, enum operand_kind kind)
{
	(void)walk((struct operand_walk)OPERAND_WALK(
		s->verb.operands, s->verb.operand_count, kind));
}

static void walk_lists(const struct settings *s)
{
	const char *const gpus[] = { s->request.gpu_ids, s->request.allow,
		s->request.except, s->request.prefer };
	const char *const jobs[] = { s->request.after, s->request.after_ok };

	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++)
		if (gpus[i])
			(void)walk(
				(struct operand_walk)OPERAND_LIST(gpus[i], OPERAND_GPU));
	if (s->request.gpu_ids)
		assert(walk((struct operand_walk)OPERAND_LIST(
			       s->request.gpu_ids, OPERAND_GPU)) == s->request.gpus);
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		if (jobs[i]) {
			assert(strlen(jobs[i]) < AFTER_SIZE);
			assert(walk((struct operand_walk)OPERAND_LIST(
				       jobs[i], OPERAND_JOB)) <= AFTER_MAX);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = fuzz_string(data, size);
	char name[] = "gpulease", *argv[WORDS_MAX + 2] = { name };
	struct settings settings;
	struct why why = WHY_NONE;
	size_t words = 1;

	if (!text)
		return 0;
	for (char *at = text; at < text + size && words <= WORDS_MAX;
		at += strlen(at) + 1) {
		at[strcspn(at, "\n")] = '\0';
		argv[words++] = at;
	}
	if (command_line_parse(argv, &settings, &why) < 0) {
		fuzz_check_reason(&why);
		return 0;
	}
	check_settings(&settings);
	if (settings.verb.kind == VERB_RUN)
		walk_lists(&settings);
	if (settings.verb.kind == VERB_CANCEL)
		walk_operands(&settings, OPERAND_JOBS);
	if (settings.verb.kind == VERB_WAIT_FOR)
		walk_operands(&settings, OPERAND_NAME);
	if (settings.verb.kind == VERB_PAUSE || settings.verb.kind == VERB_RESUME)
		walk_operands(&settings, OPERAND_GPU);
	return 0;
}

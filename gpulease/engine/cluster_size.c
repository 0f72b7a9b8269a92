#include "cluster_size.h"
#include "parse.h"
#include "slurm_ask.h"

enum { ASK_MS = 3 * 1000 }; /* a later look asks again */

/* --- the partitions ---------------------------------------------------------------------- */

enum { SIZE_PARTITION, SIZE_CPUS, SIZE_NODES, SIZE_JOB, SIZE_FIELDS };

/* Returns the number behind the last @mark in @text; INT64_MAX: it is none, such as infinite. */
static int64_t number_behind(const char *text, char mark)
{
	const char *at = strrchr(text, mark);
	uint64_t number;

	return parse_u64(at ? at + 1 : text, INT64_MAX, &number, NULL) == 0
		       ? (int64_t)number
		       : INT64_MAX;
}

void cluster_size_read(char *text, struct cluster_size *ret)
{
	char *fields[SIZE_FIELDS];
	const char *partition = "";
	int64_t cpus = 0, nodes = 0;

	*ret = (struct cluster_size){ .cpus = 0 };
	while (slurm_next_line(&text, fields, SIZE_FIELDS) == SIZE_FIELDS) {
		/* a partition has several lines if its nodes differ */
		if (strcmp(partition, fields[SIZE_PARTITION]) != 0)
			cpus = nodes = 0;
		partition = fields[SIZE_PARTITION];
		cpus += min_i64(number_behind(fields[SIZE_CPUS], '/'), INT32_MAX);
		nodes += min_i64(number_behind(fields[SIZE_NODES], '-'), INT32_MAX);
		ret->cpus = max_i64(ret->cpus, cpus);
		ret->nodes = max_i64(
			ret->nodes, min_i64(nodes, number_behind(fields[SIZE_JOB], '-')));
	}
}

/* --- the job ----------------------------------------------------------------------------- */

/* Returns the output of @words, which are released; NULL: there is none. */
static char *ask(struct slurm_words *words, struct answer *answer)
{
	*answer = ANSWER_NONE;
	if (slurm_ask_begin(words, answer) == 0)
		answer_wait(answer, ASK_MS);
	slurm_words_release(words);
	return answer->fault || answer->status ? NULL : answer->text;
}

static bool ask_partitions(const char *names, struct cluster_size *ret)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	char *text;

	slurm_words_add(&words, "sinfo");
	slurm_words_add(&words, "-h");
	slurm_words_addf(&words, "--partition=%s", names);
	slurm_words_add(&words, "-o");
	slurm_words_add(&words, "%R\x1f%C\x1f%D\x1f%s");
	text = ask(&words, &answer);
	if (text)
		cluster_size_read(text, ret);
	answer_release(&answer);
	return text && ret->nodes;
}

static bool is_more(int64_t wish, int64_t most, const char *unit, struct text *out)
{
	if (wish <= most)
		return false;
	text_addf(out, "asks for %lld %s, and its partition has %lld", (long long)wish,
		unit, (long long)most);
	return true;
}

bool cluster_is_too_small(uint64_t id, const char *reason, struct text *out)
{
	struct slurm_words words = { .count = 0 };
	struct cluster_size size;
	struct answer answer;
	char *fields[3], *text;
	bool is_never = false;

	if (strcmp(reason, "PartitionConfig") != 0 &&
		strcmp(reason, "PartitionNodeLimit") != 0)
		return false;
	slurm_words_add(&words, "squeue");
	slurm_words_add(&words, "-h");
	slurm_words_addf(&words, "--jobs=%llu", (unsigned long long)id);
	slurm_words_add(&words, "-O");
	slurm_words_add(&words, "NumCPUs:\x1f,NumNodes:\x1f,Partition:\x1f");
	text = ask(&words, &answer);
	if (text && slurm_next_line(&text, fields, 3) >= 3 &&
		ask_partitions(fields[2], &size))
		is_never = is_more((int64_t)slurm_number(fields[0], INT32_MAX), size.cpus,
				   "CPUs", out) ||
			   is_more((int64_t)slurm_number(fields[1], INT32_MAX),
				   size.nodes, "nodes", out);
	answer_release(&answer);
	return is_never;
}

/* From the command line of gpulease to the options of Slurm's programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "cluster_gpus.h"
#include "cluster_size.h"
#include "engine_words.h"
#include "gpu_words.h"
#include "node_order.h"
#include "split.h"

/* What `sinfo -h -o %G` prints on a cluster of three kinds of node. */
static const char SINFO[] = "gpu:a100_80gb:8(S:0-1),shard:a100_80gb:64(S:0-1)\n"
			    "gpu:a100_40gb:4,gpu:a100_1g.5gb:7,nic:2\n"
			    "gpu:nvidia_geforce_rtx_4090:2\n(null)\n";

static struct cluster_gpus cluster_of(const char *text)
{
	struct cluster_gpus gpus;

	cluster_gpus_read(text, &gpus);
	return gpus;
}

static void types_and_shards_are_read(void **state)
{
	struct cluster_gpus gpus = cluster_of(SINFO);

	(void)state;
	assert_int_equal(gpus.type_count, 4);
	assert_string_equal(gpus.types[0], "a100_80gb");
	assert_string_equal(gpus.types[2], "a100_1g.5gb");
	assert_int_equal(gpus.most, 11);
	assert_int_equal(gpus.shards, 8);
	gpus = cluster_of("gpu:2,shard:8\ngpu:sim:4(S:0,1),shard:4\n");
	assert_int_equal(gpus.type_count, 1);
	assert_int_equal(gpus.most, 4);
	assert_int_equal(gpus.shards, 4);
	assert_int_equal(cluster_of("(null)\n").most, 0);
}

static void a_type_is_found_by_what_is_written(void **state)
{
	static const struct {
		const char *wish, *type; /* "": none, "*": several */
	} rows[] = {
		{ "a100_80gb", "a100_80gb" },
		{ "A100_80GB", "a100_80gb" },
		{ "a100-80gb", "a100_80gb" },
		{ "80gb", "a100_80gb" },
		{ "rtx4090", "nvidia_geforce_rtx_4090" },
		{ "RTX 4090", "nvidia_geforce_rtx_4090" },
		{ "NVIDIA GeForce RTX 4090 D", "nvidia_geforce_rtx_4090" },
		{ "a100", "*" },
		{ "a10", "" },
		{ "v100", "" },
	};
	struct cluster_gpus gpus = cluster_of(SINFO);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *type = NULL;
		struct why why = WHY_NONE;
		int r = cluster_gpus_find(&gpus, rows[i].wish, &type, &why);

		if (rows[i].type[0] == '*' || !rows[i].type[0]) {
			assert_int_equal(r, -EINVAL);
			assert_non_null(strstr(why.text, "a100_40gb"));
			assert_non_null(strstr(why.text,
				rows[i].type[0] ? "several types" : "no GPU of the"));
		} else {
			assert_int_equal(r, 0);
			assert_string_equal(type, rows[i].type);
		}
	}
}

/* Reads @text as a command line. */
static struct engine_line *read_line(const char *text)
{
	static struct engine_line line;
	static struct words words;
	struct why why = WHY_NONE;

	split(text, &words);
	assert_int_equal(engine_line_read(words.argv, &line, &why), 0);
	return &line;
}

/* Writes the words to @out, and releases them. */
static void take_words(struct slurm_words *words, char *out, size_t size)
{
	struct text text = text_on(out, size);

	assert_false(words->is_cut);
	for (size_t i = 0; i < words->count; i++)
		text_addf(&text, "%s%s", i ? " " : "", words->list[i]);
	slurm_words_release(words);
}

static void the_largest_partition_counts(void **state)
{
	static const struct {
		const char *sinfo;
		int64_t cpus, nodes;
	} rows[] = {
		{ "main|0/16/0/16|2|1-infinite\n", 16, 2 },
		{ "main|8/0/8/16|2|1-infinite\nmain|0/0/64/64|1|1-infinite\n", 80, 3 },
		{ "a|0/64/0/64|1|1-infinite\nb|0/16/0/16|4|1-infinite\n", 64, 4 },
		{ "main|0/64/0/64|8|1-4\n", 64, 4 },
		{ "main|0/64/0/64|8|4\n", 64, 4 },
		{ "", 0, 0 },
		{ "main|0/64/0/64\n", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cluster_size size;
		char text[200];

		text_copy(text, sizeof(text), rows[i].sinfo);
		for (char *at = text; *at; at++)
			if (*at == '|')
				*at = SLURM_FIELD_END;
		cluster_size_read(text, &size);
		assert_int_equal(size.cpus, rows[i].cpus);
		assert_int_equal(size.nodes, rows[i].nodes);
	}
}

static void gpus_of_one_node_are_counted(void **state)
{
	static const struct {
		const char *line;
		unsigned count;
	} rows[] = {
		{ "gpulease true", 1 },
		{ "gpulease -N 2 true", 1 },
		{ "gpulease -n 0 true", 0 },
		{ "gpulease -n 3 true", 3 },
		{ "gpulease -n 0.5 true", 0 },
		{ "gpulease --gpus=12 true", 12 },
		{ "gpulease --gpus=80gb:3,40gb:2 true", 5 },
		{ "gpulease --gpus=8 -N 4 true", 0 },
		{ "gpulease -n 4 --gpus=8 true", 0 },
		{ "gpulease -n 8 -N 4 true", 0 },
		{ "gpulease -N 4 --gpus-per-node=3 true", 3 },
		{ "gpulease --ntasks=4 --gpus-per-task=a100:3 true", 3 },
		{ "gpulease --gres=nic:9,gpu:a100:2 true", 2 },
		{ "gpulease --gres=gpu true", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(
			gpu_words_of_node(read_line(rows[i].line)), rows[i].count);
}

static void gpus_tasks_and_nodes_become_options(void **state)
{
	static const struct {
		const char *line, *words;
	} rows[] = {
		{ "gpulease true", "--gpus=1 --nodes=1 --ntasks=1" },
		{ "gpulease -n 2 true", "--gpus=2 --nodes=1 --ntasks=1" },
		{ "gpulease -n 0 true", "--nodes=1 --ntasks=1" },
		{ "gpulease --gpus=0 true", "--nodes=1 --ntasks=1" },
		{ "gpulease -n 0.5 true", "--gres=shard:4 --nodes=1 --ntasks=1" },
		{ "gpulease -n 0.3 true", "--gres=shard:3 --nodes=1 --ntasks=1" },
		{ "gpulease --gpus=80gb:0.5 true",
			"--gres=shard:a100_80gb:4 --nodes=1 --ntasks=1" },
		{ "gpulease --gpus=rtx4090:2 true",
			"--gpus=nvidia_geforce_rtx_4090:2 --nodes=1 --ntasks=1" },
		{ "gpulease --model 80gb -n 3 true",
			"--gpus=a100_80gb:3 --nodes=1 --ntasks=1" },
		{ "gpulease --model 80gb true",
			"--gpus=a100_80gb:1 --nodes=1 --ntasks=1" },
		{ "gpulease -n 4 --gpus=8 true", "--gpus=8 --ntasks=4" },
		{ "gpulease -N 2 --gpus-per-node=4 true", "--gpus-per-node=4" },
		{ "gpulease -w n1,n2 true", "--gpus-per-node=1" },
		{ "gpulease -w n[1-2] -n 2 true", "--gpus=2" },
		{ "gpulease -N 2 true", "--gpus-per-node=1" },
		{ "gpulease -N 2 -n 4 true", "--gpus=4" },
		{ "gpulease -w n1 true", "--gpus=1 --nodes=1 --ntasks=1" },
		{ "gpulease -n 4 --ntasks-per-gpu=2 true", "--ntasks=4" },
		{ "gpulease --gpus=4 --gpus-per-task=2 true",
			"--gpus=4 --gpus-per-task=2" },
		{ "gpulease --gpus-per-task=2 true",
			"--gpus-per-task=2 --nodes=1 --ntasks=1" },
		{ "gpulease --gres=gpu:2 true", "--gres=gpu:2 --nodes=1 --ntasks=1" },
		{ "gpulease --gres=gpu true", "--gres=gpu:1 --nodes=1 --ntasks=1" },
		{ "gpulease --gres=gpu:a100-80gb,nic:1 -n 2 true",
			"--gres=gpu:a100_80gb:1,nic:1 --ntasks=2" },
		{ "gpulease --gres=gpu:80gb:2 true",
			"--gres=gpu:a100_80gb:2 --nodes=1 --ntasks=1" },
		{ "gpulease --gpus=80gb:1,40gb:2 true",
			"--gpus=a100_80gb:1,a100_40gb:2 --nodes=1 --ntasks=1" },
	};
	struct cluster_gpus gpus = cluster_of(SINFO);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct slurm_words words = { .count = 0 };
		struct why why = WHY_NONE;
		char out[512];

		assert_int_equal(
			gpu_words_add(read_line(rows[i].line), &gpus, &words, &why), 0);
		take_words(&words, out, sizeof(out));
		assert_string_equal(out, rows[i].words);
	}
}

static void wishes_that_cannot_be_met_are_refused(void **state)
{
	static const struct {
		const char *line, *sinfo, *why;
	} rows[] = {
		{ "gpulease -n 0.5 true", "gpu:a:2\n",
			"-n: a part of a GPU needs shards" },
		{ "gpulease -n 1.5 true", SINFO, "-n: '1.5'" },
		{ "gpulease --gpus=b:1 true", "gpu:a:2\n",
			"--gpus: the cluster has no GPU of the type 'b'; its types are a" },
		{ "gpulease --model b true", "gpu:2\n",
			"--model: the cluster has no GPU of the type 'b': its GPUs have no type" },
		{ "gpulease --model a --gpus=b:1 true", SINFO,
			"--gpus asks for 'b' and --model for 'a'; give one" },
		{ "gpulease --gpus=x true", SINFO, "--gpus: 'x'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cluster_gpus gpus = cluster_of(rows[i].sinfo);
		struct slurm_words words = { .count = 0 };
		struct why why = WHY_NONE;

		assert_int_equal(
			gpu_words_add(read_line(rows[i].line), &gpus, &words, &why),
			-EINVAL);
		assert_int_equal(strncmp(why.text, rows[i].why, strlen(rows[i].why)), 0);
		slurm_words_release(&words);
	}
}

static void sinfo_is_asked_only_for_types_and_shares(void **state)
{
	(void)state;
	assert_false(gpu_words_need_types(read_line("gpulease -n 2 true")));
	assert_false(gpu_words_need_types(read_line("gpulease --gres=gpu true")));
	assert_false(gpu_words_need_types(read_line("gpulease -n 2 --gpus=4 true")));
	assert_true(gpu_words_need_types(read_line("gpulease -n 0.5 true")));
	assert_true(gpu_words_need_types(read_line("gpulease --model x true")));
	assert_true(gpu_words_need_types(read_line("gpulease --gpus=x:1 true")));
	assert_true(gpu_words_need_types(read_line("gpulease --gres=gpu:x true")));
}

static void options_of_a_job_become_those_of_slurm(void **state)
{
	static const struct {
		const char *line, *program, *words;
	} rows[] = {
		{ "gpulease -n 0 -t 90s /bin/true x", "srun",
			"--job-name=true --time=2" },
		{ "gpulease -n 0 -t 4h --name a true", "srun",
			"--job-name=a --time=240" },
		{ "gpulease -n 0 -t 0 true", "srun", "--job-name=true --time=UNLIMITED" },
		{ "gpulease -n 0 --priority=-5 true", "srun",
			"--nice=5 --job-name=true" },
		{ "gpulease -n 0 --signal USR1@90s true", "srun",
			"--job-name=true --signal=USR1@90" },
		{ "gpulease -n 0 --signal USR1 true", "sbatch",
			"--job-name=true --signal=B:USR1@60" },
		/* the node sends it */
		{ "gpulease -n 0 --signal USR1 -t 1h true", "srun",
			"--job-name=true --time=60" },
		{ "gpulease -n 0 --after 12,15 --after-ok 3 true", "srun",
			"--job-name=true --dependency=afterany:12:15,afterok:3" },
		{ "gpulease -n 0 --after-ok 3 true", "sbatch",
			"--job-name=true --dependency=afterok:3 "
			"--kill-on-invalid-dep=yes" },
		{ "gpulease -n 0 --name a --singleton -d after:4+5 true", "srun",
			"--job-name=a --dependency=singleton,after:4+5" },
		{ "gpulease -n 0 -p main -A acc --mem 1G -c 2 -x n1 --exact true", "srun",
			"--job-name=true --cpus-per-task=2 --mem=1G --partition=main "
			"--account=acc --exclude=n1" },
		{ "gpulease -n 0 -s -H --no-kill -k --tasks-per-node=2 true", "srun",
			"--job-name=true --hold --ntasks-per-node=2 --oversubscribe "
			"--no-kill" },
		{ "gpulease -n 0 -b 2099-01-31T22:00 true", "srun",
			"--job-name=true --begin=2099-01-31T22:00:00" },
		{ "gpulease -n 0 -b now true", "srun", "--job-name=true" },
	};
	static const char nodes[] = " --nodes=1 --ntasks=1 ";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct slurm_words words = { .count = 0 };
		char out[512];
		size_t skip = strlen(rows[i].program);

		slurm_words_add(&words, rows[i].program);
		assert_int_equal(engine_job_words(read_line(rows[i].line), &words), 0);
		take_words(&words, out, sizeof(out));
		skip += strncmp(out + skip, nodes, sizeof(nodes) - 1) == 0
				? sizeof(nodes) - 1
				: 1;
		assert_string_equal(out + skip, rows[i].words);
	}
}

static void options_of_tasks_are_for_srun_alone(void **state)
{
	struct slurm_words words = { .count = 0 };
	char out[512];

	(void)state;
	assert_int_equal(
		engine_step_words(read_line("gpulease -n 4 --gpus=4 -l -K --exact "
					    "--cpu-bind=cores -p main true"),
			&words),
		0);
	take_words(&words, out, sizeof(out));
	assert_string_equal(out, "--label --kill-on-bad-exit --cpu-bind=cores --exact");
}

/* What is written for a node is read there. */
static void an_order_is_read_as_it_was_written(void **state)
{
	static char a[] = "a b", empty[] = "", dashes[] = "--";
	char *command[] = { a, empty, dashes, NULL };
	struct node_order order = { .folder = "/a = b",
		.merges = true,
		.limit_ms = 1500,
		.grace_ms = 10000,
		.warn_signal = 10,
		.warn_ms = 5,
		.retries = 3,
		.done_status = 0,
		.setup = "x=1\ny",
		.inject_style = 1,
		.command = command };
	struct node_order read;
	struct slurm_words words = { .count = 0 };
	struct why why = WHY_NONE;

	(void)state;
	node_order_add(&order, "/e", &words);
	assert_string_equal(words.list[0], "/bin/sh");
	assert_string_equal(words.list[4], "/e");
	assert_int_equal(node_order_read(words.list + 5, &read, &why), 0);
	assert_string_equal(read.folder, order.folder);
	assert_true(read.merges);
	assert_false(read.unbuffered);
	assert_int_equal(read.limit_ms, 1500);
	assert_int_equal(read.warn_signal, 10);
	assert_int_equal(read.retries, 3);
	assert_int_equal(read.done_status, 0);
	assert_string_equal(read.setup, order.setup);
	assert_null(read.conda);
	assert_int_equal(read.inject_style, 1);
	for (int i = 0; command[i]; i++)
		assert_string_equal(read.command[i], command[i]);
	assert_null(read.command[3]);
	slurm_words_release(&words);
}

/* Whether the node is told that the command has placeholders; -1: the line is refused. */
static int fills(const char *line)
{
	struct slurm_words words = { .count = 0 };
	int r = engine_node_words(read_line(line), false, &words) ? -1 : 0;

	for (size_t i = 0; r == 0 && i < words.count && strcmp(words.list[i], "--"); i++)
		r = strcmp(words.list[i], "fill") == 0;
	slurm_words_release(&words);
	return r;
}

static void placeholders_are_found_where_they_are_filled(void **state)
{
	(void)state;
	assert_int_equal(fills("gpulease a b"), 0);
	assert_int_equal(fills("gpulease a --gpus={gpus}"), 1);
	assert_int_equal(fills("gpulease a {{id}}"), 1);
	assert_int_equal(fills("gpulease a ${id} {x}"), 0);
	assert_int_equal(fills("gpulease {id} a"), 0);
	assert_int_equal(fills("gpulease {id}"), 0);
	assert_int_equal(fills("gpulease --setup x {id}"), 1);
	assert_int_equal(fills("gpulease --setup x {id} a"), 0);
	assert_int_equal(fills("gpulease a {gpus},{uuids}"), -1);
	assert_int_equal(fills("gpulease a {{uuids}}"), 1);
}

static void a_word_that_a_node_does_not_know_is_refused(void **state)
{
	static char future[] = "future=1", cut[] = "limit", bad[] = "limit=x",
		    flag[] = "merge=1", dashes[] = "--", command[] = "true";
	char *const first[] = { future, cut, bad, flag };
	struct node_order order;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		char *words[] = { first[i], dashes, command, NULL };
		struct why why = WHY_NONE;

		assert_int_equal(node_order_read(words, &order, &why), -EINVAL);
		assert_non_null(strstr(why.text, first[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_and_shards_are_read),
		cmocka_unit_test(a_type_is_found_by_what_is_written),
		cmocka_unit_test(the_largest_partition_counts),
		cmocka_unit_test(gpus_of_one_node_are_counted),
		cmocka_unit_test(gpus_tasks_and_nodes_become_options),
		cmocka_unit_test(wishes_that_cannot_be_met_are_refused),
		cmocka_unit_test(sinfo_is_asked_only_for_types_and_shares),
		cmocka_unit_test(options_of_a_job_become_those_of_slurm),
		cmocka_unit_test(options_of_tasks_are_for_srun_alone),
		cmocka_unit_test(an_order_is_read_as_it_was_written),
		cmocka_unit_test(placeholders_are_found_where_they_are_filled),
		cmocka_unit_test(a_word_that_a_node_does_not_know_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

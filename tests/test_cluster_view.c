#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "cluster_sample.h"

enum { NOW_S = 1795533600 };

/* Reads the cluster of the sample, with these lines of scontrol. */
static void make_cluster(const char *places, struct cluster *ret)
{
	char *jobs = strdup(SAMPLE_JOBS), *nodes = strdup(SAMPLE_NODES),
	     *lines = strdup(places);

	*ret = CLUSTER_NONE;
	assert_non_null(jobs);
	assert_non_null(nodes);
	assert_non_null(lines);
	assert_int_equal(cluster_jobs_read(jobs, SAMPLE_MARK, &ret->jobs), 0);
	assert_int_equal(cluster_nodes_read(nodes, SAMPLE_MARK, &ret->nodes), 0);
	assert_int_equal(
		cluster_places_read(lines, &ret->jobs, &ret->nodes, &ret->places), 0);
	assert_int_equal(cluster_view_make(ret, NOW_S * INT64_C(1000)), 0);
	free(jobs);
	free(nodes);
	free(lines);
}

/* Returns "n1/0=1 n2/0=2": the jobs of the GPUs that have one. */
static const char *leases(const struct cluster *cluster)
{
	static char words[1024];
	struct text text = TEXT_ON(words);

	for (size_t i = 0; i < cluster->view.gpu_count; i++)
		for (size_t at = 0; at < cluster->view.gpus[i].holder_count; at++)
			text_addf(&text, "%s%s=%llu", text.used ? " " : "",
				cluster->view.gpus[i].uuid,
				(unsigned long long)cluster->view.gpus[i]
					.holders[at]
					.ticket);
	return words;
}

static void each_job_has_its_gpus(void **state)
{
	struct cluster cluster;

	(void)state;
	make_cluster(SAMPLE_PLACES, &cluster);
	assert_string_equal(leases(&cluster), "n1/0=1 n2/0=2 n2/1=2 n3/0=2 n3/1=10");
	assert_int_equal(cluster.view.running, 4);
	assert_int_equal(cluster.view.gpuless_count, 1);
	assert_int_equal(cluster.view.gpuless[0].ticket, 4);
	cluster_release(&cluster);
}

/* Without scontrol, the jobs still have as many GPUs. */
static void without_scontrol_gpus_are_chosen(void **state)
{
	struct cluster cluster;

	(void)state;
	make_cluster("", &cluster);
	assert_string_equal(leases(&cluster), "n1/0=1 n2/0=2 n2/1=2 n3/0=2 n3/1=2");
	cluster_release(&cluster);
}

static void a_name_cannot_take_gpus_of_other_nodes(void **state)
{
	struct cluster cluster;

	(void)state;
	/* the name of job 1, which is on n1, claims all of n2 and n3, and GPUs that are free */
	make_cluster(
		"JobId=1 JobName=x Nodes=n[1-3] CPU_IDs=1 Mem=0 GRES=gpu:sim:2(IDX:0-1)\n"
		"JobId=999 JobName=y Nodes=n2 CPU_IDs=1 Mem=0 GRES=gpu:sim:2(IDX:0-1)\n"
		"JobId=5 JobName=y Nodes=n2 CPU_IDs=1 Mem=0 GRES=gpu:sim:2(IDX:0-1)\n"
		"JobId=2 Nodes=n[ CPU_IDs=1 Mem=0 GRES=gpu:2(IDX:0-1) Nodes=n2 Nodes= GRES=\n" SAMPLE_PLACES,
		&cluster);
	assert_string_equal(leases(&cluster), "n1/0=1 n2/0=2 n2/1=2 n3/0=2 n3/1=10");
	cluster_release(&cluster);
}

static void gpus_have_states_and_names(void **state)
{
	struct cluster cluster;
	const struct view_gpu *gpu;

	(void)state;
	make_cluster(SAMPLE_PLACES, &cluster);
	assert_int_equal(cluster.view.gpu_count, 8);
	gpu = &cluster.view.gpus[0];
	assert_string_equal(gpu->node, "n1");
	assert_string_equal(gpu->model, "sim");
	assert_int_equal(gpu->state, GPU_LEASED);
	assert_string_equal(view_gpu_name(gpu).text, "n1/0");
	assert_int_equal(gpu->holders->age_ms, (NOW_S - 1795533503) * 1000);
	assert_int_equal(gpu->holders->limit_ms, 3600 * 1000);
	assert_int_equal(cluster.view.gpus[1].state, GPU_FREE);
	assert_int_equal(cluster.view.gpus[1].free_percent, 100);
	gpu = &cluster.view.gpus[7];
	assert_int_equal(gpu->state, GPU_UNKNOWN);
	assert_string_equal(gpu->why,
		"is on node n4, which is down: fan broken | see ticket 12 (root)");
	cluster_release(&cluster);
}

static void a_job_that_is_not_shown_has_its_gpu(void **state)
{
	struct cluster cluster = CLUSTER_NONE;
	char nodes[] = SAMPLE_NODE("n1", "mixed", "gpu:sim:1(IDX:1)", "none"),
	     nothing[] = "";

	(void)state;
	assert_int_equal(cluster_nodes_read(nodes, SAMPLE_MARK, &cluster.nodes), 0);
	assert_int_equal(cluster_places_read(
				 nothing, &cluster.jobs, &cluster.nodes, &cluster.places),
		0);
	assert_int_equal(cluster_view_make(&cluster, 1), 0);
	assert_int_equal(cluster.view.gpus[1].state, GPU_LEASED);
	assert_int_equal(cluster.view.gpus[1].holder_count, 0);
	assert_string_equal(
		cluster.view.gpus[1].why, "is used by a job that you may not see");
	cluster_release(&cluster);
}

static void nodes_have_phases(void **state)
{
	static const struct {
		const char *state, *word;
		enum node_phase phase;
	} cases[] = {
		{ "idle", "idle", NODE_WORKS },
		{ "mixed-", "mixed", NODE_WORKS },
		{ "allocated+", "allocated", NODE_WORKS },
		{ "idle~", "idle", NODE_WORKS },
		{ "planned", "planned", NODE_WORKS },
		{ "down", "down", NODE_DOWN },
		{ "down*", "down", NODE_DOWN },
		{ "idle*", "not responding", NODE_DOWN },
		{ "drained", "drained", NODE_PAUSED },
		{ "draining", "draining", NODE_PAUSED },
		{ "drained*", "not responding", NODE_DOWN },
		{ "idle$", "in maintenance", NODE_PAUSED },
		{ "maint", "maint", NODE_PAUSED },
		{ "mixed^", "mixed", NODE_PAUSED },
		{ "inval", "inval", NODE_DOWN },
		{ "MIXED", "mixed", NODE_WORKS },
		{ "some_new_state", "some_new_state", NODE_WORKS },
	};
	char line[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cluster_nodes nodes = CLUSTER_NODES_NONE;

		(void)snprintf(line, sizeof(line),
			SAMPLE_NODE("n1", "%s", "gpu:sim:0(IDX:N/A)", "none"),
			cases[i].state);
		assert_int_equal(cluster_nodes_read(line, SAMPLE_MARK, &nodes), 0);
		assert_int_equal(nodes.count, 1);
		assert_string_equal(nodes.list[0].state, cases[i].word);
		assert_int_equal(nodes.list[0].phase, cases[i].phase);
		cluster_nodes_release(&nodes);
	}
}

static void a_node_of_several_partitions_counts_once(void **state)
{
	struct cluster_nodes nodes = CLUSTER_NODES_NONE;
	char lines[] = SAMPLE_NODE("b", "idle", "gpu:0", "none")
		SAMPLE_NODE("a", "idle", "gpu:0", "none")
			SAMPLE_NODE("b", "idle", "gpu:0", "none") "forged" S "guess" S
								  "idle" S "gpu:9" S
								  "gpu:0" S S S "\n";

	(void)state;
	assert_int_equal(cluster_nodes_read(lines, SAMPLE_MARK, &nodes), 0);
	assert_int_equal(nodes.count, 2);
	assert_int_equal(nodes.gpus, 4);
	assert_string_equal(nodes.list[0].name, "b");
	assert_ptr_equal(cluster_nodes_find(&nodes, "a"), &nodes.list[1]);
	assert_int_equal(nodes.list[1].first, 2);
	assert_null(cluster_nodes_find(&nodes, "c"));
	cluster_nodes_release(&nodes);
}

static void types_and_shards_of_a_node_are_known(void **state)
{
	struct cluster_nodes nodes = CLUSTER_NODES_NONE;
	char line[] = SAMPLE_ID(
		"n1") "mixed" S "gpu:a100:2(S:0),gpu:v100:1(S:1),shard:12" S
		      "gpu:a100:1(IDX:1),gpu:v100:0(IDX:N/A),shard:4(3/4,0/4,1/4)" S "1" S
		      "root" S "none" S "\n";

	(void)state;
	assert_int_equal(cluster_nodes_read(line, SAMPLE_MARK, &nodes), 0);
	assert_int_equal(nodes.list[0].gpus, 3);
	assert_int_equal(nodes.list[0].shards, 12);
	assert_string_equal(cluster_node_type(&nodes.list[0], 1), "a100");
	assert_string_equal(cluster_node_type(&nodes.list[0], 2), "v100");
	assert_string_equal(cluster_node_type(&nodes.list[0], 3), "");
	assert_true(gpuset_has(&nodes.list[0].used, 1));
	assert_int_equal(gpuset_count(&nodes.list[0].used), 1);
	assert_true(gpuset_has(&nodes.list[0].shared, 0));
	assert_true(gpuset_has(&nodes.list[0].shared, 2));
	cluster_nodes_release(&nodes);
}

static void a_job_that_asks_for_shards_needs_a_part_of_a_gpu(void **state)
{
	struct cluster cluster = CLUSTER_NONE;
	char nodes[] =
		SAMPLE_ID("n1") "idle" S "gpu:2,shard:8" S "gpu:0" S "1" S S S "\n";
	char jobs[] = SAMPLE_JOB("3", "PENDING", "1", "gres/shard=3", "N/A", "NONE", "",
		"3", "N/A", "0", "(null)", "Priority") "\n";
	char nothing[] = "";

	(void)state;
	assert_int_equal(cluster_nodes_read(nodes, SAMPLE_MARK, &cluster.nodes), 0);
	assert_int_equal(cluster_jobs_read(jobs, SAMPLE_MARK, &cluster.jobs), 0);
	assert_int_equal(cluster_places_read(
				 nothing, &cluster.jobs, &cluster.nodes, &cluster.places),
		0);
	assert_int_equal(cluster_view_make(&cluster, 1), 0);
	assert_int_equal(cluster.view.jobs[0].gpus, 1);
	assert_int_equal(cluster.view.jobs[0].need.percent, 75);
	cluster_release(&cluster);
}

static void the_queue_says_why_and_when(void **state)
{
	struct cluster cluster;
	const struct view_job *jobs;

	(void)state;
	make_cluster(SAMPLE_PLACES, &cluster);
	jobs = cluster.view.jobs;
	assert_int_equal(cluster.view.job_count, 3);
	assert_int_equal(jobs[0].ticket, 5);
	assert_int_equal(jobs[0].gpus, 2);
	assert_int_equal(jobs[0].verdict, VERDICT_LEASED);
	assert_int_equal(jobs[0].start_ms, INT64_C(1795537103000));
	assert_int_equal(jobs[0].waits_ms, (NOW_S - 1795533503) * 1000);
	assert_non_null(strstr(jobs[0].why, "in use; starts about "));
	assert_string_equal(jobs[1].why,
		"as many tasks of its array run as may; 2 tasks of an array");
	assert_int_equal(jobs[1].start_ms, 0);
	assert_string_equal(jobs[2].why, "waits for other jobs to end: 3,2");
	assert_int_equal(jobs[2].held_by, 3);
	assert_int_equal(jobs[2].attempt, 2);
	cluster_release(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_job_has_its_gpus),
		cmocka_unit_test(without_scontrol_gpus_are_chosen),
		cmocka_unit_test(a_name_cannot_take_gpus_of_other_nodes),
		cmocka_unit_test(gpus_have_states_and_names),
		cmocka_unit_test(a_job_that_is_not_shown_has_its_gpu),
		cmocka_unit_test(nodes_have_phases),
		cmocka_unit_test(a_node_of_several_partitions_counts_once),
		cmocka_unit_test(types_and_shards_of_a_node_are_known),
		cmocka_unit_test(a_job_that_asks_for_shards_needs_a_part_of_a_gpu),
		cmocka_unit_test(the_queue_says_why_and_when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>

#include "scratch.h"
#include "smitopo.h"

#define SAMPLES "../shared/reference/nvidia-smi-samples/"

static struct smitopo topo;
static struct why why;

static void add_level(struct text *out, uint8_t level)
{
	static const char *const names[] = { "?", "SYS", "NODE", "PHB", "PXB", "PIX" };

	if (level == LINK_SELF)
		text_add(out, "X");
	else if (level > LINK_NV)
		text_addf(out, "NV%d", level - LINK_NV);
	else
		text_add(out, level < ARRAY_SIZE(names) ? names[level] : "!");
}

/* All of it: `0@1 X NV4 | 1@0 NV4 X`, `@` and the node, `@-` where it is not known. */
static const char *show(void)
{
	static char line[8192];
	struct text out = TEXT_ON(line);

	for (unsigned i = 0; i < topo.count; i++) {
		text_addf(&out, "%s%d@", i ? " | " : "", topo.index[i]);
		if (topo.node[i] == NODE_UNKNOWN)
			text_add(&out, "-");
		else
			text_addf(&out, "%d", topo.node[i]);
		for (unsigned j = 0; j < topo.count; j++) {
			text_add(&out, " ");
			add_level(&out, topo.level[i][j]);
		}
	}
	text_add(&out, topo.is_complete ? "" : " | and others");
	return line;
}

/* What comes of @text, or its reason. */
static const char *read_all(const char *text, size_t size)
{
	/* what is not set must not be used */
	memset(&topo, 0x5a, sizeof(topo));
	why = WHY_NONE;
	if (smitopo_parse(text, size, &topo, &why) < 0)
		return why.text;
	return show();
}

static const struct {
	const char *name, *text, *expected;
} cases[] = {
	{ "as it comes",
		"\t\033[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n"
		"GPU0\t X \tNV18\t0-3\t0\t\tN/A\n"
		"GPU1\tNV18\t X \t4-7\t1\t\tN/A\n\nLegend:\n\n  X    = Self\n"
		"  NV#  = Connection traversing a bonded set of # NVLinks\n",
		"0@0 X NV18 | 1@1 NV18 X" },
	{ "cards between and below",
		"\tGPU0\tNIC0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
		"GPU0\t X \tPIX\tPHB\tSYS\t0-3\t0\n"
		"NIC0\tPIX\t X \tNODE\tSYS\t\t\n"
		"GPU1\tPHB\tNODE\t X \tNODE\t0-3\t0,2-3\n"
		"mlx5_0\tSYS\tSYS\tNODE\t X \n\nNIC Legend:\n\n  NIC0: mlx5_1\n",
		"0@0 X PHB | 1@0 PHB X" },
	{ "no column about memory",
		"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSOC\t0-3\n"
		"GPU1\tSOC\t X \t4-7\n",
		"0@- X SYS | 1@- SYS X" },
	{ "no column about CPUs at all", "\tGPU0\tGPU1\nGPU0\tX\tPXB\nGPU1\tPXB\tX\n",
		"0@- X PXB | 1@- PXB X" },
	{ "only the column about memory", "\tGPU0\tNUMA Affinity\nGPU0\tX\t3\n",
		"0@3 X" },
	{ "an empty cell before the node",
		"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t\t1\t\t5\n",
		"0@1 X" },
	{ "the memory of the GPU is no node of CPUs",
		"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-3\t\t\t5\n",
		"0@- X" },
	{ "N/A is no node", "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-3\tN/A\n",
		"0@- X" },
	{ "a node that does not exist",
		"\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-3\t70000\n", "0@- X" },
	{ "between spaces",
		"        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
		"GPU0     X      NV4     SYS     0-71    0,3-9,11-17             2\n"
		"GPU1    NV4      X      SYS     72-143  1,19-25                 18\n",
		"0@0 X NV4 | 1@1 NV4 X" },
	{ "between spaces a cell is missing",
		"     GPU0  CPU Affinity  NUMA Affinity  GPU NUMA ID\nGPU0  X   1     2\n",
		"0@- X" },
	{ "holes in the numbers", "\tGPU1\tGPU3\nGPU1\t X \tNODE\nGPU3\tNODE\t X \n",
		"1@- X NODE | 3@- NODE X" },
	{ "rows in another order", "\tGPU0\tGPU1\nGPU1\tNV2\t X \nGPU0\t X \tNV2\n",
		"0@- X NV2 | 1@- NV2 X" },
	{ "a row is missing", "\tGPU0\tGPU1\nGPU1\tNV2\t X \n",
		"0@- X NV2 | 1@- NV2 X | and others" },
	{ "a row that has no column", "\tGPU0\nGPU0\t X \nGPU1\tNV2\n", "0@- X" },
	{ "columns and rows that are there twice",
		"\tGPU0\tGPU0\tGPU1\nGPU0\t X \tPIX\tNV2\nGPU1\tNV2\tPHB\t X \n"
		"GPU0\t X \tSYS\tSYS\n",
		"0@- X NV2 | 1@- NV2 X" },
	{ "the directions differ", "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tPHB\t X \n",
		"0@- X PHB | 1@- PHB X" },
	{ "unknown words",
		"\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV\tPIX\nGPU1\tNEAR\t X \tNV999\n"
		"GPU2\tNV#\tNV0\t X \n",
		"0@- X ? PIX | 1@- ? X ? | 2@- PIX ? X" },
	{ "small letters, and lines as Windows ends them",
		"\tgpu0\tgpu1\r\ngpu0\t x \tpix\r\ngpu1\tpix\t x \r\n",
		"0@- X PIX | 1@- PIX X" },
	{ "switched terminals anywhere",
		"\033[4m\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\033[0m\n"
		"\033[1mGPU0\033[0m\t X \t\033[32mSYS\033[0m\t0\t\033[1m0\033[0m\n"
		"GPU1\tSYS\t\033[0;1m X \t0\t1\n",
		"0@0 X SYS | 1@1 SYS X" },
	{ "a warning before it", "WARNING: something\n\tGPU0\nGPU0\t X \n", "0@- X" },
	/* refused */
	{ "nothing", "", "nvidia-smi topo -m: no table of GPUs" },
	{ "a table without rows", "\tGPU0\tGPU1\n",
		"nvidia-smi topo -m: no table of GPUs" },
	{ "rows without a table", "GPU0\t X \tNV2\nGPU1\tNV2\t X \n",
		"nvidia-smi topo -m: no table of GPUs" },
	{ "another question", "Invalid combination of input arguments.\n",
		"nvidia-smi topo -m: no table of GPUs" },
	{ "a row that breaks off", "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2",
		"nvidia-smi topo -m: the row of GPU 1 is incomplete" },
	{ "columns that are shifted", "\tGPU0\tGPU1\nGPU0\tNV2\t X \nGPU1\t X \tNV2\n",
		"nvidia-smi topo -m: the row of GPU 0 is incomplete" },
	{ "two of one", "\tGPU0\tGPU1\nGPU0\t X \t X \nGPU1\t X \t X \n",
		"nvidia-smi topo -m: the row of GPU 0 is incomplete" },
};

static void every_form_is_read_by_place_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text = cases[i].text;
		const char *seen = read_all(text, strlen(text));

		if (strcmp(seen, cases[i].expected) != 0)
			fail_msg(
				"%s: %s, not %s", cases[i].name, seen, cases[i].expected);
	}
}

static void bytes_of_zero_are_read_as_the_end_of_a_line(void **state)
{
	static const char text[] = "\tGPU0\0\tGPU1\nGPU0\t X \0\t0\nGPU1\t X \n";

	(void)state;
	assert_string_equal(read_all(text, sizeof(text) - 1), "0@- X");
}

static void gpus_beyond_the_table_are_left_out(void **state)
{
	static char text[400000];
	struct text out = TEXT_ON(text);

	(void)state;
	for (int i = 0; i < 140; i++)
		text_addf(&out, "\tGPU%d", i);
	for (int i = 0; i < 140; i++) {
		text_addf(&out, "\nGPU%d", i);
		for (int j = 0; j < 140; j++)
			text_add(&out, i == j             ? "\t X "
				       : i / 70 == j / 70 ? "\tPIX"
							  : "\tSYS");
	}
	assert_false(out.cut);
	assert_int_equal(smitopo_parse(text, out.used, &topo, &why), 0);
	assert_int_equal(topo.count, GPUSET_MAX);
	assert_true(topo.is_complete);
	assert_int_equal(topo.level[127][70], LINK_PIX);
	assert_int_equal(topo.level[0][127], LINK_SYS);
	assert_int_equal(smitopo_find(&topo, 127), 127);
	assert_int_equal(smitopo_find(&topo, 128), -1);
}

/* Rows that all are one of a few. */
#define ALL8(nv, a, b, c, d, e, f, g, h)                                              \
	"0@" a " X " nv " " nv " " nv " " nv " " nv " " nv " " nv " | 1@" b " " nv    \
	" X " nv " " nv " " nv " " nv " " nv " " nv " | 2@" c " " nv " " nv " X " nv  \
	" " nv " " nv " " nv " " nv " | 3@" d " " nv " " nv " " nv " X " nv " " nv    \
	" " nv " " nv " | 4@" e " " nv " " nv " " nv " " nv " X " nv " " nv " " nv    \
	" | 5@" f " " nv " " nv " " nv " " nv " " nv " X " nv " " nv " | 6@" g " " nv \
	" " nv " " nv " " nv " " nv " " nv " X " nv " | 7@" h " " nv " " nv " " nv    \
	" " nv " " nv " " nv " " nv " X"
#define CUBE(a, b)                                                                      \
	"0@" a " X NV1 NV1 NV2 NV2 SYS SYS SYS | 1@" a                                  \
	" NV1 X NV2 NV1 SYS NV2 SYS SYS | 2@" a " NV1 NV2 X NV2 SYS SYS NV1 SYS | 3@" a \
	" NV2 NV1 NV2 X SYS SYS SYS NV1 | 4@" b " NV2 SYS SYS SYS X NV1 NV1 NV2 | 5@" b \
	" SYS NV2 SYS SYS NV1 X NV2 NV1 | 6@" b " SYS SYS NV1 SYS NV1 NV2 X NV2 | 7@" b \
	" SYS SYS SYS NV1 NV2 NV1 NV2 X"

/* The reference samples, where they are. */
static const struct {
	const char *name, *expected;
} samples[] = {
	{ "topo-1xH100-ansi.txt", "0@0 X" },
	{ "topo-2gpu-old-consumer-space-aligned.txt", "0@- X PHB | 1@- PHB X" },
	{ "topo-2xA100-nv4-numa3-5.txt", "0@3 X NV4 | 1@5 NV4 X" },
	{ "topo-2xL4-sys-two-sockets.txt", "0@1 X SYS | 1@0 SYS X" },
	{ "topo-2xRTX4090-node-nics.txt", "0@1 X NODE | 1@1 NODE X" },
	{ "topo-3xA6000-nvlink-pair-plus-one.txt",
		"0@0 X NV4 NODE | 1@0 NV4 X NODE | 2@0 NODE NODE X" },
	{ "topo-4gpu-nv18-restricted-cpuset-empty-affinity.txt",
		"0@0 X NV18 NV18 NV18 | 1@1 NV18 X NV18 NV18 | 2@1 NV18 NV18 X NV18 | "
		"3@1 NV18 NV18 NV18 X" },
	{ "topo-4xA100-nv12-nic-roce.txt",
		"0@1 X NV12 NV12 NV12 | 1@1 NV12 X NV12 NV12 | 2@1 NV12 NV12 X NV12 | "
		"3@1 NV12 NV12 NV12 X" },
	{ "topo-4xGB200-partial-space-aligned.txt",
		"0@0 X NV18 NV18 NV18 | 1@0 NV18 X NV18 NV18 | 2@1 NV18 NV18 X NV18 | "
		"3@- NV18 NV18 NV18 X | and others" },
	{ "topo-8gpu-pcie-phb-node-sys.txt", "0@0 X NODE NODE NODE NODE NODE SYS SYS | "
					     "1@0 NODE X PHB NODE NODE NODE SYS SYS | "
					     "2@0 NODE PHB X NODE NODE NODE SYS SYS | "
					     "3@0 NODE NODE NODE X PHB NODE SYS SYS | "
					     "4@0 NODE NODE NODE PHB X NODE SYS SYS | "
					     "5@0 NODE NODE NODE NODE NODE X SYS SYS | "
					     "6@1 SYS SYS SYS SYS SYS SYS X PHB | "
					     "7@1 SYS SYS SYS SYS SYS SYS PHB X" },
	{ "topo-8xB300-nics-ansi.txt",
		ALL8("NV18", "0", "0", "0", "0", "1", "1", "1", "1") },
	{ "topo-8xV100-sxm2-nic0.txt", CUBE("0", "1") },
	{ "topo-dgx-a100-mlx5.txt",
		ALL8("NV12", "3", "3", "1", "1", "7", "7", "5", "5") },
	{ "topo-dgx1-v100-mlx5.txt", CUBE("-", "-") },
	{ "topo-gb10-dgx-spark-nics.txt", "0@0 X" },
	{ "topo-windows-no-affinity-ansi.txt", "0@- X" },
	{ "amd-rocm-smi-showtoponuma-8gpu.txt", "nvidia-smi topo -m: no table of GPUs" },
	{ "error-no-driver.txt", "nvidia-smi topo -m: no table of GPUs" },
};

static void every_sample_is_read_in_full(void **state)
{
	(void)state;
	if (access(SAMPLES, R_OK) < 0)
		skip_because("the samples of nvidia-smi are not there");
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		char path[128], text[4096];
		autofd int fd = -1;
		const char *seen;
		ssize_t size;

		(void)snprintf(path, sizeof(path), SAMPLES "%s", samples[i].name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fail_msg("%s is missing", path);
		size = read(fd, text, sizeof(text));
		assert_in_range(size, 1, sizeof(text) - 1);
		seen = read_all(text, (size_t)size);
		if (strcmp(seen, samples[i].expected) != 0)
			fail_msg("%s: %s, not %s", samples[i].name, seen,
				samples[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_read_by_place_or_refused),
		cmocka_unit_test(bytes_of_zero_are_read_as_the_end_of_a_line),
		cmocka_unit_test(gpus_beyond_the_table_are_left_out),
		cmocka_unit_test(every_sample_is_read_in_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

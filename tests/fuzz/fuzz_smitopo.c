/*
 * Any bytes as the output of `nvidia-smi topo -m`.  The result is consistent, and a table written
 * from it is read as the same.
 */
#include <string.h>

#include "smitopo.h"
#include "fuzz.h"

static bool is_level(uint8_t level)
{
	return level <= LINK_PIX || (level > LINK_NV && level <= LINK_NV + 200);
}

static void check(const struct smitopo *topo)
{
	MUST(topo->count > 0 && topo->count <= GPUSET_MAX);
	for (unsigned i = 0; i < topo->count; i++) {
		MUST(smitopo_find(topo, topo->index[i]) == (int)i);
		MUST(topo->node[i] >= NODE_UNKNOWN && topo->node[i] < 1024);
		MUST(topo->level[i][i] == LINK_SELF);
		for (unsigned j = 0; j < i; j++) {
			MUST(topo->level[i][j] == topo->level[j][i]);
			MUST(is_level(topo->level[i][j]));
		}
	}
}

static void write_level(struct text *out, uint8_t level)
{
	static const char *const names[] = { "-", "SYS", "NODE", "PHB", "PXB", "PIX" };

	if (level == LINK_SELF)
		text_add(out, "\t X ");
	else if (level > LINK_NV)
		text_addf(out, "\tNV%d", level - LINK_NV);
	else if (level < ARRAY_SIZE(names))
		text_addf(out, "\t%s", names[level]);
}

static void write_table(const struct smitopo *topo, struct text *out)
{
	for (unsigned i = 0; i < topo->count; i++)
		text_addf(out, "\tGPU%d", topo->index[i]);
	text_add(out, "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n");
	for (unsigned i = 0; i < topo->count; i++) {
		text_addf(out, "GPU%d", topo->index[i]);
		for (unsigned j = 0; j < topo->count; j++)
			write_level(out, topo->level[i][j]);
		text_add(out, "\t\t");
		if (topo->node[i] != NODE_UNKNOWN)
			text_addf(out, "%d", topo->node[i]);
		text_add(out, "\t\tN/A\n");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct smitopo topo, again;
	static char table[GPUSET_MAX * (GPUSET_MAX + 4) * 8];
	struct text out = TEXT_ON(table);
	struct why why = WHY_NONE;

	if (smitopo_parse((const char *)data, size, &topo, &why) < 0) {
		MUST(why.text[0]);
		return 0;
	}
	check(&topo);
	write_table(&topo, &out);
	MUST(!out.cut);
	MUST(smitopo_parse(table, out.used, &again, &why) == 0);
	MUST(again.is_complete && again.count == topo.count);
	for (unsigned i = 0; i < topo.count; i++) {
		MUST(again.node[i] == topo.node[i]);
		MUST(memcmp(again.level[i], topo.level[i], topo.count) == 0);
	}
	return 0;
}

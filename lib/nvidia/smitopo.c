#include <errno.h>

#include "smirow.h"
#include "smitopo.h"

enum { COLUMNS_MAX = 512, LINKS_MAX = 200, NODE_MAX = 1023, TAIL_MAX = 3 };

/* The columns, as the first line of the table names them. */
struct topo_columns {
	unsigned columns; /* of links */
	/* of each column's GPU in struct smitopo, -1: no GPU */
	int16_t place[COLUMNS_MAX];
	unsigned tails; /* columns after these, about the CPUs */
	int node_tail;  /* which of the tails has the NUMA node, -1: none */
};

static const struct {
	const char *word;
	enum { TAIL_CPU, TAIL_NODE, TAIL_GPU_NODE } tail;
} tail_words[] = {
	{ "CPU Affinity", TAIL_CPU },
	{ "NUMA Affinity", TAIL_NODE },
	{ "GPU NUMA ID", TAIL_GPU_NODE },
};

/* Takes an escape sequence for terminal attributes, `ESC [ 4 m`, off the front of *@in. */
static bool take_escape(struct span *in)
{
	size_t at = 2;

	if (in->size < 2 || in->at[0] != '\033' || in->at[1] != '[')
		return false;
	while (at < in->size && strchr("0123456789;", in->at[at]) && in->at[at])
		at++;
	if (at < in->size)
		at++;
	*in = (struct span){ in->at + at, in->size - at };
	return true;
}

static bool take_separator(struct span *in, const char *blanks)
{
	if (take_escape(in))
		return true;
	if (in->size == 0 || !in->at[0] || !strchr(blanks, in->at[0]))
		return false;
	*in = (struct span){ in->at + 1, in->size - 1 };
	return true;
}

static void skip_separators(struct span *in, const char *blanks)
{
	while (take_separator(in, blanks))
		;
}

/* Takes the next word off the front of *@rest; false at the end of the line. */
static bool take_word(struct span *rest, struct span *ret)
{
	skip_separators(rest, " \t\r");
	*ret = (struct span){ rest->at, 0 };
	while (rest->size > 0 && !strchr(" \t\r\033", rest->at[0])) {
		*rest = (struct span){ rest->at + 1, rest->size - 1 };
		ret->size++;
	}
	/* a NUL byte, or an ESC that begins no sequence: the line ends here */
	if (ret->size == 0 && rest->size > 0)
		rest->size = 0;
	return ret->size > 0;
}

/* Reads the word `GPU12`. */
static bool read_gpu_word(struct span word, uint64_t *ret)
{
	return span_take_prefix(&word, "GPU") && span_to_number(word, SMI_INDEX_MAX, ret);
}

static uint8_t read_level(struct span word)
{
	static const struct {
		const char *word;
		uint8_t level;
	} levels[] = {
		{ "X", LINK_SELF },
		{ "PIX", LINK_PIX },
		{ "PXB", LINK_PXB },
		{ "PHB", LINK_PHB },
		{ "NODE", LINK_NODE },
		{ "SYS", LINK_SYS },
		{ "SOC", LINK_SYS },
	};
	uint64_t links;

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (span_equals(word, levels[i].word))
			return levels[i].level;
	if (span_take_prefix(&word, "NV") && span_to_number(word, LINKS_MAX, &links) &&
		links > 0)
		return (uint8_t)(LINK_NV + links);
	return LINK_UNKNOWN;
}

int smitopo_find(const struct smitopo *topo, int index)
{
	for (unsigned i = 0; i < topo->count; i++)
		if (topo->index[i] == index)
			return (int)i;
	return -1;
}

/* Adds the GPU of a column.  Returns its place; -1 if it has one already or all are taken. */
static int16_t add_gpu_column(struct smitopo *topo, uint64_t index)
{
	unsigned place = topo->count;

	if (smitopo_find(topo, (int)index) >= 0 || place == GPUSET_MAX)
		return -1;
	topo->index[place] = (uint16_t)index;
	topo->node[place] = NODE_UNKNOWN;
	for (unsigned i = 0; i < place; i++)
		topo->level[i][place] = topo->level[place][i] = LINK_UNKNOWN;
	topo->level[place][place] = LINK_SELF;
	topo->count++;
	return (int16_t)place;
}

static void read_tails(struct span rest, struct topo_columns *header)
{
	while (rest.size > 0) {
		bool is_tail = false;

		skip_separators(&rest, " \t\r");
		for (size_t i = 0; i < ARRAY_SIZE(tail_words) && !is_tail; i++) {
			is_tail = span_take_prefix(&rest, tail_words[i].word);
			if (is_tail && tail_words[i].tail == TAIL_NODE)
				header->node_tail = (int)header->tails;
		}
		if (!is_tail)
			return;
		header->tails++;
	}
}

/* Whether @line is the first of the table: a blank, then the names of GPUs and cards. */
static bool read_header(
	struct span line, struct topo_columns *header, struct smitopo *topo)
{
	struct span rest = line, before, word;
	uint64_t index;

	header->columns = header->tails = 0;
	header->node_tail = -1;
	topo->count = 0;
	if (!take_separator(&rest, " \t"))
		return false;
	for (before = rest; take_word(&rest, &word); before = rest) {
		bool is_gpu = read_gpu_word(word, &index);

		if (header->columns == 0 && !is_gpu)
			return false;
		/* device names are one word, the columns about CPUs have more */
		if (span_equals(word, "CPU") || span_equals(word, "NUMA") ||
			span_equals(word, "GPU"))
			break;
		if (header->columns == COLUMNS_MAX)
			return false;
		header->place[header->columns++] =
			is_gpu ? add_gpu_column(topo, index) : -1;
	}
	read_tails(before, header);
	return topo->count > 0;
}

/* Reads the first number of a list of nodes: `0`, `0,3-9`. */
static int16_t read_node(struct span cell)
{
	struct span number;
	uint64_t node;

	skip_separators(&cell, " ");
	number = (struct span){ cell.at, 0 };
	while (number.size < cell.size && number.at[number.size] >= '0' &&
		number.at[number.size] <= '9')
		number.size++;
	return span_to_number(number, NODE_MAX, &node) ? (int16_t)node : NODE_UNKNOWN;
}

/*
 * Returns the NUMA node from @rest, the cells after the links.  With tabs a cell may be empty.
 * With spaces an empty cell cannot be seen, so all cells must be there.
 */
static int16_t find_node(struct span rest, const struct topo_columns *header)
{
	struct span cells[TAIL_MAX + 1];
	unsigned count = 0;

	if (header->node_tail < 0 || header->tails > TAIL_MAX)
		return NODE_UNKNOWN;
	skip_separators(&rest, " ");
	if (rest.size > 0 && rest.at[0] == '\t') {
		rest = (struct span){ rest.at + 1, rest.size - 1 };
		while (count <= (unsigned)header->node_tail &&
			span_take_until(&rest, '\t', &cells[count]))
			count++;
		return count > (unsigned)header->node_tail
			       ? read_node(cells[header->node_tail])
			       : NODE_UNKNOWN;
	}
	while (count <= TAIL_MAX && take_word(&rest, &cells[count]))
		count++;
	return count == header->tails ? read_node(cells[header->node_tail])
				      : NODE_UNKNOWN;
}

static void add_level(struct smitopo *topo, unsigned a, unsigned b, uint8_t level)
{
	uint8_t known = topo->level[a][b];

	if (a == b || level == LINK_UNKNOWN || level == LINK_SELF)
		return;
	if (known == LINK_UNKNOWN || level < known)
		topo->level[a][b] = topo->level[b][a] = level;
}

/* Reads the row of the GPU at @place; false if the row is incomplete. */
static bool read_topo_row(struct span rest, unsigned place,
	const struct topo_columns *header, struct smitopo *topo)
{
	for (unsigned i = 0; i < header->columns; i++) {
		struct span word;
		uint8_t level;

		if (!take_word(&rest, &word))
			return false;
		if (header->place[i] < 0)
			continue;
		level = read_level(word);
		if ((level == LINK_SELF) != (header->place[i] == (int)place))
			return false;
		add_level(topo, place, (unsigned)header->place[i], level);
	}
	topo->node[place] = find_node(rest, header);
	return true;
}

/* Skips the text up to the end of the header, and reads it; false if there is none. */
static bool read_to_header(
	struct span *text, struct topo_columns *header, struct smitopo *topo)
{
	bool has_header = false;

	while (!has_header && text->size > 0) {
		const char *end = memchr(text->at, '\n', text->size);
		size_t size = end ? (size_t)(end - text->at) : text->size;

		/* span_take_until() would trim the blank at the front, by which it is known */
		has_header = read_header((struct span){ text->at, size }, header, topo);
		size += end ? 1 : 0;
		*text = (struct span){ text->at + size, text->size - size };
	}
	return has_header;
}

int smitopo_parse(const char *text, size_t size, struct smitopo *ret, struct why *why)
{
	struct span rest = { text, size }, line, word;
	struct gpuset rows = GPUSET_NONE;
	struct topo_columns header = { .columns = 0 };
	bool has_header = read_to_header(&rest, &header, ret);
	uint64_t index;

	while (has_header && span_take_until(&rest, '\n', &line)) {
		int place = -1;

		if (take_word(&line, &word) && read_gpu_word(word, &index))
			place = smitopo_find(ret, (int)index);
		if (place < 0 || gpuset_has(&rows, (unsigned)place))
			continue;
		if (!read_topo_row(line, (unsigned)place, &header, ret)) {
			why_set(why,
				"nvidia-smi topo -m: the row of GPU %d is incomplete",
				(int)index);
			return -EBADMSG;
		}
		gpuset_add(&rows, (unsigned)place);
	}
	if (gpuset_is_empty(&rows)) {
		why_set(why, "nvidia-smi topo -m: no table of GPUs");
		return -EBADMSG;
	}
	ret->is_complete = gpuset_count(&rows) == ret->count;
	return 0;
}

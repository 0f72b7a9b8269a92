#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "clock.h"
#include "fdio.h"
#include "hex.h"
#include "record.h"
#include "topology.h"

static const char RESULT[] = "topology", TEMPORARY[] = "topology.new",
		  LOCK[] = "topology.lock";

enum { SMALL = 4 /* simulated GPUs on one node */, RECORDS_MAX = 1 + GPUSET_MAX };

/* --- records ------------------------------------------------------------------------ */

struct topology_header {
	char boot[BOOT_SIZE];
	int64_t asked_ms;
	uint32_t gpus;
	char trouble[WHY_SIZE];
};

/* A GPU; each of its links is two hexadecimal digits. */
struct row {
	char uuid[sizeof(((struct topology_gpu *)0)->uuid)];
	int64_t node;
	char links[2 * GPUSET_MAX + 1];
};

static const struct record_field header_fields[] = {
	{ "boot", RECORD_TEXT, offsetof(struct topology_header, boot), BOOT_SIZE },
	{ "asked", RECORD_I64, offsetof(struct topology_header, asked_ms), 0 },
	{ "gpus", RECORD_U32, offsetof(struct topology_header, gpus), 0 },
	{ "trouble", RECORD_REST, offsetof(struct topology_header, trouble), WHY_SIZE },
};

static const struct record_field row_fields[] = {
	{ "uuid", RECORD_TEXT, offsetof(struct row, uuid),
		sizeof(((struct row *)0)->uuid) },
	{ "node", RECORD_I64, offsetof(struct row, node), 0 },
	{ "links", RECORD_TEXT, offsetof(struct row, links),
		sizeof(((struct row *)0)->links) },
};

static const struct record_schema header_schema = RECORD_SCHEMA("topo/1", header_fields);
static const struct record_schema row_schema = RECORD_SCHEMA("tgpu/1", row_fields);

static int encode_row(const struct topology_gpu *gpu, unsigned count, char *raw)
{
	static const char digits[] = "0123456789abcdef";
	struct row row = { .node = gpu->node };

	text_copy(row.uuid, sizeof(row.uuid), gpu->uuid);
	for (size_t i = 0; i < count; i++) {
		row.links[2 * i] = digits[gpu->level[i] >> 4];
		row.links[2 * i + 1] = digits[gpu->level[i] & 15];
	}
	return record_encode(&row_schema, &row, raw);
}

static int decode_row(const char *raw, unsigned count, struct topology_gpu *ret)
{
	struct row row;
	int r = record_decode(&row_schema, raw, &row);

	if (r < 0)
		return r;
	if (row.node < NODE_UNKNOWN || row.node > INT16_MAX ||
		strlen(row.links) != 2 * (size_t)count)
		return -EINVAL;
	text_copy(ret->uuid, sizeof(ret->uuid), row.uuid);
	ret->node = (int16_t)row.node;
	for (size_t i = 0; i < count; i++) {
		uint64_t level;

		r = hex_read(row.links + 2 * i, 2, HEX_LOWER, &level);
		if (r < 0)
			return r;
		ret->level[i] = (uint8_t)level;
	}
	return 0;
}

static int decode_topology(
	const char *boot, const char *raw, size_t records, struct topology *ret)
{
	struct topology_header header;
	int r = record_decode(&header_schema, raw, &header);

	if (r < 0)
		return r;
	if (strcmp(header.boot, boot) != 0 || header.gpus > GPUSET_MAX ||
		records < 1 + (size_t)header.gpus)
		return -EINVAL;
	ret->asked_ms = header.asked_ms;
	ret->is_sound = false;
	text_copy(ret->trouble.text, sizeof(ret->trouble.text), header.trouble);
	ret->count = header.gpus;
	for (unsigned i = 0; i < ret->count && r == 0; i++)
		r = decode_row(raw += RECORD_SIZE, ret->count, &ret->gpus[i]);
	return r;
}

/* --- files -------------------------------------------------------------------------- */

int topology_load(const struct statedir *dir, struct topology *ret)
{
	autofree char *raw = NULL;
	size_t size;
	int r = fdio_read_all(
		dir->fd, RESULT, RECORD_SIZE, RECORDS_MAX * RECORD_SIZE, &raw, &size);

	if (r == 0 && decode_topology(dir->boot, raw, size / RECORD_SIZE, ret) < 0)
		return TOPOLOGY_NONE;
	return r > 0 ? TOPOLOGY_NONE : r;
}

int topology_store(const struct statedir *dir, const struct topology *topology)
{
	size_t size = (1 + (size_t)topology->count) * RECORD_SIZE;
	struct topology_header header = { .asked_ms = topology->asked_ms,
		.gpus = topology->count };
	autofree char *raw = NULL;
	int r;

	if (dir->is_hardened && !topology->is_sound)
		return 0;
	raw = malloc(size);
	if (!raw)
		return -ENOMEM;
	text_copy(header.boot, sizeof(header.boot), dir->boot);
	text_copy(header.trouble, sizeof(header.trouble), topology->trouble.text);
	r = record_encode(&header_schema, &header, raw);
	for (unsigned i = 0; i < topology->count && r == 0; i++)
		r = encode_row(&topology->gpus[i], topology->count,
			raw + (1 + (size_t)i) * RECORD_SIZE);
	if (r < 0)
		return r;
	/*
	 * A crash left the temporary file; or a process without the lock is writing it now, and
	 * then one of the two calls fails.
	 */
	(void)unlinkat(dir->fd, TEMPORARY, 0);
	return fdio_replace(dir->fd, RESULT, TEMPORARY, raw, size, FDIO_MODE_SHARED);
}

int topology_lock_try(int dirfd, int *ret_fd)
{
	autofd int fd = fdio_open_shared(dirfd, LOCK, O_RDWR);

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? TOPOLOGY_BUSY : -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* --- what it says ------------------------------------------------------------------- */

/* Begins a result that names all GPUs of @probe and knows none of their links. */
static void topology_begin(
	const struct probe *probe, int64_t asked_ms, struct topology *ret)
{
	ret->asked_ms = asked_ms;
	ret->is_sound = false;
	ret->trouble = WHY_NONE;
	ret->count = 0;
	for (uint32_t i = 0; i < probe->gpu_count; i++) {
		struct topology_gpu *gpu = &ret->gpus[ret->count];

		if (!probe->gpus[i].uuid[0])
			continue;
		text_copy(gpu->uuid, sizeof(gpu->uuid), probe->gpus[i].uuid);
		gpu->node = NODE_UNKNOWN;
		ret->count++;
	}
	for (unsigned i = 0; i < ret->count; i++) {
		memset(ret->gpus[i].level, LINK_UNKNOWN, ret->count);
		ret->gpus[i].level[i] = LINK_SELF;
	}
}

void topology_from(const struct smitopo *answer, const struct probe *probe,
	int64_t asked_ms, struct topology *ret)
{
	int16_t places[GPUSET_MAX]; /* in @answer, of each GPU of @ret */
	unsigned count = 0;

	topology_begin(probe, asked_ms, ret);
	if (!answer)
		return;
	ret->is_sound = answer->is_complete;
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (probe->gpus[i].uuid[0])
			places[count++] =
				(int16_t)smitopo_find(answer, probe->gpus[i].index);
	for (unsigned i = 0; i < count; i++) {
		if (places[i] < 0) {
			ret->is_sound = false;
			continue;
		}
		ret->gpus[i].node = answer->node[places[i]];
		for (unsigned j = 0; j < count; j++)
			if (places[j] >= 0)
				ret->gpus[i].level[j] =
					answer->level[places[i]][places[j]];
	}
}

void topology_simulate(const struct probe *probe, struct topology *ret)
{
	unsigned half;

	topology_begin(probe, probe->started_ms, ret);
	half = ret->count < SMALL ? ret->count : ret->count / 2;
	for (unsigned i = 0; i < ret->count; i++) {
		ret->gpus[i].node = i >= half;
		for (unsigned j = 0; j < ret->count; j++)
			if (i != j)
				ret->gpus[i].level[j] =
					(i < half) == (j < half) ? LINK_NODE : LINK_SYS;
	}
}

/* Returns the place of the GPU with that UUID, or -1.  Tries the place @at first. */
static int topology_find_gpu(
	const struct topology *topology, const char *uuid, unsigned at)
{
	if (at < topology->count && strcmp(topology->gpus[at].uuid, uuid) == 0)
		return (int)at;
	for (unsigned i = 0; i < topology->count; i++)
		if (strcmp(topology->gpus[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}

bool topology_serves(
	const struct topology *topology, const struct probe *probe, int64_t now_ms)
{
	if (topology->trouble.text[0] &&
		clock_age_ms(now_ms, topology->asked_ms) >= TOPOLOGY_RETRY_MS)
		return false;
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (probe->gpus[i].uuid[0] &&
			topology_find_gpu(topology, probe->gpus[i].uuid, i) < 0)
			return false;
	return true;
}

void topology_to_links(const struct topology *topology, const char *const uuids[],
	unsigned slots, struct links *ret)
{
	int16_t places[GPUSET_MAX];

	for (unsigned i = 0; i < slots; i++) {
		places[i] = (int16_t)(uuids[i] && uuids[i][0]
					      ? topology_find_gpu(topology, uuids[i], i)
					      : -1);
		ret->node[i] = places[i] < 0 ? (int16_t)NODE_UNKNOWN
					     : topology->gpus[places[i]].node;
	}
	for (unsigned i = 0; i < slots; i++) {
		for (unsigned j = 0; j < slots; j++)
			ret->level[i][j] =
				places[i] < 0 || places[j] < 0
					? LINK_UNKNOWN
					: topology->gpus[places[i]].level[places[j]];
		ret->level[i][i] = LINK_SELF;
	}
}

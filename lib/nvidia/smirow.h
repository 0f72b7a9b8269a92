/*
 * The query for GPUs: its columns, and how a row of the answer becomes a struct probe_gpu.  Pure;
 * used by smiparse.c.
 */
#ifndef GPULEASE_SMIROW_H
#define GPULEASE_SMIROW_H

#include "probe_data.h"
#include "smivalue.h"

/* The columns of the query for GPUs, in their order. */
enum smi_field {
	SMI_INDEX = 1u << 0,
	SMI_UUID = 1u << 1,
	SMI_BUS_ID = 1u << 2,
	SMI_TOTAL = 1u << 3,
	SMI_USED = 1u << 4,
	SMI_UTILIZATION = 1u << 5,
	SMI_MIG_MODE = 1u << 6,
	SMI_COMPUTE_MODE = 1u << 7,
	SMI_NAME = 1u << 8, /* last: the only one that may hold commas */
	SMI_ALL = (1u << 9) - 1,
	SMI_OPTIONAL = SMI_UTILIZATION | SMI_MIG_MODE | SMI_COMPUTE_MODE,
};

enum { SMI_QUERY_SIZE = 160, SMI_INDEX_MAX = 9999 };

/* Writes the argument of nvidia-smi that asks for @fields of all GPUs. */
void smi_gpu_query(unsigned fields, char out[SMI_QUERY_SIZE]);

/* Returns the field with that name, or 0. */
unsigned smi_field_named(struct span name);

/*
 * Reads the row @line of the answer to a query for @fields.  The GPU is known if all columns are in
 * order.  If it shares the host's memory, its total is 0 and its use PROBE_MIB_UNKNOWN, until
 * smi_parse_processes() adds up its processes.
 */
void smi_read_gpu(struct span line, unsigned fields, struct probe_gpu *ret);

/* Makes @gpu unknown.  Keeps the first reason, because later ones mostly follow from it. */
void smi_make_unknown(struct probe_gpu *gpu, const char *format, ...) PRINTF_LIKE(2, 3);

/* Reads a number of MiB, with or without the unit. */
bool smi_read_mib(struct span in, uint64_t *ret);

#endif

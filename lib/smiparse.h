/*
 * What nvidia-smi says, into a struct probe.  Pure: text in, structs out.
 *
 * Nobody promises the form of that text, so one rule stands above all: unknown is never idle.
 * A GPU is known only if every column of its row is in order and the exit status does not
 * contradict.  One sick GPU does not make the others unknown.  A GPU without a row is the
 * caller's business.
 */
#ifndef GPULEASE_SMIPARSE_H
#define GPULEASE_SMIPARSE_H

#include "probe_data.h"
#include "smirow.h"

/* Both outputs of an nvidia-smi that has ended. */
struct smi_output {
	const char *out, *err;
	size_t out_size, err_size;
	bool is_cut;   /* there was more */
	int exit_code; /* -1 unknown */
	int signal;    /* what killed it, or 0 */
};

/* Arguments of nvidia-smi: the processes, and the form of the answer. */
#define SMI_PROCESS_QUERY "--query-compute-apps=gpu_uuid,pid,used_memory"
#define SMI_FORMAT "--format=csv,noheader,nounits"

/*
 * The field that this nvidia-smi does not know and that can be left out of another query,
 * one of SMI_OPTIONAL; 0 where the output says anything else.
 */
unsigned smi_refused_field(const struct smi_output *output);

/*
 * Whether the output, whose first line that is no row is @message, can be taken as it stands;
 * if not, @why says why.
 */
bool smi_is_sound(const struct smi_output *output, struct span message, struct why *why);

/*
 * Fills in ->gpus of @probe, which the caller has zeroed, from the answer to a query for
 * @fields, or ->trouble where there is no GPU.  The memory of a GPU that shares the host's
 * is PROBE_MIB_UNKNOWN until smi_parse_processes().
 */
void smi_parse_gpus(
	const struct smi_output *output, unsigned fields, struct probe *probe);

/*
 * Then fills in ->processes.  A GPU whose processes cannot be told becomes unknown: all do
 * where the query failed.
 */
void smi_parse_processes(const struct smi_output *output, struct probe *probe);

#endif

/*
 * Reads the output of nvidia-smi into a struct probe.  Pure: text in, structs out.
 *
 * NVIDIA promises no form for this text, so the first rule is: unknown is never idle.  A GPU is
 * known only if every column of its row is in order and the exit status does not contradict.  One
 * sick GPU does not make the others unknown.  GPUs that have no row are left to the caller.
 */
#ifndef GPULEASE_SMIPARSE_H
#define GPULEASE_SMIPARSE_H

#include "probe_data.h"
#include "smirow.h"

/* What an nvidia-smi that has ended wrote to stdout and stderr, and how it ended. */
struct smi_output {
	const char *out, *err;
	size_t out_size, err_size;
	bool is_cut;   /* it wrote more than was kept */
	int exit_code; /* -1 unknown */
	int signal;    /* the signal that killed it, or 0 */
};

/* Arguments of nvidia-smi: the query for processes, and the form of the answers. */
#define SMI_PROCESS_QUERY "--query-compute-apps=gpu_uuid,pid,used_memory"
#define SMI_FORMAT "--format=csv,noheader,nounits"

/*
 * Returns the field of SMI_OPTIONAL that this nvidia-smi refused because it does not know it: the
 * caller can ask again without it.  Returns 0 if the output says anything else.
 */
unsigned smi_refused_field(const struct smi_output *output);

/*
 * Whether nvidia-smi ended well, so that its output counts; if not, sets @why.  @message is the
 * first line of the output that is not a row.
 */
bool smi_is_sound(const struct smi_output *output, struct span message, struct why *why);

/*
 * Fills in ->gpus of @probe from the answer to a query for @fields, or ->trouble if there is no
 * GPU.  The caller has zeroed @probe.  If a GPU shares the host's memory, its use is
 * PROBE_MIB_UNKNOWN until smi_parse_processes().
 */
void smi_parse_gpus(
	const struct smi_output *output, unsigned fields, struct probe *probe);

/*
 * Called after smi_parse_gpus(): fills in ->processes.  A GPU becomes unknown if its processes
 * cannot be determined; all GPUs do if the query failed.
 */
void smi_parse_processes(const struct smi_output *output, struct probe *probe);

#endif

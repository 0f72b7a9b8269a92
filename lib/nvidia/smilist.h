/*
 * Reads the MIG instances from the text that nvidia-smi -L prints.  Pure: text in, structs out.
 *
 * NVIDIA promises no form for this text.  Lines of another form are left out.  An instance that is
 * left out is only not leased: its GPU is not leased either, because MIG is enabled on it.
 */
#ifndef GPULEASE_SMILIST_H
#define GPULEASE_SMILIST_H

#include "smiparse.h"

/* The only argument of nvidia-smi: list the GPUs, and below each its MIG instances. */
#define SMI_LIST "-L"

/* Whether a row of the answer to a query for @fields says that MIG is enabled. */
bool smi_has_mig(const struct smi_output *output, unsigned fields);

/*
 * Called after smi_parse_gpus(): fills in ->migs from the answer to SMI_LIST, and changes nothing
 * else.  If the command failed there are no instances.
 */
void smi_parse_list(const struct smi_output *output, struct probe *probe);

#endif

/*
 * The MIG instances, from what nvidia-smi lists.  Pure: text in, structs out.
 *
 * Its form is promised no more than that of the rows: what has another is left out, and what
 * is left out is only not leased, for a GPU with MIG enabled is not given away as a whole.
 */
#ifndef GPULEASE_SMILIST_H
#define GPULEASE_SMILIST_H

#include "smiparse.h"

/* The argument of nvidia-smi, the only one: GPUs, and the MIG instances below each. */
#define SMI_LIST "-L"

/* Whether the answer to a query for @fields has a row that says that MIG is enabled. */
bool smi_has_mig(const struct smi_output *output, unsigned fields);

/*
 * Then fills in ->migs from the answer to SMI_LIST; nothing else changes.  None where it
 * failed; what has another form is left out.
 */
void smi_parse_list(const struct smi_output *output, struct probe *probe);

#endif

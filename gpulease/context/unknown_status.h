/*
 * What a user can do about a job whose exit status is not recorded.
 */
#ifndef GPULEASE_UNKNOWN_STATUS_H
#define GPULEASE_UNKNOWN_STATUS_H

#include "end_cause.h"

/*
 * Returns what the status of such a job needs: "it needs Linux 6.15 or --report", for instance.
 * The first call starts a child, which shows what the kernel can do.
 */
const char *unknown_status_remedy(void);

/* Returns why a job that has ended because of @cause was lost; NULL if it was not. */
const char *lost_words(enum end_cause cause);

#endif

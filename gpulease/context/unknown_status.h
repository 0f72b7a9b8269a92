/*
 * What a user can do about a job whose exit status is not recorded.
 */
#ifndef GPULEASE_UNKNOWN_STATUS_H
#define GPULEASE_UNKNOWN_STATUS_H

/*
 * Returns what the status of such a job needs: "it needs Linux 6.15 or --report", for instance.
 * The first call starts a child, which shows what the kernel can do.
 */
const char *unknown_status_remedy(void);

#endif

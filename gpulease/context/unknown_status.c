#include <stddef.h>

#include "owner.h"
#include "unknown_status.h"

const char *unknown_status_remedy(void)
{
	static const char *remedy;

	if (!remedy)
		remedy = pidfd_can_tell_exit()
				 ? "it needs record-ends in gpulease.conf(5), or --report"
				 : "it needs Linux 6.15 or --report";
	return remedy;
}

const char *lost_words(enum end_cause cause)
{
	if (cause == CAUSE_REBOOT)
		return "was lost: the machine was restarted";
	return cause == CAUSE_LOST ? "was lost: its supervisor was killed" : NULL;
}

#include "use_verdict.h"

bool use_is_spanned(int64_t unseen_ms, int64_t life_ms, int64_t interval_ms)
{
	return unseen_ms <= life_ms / 4 && unseen_ms <= 2 * interval_ms;
}

/* The functions below compare hundredths of a MiB, so that nothing is rounded. */

bool use_exceeds(uint64_t declared_mib, uint64_t seen_mib, unsigned tolerance_percent)
{
	return declared_mib && seen_mib * 100 > declared_mib * (100 + tolerance_percent);
}

enum use_verdict use_compare(uint64_t declared_mib, uint64_t seen_mib, bool is_spanned,
	unsigned tolerance_percent)
{
	if (use_exceeds(declared_mib, seen_mib, tolerance_percent))
		return USE_OVER;
	if (!is_spanned || !seen_mib)
		return USE_UNKNOWN;
	return seen_mib * 100 + declared_mib * tolerance_percent < declared_mib * 100
		       ? USE_UNDER
		       : USE_WITHIN;
}

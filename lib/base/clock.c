#include <time.h>

#include "clock.h"

static int64_t now_ms(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now); /* both clocks exist since 2.6.39 */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_boot_ms(void)
{
	return now_ms(CLOCK_BOOTTIME);
}

int64_t clock_real_ms(void)
{
	return now_ms(CLOCK_REALTIME);
}

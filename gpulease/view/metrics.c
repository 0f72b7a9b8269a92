#include "diag.h"
#include "exitcodes.h"
#include "metrics.h"

int metrics_main(const struct settings *settings)
{
	(void)settings;
	diag("--metrics is not built yet");
	return EXIT_MISUSE;
}

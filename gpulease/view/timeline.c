#include "diag.h"
#include "exitcodes.h"
#include "timeline.h"

int timeline_main(const struct settings *settings)
{
	(void)settings;
	diag("--timeline is not built yet");
	return EXIT_MISUSE;
}

#include "diag.h"
#include "exitcodes.h"
#include "hosts.h"

int hosts_main(const struct settings *settings)
{
	(void)settings;
	diag("--host is not built yet");
	return EXIT_MISUSE;
}

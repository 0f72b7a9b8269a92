#include "diag.h"
#include "exitcodes.h"
#include "top.h"

int top_main(const struct settings *settings)
{
	(void)settings;
	diag("--top is not built yet");
	return EXIT_MISUSE;
}

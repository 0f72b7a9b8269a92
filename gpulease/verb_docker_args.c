#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "verbs.h"

int verb_docker_args(struct settings *settings)
{
	static struct context context;

	return context_open(settings, &context);
}

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "exitcodes.h"
#include "slurm_message.h"
#include "text.h"

static const char *name = "";

void slurm_message_begin(const char *program)
{
	name = program;
}

__attribute__((format(printf, 2, 0))) static void print(
	const char *beginning, const char *format, va_list values)
{
	char raw[1024], line[1200];
	struct text text = TEXT_ON(line);

	(void)vsnprintf(raw, sizeof(raw), format, values);
	if (beginning)
		text_addf(&text, "%s: %s", name, beginning);
	text_add_visible(&text, raw);
	(void)fprintf(stderr, "%s\n", line);
}

void slurm_error(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print("error: ", format, values);
	va_end(values);
}

void slurm_line(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	print(NULL, format, values);
	va_end(values);
}

int slurm_finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	slurm_error("cannot write the output: %s", strerror(errno));
	return EXIT_NOT_DONE;
}

/*
 * A format of squeue, a NUL, and any bytes as the JSON of gpulease: the lines are printable, if the
 * format is, and ids can be found again.
 */
#include "slurm_format.h"
#include "fuzz.h"

static void check_line(
	const char *format, const struct slurm_jobs *jobs, const struct slurm_job *job)
{
	static char line[4096], printable[4096];
	struct text text = TEXT_ON(line), shown = TEXT_ON(printable);

	slurm_format_line(format, jobs, job, &text);
	text_add_printable(&shown, line, text.used);
	MUST(strcmp(line, printable) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slurm_jobs jobs = { .count = 0 };
	char *all = fuzz_string(data, size), format[256];
	struct text printable = TEXT_ON(format);
	size_t format_size;
	const char *at;

	MUST(all);
	format_size = strlen(all);
	text_add_printable(&printable, all, format_size < 200 ? format_size : 200);
	at = format;
	while (slurm_format_next_unknown(&at) >= 0)
		MUST(at > format && at <= format + printable.used);
	if (format_size < size)
		(void)!slurm_jobs_read(
			all + format_size + 1, size - format_size - 1, &jobs);
	slurm_jobs_sort(&jobs);
	for (size_t i = 0; i < jobs.count; i++) {
		MUST(slurm_jobs_find(&jobs, jobs.list[i].id));
		if (i < 50)
			check_line(format, &jobs, &jobs.list[i]);
	}
	check_line(format, &jobs, NULL);
	slurm_jobs_release(&jobs);
	free(all);
	return 0;
}

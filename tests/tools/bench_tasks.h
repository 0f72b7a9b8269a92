/*
 * Rows about tasks and steps, for bench.c.
 */

static void tasks_row(struct contender *c, size_t count, const char *figure,
	const char *target, double most_ratio, unsigned each)
{
	double ratio;

	measure_processes(c, count, rounds);
	for (size_t i = 0; i < count; i++)
		for (unsigned j = 0; j < c[i].samples.count; j++)
			c[i].samples.ms[j] /= each;
	ratio = sample_median(&c[0].samples) / sample_median(&c[1].samples);
	table_row(figure, target, sample_median(&c[0].samples), "ms",
		sample_median(&c[1].samples),
		ratio <= most_ratio ? VERDICT_MET : VERDICT_MISSED);
	for (size_t i = 0; i < count; i++)
		table_detail(c[i].name, &c[i].samples);
}

static void row_one_task(void)
{
	const char *const task[] = { tool_gpulease(), "--gpus=1", "-n", "1", "--", "true",
		NULL };
	const char *const plain[] = { tool_gpulease(), "-n", "1", "--", "true", NULL };
	struct contender c[] = {
		{ .name = "gpulease --gpus=1 -n 1", .argv = task },
		{ .name = "gpulease -n 1", .argv = plain },
	};

	(void)fresh_state("8");
	tasks_row(c, ARRAY_SIZE(c), "one task, beside a job without tasks",
		"at most 1.05 x", 1.05, 1);
}

static void row_eight_tasks(void)
{
	const char *const tasks[] = { tool_gpulease(), "--gpus=1", "-n", "8", "--",
		"true", NULL };
	static const char *const forks[] = { "sh", "-c",
		"for i in 1 2 3 4 5 6 7 8; do exec true & done; wait", NULL };
	struct contender c[] = {
		{ .name = "gpulease --gpus=1 -n 8", .argv = tasks },
		{ .name = "a shell that starts 8", .argv = forks },
	};

	(void)fresh_state("8");
	tasks_row(c, ARRAY_SIZE(c), "8 tasks, beside 8 x fork and exec in a shell",
		"at most 2 x", 2, 1);
}

/* Steps of a job script: there SLURM_JOB_ID is the id of the job. */
static void row_steps(void)
{
	static const char loop[] = "SLURM_JOB_ID=$GPULEASE_ID; export SLURM_JOB_ID; i=0; "
				   "while [ $i -lt 50 ]; do \"$@\"; i=$((i + 1)); done";
	char link[SCRATCH_SIZE + 16];
	const char *const steps[] = { tool_gpulease(), "-n", "1", "--", "sh", "-c", loop,
		"sh", link, "true", NULL };
	const char *const locks[] = { tool_gpulease(), "-n", "1", "--", "sh", "-c", loop,
		"sh", "flock", lock_path, "true", NULL };
	struct contender c[] = {
		{ .name = "srun", .argv = steps },
		{ .name = "flock", .argv = locks },
	};

	(void)snprintf(link, sizeof(link), "%s/srun", place);
	if (symlink(tool_gpulease(), link) < 0)
		die("cannot make '%s': %s", link, strerror(errno));
	(void)fresh_state("8");
	tasks_row(c, ARRAY_SIZE(c), "a step: srun true, beside flock FILE true",
		"at most 1.5 x", 1.5, 50);
}

static void rows_tasks(void)
{
	row_one_task();
	row_eight_tasks();
	row_steps();
}

#include <assert.h>
#include <errno.h>

#include "probe_run.h"
#include "smilist.h"

static const char STUCK[] = "an nvidia-smi (pid %d) hangs and cannot be ended",
		  LATE[] = "nvidia-smi did not answer within %lld s";

/* Starts nvidia-smi with the arguments @query and, unless it is NULL, @format. */
static int start_child(const struct probe_run *run, const char *query, const char *format,
	struct spawn *spawn)
{
	/* execve() takes pointers without const but does not write to the texts */
	char *argv[] = { (char *)run->path, (char *)query, (char *)format, NULL };

	return spawn_start(run->path, argv, run->envp, spawn);
}

static int start_gpus(struct probe_run *run)
{
	char query[SMI_QUERY_SIZE];

	smi_gpu_query(run->fields, query);
	return start_child(run, query, SMI_FORMAT, &run->gpus);
}

/* Returns the pid of a child of an earlier run that was killed but still lives; 0: none. */
static pid_t find_stuck(struct probe_run *run)
{
	struct spawn *const all[] = { &run->gpus, &run->processes, &run->list };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!spawn_is_gone(all[i]))
			return all[i]->pid;
	return 0;
}

static void probe_run_begin(struct probe_run *run, int64_t now_ms)
{
	assert(!run->is_running);
	run->fields = SMI_ALL;
	run->is_running = true;
	run->has_retried = run->has_listed = false;
	run->has_hung = run->was_disturbed = false;
	run->started_ms = run->stepped_ms = now_ms;
	run->trouble = WHY_NONE;
}

void probe_run_refuse(struct probe_run *run, const struct why *why, int64_t now_ms)
{
	probe_run_begin(run, now_ms);
	run->has_hung = true;
	run->trouble = *why;
}

void probe_run_start(struct probe_run *run, const char *path, char *const envp[],
	int64_t limit_ms, int64_t now_ms)
{
	pid_t stuck;
	int r;

	probe_run_begin(run, now_ms);
	run->path = path;
	run->envp = envp;
	run->limit_ms = probe_limit_ms(limit_ms);
	stuck = find_stuck(run);
	if (stuck) {
		run->has_hung = true;
		why_set(&run->trouble, STUCK, (int)stuck);
		return;
	}
	/* drop the list of the last run: this run may need none */
	spawn_release(&run->list);
	r = start_gpus(run);
	if (!r)
		r = start_child(run, SMI_PROCESS_QUERY, SMI_FORMAT, &run->processes);
	if (r < 0)
		why_set(&run->trouble, "cannot start '%s': %s", path, strerror(-r));
}

unsigned probe_run_poll_fds(
	const struct probe_run *run, struct pollfd fds[PROBE_POLL_FDS])
{
	unsigned count = 0;

	if (!run->is_running)
		return 0;
	count += spawn_poll_fds(&run->gpus, fds);
	count += spawn_poll_fds(&run->processes, fds + count);
	count += spawn_poll_fds(&run->list, fds + count);
	return count;
}

int64_t probe_run_deadline_ms(const struct probe_run *run)
{
	const int timers[] = { spawn_timer_ms(&run->gpus),
		spawn_timer_ms(&run->processes), spawn_timer_ms(&run->list) };
	int64_t deadline = run->started_ms + run->limit_ms;

	if (!run->is_running)
		return INT64_MAX;
	if (run->trouble.text[0])
		return run->started_ms;
	for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
		if (timers[i] >= 0)
			deadline = min_i64(deadline, run->stepped_ms + timers[i]);
	return deadline;
}

static struct smi_output output_of(const struct spawn *spawn)
{
	return (struct smi_output){
		.out = spawn->out.text,
		.out_size = spawn->out.used,
		.err = spawn->err.text,
		.err_size = spawn->err.used,
		.is_cut = spawn->out.is_cut,
		.exit_code = spawn->exit_code,
		.signal = spawn->signal,
	};
}

/*
 * If an old driver has refused the whole query because of a field that it does not know, asks
 * again without that field.  Returns whether it has asked again.
 */
static bool retry_gpus(struct probe_run *run)
{
	struct smi_output output = output_of(&run->gpus);
	unsigned refused = smi_refused_field(&output);
	int r;

	if (!refused || run->has_retried)
		return false;
	run->has_retried = true;
	run->fields &= ~refused;
	spawn_release(&run->gpus);
	r = start_gpus(run);
	if (r < 0)
		why_set(&run->trouble, "cannot start '%s': %s", run->path, strerror(-r));
	return true;
}

/*
 * Starts the list of MIG instances if the answer shows a GPU with MIG enabled.  If nvidia-smi
 * cannot be started, the result has no instances.
 */
static void list_migs(struct probe_run *run)
{
	struct smi_output output = output_of(&run->gpus);

	run->has_listed = smi_has_mig(&output, run->fields);
	if (run->has_listed)
		(void)!start_child(run, SMI_LIST, NULL, &run->list);
}

/* Whether the child ended by itself and well. */
static bool spawn_is_sound(const struct spawn *spawn)
{
	struct smi_output output = output_of(spawn);
	struct why why;

	return spawn->exit_code >= 0 && !spawn->was_stopped &&
	       smi_is_sound(&output, (struct span){ NULL, 0 }, &why);
}

static bool knows_all_gpus(const struct probe *probe)
{
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (!probe->gpus[i].is_known)
			return false;
	return probe->gpu_count > 0;
}

static void collect_answers(const struct probe_run *run, bool has_list, struct probe *ret)
{
	struct smi_output list = output_of(&run->list);
	struct smi_output gpus = output_of(&run->gpus);
	struct smi_output processes = output_of(&run->processes);
	int error =
		run->gpus.exec_errno ? run->gpus.exec_errno : run->processes.exec_errno;

	if (error) {
		why_set(&ret->trouble, "cannot run '%s': %s", run->path, strerror(error));
		return;
	}
	smi_parse_gpus(&gpus, run->fields, ret);
	smi_parse_processes(&processes, ret);
	if (run->has_listed && has_list)
		smi_parse_list(&list, ret);
	ret->is_sound = spawn_is_sound(&run->gpus) && spawn_is_sound(&run->processes) &&
			(!run->has_listed || (has_list && spawn_is_sound(&run->list))) &&
			knows_all_gpus(ret);
}

/* Steps both queries.  Returns whether both have ended. */
static bool step_queries(struct probe_run *run)
{
	bool has_gpus = spawn_step(&run->gpus) == 0 && !retry_gpus(run);

	if (has_gpus && !run->has_listed)
		list_migs(run);
	return spawn_step(&run->processes) == 0 && has_gpus;
}

/* Sets *@why if a child was stopped or killed: then the run need not wait for the others. */
static void note_disturbance(const struct probe_run *run, struct why *why)
{
	int signal = run->gpus.signal ? run->gpus.signal : run->processes.signal;

	if (run->gpus.was_stopped || run->processes.was_stopped || run->list.was_stopped)
		why_set(why, "nvidia-smi was stopped");
	else if (signal)
		why_set(why, "nvidia-smi was killed by signal %d", signal);
}

int probe_run_step(struct probe_run *run, int64_t now_ms, struct probe *ret)
{
	bool has_answers, has_list;

	assert(run->is_running);
	run->stepped_ms = now_ms;
	has_answers = !run->trouble.text[0] && step_queries(run);
	has_list = spawn_step(&run->list) == 0; /* also if no list was started */
	if (!run->trouble.text[0]) {
		note_disturbance(run, &run->trouble);
		run->was_disturbed = run->trouble.text[0];
	}
	if (!run->trouble.text[0] && !(has_answers && has_list) &&
		now_ms < run->started_ms + run->limit_ms)
		return PROBE_RUNNING;
	/* done: trouble, all answers, or the time limit */
	probe_begin(ret, run->started_ms, now_ms);
	if (run->trouble.text[0])
		ret->trouble = run->trouble;
	else if (has_answers)
		collect_answers(run, has_list, ret);
	else
		why_set(&ret->trouble, LATE, (long long)(run->limit_ms + 999) / 1000);
	/* late without any disturbance */
	run->has_hung = run->has_hung || (!run->trouble.text[0] && !has_answers);
	spawn_abandon(&run->gpus);
	spawn_abandon(&run->processes);
	spawn_abandon(&run->list);
	run->is_running = false;
	return 0;
}

void probe_run_release(struct probe_run *run)
{
	spawn_release(&run->gpus);
	spawn_release(&run->processes);
	spawn_release(&run->list);
	*run = PROBE_RUN_INIT;
}

/* --- how the GPUs are linked -------------------------------------------------------- */

void topo_run_start(struct topo_run *run, const char *path, char *const envp[],
	int64_t limit_ms, int64_t now_ms)
{
	/* execve() takes pointers without const but does not write to the texts */
	char *argv[] = { (char *)path, (char *)"topo", (char *)"-m", NULL };
	int r;

	assert(!run->is_running);
	run->path = path;
	run->is_running = true;
	run->started_ms = run->stepped_ms = now_ms;
	run->limit_ms = probe_limit_ms(limit_ms);
	run->trouble = WHY_NONE;
	if (!spawn_is_gone(&run->spawn)) {
		why_set(&run->trouble, STUCK, (int)run->spawn.pid);
		return;
	}
	r = spawn_start(path, argv, envp, &run->spawn);
	if (r < 0)
		why_set(&run->trouble, "cannot start '%s': %s", path, strerror(-r));
}

unsigned topo_run_poll_fds(const struct topo_run *run, struct pollfd fds[SPAWN_POLL_FDS])
{
	return run->is_running ? spawn_poll_fds(&run->spawn, fds) : 0;
}

int64_t topo_run_deadline_ms(const struct topo_run *run)
{
	int timer_ms = spawn_timer_ms(&run->spawn);
	int64_t deadline = run->started_ms + run->limit_ms;

	if (!run->is_running)
		return INT64_MAX;
	if (run->trouble.text[0])
		return run->started_ms;
	return timer_ms < 0 ? deadline : min_i64(deadline, run->stepped_ms + timer_ms);
}

static struct span first_output_line(const struct smi_output *output)
{
	struct span rest = { output->out, output->out_size }, line = { NULL, 0 };

	(void)span_take_until(&rest, '\n', &line);
	return line;
}

/* Whether the child failed; if so sets *@why.  @has_ended is false at the time limit. */
static bool topo_has_trouble(const struct topo_run *run, bool has_ended, struct why *why)
{
	const struct spawn *spawn = &run->spawn;
	struct smi_output output = output_of(spawn);

	if (run->trouble.text[0])
		*why = run->trouble;
	else if (spawn->was_stopped)
		why_set(why, "nvidia-smi was stopped");
	else if (!has_ended)
		why_set(why, LATE, (long long)(run->limit_ms + 999) / 1000);
	else if (spawn->exec_errno)
		why_set(why, "cannot run '%s': %s", run->path,
			strerror(spawn->exec_errno));
	else if (spawn->exit_code < 0 && !spawn->signal)
		why_set(why, "cannot tell how nvidia-smi ended");
	else if (smi_is_sound(&output, first_output_line(&output), why))
		return false;
	return true;
}

int topo_run_step(
	struct topo_run *run, int64_t now_ms, struct smitopo *ret, struct why *why)
{
	bool has_ended;
	int r = -EBADMSG;

	assert(run->is_running);
	run->stepped_ms = now_ms;
	has_ended = run->trouble.text[0] || spawn_step(&run->spawn) == 0;
	if (!has_ended && !run->spawn.was_stopped &&
		now_ms < run->started_ms + run->limit_ms)
		return PROBE_RUNNING;
	if (!topo_has_trouble(run, has_ended, why))
		r = smitopo_parse(run->spawn.out.text, run->spawn.out.used, ret, why);
	spawn_abandon(&run->spawn);
	run->is_running = false;
	return r;
}

void topo_run_release(struct topo_run *run)
{
	spawn_release(&run->spawn);
	*run = TOPO_RUN_INIT;
}

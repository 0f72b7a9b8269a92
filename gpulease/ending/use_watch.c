#include "clock.h"
#include "config_file.h"
#include "exitcodes.h"
#include "text.h"
#include "rights.h"
#include "use_watch.h"

/* how much longer than nvidia-smi a child may take */
enum { PATIENCE_MS = 30 * 1000 };

extern char **environ;

void use_words_make(const struct context *context, uint64_t job, struct use_words *words)
{
	const struct machine_settings *machine = &context->settings->machine;
	static char own[] = "/proc/self/exe", sample[] = "--sample",
		    config[] = "--config", dir[] = "--dir";
	const char *file = config_file_named(machine->config);
	char **next = words->list;

	words->patience_ms = context->config.probe_deadline_ms + PATIENCE_MS;
	(void)snprintf(words->job, sizeof(words->job), "%llu", (unsigned long long)job);
	*next++ = own;
	*next++ = sample;
	*next++ = words->job;
	/* a relative path leads nowhere from the child's folder */
	if (file && realpath(file, words->config)) {
		*next++ = config;
		*next++ = words->config;
	}
	if (context->named && realpath(context->named, words->dir)) {
		*next++ = dir;
		*next++ = words->dir;
	}
	if (machine->sim_gpus) {
		(void)snprintf(words->sim, sizeof(words->sim), "--sim=%ux%llu",
			machine->sim_gpus, (unsigned long long)machine->sim_mib);
		*next++ = words->sim;
	}
	*next = NULL;
}

/* Returns the first moment after @from_ms at which the job is looked at. */
static int64_t next_moment_ms(
	const struct use_watch *watch, uint64_t job, int64_t from_ms)
{
	/* the golden ratio spreads ids that follow each other */
	int64_t phase_ms = (int64_t)(job * 618 % 1000) * watch->interval_ms / 1000;
	int64_t moment_ms = from_ms - from_ms % watch->interval_ms + phase_ms;

	return moment_ms > from_ms ? moment_ms : moment_ms + watch->interval_ms;
}

void use_watch_begin(struct use_watch *watch, const struct use_words *words, uint64_t job,
	int64_t interval_ms)
{
	*watch = USE_WATCH_NONE;
	watch->words = words->list;
	watch->patience_ms = words->patience_ms;
	watch->interval_ms = interval_ms;
	/* a short job is not worth a look */
	watch->due_ms = next_moment_ms(watch, job, clock_boot_ms() + interval_ms / 2);
}

unsigned use_watch_poll_fds(
	const struct use_watch *watch, struct pollfd fds[SPAWN_POLL_FDS])
{
	return watch->child.pid ? spawn_poll_fds(&watch->child, fds) : 0;
}

int64_t use_watch_wake_ms(const struct use_watch *watch)
{
	int timer_ms = watch->child.pid ? spawn_timer_ms(&watch->child) : -1;

	if (timer_ms >= 0)
		return min_i64(watch->deadline_ms, clock_boot_ms() + timer_ms);
	return watch->child.pid ? watch->deadline_ms : watch->due_ms;
}

/*
 * Reads what the child that has ended has printed: the record of the use, and what the job is told.
 * Returns as use_watch_step() does.
 */
static int take_answer(struct use_watch *watch, char ret_line[USE_LINE_SIZE])
{
	const struct spawn_output *out = &watch->child.out;
	int code = watch->child.exit_code;
	struct text line = text_on(ret_line, USE_LINE_SIZE);

	if ((code != EXIT_DONE && code != EXIT_GAVE_UP) || out->used < RECORD_SIZE)
		return 0;
	lease_use_decode(out->text, &watch->last);
	text_add_printable(&line, out->text + RECORD_SIZE, out->used - RECORD_SIZE);
	if (code == EXIT_GAVE_UP)
		return USE_WATCH_ENDS;
	return line.used ? USE_WATCH_TOLD : 0;
}

int use_watch_step(struct use_watch *watch, int64_t now_ms, char ret_line[USE_LINE_SIZE])
{
	int r = 0;

	if (!watch->words)
		return 0;
	if (watch->child.pid && spawn_step(&watch->child) == SPAWN_RUNNING) {
		if (now_ms >= watch->deadline_ms)
			spawn_release(&watch->child);
		return 0;
	}
	if (watch->child.out.text || watch->child.exit_code != SPAWN_EXIT_UNKNOWN) {
		r = take_answer(watch, ret_line);
		spawn_release(&watch->child);
	}
	if (now_ms < watch->due_ms)
		return r;
	watch->due_ms +=
		(now_ms - watch->due_ms) / watch->interval_ms * watch->interval_ms +
		watch->interval_ms;
	watch->deadline_ms = now_ms + watch->patience_ms;
	if (spawn_start(watch->words[0], watch->words, environ, &watch->child) < 0)
		spawn_release(&watch->child);
	return r;
}

void use_watch_end(struct use_watch *watch)
{
	struct spawn *child = &watch->child;

	/* a killed child would leave an nvidia-smi that hangs; by itself it ends both in time */
	child->pid = 0;
	close_fd(&child->out.fd);
	close_fd(&child->err.fd);
	close_fd(&child->exec_fd);
	spawn_release(child);
	watch->words = NULL;
	watch->due_ms = INT64_MAX;
}

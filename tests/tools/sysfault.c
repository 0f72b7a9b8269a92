/*
 * sysfault: kills or stops a command right before its N-th system call.
 *
 *	sysfault --kill N command…	exits with 0 when the command was killed there
 *	sysfault --stop N command…	exits with 0 and leaves the command stopped (state T)
 *	sysfault --count command…	prints how many calls the command makes until it
 *					becomes another program or ends; waits for its end
 *	--pid FILE			writes the pid of the command to FILE
 *
 * Calls are counted from the first after the command's own execve.  Exits with 1 if the command
 * ended or became another program before its N-th call.
 */
#include "tool.h"
#include "trace.h"

#include <getopt.h>

enum action { NONE, KILL, STOP, COUNT };

struct request {
	enum action action;
	uint64_t call;
	const char *pid_file;
};

static void write_pid(const char *path, pid_t pid)
{
	FILE *file = fopen(path, "we");

	if (!file || fprintf(file, "%d\n", (int)pid) < 0 || fclose(file))
		die("cannot write '%s': %s", path, strerror(errno));
}

/* Takes the command to right before call @call (0: to its end). */
static int advance(struct trace *t, uint64_t call)
{
	bool running = false;
	int r = TRACE_RESTS;

	while (r == TRACE_RESTS && t->at != call)
		r = trace_next(t, false, &running);
	return r;
}

static int act(const struct request *q, struct trace *t)
{
	int reached = advance(t, q->call);

	if (q->action == COUNT) {
		/* The last call, execve or exit, also counts. */
		(void)printf("%u\n", reached == TRACE_EXECED ? t->at - 1 : t->at);
		if (reached == TRACE_EXECED) {
			trace_detach(t);
			(void)waitpid(t->pid, NULL, 0);
		}
		return 0;
	}
	if (reached == TRACE_RESTS && q->action == STOP) {
		trace_stop(t);
		return 0;
	}
	if (reached == TRACE_RESTS) {
		tool_kill(&t->pid);
		return 0;
	}
	if (reached == TRACE_EXECED) {
		trace_detach(t);
		(void)waitpid(t->pid, NULL, 0);
	}
	return 1;
}

static struct request parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "kill", required_argument, NULL, KILL },
		{ "stop", required_argument, NULL, STOP },
		{ "count", no_argument, NULL, COUNT },
		{ "pid", required_argument, NULL, 'p' },
		{ 0 },
	};
	struct request q = { .action = NONE };
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == '?')
			exit(TOOL_MISUSE);
		if (option == 'p') {
			q.pid_file = optarg;
			continue;
		}
		q.action = (enum action)option;
		q.call = option == COUNT ? 0 : number(optarg, "call");
	}
	if (q.action == NONE || (q.action != COUNT && !q.call) || optind == argc)
		die("usage: sysfault [--pid FILE] --kill N|--stop N|--count command…");
	return q;
}

int main(int argc, char **argv)
{
	struct request q = parse(argc, argv);
	struct trace t = { .follows = false };

	tool_init();
	*tool_children_outlive() = true; /* a stopped command must stay */
	trace_start(&t, (const char *const *)argv + optind, -1, -1);
	if (q.pid_file)
		write_pid(q.pid_file, t.pid);
	return act(&q, &t);
}

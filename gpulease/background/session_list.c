#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>

#include "clock.h"
#include "context.h"
#include "find_program.h"
#include "parse.h"
#include "strview.h"
#include "session_list.h"
#include "spawn.h"

extern char **environ;

enum {
	OUTPUT_SIZE = 128 * 1024,
	DEADLINE_MS = 10000,
	QUEUE_DIGITS = 6, /* of the queue in a session's name */
	QUEUE_MAX = 0xffffff,
};

const char *const session_programs[SESSION_PROGRAMS] = {
	[SESSION_TMUX] = "tmux",
	[SESSION_SCREEN] = "screen",
};

/* --- names ------------------------------------------------------------------------- */

uint32_t session_queue(const struct context *context)
{
	struct stat st;
	uint64_t bits;

	if (!context->named && !context->settings->machine.sim_gpus &&
		!context->has_allocation)
		return 0;
	if (fstat(context->dir.fd, &st) < 0)
		return QUEUE_MAX;
	/* a hash of the directory's identity; 0 is reserved for the machine's own queue */
	bits = ((uint64_t)st.st_ino + ((uint64_t)st.st_dev << 40)) * 0x9e3779b97f4a7c15;
	return (uint32_t)(bits >> 40) % QUEUE_MAX + 1;
}

/* Reads the queue "_0a1b2c" at @at.  Returns its length; 0: there is none. */
static size_t name_read_queue(const char *at, uint32_t *ret)
{
	unsigned queue;

	if (*at != '_' || strspn(at + 1, "0123456789abcdef") != QUEUE_DIGITS ||
		sscanf(at + 1, "%x", &queue) != 1)
		return 0;
	*ret = queue;
	return 1 + QUEUE_DIGITS;
}

/* Returns the job in "gpulease-12-train" and sets its queue; 0: the name has no job yet. */
static uint64_t name_read_job(const char *name, uint32_t *ret_queue)
{
	const char *at = name + strlen(SESSION_PREFIX);
	char digits[24];
	size_t size = strspn(at, "0123456789");
	uint64_t job = 0;

	*ret_queue = 0;
	if (size == 0 || size >= sizeof(digits) ||
		at[size + name_read_queue(at + size, ret_queue)] != '-')
		return 0;
	memcpy(digits, at, size);
	digits[size] = '\0';
	return parse_u64(digits, UINT64_MAX - 1, &job, NULL) == 0 ? job : 0;
}

static void session_add(enum session_program program, struct strview name,
	bool is_attached, struct session *all, size_t *count)
{
	struct session *session = &all[*count];

	if (*count == SESSIONS_MAX || strview_size(name) >= sizeof(session->name) ||
		strview_size(name) < strlen(SESSION_PREFIX) ||
		memcmp(name.begin, SESSION_PREFIX, strlen(SESSION_PREFIX)) != 0)
		return;
	*session = (struct session){ .program = program, .is_attached = is_attached };
	memcpy(session->name, name.begin, strview_size(name));
	session->job = name_read_job(session->name, &session->queue);
	++*count;
}

/* Parses `gpulease-12-train 1`. */
static void parse_tmux(struct strview line, struct session *all, size_t *count)
{
	struct strview name = strview_before(line, ' ');

	session_add(SESSION_TMUX, name,
		name.end < line.end && !strview_is(line, "") && *(line.end - 1) != '0',
		all, count);
}

/* Parses `<tab>4711.gpulease-12-train<tab>(Detached)`; there may be a date between. */
static void parse_screen(struct strview line, struct session *all, size_t *count)
{
	struct strview pid = strview_before(line, '.'), name;

	if (pid.end == line.end || strview_size(pid) == 0)
		return;
	for (const char *at = pid.begin; at < pid.end; at++)
		if (!isdigit((unsigned char)*at))
			return;
	name = strview_before((struct strview){ pid.end + 1, line.end }, '\t');
	session_add(SESSION_SCREEN, strview_trim(name),
		memmem(name.end, (size_t)(line.end - name.end), "(Attached)", 10) != NULL,
		all, count);
}

void session_parse(enum session_program program, const char *text, size_t size,
	struct session *all, size_t *count)
{
	struct strview rest = { text, text + size };

	while (rest.begin < rest.end) {
		const char *end = memchr(rest.begin, '\n', strview_size(rest));
		struct strview line = { rest.begin, end ? end : rest.end };

		rest.begin = end ? end + 1 : rest.end;
		line = strview_trim(line);
		if (program == SESSION_TMUX)
			parse_tmux(line, all, count);
		else
			parse_screen(line, all, count);
	}
}

/* --- running tmux and screen ------------------------------------------------------- */

/* Waits for the program.  Returns 0, or a negative errno. */
static int await_program(struct spawn *child)
{
	int64_t until_ms = clock_boot_ms() + DEADLINE_MS;

	while (clock_boot_ms() < until_ms) {
		struct pollfd fds[SPAWN_POLL_FDS];
		unsigned count = spawn_poll_fds(child, fds);
		int timer_ms = spawn_timer_ms(child);
		int left_ms = (int)(until_ms - clock_boot_ms());
		int r = spawn_step(child);

		if (r == 0)
			return child->exec_errno ? -child->exec_errno : 0;
		if (r < 0)
			return r;
		if (timer_ms < 0 || timer_ms > left_ms)
			timer_ms = left_ms;
		(void)poll(fds, count, timer_ms);
	}
	return -ETIMEDOUT;
}

int session_run(char *const argv[], char *out, size_t size)
{
	struct spawn child = SPAWN_INIT;
	char path[PATH_MAX];
	int r = find_program(argv[0], path);

	if (r == 0)
		r = spawn_start(path, argv, environ, &child);
	if (r == 0)
		r = await_program(&child);
	if (r == 0 && size) {
		struct text text = text_on(out, size);

		text_add_bytes(
			&text, child.out.text ? child.out.text : "", child.out.used);
	}
	if (r == 0)
		r = child.exit_code == SPAWN_EXIT_UNKNOWN ? -EIO : child.exit_code;
	spawn_release(&child);
	return r;
}

static int session_compare(const void *a, const void *b)
{
	const struct session *x = a, *y = b;

	return (x->job > y->job) - (x->job < y->job);
}

int session_list(struct session **ret, size_t *ret_count)
{
	static char *const commands[SESSION_PROGRAMS][5] = {
		[SESSION_TMUX] = { (char *)"tmux", (char *)"list-sessions", (char *)"-F",
			(char *)"#{session_name} #{session_attached}", NULL },
		[SESSION_SCREEN] = { (char *)"screen", (char *)"-ls", NULL },
	};
	autofree char *text = malloc(OUTPUT_SIZE);
	struct session *all = calloc(SESSIONS_MAX, sizeof(*all));

	*ret = NULL;
	*ret_count = 0;
	if (!text || !all) {
		free(all);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < SESSION_PROGRAMS; i++) {
		text[0] = '\0';
		/* the exit status does not matter: both end with 1 if there is no session */
		if (session_run(commands[i], text, OUTPUT_SIZE) >= 0)
			session_parse((enum session_program)i, text, strlen(text), all,
				ret_count);
	}
	qsort(all, *ret_count, sizeof(*all), session_compare);
	*ret = all;
	return 0;
}

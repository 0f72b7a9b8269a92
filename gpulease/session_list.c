#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>

#include "clock.h"
#include "context.h"
#include "parse.h"
#include "part.h"
#include "session_list.h"
#include "spawn.h"

extern char **environ;

enum {
	OUTPUT_SIZE = 128 * 1024,
	DEADLINE_MS = 10000,
	QUEUE_DIGITS = 6, /* of a queue's mark */
	QUEUE_MAX = 0xffffff,
};

const char *const session_programs[SESSION_PROGRAMS] = {
	[SESSION_TMUX] = "tmux",
	[SESSION_SCREEN] = "screen",
};

/* --- what they say ----------------------------------------------------------------- */

uint32_t session_queue(const struct context *context)
{
	struct stat st;
	uint64_t bits;

	if (!context->named && !context->settings->sim_gpus && !context->has_allocation)
		return 0;
	if (fstat(context->dir.fd, &st) < 0)
		return QUEUE_MAX;
	bits = ((uint64_t)st.st_ino + ((uint64_t)st.st_dev << 40)) * 0x9e3779b97f4a7c15;
	return (uint32_t)(bits >> 40) % QUEUE_MAX + 1;
}

/* The "_0a1b2c" of a queue at @at: how long it is, 0 where it is none. */
static size_t queue_at(const char *at, uint32_t *ret)
{
	unsigned queue;

	if (*at != '_' || strspn(at + 1, "0123456789abcdef") != QUEUE_DIGITS ||
		sscanf(at + 1, "%x", &queue) != 1)
		return 0;
	*ret = queue;
	return 1 + QUEUE_DIGITS;
}

/* The job in "gpulease-12-train", and its queue; 0: none yet. */
static uint64_t job_of(const char *name, uint32_t *ret_queue)
{
	const char *at = name + strlen(SESSION_PREFIX);
	char digits[24];
	size_t size = strspn(at, "0123456789");
	uint64_t job = 0;

	*ret_queue = 0;
	if (size == 0 || size >= sizeof(digits) ||
		at[size + queue_at(at + size, ret_queue)] != '-')
		return 0;
	memcpy(digits, at, size);
	digits[size] = '\0';
	return parse_u64(digits, UINT64_MAX - 1, &job, NULL) == 0 ? job : 0;
}

static void add(enum session_program program, struct part name, bool is_attached,
	struct session *all, size_t *count)
{
	struct session *session = &all[*count];

	if (*count == SESSIONS_MAX || part_size(name) >= sizeof(session->name) ||
		part_size(name) < strlen(SESSION_PREFIX) ||
		memcmp(name.begin, SESSION_PREFIX, strlen(SESSION_PREFIX)) != 0)
		return;
	*session = (struct session){ .program = program, .is_attached = is_attached };
	memcpy(session->name, name.begin, part_size(name));
	session->job = job_of(session->name, &session->queue);
	++*count;
}

/* `gpulease-12-train 1` */
static void parse_tmux(struct part line, struct session *all, size_t *count)
{
	struct part name = part_before(line, ' ');

	add(SESSION_TMUX, name,
		name.end < line.end && !part_is(line, "") && *(line.end - 1) != '0', all,
		count);
}

/* `<tab>4711.gpulease-12-train<tab>(Detached)`, perhaps with a date between. */
static void parse_screen(struct part line, struct session *all, size_t *count)
{
	struct part pid = part_before(line, '.'), name;

	if (pid.end == line.end || part_size(pid) == 0)
		return;
	for (const char *at = pid.begin; at < pid.end; at++)
		if (!isdigit((unsigned char)*at))
			return;
	name = part_before((struct part){ pid.end + 1, line.end }, '\t');
	add(SESSION_SCREEN, part_trim(name),
		memmem(name.end, (size_t)(line.end - name.end), "(Attached)", 10) != NULL,
		all, count);
}

void session_parse(enum session_program program, const char *text, size_t size,
	struct session *all, size_t *count)
{
	struct part rest = { text, text + size };

	while (rest.begin < rest.end) {
		const char *end = memchr(rest.begin, '\n', part_size(rest));
		struct part line = { rest.begin, end ? end : rest.end };

		rest.begin = end ? end + 1 : rest.end;
		line = part_trim(line);
		if (program == SESSION_TMUX)
			parse_tmux(line, all, count);
		else
			parse_screen(line, all, count);
	}
}

/* --- asking them ------------------------------------------------------------------- */

static int run_to_end(struct spawn *child)
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
		r = run_to_end(&child);
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

static int compare(const void *a, const void *b)
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
		/* both end with 1 where there is no session */
		if (session_run(commands[i], text, OUTPUT_SIZE) >= 0)
			session_parse((enum session_program)i, text, strlen(text), all,
				ret_count);
	}
	qsort(all, *ret_count, sizeof(*all), compare);
	*ret = all;
	return 0;
}

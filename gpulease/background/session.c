#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "job_environment.h"
#include "owner.h"
#include "privilege.h"
#include "session.h"
#include "session_list.h"
#include "job_step.h"
#include "text.h"

/* Text for stderr comes through the FIFO, and once the job's id between these two bytes. */
enum { ID_BEGINS = '\x01', ID_ENDS = '\n' };

enum {
	START_MS = 10000, /* for tmux or screen to begin the session */
	NAMED_TRIES = 3,
};

/* The session that is being begun. */
static struct {
	char here[PATH_MAX]; /* the current directory; "": unknown */
	char folder[PATH_MAX], start[PATH_MAX + 16], fifo[PATH_MAX + 16];
	char name[SESSION_NAME_SIZE], exe[PATH_MAX];
	enum session_program program;
	uint32_t queue; /* identifies the state directory, see session_list.h */
	int fd;         /* of the FIFO */
	char id[24];    /* "" until it is known */
	size_t id_size;
	bool is_in_id;   /* ID_BEGINS has come */
	bool has_output; /* a message of the job was printed */
} session;

/* --- the folder -------------------------------------------------------------------- */

/*
 * Writes the file from which --enter-session makes the same call of gpulease.  Strings, each ended
 * by a NUL: directory, umask, program, the environment, an empty string, the arguments.
 */
static int session_write_start_file(void)
{
	autofd int fd =
		open(session.start, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	autofd int arguments = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	char bytes[4096];
	ssize_t n;
	int failed;

	if (!out)
		return -errno;
	(void)take_fd(&fd);
	(void)fprintf(out, "%s%c%u%c%s%c", session.here, 0, (unsigned)privilege_mask(), 0,
		session.exe, 0);
	for (char **variable = privilege_environment(); *variable; variable++)
		if (**variable)
			(void)fwrite(*variable, 1, strlen(*variable) + 1, out);
	(void)fputc('\0', out);
	while ((n = read(arguments, bytes, sizeof(bytes))) > 0)
		(void)fwrite(bytes, 1, (size_t)n, out);
	failed = ferror(out);
	return fclose(out) != 0 || failed ? -EIO : 0;
}

void session_prepare(void)
{
	if (!getcwd(session.here, sizeof(session.here)))
		session.here[0] = '\0';
}

static int session_make_folder(void)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	ssize_t size = readlink("/proc/self/exe", session.exe, sizeof(session.exe) - 1);
	int r;

	if (size < 0)
		return -errno;
	session.exe[size] = '\0';
	if (!base || !*base || access(base, W_OK) < 0)
		base = getenv("TMPDIR");
	if (!base || !*base)
		base = "/tmp";
	(void)snprintf(
		session.folder, sizeof(session.folder), "%s/gpulease-XXXXXX", base);
	if (!mkdtemp(session.folder))
		return -errno;
	(void)snprintf(session.start, sizeof(session.start), "%s/start", session.folder);
	(void)snprintf(session.fifo, sizeof(session.fifo), "%s/said", session.folder);
	r = session_write_start_file();
	if (r == 0 && mkfifo(session.fifo, 0600) < 0)
		r = -errno;
	if (r < 0)
		return r;
	session.fd = open(session.fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return session.fd < 0 ? -errno : 0;
}

static void session_remove_folder(void)
{
	close_fd(&session.fd);
	(void)unlink(session.start);
	(void)unlink(session.fifo);
	(void)rmdir(session.folder);
}

/* --- the session ------------------------------------------------------------------- */

static int session_begin_tmux(void)
{
	char *const argv[] = { (char *)"tmux", (char *)"new-session", (char *)"-d",
		(char *)"-s", session.name, session.exe, (char *)"--enter-session",
		session.folder, NULL };

	return session_run(argv, NULL, 0);
}

static int session_begin_screen(void)
{
	char *const argv[] = { (char *)"screen", (char *)"-d", (char *)"-m", (char *)"-S",
		session.name, session.exe, (char *)"--enter-session", session.folder,
		NULL };

	return session_run(argv, NULL, 0);
}

/*
 * Begins a session in tmux, or in screen if there is no tmux.  The session has a random name until
 * the job has its id.  Returns 0, the exit status of the program, or a negative errno (-ENOENT:
 * neither is there).
 */
static int session_begin_any(void)
{
	char token[TOKEN_SIZE];
	int r = token_make(token);

	if (r < 0)
		return r;
	(void)snprintf(
		session.name, sizeof(session.name), SESSION_PREFIX "new-%s", token);
	session.program = SESSION_TMUX;
	r = session_begin_tmux();
	if (r != -ENOENT)
		return r;
	session.program = SESSION_SCREEN;
	return session_begin_screen();
}

/*
 * Makes the name gpulease-ID-NAME.  A character of the job's name that tmux or screen would treat
 * specially becomes "_".
 */
static void session_choose_name(
	const struct context *context, char wanted[SESSION_NAME_SIZE])
{
	const struct settings *settings = context->settings;
	const char *name = settings->request.name
				   ? settings->request.name
				   : text_base_name(settings->environment.command[0]);
	char mark[16] = "";

	if (session.queue)
		(void)snprintf(mark, sizeof(mark), "_%06x", session.queue);
	(void)snprintf(wanted, SESSION_NAME_SIZE, SESSION_PREFIX "%s%s-%.40s", session.id,
		mark, name);
	for (char *at = wanted; *at; at++)
		if (!strchr("-_", *at) && !(*at >= '0' && *at <= '9') &&
			!((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z'))
			*at = '_';
}

static bool session_exists(const struct session *all, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, name) == 0)
			return true;
	return false;
}

/*
 * Renames the session to @wanted, if no session has that name: tmux would refuse a second one,
 * screen would not.  Returns true if the session is renamed, or has ended meanwhile.
 */
static bool session_rename_to(char *wanted)
{
	char *const tmux[] = { (char *)"tmux", (char *)"rename-session", (char *)"-t",
		session.name, wanted, NULL };
	char *const screen[] = { (char *)"screen", (char *)"-S", session.name,
		(char *)"-X", (char *)"sessionname", wanted, NULL };
	autofree struct session *all = NULL;
	size_t count;

	if (session_list(&all, &count) < 0 || session_exists(all, count, wanted))
		return false;
	return !session_exists(all, count, session.name) ||
	       session_run(session.program == SESSION_TMUX ? tmux : screen, NULL, 0) == 0;
}

/* Names the session by the job's id; with a random suffix if that name is taken. */
static void session_rename(const struct context *context)
{
	char wanted[SESSION_NAME_SIZE], other[SESSION_NAME_SIZE], token[TOKEN_SIZE];

	session_choose_name(context, wanted);
	text_copy(other, sizeof(other), wanted);
	for (unsigned tries = 0; tries < NAMED_TRIES; tries++) {
		struct text text;

		if (session_rename_to(other))
			return;
		text = TEXT_ON(other);
		if (token_make(token) == 0)
			text_addf(&text, "%s-%.4s", wanted, token);
	}
	note("cannot rename the session of job %s to '%s'; its name is '%s'", session.id,
		wanted, session.name);
}

/* --- until the job has its ticket -------------------------------------------------- */

/* Passes messages of the job on to stderr and collects its id.  True once the id is complete. */
static bool session_read_fifo_bytes(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (session.is_in_id && bytes[i] == ID_ENDS)
			return true;
		if (session.is_in_id && session.id_size < sizeof(session.id) - 1)
			session.id[session.id_size++] = bytes[i];
		else if (bytes[i] == ID_BEGINS)
			session.is_in_id = true;
		else if (write(STDERR_FILENO, &bytes[i], 1) == 1)
			session.has_output = true;
	}
	return false;
}

/*
 * Waits for the job's id.  Returns 0; -ETIMEDOUT: the session has not begun; -ENODATA: the job
 * ended without an id; or another negative errno.
 */
static int session_wait_for_id(void)
{
	struct pollfd poll_fd = { .fd = session.fd, .events = POLLIN };
	int timeout_ms = START_MS;
	char bytes[512];

	for (;;) {
		int ready = poll(&poll_fd, 1, timeout_ms);
		ssize_t n;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready < 0 ? -errno : -ETIMEDOUT;
		/* the session has begun; a probe may keep the job long before it has its ticket */
		timeout_ms = -1;
		n = read(session.fd, bytes, sizeof(bytes));
		if (n > 0 && session_read_fifo_bytes(bytes, (size_t)n))
			return 0;
		if (n == 0)
			return -ENODATA;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
	}
}

/* Prints why there is no session.  Returns the exit status. */
static int session_explain_failure(int r)
{
	const char *program = session_programs[session.program];

	if (r == -ENOENT)
		diag("--screen needs tmux or screen, and neither is in PATH; install one, or "
		     "use --submit");
	else if (r > 0)
		diag("%s could not begin a session (exit status %d)", program, r);
	else if (r != -ENODATA || !session.has_output)
		diag("the session in %s has not begun: %s", program,
			r == -ENODATA ? "it ended at once" : strerror(-r));
	return EXIT_MISUSE;
}

int session_begin(struct context *context)
{
	int r;

	session.fd = -1;
	session.queue = session_queue(context);
	/*
	 * before anything is done in folders that the user names: no file of the state stays open
	 */
	statedir_release(&context->dir);
	if (privilege_drop() < 0)
		return EXIT_MISUSE;
	job_step_leave();
	r = session_make_folder();
	if (r < 0) {
		diag("cannot prepare a session in '%s': %s", session.folder,
			strerror(-r));
		session_remove_folder();
		return EXIT_MISUSE;
	}
	r = session_begin_any();
	if (r == 0)
		r = session_wait_for_id();
	if (r == 0)
		session_rename(context);
	session_remove_folder();
	if (r != 0)
		return session_explain_failure(r);
	printf("%s\n", session.id);
	return EXIT_DONE;
}

/* --- inside ------------------------------------------------------------------------ */

bool is_in_session(void)
{
	return getenv(SESSION_VARIABLE) != NULL;
}

void session_announce(uint64_t job)
{
	char line[32];
	int size = snprintf(line, sizeof(line), "%c%llu%c", ID_BEGINS,
		(unsigned long long)job, ID_ENDS);

	if (write(STDERR_FILENO, line, (size_t)size) < 0)
		note("cannot send the id of job %llu: the gpulease that began the session "
		     "has ended",
			(unsigned long long)job);
	(void)dup2(STDOUT_FILENO, STDERR_FILENO);
}

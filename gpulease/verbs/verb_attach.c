/*
 * --attach: enters a session of --screen, by executing tmux or screen.
 */
#include <errno.h>
#include <stdio.h>

#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "operands.h"
#include "privilege.h"
#include "rlimits.h"
#include "session_list.h"
#include "verbs.h"

/* Executes @argv.  Returns only on failure: the exit status. */
static int attach_execute(char *const argv[])
{
	char path[PATH_MAX];
	int r = find_program(argv[0], path);

	if (r == 0) {
		rlimits_restore();
		(void)execv(path, argv);
		r = -errno;
	}
	diag("cannot execute '%s': %s", argv[0], strerror(-r));
	return EXIT_CANNOT_EXECUTE;
}

static int attach_enter(const struct session *session)
{
	char exact[SESSION_NAME_SIZE + 1];
	/* tmux refuses a session in a session: inside tmux its client switches to the other one */
	char *const change[] = { (char *)"tmux", (char *)"switch-client", (char *)"-t",
		exact, NULL };
	char *const attach[] = { (char *)"tmux", (char *)"attach-session", (char *)"-t",
		exact, NULL };
	char *const screen[] = { (char *)"screen", (char *)"-x", (char *)session->name,
		NULL };

	(void)snprintf(exact, sizeof(exact), "=%s", session->name);
	if (session->program == SESSION_SCREEN)
		return attach_execute(screen);
	return attach_execute(getenv("TMUX") ? change : attach);
}

/*
 * Returns the session of job @job in queue @queue; NULL, after a message, if there is none or
 * several.
 */
static const struct session *attach_find(
	const struct session *all, size_t count, uint64_t job, uint32_t queue)
{
	const struct session *found = NULL;

	for (size_t i = 0; i < count; i++) {
		if (all[i].job != job || all[i].queue != queue)
			continue;
		if (found) {
			diag("'%s' and '%s' are both called after job %llu, one of them "
			     "from an earlier queue; enter it with %s",
				found->name, all[i].name, (unsigned long long)job,
				session_programs[all[i].program]);
			return NULL;
		}
		found = &all[i];
	}
	if (found)
		return found;
	diag("job %llu has no session of yours; --sessions lists those there are, and --log "
	     "and --follow show what a job has printed",
		(unsigned long long)job);
	return NULL;
}

int verb_attach(struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(settings->verb.operands, 1, OPERAND_JOB);
	static struct context context;
	const struct session *found;
	struct session *all;
	struct operand job;
	uint32_t queue;
	size_t count;
	int r = context_open(settings, &context);

	if (r != 0)
		return r;
	queue = session_queue(&context);
	r = privilege_drop();
	if (r == 0)
		r = operand_next(&walk, &job, NULL);
	if (r == 0)
		r = session_list(&all, &count);
	if (r != 0) {
		diag("cannot list the sessions: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	found = attach_find(all, count, job.first, queue);
	return found ? attach_enter(found) : EXIT_NOT_DONE;
}

/*
 * --sessions: lists the sessions of --screen.  --attach: enters one, by executing tmux or screen.
 */
#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "operands.h"
#include "privilege.h"
#include "json_members.h"
#include "render_table.h"
#include "session_list.h"
#include "terminal.h"
#include "verbs.h"

static int sessions_print_table(const struct session *all, size_t count)
{
	static const struct table_column columns[] = {
		{ .title = "JOB", .is_right = true },
		{ .title = "SESSION" },
		{ .title = "IN" },
		{ .title = "ATTACHED" },
	};
	struct table table = TABLE_ON(columns);
	struct table_style style = terminal_style();
	int r;

	for (size_t i = 0; i < count; i++) {
		table_row(&table);
		if (all[i].job)
			table_putf(&table, 0, "%llu", (unsigned long long)all[i].job);
		table_put(&table, 1, all[i].name);
		table_put(&table, 2, session_programs[all[i].program]);
		table_put(&table, 3, all[i].is_attached ? "yes" : "no");
	}
	r = table_print(&table, &style, stdout);
	table_release(&table);
	return r;
}

static void sessions_print_json(const struct session *all, size_t count)
{
	struct json json = JSON_ON(stdout);

	document_begin(&json, "sessions", clock_real_ms(), NULL);
	json_key(&json, "sessions");
	json_begin_array(&json);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(&json);
		member_number_if(&json, "ticket", all[i].job, all[i].job);
		json_put_text(&json, "session", all[i].name);
		json_put_text(&json, "program", session_programs[all[i].program]);
		member_bool(&json, "attached", all[i].is_attached);
		json_end(&json);
	}
	json_end(&json);
	document_finish(&json);
}

int verb_sessions(struct settings *settings)
{
	struct session *all;
	size_t count;
	int r = privilege_drop();

	if (r == 0)
		r = session_list(&all, &count);
	if (r < 0) {
		diag("cannot list the sessions: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	if (settings->output.json)
		sessions_print_json(all, count);
	else if (count)
		r = sessions_print_table(all, count);
	else
		printf("no sessions\n");
	free(all);
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}

/* --- entering ---------------------------------------------------------------------- */

/* Executes @argv.  Returns only on failure: the exit status. */
static int attach_execute(char *const argv[])
{
	char path[PATH_MAX];
	int r = find_program(argv[0], path);

	if (r == 0) {
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

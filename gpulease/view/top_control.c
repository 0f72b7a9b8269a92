#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "clock.h"
#include "top_state.h"

enum {
	NOTICE_MS = 6 * 1000,
	CANCEL_MS = 30 * 1000, /* how long gpulease --cancel may take */
};

/* --- the last line ----------------------------------------------------------------------- */

static void set_notice(struct top *top, const char *text, int64_t until_ms)
{
	struct text notice = TEXT_ON(top->view.notice);

	text_add_visible(&notice, text);
	top->notice_ms = until_ms;
	top->is_dirty = true;
}

void top_notice(struct top *top, const char *text)
{
	set_notice(top, text, clock_boot_ms() + NOTICE_MS);
}

static void clear_notice(struct top *top)
{
	top->view.notice[0] = '\0';
	top->notice_ms = INT64_MAX;
	top->cancel_job = -1;
	top->is_dirty = true;
}

/* --- jobs -------------------------------------------------------------------------------- */

/* Finds the user and the name of a job of the shown machine.  Returns false if there is none. */
static bool find_job(
	const struct top *top, int64_t job, const char **ret_user, const char **ret_name)
{
	const struct machine *machine = &top->hosts[top->view.host].machine;

	for (size_t i = 0; i < machine->lease_count; i++)
		if (machine->leases[i].job == job) {
			*ret_user = machine->leases[i].user;
			*ret_name = machine->leases[i].name;
			return true;
		}
	for (size_t i = 0; i < machine->queue_count; i++)
		if (machine->queue[i].job == job) {
			*ret_user = machine->queue[i].user;
			*ret_name = machine->queue[i].name;
			return true;
		}
	return false;
}

bool top_is_own_job(const struct top *top, int64_t job)
{
	const char *user, *name;

	return find_job(top, job, &user, &name) && strcmp(user, top->own_user) == 0;
}

/* Returns the place of the chosen job in the frame, or the number of jobs. */
static size_t find_chosen(const struct top *top)
{
	size_t at = 0;

	while (at < top->frame->job_count && top->frame->jobs[at] != top->view.chosen_job)
		at++;
	return at;
}

/* Whether the rows of jobs are on the screen. */
static bool has_jobs(const struct top *top)
{
	return !top->view.is_help && !top->view.are_hosts;
}

void top_control_settle(struct top *top)
{
	size_t at = find_chosen(top);

	if (!has_jobs(top) || top->view.chosen_job < 0)
		return;
	if (at < top->frame->job_count)
		top->chosen_at = at;
	else /* the next arrow begins where the job was */
		top->view.chosen_job = -1;
}

/* Returns the chosen job; -1, after a notice, if none is chosen. */
static int64_t chosen_job(struct top *top)
{
	if (has_jobs(top) && top->view.chosen_job >= 0)
		return top->view.chosen_job;
	top_notice(top, "choose a job with the arrow keys first");
	return -1;
}

/* Shows another machine, in which no job is chosen. */
static void show_host(struct top *top, size_t host)
{
	if (host == top->view.host)
		return;
	top->view.host = host;
	top->view.chosen_job = -1;
	top->view.first_row = 0;
	top->chosen_at = 0;
}

/* Chooses the job @step rows below the chosen one, or above it. */
static void choose(struct top *top, int64_t step)
{
	struct top_view *view = &top->view;
	int64_t last = (int64_t)top->frame->job_count - 1;
	int64_t at = (int64_t)top->chosen_at;

	if (view->are_hosts) {
		at = (int64_t)view->host + step;
		show_host(top, (size_t)max_i64(0, min_i64(at, (int64_t)top->count - 1)));
		return;
	}
	if (!has_jobs(top) || last < 0)
		return;
	if (view->chosen_job >= 0 || step < -1 || step > 1)
		at += step; /* else the first arrow chooses the job where it is */
	at = max_i64(0, min_i64(at, last));
	view->chosen_job = top->frame->jobs[at];
	top->chosen_at = (size_t)at;
}

/* --- with the whole terminal ---------------------------------------------------------------- */

/* Shows how the program has ended, on the screen that it has used. */
static void show_end(struct top *top, const char *verb, int64_t job, int status)
{
	if (status)
		(void)dprintf(top->terminal.fd,
			"\ngpulease: %s %lld has ended with status %d; press Enter\n",
			verb, (long long)job, status);
	else
		(void)dprintf(top->terminal.fd,
			"\ngpulease: %s %lld has ended; press Enter\n", verb,
			(long long)job);
	top->end_signal = top_act_wait_for_enter(top->terminal.fd, top->signal_fd);
}

/* Runs `gpulease VERB JOB`.  Returns its exit status; 130: Ctrl-C has ended it. */
static int run_on_terminal(struct top *top, const char *verb)
{
	const char *remote = top->sources[top->view.host].remote;
	int64_t job = top->view.chosen_job;
	int status = 0, r;

	if (top_action_on_terminal(&top->action, top->settings, remote, verb, job) != 0)
		return 0;
	r = top_act_run(top->action.words, top->terminal.fd, top->signal_fd, &status,
		&top->end_signal);
	if (r < 0) {
		top_notice(top, strerror(-r));
		return 0;
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* @shows_end: also if the program has not failed, as its last lines may be of interest. */
static void use_terminal(struct top *top, const char *verb, bool shows_end)
{
	int64_t job = chosen_job(top);
	int status;

	if (job < 0)
		return;
	top_terminal_leave(&top->terminal);
	status = run_on_terminal(top, verb);
	if (!top->end_signal && status != 128 + SIGINT && (shows_end || status))
		show_end(top, verb, job, status);
	if (!top->end_signal)
		top->fault = top_terminal_enter(&top->terminal);
	top->keys = TOP_KEYS_NONE;
}

/* --- cancelling ------------------------------------------------------------------------------- */

static void ask_to_cancel(struct top *top)
{
	char question[sizeof(top->view.notice)];
	const char *user, *name;
	int64_t job = chosen_job(top);

	if (job < 0 || !find_job(top, job, &user, &name))
		return;
	if (top->cancel.pid > 0) {
		top_notice(top, "another job is being cancelled");
		return;
	}
	(void)snprintf(question, sizeof(question), "cancel job %lld of %s%s%s%s? y/n",
		(long long)job, user, name[0] ? " (" : "", name, name[0] ? ")" : "");
	top->cancel_job = job;
	set_notice(top, question, INT64_MAX);
}

static void cancel(struct top *top)
{
	const char *remote = top->sources[top->view.host].remote;
	struct top_action *action = &top->cancelling;
	int64_t job = top->cancel_job;
	int r;

	clear_notice(top);
	if (top_action_cancel(action, top->settings, remote, job) != 0)
		return;
	r = answer_begin(&top->cancel, action->words);
	top->cancel_until_ms = clock_boot_ms() + CANCEL_MS;
	top->is_cancelling = r == 0;
	top_notice(top, r < 0 ? strerror(-r) : "cancelling ...");
}

/* Says how the program that cancels has ended. */
static void tell_cancelled(struct top *top)
{
	const struct answer *answer = &top->cancel;
	char text[sizeof(answer->error)];

	(void)snprintf(text, sizeof(text), "job %s is cancelled", top->cancelling.job);
	if (answer->fault == -ETIMEDOUT)
		top_notice(top, "gpulease --cancel does not end");
	else if (answer->fault)
		top_notice(top, strerror(-answer->fault));
	else if (answer->error[0])
		top_notice(top, answer->error);
	else if (answer->status == 0)
		top_notice(top, text);
	else {
		(void)snprintf(text, sizeof(text),
			"gpulease --cancel has failed with status %d", answer->status);
		top_notice(top, text);
	}
}

void top_control_step(struct top *top, int64_t now_ms)
{
	struct answer *answer = &top->cancel;

	if (top->view.notice[0] && now_ms >= top->notice_ms)
		clear_notice(top);
	if (!top->is_cancelling)
		return;
	answer_take(answer);
	if (!answer->fault && !answer_is_complete(answer)) {
		if (now_ms < top->cancel_until_ms)
			return;
		answer_end(answer);
		answer->fault = -ETIMEDOUT;
	}
	top->is_cancelling = false;
	tell_cancelled(top);
	for (size_t i = 0; i < top->count; i++) /* show what has become of it */
		top->sources[i].next_ms = top->sources[i].next_ended_ms = now_ms;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void key_up(struct top *top)
{
	choose(top, -1);
}

static void key_down(struct top *top)
{
	choose(top, 1);
}

/* Goes through the jobs if one is chosen, else through the rows. */
static void turn_page(struct top *top, int64_t step)
{
	struct top_view *view = &top->view;
	int64_t first = (int64_t)view->first_row + step;

	if (view->chosen_job >= 0 || view->are_hosts)
		choose(top, step);
	else
		view->first_row = (unsigned)max_i64(
			0, min_i64(first, (int64_t)top->frame->last_first_row));
}

static void key_page_up(struct top *top)
{
	turn_page(top, -(int64_t)(top->view.rows / 2));
}

static void key_page_down(struct top *top)
{
	turn_page(top, top->view.rows / 2);
}

static void key_first(struct top *top)
{
	choose(top, INT32_MIN);
}

static void key_last(struct top *top)
{
	choose(top, INT32_MAX);
}

static void key_follow(struct top *top)
{
	use_terminal(top, "--follow", true);
}

static void key_attach(struct top *top)
{
	use_terminal(top, "--attach", false);
}

static void key_mine(struct top *top)
{
	top->view.is_mine = !top->view.is_mine;
	top->view.first_row = 0;
}

static void key_times(struct top *top)
{
	top->view.is_clock = !top->view.is_clock;
}

static void key_hosts(struct top *top)
{
	if (!top->settings->look.hosts)
		top_notice(
			top, "only this machine; for others: gpulease --top --host a,b");
	else
		top->view.are_hosts = !top->view.are_hosts;
}

static void key_enter(struct top *top)
{
	top->view.are_hosts = false;
}

static void key_right(struct top *top)
{
	show_host(top, (top->view.host + 1) % top->count);
}

static void key_left(struct top *top)
{
	show_host(top, (top->view.host + top->count - 1) % top->count);
}

static void key_help(struct top *top)
{
	top->view.is_help = !top->view.is_help;
}

/* Leaves what was opened last. */
static void key_escape(struct top *top)
{
	if (top->view.is_help || top->view.are_hosts)
		top->view.is_help = top->view.are_hosts = false;
	else
		top->view.chosen_job = -1;
}

static void key_quit(struct top *top)
{
	if (top->view.is_help)
		top->view.is_help = false;
	else
		top->is_done = true;
}

static void key_redraw(struct top *top)
{
	top_terminal_measure(&top->terminal);
}

static const struct {
	int key;
	bool acts; /* not with --top=look */
	void (*run)(struct top *);
} actions[] = {
	{ TOP_KEY_UP, false, key_up },
	{ 'k', false, key_up },
	{ TOP_KEY_DOWN, false, key_down },
	{ 'j', false, key_down },
	{ TOP_KEY_PAGE_UP, false, key_page_up },
	{ TOP_KEY_PAGE_DOWN, false, key_page_down },
	{ TOP_KEY_FIRST, false, key_first },
	{ TOP_KEY_LAST, false, key_last },
	{ TOP_KEY_LEFT, false, key_left },
	{ TOP_KEY_RIGHT, false, key_right },
	{ TOP_KEY_ESCAPE, false, key_escape },
	{ TOP_KEY_REDRAW, false, key_redraw },
	{ '\r', false, key_enter },
	{ '\n', false, key_enter },
	{ 'f', false, key_follow },
	{ 'a', true, key_attach },
	{ 'c', true, ask_to_cancel },
	{ 'u', false, key_mine },
	{ 't', false, key_times },
	{ 'h', false, key_hosts },
	{ '?', false, key_help },
	{ 'q', false, key_quit },
};

void top_control_key(struct top *top, int key)
{
	bool is_yes = top->cancel_job >= 0 && (key == 'y' || key == 'Y');

	if (top->cancel_job >= 0) { /* any other key means no */
		if (is_yes)
			cancel(top);
		else
			clear_notice(top);
		return;
	}
	clear_notice(top);
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (actions[i].key != key)
			continue;
		if (actions[i].acts && !top->view.can_act)
			top_notice(top, "--top=look acts on no job");
		else
			actions[i].run(top);
	}
}

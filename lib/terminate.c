#include <errno.h>
#include <signal.h>

#include "kin.h"
#include "terminate.h"

enum { ROUND_MS = 50, ROUND_MAX_MS = 1000 };

/* The job itself, as @life follows it: the owner, or the command of one that is dead. */
static struct owner find_process(
	const struct termination *termination, const struct life *life)
{
	return life->is_orphaned ? owner_as_command(&termination->owner, &life->runs)
				 : termination->owner;
}

/* Signals the job itself, judged alive just now, and its process group if it leads one. */
static int signal_process(const struct termination *termination, const struct life *life,
	uint64_t my_pidns, int signal)
{
	struct owner process = find_process(termination, life);
	bool is_supervisor = termination->is_supervised && !life->is_orphaned;
	uint32_t uid = termination->is_forced ? PROCESS_ANY_USER : process.uid;
	autofd int pidfd = -1;
	int r;

	switch (owner_judge(&process, my_pidns, &pidfd)) {
	case OWNER_DEAD:
		return 0;
	case OWNER_UNDECIDED:
		return process.pidns == my_pidns ? 0 : -ENOTSUP;
	case OWNER_ALIVE:
		break;
	}
	r = is_supervisor ? process_signal(process.pid, pidfd, uid, signal)
			  : process_signal_group(process.pid, pidfd, uid, signal);
	if (r == 0 && is_supervisor)
		r = process_signal(process.pid, pidfd, uid, SIGCONT);
	return r == -ESRCH ? 0 : r == PROCESS_OF_ANOTHER ? -EPERM : r;
}

static int signal_all(const struct termination *termination, const struct life *life,
	uint64_t my_pidns, int signal, bool with_kin)
{
	struct owner process = find_process(termination, life);
	int r = life_is_dead(life) ? 0
				   : signal_process(termination, life, my_pidns, signal);

	if (r == 0 && with_kin && !termination->is_step)
		(void)kin_signal_all(process.token, process.uid, signal, process.pid);
	return r;
}

int terminate_step(struct termination *termination, const struct life *life,
	uint64_t my_pidns, int64_t now_ms, int64_t *ret_wake_ms)
{
	int64_t pause_ms = ROUND_MS;
	int r = 0;

	if (termination->is_step ? life_is_dead(life) : life_is_over(life))
		return 0;
	if (!termination->begun_ms) {
		termination->begun_ms = now_ms;
		/* with its owner dead, what it left behind is all there is to tell */
		r = signal_all(termination, life, my_pidns, SIGTERM, life_is_dead(life));
	}
	if (r < 0)
		return r;
	if (now_ms < termination->begun_ms + termination->grace_ms) {
		*ret_wake_ms = termination->begun_ms + termination->grace_ms;
		return TERMINATE_LATER;
	}
	if (!termination->killed_ms)
		termination->killed_ms = now_ms;
	r = signal_all(termination, life, my_pidns, SIGKILL, true);
	for (unsigned i = 0; i < termination->rounds && pause_ms < ROUND_MAX_MS; i++)
		pause_ms *= 2;
	termination->rounds++;
	*ret_wake_ms = now_ms + pause_ms;
	return r < 0 ? r : TERMINATE_LATER;
}

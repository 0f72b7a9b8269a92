#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "diag.h"
#include "exitcodes.h"
#include "live_fifo.h"
#include "namespaces.h"
#include "parse.h"
#include "process_lease.h"
#include "rlimits.h"
#include "job_step.h"

enum { LEVEL_MAX = 1000 };

static bool job_step_has_token(const struct owner *owner, const char *token)
{
	return token && strcmp(owner->token, token) == 0;
}

static bool job_step_has_tag(const struct owner *owner, rlim_t tag)
{
	return tag != RLIM_INFINITY && tag != 0 && process_lease_tag(owner->token) == tag;
}

const struct snapshot_lease *job_step_find_lease(const struct snapshot *view)
{
	const char *token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	struct rlimit locks = { .rlim_cur = RLIM_INFINITY };

	(void)getrlimit(RLIMIT_LOCKS, &locks);
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		const struct owner *owner = &lease->lease.owner;

		if (owner->uid != namespaces_own_user() || !lease->is_of_this_boot ||
			lease_is_final(&lease->lease))
			continue;
		/* the lease cannot be over: this process has its token or tag, and lives */
		if (job_step_has_token(owner, token) ||
			job_step_has_tag(owner, locks.rlim_cur) ||
			(owner->pidns == view->dir->pidns && !lease->is_dead &&
				process_lease_is_descendant((uint32_t)getppid(),
					snapshot_lease_process(lease).pid)))
			return lease;
	}
	return NULL;
}

/* --- a job whose lease was lost ---------------------------------------------------------- */

/* Whether live/@token is the FIFO of a live job of this user. */
static bool has_live_fifo(const struct statedir *dir, const char *token)
{
	struct stat st;

	return live_fifo_look(dir, token, NULL) == LIVE_FIFO_HELD &&
	       fstatat(dir->live_fd, token, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_uid == getuid();
}

/* The ticket of the job that this process may belong to. */
struct own_ticket {
	const char *token;
	uint64_t number; /* 0: not found */
	struct ticket ticket;
};

static int note_own_ticket(void *arg, uint64_t number, const struct ticket *ticket)
{
	struct own_ticket *own = arg;

	if (strcmp(ticket->owner.token, own->token) != 0 ||
		ticket->owner.uid != namespaces_own_user())
		return 0;
	own->number = number;
	own->ticket = *ticket;
	return 1;
}

/* Finds the ticket: mostly GPULEASE_ID names it, or the first ticket of its job. */
static void find_own_ticket(struct queue *queue, struct own_ticket *own)
{
	const char *id = getenv("GPULEASE_ID");
	struct ticket first;
	uint64_t number;

	if (id && parse_u64(id, INT64_MAX, &number, NULL) == 0 && number &&
		ticket_read(&queue->file, number, &first) == TICKET_RECORD &&
		note_own_ticket(own, number, &first))
		return;
	(void)!ticket_each(&queue->file, 1, UINT64_MAX, note_own_ticket, own);
}

/* Whether the job of @token lives and has GPUs, by its FIFO and its ticket. */
static bool is_lost_job(struct queue *queue, const char *token, struct own_ticket *own)
{
	const struct statedir *dir = queue->dir;
	const char *uuids = getenv("GPULEASE_UUIDS");
	const struct ticket *ticket = &own->ticket;

	*own = (struct own_ticket){ .token = token };
	if (!has_live_fifo(dir, token) && !getenv("GPULEASE_ID"))
		return false;
	find_own_ticket(queue, own);
	/* the ticket of a shell has another token, and that of a damaged file cannot be read */
	if (!own->number)
		return has_live_fifo(dir, token) && (!uuids || *uuids);
	/* an attempt that has a later one has given its lease back */
	return ticket->state == TICKET_GRANTED && !ticket->latest &&
	       ticket->request.gpus && strcmp(ticket->boot, dir->boot) == 0 &&
	       (has_live_fifo(dir, token) ||
		       owner_judge_job(&ticket->owner, &ticket->runs, dir->pidns) ==
			       OWNER_ALIVE);
}

/* Finds the job by the signs of this process.  Sets @token. */
static bool find_lost_job(struct queue *queue, const struct snapshot *view,
	struct own_ticket *own, char token[TOKEN_SIZE])
{
	const char *carried = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	const struct owner *unknown = &view->unknown.owner;
	struct rlimit locks = { .rlim_cur = RLIM_INFINITY };

	if (carried && is_token(carried)) {
		text_copy(token, TOKEN_SIZE, carried);
		return is_lost_job(queue, token, own);
	}
	(void)getrlimit(RLIMIT_LOCKS, &locks);
	/* the tag lacks the first bit of the token */
	for (unsigned bit = 0; bit < 2 && locks.rlim_cur <= INT64_MAX && locks.rlim_cur;
		bit++) {
		(void)snprintf(token, TOKEN_SIZE, "%016llx",
			(unsigned long long)locks.rlim_cur | (unsigned long long)bit
								     << 63);
		if (has_live_fifo(view->dir, token) && is_lost_job(queue, token, own))
			return true;
	}
	if (!view->has_unknown_job || !view->unknown.ticket ||
		unknown->uid != namespaces_own_user() ||
		unknown->pidns != view->dir->pidns ||
		!process_lease_is_descendant((uint32_t)getppid(), unknown->pid))
		return false;
	text_copy(token, TOKEN_SIZE, unknown->token);
	return is_lost_job(queue, token, own);
}

/* Reads the GPUs of @uuids, "UUID,UUID".  Returns false if one of them is not known. */
static bool read_gpus(const struct snapshot *view, const char *uuids, struct gpuset *ret)
{
	*ret = GPUSET_NONE;
	while (uuids && *uuids) {
		size_t size = strcspn(uuids, ",");
		char uuid[UUID_SIZE];
		int slot;

		if (size >= sizeof(uuid))
			return false;
		(void)snprintf(uuid, sizeof(uuid), "%.*s", (int)size, uuids);
		slot = snapshot_find_gpu(view, uuid);
		if (slot < 0)
			return false;
		gpuset_add(ret, (unsigned)slot);
		uuids += size + (uuids[size] == ',');
	}
	return !gpuset_is_empty(ret);
}

/* Returns a live lease that leaves no room for others on one of @gpus; NULL if there is none. */
static const struct snapshot_lease *find_other_lease(
	const struct snapshot *view, const struct gpuset *gpus)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		struct gpuset common = gpuset_and(&lease->lease.gpus, gpus);
		struct need need = lease_need(&lease->lease);

		if (!lease->is_over && !gpuset_is_empty(&common) && need_is_whole(&need))
			return lease;
	}
	return NULL;
}

int job_step_find_lost(
	struct queue *queue, const struct snapshot *view, struct snapshot_lease *ret)
{
	const char *id = getenv("GPULEASE_ID");
	const struct snapshot_lease *other = NULL;
	struct lease *lease = &ret->lease;
	char token[TOKEN_SIZE];
	struct own_ticket own;
	uint64_t number = 0;
	bool is_known;

	if (!find_lost_job(queue, view, &own, token))
		return 0;
	*ret = (struct snapshot_lease){ .is_of_this_boot = true };
	if (own.number)
		number = own.ticket.job ? own.ticket.job : own.number;
	else if (id)
		(void)!parse_u64(id, INT64_MAX, &number, NULL);
	lease->ticket = number;
	lease->attempt = own.ticket.attempt;
	lease->owner = own.ticket.owner;
	text_copy(lease->owner.token, TOKEN_SIZE, token);
	lease->share_percent =
		own.number ? own.ticket.request.share_percent : WHOLE_PERCENT;
	lease->vram_mib = own.ticket.request.vram_mib;
	is_known = read_gpus(view, getenv("GPULEASE_UUIDS"), &lease->gpus);
	if (is_known)
		other = find_other_lease(view, &lease->gpus);
	if (other)
		diag("this process belongs to job %llu, whose lease was lost, and job %llu has "
		     "its GPUs now",
			(unsigned long long)number,
			(unsigned long long)lease_job(&other->lease));
	else if (!is_known)
		diag("this process belongs to job %llu, whose lease was lost, so its GPUs are "
		     "not known; run the command without gpulease",
			(unsigned long long)number);
	else
		note("the lease of job %llu was lost; this is a step on the GPUs of "
		     "GPULEASE_UUIDS",
			(unsigned long long)number);
	return is_known && !other ? JOB_STEP_LOST : EXIT_MISUSE;
}

/* ----------------------------------------------------------------------------------------- */

bool job_step_is_inside(const struct snapshot *view)
{
	const struct snapshot_lease *lease = job_step_find_lease(view);
	const char *token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);
	struct rlimit locks = { .rlim_cur = RLIM_INFINITY };
	bool has_other;

	(void)getrlimit(RLIMIT_LOCKS, &locks);
	has_other = (token && is_token(token)) || locks.rlim_cur != RLIM_INFINITY;
	return lease && (!has_other || job_step_has_token(&lease->lease.owner, token) ||
				job_step_has_tag(&lease->lease.owner, locks.rlim_cur));
}

/* Why an option is refused in a step. */
enum { FOR_JOBS, HAS_GPUS, NO_WAIT };

static const char reasons[][32] = {
	[FOR_JOBS] = "this option is for whole jobs",
	[HAS_GPUS] = "it has its GPUs already",
	[NO_WAIT] = "a step does not wait",
};

#define ROW(name_, field, reason_)                             \
	{                                                      \
		.name = (name_), .reason = (reason_),          \
		.offset = offsetof(struct settings, field),    \
		.size = sizeof(((struct settings *)0)->field), \
	}

/* The options that a step refuses; one that was not given has only zeros in its field. */
static const struct {
	char name[15];
	unsigned char reason;
	unsigned short offset;
	unsigned char size;
} refused[] = {
	ROW("signal", care.warn_signal, FOR_JOBS),
	ROW("on-limit", care.on_limit, FOR_JOBS),
	ROW("preemptible", care.preemptible, FOR_JOBS),
	ROW("retries", care.retries, FOR_JOBS),
	ROW("oom-retries", care.oom_retries, FOR_JOBS),
	ROW("report", output.report, FOR_JOBS),
	ROW("notify", environment.notify, FOR_JOBS),
	ROW("lease-only", request.lease_only, HAS_GPUS),
	ROW("shell", request.shell, HAS_GPUS),
	ROW("prefer-gpus", request.prefer, HAS_GPUS),
	ROW("models", request.models, HAS_GPUS),
	ROW("margin", request.thresholds[OWN_MARGIN], HAS_GPUS),
	ROW("spike-buffer", request.thresholds[OWN_SPIKE_BUFFER], HAS_GPUS),
	ROW("idle-threshold", request.thresholds[OWN_IDLE_THRESHOLD], HAS_GPUS),
	ROW("after", request.after_ids[0], NO_WAIT),
	ROW("after-ok", request.after_ok_ids[0], NO_WAIT),
	ROW("singleton", request.singleton, NO_WAIT),
	ROW("begin", request.begin_ms, NO_WAIT),
	ROW("hold", request.hold, NO_WAIT),
};

static int job_step_refuse(uint64_t job, const char *reason, const char *name)
{
	diag("this is a step of job %llu, and %s; leave --%s out",
		(unsigned long long)job, reason, name);
	return EXIT_MISUSE;
}

int job_step_check(const struct settings *s, const struct lease *around)
{
	static const char zeros[8];
	struct need need = lease_need(around);
	uint64_t job = lease_job(around);

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (memcmp((const char *)s + refused[i].offset, zeros, refused[i].size) !=
			0)
			return job_step_refuse(
				job, reasons[refused[i].reason], refused[i].name);
	if (s->request.exclusive && !need_is_whole(&need))
		return job_step_refuse(job, "its GPU is shared with others", "exclusive");
	if (s->request.name)
		verbose("--name is accepted and ignored: a step has the name of its job");
	return 0;
}

unsigned job_step_level(void)
{
	const char *step = getenv("GPULEASE_STEP");
	unsigned level;

	/* without the list of its GPUs, those of the whole lease would be taken for the step's */
	if (!step || !getenv("GPULEASE_UUIDS"))
		return 0;
	return sscanf(step, "%*u.%u", &level) == 1 && level < LEVEL_MAX ? level : 0;
}

static char left[TOKEN_SIZE];

const char *job_step_left(void)
{
	return left;
}

/* Overwrites the token in place: /proc/PID/environ shows the memory of the environment at exec. */
void job_step_leave(void)
{
	char *token = getenv(PROCESS_LEASE_TOKEN_VARIABLE);

	rlimits_untag();
	if (!token)
		return;
	text_copy(left, sizeof(left), token);
	memset(token, '-', strlen(token));
	/* it names the GPUs of the lease, which bound only processes in it */
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
}

const char *job_step_order(const struct run_request *request)
{
	return request->gpu_ids ? request->gpu_ids : getenv("GPULEASE_UUIDS");
}

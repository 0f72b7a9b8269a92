#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "exitcodes.h"
#include "parse.h"
#include "slurm_state.h"

/* clang-format off */
static const struct slurm_state states[] = {
	{ "PENDING", SLURM_WAITS, 0, -1, NULL },
	{ "REQUEUED", SLURM_WAITS, 0, -1, NULL },
	{ "REQUEUE_HOLD", SLURM_WAITS, 0, -1, NULL },
	{ "REQUEUE_FED", SLURM_WAITS, 0, -1, NULL },
	{ "SPECIAL_EXIT", SLURM_WAITS, 0, -1, NULL },
	{ "RESV_DEL_HOLD", SLURM_WAITS, 0, -1, NULL },
	{ "LAUNCH_FAILED", SLURM_WAITS, 0, -1, NULL },
	{ "RECONFIG_FAIL", SLURM_WAITS, 0, -1, NULL },
	{ "EXPEDITING", SLURM_WAITS, 0, -1, NULL },
	{ "POWER_UP_NODE", SLURM_RUNS, 0, -1, NULL },
	{ "UPDATE_DB", SLURM_RUNS, 0, -1, NULL },
	{ "CONFIGURING", SLURM_RUNS, 0, -1, NULL },
	{ "RUNNING", SLURM_RUNS, 0, -1, NULL },
	{ "COMPLETING", SLURM_RUNS, 0, -1, NULL },
	{ "RESIZING", SLURM_RUNS, 0, -1, NULL },
	{ "SIGNALING", SLURM_RUNS, 0, -1, NULL },
	{ "STAGE_OUT", SLURM_RUNS, 0, -1, NULL },
	{ "STOPPED", SLURM_RUNS, 0, -1, NULL },
	{ "SUSPENDED", SLURM_RUNS, 0, -1, NULL },
	{ "COMPLETED", SLURM_ENDED, END_FINISHED, -1, NULL },
	{ "FAILED", SLURM_ENDED, END_FAILED, -1, NULL },
	{ "CANCELLED", SLURM_ENDED, END_CANCELLED, 128 + SIGTERM, "was cancelled" },
	{ "TIMEOUT", SLURM_ENDED, END_TIMED_OUT, EXIT_GAVE_UP, "has reached its time limit" },
	{ "DEADLINE", SLURM_ENDED, END_TIMED_OUT, EXIT_GAVE_UP, "has reached its deadline" },
	{ "OUT_OF_MEMORY", SLURM_ENDED, END_FAILED, 128 + SIGKILL,
		"has used more host memory than it may; ask for more: --mem SIZE" },
	{ "PREEMPTED", SLURM_ENDED, END_PREEMPTED, 128 + SIGTERM, "was preempted" },
	{ "NODE_FAIL", SLURM_ENDED, END_LOST, EXIT_MISUSE, "was lost: its node has failed" },
	{ "BOOT_FAIL", SLURM_ENDED, END_LOST, EXIT_MISUSE, "was lost: its node did not start" },
	{ "REVOKED", SLURM_ENDED, END_LOST, EXIT_MISUSE, "was revoked: another cluster has it" },
};
/* clang-format on */

const struct slurm_state *slurm_state_find(const char *text)
{
	static const struct slurm_state unknown = { "", SLURM_RUNS, 0, -1, NULL };
	size_t size = strcspn(text, " +");

	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (strlen(states[i].name) == size &&
			memcmp(states[i].name, text, size) == 0)
			return &states[i];
	return &unknown;
}

/* Slurm itself cancels a job with a dependency that can never be met; no user does. */
static const struct slurm_state given_up = { "CANCELLED", SLURM_ENDED, END_FAILED,
	EXIT_GAVE_UP, "gave up: a job that it waits for has ended otherwise" };
static const struct slurm_state never_started = { "FAILED", SLURM_ENDED, END_FAILED,
	EXIT_MISUSE, "never started: no node has what it asks for" };

static bool is_named(const struct slurm_state *state, const char *name)
{
	return strcmp(state->name, name) == 0;
}

const struct slurm_state *slurm_state_with_reason(
	const struct slurm_state *state, const char *reason)
{
	if (is_named(state, "CANCELLED") &&
		strcmp(reason, "DependencyNeverSatisfied") == 0)
		return &given_up;
	if (is_named(state, "FAILED") && strcmp(reason, "BadConstraints") == 0)
		return &never_started;
	return state;
}

const struct slurm_state *slurm_state_accounted(const char *text, const char *nodes)
{
	const struct slurm_state *state = slurm_state_find(text);

	if (slurm_has_nodes(nodes))
		return state;
	if (is_named(state, "CANCELLED") && !strstr(text, " by "))
		return &given_up;
	return is_named(state, "FAILED") ? &never_started : state;
}

bool slurm_has_nodes(const char *nodes)
{
	return nodes[0] && strcmp(nodes, "None assigned") != 0;
}

bool slurm_is_estimate(int64_t wait_s)
{
	return wait_s < INT64_C(180) * 24 * 3600;
}

int slurm_state_status(const struct slurm_state *state, int wait_status)
{
	if (state->phase == SLURM_ENDED && state->status >= 0)
		return state->status;
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
					: WEXITSTATUS(wait_status);
}

int slurm_state_read_exit(const char *text, int *ret_wait_status)
{
	size_t size = strcspn(text, ":");
	uint64_t status, number = 0;
	char first[8];

	text_copy(first, sizeof(first), text);
	if (size >= sizeof(first))
		return -EINVAL;
	first[size] = '\0';
	if (parse_u64(first, 255, &status, NULL) < 0 ||
		(text[size] && parse_u64(text + size + 1, 127, &number, NULL) < 0))
		return -EINVAL;
	*ret_wait_status = (int)(status << 8 | number);
	return 0;
}

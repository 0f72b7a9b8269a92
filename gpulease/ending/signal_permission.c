#include <fcntl.h>
#include <sys/stat.h>

#include "signal_permission.h"
#include "diag.h"
#include "exitcodes.h"
#include "privacy.h"
#include "process_lease.h"
#include "proc.h"

/* Whether the process has the FIFO of @token open for writing, as the processes of its job have. */
static bool process_holds_fifo(
	const struct context *context, const char *token, uint32_t pid)
{
	struct stat fifo;

	return is_token(token) &&
	       fstatat(context->dir.live_fd, token, &fifo, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISFIFO(fifo.st_mode) && process_writes_to(pid, &fifo) > 0;
}

/* Whether the process has to show that it belongs to the job: other users can write the record. */
static bool needs_proof(const struct context *context)
{
	return getuid() == 0 && !context->dir.is_private && !context->dir.is_hardened;
}

int signal_permission_check(const struct context *context, const char *word, uint64_t job,
	const struct owner *owner, uint32_t pid)
{
	char name[64], other[64];
	struct text name_text = TEXT_ON(name), other_text = TEXT_ON(other);
	const char *hint = getuid() == 0 ? "add --force to signal it anyway"
					 : "only root may signal it, with --force";
	uint32_t user;

	/* if /proc hides the process from this user, kill(2) decides */
	if (context->settings->verb.force || proc_find_real_user(pid, &user) < 0)
		return 0;
	describe_user(user, NULL, &name_text);
	describe_user(owner->uid, NULL, &other_text);
	if (user != owner->uid) {
		diag("%s %llu belongs to %s, and process %u to %s; %s", word,
			(unsigned long long)job, other, pid, name, hint);
		return EXIT_NOT_DONE;
	}
	if (!needs_proof(context) || process_lease_carries_token(pid, owner->token) ||
		process_holds_fifo(context, owner->token, pid))
		return 0;
	diag("process %u of %s does not show that it belongs to %s %llu; %s", pid, name,
		word, (unsigned long long)job, hint);
	return EXIT_NOT_DONE;
}

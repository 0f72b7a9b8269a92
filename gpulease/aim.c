#include <fcntl.h>
#include <sys/stat.h>

#include "aim.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "kin.h"
#include "proc.h"

/* Whether the process has the FIFO of @token open for writing, as processes of that job have. */
static bool holds_fifo(const struct context *context, const char *token, uint32_t pid)
{
	struct stat fifo;

	return is_token(token) &&
	       fstatat(context->dir.live_fd, token, &fifo, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISFIFO(fifo.st_mode) && process_writes_to(pid, &fifo) > 0;
}

static bool needs_proof(const struct context *context)
{
	return getuid() == 0 && !context->dir.is_private && !context->dir.is_hardened;
}

int aim_check(const struct context *context, const char *word, uint64_t job,
	const struct owner *owner, uint32_t pid)
{
	char name[64], other[64];
	struct text name_text = TEXT_ON(name), other_text = TEXT_ON(other);
	const char *hint = getuid() == 0 ? "--force signals it all the same"
					 : "only root may signal it, with --force";
	uint32_t user;

	/* for a process that is hidden from this user kill(2) decides */
	if (context->settings->force || proc_find_real_user(pid, &user) < 0)
		return 0;
	describe_user(user, NULL, &name_text);
	describe_user(owner->uid, NULL, &other_text);
	if (user != owner->uid) {
		diag("%s %llu belongs to %s, and process %u to %s; %s", word,
			(unsigned long long)job, other, pid, name, hint);
		return EXIT_NOT_DONE;
	}
	if (!needs_proof(context) || kin_carries_token(pid, owner->token) ||
		holds_fifo(context, owner->token, pid))
		return 0;
	diag("process %u of %s does not show that it belongs to %s %llu; %s", pid, name,
		word, (unsigned long long)job, hint);
	return EXIT_NOT_DONE;
}

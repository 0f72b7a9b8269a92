#include <errno.h>
#include <sys/stat.h>

#include "diag.h"
#include "exitcodes.h"
#include "lease_heir.h"
#include "namespaces.h"
#include "privacy.h"
#include "proc.h"
#include "rights.h"
#include "rlimits.h"

/*
 * Whether the process is in our pid namespace.  A process that this user may not look into counts
 * as in it.
 */
static bool is_in_our_namespace(uint32_t pid, const struct owner *self)
{
	char path[PROC_PATH_SIZE];
	struct stat st;
	int r = proc_path(pid, "ns/pid", path);

	if (r < 0)
		return true;
	rights_as_user_begin();
	r = stat(path, &st);
	rights_as_user_end();
	return r < 0 || st.st_ino == self->pidns;
}

int lease_heir_find(uint32_t pid, bool root_may, struct owner *ret)
{
	char name[64];
	struct text text = TEXT_ON(name);
	int r = owner_of_pid(pid, ret);

	if (r == -ESRCH || r == -ENOENT) {
		diag("there is no process %u", pid);
		return EXIT_MISUSE;
	}
	if (r == 0)
		r = token_make(ret->token);
	if (r < 0) {
		diag("cannot look at process %u: %s", pid, strerror(-r));
		return EXIT_MISUSE;
	}
	if (ret->uid != namespaces_own_user() && !(root_may && getuid() == 0)) {
		describe_user(ret->uid, NULL, &text);
		diag("process %u belongs to %s; a lease is only for your own processes",
			pid, name);
		return EXIT_MISUSE;
	}
	if (!is_in_our_namespace(pid, ret)) {
		diag("process %u is in another pid namespace, perhaps a container; lease its "
		     "GPUs there",
			pid);
		return EXIT_MISUSE;
	}
	ret->is_adopted = OWNER_WATCHED;
	return 0;
}

int lease_heir_look_after(const struct launch *launch, bool is_shell)
{
	int r;

	rlimits_tag_process(launch->owner->pid, launch->owner->token);
	r = launch_watchdog(launch, is_shell);
	if (r < 0)
		diag("cannot start the watchdog of the lease: %s", strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

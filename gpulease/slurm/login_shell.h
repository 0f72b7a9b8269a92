/*
 * Scripts for a login shell, as `#!/bin/bash -l`.  Such a shell reads the user's profile, which may
 * set PATH anew and so hide the links srun and sbatch, and may set the variables of the lease.
 *
 * The shell is then started with -c, and reads the script with `.` once it has read the profile.
 * So $0, the arguments, BASH_SOURCE and the status are as without that.  Only the process has other
 * words, and a `return` outside a function ends the script.
 */
#ifndef GPULEASE_LOGIN_SHELL_H
#define GPULEASE_LOGIN_SHELL_H

#include "base.h"

/*
 * If the script @command[0] is one for a login shell, sets *@ret to words that run it in that
 * shell.  After the profile, this has @folder as the first of PATH, unless @folder is NULL, and the
 * variables of the lease (set_again.h), for which *@environment is replaced.  Else sets *@ret to
 * @command.  Nothing is freed.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int login_shell_wrap(
	char **command, const char *folder, char ***environment, char ***ret);

#endif

/*
 * Scripts for a login shell, as `#!/bin/bash -l`.  Such a shell reads the user's profile, which may
 * set PATH anew and so hide the links srun and sbatch.
 */
#ifndef GPULEASE_LOGIN_SHELL_H
#define GPULEASE_LOGIN_SHELL_H

#include "base.h"

/*
 * If the script @command[0] is one for a login shell, sets *@ret to words that run it in this shell
 * with @folder as the first of PATH, after the shell has read the profile.  Else sets *@ret to
 * @command.  The words are not freed.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int login_shell_wrap(char **command, const char *folder, char ***ret);

#endif

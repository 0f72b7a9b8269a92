/*
 * --doctor and --show-config: gpulease finds out what only it can, and gpulease-view prints it.
 */
#include <errno.h>
#include <sys/mman.h>

#include "diag.h"
#include "doctor_state.h"
#include "exitcodes.h"
#include "rights.h"
#include "verbs.h"

int verb_doctor(struct settings *settings)
{
	const struct doctor_state *state;
	int status, fd;

	rights_as_user_begin(); /* the file must not have the lent group */
	fd = memfd_create("doctor", MFD_CLOEXEC);
	rights_as_user_end();
	state = doctor_state_tell(settings, fd);
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0) {
		diag("cannot keep what was found: %s", strerror(errno));
		return EXIT_MISUSE;
	}
	status = verb_view(settings);
	/* a copy of the program has no gpulease-view, and this says that it is a copy */
	if (state->directory_trouble.text[0])
		diag("%s", state->directory_trouble.text);
	return status;
}

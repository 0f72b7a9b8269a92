#include <fcntl.h>
#include <unistd.h>

#include "base.h"
#include "standard_fds.h"

void standard_fds_open(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close_fd(&fd);
}

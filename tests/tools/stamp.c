/*
 * stamp: the command whose start and end times the hand-off figures use.
 *
 *	stamp DIR start		writes when it started
 *	stamp DIR hold		the same, waits for a byte, writes when it ends
 *
 * Uses the FIFOs start, go and end in DIR, which the reader holds open; each time is 8 bytes of
 * nanoseconds on CLOCK_MONOTONIC.  The program is small, so that it does little besides.
 */
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int tell(int fd, int64_t ns)
{
	return write(fd, &ns, sizeof(ns)) == sizeof(ns) ? 0 : 125;
}

int main(int argc, char **argv)
{
	int64_t started = clock_ns();
	char byte;
	int start, go, end;

	if (argc != 3 || chdir(argv[1]) < 0)
		return 125;
	start = open("start", O_RDWR | O_CLOEXEC);
	if (argv[2][0] != 'h')
		return tell(start, started);
	go = open("go", O_RDWR | O_CLOEXEC);
	end = open("end", O_RDWR | O_CLOEXEC);
	if (tell(start, started) || read(go, &byte, 1) != 1)
		return 125;
	_exit(tell(end, clock_ns()));
}

#include <signal.h>
#include <strings.h>

#include "parse.h"
#include "signals.h"

static const struct {
	int number;
	const char *name;
} names[] = {
	{ SIGHUP, "HUP" },
	{ SIGINT, "INT" },
	{ SIGQUIT, "QUIT" },
	{ SIGILL, "ILL" },
	{ SIGTRAP, "TRAP" },
	{ SIGABRT, "ABRT" },
	{ SIGBUS, "BUS" },
	{ SIGFPE, "FPE" },
	{ SIGKILL, "KILL" },
	{ SIGUSR1, "USR1" },
	{ SIGSEGV, "SEGV" },
	{ SIGUSR2, "USR2" },
	{ SIGPIPE, "PIPE" },
	{ SIGALRM, "ALRM" },
	{ SIGTERM, "TERM" },
	{ SIGCHLD, "CHLD" },
	{ SIGCONT, "CONT" },
	{ SIGSTOP, "STOP" },
	{ SIGTSTP, "TSTP" },
	{ SIGTTIN, "TTIN" },
	{ SIGTTOU, "TTOU" },
	{ SIGURG, "URG" },
	{ SIGXCPU, "XCPU" },
	{ SIGXFSZ, "XFSZ" },
	{ SIGVTALRM, "VTALRM" },
	{ SIGPROF, "PROF" },
	{ SIGWINCH, "WINCH" },
	{ SIGIO, "IO" },
	{ SIGPWR, "PWR" },
	{ SIGSYS, "SYS" },
};

int signal_number(const char *name)
{
	uint64_t number;

	if (parse_u64(name, 64, &number, NULL) == 0)
		return (int)number;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(name, names[i].name) == 0)
			return names[i].number;
	return 0;
}

struct signal_name signal_name(int number)
{
	struct signal_name out;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number) {
			text_copy(out.text, sizeof(out.text), names[i].name);
			return out;
		}
	(void)snprintf(out.text, sizeof(out.text), "%d", number);
	return out;
}

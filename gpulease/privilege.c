#include <errno.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "privilege.h"
#include "rights.h"

extern char **environ;

/* What the program was started with; NULL: environ has it. */
static char **initial;

/*
 * The loader removes LD_LIBRARY_PATH, TMPDIR and their like from environ before main(), but
 * not from the stack, where the kernel put the strings: behind those of argv, before the
 * name of the program's file.  Where that is not what is found, environ must do.
 */
static char **find_initial(char **argv, int argc)
{
	char *at = argv[argc - 1] + strlen(argv[argc - 1]) + 1;
	char *end = (char *)getauxval(AT_EXECFN); // NOLINT(performance-no-int-to-ptr)
	size_t count = 0;
	char **out;

	if (!end || end < at)
		return NULL;
	for (char *string = at; string < end; string += strlen(string) + 1)
		count++;
	out = calloc(count + 1, sizeof(*out));
	for (size_t i = 0; out && i < count; i++) {
		out[i] = at;
		at += strlen(at) + 1;
	}
	/* the name of the file comes right behind */
	if (out && at != end) {
		free(out);
		out = NULL;
	}
	return out;
}

/* Whether all that the loader left in environ is there. */
static bool has_all(char **strings)
{
	for (char **wanted = environ; *wanted; wanted++) {
		char **at = strings;

		while (*at && *at != *wanted)
			at++;
		if (!*at && strncmp(*wanted, "GLIBC_TUNABLES=", 15) != 0)
			return false; /* that one the loader copies */
	}
	return true;
}

int privilege_begin(int argc, char **argv)
{
	if (geteuid() != getuid())
		return -EPERM;
	if (!rights_are_lent() || argc < 1)
		return 0;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* fs.suid_dumpable may say otherwise */
	initial = find_initial(argv, argc);
	if (initial && !has_all(initial)) {
		free(initial);
		initial = NULL;
	}
	return 0;
}

char **privilege_environment(void)
{
	return initial ? initial : environ;
}

int privilege_drop(void)
{
	int r;

	if (!rights_are_lent())
		return 0;
	r = rights_drop();
	if (r == 0)
		environ = privilege_environment();
	return r;
}

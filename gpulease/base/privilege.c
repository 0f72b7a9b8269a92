#include <errno.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "privilege.h"
#include "rights.h"

extern char **environ;

/* The environment with which the program was started; NULL: environ is complete. */
static char **initial;
static mode_t initial_mask;

/*
 * Finds the environment on the stack.  The loader removes LD_LIBRARY_PATH, TMPDIR and others from
 * environ before main(), but not from the stack.  The kernel put the strings there between those
 * of argv and the file name of the program.  Returns NULL if the stack looks different; the caller
 * then uses environ.
 */
static char **privilege_find_initial(char **argv, int argc)
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
	/* the last string must end where the file name begins */
	if (out && at != end) {
		free(out);
		out = NULL;
	}
	return out;
}

/* Whether @a and @b are one string, or @b is the copy that the loader makes of GLIBC_TUNABLES. */
static bool privilege_is_same(const char *a, const char *b)
{
	static const char tunables[] = "GLIBC_TUNABLES=";

	return a == b || (strncmp(a, tunables, sizeof(tunables) - 1) == 0 &&
				 strncmp(b, tunables, sizeof(tunables) - 1) == 0);
}

/* Whether @strings contain all strings of environ in its order: a check of what was found. */
static bool privilege_has_all(char **strings)
{
	for (char **wanted = environ; *wanted; wanted++) {
		while (*strings && !privilege_is_same(*strings, *wanted))
			strings++;
		if (!*strings++)
			return false;
	}
	return true;
}

int privilege_begin(int argc, char **argv)
{
	/*
	 * the user's umask could take from gpulease the right to open the files that it makes
	 * itself
	 */
	initial_mask = umask(077);
	if (geteuid() != getuid())
		return -EPERM;
	if (!rights_are_lent() || argc < 1)
		return 0;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* whatever fs.suid_dumpable says */
	initial = privilege_find_initial(argv, argc);
	if (initial && !privilege_has_all(initial)) {
		free(initial);
		initial = NULL;
	}
	return 0;
}

mode_t privilege_mask(void)
{
	return initial_mask;
}

void privilege_restore_mask(void)
{
	(void)umask(initial_mask);
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

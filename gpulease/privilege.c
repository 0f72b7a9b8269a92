#include <errno.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "privilege.h"
#include "rights.h"

extern char **environ;

/* What the program was started with; NULL: environ has it. */
static char **initial;
static mode_t initial_mask;

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

/* The same string, or the loader's copy of this one. */
static bool is_same(const char *a, const char *b)
{
	static const char tunables[] = "GLIBC_TUNABLES=";

	return a == b || (strncmp(a, tunables, sizeof(tunables) - 1) == 0 &&
				 strncmp(b, tunables, sizeof(tunables) - 1) == 0);
}

/* Whether all that the loader left in environ is there, in the same order. */
static bool has_all(char **strings)
{
	for (char **wanted = environ; *wanted; wanted++) {
		while (*strings && !is_same(*strings, *wanted))
			strings++;
		if (!*strings++)
			return false;
	}
	return true;
}

int privilege_begin(int argc, char **argv)
{
	/* a FIFO that its maker could not open would be of no use */
	initial_mask = umask(077);
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

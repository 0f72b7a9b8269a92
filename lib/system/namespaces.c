#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fdio.h"
#include "namespaces.h"

/* The inodes of the first namespaces of the machine, fixed in the kernel (proc_ns.h). */
enum { FIRST_USERNS = 0xEFFFFFFDu, FIRST_PIDNS = 0xEFFFFFFCu };

static struct {
	bool is_read;
	uint64_t pidns;
	bool has_own_proc;
	char user_map[4096]; /* "": the numbers outside are those inside */
} own;

static uint64_t read_inode(const char *path)
{
	struct stat st;

	return fstatat(AT_FDCWD, path, &st, 0) < 0 ? 0 : st.st_ino;
}

/* Whether /proc/self, by the numbers of that /proc, is the pid that this process has. */
static bool is_named_self(void)
{
	char text[16];
	int named = 0;
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return sscanf(text, "%d", &named) == 1 && named == getpid();
}

static void read_own(void)
{
	uint64_t userns;

	if (own.is_read)
		return;
	own.is_read = true;
	/* one's own namespaces are always readable, also in a set-group-ID program */
	own.pidns = read_inode("/proc/self/ns/pid");
	own.has_own_proc = is_named_self();
	userns = read_inode("/proc/self/ns/user");
	own.user_map[0] = '\0';
	if (userns && userns != FIRST_USERNS &&
		fdio_read_text(AT_FDCWD, "/proc/self/uid_map", own.user_map,
			sizeof(own.user_map)) < 0)
		own.user_map[0] = '\0';
}

uint64_t namespaces_pidns(void)
{
	read_own();
	return own.pidns;
}

bool namespaces_has_own_proc(void)
{
	read_own();
	return own.has_own_proc;
}

bool namespaces_sees_all(void)
{
	read_own();
	/* with hidepid, a process that sees process 1 sees all */
	return own.has_own_proc && own.pidns == FIRST_PIDNS && read_inode("/proc/1");
}

uint32_t namespaces_map_user(const char *map, uint32_t uid)
{
	unsigned inside, outside, count;

	for (; sscanf(map, "%u %u %u", &inside, &outside, &count) == 3;
		map = strchr(map, '\n') + 1) {
		if (uid >= inside && uid - inside < count)
			return outside + (uid - inside);
		if (!strchr(map, '\n'))
			break;
	}
	return uid;
}

uint32_t namespaces_user_outside(uint32_t uid)
{
	read_own();
	return namespaces_map_user(own.user_map, uid);
}

uint32_t namespaces_own_user(void)
{
	return namespaces_user_outside(getuid());
}

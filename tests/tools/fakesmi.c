/*
 * fakesmi: an nvidia-smi with idle GPUs, as a program.  A script will not do where the group
 * matters that gpulease gives nvidia-smi, as a shell drops that group.
 *
 * Its settings are in the file NAME.conf beside its own file NAME, as its environment is empty;
 * one per line, all optional:
 *
 *	gpus N		the number of idle GPUs of 80 GiB (default 2)
 *	first N		the first GPU has the UUID that GPU N has without this line
 *	process GPU PID	process PID uses 5000 MiB of that GPU; one such line at most
 *	delay MS	waits so many milliseconds before each answer
 *	wait FILE	answers when FILE exists
 *	stuck		never answers, in state D
 *	refuse UID	has no permission if this user runs it
 *	need MIB	fails if it cannot map so much memory
 *	log FILE	first appends a line "PID gpus|procs|list|topo" to the existing FILE
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { USED_MIB = 5000 };

struct conf {
	unsigned gpus, first, delay_ms;
	unsigned user, used_gpu; /* user 0: there is none */
	unsigned is_stuck;
	unsigned refused, need_mib; /* 0: no user; nothing */
	char wait[PATH_MAX], log[PATH_MAX];
};

static void pause_ms(unsigned ms)
{
	struct timespec span = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	(void)nanosleep(&span, NULL);
}

static void read_conf(struct conf *conf)
{
	char path[PATH_MAX + 8], line[PATH_MAX + 16];
	ssize_t size = readlink("/proc/self/exe", path, PATH_MAX);
	FILE *file;

	*conf = (struct conf){ .gpus = 2 };
	if (size < 0)
		return;
	(void)snprintf(path + size, sizeof(path) - (size_t)size, ".conf");
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *value;

		line[strcspn(line, "\n")] = '\0';
		value = strchr(line, ' ');
		if (strcmp(line, "stuck") == 0)
			conf->is_stuck = 1;
		if (!value)
			continue;
		*value++ = '\0';
		if (strcmp(line, "gpus") == 0)
			conf->gpus = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(line, "first") == 0)
			conf->first = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(line, "process") == 0)
			(void)sscanf(value, "%u %u", &conf->used_gpu, &conf->user);
		else if (strcmp(line, "refuse") == 0)
			conf->refused = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(line, "need") == 0)
			conf->need_mib = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(line, "delay") == 0)
			conf->delay_ms = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(line, "wait") == 0)
			(void)snprintf(conf->wait, sizeof(conf->wait), "%s", value);
		else if (strcmp(line, "log") == 0)
			(void)snprintf(conf->log, sizeof(conf->log), "%s", value);
	}
	if (file)
		(void)fclose(file);
}

static void note_run(const struct conf *conf, const char *query)
{
	int fd = conf->log[0] ? open(conf->log, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	char line[64];
	int size = snprintf(line, sizeof(line), "%d %s\n", (int)getpid(), query);

	if (fd >= 0 && write(fd, line, (size_t)size) < 0)
		perror(conf->log);
	if (fd >= 0)
		(void)close(fd);
}

/* Hangs as in a driver that hangs: the parent of a vfork(2) waits in state D. */
static void get_stuck(void)
{
	if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) != 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)alarm(120);
	for (;;)
		(void)pause();
}

/* Fails as the real one does for a user that cannot open the devices, or has too little memory. */
static void check_means(const struct conf *conf)
{
	size_t need = (size_t)conf->need_mib << 20;
	const char *why = NULL;

	if (conf->refused && conf->refused == getuid())
		why = "Insufficient Permissions";
	if (need && mmap(NULL, need, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			    MAP_FAILED)
		why = "Insufficient Memory";
	if (!why)
		return;
	printf("Failed to initialize NVML: %s\n", why);
	exit(4);
}

static void hold(const struct conf *conf)
{
	check_means(conf);
	if (conf->is_stuck)
		get_stuck();
	pause_ms(conf->delay_ms);
	while (conf->wait[0] && access(conf->wait, F_OK) < 0)
		pause_ms(10);
}

/* One column of the row of GPU @gpu. */
static void print_field(const char *name, const struct conf *conf, unsigned gpu)
{
	if (strcmp(name, "index") == 0)
		printf("%u", gpu);
	else if (strcmp(name, "uuid") == 0)
		printf("GPU-%08x-1111-2222-3333-444444444444", conf->first + gpu);
	else if (strcmp(name, "pci.bus_id") == 0)
		printf("00000000:%02X:00.0", gpu + 1);
	else if (strcmp(name, "name") == 0)
		printf("Card %u", gpu);
	else if (strcmp(name, "compute_mode") == 0)
		printf("Default");
	else if (strcmp(name, "memory.total") == 0)
		printf("81559");
	else if (strcmp(name, "memory.used") == 0)
		printf("%u",
			conf->user && gpu == conf->used_gpu ? (unsigned)USED_MIB : 0u);
	else if (strncmp(name, "mig.", 4) == 0)
		printf("[N/A]");
	else
		printf("0");
}

static void print_gpus(const char *fields, const struct conf *conf)
{
	for (unsigned gpu = 0; gpu < conf->gpus; gpu++) {
		char names[512], *rest = NULL;
		const char *before = "";

		(void)snprintf(names, sizeof(names), "%s", fields);
		for (char *name = strtok_r(names, ",", &rest); name;
			name = strtok_r(NULL, ",", &rest)) {
			printf("%s", before);
			print_field(name, conf, gpu);
			before = ", ";
		}
		printf("\n");
	}
}

/* The topology: all GPUs on different sockets. */
static void print_topo(const struct conf *conf)
{
	for (unsigned i = 0; i < conf->gpus; i++)
		printf("\tGPU%u", i);
	printf("\tCPU Affinity\tNUMA Affinity\n");
	for (unsigned i = 0; i < conf->gpus; i++) {
		printf("GPU%u", i);
		for (unsigned j = 0; j < conf->gpus; j++)
			printf("\t%s", i == j ? " X " : "SYS");
		printf("\t0\t0\n");
	}
}

int main(int argc, char **argv)
{
	static const char gpus[] = "--query-gpu=", processes[] = "--query-compute-apps=";
	struct conf conf;

	(void)alarm(120); /* ends a process that a broken script has left */
	read_conf(&conf);
	if (argc > 1 && strncmp(argv[1], gpus, strlen(gpus)) == 0) {
		note_run(&conf, "gpus");
		hold(&conf);
		print_gpus(argv[1] + strlen(gpus), &conf);
	} else if (argc > 1 && strncmp(argv[1], processes, strlen(processes)) == 0) {
		note_run(&conf, "procs");
		hold(&conf);
		if (conf.user)
			printf("GPU-%08x-1111-2222-3333-444444444444, %u, %u\n",
				conf.first + conf.used_gpu, conf.user,
				(unsigned)USED_MIB);
	} else if (argc > 1 && strcmp(argv[1], "-L") == 0) {
		note_run(&conf, "list");
		hold(&conf);
		for (unsigned i = 0; i < conf.gpus; i++)
			printf("GPU %u: Card %u (UUID: GPU-%08x-1111-2222-3333-"
			       "444444444444)\n",
				i, i, conf.first + i);
	} else if (argc > 2 && strcmp(argv[1], "topo") == 0 &&
		   strcmp(argv[2], "-m") == 0) {
		note_run(&conf, "topo");
		hold(&conf);
		print_topo(&conf);
	} else {
		fprintf(stderr,
			"fakesmi: query-gpu, query-compute-apps, -L or topo -m\n");
		return 2;
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

/*
 * Checks of what the machine gives: the file system, the kernel, /proc, the container and Slurm.
 * Declared in doctor_checks.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "container.h"
#include "doctor_checks.h"
#include "doctor_facts.h"
#include "fdio.h"

/* --- the file system --------------------------------------------------------------- */

void check_file_system(struct doctor *doctor)
{
	const char *name, *path = doctor->state.path;
	bool is_local = true;
	struct statfs fs;
	char number[24];

	if (!path[0] || statfs(path, &fs) < 0) {
		(void)doctor_add(&doctor->report, DOCTOR_WARN,
			"not known without the state directory");
		return;
	}
	name = file_system_name((uint32_t)fs.f_type, &is_local);
	(void)snprintf(number, sizeof(number), "0x%08x", (unsigned)fs.f_type);
	if (!name[0])
		name = number;
	if (is_local && doctor->state.directory_error != -ENOTSUP) {
		(void)doctor_add(&doctor->report, DOCTOR_OK, "'%s' is on %s", path, name);
		if (doctor->state.lacks_holes)
			doctor_remedy(
				doctor_add(&doctor->report, DOCTOR_WARN,
					"%s cannot make holes in files: while a ticket "
					"waits, each start reads all tickets that have "
					"ended since",
					name),
				"move '%s' to ext4, XFS, Btrfs or tmpfs", path);
		return;
	}
	doctor_remedy(doctor_add(&doctor->report, DOCTOR_FAIL,
			      "'%s' is on %s, where locks and FIFOs are not shared", path,
			      name),
		"in /etc/gpulease.conf, set directory to one on a local disk");
}

/* Writes "12G"; below 10 GiB in M, below 1 MiB in K. */
static void format_bytes(uint64_t bytes, char *out, size_t size)
{
	unsigned unit = bytes >> 20 >= 10240 ? 2 : bytes >> 20 ? 1 : 0;

	(void)snprintf(out, size, "%llu%c",
		(unsigned long long)bytes >> (10 * (unit + 1)), "KMG"[unit]);
}

void check_space(struct doctor *doctor)
{
	struct doctor_finding *finding;
	char free_text[32], inodes[32] = "";
	struct statvfs fs;
	uint64_t bytes;
	bool is_short;

	if (!doctor->state.path[0] || statvfs(doctor->state.path, &fs) < 0) {
		(void)doctor_add(&doctor->report, DOCTOR_WARN,
			"not known without the state directory");
		return;
	}
	bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	is_short = space_is_short(bytes, fs.f_favail, fs.f_files);
	format_bytes(bytes, free_text, sizeof(free_text));
	if (fs.f_files)
		(void)snprintf(inodes, sizeof(inodes), " and %llu inodes",
			(unsigned long long)fs.f_favail);
	finding = doctor_add(&doctor->report, is_short ? DOCTOR_WARN : DOCTOR_OK,
		"%s%s free", free_text, inodes);
	if (is_short)
		doctor_remedy(finding,
			"make space on the file system of '%s': without it no job can "
			"queue",
			doctor->state.path);
}

/* --- the kernel -------------------------------------------------------------------- */

void check_kernel(struct doctor *doctor)
{
	struct utsname name;

	if (uname(&name) < 0)
		text_copy(name.release, sizeof(name.release), "?");
	if (kernel_is_at_least(name.release, 4, 18))
		(void)doctor_add(&doctor->report, DOCTOR_OK, "Linux %s", name.release);
	else
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_FAIL,
				      "Linux %s is older than 4.18", name.release),
			"install a newer kernel");
}

void check_pidfd(struct doctor *doctor)
{
	int fd = pidfd_open_process((uint32_t)getpid());
	struct owner self = { 0 };

	if (fd < 0) {
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "pidfd_open: %s: gpulease checks once a second "
				      "whether a process has ended",
				      strerror(-fd)),
			"use Linux 5.3 or newer; a sandbox may forbid the call");
		return;
	}
	close_fd(&fd);
	if (!pidfd_can_tell_exit())
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "pidfds do not tell how a process ended: a job "
				      "that gpulease has become has no exit status"),
			"use Linux 6.15 or newer, or start jobs with --report");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"pidfds report when a process ends, and how");
	if (owner_of_pid((uint32_t)getpid(), &self) < 0 || !self.inode)
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "pidfds have no inodes of their own: processes are "
				      "told apart by their start times"),
			"use Linux 6.9 or newer");
}

/* Whether /proc is mounted with hidepid in force; then @out is its value. */
static bool proc_find_hidepid(char *out, size_t size)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[4096];
	bool is_hidden = false;

	/* the last line for /proc is the mount that is visible */
	while (file && fgets(line, sizeof(line), file))
		is_hidden = line_hides_processes(line, out, size) || is_hidden;
	if (file)
		(void)fclose(file);
	return is_hidden;
}

void check_proc(struct doctor *doctor)
{
	char value[32];

	if (proc_find_hidepid(value, sizeof(value)))
		doctor_remedy(
			doctor_add(&doctor->report, DOCTOR_WARN,
				"/proc is mounted with hidepid=%s: the names and users "
				"of other users' processes are hidden, and only their "
				"FIFOs tell when they end",
				value),
			"this may stay; the mount option gid= exempts a group");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK, "/proc shows all processes");
}

void check_container(struct doctor *doctor)
{
	const struct doctor_state *state = &doctor->state;
	bool sees_host =
		state->sees_host && !state->is_fallback && !state->has_allocation;
	struct doctor_finding *finding = NULL;

	if (!container_is_inside())
		(void)doctor_add(&doctor->report, DOCTOR_OK, "this is not a container");
	else if (state->sim_gpus)
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"in a container, which simulates its own GPUs");
	else if (!sees_host)
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"in a container that does not see the host's queue");
	else if (!state->has_config)
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"in a container that has the host's queue but not its configuration");
	else
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"in a container, with the host's queue and configuration");
	if (finding)
		doctor_remedy(
			finding, "mount what gpulease --docker-args prints on the host");
}

/* --- Slurm ------------------------------------------------------------------------- */

void check_slurm(struct doctor *doctor)
{
	const struct doctor_state *state = &doctor->state;
	bool is_short = state->is_allocation_short;
	struct doctor_finding *finding;

	if (!state->allocation[0]) {
		(void)doctor_add(
			&doctor->report, DOCTOR_OK, "not inside a Slurm allocation");
		return;
	}
	finding = doctor_add(&doctor->report, is_short ? DOCTOR_WARN : DOCTOR_OK, "%s",
		state->allocation);
	if (is_short)
		doctor_remedy(finding,
			"start gpulease on a node of the allocation that has "
			"GPUs: srun --gpus=N gpulease ...");
}

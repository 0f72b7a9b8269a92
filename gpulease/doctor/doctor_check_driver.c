/*
 * Checks of nvidia-smi, of the driver, and of what nvidia-smi says about the GPUs.  Declared in
 * doctor_checks.h.
 */
#include <errno.h>
#include <fcntl.h>

#include "doctor_checks.h"
#include "doctor_facts.h"
#include "fdio.h"
#include "gpu_reason.h"
#include "instance.h"
#include "privacy.h"
#include "process_lease.h"

#define DRIVER_VERSION "/proc/driver/nvidia/version"

enum { SLOW_MS = 1000 }; /* an nvidia-smi that takes longer delays starts */

/* --- nvidia-smi and the driver ----------------------------------------------------- */

/* Whether the GPUs are simulated; adds the finding that the check is not needed then. */
static bool is_simulated(struct doctor *doctor)
{
	unsigned gpus = doctor->settings->machine.sim_gpus;

	if (gpus)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "not needed: simulated");
	return gpus != 0;
}

void check_nvidia_smi(struct doctor *doctor)
{
	const struct probe *probe = &doctor->reader.snapshot.probe;
	const char *path = doctor->context.nvidia_smi;
	struct doctor_finding *finding;

	if (is_simulated(doctor))
		return;
	if (!doctor->has_run) {
		doctor_remedy(
			doctor_add(&doctor->report, DOCTOR_FAIL, "not found in PATH"),
			"install the NVIDIA driver, or name the program as nvidia-smi in "
			"/etc/gpulease.conf");
		return;
	}
	if (probe->trouble.text[0]) {
		finding = doctor_add(&doctor->report, DOCTOR_FAIL, "'%s': %s", path,
			probe->trouble.text);
		doctor_remedy(finding, "%s", driver_remedy(probe->trouble.text));
		return;
	}
	finding = doctor_add(&doctor->report,
		doctor->run_ms > SLOW_MS ? DOCTOR_WARN : DOCTOR_OK, "'%s' took %lld ms",
		path, (long long)doctor->run_ms);
	if (doctor->run_ms > SLOW_MS)
		doctor_remedy(finding, "turn on persistence mode: nvidia-smi -pm 1, or "
				       "run nvidia-persistenced");
}

void check_driver(struct doctor *doctor)
{
	char text[1024], version[64];

	if (is_simulated(doctor))
		return;
	if (fdio_read_text(AT_FDCWD, DRIVER_VERSION, text, sizeof(text)) == 0 &&
		driver_version(text, version, sizeof(version)))
		(void)doctor_add(&doctor->report, DOCTOR_OK, "version %s", version);
	else if (doctor_probe(doctor))
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"'%s' does not show its version", DRIVER_VERSION);
	else
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_FAIL,
				      "the kernel has no NVIDIA driver: no '%s'",
				      DRIVER_VERSION),
			"modprobe nvidia, or install the NVIDIA driver");
}

/* --- the GPUs ---------------------------------------------------------------------- */

/* Returns the answer of nvidia-smi; without one, NULL after adding a finding that says so. */
static const struct probe *probe_or_finding(struct doctor *doctor)
{
	const struct probe *probe = doctor_probe(doctor);

	if (!probe)
		(void)doctor_add(
			&doctor->report, DOCTOR_WARN, "not known without nvidia-smi");
	return probe;
}

/* Writes "GPU 3", or its UUID or bus id if nvidia-smi gives no index. */
static void gpu_describe(const struct probe_gpu *gpu, char *out, size_t size)
{
	if (gpu->index >= 0)
		(void)snprintf(out, size, "GPU %d", gpu->index);
	else
		(void)snprintf(out, size, "the GPU %s",
			gpu->uuid[0]     ? gpu->uuid
			: gpu->bus_id[0] ? gpu->bus_id
					 : "without a number");
}

/* Adds a finding if nvidia-smi has no usable values for @gpu.  Returns whether it has. */
static bool gpu_check(struct doctor *doctor, const struct probe_gpu *gpu)
{
	struct doctor_finding *finding;
	char name[128], remedy[160];

	if (gpu->is_known)
		return true;
	gpu_describe(gpu, name, sizeof(name));
	gpu_remedy(gpu->trouble, gpu->index, remedy, sizeof(remedy));
	finding = doctor_add(
		&doctor->report, DOCTOR_WARN, "%s is not leased: %s", name, gpu->trouble);
	doctor_remedy(finding, "%s", remedy);
	return false;
}

/* Adds a finding for each GPU that was there in this boot and that nvidia-smi no longer lists. */
static void check_missing_gpus(struct doctor *doctor)
{
	const struct snapshot *view = &doctor->reader.snapshot;

	for (unsigned slot = 0; doctor->has_view && slot < view->slots; slot++) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];

		if (!gpu->exists ||
			(gpu_is_instance(&gpu->file.gpu) ? gpu->mig : gpu->row) >= 0)
			continue;
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "nvidia-smi no longer lists GPU %s",
				      snapshot_gpu_name(view, slot).text),
			"look for Xid errors in dmesg; a reboot may bring it back");
	}
}

void check_gpus(struct doctor *doctor)
{
	const struct probe *probe = probe_or_finding(doctor);
	unsigned good = 0, migs = 0;

	if (!probe)
		return;
	for (uint32_t i = 0; i < probe->gpu_count; i++) {
		good += gpu_check(doctor, &probe->gpus[i]);
		migs += probe->gpus[i].is_known && probe->gpus[i].has_mig;
	}
	check_missing_gpus(doctor);
	if (good)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "%u known", good);
	if (migs)
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"MIG is enabled on %u, and %u instances are leased instead", migs,
			probe->mig_count);
}

void check_compute_mode(struct doctor *doctor)
{
	const struct probe *probe = probe_or_finding(doctor);
	unsigned others = 0;

	for (uint32_t i = 0; probe && i < probe->gpu_count; i++) {
		const struct probe_gpu *gpu = &probe->gpus[i];
		struct doctor_finding *finding;

		if (probe_gpu_is_prohibited(gpu)) {
			finding = doctor_add(&doctor->report, DOCTOR_WARN,
				"GPU %d is Prohibited, so it is not leased", gpu->index);
			doctor_remedy(finding, "nvidia-smi -i %d -c DEFAULT", gpu->index);
		} else if (strncasecmp(gpu->compute_mode, "Exclusive", 9) == 0) {
			(void)doctor_add(&doctor->report, DOCTOR_OK,
				"GPU %d is %s: one process at a time, so steps and shares "
				"cannot use it together",
				gpu->index, gpu->compute_mode);
		} else {
			others++;
		}
	}
	if (others)
		(void)doctor_add(&doctor->report, DOCTOR_OK,
			"%u can be used by several processes", others);
}

/* --- use outside leases ------------------------------------------------------------ */

/* Whether @process belongs to a lease on @slot; true if that cannot be decided. */
static bool is_of_lease(
	const struct snapshot *view, unsigned slot, const struct probe_process *process)
{
	uint32_t pid = (uint32_t)process->pid;
	struct process_stat stat;
	struct process_lease found;

	/* hidden, or of another pid namespace; the MPS server works for all leases */
	if (process->pid <= 0 || process_stat_read(pid, &stat) < 0 ||
		strncmp(stat.comm, "nvidia-cuda-mps-server", 15) == 0)
		return true;
	process_lease_read(pid, &found);
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];
		struct owner job = snapshot_lease_process(lease);

		if (!gpuset_has(&lease->lease.gpus, slot))
			continue;
		if (job.pidns != view->dir->pidns ||
			process_lease_descends(&found, &job) ||
			process_lease_belongs(&found, &job))
			return true;
	}
	return false;
}

/*
 * Adds a finding for each process on a leased GPU that belongs to no lease on it.  Returns how
 * many there are.
 */
static unsigned check_intruders(struct doctor *doctor, unsigned slot)
{
	const struct snapshot *view = &doctor->reader.snapshot;
	const struct snapshot_gpu *gpu = &view->gpus[slot];
	unsigned count = 0;

	for (uint32_t i = 0; gpu->row >= 0 && i < view->probe.process_count; i++) {
		const struct probe_process *process = &view->probe.processes[i];
		struct doctor_finding *finding;
		char user[160] = "";
		struct text text = TEXT_ON(user);

		if ((int)process->gpu != gpu->row || is_of_lease(view, slot, process))
			continue;
		describe_process((uint32_t)process->pid, &text);
		finding = doctor_add(&doctor->report, DOCTOR_WARN,
			"GPU %s, leased to job %llu, is also used by pid %d (%s)",
			snapshot_gpu_name(view, slot).text,
			(unsigned long long)view->leases[gpu->lease].lease.ticket,
			process->pid, user);
		doctor_remedy(finding,
			"ask its user: it may run in a container that this job "
			"has started, else it disturbs the job");
		count++;
	}
	return count;
}

void check_outside_use(struct doctor *doctor)
{
	const struct snapshot *view = &doctor->reader.snapshot;
	unsigned count = 0;

	if (!doctor->has_view || !doctor_probe(doctor)) {
		(void)doctor_add(&doctor->report, DOCTOR_WARN,
			"not known without nvidia-smi and the state directory");
		return;
	}
	for (unsigned slot = 0; slot < view->slots; slot++) {
		struct doctor_finding *finding;
		char why[320] = "";
		struct text text = TEXT_ON(why);

		/* nvidia-smi shows the processes of all instances of a GPU together */
		if (view->gpus[slot].lease >= 0 &&
			!gpu_is_instance(&view->gpus[slot].file.gpu))
			count += check_intruders(doctor, slot);
		if (!view->gpus[slot].exists || view->gpus[slot].state != GPU_EXTERNAL)
			continue;
		(void)explain_gpu(view, slot, &text);
		finding = doctor_add(&doctor->report, DOCTOR_WARN, "GPU %s %s",
			snapshot_gpu_name(view, slot).text, why);
		doctor_remedy(finding, "the GPU can be leased once that ends; start "
				       "such jobs with gpulease");
		count++;
	}
	if (count == 0)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "none");
}

/*
 * Checks of nvidia-smi, of the driver, and of what nvidia-smi says about the GPUs.  Declared in
 * doctor_checks.h.
 */
#include <fcntl.h>

#include "doctor_checks.h"
#include "doctor_facts.h"
#include "fdio.h"

#define DRIVER_VERSION "/proc/driver/nvidia/version"

enum { SLOW_MS = 1000 }; /* an nvidia-smi that takes longer delays starts */

/* --- nvidia-smi and the driver ----------------------------------------------------- */

/* Whether the GPUs are simulated; adds the finding that the check is not needed then. */
static bool is_simulated(struct doctor *doctor)
{
	unsigned gpus = doctor->state.sim_gpus;

	if (gpus)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "not needed: simulated");
	return gpus != 0;
}

void check_nvidia_smi(struct doctor *doctor)
{
	const struct probe *probe = &doctor->state.probe;
	const char *path = doctor->state.nvidia_smi;
	struct doctor_finding *finding;

	if (is_simulated(doctor))
		return;
	if (!doctor->state.has_run) {
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
		doctor->state.run_ms > SLOW_MS ? DOCTOR_WARN : DOCTOR_OK,
		"'%s' took %lld ms", path, (long long)doctor->state.run_ms);
	if (doctor->state.run_ms > SLOW_MS)
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
	const struct doctor_item *item;
	size_t at = 0;

	while ((item = doctor_next(doctor, 1u << DOCTOR_MISSING, &at)))
		doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
				      "nvidia-smi no longer lists GPU %s", item->gpu),
			"look for Xid errors in dmesg; a reboot may bring it back");
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

void check_outside_use(struct doctor *doctor)
{
	const struct doctor_item *item;
	size_t at = 0;
	bool is_used = false;

	if (!doctor->state.has_view || !doctor_probe(doctor)) {
		(void)doctor_add(&doctor->report, DOCTOR_WARN,
			"not known without nvidia-smi and the state directory");
		return;
	}
	while ((item = doctor_next(
			doctor, 1u << DOCTOR_INTRUDER | 1u << DOCTOR_OUTSIDE, &at))) {
		is_used = true;
		if (item->kind == DOCTOR_INTRUDER)
			doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
					      "GPU %s, leased to job %llu, is also used "
					      "by pid %d (%s)",
					      item->gpu, (unsigned long long)item->number,
					      (int)item->pid, item->text),
				"ask its user: it may run in a container that this job "
				"has started, else it disturbs the job");
		else
			doctor_remedy(doctor_add(&doctor->report, DOCTOR_WARN,
					      "GPU %s %s", item->gpu, item->text),
				"the GPU can be leased once that ends; start such jobs "
				"with gpulease");
	}
	if (!is_used)
		(void)doctor_add(&doctor->report, DOCTOR_OK, "none");
}

#include <errno.h>
#include <stdio.h>

#include "childenv.h"
#include "diag.h"
#include "inject.h"
#include "node_variables.h"
#include "process_lease.h"
#include "slurm_allocation.h"

extern char **environ;

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* Returns the GPUs as the command sees them; "": none. */
static const char *visible_gpus(void)
{
	static const char *const names[] = { "CUDA_VISIBLE_DEVICES",
		"ROCR_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (variable(names[i]))
			return variable(names[i]);
	return "";
}

/* Returns the GPUs as the node numbers them; "": none. */
static const char *physical_gpus(void)
{
	const char *gpus = variable("SLURM_STEP_GPUS");

	if (!gpus)
		gpus = variable("SLURM_JOB_GPUS");
	return gpus ? gpus : visible_gpus();
}

/* Writes the variables to @changes.  Returns how many there are. */
static size_t make_changes(const struct node_order *order, const char *gpus,
	const char *allocation, const char *attempt, struct childenv_change *changes)
{
	const char *id = variable("SLURM_JOB_ID");
	size_t count = 0;

#define SET(name, value, is_default) \
	changes[count++] = (struct childenv_change){ name, value, is_default }
	SET("GPULEASE_ENGINE", NULL, false);
	SET("GPULEASE_DIR", NULL, false);
	SET("GPULEASE_UUIDS", NULL, false);
	SET(PROCESS_LEASE_TOKEN_VARIABLE, NULL, false);
	SET("GPULEASE_ID", id, false);
	SET("GPULEASE_ATTEMPT", attempt, false);
	SET("GPULEASE_GPUS", gpus, false);
	/* without it, the two equal ids would say that the job is one of gpulease alone */
	SET(ALLOCATION_VARIABLE, id ? allocation : NULL, false);
	/* a command without GPUs must not see those of other jobs */
	if (!*gpus)
		SET("CUDA_VISIBLE_DEVICES", "", true);
	if (order->unbuffered)
		SET("PYTHONUNBUFFERED", "1", true);
#undef SET
	return count;
}

int node_environment_make(const struct node_order *order, unsigned attempt, char ***ret)
{
	/* with --export, too */
	static const char *const kept[] = { "SLURM*", "CUDA_VISIBLE_DEVICES",
		"ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "PMI*",
		"TMPDIR", NULL };
	const char *id = variable("SLURM_JOB_ID"), *gpus = physical_gpus();
	struct childenv_change changes[16];
	char allocation[512], number[16];

	(void)snprintf(allocation, sizeof(allocation), "%s:%s", id ? id : "", gpus);
	(void)snprintf(number, sizeof(number), "%u", attempt);
	return childenv_make(environ, NULL, kept, order->export_list, changes,
		make_changes(order, gpus, allocation, number, changes), ret);
}

/* Whether a word after the first @fixed has the placeholder {uuids}. */
static bool has_uuids(char **command, size_t fixed)
{
	for (size_t i = 0; command[i]; i++)
		if (i >= fixed && strstr(command[i], "{uuids}"))
			return true;
	return false;
}

int node_fill(const struct node_order *order, char **command, size_t fixed, char ***ret)
{
	const char *visible = visible_gpus(), *id = variable("SLURM_JOB_ID");
	char local[512], count[12];
	struct text text = TEXT_ON(local);
	unsigned number = text_count_items(visible);
	struct inject_values values = { local, count, "", id ? id : "" };

	if (has_uuids(command, fixed)) {
		diag("{uuids}: Slurm does not tell the UUIDs of the GPUs; write {gpus}");
		return -EINVAL;
	}
	for (unsigned i = 0; i < number; i++)
		text_addf(&text, i ? ",%u" : "%u", i);
	if (order->inject_style == INJECT_PHYSICAL)
		values.gpus = physical_gpus();
	(void)snprintf(count, sizeof(count), "%u", number);
	return inject_arguments(command, fixed, order->inject, &values, ret);
}

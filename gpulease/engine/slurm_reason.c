#include "slurm_reason.h"

/*
 * PartitionNodeLimit and PartitionConfig also mean that nodes are down now, so the job may start
 * later.
 */
/* clang-format off */
static const struct slurm_reason reasons[] = {
	{ "None", "leased", "waits for Slurm to look at it", false },
	{ "Resources", "leased", "waits for GPUs or CPUs that are in use", false },
	{ "Priority", "behind", "other jobs come first", false },
	{ "Dependency", "held", "waits for other jobs to end", false },
	{ "DependencyNeverSatisfied", "held", "a job that it waits for has ended otherwise", true },
	{ "JobHeldUser", "held", "is held; gpulease --release ID lets it go", false },
	{ "JobHeldAdmin", "held", "is held by the administrator", false },
	{ "JobHoldMaxRequeue", "held", "is held, because it was requeued too often", false },
	{ "BeginTime", "held", "may not begin yet", false },
	{ "SchedDefer", "leased", "waits for Slurm to look at it", false },
	{ "Licenses", "limit", "waits for a license", false },
	{ "PartitionDown", "gpu", "its partition is down", false },
	{ "PartitionInactive", "gpu", "its partition takes no jobs now", false },
	{ "PartitionNodeLimit", "limit", "asks for more nodes than its partition gives a job now", false },
	{ "PartitionTimeLimit", "limit", "asks for more time than its partition gives a job", true },
	{ "PartitionConfig", "limit", "asks for more than its partition has now", false },
	{ "MaxMemPerLimit", "limit", "asks for more memory than a job may have", true },
	{ "ReqNodeNotAvail", "gpu", "a node that it needs is down or reserved", false },
	{ "NodeDown", "gpu", "a node that it needs is down", false },
	{ "FrontEndDown", "gpu", "no front end node is up", false },
	{ "Nodes required for job are DOWN", "gpu", "nodes that it needs are down, drained or reserved", false },
	{ "BadConstraints", "limit", "no node has what it asks for", true },
	{ "Constraints", "limit", "no node has what it asks for", true },
	{ "Reservation", "held", "waits for its reservation", false },
	{ "ReservationDeleted", "held", "its reservation was deleted", true },
	{ "ReservationInvalid", "held", "its reservation is not valid", true },
	{ "AccountNotAllowed", "limit", "its account may not use this partition", true },
	{ "QOSNotAllowed", "limit", "its QOS may not use this partition", true },
	{ "InvalidAccount", "limit", "its account is not known", true },
	{ "InvalidQOS", "limit", "its QOS is not known", true },
	{ "AccountingPolicy", "limit", "a limit of the accounting keeps it", false },
	{ "QOSUsageThreshold", "limit", "your fair share is too low for its QOS", false },
	{ "QOSMaxGRESPerUser", "limit", "you have as many GPUs as your QOS allows", false },
	{ "QOSMaxJobsPerUserLimit", "limit", "you run as many jobs as your QOS allows", false },
	{ "QOSGrpGRES", "limit", "all GPUs of its QOS are in use", false },
	{ "QOSGrpGRESMinutes", "limit", "the GPU time of its QOS is used up", false },
	{ "QOSGrpGRESRunMinutes", "limit", "the jobs of its QOS run for as much GPU time as they may", false },
	{ "AssocGrpGRES", "limit", "all GPUs of your account are in use", false },
	{ "AssocGrpGRESMinutes", "limit", "the GPU time of your account is used up", false },
	{ "AssocGrpGRESRunMinutes", "limit", "the jobs of your account run for as much GPU time as they may", false },
	{ "AssocMaxJobsLimit", "limit", "you run as many jobs as your account allows", false },
	{ "AssociationJobLimit", "limit", "you run as many jobs as your account allows", false },
	{ "MaxGRESPerAccount", "limit", "your account has as many GPUs as it may", false },
	{ "MaxJobsPerAccount", "limit", "your account runs as many jobs as it may", false },
	{ "BurstBufferResources", "leased", "waits for room in a burst buffer", false },
	{ "BurstBufferStageIn", "leased", "its files are being copied to the burst buffer", false },
	{ "BurstBufferOperation", "gpu", "its burst buffer has failed", false },
	{ "PowerNotAvail", "gpu", "there is not enough power for more nodes", false },
	{ "PowerReserved", "gpu", "waits for power that is reserved", false },
	{ "FedJobLock", "leased", "another cluster may start it", false },
	{ "Prolog", "leased", "its node is being prepared", false },
	{ "Cleaning", "leased", "its last attempt is being cleaned up", false },
	{ "SystemFailure", "gpu", "Slurm has failed to start it", false },
	{ "JobLaunchFailure", "held", "its node could not start it", false },
	{ "JobArrayTaskLimit", "limit", "as many tasks of its array run as may", false },
	{ "launch failed requeued held", "held", "is held, because its node could not start it", false },
	{ "job requeued in held state", "held", "was requeued, and is held; gpulease --release ID lets it go", false },
};

/* Reasons that are not above, by how they begin and end.  Slurm counts many things by one rule. */
static const struct {
	const char *begin, *end;
	struct slurm_reason reason;
} families[] = {
	{ "Assoc", "PerJob", { "", "limit", "asks for more than a job of your account may have", true } },
	{ "Assoc", "PerJobLimit", { "", "limit", "asks for more than a job of your account may have", true } },
	{ "Assoc", "PerNode", { "", "limit", "asks for more of a node than your account allows", true } },
	{ "Assoc", "Minutes", { "", "limit", "the time of your account is used up", false } },
	{ "Assoc", "", { "", "limit", "your account has as much as it may", false } },
	{ "QOSMin", "", { "", "limit", "asks for less than its QOS demands", true } },
	{ "QOS", "PerJob", { "", "limit", "asks for more than a job of its QOS may have", true } },
	{ "QOS", "PerJobLimit", { "", "limit", "asks for more than a job of its QOS may have", true } },
	{ "QOS", "PerNode", { "", "limit", "asks for more of a node than its QOS allows", true } },
	{ "QOS", "Minutes", { "", "limit", "the time of its QOS is used up", false } },
	{ "QOSMax", "", { "", "limit", "you have as much as its QOS allows", false } },
	{ "QOS", "", { "", "limit", "all jobs of its QOS have as much as they may", false } },
	{ "Max", "PerAccount", { "", "limit", "your account has as much as it may", false } },
};
/* clang-format on */

/*
 * Returns how long the reason in @text is: details may follow, as in "ReqNodeNotAvail,
 * UnavailableNodes:n1", or "ReqNodeNotAvail(Unavailable:n1)".
 */
static size_t reason_size(const char *text)
{
	return strcspn(text, ",(:");
}

/* Whether the @size bytes at @text are @name; Slurm may write a blank as `_`. */
static bool is_name(const char *text, size_t size, const char *name)
{
	for (size_t i = 0; i < size; i++)
		if (name[i] != (text[i] == '_' ? ' ' : text[i]))
			return false;
	return !name[size];
}

static bool is_of_family(
	const char *text, size_t size, const char *begin, const char *end)
{
	size_t begins = strlen(begin), ends = strlen(end);

	return size >= begins + ends && memcmp(text, begin, begins) == 0 &&
	       memcmp(text + size - ends, end, ends) == 0;
}

const struct slurm_reason *slurm_reason_find(const char *name)
{
	static const struct slurm_reason unknown = { "", "limit", NULL, false };
	size_t size = reason_size(name);

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (is_name(name, size, reasons[i].name))
			return &reasons[i];
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (is_of_family(name, size, families[i].begin, families[i].end))
			return &families[i].reason;
	return &unknown;
}

void slurm_reason_add(const char *name, struct text *out)
{
	const char *words = slurm_reason_find(name)->words;

	if (words)
		text_add(out, words);
	else
		text_addf(out, "Slurm says %s", name[0] ? name : "nothing");
}

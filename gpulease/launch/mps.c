#include <fcntl.h>

#include "fdio.h"
#include "mps.h"
#include "owner.h"
#include "parse.h"
#include "rights.h"

bool mps_is_running(void)
{
	const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[512], text[32];
	struct process_stat process;
	uint64_t pid;
	int r;

	(void)snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid",
		directory && directory[0] ? directory : "/tmp/nvidia-mps");
	rights_as_user_begin();
	r = fdio_read_text(AT_FDCWD, path, text, sizeof(text));
	rights_as_user_end();
	if (r < 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, INT32_MAX, &pid, NULL) == 0 &&
	       process_stat_read((uint32_t)pid, &process) == 0 &&
	       /* the kernel keeps 15 bytes of a process name */
	       strncmp(process.comm, "nvidia-cuda-mps-control", 15) == 0;
}

void mps_limit(const struct snapshot *view, const struct gpuset *gpus,
	const struct need *need, struct mps_limits *ret)
{
	struct text memory = TEXT_ON(ret->memory);
	unsigned ordinal = 0;

	ret->threads[0] = ret->memory[0] = '\0';
	if (need_is_whole(need))
		return;
	if (need->percent)
		(void)snprintf(ret->threads, sizeof(ret->threads), "%u", need->percent);
	gpuset_for_each (slot, gpus) {
		uint64_t mib = need_mib(need, view->plan[slot].total_mib);

		if (mib)
			text_addf(&memory, "%s%u=%lluM", ordinal ? "," : "", ordinal,
				(unsigned long long)mib);
		ordinal++;
	}
}

/* Whether the last part of a command's output says that GPU memory ran out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "output_oom.h"
#include "fdio.h"
#include "scratch.h"

/* --- the text ---------------------------------------------------------------------- */

static const char *const texts_of_gpus[] = {
	/* PyTorch */
	"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; "
	"23.69 GiB total capacity; 22.02 GiB already allocated)",
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
	"total capacity of 79.10 GiB",
	"torch.OutOfMemoryError: Allocation on device",
	"torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory.",
	"RuntimeError: CUDA out of memory. Tried to allocate 1024.00 MiB",
	"RuntimeError: CUDA error: out of memory",
	"RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/THCStorage.cu:58",
	"torch.AcceleratorError: CUDA error: out of memory",
	"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB",
	/* TensorFlow */
	"tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:",
	"OOM when allocating tensor with shape[64,512,512] and type float on "
	"/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
	"2024-05-01 10:00:00.1: E tensorflow/stream_executor/cuda/cuda_driver.cc:794] failed to "
	"allocate 7.60G (8160437760 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
	/* JAX */
	"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
	"allocate 34359738368 bytes.",
	"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for "
	"2.0GiB (2147483648B) on device ordinal 0",
	/* CUDA and its libraries */
	"CUDA error at main.cu:12 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&p, n)\"",
	"cudaMalloc failed: out of memory",
	"CUDA driver version 12.4: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY",
	"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
	"cudnnCreate: CUDNN_STATUS_ALLOC_FAILED",
	"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes",
	"NCCL WARN Cuda failure 2 'out of memory'",
	"hipErrorOutOfMemory",
};

static const char *const other_texts[] = {
	"",
	"MemoryError",
	"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array",
	"Killed",
	"OSError: [Errno 12] Cannot allocate memory",
	"Out of memory: Killed process 4242 (python) total-vm:1000kB",
	"RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.",
	"RuntimeError: DataLoader worker (pid(s) 1, 2) exited unexpectedly",
	"It is possible that dataloader's workers are out of shared memory.",
	"RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate "
	"memory: you tried to allocate 4000000000000 bytes.",
	"java.lang.OutOfMemoryError: Java heap space",
	"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.",
	"RuntimeError: CUDA error: device-side assert triggered",
	"RuntimeError: CUDA error: an illegal memory access was encountered",
	"torch.cuda.is_available() is False",
	"ResourceExhaustedError: on /job:localhost/replica:0/task:0/device:CPU:0",
	"OOM when allocating tensor with shape[1] on /job:localhost/replica:0/task:0/device:CPU:0 "
	"by allocator cpu",
	"out of memor",
	"uda out of memory",
	/* two words on different lines do not belong together */
	"found cuda\nmysqld: Out of memory",
	"using cuda:0\rsort: out of memory",
};

static void each_phrase_is_found_in_upper_and_lower_case(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts_of_gpus); i++) {
		char upper[512], lower[512], around[1024];
		size_t size = strlen(texts_of_gpus[i]);

		for (size_t at = 0; at <= size; at++) {
			upper[at] = (char)toupper((unsigned char)texts_of_gpus[i][at]);
			lower[at] = (char)tolower((unsigned char)texts_of_gpus[i][at]);
		}
		(void)snprintf(around, sizeof(around), "epoch 1\nTraceback:\n  %s\n\nbye",
			texts_of_gpus[i]);
		if (!text_says_oom(texts_of_gpus[i], size) ||
			!text_says_oom(upper, size) || !text_says_oom(lower, size) ||
			!text_says_oom(around, strlen(around)))
			fail_msg("%s", texts_of_gpus[i]);
	}
}

static void a_lack_of_host_memory_does_not_count(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(other_texts); i++)
		if (text_says_oom(other_texts[i], strlen(other_texts[i])))
			fail_msg("%s", other_texts[i]);
}

static void any_bytes_are_searched(void **state)
{
	static const char bytes[] = "\0\xff\n\r\0 cuda\0 out of memory\0\xfe";

	(void)state;
	assert_true(text_says_oom(bytes, sizeof(bytes) - 1));
	assert_false(text_says_oom(bytes, 10));
	assert_false(text_says_oom("CUDA out of memory", 17));
	assert_false(text_says_oom("", 0));
}

/* --- the files --------------------------------------------------------------------- */

static const char says_so[] = "RuntimeError: CUDA out of memory.\n";

/* Opens the file @name in the scratch directory for writing, as a command has it. */
static int open_log(const struct scratch *scratch, const char *name)
{
	int fd = openat(
		scratch->dirfd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void write_text(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void write_filler(int fd, size_t size)
{
	char line[1024];

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (; size; size -= sizeof(line))
		assert_int_equal(write(fd, line, sizeof(line)), (ssize_t)sizeof(line));
}

static void close_mark(struct output_mark *mark)
{
	for (size_t i = 0; i < ARRAY_SIZE(mark->fds); i++)
		close_fd(&mark->fds[i]);
}

static void output_of_an_earlier_attempt_does_not_count(void **state)
{
	autofd int fd = open_log(*state, "log");
	struct output_mark mark;

	write_text(fd, says_so);
	assert_int_equal(output_mark(fd, fd, &mark), 0);
	assert_int_equal(mark.fds[1], -1); /* one file is read once */
	assert_false(output_says_oom(&mark));
	write_text(fd, "epoch 1\n");
	assert_false(output_says_oom(&mark));
	write_text(fd, says_so);
	assert_true(output_says_oom(&mark));
	output_mark_again(&mark);
	assert_false(output_says_oom(&mark));
	write_text(fd, "AssertionError\n");
	assert_false(output_says_oom(&mark));
	close_mark(&mark);
	assert_false(output_says_oom(&mark));
}

static void either_output_counts(void **state)
{
	for (unsigned at = 0; at < 2; at++) {
		int fds[2] = { open_log(*state, "out"), open_log(*state, "err") };
		struct output_mark mark;

		assert_int_equal(output_mark(fds[0], fds[1], &mark), 0);
		assert_false(output_says_oom(&mark));
		write_text(fds[at], says_so);
		assert_true(output_says_oom(&mark));
		close_mark(&mark);
		close_fd(&fds[0]);
		close_fd(&fds[1]);
	}
}

static void only_the_last_16_kib_count(void **state)
{
	autofd int fd = open_log(*state, "log");
	struct output_mark mark;

	assert_int_equal(output_mark(fd, -1, &mark), 0);
	write_text(fd, says_so);
	write_filler(fd, 15 * 1024);
	assert_true(output_says_oom(&mark));
	write_filler(fd, 1024);
	assert_false(output_says_oom(&mark));
	write_text(fd, says_so);
	assert_true(output_says_oom(&mark));
	close_mark(&mark);
}

static void a_truncated_file_counts_as_new(void **state)
{
	autofd int fd = open_log(*state, "log");
	struct output_mark mark;

	write_filler(fd, 64 * 1024);
	assert_int_equal(output_mark(-1, fd, &mark), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_false(output_says_oom(&mark));
	write_text(fd, says_so);
	assert_true(output_says_oom(&mark));
	close_mark(&mark);
}

static void a_deleted_file_is_still_read(void **state)
{
	const struct scratch *scratch = *state;
	autofd int fd = open_log(scratch, "log");
	struct output_mark mark;

	assert_int_equal(unlinkat(scratch->dirfd, "log", 0), 0);
	assert_int_equal(output_mark(fd, fd, &mark), 0); /* its name is deleted already */
	assert_int_equal(scratch_write(scratch, "log", "harmless\n"), 0);
	write_text(fd, says_so);
	assert_true(output_says_oom(&mark));
	close_mark(&mark);
}

static void only_regular_files_are_read(void **state)
{
	autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	autofd int file = open_log(*state, "log");
	struct output_mark mark;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(output_mark(null, ends[1], &mark), -ENOENT);
	assert_int_equal(output_mark(-1, -1, &mark), -ENOENT);
	assert_int_equal(output_mark(ends[1], file, &mark), 0);
	write_text(ends[1], says_so);
	assert_false(output_says_oom(&mark));
	close_mark(&mark);
	if (geteuid() != 0) { /* root reads everything */
		assert_int_equal(fchmod(file, 0200), 0);
		assert_int_equal(output_mark(file, file, &mark), -ENOENT);
	}
	close_fd(&ends[0]);
	close_fd(&ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_phrase_is_found_in_upper_and_lower_case),
		cmocka_unit_test(a_lack_of_host_memory_does_not_count),
		cmocka_unit_test(any_bytes_are_searched),
		SCRATCH_TEST(output_of_an_earlier_attempt_does_not_count),
		SCRATCH_TEST(either_output_counts),
		SCRATCH_TEST(only_the_last_16_kib_count),
		SCRATCH_TEST(a_truncated_file_counts_as_new),
		SCRATCH_TEST(a_deleted_file_is_still_read),
		SCRATCH_TEST(only_regular_files_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

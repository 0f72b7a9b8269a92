#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "exitcodes.h"
#include "fdio.h"
#include "slurm_message.h"
#include "slurm_programs.h"
#include "slurm_query.h"

/* Of an answer; 16,384 jobs wait at most, of which each has less than 4 KiB. */
enum { ANSWER_MAX = 128 * 1024 * 1024 };

static int await(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_MISUSE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reads all of the file @fd into *@ret, with a NUL behind it. */
static int keep(int fd, char **ret, size_t *ret_size)
{
	struct stat about;
	size_t used = 0;
	ssize_t n = 1;
	char *text;

	if (fstat(fd, &about) < 0)
		return -errno;
	if (about.st_size > ANSWER_MAX)
		return -EFBIG;
	text = malloc((size_t)about.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (used < (size_t)about.st_size && n > 0) {
		n = pread(fd, text + used, (size_t)about.st_size - used, (off_t)used);
		if (n > 0)
			used += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	text[used] = '\0';
	*ret = text;
	*ret_size = used;
	return 0;
}

/* Runs @words with stdout and stderr in two files without names, so neither can block it. */
static int run(char **words, int out, int err, struct slurm_answer *ret)
{
	pid_t child = fork();
	int r;

	if (child < 0)
		return -errno;
	if (child == 0) {
		if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
			(void)execv(words[0], words);
		_exit(EXIT_NOT_FOUND);
	}
	ret->status = await(child);
	r = keep(out, &ret->out, &ret->out_size);
	return r < 0 ? r : keep(err, &ret->err, &ret->err_size);
}

int slurm_query_run(char **words, struct slurm_answer *ret)
{
	static char program[PATH_MAX];
	autofd int out = -1, err = -1;
	int r = slurm_programs_gpulease(program);

	*ret = (struct slurm_answer){ .status = EXIT_MISUSE };
	if (r < 0) {
		slurm_error("cannot find gpulease; install it again: make install");
		return r;
	}
	words[0] = program;
	out = memfd_create("out", MFD_CLOEXEC);
	err = memfd_create("err", MFD_CLOEXEC);
	r = out < 0 || err < 0 ? -errno : run(words, out, err, ret);
	if (r < 0)
		slurm_error("cannot run gpulease: %s", strerror(-r));
	return r;
}

void slurm_answer_release(struct slurm_answer *answer)
{
	free(answer->out);
	free(answer->err);
	*answer = (struct slurm_answer){ .status = 0 };
}

void slurm_answer_repeat(const struct slurm_answer *answer)
{
	if (answer->err_size)
		(void)fwrite(answer->err, 1, answer->err_size, stderr);
}

/* Runs @words and reads the jobs that they print. */
static int query(char **words, struct slurm_jobs *jobs)
{
	struct slurm_answer answer;
	int r = slurm_query_run(words, &answer);

	if (r == 0 && answer.status > EXIT_NOT_DONE)
		r = -EIO;
	else if (r == 0)
		r = slurm_jobs_read(answer.out, answer.out_size, jobs);
	if (r < 0 && answer.err_size)
		slurm_answer_repeat(&answer);
	else if (r < 0 && answer.status > EXIT_NOT_DONE)
		slurm_error("gpulease has failed with status %d", answer.status);
	else if (r < 0)
		slurm_error("cannot read what gpulease prints: %s", strerror(-r));
	slurm_answer_release(&answer);
	return r;
}

int slurm_query_jobs(const char *ids, struct slurm_jobs *jobs)
{
	static char option[] = "--status", json[] = "--json";
	autofree char *list = ids ? strdup(ids) : NULL;
	char *words[] = { NULL, json, option, list, NULL };

	return ids && !list ? -ENOMEM : query(words, jobs);
}

int slurm_query_ended(struct slurm_jobs *jobs)
{
	static char option[] = "--history", count[] = "all", since[] = "--since=5m",
		    json[] = "--json";
	char *words[] = { NULL, json, since, option, count, NULL };

	return query(words, jobs);
}

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "find_program.h"
#include "parse.h"
#include "sbatch_script.h"

static int open_script(const char *path)
{
	char found[PATH_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 && errno == ENOENT && find_program(path, found) == 0)
		fd = open(found, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int read_all(int fd, struct sbatch_script *script)
{
	ssize_t n = 1;

	script->text = calloc(SCRIPT_SIZE_MAX + 1, 1);
	if (!script->text)
		return -ENOMEM;
	while (n != 0 && script->size < SCRIPT_SIZE_MAX) {
		n = read(fd, script->text + script->size, SCRIPT_SIZE_MAX - script->size);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			script->size += (size_t)n;
	}
	return n == 0 ? 0 : -EFBIG;
}

int sbatch_script_read(const char *path, struct sbatch_script *ret, struct why *why)
{
	bool is_stdin = !path || strcmp(path, "-") == 0;
	autofd int fd = is_stdin ? dup(STDIN_FILENO) : open_script(path);
	int r;

	*ret = (struct sbatch_script){ .name = is_stdin ? "sbatch" : path };
	r = fd < 0 ? (is_stdin ? -errno : fd) : read_all(fd, ret);
	if (r < 0)
		why_set(why, "cannot read the script '%s': %s",
			is_stdin ? "-" : quote(path).text, strerror(-r));
	return r;
}

int sbatch_script_wrap(const char *command, struct sbatch_script *ret)
{
	int size = asprintf(&ret->text,
		"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n",
		command);

	if (size < 0)
		return -ENOMEM;
	ret->size = (size_t)size;
	ret->name = "wrap";
	return 0;
}

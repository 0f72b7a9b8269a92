/*
 * Prints the log of a job to stdout, as it grows.
 */
#ifndef GPULEASE_LOG_READER_H
#define GPULEASE_LOG_READER_H

#include <limits.h>
#include <sys/types.h>

#include "base.h"

struct log_reader {
	uint64_t id;
	char path[PATH_MAX];
	int fd;   /* -1: there is no log yet */
	off_t at; /* printed up to here */
	dev_t dev;
	ino_t ino;
};

/* Returns 0, or EXIT_MISUSE after a message. */
MUST_CHECK int log_reader_begin(struct log_reader *reader, uint64_t id);

/*
 * Opens the log if it exists, and prints what was not printed yet.  Returns 0, also without a log,
 * or an exit status after a message.
 */
MUST_CHECK int log_reader_print(struct log_reader *reader);

/*
 * The same, after it has opened the log again: on a file system of the network that makes sure that
 * all is seen which another machine has written.
 */
MUST_CHECK int log_reader_again(struct log_reader *reader);

void log_reader_end(struct log_reader *reader);

#endif

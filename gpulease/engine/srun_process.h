/*
 * The srun of a job in the foreground, as a child.
 *
 * It runs in a process group of its own, because it would answer Ctrl-C and TERM in its own way. If
 * this process dies in any way, the kernel sends QUIT to srun, which then ends its job, waiting or
 * running.
 *
 * A command on a terminal has it through `--pty`.  Once the job has its nodes, srun's group is that
 * of the terminal; until then Ctrl-C reaches this process.  Any other command has three streams:
 * stdout is that of this process, or comes by a pipe if it has a reader that may end, of which srun
 * would say nothing; stderr comes by a pipe of its own, so that it does not mix with
 * srun's messages, unless stdout and stderr are one file; and stdin, if it is a terminal, goes
 * through a pipe, too, since srun may not read the terminal.
 */
#ifndef GPULEASE_SRUN_PROCESS_H
#define GPULEASE_SRUN_PROCESS_H

#include <sys/types.h>
#include <termios.h>

#include "base.h"

struct slurm_words;

/* How the streams of the command reach this process. */
struct srun_streams {
	bool is_pty;        /* add --pty */
	bool is_one_task;   /* messages on tasks say nothing more than the exit status */
	bool merges;        /* the node joins stderr to stdout */
	bool copies_output; /* stdout comes by ->output_fd */
	bool copies_error;  /* stderr comes by ->error_fd */
	bool copies_input;  /* stdin goes to ->input_fd */
	bool has_output_file; /* the caller says so first: srun writes stdout to a file */
	bool has_error_file;  /* likewise: srun writes stderr to a file */
	bool has_input_file;  /* likewise: srun reads a file */
};

struct srun_process {
	pid_t pid;               /* 0: none */
	int message_fd;          /* what srun itself prints; -1: ended */
	int output_fd;           /* the command's stdout; -1: none, or ended */
	int error_fd;            /* its stderr, likewise */
	int input_fd;            /* to the command's stdin; -1: none, or ended */
	int wait_status;         /* once it has ended */
	struct termios terminal; /* as it was */
	bool has_terminal;       /* ->terminal is to be restored */
};

#define SRUN_PROCESS_NONE       \
	((struct srun_process){ \
		.message_fd = -1, .output_fd = -1, .error_fd = -1, .input_fd = -1 })

/*
 * Finds how the streams go.  @may_be_pty: the command is one task without files for its streams;
 * @is_pty: the user has asked for --pty.
 */
void srun_streams_find(bool may_be_pty, bool is_pty, struct srun_streams *streams);

/*
 * Starts @words; with ->copies_error SRUN_ERROR_OPTION is among them.  Returns 0 or a negative
 * errno.
 */
MUST_CHECK int srun_start(const struct srun_streams *streams,
	const struct slurm_words *words, struct srun_process *ret);

/* The descriptor that srun gets for ->copies_error has this name: an option for srun. */
#define SRUN_ERROR_OPTION "--error=/proc/self/fd/3"

/* With ->is_pty: the job has its nodes, and srun is about to use the terminal. */
void srun_give_terminal(struct srun_process *srun);

/* Whether srun has ended; reaps it, and gives this process its terminal back. */
bool srun_has_ended(struct srun_process *srun);

/* Whether this process may read its terminal: it is in the foreground. */
bool srun_may_read_input(void);

#endif

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fdio.h"
#include "node_order.h"
#include "submit_script.h"

/*
 * The shell gets signals in the place of the command, and passes them on.  TERM comes from Slurm,
 * which sends it to all processes of the job, so it is not passed on; --signal-job sends other
 * signals for TERM, KILL and STOP (engine_cancel.c).  A shell starts what it does not wait for with
 * INT and QUIT ignored, which env(1) undoes.
 */
static const char begin[] =
	"#!/bin/sh\n"
	"record=$1/$SLURM_JOB_ID.status log=$1/$SLURM_JOB_ID.log token=$2\n"
	"shift 2\n"
	"{\n"
	"	# what an earlier job with this id has left\n"
	"	read -r old word _ <\"$record\" &&\n"
	"		{ [ \"$old\" != \"$token\" ] || [ \"$word\" = reused ]; } &&\n"
	"		[ -s \"$log\" ] && [ ! -L \"$log\" ] && cp \"$log\" \"$log~\" && : >\"$log\"\n"
	"	echo \"$token\" >\"$record\"\n"
	"} 2>/dev/null\n"
	"for name in HUP INT QUIT USR1 USR2 ALRM TSTP CONT XCPU; do\n"
	"	trap \"again=1; kill -$name \\$pid 2>/dev/null\" $name\n"
	"done\n"
	"told=\n"
	"trap 'again=1 told=\" told\"' TERM\n"
	"trap 'again=1 told=\" told\"; kill -TERM $pid 2>/dev/null' URG\n"
	"trap 'again=1 told=\" told\"; kill -KILL $pid 2>/dev/null' PROF\n"
	"trap 'again=1; kill -STOP $pid 2>/dev/null' VTALRM\n";

/* What comes behind the variable with the text that each node runs. */
static const char end[] =
	"[ \"$1\" = srun ] || set -- /bin/sh -c \"$node\" gpulease \"$@\"\n"
	"if env --default-signal=INT,QUIT true 2>/dev/null; then\n"
	"	env --default-signal=INT,QUIT \"$@\" <&0 &\n"
	"else\n"
	"	\"$@\" <&0 &\n"
	"fi\n"
	"pid=$!\n"
	"status=\n"
	"while\n"
	"	again=\n"
	"	wait \"$pid\" 2>/dev/null\n"
	"	new=$?\n"
	"	# 127 also means that the last one was its status\n"
	"	[ \"$new\" = 127 ] && [ \"$status\" ] || status=$new\n"
	"	[ \"$again\" ]\n"
	"do :; done\n"
	"echo \"$token $status$told\" >\"$record\" 2>/dev/null\n"
	"# sacct cannot tell 130 from 2, so the shell dies of the signal, too\n"
	"[ \"$status\" -gt 128 ] && trap - $((status - 128)) 2>/dev/null && ulimit -c 0 &&\n"
	"	kill -$((status - 128)) $$\n"
	"exit \"$status\"\n";

/* Writes `node='TEXT'`, the text of node_order.h in quotes for the shell. */
static void write_node(FILE *file)
{
	(void)fputs("node='", file);
	for (const char *at = node_order_script; *at; at++)
		if (*at == '\'')
			(void)fputs("'\\''", file);
		else
			(void)fputc(*at, file);
	(void)fputs("'\n", file);
}

int submit_script_open(void)
{
	autofd int fd = memfd_create("gpulease-script", MFD_CLOEXEC);
	autofree char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	int r;

	if (fd < 0 || !file)
		return -errno;
	(void)fputs(begin, file);
	write_node(file);
	(void)fputs(end, file);
	r = fclose(file) == 0 ? fdio_write(fd, text, size) : -errno;
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

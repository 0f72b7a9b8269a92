/*
 * Lines as the programs of Slurm 22.05 print them, for tests of what reads them.  Each has the mark
 * of a question.
 */
#ifndef GPULEASE_CLUSTER_SAMPLE_H
#define GPULEASE_CLUSTER_SAMPLE_H

#include "cluster_view.h"

#define SAMPLE_MARK "0123456789abcdef"

/* A field of squeue or sinfo, and the first one. */
#define S "\x1f"
#define SAMPLE_ID(id) id S SAMPLE_MARK S

/* A line of squeue, without its ending names. */
#define SAMPLE_JOB(id, state, nodes, alloc, start, limit, on, array, tasks, restarts, \
	after, reason)                                                                \
	SAMPLE_ID(id)                                                                 \
	state S "0" S "1000" S "alice" S "main" S nodes S alloc S "N/A" S "N/A" S     \
		"N/A" S "N/A" S "1" S "7" S "1795533503" S start S                    \
		"N/A" S limit S on S array S tasks S restarts S after S reason S

#define SAMPLE_JOBS                                                                      \
	SAMPLE_JOB("5", "PENDING", "1", "cpu=1,gres/gpu=2", "1795537103", "1:40:00", "", \
		"5", "N/A", "0", "(null)", "Resources")                                  \
	"wait1" S "(null)" S "(null)" S "\n" SAMPLE_JOB("7", "PENDING", "1",             \
		"cpu=1,gres/gpu=1", "N/A", "UNLIMITED", "", "7", "3-4%1", "0", "(null)", \
		"JobArrayTaskLimit") "arr" S "(null)" S "(null)" S "\n" SAMPLE_JOB("8",  \
		"PENDING", "1", "cpu=1,gres/gpu=2", "N/A", "UNLIMITED", "", "8", "N/A",  \
		"1", "afterok:2(unfulfilled),afterany:3(unfulfilled)",                   \
		"Dependency") "dep" S "(null)" S "(null)" S "\n" SAMPLE_JOB("1",         \
		"RUNNING", "1", "cpu=1,gres/gpu=1", "1795533503", "1:00:00", "n1", "1",  \
		"N/A", "0", "(null)",                                                    \
		"None") "evil" S "b" S "/home/alice/run.sh" S "\n" SAMPLE_JOB("2",       \
		"RUNNING", "2", "cpu=2,gres/gpu=3", "1795533503", "1-00:00:00",          \
		"n[2-3]", "2", "N/A", "0", "(null)",                                     \
		"None") "two" S "(null)" S "(null)" S "\n" SAMPLE_JOB("10", "RUNNING",   \
		"1", "cpu=1,gres/gpu=1", "1795533505", "NONE", "n3", "7", "2", "0",      \
		"(null)", "None") "arr" S "(null)" S "(null)" S "\n" SAMPLE_JOB("4",     \
		"RUNNING", "1", "cpu=1", "1795533503", "UNLIMITED", "n1", "4", "N/A",    \
		"0", "(null)", "None") "cpu" S "(null)" S "(null)" S "\n"

#define SAMPLE_NODE(name, state, used, reason) \
	SAMPLE_ID(name) state S "gpu:sim:2" S used S "1795533506" S "root" S reason S "\n"

#define SAMPLE_NODES                                                                   \
	SAMPLE_NODE("n1", "mixed", "gpu:sim:1(IDX:0)", "none")                         \
	SAMPLE_NODE("n2", "mixed", "gpu:sim:2(IDX:0-1)", "none")                       \
	SAMPLE_NODE("n3", "mixed", "gpu:sim:2(IDX:0-1)", "none")                       \
	SAMPLE_NODE("n4", "down*", "gpu:sim:0(IDX:N/A)", "fan broken | see ticket 12") \
	SAMPLE_NODE("n4", "down*", "gpu:sim:0(IDX:N/A)", "fan broken | see ticket 12")

#define SAMPLE_PLACES                                                                         \
	"JobId=1 JobName=evil JOB_GRES=gpu:sim:1   Nodes=n1 CPU_IDs=7 Mem=0 "                 \
	"GRES=gpu:sim:1(IDX:0) MinCPUsNode=1 Command=(null) \n"                               \
	"JobId=2 JobName=two JOB_GRES=gpu:sim:3   Nodes=n2 CPU_IDs=7 Mem=0 "                  \
	"GRES=gpu:sim:2(IDX:0-1)   Nodes=n3 CPU_IDs=7 Mem=0 GRES=gpu:sim:1(IDX:0) MinCPU=1\n" \
	"JobId=4 JobName=cpu JOB_GRES=(null)   Nodes=n1 CPU_IDs=0 Mem=0 GRES= MinCPU=1\n"     \
	"JobId=5 JobName=wait1 JOB_GRES=(null) MinCPU=1\n"                                    \
	"JobId=10 JobName=arr JOB_GRES=gpu:sim:1   Nodes=n3 CPU_IDs=6 Mem=0 "                 \
	"GRES=gpu:sim:1(IDX:1) MinCPUsNode=1\n"

#endif

#!/bin/sh
# The exit status of a plain job, which gpulease has become: which commands show it, and what they
# print if it is not known.
# shellcheck disable=SC2016 # commands of the jobs

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
gpus 2
program=$GPULEASE
echo 'record-ends = yes' >"$S/conf"
configured
history=$GPULEASE_DIR/history

# ended_with STATUS: runs a plain job, and returns when its end is recorded.  $id is its id.
ended_with() {
	id=$("$GPULEASE" -n 1 -- sh -c 'echo "$GPULEASE_ID"; exit "$1"' sh "$1")
	wait_until 'tail -c 512 "$history" | grep -q " ticket=$id "'
}

# is_known STATUS: as ended_with, and whether the status is recorded
is_known() {
	ended_with "$1"
	tail -c 512 "$history" | grep -q " status=$1 "
}

# unknown TEXT NEEDS: four results about job $id, the status of which is not recorded
unknown() {
	run "$1: --history says what a status needs" 0 \
		"*ended*\"ended\" means that the status is not recorded: it needs $2" '' \
		"$GPULEASE" --history 1
	try "$GPULEASE" --history 1 --json
	is "$1: --history --json is JSON, with status null" \
		[ "$(printf '%s\n' "$out" | "$TOOLS/jsoncheck" jobs.0.status)" = null ]
	run "$1: --after-ok gives up, and says what a status needs" 124 '' \
		"*gpulease: gave up: the exit status of job $id is not recorded: it needs $2" \
		"$GPULEASE" --after-ok "$id" -n 0 true
	run "$1: --wait-for says what a status needs" 1 '' \
		"gpulease: job $id has ended, but its exit status is not recorded: it needs $2" \
		"$GPULEASE" --wait-for "$id"
}

# From Linux 6.15 on, a process other than the parent can learn the exit status of a process.  This
# shell, the parent, may be slow to reap the job, and then the status is lost.
if is_known 0 || is_known 0; then
	ok 'record-ends records the status of a plain job'
	run '--after-ok starts after a plain job that succeeded' 0 'done' '' \
		"$GPULEASE" --after-ok "$id" -n 0 echo 'done'
	is 'record-ends records that a plain job failed' sometimes is_known 3
	run '--after-ok gives up after a plain job that failed' 124 '' \
		"gpulease: gave up: job $id has ended with status 3" \
		"$GPULEASE" --after-ok "$id" -n 0 true
	run '--wait-for has the status of a plain job' 3 '' '' "$GPULEASE" --wait-for "$id"
	run '--history has the status of a plain job' 0 '*STATUS*failed*' '' "$GPULEASE" --history 1
	is '--history ends with the job' [ "$(printf '%s\n' "$out" | wc -l)" -eq 2 ]
	GPULEASE=$program
	id=$("$GPULEASE" -n 1 -- sh -c 'echo "$GPULEASE_ID"')
	unknown 'without record-ends' 'record-ends in gpulease.conf(5), or --report'
else
	skip 'a plain job whose status is known' 'the kernel does not report how a process has ended'
fi

GPULEASE=$S/configured
old_kernel noexit
ended_with 0
unknown 'before Linux 6.15' 'Linux 6.15 or --report'
id=$("$GPULEASE" --report -n 1 -- sh -c 'echo "$GPULEASE_ID"; exit 4' 2>/dev/null)
run 'before Linux 6.15 a job with --report has a status' 4 '' '' "$GPULEASE" --wait-for "$id"
id=$("$GPULEASE" --report -n 1 -- sh -c 'echo "$GPULEASE_ID"' 2>/dev/null)
run 'before Linux 6.15 --after-ok starts after a job with --report' 0 'done' '' \
	"$GPULEASE" --after-ok "$id" -n 0 echo 'done'
finish

#!/bin/sh
# Background jobs of the engine slurm that squeue has forgotten, on a cluster with accounting.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"
scratch

cluster_accounting
cluster 1 2 || {
	skip 'forgotten jobs on a cluster with accounting' "$cluster_why"
	finish
}
slurm_engine

# submit OPTION… COMMAND…: sets $id
submit() {
	id=$("$GPULEASE" --submit "$@") || bail "cannot submit: $*"
}

# recorded ID: returns once sacct knows the end of the job
recorded() {
	wait_until "sacct -n -X -P -j $1 -o State | grep -q '^[CFT]'" || bail "sacct does not know job $1"
}

submit -n 1 -- sh -c 'exit 7'
failed=$id
submit -n 2 -J long -- sleep 100
cancelled=$id
run 'a running job is cancelled' 0 '' '' "$GPULEASE" --cancel "$cancelled"
# shellcheck disable=SC2016
submit -n 1 -- sh -c 'kill -USR1 $$'
killed=$id
run 'a job ends' 138 '' '' "$GPULEASE" --wait-for "$killed"
submit -n 0 -- sh -c 'exit 200'
high=$id
submit -n 0 --after-ok "$failed" -- true
never=$id
submit -n 99 -- true
big=$id
submit -n 0 -t 1s -- sleep 100
limited=$id
run 'a job that waits for one that has failed gives up' 124 '' '' "$GPULEASE" --wait-for "$never"
run 'its history says so' 0 '*failed, exit status 124*' '' "$GPULEASE" --status "$never"
run 'a job that no node can run has failed' 0 '*failed, exit status 125*' '' "$GPULEASE" --status "$big"
run 'a job reaches its limit' 124 '' '' "$GPULEASE" --wait-for "$limited"
run 'and has timed out' 0 '*timed-out, exit status 124*command *sleep 100*' '' "$GPULEASE" --status "$limited"
for job in $never $big $limited $high $failed $cancelled $killed; do
	recorded "$job"
done
# the record of an end comes before that of the start
wait_until 'sacct -n -X -P -j "$limited" -o TimelimitRaw | grep -qx 1' ||
	bail 'sacct does not know the limit'

cluster_kill slurmctld
wait "$(cat "$K/pid/slurmctld")" 2>/dev/null
rm -f "$K/state/job_state" "$K/state/job_state.old"
cluster_start slurmctld
wait_until '[ "$(timeout 5 sinfo -h -N -o %T 2>/dev/null)" = idle ]' ||
	bail 'slurmctld does not come back'
is 'squeue knows no job' [ -z "$(squeue -h -t all)" ]
run 'the record has an exit status that sacct cannot show' 200 '' '' "$GPULEASE" --wait-for "$high"
rm -f "$XDG_STATE_HOME"/gpulease/slurm/testbed/logs/*.status
run 'sacct has the status of a job' 7 '' '' "$GPULEASE" --wait-for "$failed"
run 'of one that was cancelled' 143 '' '' "$GPULEASE" --wait-for "$cancelled"
run 'of one that a signal has ended' 138 '' '' "$GPULEASE" --wait-for "$killed"
run 'of one that gave up' 124 '' '' "$GPULEASE" --wait-for "$never"
run 'of one that no node can run' 125 '' "gpulease: job $big never started: *" "$GPULEASE" --wait-for "$big"
run 'the history knows of the first' 0 '*failed, exit status 124*' '' "$GPULEASE" --status "$never"
run 'of the second' 0 '*failed, exit status 125*' '' "$GPULEASE" --status "$big"
run 'and that one reached its limit' 0 '*timed-out, exit status 124*' '' "$GPULEASE" --status "$limited"
run 'of several the highest' 143 '' "*job $cancelled was cancelled, with status 143*" \
	"$GPULEASE" --wait-for -v "$failed,$cancelled"
run 'an id that sacct does not know' 1 '' '*job 99999 is unknown*' "$GPULEASE" --wait-for 99999
run 'a job cannot run after one that has failed' 124 '' \
	"gpulease: gave up: job $failed has ended with status 7" \
	"$GPULEASE" --submit -n 0 --after-ok "$failed" -- true
run 'a forgotten job has ended' 1 '' "gpulease: job $failed has finished" \
	"$GPULEASE" --cancel "$failed"

finish

#!/bin/sh
# What gpulease-engine does on a node, for a command there; without a cluster.
# shellcheck disable=SC2016 # code of the commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
unset GPULEASE_SIM
engine=${GPULEASE%/*}/gpulease-engine
export SLURM_JOB_ID=7

# node WORD… -- COMMAND…
node() {
	timeout -k 1 20 "$engine" node "$@"
}

# --- what the command gets ------------------------------------------------------------------

run 'a command without GPUs sees none' 0 '[]' '' node -- sh -c 'echo "[${CUDA_VISIBLE_DEVICES-all}]"'
with_gpus() {
	SLURM_STEP_GPUS=2,5 CUDA_VISIBLE_DEVICES=0,1 node "$@"
}
run 'a command with GPUs sees those that Slurm shows' 0 '0,1 2,5' '' with_gpus -- \
	sh -c 'echo "$CUDA_VISIBLE_DEVICES $GPULEASE_GPUS"'
run 'placeholders have the numbers that it sees' 0 '0,1 2 7' '' with_gpus -- echo '{gpus}' '{ngpus}' '{id}'
run 'the UUIDs are not known' 125 '' 'gpulease: {uuids}: Slurm does not tell*' with_gpus -- echo '{uuids}'
from_login() {
	GPULEASE_ENGINE=slurm GPULEASE_TOKEN=of-another-job GPULEASE_DIR=/x node "$@"
}
run 'it has nothing of the login node that would mislead a gpulease inside' 0 'none none none 7' '' \
	from_login -- sh -c 'echo "${GPULEASE_ENGINE-none} ${GPULEASE_TOKEN-none} ${GPULEASE_DIR-none} $GPULEASE_ID"'
run 'the set-up does not take the GPUs of the job away' 0 '0,1' \
	"gpulease: --setup has set variables of the job, which are set again: CUDA_VISIBLE_DEVICES ('3', now '0,1')" \
	with_gpus setup='export CUDA_VISIBLE_DEVICES=3' -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
run 'it may set what the job does not have' 0 'FASTEST_FIRST /x' '' \
	with_gpus setup='export CUDA_DEVICE_ORDER=FASTEST_FIRST GPULEASE_DIR=/x' -- sh -c 'echo "$CUDA_DEVICE_ORDER $GPULEASE_DIR"'
run 'one stream for both' 0 'err
out' '' node merge -- sh -c 'echo err >&2; echo out'
mkdir "$S/a b"
run 'its folder' 0 "$S/a b" '' node folder="$S/a b" -- pwd
run 'a folder that is missing there' 125 '' "gpulease: cannot change to '$S/none' on *" \
	node folder="$S/none" -- pwd
run 'a word of a later version is refused' 125 '' "gpulease: gpulease on this node does not know 'speed=9'; *" \
	node speed=9 -- true

# --- its status and its end -------------------------------------------------------------------

run 'its status' 9 '' '' node -- sh -c 'exit 9'
run 'its status below a parent' 9 '' '' node limit=60000 -- sh -c 'exit 9'
run 'a signal ends it, below a parent' 137 '' '' node limit=60000 -- sh -c 'kill -KILL $$'
run 'the limit' 124 '' 'gpulease: job 7 has reached its time limit of *' node limit=200 grace=10000 -- sleep 100
run 'a command that ignores TERM is killed after the grace' 124 '' '*' node limit=200 grace=100 -- \
	sh -c 'trap "" TERM; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 2; done'
run 'and what it has left' 124 '' '*' node limit=200 grace=100 -- \
	sh -c 'sh -c "trap \"\" TERM; echo \$\$ >\"\$0\"; exec sleep 60" "$1" & wait' sh "$S/left"
left=$(cat "$S/left")
is 'is gone' wait_until "like '[ZX]' \"\$(process_state $left)\" || [ ! -e /proc/$left ]"
run 'a signal before the limit' 4 '' '' node limit=20000 warn=10 warn-ms=19900 -- \
	sh -c 'trap "exit 4" USR1; sleep 100 & wait'

# --- attempts ---------------------------------------------------------------------------------

run 'retries of several tasks are refused' 125 '' 'gpulease: --retries: * this job has 2' \
	env SLURM_NTASKS=2 timeout -k 1 20 "$engine" node retries=1 -- false
run 'a status that is none of a failure is not tried again' 3 1 '' node retries=2 done-status=3 -- \
	sh -c 'echo $GPULEASE_ATTEMPT; exit 3'
run 'nor is a success' 0 1 '' node retries=2 -- sh -c 'echo $GPULEASE_ATTEMPT'
: >"$S/attempts"
"$engine" node retries=2 -- sh -c 'echo $GPULEASE_ATTEMPT >>"$1"
	[ $GPULEASE_ATTEMPT = 1 ] && sleep 100 & wait' sh "$S/attempts" 2>/dev/null &
parent=$!
started="$started $parent"
wait_until '[ -s "$S/attempts" ]'
kill -TERM "$parent"
wait "$parent"
rc=$?
is 'a command that was told to end is not tried again' [ "$rc $(cat "$S/attempts")" = '143 1' ]
finish

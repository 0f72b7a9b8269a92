#!/bin/sh
# The samples of many jobs, of jobs of other kinds, and --sample itself.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/unused_lib.sh
. "$CLI/unused_lib.sh"

# --- many jobs, one nvidia-smi -------------------------------------------------------------------

machine 30
# lib.sh has bus ids for ten GPUs
for each in $(seq 0 29); do
	printf '%d GPU-%08d-1111-2222-3333-444444444444 00000000:%02X:00.0 81559 Card %d\n' \
		"$each" "$each" "$each" "$each"
done >"$FAKE_SMI_DIR/gpus"
sed -i 's/idle-interval.*/idle-interval = 1s/; s/idle-end.*/idle-end = none/' "$S/conf"
many=
for each in $(seq 30); do
	begin "m$each" --gpu-ids $((each - 1))
	many="$many m$each"
done
for each in $many; do
	wait_until "runs $each" || bail "$each: $(cat "$S/$each.err")"
done
watched() {
	"$GPULEASE" --status --json | tr -d ' \n' | tr '{' '\n' | grep -c '"unused_ms":[1-9]'
}
wait_until '[ "$(watched)" -eq 30 ]'
read -r from _ </proc/uptime
before=$(calls)
wait_until '[ $(($(cut -d . -f 1 /proc/uptime) - ${from%.*})) -ge 10 ]'
after=$(calls)
read -r to _ </proc/uptime
seconds=$((${to%.*} - ${from%.*} + 2))
is '30 jobs need one nvidia-smi in each interval' [ $((after - before)) -le $((seconds * 3 / 2)) ]
echo "# $((after - before)) calls in $seconds s"
is 'all of 30 jobs are watched' [ "$(watched)" -eq 30 ]
# shellcheck disable=SC2086 # one word each
release_all $many

# --- jobs of other kinds -------------------------------------------------------------------------

machine 1
sed -i 's/idle-end.*/idle-end = none/' "$S/conf"
"$GPULEASE" sh -c '"$0" sh -c "echo 1 >\"\$0\"; exec sleep 1000" "$1" & wait' "$GPULEASE" "$S/step" \
	2>"$S/outer.err" &
outer=$!
started="$started $outer"
wait_until '[ -s "$S/step" ]'
wait_until '[ "$(span_of 0 unused_for_ms)" -ge 2000 ]'
is 'a job with a step is told once' [ "$(told outer 'has not used')" -eq 1 ]
is 'a step has no watchdog of its own' [ "$(guards | wc -l)" -eq 1 ]
"$GPULEASE" --cancel mine --yes >/dev/null 2>&1
wait "$outer"

machine 1
echo 'sleep 1000' >"$S/jobs"
"$GPULEASE" --batch "$S/jobs" >"$S/batch.out" 2>&1 &
batch=$!
started="$started $batch"
wait_until '[ "$(span_of 0 unused_for_ms)" -ge 200 ]'
waiter next
wait "$batch"
is 'a batch with an unused job exits with 124' [ $? -eq 124 ]
is 'the batch says why the job has ended' grep -q '^failed: entry 1, GPU not used, ' "$S/batch.out"
is 'the journal has the cause' grep -q '"cause": "unused"' "$S/jobs.logs/journal.jsonl"
wait_until 'runs next'
release_all next

machine 1
sleep 1000 &
adopted=$!
started="$started $adopted"
echo "0 $adopted 500" >"$FAKE_SMI_DIR/procs"
: >"$FAKE_SMI_DIR/reap"
"$GPULEASE" --lease-only --pid "$adopted" >"$S/out" 2>"$S/err"
is 'an adopted process is watched' wait_until '[ "$(shown 0 watched) $(shown 0 unused)" = "true true" ]'
waiter next
wait_until 'runs next'
is 'an adopted process is ended' wait_until '! kill -0 "$adopted" 2>/dev/null'
rm "$FAKE_SMI_DIR/procs" "$FAKE_SMI_DIR/reap"
release_all next

# --- the stderr of a job -------------------------------------------------------------------------

machine 1
"$GPULEASE" sleep 1000 2>&- &
closed=$!
started="$started $closed"
wait_until 'status_says "has not used"'
is 'a job without stderr runs' kill -0 "$closed"
waiter next
wait "$closed"
is 'a job without stderr is ended' [ $? -eq 143 ]
wait_until 'runs next'
release_all next

machine 1
mkfifo "$S/pipe"
cat "$S/pipe" >/dev/null &
reader=$!
"$GPULEASE" sleep 1000 2>"$S/pipe" &
piped=$!
started="$started $piped"
wait_until 'status_says leased'
kill -KILL "$reader"
wait_until 'status_says "has not used"'
is 'a job whose stderr has no reader runs' kill -0 "$piped"
waiter next
wait "$piped"
is 'a job whose stderr has no reader is ended' [ $? -eq 143 ]
wait_until 'runs next'
release_all next

machine 1
(exec script -qefc "'$GPULEASE' sleep 1000" "$S/typescript" >/dev/null 2>&1) &
started="$started $!"
if command -v script >/dev/null 2>&1; then
	is 'a job on a terminal is told there' wait_until \
		'grep -aq "has not used GPU 0 for 1s; to give it back" "$S/typescript"'
else
	skip 'a job on a terminal is told there' 'script is not installed'
fi

# --- --sample ------------------------------------------------------------------------------------

machine 1
sed -i 's/idle-interval.*/idle-interval = 1h/' "$S/conf"
holder one
id=$(id_of one)
run '--sample needs an id' 125 '' '*--sample*' "$GPULEASE" --sample
run '--sample of no number is refused' 125 '' '*' "$GPULEASE" --sample name
run '--sample of an unknown job does nothing' 1 '' '*' "$GPULEASE" --sample 999
is 'nothing was written' [ "$(find "$GPULEASE_DIR/live" -name "*.use" | wc -l)" -eq 0 ]
run '--sample of a job prints its record' 0 'use/1 *' '' "$GPULEASE" --sample "$id"
is 'one file was written' [ "$(find "$GPULEASE_DIR/live" -name "*.use" | wc -l)" -eq 1 ]
release_all one
run '--sample of a finished job does nothing' 1 '' '*' "$GPULEASE" --sample "$id"
finish

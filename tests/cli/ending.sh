#!/bin/sh
# How the end of a job gets into the history.
# shellcheck disable=SC2016,SC2317 # conditions, and functions that are called by others
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
printf '%s\n' '0 GPU-0 00000000:01:00.0 24576 Card' '1 GPU-1 00000000:02:00.0 24576 Card' \
	>"$S/smi/gpus"
echo 'record-ends = yes' >"$S/conf"

# told COUNT: whether the history has so many records
told() {
	[ "$(stat -c %s "$S/dir/history" 2>/dev/null || echo 0)" -eq $(($1 * 512)) ]
}

# has FIELD: whether the last record of the history has this field
has() {
	tail -c 512 "$S/dir/history" | grep -q " $1 "
}

# watchdogs: how many processes of that name run with this script's place in their environment
watchdogs() {
	for pid in $(strays); do
		grep -sx gpulease-limit "/proc/$pid/comm"
	done | wc -l
}

holder plain -n 1
release_all plain
is 'without record-ends the end of a job is not recorded at once' told 0
run '--history shows an end that is not recorded yet' 0 '*ended*' '' "$GPULEASE" --history
holder next -n 2
is 'the next job on the GPU records the end of the previous job' told 1
release_all next

holder watched --config "$S/conf" -n 2
is 'a second end is recorded when its GPU is taken' told 2
is 'with record-ends a job has a watchdog' [ "$(watchdogs)" -eq 1 ]
release_all watched
is 'the watchdog records the end without another gpulease' wait_until 'told 3'
is 'the record of the watchdog has the GPUs' has 'gpus=0,1'
# From Linux 6.15 on, a process other than the parent can learn the exit status of a process.
tells_status=
! has status=0 || tells_status=1
is 'the watchdog ends after the job' wait_until '[ "$(watchdogs)" -eq 0 ]'
run '--history shows an end of a watchdog once' 0 '*watched*' '' \
	sh -c '"$1" --history 1 && [ "$("$1" --history all | grep -c "^ *[0-9]")" -eq 3 ]' sh "$GPULEASE"

# The canceller knows more than the watchdog, so the watchdog gives the canceller a moment.
ends=3
cancelled() {
	holder cancelled --config "$S/conf" -n 1
	"$GPULEASE" --cancel "$(id_of cancelled)" || return
	ended cancelled
	ends=$((ends + 1))
	wait_until 'told "$ends"' && has how=cancel
}
is 'the end of a cancelled job is recorded as a cancel' sometimes cancelled
is 'the watchdog of a cancelled job ends' wait_until '[ "$(watchdogs)" -eq 0 ]'
is 'a cancelled job is recorded once' told "$ends"

# the time limit may be reached before the command runs
begin limited -n 1 -t 100ms
ends=$((ends + 1))
is 'the watchdog records the end at a time limit' wait_until 'told "$ends" && has how=limit'
is 'the watchdog of a time limit ends' wait_until '[ "$(watchdogs)" -eq 0 ]'

run 'a job without GPUs ends with record-ends' 0 '' '' "$GPULEASE" --config "$S/conf" -n 0 true
ends=$((ends + 1))
is 'the end of a job without GPUs is recorded, too' wait_until 'told "$ends"'
is 'the watchdog of a job without GPUs ends' wait_until '[ "$(watchdogs)" -eq 0 ]'

# One job at a time: a job that takes the GPU before the end is recorded would record it itself,
# without the status.
for each in $(seq 20); do
	"$GPULEASE" --config "$S/conf" -n 1 true || bail "run $each has failed"
	ends=$((ends + 1))
	wait_until 'told "$ends"' || break
done
is 'the ends of twenty short jobs are recorded' [ "$each" -eq 20 ]
is 'each of the twenty short jobs is recorded once' told "$ends"
# The status is unknown where this shell, the parent, is slow to wait for the job.
if [ "$tells_status" ]; then
	is 'the records of short jobs have their status' \
		[ "$(tail -c $((20 * 512)) "$S/dir/history" | grep -o ' status=0 ' | wc -l)" -ge 15 ]
else
	skip 'the records of short jobs have their status' \
		'the kernel does not report how a process has ended'
fi

# Without pidfds nothing shows a watchdog the end of a job, as it holds the FIFO itself.
without_pidfds
holder unwatched --config "$S/conf" -n 1
release_all unwatched
ends=$((ends + 1))
is 'without pidfds a watchdog records the end, too' wait_until 'told "$ends"'
is 'without pidfds the watchdog ends after the job' wait_until '[ "$(watchdogs)" -eq 0 ]'
"$GPULEASE" --config "$S/conf" -n 1 -- \
	sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$1"' sh "$S/left"
is 'a process that a job has left keeps the watchdog of the job' [ "$(watchdogs)" -eq 1 ]
kill -KILL "$(cat "$S/left")"
ends=$((ends + 1))
is 'the watchdog ends when the process that was left ends' wait_until '[ "$(watchdogs)" -eq 0 ]'
is 'the end is recorded when the process that was left has ended' told "$ends"
finish

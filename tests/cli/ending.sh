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

# told: whether the history has so many records
told() {
	[ "$(stat -c %s "$S/dir/history" 2>/dev/null || echo 0)" -eq $(($1 * 512)) ]
}

# has FIELD: whether the last record says so
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
is 'by itself the end is told by who takes the GPU next' told 0
run 'and is shown all the same' 0 '*ended*' '' "$GPULEASE" --history
holder next -n 2
is 'who took it has told it' told 1
release_all next

holder watched --config "$S/conf" -n 2
is 'which takes a second end' told 2
is 'record-ends: a watchdog is there' [ "$(watchdogs)" -eq 1 ]
release_all watched
is 'the end is told although nobody looks' wait_until 'told 3'
is 'with the GPUs' has 'gpus=0,1'
# From Linux 6.15 on the status of a process is told to others than its parent.
tells_status=
! has status=0 || tells_status=1
is 'and the watchdog goes' wait_until '[ "$(watchdogs)" -eq 0 ]'
run 'a look shows it once' 0 '*watched*' '' \
	sh -c '"$1" --history 1 && [ "$("$1" --history all | wc -l)" -eq 4 ]' sh "$GPULEASE"

# Who cancels knows more than the watchdog, which therefore gives him a moment.
ends=3
cancelled() {
	holder cancelled --config "$S/conf" -n 1
	"$GPULEASE" --cancel "$(id_of cancelled)" || return
	ended cancelled
	ends=$((ends + 1))
	wait_until 'told "$ends"' && has how=cancel
}
is 'one that is cancelled is told with who did it' sometimes cancelled
is 'and its watchdog says nothing more' wait_until '[ "$(watchdogs)" -eq 0 ]'
is 'so it is told once' told "$ends"

# it may be over before its command runs
begin limited -n 1 -t 100ms
ends=$((ends + 1))
is 'a time limit is told by its watchdog' wait_until 'told "$ends" && has how=limit'
is 'which goes as well' wait_until '[ "$(watchdogs)" -eq 0 ]'

run 'a job without GPUs has no end to tell' 0 '' '' "$GPULEASE" --config "$S/conf" -n 0 true
is 'and no watchdog' [ "$(watchdogs)" -eq 0 ]
is 'nor a record' told "$ends"

# one at a time: who takes the GPU before it is told tells it, and knows no status
for each in $(seq 20); do
	"$GPULEASE" --config "$S/conf" -n 1 true || bail "run $each has failed"
	ends=$((ends + 1))
	wait_until 'told "$ends"' || break
done
is 'jobs that end at once are told, too' [ "$each" -eq 20 ]
is 'and once each' told "$ends"
# but for those that this shell, their parent, is slow to ask for it
if [ "$tells_status" ]; then
	is 'each with its status' \
		[ "$(tail -c $((20 * 512)) "$S/dir/history" | grep -o ' status=0 ' | wc -l)" -ge 15 ]
else
	skip 'each with its status' 'nobody is told how a process has ended'
fi

# Then nothing shows a watchdog the end of a job: it holds the FIFO itself.
without_pidfds
holder unwatched --config "$S/conf" -n 1
release_all unwatched
ends=$((ends + 1))
is 'without pidfds the end is told, too' wait_until 'told "$ends"'
is 'and the watchdog goes' wait_until '[ "$(watchdogs)" -eq 0 ]'
"$GPULEASE" --config "$S/conf" -n 1 -- \
	sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$1"' sh "$S/left"
is 'a process that a job has left keeps its watchdog' [ "$(watchdogs)" -eq 1 ]
kill -KILL "$(cat "$S/left")"
ends=$((ends + 1))
is 'until that has ended' wait_until '[ "$(watchdogs)" -eq 0 ]'
is 'and then the end is told' told "$ends"
finish

#!/bin/sh
# Thresholds of one job: --margin, --spike-buffer, --idle-threshold, --tolerance.  They may be
# stricter than the machine's, never laxer, and do not affect other jobs.  The cards have
# 81559 MiB.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
show='echo $CUDA_VISIBLE_DEVICES'

# cards N: a machine with N cards, and no job on it
cards() {
	fresh
	rm -f "$S"/*.runs
	gpus "$1"
	touch "$FAKE_SMI_DIR/reap"
}

# stranger LINE…: nvidia-smi lists a process without a job, INDEX MIB; $stranger is its pid
stranger() {
	sleep 1000 &
	stranger=$!
	started="$started $stranger"
	becomes "$stranger" sleep
	for each in "$@"; do
		echo "${each% *} $stranger ${each#* }"
	done >"$FAKE_SMI_DIR/procs"
}

# --- laxer than the machine --------------------------------------------------------------

cards 1
for each in '--margin:511M:512M; give 512M or more' '--spike-buffer:9%:10%; give 10% or more' \
	'--idle-threshold:201M:200M; give 200M or less' '--tolerance:11%:10%; give 10% or less'; do
	option=${each%%:*} rest=${each#*:}
	run "$option: a laxer value is refused with the machine's" 125 '' \
		"gpulease: $option ${rest%%:*} is laxer than this machine's ${rest#*:}" \
		"$GPULEASE" --report "$option" "${rest%%:*}" true
done
run 'a value of another kind is refused with the kind' 125 '' \
	"gpulease: --margin: 'much' is not a size; write a size, like 512M, or 0" \
	"$GPULEASE" --margin much true
run 'a threshold in another unit is refused with the unit' 125 '' \
	"gpulease: --idle-threshold: give a size: this machine's is 200M" \
	"$GPULEASE" --idle-threshold 1% true
unconfigured=$GPULEASE
printf 'margin = 1G\nidle-threshold = 2%%\n' >"$S/conf"
configured
run "the machine's value is that of the configuration" 125 '' '*laxer than this machine'\''s 1G; *' \
	"$GPULEASE" --margin 600M true
run 'a percentage is compared with a percentage' 0 '' '' "$GPULEASE" --idle-threshold 1% true
GPULEASE=$unconfigured
run '--tolerance needs a job that is watched' 125 '' \
	'gpulease: --tolerance is for a job that is watched; add --report' "$GPULEASE" --tolerance 1% true
run '--margin needs declared memory' 125 '' 'gpulease: --margin is about declared memory; add --vram' \
	"$GPULEASE" -n 0.5 --margin 1G true
run '--tolerance needs declared memory' 125 '' 'gpulease: --tolerance is about declared memory; add --vram' \
	"$GPULEASE" --report --tolerance 1% true
printf '%s\n' true '[vram=1G] true' >"$S/jobs"
run 'a jobs file may have lines without declared memory' 0 '*2 finished*' '' \
	"$GPULEASE" --batch "$S/jobs" --margin 1G --tolerance 1%
run 'a process that uses its GPUs already has no choice' 125 '' '*leave out options that choose GPUs *' \
	"$GPULEASE" --lease-only --pid $$ --margin 1G

# --- stricter than the machine -----------------------------------------------------------

cards 2
stranger '0 150'
run 'a GPU that the machine takes for idle is free for others' 0 0,1 '' "$GPULEASE" -n 2 -I sh -c "$show"
run '--idle-threshold: the job takes another GPU' 0 1 '' \
	"$GPULEASE" -I --idle-threshold 100MiB sh -c "$show"
own='needs 2 GPUs, 1 is free; only its own thresholds refuse GPU 0'
run '--idle-threshold: the job says why it does not start' 124 '' "gpulease: not available at once: $own" \
	"$GPULEASE" -n 2 -I --idle-threshold 100MiB true
run '--dry-run says it, too' 124 "would wait, 1st in the queue: $own" '' \
	"$GPULEASE" -n 2 --dry-run --idle-threshold 100MiB true
kill "$stranger"
stranger '0 30000'
run '--spike-buffer: the machine has room beside a process outside' 0 0 '' \
	"$GPULEASE" --gpu-ids 0 --vram 48047 -I sh -c "$show"
run '--spike-buffer: the job sees less' 124 '' '*only its own thresholds refuse GPU 0' \
	"$GPULEASE" --gpu-ids 0 --vram 48047 --spike-buffer 11% -I true
run '--margin: the job wants more room' 124 '' '*only its own thresholds refuse GPU 0' \
	"$GPULEASE" --gpu-ids 0 --vram 48047 --margin 513M -I true
run '--margin: the other GPU has it' 0 1 '' "$GPULEASE" --vram 48047 --margin 20G -I sh -c "$show"
run '--margin: no card is large enough' 125 '' '*; the largest has 79.6G, of which 50G stay free' \
	"$GPULEASE" --vram 48047 --margin 50G true
kill "$stranger"

# --- two waiters, the first is stricter --------------------------------------------------

cards 1
holder before
waiter strict --idle-threshold 100MiB
waiter second
stranger '0 150'
release_all before
is 'the second job does not wait for the stricter one' wait_until 'runs second'
waiter third
run '--queue says why the first job waits' 0 '*1 * none is free; only its own thresholds refuse GPU 0 *' '' sh -c '"$1" --queue | cat' - "$GPULEASE"
release_all second
is 'the third job does not wait for it either' wait_until 'runs third'
waiter fourth
kill "$stranger"
# In this turn the job finds that out.  Then it has its reservation again.
wait_until '! "$GPULEASE" --queue | grep -q thresholds' || bail 'the stricter job still waits for the process'
release_all third
is 'the stricter job starts in its place once the process outside ends' wait_until 'runs strict'
is 'it starts before the job behind it' [ ! -e "$S/fourth.runs" ]
release_all strict
is 'the job behind it starts next' wait_until 'runs fourth'
release_all fourth

# a stricter job of higher priority sends no job back: it might refuse the GPU afterwards
cards 1
holder low --preemptible
stranger '0 150'
allow_priorities waiter high --priority 1 --idle-threshold 100MiB
is 'a stricter job sends no preemptible job back' like '*needs 1 GPU, none is free' "$(cat "$S/high.err")"
kill "$stranger"
release_all low
is 'it starts when that job has ended' wait_until 'runs high'
release_all high

# --- the lines of a jobs file ------------------------------------------------------------

cards 2
stranger '0 150'
printf '%s\n' "$show >'$S/line'" >"$S/jobs"
run 'the thresholds of --batch hold for its lines' 0 '*' '*' \
	"$GPULEASE" --batch "$S/jobs" --idle-threshold 100MiB
is 'the line has run on the other GPU' [ "$(cat "$S/line")" = 1 ]
run 'a laxer value is refused before any line runs' 125 '' '*is laxer than this machine*' \
	"$GPULEASE" --batch "$S/jobs" --idle-threshold 300MiB --fresh
kill "$stranger"

# --- --tolerance -------------------------------------------------------------------------

cards 1
holder lax --report --vram 10000
holder exact --report --vram 10000 --tolerance 1%
for each in lax exact; do
	echo "0 $(cut -d ' ' -f 1 "$S/$each.runs") 10500"
done >"$S/procs"
mv "$S/procs" "$FAKE_SMI_DIR/procs"
is 'a job with a smaller tolerance is warned earlier' wait_until \
	'grep -q "declared 9.8G" "$S/exact.err"'
wait_until '[ "$(tr "\0" " " <"$GPULEASE_DIR/gpu/slot.0" | grep -ao " peak=10500 " | grep -c .)" = 2 ]' ||
	bail 'one of the jobs is not sampled'
release_all lax exact
is 'its report says so' like '*over by more than 1 %*' "$(cat "$S/exact.err")"
is 'other jobs have the tolerance of the machine' like '*of 9.8G declared, too few samples *' \
	"$(cat "$S/lax.err")"
finish

#!/bin/sh
# Faults of the machine: a full disk, a read-only file system, no descriptors, a state directory
# that is emptied, a pid that is used again, another clock, another boot.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"

if ! own_mounts "$@"; then
	for text in 'a full disk' 'no inodes' 'a read-only file system' 'a pid used again' \
		'another boot'; do
		skip "$text" "$own_mounts_why"
	done
	finish
fi
scratch
sim 2

# small OPTIONS: from now on the state is on a small file system of its own, with these options.
small() {
	small_at=$(mktemp -d "$S/small.XXXXXX")
	mount -t tmpfs -o "$1,mode=0700" tmpfs "$small_at" || bail 'cannot mount a tmpfs'
	at_exit "umount -l '$small_at' 2>/dev/null"
	export XDG_STATE_HOME="$small_at"
}

# refused TEXT STDERR: a result, good if new jobs are refused, at the latest when the reserve is
# used up.
refused() {
	# shellcheck disable=SC2016
	run "$1" 125 '' "$2" sh -c '
		i=0
		while [ $i -lt 20 ] && "$0" -n 0 true 2>/dev/null; do i=$((i + 1)); done
		exec "$0" -n 0 true' "$GPULEASE"
}

looks() {
	run "$1: --status works" 0 '*leased*' '' "$GPULEASE" --status
	run "$1: --queue works" 0 '*' '' "$GPULEASE" --queue
	run "$1: --history works" 0 '*' '' "$GPULEASE" --history
}

# --- no room -------------------------------------------------------------------------------

# no_room TEXT OPTIONS FILL STDERR
no_room() {
	small "$2"
	run "$1: a first job makes the queue" 0 '' '' "$GPULEASE" -n 2 true
	holder before -n 2
	waiter through -n 2
	eval "$3"
	refused "$1: a new job ends with a clear error" "$4"
	looks "$1"
	release_all before
	is "$1: a waiting job gets its turn" wait_until 'runs through'
	release_all through
	is "$1: the waiting job ends with status 0" [ "$rc" -eq 0 ]
	rm -rf "$XDG_STATE_HOME"/fill*
	run "$1: with room again later jobs start" 0 '' '' "$GPULEASE" -n 2 true
	umount -l "$XDG_STATE_HOME"
}
# shellcheck disable=SC2016 # for eval
no_room 'a full disk' size=256k 'cat /dev/zero >"$XDG_STATE_HOME/fill" 2>/dev/null' \
	"gpulease: cannot * in '*': No space left on device"
# shellcheck disable=SC2016
no_room 'no inodes' size=1m,nr_inodes=40 \
	'i=0; while touch "$XDG_STATE_HOME/fill$i"; do i=$((i + 1)); done 2>/dev/null' \
	"gpulease: cannot make a FIFO in '*': No space left on device"

# --- read-only -----------------------------------------------------------------------------

small size=1m
holder before -n 2
waiter through -n 2
unset GPULEASE_SIM
mkdir "$S/ro"
if ! mount --bind "$XDG_STATE_HOME/gpulease/sim-2x24576" "$S/ro" ||
	! mount -o remount,ro,bind "$S/ro"; then
	bail 'cannot make a mount read-only'
fi
at_exit "umount -l '$S/ro'"
export GPULEASE_DIR="$S/ro"
PATH=$CLI/../bin:$PATH FAKE_SMI_DIR=$S/smi
export PATH FAKE_SMI_DIR
run 'read-only: --status works' 0 '*leased*' '*' "$GPULEASE" --status
run 'read-only: --queue shows the waiting job' 0 '*needs 2 GPUs*' '*' "$GPULEASE" --queue
run 'read-only: --history works' 0 '*' '*' "$GPULEASE" --history
for verb in '-n 1 true' '-n 0 true' '--cancel 1' '--pause 0'; do
	# shellcheck disable=SC2086
	run "read-only: $verb is a clear error" 125 '' \
		"gpulease: cannot use the state in '*': Read-only file system" "$GPULEASE" $verb
done
sim 2
release_all before
is 'read-only: a job that sees the directory writable goes on' wait_until 'runs through'
release_all through
holder before -n 2
mount -o remount,ro "$XDG_STATE_HOME" && looks 'remounted read-only'
release_all before
is 'remounted read-only: a job that runs goes on' [ "$rc" -eq 0 ]
mount -o remount,rw "$XDG_STATE_HOME"
run 'writable again: later jobs start' 0 '' '' "$GPULEASE" -n 2 true
umount -l "$XDG_STATE_HOME"
XDG_STATE_HOME=$S/state-home

# --- no descriptors ------------------------------------------------------------------------

# few TEXT COMMAND…: a result, good if with few descriptors the command works or prints why not.
few() {
	text=$1 bad=
	shift
	for n in 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		# LeakSanitizer needs descriptors of its own
		try timeout -k 1 30 env ASAN_OPTIONS=detect_leaks=0 prlimit --nofile="$n:$n" "$@"
		case $rc:$err in
		# one that has its ticket waits
		0:* | 125:gpulease:* | 124:"gpulease: job "*"Too many open files") [ "$(grep -c '' "$S/err")" -le 2 ] || bad="$bad $n: $err" ;;
		*) bad="$bad $n: status $rc $err" ;;
		esac
	done
	is "$text" [ -z "$bad" ] || echo "# $bad"
}
run 'a first job makes the queue' 0 '' '' "$GPULEASE" -n 2 true
few 'few descriptors: a job' "$GPULEASE" -n 2 true
few 'few descriptors: --status' "$GPULEASE" --status
few 'few descriptors: --history' "$GPULEASE" --history
few 'few descriptors: --pause' "$GPULEASE" --pause 0
few 'few descriptors: --resume' "$GPULEASE" --resume 0
"$GPULEASE" --resume 0
run 'few descriptors: later jobs start' 0 '' '' "$GPULEASE" -n 2 true

# --- the directory is emptied ----------------------------------------------------------------

holder before -n 2
waiter lost -n 2
dir=$(state_dir)
find "$dir" -mindepth 1 -delete
release_all before
release lost
ended lost
is 'emptied: a waiting job starts, or prints why not' \
	sh -c '[ "$1" -eq 0 ] || { [ "$1" -eq 125 ] && [ -s "$2" ]; }' - "$rc" "$S/lost.err"
run 'emptied: later jobs start' 0 '' '' "$GPULEASE" -n 2 true
for part in gpu live bell; do
	holder before -n 2
	waiter lost -n 2
	rm -r "${dir:?}/$part"
	release_all before
	release lost
	ended lost
	is "without $part/: a waiting job gets its turn" [ "$rc" -eq 0 ]
	run "without $part/: later jobs start" 0 '' '' "$GPULEASE" -n 2 true
done
holder before -n 1
rm -r "${dir:?}/gpu"
run 'without gpu/ a job that runs keeps its GPU' 124 '' '*unidentified job still runs*' \
	"$GPULEASE" -I -n 2 true
release_all before
run 'without gpu/ the GPU is free after the job' 0 '' '' "$GPULEASE" -n 2 true

# --- a pid that is used again ----------------------------------------------------------------

# This script runs as the first process of a pid namespace, where it can choose the next pid.
cat >"$S/reuse.sh" <<'END'
# another PID: starts a process that sleeps, with that pid
another() {
	for i in 1 2 3 4 5 6 7 8 9; do
		echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
		sleep 1000 &
		[ $! -ne "$1" ] || return 0
		kill -9 $!
	done
	echo 'cannot choose a pid'
	exit 1
}
# tick PID: the clock tick in which the process started
tick() {
	cut -d ' ' -f 22 "/proc/$1/stat"
}
# begin OPTION…: kills a job and starts another process with its pid; fails if the job has ended
begin() {
	"$GPULEASE" -n 2 "$@" -- sleep 1000 &
	pid=$!
	until "$GPULEASE" --status | grep -q 'sleep 1000'; do
		kill -0 $pid || return 1
		sleep 0.02
	done
	# without a pidfd only the clock tick of its start tells a process from a later one
	until [ "$(tick $pid)" != "$(tick self)" ]; do :; done
	kill -9 $pid
	wait $pid
	another $pid
}
begin
"$GPULEASE" -I -n 2 true && echo 'lease over'
"$GPULEASE" --cancel 1 && echo 'cancelled'
kill -0 $pid && echo 'alive after cancel'
kill -9 $pid
wait $pid
# if the limit comes before --status shows the job, it is too short for this machine
for limit in 1 5 20; do
	begin --time "${limit}s" --grace 1s && break
done
sleep $((limit + 1)).5
kill -0 $pid && echo 'alive after watchdog'
END
if unshare -p -f --mount-proc true 2>/dev/null; then
	try unshare -p -f --mount-proc env GPULEASE="$GPULEASE" sh "$S/reuse.sh"
	is 'a pid used again: the lease of the killed job is over' like '*lease over*' "$out"
	is 'a pid used again: --cancel leaves the new process alone' \
		like '*alive after cancel*' "$out"
	is 'a pid used again: --cancel cancels nothing' \
		sh -c '! echo "$1" | grep -q cancelled' - "$out"
	is 'a pid used again: a watchdog leaves the new process alone' like \
		'*alive after watchdog*' "$out"
else
	skip 'a pid used again' 'no pid namespaces'
fi

# --- another clock ---------------------------------------------------------------------------

# The real-time clock is only shown.  In a time namespace the boot clock can be behind that of
# other processes.
if unshare -T --boottime -60 true 2>/dev/null; then
	holder before -n 2
	waiter through -n 2
	if "$GPULEASE" --doctor | grep -q '^ok *pidfd'; then
		run 'a clock behind: --status works' 0 '*leased*' '' \
			unshare -T --boottime -60 "$GPULEASE" --status
	else
		skip 'a clock behind: --status works' 'start times differ, and there is no other sign'
	fi
	run 'a clock behind: no leased GPU is leased again' 124 '' '*' unshare -T --boottime -60 \
		"$GPULEASE" -I -n 1 true
	release_all before through
	run 'a clock behind: a job starts' 0 '' '' unshare -T --boottime -60 "$GPULEASE" -n 2 true
	run 'a clock ahead: a job starts' 0 '' '' unshare -T --boottime 600000 \
		"$GPULEASE" -n 2 true
	run 'after another clock a job with the usual clock starts' 0 '' '' "$GPULEASE" -n 2 true
	run 'after another clock --history works' 0 '*' '' "$GPULEASE" --history
else
	skip 'another clock' 'no time namespaces'
fi

# --- another boot ----------------------------------------------------------------------------

rm -r "${dir:?}"
holder before -n 1
run 'a pause before the boot' 0 '' '' "$GPULEASE" --pause 1
echo 01234567-89ab-4cde-8f01-23456789abcd >"$S/boot_id"
mount --bind "$S/boot_id" /proc/sys/kernel/random/boot_id || bail 'cannot mount a boot id'
at_exit 'umount -l /proc/sys/kernel/random/boot_id 2>/dev/null'
run 'another boot: no lease is left, but the pause is' 0 '*0*idle*1*paused*' '' "$GPULEASE" \
	--status
run 'another boot: the GPU is free' 0 0 '' "$GPULEASE" -I -n 1 sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'another boot: the history has the reboot' 0 '*reboot*' '' "$GPULEASE" --history
run 'another boot: the paused GPU is not leased' 124 '' '*paused*' "$GPULEASE" -I -n 2 true
umount -l /proc/sys/kernel/random/boot_id
release_all before
finish

#!/bin/sh
# A driver that hangs: however many jobs wait, few nvidia-smi run, and none is started beside four
# that no signal ends.
# shellcheck disable=SC2016,SC2317 # conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver

# alive: how many nvidia-smi hang just now, counted in /proc
alive() {
	cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -c "^$hang_mark\$"
}

# --- many jobs ---------------------------------------------------------------------------

# The simulated driver hangs as `sleep 1000000000`; this script has a number of its own, so that it
# finds its processes.
hang_mark=10000$$
mkdir "$S/bin"
sed "s/sleep 1000000000/sleep $hang_mark/" "$CLI/../bin/nvidia-smi" >"$S/bin/nvidia-smi"
chmod +x "$S/bin/nvidia-smi"
PATH=$S/bin:$PATH
printf 'probe-deadline = 3s\n' >"$S/conf"
fresh
gpus 9
run 'a job starts with a healthy driver' 0 '' '' "$GPULEASE" -n 9 true
program=$GPULEASE
configured
# Each of the nine jobs could start, and runs nvidia-smi before it does.
most=0 jobs='a b c d e f g h i'
touch "$FAKE_SMI_DIR/hang"
: >"$FAKE_SMI_DIR/count"
for job in $jobs; do begin "$job"; done
watch() {
	now=$(alive)
	[ "$now" -le "$most" ] || most=$now
	[ "$(grep -c gpus "$FAKE_SMI_DIR/count")" -ge 4 ] &&
		grep -q 'did not answer' "$S"/?.err
}
is 'the waiting jobs say that nvidia-smi hangs' wait_until watch
if [ "$most" -le 4 ] && [ "$most" -ge 2 ]; then
	ok 'nine jobs run at most two probes at a time, of two nvidia-smi each'
else
	not_ok 'nine jobs run at most two probes at a time, of two nvidia-smi each' \
		"$most nvidia-smi"
fi
rm "$FAKE_SMI_DIR/hang"
for job in $jobs; do release "$job"; done
for job in $jobs; do ended "$job"; done
is 'all nine jobs run once nvidia-smi answers' [ "$(cat "$S"/?.runs | wc -l)" -eq 9 ]
end_all
wait_until '[ "$(alive)" -eq 0 ]'

# --- a holder that is stopped ------------------------------------------------------------

fresh
GPULEASE=$program
run 'a job starts with a healthy driver' 0 '' '' "$GPULEASE" -n 2 true
touch "$FAKE_SMI_DIR/hang"
rm -f "$GPULEASE_DIR/probe"
begin stopped
wait_until '[ "$(alive)" -ge 2 ]'
stop stopped
rm "$FAKE_SMI_DIR/hang"
# The stopped job holds probe.lock: the first job to come waits for the lock, the later jobs see
# how long it has been held.
run 'a gpulease that is stopped while it probes stops no other job' 0 '' '*' "$GPULEASE" true
stamp() {
	sed 's/^\([0-9]*\)\.\([0-9]\).*/\1\2/' /proc/uptime
}
is_quick() {
	rm -f "$GPULEASE_DIR/probe"
	quick_from=$(stamp)
	"$GPULEASE" true || return 1
	[ $(($(stamp) - quick_from)) -lt 20 ]
}
is 'only the first later process waits for the stopped one' sometimes is_quick
end_all

# --- no lock meanwhile -------------------------------------------------------------------

fresh
holder first -n 2
waiter next -n 2
touch "$FAKE_SMI_DIR/hang"
rm -f "$GPULEASE_DIR/probe"
release_all first
wait_until '[ "$(alive)" -ge 2 ]' || bail 'the waiter does not run nvidia-smi'
locked=
for each in "$GPULEASE_DIR"/gpu/*.lease; do
	flock -n "$each" true || locked="$locked $each"
done
is 'while a waiter runs nvidia-smi no lease file is locked' [ -z "$locked" ]
end_all

# --- what cannot be ended ----------------------------------------------------------------

fresh
cp "$TOOLS/fakesmi" "$S/bin/nvidia-smi"
log=$S/log
# talk LINE…: configures what this driver does from now on
talk() {
	printf '%s\n' "log $log" "$@" >"$S/bin/nvidia-smi.conf"
}
: >"$log"
talk
run 'a job starts with a healthy driver' 0 '' '' "$GPULEASE" -n 2 true
talk stuck
for _ in 1 2 3 4; do
	"$S/bin/nvidia-smi" -L &
	started="$started $!"
	wait_until "[ \"\$(process_state $!)\" = D ]" || bail 'no process in state D'
done
stuck=$started
printf 'probe-deadline = 1s\n' >"$S/conf"
configured
begin job -n 2
wait_until "grep -q 'did not answer' '$S/job.err'" || bail 'it does not hang'
: >"$log"
run 'beside four nvidia-smi in state D no fifth is started, and a job says so' 124 '' \
	'*4 nvidia-smi hang*' "$GPULEASE" -n 2 -I true
is 'beside four nvidia-smi in state D the driver is not run' [ ! -s "$log" ]
for pid in $stuck; do kill -KILL "$pid"; done
kill -TERM "$(pid_of job)"
talk
run 'once the four nvidia-smi are gone a job starts' 0 '' '' "$GPULEASE" -n 2 --max-wait 20s true
finish

#!/bin/sh
# A driver that hangs: however many jobs wait, few nvidia-smi run, and none is started beside four
# that no signal ends.
# shellcheck disable=SC2016,SC2317 # conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver

# alive: how many nvidia-smi hang just now, as the machine sees it
alive() {
	cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -c "^$hang_mark\$"
}

# --- many jobs ---------------------------------------------------------------------------

# The simulated driver hangs as `sleep 1000000000`; this one's own number tells its processes.
hang_mark=10000$$
mkdir "$S/bin"
sed "s/sleep 1000000000/sleep $hang_mark/" "$CLI/../bin/nvidia-smi" >"$S/bin/nvidia-smi"
chmod +x "$S/bin/nvidia-smi"
PATH=$S/bin:$PATH
printf 'probe-deadline = 3s\n' >"$S/conf"
fresh
gpus 9
run 'GPUs known' 0 '' '' "$GPULEASE" -n 9 true
program=$GPULEASE
configured
# Each of them could start, and asks before it does.
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
is 'jobs say that nvidia-smi hangs' wait_until watch
if [ "$most" -le 4 ] && [ "$most" -ge 2 ]; then
	ok 'for nine jobs at most two probes run at a time, of two nvidia-smi each'
else
	not_ok 'for nine jobs two probes run at a time' "$most nvidia-smi"
fi
rm "$FAKE_SMI_DIR/hang"
for job in $jobs; do release "$job"; done
for job in $jobs; do ended "$job"; done
is 'all of them run once it answers' [ "$(cat "$S"/?.runs | wc -l)" -eq 9 ]
end_all
wait_until '[ "$(alive)" -eq 0 ]'

# --- a holder that is stopped ------------------------------------------------------------

fresh
GPULEASE=$program
run 'GPUs known' 0 '' '' "$GPULEASE" -n 2 true
touch "$FAKE_SMI_DIR/hang"
rm -f "$GPULEASE_DIR/probe"
begin stopped
wait_until '[ "$(alive)" -ge 2 ]'
stop stopped
rm "$FAKE_SMI_DIR/hang"
# It holds probe.lock: the first to come waits for it, the others see since when it does.
run 'a process that is stopped while it probes stops no other' 0 '' '*' "$GPULEASE" true
stamp() {
	sed 's/^\([0-9]*\)\.\([0-9]\).*/\1\2/' /proc/uptime
}
is_quick() {
	rm -f "$GPULEASE_DIR/probe"
	quick_from=$(stamp)
	"$GPULEASE" true || return 1
	[ $(($(stamp) - quick_from)) -lt 20 ]
}
is 'only the first process behind it waits for it' sometimes is_quick
end_all

# --- what cannot be ended ----------------------------------------------------------------

fresh
cp "$TOOLS/fakesmi" "$S/bin/nvidia-smi"
log=$S/log
# talk LINE…: what this driver does from now on
talk() {
	printf '%s\n' "log $log" "$@" >"$S/bin/nvidia-smi.conf"
}
: >"$log"
talk
run 'GPUs known' 0 '' '' "$GPULEASE" -n 2 true
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
run 'beside four nvidia-smi in state D none is started, and a job says so' 124 '' '*4 nvidia-smi hang*' "$GPULEASE" -n 2 -I true
is 'the driver was not run' [ ! -s "$log" ]
for pid in $stuck; do kill -KILL "$pid"; done
kill -TERM "$(pid_of job)"
talk
run 'once the four are gone a job starts' 0 '' '' "$GPULEASE" -n 2 --max-wait 20s true
finish

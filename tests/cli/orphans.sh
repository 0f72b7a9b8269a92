#!/bin/sh
# The supervisor of a command is killed: the command goes on, and is the job itself.  It has closed
# its descriptors, as the launchers of Python do, so only its lease and its ticket show that it
# lives.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"
printf 'linger-time = 1s\nretry-delay = 1h\nretry-delay-max = 1h\n' >"$S/conf"
configured
sim 7

# the command: its process has no sign of the lease, unless CLOSING is empty
cat >"$S/alone" <<END
#!/bin/sh
exec \${CLOSING-"$TOOLS/closing" --bare} sh -c 'echo "\$\$ \$GPULEASE_ID" >"\$1.new"; mv "\$1.new" "\$1.command"
	trap "echo USR1 >>\$1.caught" USR1
	until [ -e "\$1.go" ]; do sleep 0.05; done
	exit "\${2-0}"' - "\$@"
END
chmod +x "$S/alone"

# alone NAME OPTION…: starts a job whose command is alone once its supervisor is killed
alone() {
	alone_name=$1
	shift
	rm -f "$S/$alone_name".*
	"$GPULEASE" "$@" -- "$S/alone" "$S/$alone_name" >"$S/$alone_name.out" \
		2>"$S/$alone_name.err" </dev/null &
	echo $! >"$S/$alone_name.pid"
	started="$started $!"
	wait_until "[ -e '$S/$alone_name.command' ]" || bail "$(cat "$S/$alone_name.err")"
}

command_of() {
	cut -d ' ' -f 1 "$S/$1.command"
}

job_of() {
	cut -d ' ' -f 2 "$S/$1.command"
}

# lives NAME: whether its command lives
lives() {
	like '[RSD]' "$(process_state "$(command_of "$1")")"
}

# supervisor_of NAME: the parent of its command
supervisor_of() {
	sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$(command_of "$1")/stat"
}

# kill_supervisor NAME
kill_supervisor() {
	kill -KILL "$(pid_of "$1")"
	wait "$(pid_of "$1")" 2>/dev/null
}

# lease_of: the records of leases, without their padding
lease_of() {
	cat "$(state_dir)"/gpu/*.lease | tr '\0' '\n' | grep '^lease/1'
}

# --- each way to have a supervisor -----------------------------------------------------------

ways='report retries limit held submit enosys eperm'
alone report --report
is 'the lease names the command' \
	like "* runs=$(command_of report) *rstart=[0-9]* *" "$(lease_of) "
alone retries --retries 3
alone limit --time 1 --on-limit requeue
export CLOSING=
alone held --report
unset CLOSING
rm -f "$S"/submit.*
"$GPULEASE" -Q --submit "$S/alone" "$S/submit" >"$S/submit.id"
wait_until '[ -e "$S/submit.command" ]'
supervisor_of submit >"$S/submit.pid"
for way in enosys eperm; do # without pidfds
	rm -f "$S/$way".*
	"$TOOLS/nopidfd" $way "$GPULEASE" --report -- "$S/alone" "$S/$way" 2>"$S/$way.err" &
	echo $! >"$S/$way.pid"
	started="$started $!"
	wait_until "[ -e '$S/$way.command' ]"
done
for way in $ways; do
	kill_supervisor "$way"
done
run '--status shows the command as the job' 0 "*leased*$(command_of report)*" '' \
	"$GPULEASE" --status
run '--status shows no limit, which no process would enforce' 0 '' '' \
	sh -c '"$0" --status --json | grep "\"limit_ms\": [0-9]"; exit 0' "$GPULEASE"
run '--signal-job signals a command without its supervisor' 0 '' '' "$GPULEASE" \
	--signal-job "$(job_of report)" USR1
is 'the command catches the signal' wait_until '[ -s "$S/report.caught" ]'
for way in enosys eperm; do # a timer replaces pidfds
	"$TOOLS/nopidfd" $way "$GPULEASE" --max-wait 4s true 2>"$S/blind.err" &
	echo $! >"$S/blind-$way.pid"
	started="$started $!"
done
# 4 s: several times as long as a waiter needs to see the GPUs idle for the linger time
run 'the GPUs of commands without supervisors are not leased' 124 '' '*' "$GPULEASE" \
	--max-wait 4s true
for way in enosys eperm; do
	ended blind-$way
	is "without pidfds ($way) the GPUs are not leased, either" [ "$rc" -eq 124 ]
done
for way in $ways; do
	is "the command goes on without its supervisor: $way" lives "$way"
done
"$TOOLS/nopidfd" enosys "$GPULEASE" --gpu-ids 5 true 2>"$S/blind.err" &
echo $! >"$S/blind.pid"
started="$started $!"
wait_until '[ -s "$S/blind.err" ]'
gpu=0
for way in $ways; do
	[ "$way" = enosys ] || waiter next --gpu-ids $gpu
	: >"$S/$way.go"
	if [ "$way" = enosys ]; then
		ended blind
		is "when the command ends, its GPU is leased: $way" [ "$rc" -eq 0 ]
	else
		is "when the command ends, its GPU is leased: $way" wait_until 'runs next'
		release_all next
	fi
	is 'the GPU was not leased before the end of the command' wait_until '! lives "$way"'
	gpu=$((gpu + 1))
done

# --- other jobs and users ---------------------------------------------------------------------

alone a --report
kill_supervisor a
begin waits --after "$(job_of a)"
wait_until '[ -s "$S/waits.err" ]'
is 'a job that comes after the command waits' eval '! runs waits && lives a'
run 'a command without its supervisor is cancelled' 0 '' '' "$GPULEASE" --cancel "$(job_of a)"
is 'the cancel ends the command' eval '! lives a'
is 'after the cancel the job that comes after the command starts' wait_until 'runs waits'
release_all waits
run '--history says that it was cancelled' 0 "*$(job_of a) *cancelled by*" '' "$GPULEASE" --history

alone a -n 0 --report
kill_supervisor a
is 'the command of a job without GPUs goes on, too' lives a
run '--status shows the command of a job without GPUs' 0 "*$(command_of a)*" '' "$GPULEASE" \
	--status
run '--signal-job signals the command of a job without GPUs' 0 '' '' "$GPULEASE" \
	--signal-job "$(job_of a)" USR1
is 'the command of a job without GPUs catches the signal' wait_until '[ -s "$S/a.caught" ]'
begin waits -n 0 --after "$(job_of a)"
wait_until '[ -s "$S/waits.err" ]'
is 'a job that comes after the job without GPUs waits' eval '! runs waits && lives a'
: >"$S/a.go"
is 'when that command ends, the job that comes after it starts' wait_until 'runs waits'
release_all waits

# --- a line of a batch -------------------------------------------------------------------------

for gpus in 1 0; do
	clean
	rm -f "$S"/line.*
	lines "[gpus=$gpus] exec $S/alone $S/line 4"
	batch_begin runner
	wait_until '[ -e "$S/line.command" ]'
	first=$(command_of line)
	kill -KILL "$(supervisor_of line)"
	kill -KILL "$(pid_of runner)"
	wait "$(pid_of runner)" 2>/dev/null
	batch_begin later
	is "gpus=$gpus: a later runner finds the command at work" \
		wait_until 'grep -q "of an earlier run that have not ended: 1" "$S/later.out" "$S/later.err"'
	: >"$S/line.go"
	ended later
	is "gpus=$gpus: a later runner does not run the line twice" [ \
		"$(command_of line)" = "$first" ]
	is "gpus=$gpus: the later runner reports the line as failed or lost" like '[14]*' "$rc"
done

finish

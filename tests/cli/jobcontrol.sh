#!/bin/sh
# Jobs on a terminal, under a shell with job control: a job with a supervisor behaves like one
# without.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# a list of words, so without the blanks that the path of $TOOLS may have
ln -s "$TOOLS/jobcontrol" "$S/jobcontrol"
LISTEN="$S/jobcontrol --listen"

# desk TEXT STEP…: two results: the tool types and sees these steps with a command that reports its
# signals, without and with a supervisor.
desk() {
	desk_text=$1
	shift
	for desk_way in 'plain' 'supervised'; do
		desk_options=
		[ "$desk_way" = plain ] || desk_options='-Q --report'
		# shellcheck disable=SC2086 # lists of words
		run "$desk_way: $desk_text" 0 '' '' "$TOOLS/jobcontrol" see:ready "$@" \
			-- "$GPULEASE" $desk_options -n 8 -- $LISTEN
	done
}

desk 'Ctrl-C reaches the command once' \
	'type:^C' 'see:got INT' asleep 'count:1:got INT' 'type:exit 3^J' end:3
desk 'Ctrl-\ reaches the command once' \
	'type:^\' 'see:got QUIT' asleep 'count:1:got QUIT' 'type:exit 0^J' end:0
# The command may get a signal as soon as it runs.
twice=0
# shellcheck disable=SC2086 # a list of words
for try in $(seq 25); do
	"$TOOLS/jobcontrol" see:ready 'type:^\' 'see:got QUIT' asleep 'count:1:got QUIT' \
		'type:exit 0^J' end:0 -- "$GPULEASE" -Q --report -n 8 -- $LISTEN \
		>"$S/early.$try" 2>&1 || twice=$((twice + 1))
done
is 'supervised: a signal right at the start comes once, too' [ "$twice" = 0 ]
desk 'the command reads from the terminal' 'type:word^J' 'see:read word' 'type:exit 0^J' end:0
desk 'Ctrl-Z suspends the command, fg continues it' 'type:^Z' stop:TSTP fg 'see:got CONT' \
	'type:word^J' 'see:read word' 'count:1:got CONT' 'type:exit 5^J' end:5
desk 'Ctrl-Z and fg work twice' 'type:^Z' stop:TSTP fg 'see:got CONT' 'type:^Z' stop:TSTP fg \
	'see:got CONT' 'type:exit 0^J' end:0
desk 'after Ctrl-Z and bg the command runs, and stops where it reads' 'type:^Z' stop:TSTP bg \
	'see:got CONT' stop:TTIN fg 'see:got CONT' 'type:exit 0^J' end:0
desk 'a kill of the job reaches the command once' \
	killpg:TERM 'see:got TERM' asleep 'count:1:got TERM' \
	killpg:USR1 'see:got USR1' asleep 'count:1:got USR1' 'type:exit 4^J' end:4
desk 'a second kill of the job reaches the command, too' killpg:TERM 'see:got TERM' \
	killpg:TERM 'see:got TERM' asleep \
	'count:2:got TERM' 'type:exit 0^J' end:0
desk 'a kill of the process that the shell started reaches the command' \
	kill:TERM 'see:got TERM' kill:USR2 'see:got USR2' kill:HUP 'see:got HUP' \
	kill:INT 'see:got INT' kill:QUIT 'see:got QUIT' asleep \
	'count:1:got TERM' 'count:1:got INT' 'type:exit 0^J' end:0
desk 'after kill -STOP of gpulease fg continues the job' \
	kill:STOP stop:STOP fg 'type:word^J' 'see:read word' 'type:exit 0^J' end:0
desk 'kill -TSTP of gpulease stops the job' kill:TSTP stop:TSTP fg 'see:got CONT' \
	'type:exit 0^J' end:0
desk 'kill -CONT of gpulease continues a suspended job' \
	'type:^Z' stop:TSTP kill:CONT 'see:got CONT' stop:TTIN fg 'type:exit 0^J' end:0
desk 'TERM to a suspended job arrives when the job goes on' \
	'type:^Z' stop:TSTP killpg:TERM 'see:got TERM' stop:TTIN 'count:1:got TERM' \
	fg 'type:exit 0^J' end:0
desk 'KILL ends a suspended job' 'type:^Z' stop:TSTP killpg:KILL end:KILL

# a command that ends by a signal is seen to end by that signal
for signal in INT QUIT; do
	key=C
	[ "$signal" = INT ] || key='\'
	for options in '' '-Q --report'; do
		# shellcheck disable=SC2086
		run "a command that dies of $signal ends the same way${options:+, supervised}" \
			0 '' '' \
			"$TOOLS/jobcontrol" see:ready "type:^$key" "end:$signal" -- \
			sh -c 'ulimit -c 0; exec "$@"' - \
			"$GPULEASE" $options -n 8 -- sh -c 'echo ready; exec sleep 1000'
	done
done

# --- what only a supervisor does -----------------------------------------------------------

# limited TEXT CODE STEP…: the job is suspended, its limit comes, and then these steps succeed.
# If the limit comes before the suspension, it is too short for this machine.
limited() {
	limited_text=$1 limited_code=$2
	shift 2
	for limit in 500ms 5s 20s; do
		try "$TOOLS/jobcontrol" see:ready 'type:^Z' stop:TSTP "$@" -- \
			"$GPULEASE" -Q --report -n 8 --time $limit -- sh -c "$limited_code"
		like 'step [123], *' "$out" || break
	done
	is "$limited_text" [ "$rc:$out$err" = 0: ]
}
limited 'a time limit ends a suspended job' 'echo ready; exec sleep 1000' end:124
limited 'a suspended command gets TERM at its limit and may end well' \
	'trap "echo told; exit" TERM; echo ready; read -r word' see:told end:124
cat >"$S/stops" <<'EOF'
echo ready
kill -STOP $$
echo went on
EOF
run 'a command that stops itself stops its supervisor, too' 0 '' '' "$TOOLS/jobcontrol" \
	see:ready stop:STOP \
	fg 'see:went on' end:0 -- "$GPULEASE" -Q --report -n 8 -- sh "$S/stops"
# is_suspended PID: it is stopped, and its shell has noticed that and taken the terminal back
is_suspended() {
	sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | {
		read -r state _ group _ _ foreground _
		[ "$state" = T ] && [ "$group" != "$foreground" ]
	}
}
cat >"$S/killed" <<'EOF'
echo "$$ $PPID" >"$1.new" && mv "$1.new" "$1"
echo ready
exec sleep 1000
EOF
"$TOOLS/jobcontrol" see:ready 'type:^Z' stop:TSTP end:KILL -- \
	"$GPULEASE" -Q --report -n 8 -- sh "$S/killed" "$S/pid" >"$S/desk" 2>&1 &
desk=$!
started="$started $desk"
wait_until '[ -e "$S/pid" ]' || not_ok 'the command runs' "$(cat "$S/desk")"
# shellcheck disable=SC2034 # supervisor: for wait_until
read -r command supervisor <"$S/pid"
# first the command stops, then its supervisor
wait_until 'is_suspended "$supervisor"' ||
	not_ok 'the command and its supervisor are suspended' "$(cat "$S/desk")"
kill -KILL "$command"
wait "$desk"
is 'the supervisor notices the end of a suspended command' [ $? -eq 0 ]

rm -f "$S/pid"
"$TOOLS/jobcontrol" see:ready 'type:^Z' stop:TSTP end:TERM -- \
	"$GPULEASE" -Q --report -n 8 -- sh "$S/killed" "$S/pid" >"$S/desk" 2>&1 &
desk=$!
started="$started $desk"
wait_until '[ -e "$S/pid" ]' || not_ok 'the command runs' "$(cat "$S/desk")"
read -r command supervisor <"$S/pid"
wait_until 'is_suspended "$supervisor"' ||
	not_ok 'the command and its supervisor are suspended' "$(cat "$S/desk")"
kill -CONT "$command"
is 'if the command alone is continued, its supervisor goes on' \
	wait_until '[ "$(process_state "$supervisor")" = S ]'
kill -TERM "$supervisor"
wait "$desk"
is 'the continued supervisor passes on a signal' [ $? -eq 0 ]

# a hangup: the terminal ends, and the shell
for options in '' '-Q --report'; do
	# shellcheck disable=SC2086
	run "a hangup ends the job${options:+, supervised}" 0 '' '' "$TOOLS/jobcontrol" \
		see:ready \
		hangup -- "$GPULEASE" $options -n 8 -- sh -c 'echo ready; exec sleep 1000'
	run 'after a hangup the GPUs are free' 0 '' '*' "$GPULEASE" -n 8 true
done
# shellcheck disable=SC2086
run 'a job with --retries is not tried again after Ctrl-C' 0 '' '' "$TOOLS/jobcontrol" see:ready \
	'type:^C' 'see:got INT' 'type:exit 3^J' end:3 -- \
	"$GPULEASE" -Q --retries 5 -n 8 -- $LISTEN
finish

#!/bin/sh
# The set-group-ID form where /proc is mounted with hidepid, which shows a process only to processes
# of the same user and groups: the supervisor of a job sees its command all the same.
# shellcheck disable=SC2016,SC2317 # code of commands, and functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"

# a /proc of its own, and the processes in it
if [ -z "${OWN_PIDS-}" ] && [ "$(id -u)" -eq 0 ]; then
	if unshare -m -p -f --mount-proc mount -o remount,hidepid=2 /proc 2>/dev/null; then
		OWN_PIDS=1 exec unshare -m --propagation private -p -f --kill-child --mount-proc \
			sh "$0" "$@"
	fi
	skip 'the set-group-ID form and hidepid' 'proc cannot be mounted here'
	finish
fi
unset OWN_PIDS
hardened 'the set-group-ID form and hidepid' "$@"
driver 'gpus 2'
configure 'retry-delay = 100ms'
export XDG_STATE_HOME="$S/open/home"

# words FILE: prints the lines of the file in one line
words() {
	tr '\n' ' ' <"$1" | sed 's/ $//'
}

# leaves FILE: a command that fails and leaves a process.  It notes in FILE whether the process of
# the previous attempt is still there; a zombie does not count.
cat >"$S/open/leaves" <<'END'
#!/bin/sh
there=$(grep -qs '^State:.[^ZX]' "/proc/$(cat "$1.pid")/status" && echo there)
echo "$GPULEASE_ATTEMPT:$there" >>"$1"
setsid sleep 1000 &
echo $! >"$1.pid"
exit 3
END
chmod 0755 "$S/open/leaves"

# nobody FILE: whether the process whose pid is in FILE has ended; a zombie has ended
nobody() {
	! grep -qs '^State:.[^ZX]' "/proc/$(cat "$1")/status"
}

supervised() {
	run "$hides: a time limit ends the command" 124 '' '*time limit, signal TERM*' \
		"$U1" -n 1 --time 300ms --report sleep 20
	run "$hides: a time limit ends the command of a gpulease inside it" 124 '' '*' "$U1" \
		-n 1 --time 1s --report \
		"$M/bin/gpulease" -n 1 -- sh -c 'echo $$ >"$1"; exec sleep 20' - "$S/open/inner"
	is "$hides: nothing is left of the gpulease inside" nobody "$S/open/inner"
	run "$hides: a time limit ends a gpulease with a supervisor inside it" 124 '' '*' \
		"$U1" -n 0 --time 1s --report \
		"$M/bin/gpulease" -n 0 --report -- sh -c 'echo $$ >"$1"; exec sleep 20' - \
		"$S/open/inner"
	is "$hides: nothing is left of the gpulease with a supervisor" nobody "$S/open/inner"
	rm -f "$S/open/tries"*
	run "$hides: a job with a second attempt fails" 3 '' '*' "$U1" -n 1 --retries 1 \
		"$S/open/leaves" \
		"$S/open/tries"
	is "$hides: the second attempt meets no process of the first" [ \
		"$(words "$S/open/tries")" = '1: 2:' ]
	kill -KILL "$(cat "$S/open/tries.pid")"
}

# A job that submits another job, if it has the time, and is ended by its time limit.
submits_another() {
	try "$U1" -n 0 --time 1s --report sh -c '
		"$1" --submit -n 0 sh -c "echo \$\$ >\"\$1\"; exec sleep 1000" - "$2"; sleep 1000' \
		- "$M/bin/gpulease" "$S/open/told"
	like '124 [0-9]*' "$rc $out"
}

in_the_background() {
	rm -f "$S/open/told"
	try "$U1" --submit -n 1 --retries 1 sh -c 'trap "echo told >>\"$1\"; exit 5" USR1
		echo ready >>"$1"; while :; do sleep 0.1; done' - "$S/open/told"
	id=$out
	is "$hides: a job in the background runs" wait_until '[ -s "$S/open/told" ]'
	run "$hides: the command of a job in the background can be signalled" 0 '' '' "$U1" \
		--signal-job "$id" USR1
	# by then the job may be in its second attempt
	is "$hides: the command in the background gets the signal" wait_until \
		'like "ready told*" "$(words "$S/open/told")"'
	"$U1" --cancel "$id" 2>/dev/null
	rm -f "$S/open/told"
	try "$U1" --submit -n 1 --retries 1 sh -c 'echo ready >"$1"; exec sleep 1000' - "$S/open/told"
	id=$out
	wait_until '[ -s "$S/open/told" ]' || bail 'no job'
	run "$hides: --cancel of a job in the background" 0 '' '*' "$U1" --cancel "$id"
	run "$hides: --cancel ends the job in the background" 143 '' '*' "$U1" --wait-for "$id"
	rm -f "$S/open/told"
	"$U1" -n 1 sh -c 'sleep 1000 & echo $! >"$1"; echo "$GPULEASE_ID" >"$1.id"' - "$S/open/left"
	run "$hides: a process that a job has left is cancelled" 0 '' '*' "$U1" --cancel \
		--grace 100ms "$(cat "$S/open/left.id")"
	is "$hides: the process that a job has left has ended" nobody "$S/open/left"
	rm -f "$S/open/told"
	is "$hides: a job submits another job before its time limit" sometimes submits_another
	wait_until '[ -s "$S/open/told" ]'
	is "$hides: the submitted job survives the time limit" eval '! nobody "$S/open/told"'
	kill -KILL "$(cat "$S/open/told")"
}

# desk TEXT STEP…: as in jobcontrol.sh
desk() {
	desk_text=$1
	shift
	run "$hides: $desk_text" 0 '' '' as 1 "$TOOLS/jobcontrol" see:ready "$@" -- \
		"$M/bin/gpulease" -Q --report -n 1 -- "$TOOLS/jobcontrol" --listen
}

on_a_terminal() {
	desk 'Ctrl-C reaches the command once' \
		'type:^C' 'see:got INT' 'type:word^J' 'see:read word' 'count:1:got INT' \
		'type:exit 3^J' end:3
	desk 'Ctrl-Z suspends gpulease and the command, fg continues both' 'type:^Z' stop:TSTP \
		fg 'see:got CONT' \
		'count:1:got CONT' 'type:exit 5^J' end:5
}

for hidden in 1 2; do
	mount -o remount,hidepid=$hidden /proc || bail 'no hidepid'
	hides=hidepid=$hidden
	run "$hides: /proc hides the processes of other users" 1 '' '' as 1 test -e /proc/1/stat
	supervised
	in_the_background
	on_a_terminal
done
run 'a user cannot signal a job of another user' 1 '' '*' "$U2" --signal-job 1 USR1
intact 'the state can be read'
finish

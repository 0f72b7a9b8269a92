#!/bin/sh
# Jobs with a supervisor: how they end, which signals reach their command, and that no process of
# them is left where none may be.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
S8="-Q --report -n 8"

# frees TEXT: a result, good if all GPUs can be leased at once
frees() {
	run "$1" 0 '' '' "$GPULEASE" -Q -I30s -n 8 true
}

# limited CONDITION OPTION…: sets $out, $err and $rc of a job with these options and a time limit.
# If the condition does not hold afterwards, the limit was too short for this machine: the next is
# longer.
limited() {
	limited_until=$1
	shift
	for limit in 300ms 3s 20s; do
		rm -f "$S/tree"
		# shellcheck disable=SC2086 # a list of words
		try "$GPULEASE" $S8 --time $limit "$@"
		! eval "$limited_until" || break
	done
}

# gone FILE…: whether the processes whose numbers are in these files have all ended
gone() {
	for gone_file in "$@"; do
		[ -s "$gone_file" ] || return 1
		case $(process_state "$(cat "$gone_file")") in
		'' | Z | X) ;;
		*) return 1 ;;
		esac
	done
}

# told WORDS: whether the last line of the history contains them
told() {
	"$GPULEASE" --history 1 | grep -q "$1"
}

# --- how it ends -------------------------------------------------------------------------

# shellcheck disable=SC2086 # a list of words
run 'the exit status is the command'"'"'s' 42 '' '' "$GPULEASE" $S8 sh -c 'exit 42'
# shellcheck disable=SC2086
run 'a command that cannot be executed: 126' 126 '' '*cannot execute*' "$GPULEASE" $S8 /etc
for signal in TERM KILL USR1 SEGV; do
	number=$(sh -c "kill -$signal \$\$" 2>/dev/null; echo $?)
	# shellcheck disable=SC2016,SC2086
	run "the supervisor dies of $signal like its command" "$number" '' '*' sh -c \
		'ulimit -c 0; "$@"' - "$GPULEASE" $S8 sh -c "kill -$signal \$\$"
done
mkdir "$S/core"
# shellcheck disable=SC2016,SC2086,SC3045
(cd "$S/core" && ulimit -c unlimited && "$GPULEASE" $S8 sh -c 'ulimit -c 0; kill -SEGV $$') \
	>/dev/null 2>&1
is 'the supervisor leaves no core file' [ -z "$(ls -A "$S/core")" ]
run 'only the output of the command is on stdout' 0 'out' '*' "$GPULEASE" --report echo out
# shellcheck disable=SC2016
run 'the command is in the process group of its caller, with one more FIFO' 0 'same' '' sh -c '
	for f in /proc/$$/fd/*; do echo "${f##*/}"; done >"$2.before"
	exec "$1" -Q --report sh -c "
		for f in /proc/\$\$/fd/*; do echo \"\${f##*/}\"; done >$2.after
		[ \$(cut -d\" \" -f5 /proc/\$\$/stat) = \$(cut -d\" \" -f5 /proc/\$PPID/stat) ] &&
		[ \"\$(sort $2.before $2.after | uniq -u)\" = 100 ] && echo same"
	' - "$GPULEASE" "$S/fds"
# shellcheck disable=SC2016
run 'the command has the signal mask and ignored signals of its caller' 0 'same' '' sh -c '
	trap "" USR2 HUP
	grep "^Sig[BI]" /proc/self/status >"$2"
	"$1" -Q --report grep "^Sig[BI]" /proc/self/status | diff "$2" - && echo same
	' - "$GPULEASE" "$S/mask"

# --- the limit ---------------------------------------------------------------------------

run 'a job that reaches its limit: 124' 124 '' \
	'gpulease: job * has reached its time limit of <1s: TERM now, KILL after 10s' \
	"$GPULEASE" --retries 1 --time 100ms sleep 1000
is 'the history says timed-out' told 'timed-out'
mkfifo "$S/full"
exec 9<>"$S/full"
dd if=/dev/zero bs=4096 oflag=nonblock >&9 2>/dev/null
# full OPTION… COMMAND…: gpulease, whose stderr is the full pipe
full() {
	# shellcheck disable=SC2016
	timeout -s KILL "$DEADLINE" sh -c 'exec 9>&-; exec "$@" 2>"$0"' "$S/full" "$GPULEASE" "$@"
}

run 'the limit is kept although stderr is a full pipe' 124 '' '' \
	full --retries 1 --time 100ms sleep 1000
run 'a job whose report finds a full pipe ends' 3 '' '' full --report sh -c 'exit 3'
run 'the limit of a held lease is kept although stderr is a full pipe' 124 '[0-9]*' '' \
	full --lease-only --time 100ms
holder busy -n 8
run '--max-wait is kept although stderr is a full pipe' 124 '' '' full -n 1 --max-wait 100ms true
release_all busy
exec 9>&-
# shellcheck disable=SC2016
limited 'like "ready*" "$out"' --signal USR1@150ms sh -c '
	trap "echo warned" USR1; trap "echo told; exit 7" TERM; echo ready
	while :; do sleep 0.02; done'
is 'the warning signal comes before TERM' [ "$rc:$out" = '124:ready
warned
told' ]
# shellcheck disable=SC2086
run 'a command that dies of the warning: 124' 124 '' '' \
	"$GPULEASE" $S8 --time 60s --signal USR1@59700ms sleep 1000
# shellcheck disable=SC2016
limited 'like "1?2*" "$out"' --on-limit requeue --max-requeues 1 sh -c '
	echo $GPULEASE_ATTEMPT; exec sleep 1000'
is 'a job with --on-limit requeue is started again after its limit' [ "$rc:$out:$err" = '124:1
2:' ]
is 'the GPUs of a requeued job are free after its last attempt' "$GPULEASE" -I30s -n 8 true
# shellcheck disable=SC2016
limited 'like "1*" "$out"' --on-limit requeue --max-requeues 2 --grace 50ms sh -c '
	trap "" TERM HUP; kill -HUP $PPID; echo $GPULEASE_ATTEMPT; while :; do sleep 0.02; done'
is 'a job that got HUP is not started again after its limit' [ "$rc:$out" = 124:1 ]

# --- the tree ----------------------------------------------------------------------------

# Commands that are hard to end.  The process that remains writes its pid to $S/tree.
cat >"$S/stays" <<'EOF'
trap '' TERM HUP
echo $$ >"$S/tree"
while :; do sleep 0.05; done
EOF
mkdir "$S/how"
cat >"$S/how/ignores" <<'EOF'
exec sh "$S/stays"
EOF
cat >"$S/how/forks" <<'EOF'
sh -c 'sh "$S/stays" &'
sleep 1000
EOF
cat >"$S/how/closes" <<'EOF'
exec "$TOOLS/jobcontrol" --bare sh "$S/stays"
EOF
cat >"$S/how/daemonises" <<'EOF'
setsid -f setsid -f env -i S="$S" "$TOOLS/jobcontrol" --bare sh "$S/stays"
sleep 1000
EOF
cat >"$S/how/stops" <<'EOF'
sh -c 'echo $$ >"$S/tree"; kill -STOP $$; sleep 1000' &
wait
EOF
export S TOOLS
for how in ignores forks closes daemonises stops; do
	# shellcheck disable=SC2016
	limited '[ -s "$S/tree" ]' --grace 100ms sh "$S/how/$how"
	is "a command that $how is ended at its limit" [ "$rc:$out$err" = 124: ]
	is "all processes of a command that $how end at its limit" gone "$S/tree"
	frees "the GPUs are free after a command that $how reached its limit"

	rm -f "$S/tree"
	# shellcheck disable=SC2086
	"$GPULEASE" $S8 --grace 100ms sh "$S/how/$how" >"$S/cancelled" 2>&1 &
	job=$!
	started="$started $job"
	wait_until '[ -s "$S/tree" ]' || not_ok "a command that $how starts" "$(cat "$S/cancelled")"
	id=$("$GPULEASE" --status --json | sed -n 's/.*"ticket": *\([0-9]*\).*/\1/p' | head -n 1)
	run "a command that $how can be cancelled" 0 '' '' "$GPULEASE" --cancel "$id"
	[ "$rc" -eq 0 ] || kill -KILL "$job"
	wait "$job"
	is "all processes of a command that $how end with a cancel" gone "$S/tree"
	is "the history has the cancel of a command that $how" told 'cancel'
	frees "the GPUs are free after the cancel of a command that $how"
done

cat >"$S/acts" <<'EOF'
trap 'echo acted; exit' TERM
echo $$ >"$S/tree"
kill -STOP $$
while :; do sleep 0.05; done
EOF
# shellcheck disable=SC2016
limited '[ -s "$S/tree" ]' --grace 20s sh -c 'sh "$S/acts" & wait; wait'
is 'a stopped process can still handle TERM' [ "$rc:$out" = 124:acted ]

# the calling script is in the same process group, but not below the job
# shellcheck disable=SC2016
run 'the script that called gpulease is not ended with the job' 0 'rc 124' '' sh -c '
	"$1" -Q --report -n 8 --time 100ms --grace 50ms sleep 1000; echo "rc $?"' - "$GPULEASE"

# shellcheck disable=SC2016,SC2086
run 'a process that a job leaves behind is not killed' 0 '' '' "$GPULEASE" $S8 \
	sh -c 'sleep 1000 & echo $! >"$S/left"'
run 'the process left behind keeps the GPUs' 124 '' '*is kept by processes that job * left running; also lingering: GPU 1,2,3,4,5,6,7' \
	"$GPULEASE" -I true
is 'the process left behind runs' wait_until '[ "$(process_state "$(cat "$S/left")")" = S ]'
kill "$(cat "$S/left")"
frees 'the GPUs are free when the process left behind ends'

echo 'retry-delay = 100ms' >"$S/conf"
# shellcheck disable=SC2016
run 'a job is tried again after a failure' 3 '' '' \
	"$GPULEASE" -Q --config "$S/conf" -n 8 --retries 1 --grace 100ms sh -c '
	[ "$GPULEASE_ATTEMPT" = 2 ] && exit 3
	setsid -f sh -c "trap \"\" TERM; echo \$\$ >$S/tree; while :; do sleep 0.05; done"
	until [ -s "$S/tree" ]; do sleep 0.01; done; exit 1'
is 'a retry first ends all processes of the attempt before' gone "$S/tree"

# --- signals -----------------------------------------------------------------------------

cat >"$S/listens" <<'EOF'
for s in HUP USR1 USR2; do
	trap "echo $s" $s
done
trap 'exit 5' TERM
echo $$ >"$1.new" && mv "$1.new" "$1"
while :; do sleep 0.02; done
EOF
# listener NAME OPTION…: starts a job; the command's pid is in $S/NAME.pid, its supervisor's in $job
listener() {
	listener_name=$1
	shift
	rm -f "$S/$listener_name".*
	setsid "$GPULEASE" -Q "$@" sh "$S/listens" "$S/$listener_name.pid" \
		>"$S/$listener_name.out" 2>&1 </dev/null &
	started="$started $!"
	wait_until "[ -e '$S/$listener_name.pid' ]" || bail "$(cat "$S/$listener_name.out")"
	job=$(sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$(cat "$S/$listener_name.pid")/stat")
}

listener passes --report -n 8
for signal in HUP USR1 USR2; do
	kill -$signal "$job"
	is "$signal is passed on to the command" wait_until "grep -q $signal '$S/passes.out'"
done
kill -STOP "$job"
wait_until '[ "$(process_state "$job")" = T ]'
kill -USR1 "$(cat "$S/passes.pid")"
is 'the command runs on while its supervisor is stopped' wait_until '[ "$(grep -c USR1 "$S/passes.out")" = 2 ]'
kill -TERM "$job"
kill -CONT "$job"
is 'TERM ends the supervisor and the command' wait_until '[ ! -e "/proc/$job" ] && gone "$S/passes.pid"'
is 'each signal reaches the command exactly once' [ "$(grep -c . "$S/passes.out")" -eq 4 ]
frees 'the GPUs are free after TERM'

listener killed --report -n 8
kill -KILL "$job"
wait_until '[ ! -e "/proc/$job" ]'
is 'a killed supervisor leaves its command running' \
	like '[RSD]' "$(process_state "$(cat "$S/killed.pid")")"
run 'the command of a killed supervisor keeps its GPUs' 124 '' '*needs 1 GPU, none is free' \
	"$GPULEASE" -I true
kill -TERM "$(cat "$S/killed.pid")"
frees 'the GPUs are free when that command ends'

# deaf SIGNAL IGNORED: sends the signal to a supervisor that was started with the signals IGNORED
# ignored, as a script without job control does; then the command fails by itself
deaf() {
	rm -f "$S/deaf" "$S/deaf.go"
	# shellcheck disable=SC2016
	setsid sh -c 'trap "" $1; shift; exec "$@"' - "$2" "$GPULEASE" -Q --config "$S/conf" \
		--retries 1 -n 8 sh -c 'trap "echo USR1 >>\"$S/deaf\"" USR1; echo $GPULEASE_ATTEMPT >>"$S/deaf"
		until [ -e "$S/deaf.go" ]; do sleep 0.02; done; exit 3' </dev/null &
	deaf=$!
	started="$started $deaf"
	wait_until '[ -s "$S/deaf" ]'
	kill "-$1" "$deaf"
	# of signals that are pending the one with the lower number is read first
	kill -USR1 "$deaf"
	wait_until 'grep -q USR1 "$S/deaf"'
	: >"$S/deaf.go"
	wait "$deaf"
	rc=$?
}
for signal in INT QUIT; do
	deaf $signal 'INT QUIT'
	is "a $signal that the whole job ignores does not prevent a retry" \
		[ "$rc:$(tr '\n' ' ' <"$S/deaf")" = '3:1 USR1 2 ' ]
done
deaf HUP HUP
is 'a HUP that the whole job ignores does not prevent a retry' [ "$rc:$(tr '\n' ' ' <"$S/deaf")" = '3:1 USR1 2 ' ]

# --- stderr without a reader -------------------------------------------------------------

# unheard COMMAND…: starts it when no process is left that reads its stderr
unheard() {
	rm -f "$S/pipe" "$S/go"
	mkfifo "$S/pipe"
	# shellcheck disable=SC2016
	sh -c 'until [ -e "$S/go" ]; do sleep 0.02; done; exec "$@"' - "$@" \
		</dev/null >"$S/heard" 2>"$S/pipe" &
	unheard=$!
	started="$started $unheard"
	: <"$S/pipe"
	: >"$S/go"
}
# waits for its end: sets $rc
end_unheard() {
	wait "$unheard"
	rc=$?
}
unheard sh -c 'echo said >&2'
end_unheard
is 'a plain command that writes to such a stderr is ended by SIGPIPE' [ "$rc" = 141 ]
unheard "$GPULEASE" --report -n 8 sh -c 'exit 3'
end_unheard
is 'a supervisor that writes to it is not ended' [ "$rc" = 3 ]
# shellcheck disable=SC2016
unheard "$GPULEASE" --report --config "$S/conf" --retries 1 -n 8 \
	sh -c 'echo $GPULEASE_ATTEMPT; exit 4'
end_unheard
is 'the supervisor tries the job again' [ "$rc:$(tr '\n' ' ' <"$S/heard")" = '4:1 2 ' ]
is 'the history has the status of the last attempt' told ' failed .* 4 '
unheard "$GPULEASE" --report -n 8 sh -c 'echo said >&2; exit 5'
end_unheard
is 'the command of a supervisor is ended by SIGPIPE' [ "$rc" = 141 ]
unheard "$GPULEASE" --lease-only -n 8 -t 100ms
end_unheard
is '--lease-only is not ended by SIGPIPE' [ "$rc:$(wc -l <"$S/heard")" = 124:1 ]
holder ahead -n 8
unheard "$GPULEASE" -n 8 sh -c 'exit 6'
wait_until '"$GPULEASE" --queue | grep -q "needs 8 GPUs"'
release ahead
end_unheard
is 'a job that waits is not ended by SIGPIPE' [ "$rc" = 6 ]

# --- retries -----------------------------------------------------------------------------

# shellcheck disable=SC2016
run 'a job that fails is tried again until it succeeds' 0 '1
2
3' '' "$GPULEASE" -Q --config "$S/conf" --retries 5 -n 8 sh -c '
	echo $GPULEASE_ATTEMPT; [ "$GPULEASE_ATTEMPT" = 3 ]'
listener ended --config "$S/conf" --retries 5 -n 8
kill -TERM "$job"
is 'a job that gets TERM is not tried again' wait_until '[ ! -e "/proc/$job" ]'
frees 'the GPUs of a job that got TERM are free'

# --- what it costs -----------------------------------------------------------------------

listener idle --report -n 1
kib=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$job/status")
if is_sanitized "$GPULEASE"; then
	skip 'a supervisor has less than 1 MiB of its own' 'built with sanitizers'
else
	is 'a supervisor has less than 1 MiB of its own' [ "$kib" -lt 1024 ]
fi
kill -TERM "$job"
# --- what needs a time limit ------------------------------------------------------------

run '--on-limit requeue without a time limit is refused' 125 '' 'gpulease: --on-limit requeue needs a time limit; *' \
	"$GPULEASE" --on-limit requeue true
run '--signal without a time limit is refused' 125 '' 'gpulease: --signal is sent before a time limit; *' \
	"$GPULEASE" --signal USR1@5 true
run '--signal that would come before the start is refused' 125 '' 'gpulease: --signal would be sent before *' \
	"$GPULEASE" --signal USR1@60 -t 60s true
run '--signal without a limit is accepted with --preemptible' 0 '' '' "$GPULEASE" --signal USR1@5 --preemptible true

finish

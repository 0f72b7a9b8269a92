#!/bin/sh
# Jobs that are looked after: what their end is, what reaches their command, and that nothing
# of them is left where nothing is to be.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
S8="-Q --report -n 8"

# frees TEXT: all GPUs can be had at once
frees() {
	run "$1" 0 '' '' "$GPULEASE" -Q -I30s -n 8 true
}

# limited CONDITION OPTION…: sets $out, $err and $rc of a job with these and a time limit.  One at
# which the condition does not hold was too short for this machine.
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

# told WORDS: whether the last line of the history has them
told() {
	"$GPULEASE" --history 1 | grep -q "$1"
}

# --- how it ends -------------------------------------------------------------------------

# shellcheck disable=SC2086 # a list of words
run 'the exit status is the command'"'"'s' 42 '' '' "$GPULEASE" $S8 sh -c 'exit 42'
# shellcheck disable=SC2086
run 'what cannot be executed: 126' 126 '' '*cannot execute*' "$GPULEASE" $S8 /etc
for signal in TERM KILL USR1 SEGV; do
	number=$(sh -c "kill -$signal \$\$" 2>/dev/null; echo $?)
	# shellcheck disable=SC2016,SC2086
	run "it dies of $signal as its command does" "$number" '' '*' sh -c \
		'ulimit -c 0; "$@"' - "$GPULEASE" $S8 sh -c "kill -$signal \$\$"
done
mkdir "$S/core"
# shellcheck disable=SC2016,SC2086,SC3045
(cd "$S/core" && ulimit -c unlimited && "$GPULEASE" $S8 sh -c 'ulimit -c 0; kill -SEGV $$') \
	>/dev/null 2>&1
is 'but leaves no core' [ -z "$(ls -A "$S/core")" ]
run 'nothing of ours is on its standard output' 0 'out' '*' "$GPULEASE" --report echo out
# shellcheck disable=SC2016
run 'it is the same process group, and only the FIFO is open besides' 0 'same' '' sh -c '
	for f in /proc/$$/fd/*; do echo "${f##*/}"; done >"$2.before"
	exec "$1" -Q --report sh -c "
		for f in /proc/\$\$/fd/*; do echo \"\${f##*/}\"; done >$2.after
		[ \$(cut -d\" \" -f5 /proc/\$\$/stat) = \$(cut -d\" \" -f5 /proc/\$PPID/stat) ] &&
		[ \"\$(sort $2.before $2.after | uniq -u)\" = 100 ] && echo same"
	' - "$GPULEASE" "$S/fds"
# shellcheck disable=SC2016
run 'the mask and what is ignored are as before' 0 'same' '' sh -c '
	trap "" USR2 HUP
	grep "^Sig[BI]" /proc/self/status >"$2"
	"$1" -Q --report grep "^Sig[BI]" /proc/self/status | diff "$2" - && echo same
	' - "$GPULEASE" "$S/mask"

# --- the limit ---------------------------------------------------------------------------

run 'at its limit: 124' 124 '' \
	'gpulease: job * has reached its time limit of <1s: TERM now, KILL after 10s' \
	"$GPULEASE" --retries 1 --time 100ms sleep 1000
is 'which the history tells' told 'timed-out'
mkfifo "$S/full"
exec 9<>"$S/full"
dd if=/dev/zero bs=4096 oflag=nonblock >&9 2>/dev/null
# shellcheck disable=SC2016
run 'it does not wait for whoever reads that' 124 '' '' timeout -s KILL "$DEADLINE" sh -c '
	exec 9>&-
	exec "$@" 2>"$0"' "$S/full" "$GPULEASE" --retries 1 --time 100ms sleep 1000
exec 9>&-
# shellcheck disable=SC2016
limited 'like "ready*" "$out"' --signal USR1@150ms sh -c '
	trap "echo warned" USR1; trap "echo told; exit 7" TERM; echo ready
	while :; do sleep 0.02; done'
is 'a warning comes before' [ "$rc:$out" = '124:ready
warned
told' ]
# shellcheck disable=SC2086
run 'who dies of the warning has come to its limit' 124 '' '' \
	"$GPULEASE" $S8 --time 60s --signal USR1@59700ms sleep 1000
# shellcheck disable=SC2016
limited 'like "1?2*" "$out"' --on-limit requeue --max-requeues 1 sh -c '
	echo $GPULEASE_ATTEMPT; exec sleep 1000'
is 'it may be tried again after its limit' [ "$rc:$out:$err" = '124:1
2:' ]
is 'and then it is over' "$GPULEASE" -I30s -n 8 true
# shellcheck disable=SC2016
limited 'like "1*" "$out"' --on-limit requeue --max-requeues 2 --grace 50ms sh -c '
	trap "" TERM HUP; kill -HUP $PPID; echo $GPULEASE_ATTEMPT; while :; do sleep 0.02; done'
is 'but not one that was told to end' [ "$rc:$out" = 124:1 ]

# --- the tree ----------------------------------------------------------------------------

# Ways to be hard to end.  The process that is left writes its number to $S/tree.
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
	is 'with all that it has started' gone "$S/tree"
	frees 'and its GPUs are free'

	rm -f "$S/tree"
	# shellcheck disable=SC2086
	"$GPULEASE" $S8 --grace 100ms sh "$S/how/$how" >"$S/cancelled" 2>&1 &
	job=$!
	started="$started $job"
	wait_until '[ -s "$S/tree" ]' || not_ok 'it starts' "$(cat "$S/cancelled")"
	id=$("$GPULEASE" --status --json | sed -n 's/.*"ticket": *\([0-9]*\).*/\1/p' | head -n 1)
	run "one that $how is cancelled" 0 '' '' "$GPULEASE" --cancel "$id"
	[ "$rc" -eq 0 ] || kill -KILL "$job"
	wait "$job"
	is 'with all that it has started' gone "$S/tree"
	is 'which the history tells' told 'cancel'
	frees 'and its GPUs are free'
done

cat >"$S/acts" <<'EOF'
trap 'echo acted; exit' TERM
echo $$ >"$S/tree"
kill -STOP $$
while :; do sleep 0.05; done
EOF
# shellcheck disable=SC2016
limited '[ -s "$S/tree" ]' --grace 20s sh -c 'sh "$S/acts" & wait; wait'
is 'one that is stopped can still act on its TERM' [ "$rc:$out" = 124:acted ]

# who calls it is in the same group, and no part of the tree
# shellcheck disable=SC2016
run 'the script around it is not ended with it' 0 'rc 124' '' sh -c '
	"$1" -Q --report -n 8 --time 100ms --grace 50ms sleep 1000; echo "rc $?"' - "$GPULEASE"

# shellcheck disable=SC2016,SC2086
run 'what a job leaves behind by itself is left alone' 0 '' '' "$GPULEASE" $S8 \
	sh -c 'sleep 1000 & echo $! >"$S/left"'
run 'and keeps its GPUs' 124 '' '*is kept by processes that ticket * left behind' \
	"$GPULEASE" -I true
is 'it runs' wait_until '[ "$(process_state "$(cat "$S/left")")" = S ]'
kill "$(cat "$S/left")"
frees 'until it ends'

echo 'retry-delay = 100ms' >"$S/conf"
# shellcheck disable=SC2016
run 'before it is tried again all of the last attempt is ended' 3 '' '' \
	"$GPULEASE" -Q --config "$S/conf" -n 8 --retries 1 --grace 100ms sh -c '
	[ "$GPULEASE_ATTEMPT" = 2 ] && exit 3
	setsid -f sh -c "trap \"\" TERM; echo \$\$ >$S/tree; while :; do sleep 0.05; done"
	until [ -s "$S/tree" ]; do sleep 0.01; done; exit 1'
is 'so it was' gone "$S/tree"

# --- signals -----------------------------------------------------------------------------

cat >"$S/listens" <<'EOF'
for s in HUP USR1 USR2; do
	trap "echo $s" $s
done
trap 'exit 5' TERM
echo $$ >"$1.new" && mv "$1.new" "$1"
while :; do sleep 0.02; done
EOF
# listener NAME OPTION…: starts it; its number in $S/NAME.pid, its supervisor's in $job
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
	is "$signal is passed on" wait_until "grep -q $signal '$S/passes.out'"
done
kill -STOP "$job"
wait_until '[ "$(process_state "$job")" = T ]'
kill -USR1 "$(cat "$S/passes.pid")"
is 'with its supervisor stopped it goes on' wait_until '[ "$(grep -c USR1 "$S/passes.out")" = 2 ]'
kill -TERM "$job"
kill -CONT "$job"
is 'TERM ends both' wait_until '[ ! -e "/proc/$job" ] && gone "$S/passes.pid"'
is 'each came once' [ "$(grep -c . "$S/passes.out")" -eq 4 ]
frees 'and the GPUs are free'

listener killed --report -n 8
kill -KILL "$job"
wait_until '[ ! -e "/proc/$job" ]'
is 'killed, a supervisor leaves its command running' \
	like '[RSD]' "$(process_state "$(cat "$S/killed.pid")")"
run 'which keeps its GPUs' 124 '' '*needs 1 GPU, none is free' \
	"$GPULEASE" -I true
kill -TERM "$(cat "$S/killed.pid")"
frees 'until it ends'

# deaf SIGNAL IGNORED: sends it to one that looks after a job and was started with IGNORED
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
	is "a $signal that all of it ignores has told nothing to end" \
		[ "$rc:$(tr '\n' ' ' <"$S/deaf")" = '3:1 USR1 2 ' ]
done
deaf HUP HUP
is 'nor has a HUP' [ "$rc:$(tr '\n' ' ' <"$S/deaf")" = '3:1 USR1 2 ' ]

# --- nobody listens ----------------------------------------------------------------------

# unheard COMMAND…: starts it once nobody is left to read its stderr
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
# its end: sets $rc
end_unheard() {
	wait "$unheard"
	rc=$?
}
unheard sh -c 'echo said >&2'
end_unheard
is 'who is not heard is ended by what it says' [ "$rc" = 141 ]
unheard "$GPULEASE" --report -n 8 sh -c 'exit 3'
end_unheard
is 'but not who looks after a job' [ "$rc" = 3 ]
# shellcheck disable=SC2016
unheard "$GPULEASE" --report --config "$S/conf" --retries 1 -n 8 \
	sh -c 'echo $GPULEASE_ATTEMPT; exit 4'
end_unheard
is 'and tries it again' [ "$rc:$(tr '\n' ' ' <"$S/heard")" = '4:1 2 ' ]
is 'which the history tells' told ' failed .* 4 '
unheard "$GPULEASE" --report -n 8 sh -c 'echo said >&2; exit 5'
end_unheard
is 'its command is, as without' [ "$rc" = 141 ]
unheard "$GPULEASE" --lease-only -n 8 -t 100ms
end_unheard
is 'nor who holds a lease' [ "$rc:$(wc -l <"$S/heard")" = 124:1 ]
holder ahead -n 8
unheard "$GPULEASE" -n 8 sh -c 'exit 6'
wait_until '"$GPULEASE" --queue | grep -q "needs 8 GPUs"'
release ahead
end_unheard
is 'nor who waits' [ "$rc" = 6 ]

# --- retries -----------------------------------------------------------------------------

# shellcheck disable=SC2016
run 'a job that fails is tried again' 0 '1
2
3' '' "$GPULEASE" -Q --config "$S/conf" --retries 5 -n 8 sh -c '
	echo $GPULEASE_ATTEMPT; [ "$GPULEASE_ATTEMPT" = 3 ]'
listener ended --config "$S/conf" --retries 5 -n 8
kill -TERM "$job"
is 'but not where it was told to end' wait_until '[ ! -e "/proc/$job" ]'
frees 'and its GPUs are free'

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

run 'a requeue without a limit' 125 '' 'gpulease: --on-limit requeue needs a time limit; *' \
	"$GPULEASE" --on-limit requeue true
run 'a warning without one' 125 '' 'gpulease: --signal is sent before a time limit; *' \
	"$GPULEASE" --signal USR1@5 true
run 'a warning that would come too early' 125 '' 'gpulease: --signal would come before *' \
	"$GPULEASE" --signal USR1@60 -t 60s true
run 'a warning before another comes' 0 '' '' "$GPULEASE" --signal USR1@5 --preemptible true

finish

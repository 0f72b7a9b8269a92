#!/bin/sh
# --cancel in every state of a job: waiting, running, looked after, between two attempts; a
# hundred at once; and what the history says of it.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
conf=$S/conf
configured

# delay DUR: how long until a job is tried again, from now on
delay() {
	printf 'retry-delay = %s\nretry-delay-max = 1h\n' "$1" >"$conf"
}
delay 0s

ticket_of() {
	sed -n 's/.*ticket \([0-9]*\) waits.*/\1/p' "$S/$1.err" | head -n 1
}

# json VERB: sets $out to what it prints, without the spaces.
json() {
	try "$GPULEASE" "$1" --json
	out=$(printf %s "$out" | tr -d '\n ')
}

# in_queue ID ATTEMPT: whether that attempt of the job waits
in_queue() {
	json --queue
	like "*\"ticket\":$1,\"attempt\":$2,*" "$out"
}

# history ID: sets $lines to those of the history on the job
history() {
	lines=$("$GPULEASE" --history all --json | tr -d '\n ' | sed 's/{"ticket"/\n&/g' |
		grep "^{\"ticket\":$1,")
}

# told ID TEXT PATTERN: a result: the history has one line on the job, and it is like that
told() {
	history "$1"
	if [ "$(printf '%s\n' "$lines" | wc -l)" -eq 1 ] && like "$3" "$lines"; then
		ok "$2"
	else
		not_ok "$2" "not $3:" "$lines"
	fi
}

# starter NAME OPTION…: a job of several attempts; each notes its pid, its id and its number, and
# ends with 1 when it is told `again`, and does not end at TERM if $S/NAME.stubborn is there.
starter() {
	rm -f "$S/$1".[!s]*
	mkfifo "$S/$1.hold"
	name=$1
	shift
	"$GPULEASE" "$@" -- sh -c '
		[ ! -e "$1.stubborn" ] || trap "" TERM
		exec 3<>"$1.hold"
		echo "$$ $GPULEASE_ID $GPULEASE_ATTEMPT" >"$1.new"
		echo "$GPULEASE_ATTEMPT" >>"$1.all"
		mv "$1.new" "$1.runs"
		read -r word <&3
		rm "$1.runs"
		exit 1' job "$S/$name" >"$S/$name.out" 2>"$S/$name.err" </dev/null &
	echo $! >"$S/$name.pid"
	started="$started $!"
	wait_until 'runs "$name"' || bail "job $name does not start"
}

# gone PID: whether it has ended; nobody may have waited for it.
gone() {
	like '[ZX]' "$(process_state "$1")" || [ ! -d "/proc/$1" ]
}

free() {
	run "$1" 0 '' '' "$GPULEASE" -n 2 -I true
}

# --- a job that waits ------------------------------------------------------------------------

holder busy -n 2
waiter one
id=$(ticket_of one)
run 'a waiting job is cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
ended one
is 'it has obeyed' [ "$rc" -eq 143 ]
told "$id" 'the history says so' \
	'*"gpus":\[\],*"state":"cancelled",*"started_unix_ms":null,*"how":"cancel","by":"*","status":143,*'
try "$GPULEASE" --history
is 'it has never started' like '*cancelled by *' "$out"
run 'it has finished' 1 '' "gpulease: ticket $id has finished" "$GPULEASE" --cancel "$id"
run 'how it ended is known' 143 '' '' "$GPULEASE" --wait-for "$id"

waiter stopped
id=$(ticket_of stopped)
stop stopped
run 'one that is stopped is killed' 0 '' '' "$GPULEASE" --cancel "$id" --grace 100ms
ended stopped
told "$id" 'and told by who has ended it' '*"state":"cancelled",*"started_unix_ms":null,*"status":143,*'

waiter twice
id=$(ticket_of twice)
run 'naming it twice is once' 0 '' '' "$GPULEASE" --cancel "$id,$id" "$id"
ended twice
told "$id" 'and told once' '*"state":"cancelled",*'

delay 1h
begin after --after "$(id_of busy)" -n 0
wait_until '[ -s "$S/after.err" ]'
id=$(ticket_of after)
run 'one that comes after another job' 0 '' '' "$GPULEASE" --cancel "$id"
ended after
told "$id" 'likewise' '*"state":"cancelled",*"status":143,*'
release_all busy

# --- a job that runs -------------------------------------------------------------------------

for options in '-n 1' '-n 0'; do
	# shellcheck disable=SC2086 # options
	holder plain $options
	id=$(id_of plain)
	run "a running job with $options" 0 '' '' "$GPULEASE" --cancel "$id"
	ended plain
	is 'is ended' [ "$rc" -eq 143 ]
	told "$id" 'and told once' '*"state":"cancelled",*'
done

delay 0s
for options in '-n 1' '-n 0'; do
	rm -f "$S"/care.*
	# shellcheck disable=SC2086 # options
	starter care $options --retries 5
	id=$(id_of care)
	run "a job that is looked after with $options" 0 '' '' "$GPULEASE" --cancel "$id"
	ended care
	is 'is ended' [ "$rc" -eq 143 ]
	is 'and not tried again' [ "$(cat "$S/care.all")" = 1 ]
	told "$id" 'and told once' '*"attempt":1,*"state":"cancelled",*"status":143,*'

	: >"$S/care.stubborn"
	rm -f "$S/care.all"
	# shellcheck disable=SC2086 # options
	starter care $options --retries 5
	id=$(id_of care)
	command=$(cut -d ' ' -f 1 "$S/care.runs")
	run "one that does not heed TERM with $options" 0 '' '' \
		"$GPULEASE" --cancel "$id" --grace 100ms
	is 'is killed' gone "$command"
	ended care
	is 'as its status says' [ "$rc" -eq 137 ]
	told "$id" 'and told once' '*"attempt":1,*"state":"cancelled",*"status":137,*'
done
free 'nothing is left'

# The supervisor is stopped: it cannot obey.
rm -f "$S"/care.*
starter care --retries 5
id=$(id_of care)
stop care
run 'a job whose supervisor is stopped' 0 '' '' "$GPULEASE" --cancel "$id" --grace 100ms
ended care
is 'ends' [ "$rc" -gt 128 ]
is 'and does not come back' [ "$(cat "$S/care.all")" = 1 ]
told "$id" 'and is told once' '*"state":"cancelled",*'
free 'nothing is left of it'

# The supervisor is gone: its command is the job.
rm -f "$S"/care.*
starter care --retries 5
id=$(id_of care)
command=$(cut -d ' ' -f 1 "$S/care.runs")
kill -KILL "$(pid_of care)"
ended care
run 'a job whose supervisor was killed' 0 '' '' "$GPULEASE" --cancel "$id" --grace 100ms
is 'its command is ended' gone "$command"
free 'nothing is left of that'

# --- between two attempts --------------------------------------------------------------------

# again OPTION…: a job that waits to be tried again
again() {
	delay 1h
	rm -f "$S"/care.*
	starter care "$@" --retries 5
	id=$(id_of care)
	release care 1
	wait_until 'in_queue "$id" 2'
}

# obeys OPTION…: whether such a job, cancelled, says so: who is slow is ended by a signal
obeys() {
	again "$@" && "$GPULEASE" --cancel "$id" && ended care &&
		grep -q "ticket $id was cancelled by " "$S/care.err"
}

for options in '-n 1' '-n 0'; do
	# shellcheck disable=SC2086 # options
	is 'who is cancelled between two attempts obeys by himself' sometimes obeys $options
	# shellcheck disable=SC2086 # options
	is "a job with $options waits to be tried again" again $options
	run 'it is cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
	ended care
	is 'and has obeyed' [ "$rc" -eq 143 ]
	is 'it was not tried again' [ "$(cat "$S/care.all")" = 1 ]
	history "$id"
	is 'the history has both attempts' like \
		'*"attempt":1,*"state":"failed",*"attempt":2,*"state":"cancelled",*' \
		"$(printf %s "$lines" | tr -d '\n')"
	run 'the last counts' 143 '' '' "$GPULEASE" --wait-for "$id"
done

# By the number of an attempt, which is not the job's id.
again || bail 'no second attempt'
run 'by the number of its attempt' 0 '' '' "$GPULEASE" --cancel "$((id + 1))"
ended care
is 'the job is meant' [ "$rc" -eq 143 ]

# It goes back into the queue again and again while it is cancelled.
delay 0s
bad=
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	rm -f "$S"/loop.*
	"$GPULEASE" --retries 100000 -- sh -c '
		echo "$GPULEASE_ID" >"$1.id.new"
		mv "$1.id.new" "$1.id"
		echo "$GPULEASE_ATTEMPT" >"$1.last"
		exit 1' job "$S/loop" 2>"$S/loop.err" </dev/null &
	loop=$!
	started="$started $loop"
	wait_until '[ -e "$S/loop.id" ]' || bail 'the loop does not start'
	"$GPULEASE" --cancel "$(cat "$S/loop.id")" 2>"$S/loop.cancel" ||
		bad="$bad round $round: $(cat "$S/loop.cancel");"
	wait "$loop"
	# 1: it ended by itself at that moment, and was not tried again
	case $? in
	143 | 1) ;;
	*) bad="$bad round $round ends with $?;" ;;
	esac
	last=$(cat "$S/loop.last")
	! in_queue "$(cat "$S/loop.id")" "$((last + 1))" || bad="$bad round $round: in the queue;"
done
is 'a job that is tried again all the time is cancelled' [ -z "$bad" ]
free 'and nothing of it is left'

# --- in the background, and a hundred at once -------------------------------------------------

id=$("$GPULEASE" --submit --retries 3 -- sleep 1000)
run 'a background job' 0 '' '' "$GPULEASE" --cancel "$id"
run 'its status' 143 '' '' "$GPULEASE" --wait-for "$id"
told "$id" 'and told' '*"state":"cancelled",*"status":143,*'

for options in '-n 1' '-n 0'; do
	rm -f "$S/keeper"
	# shellcheck disable=SC2086 # options
	"$GPULEASE" --retries 3 $options -- sh -c 'echo "$GPULEASE_ID" >"$1.id"
		echo $PPID >"$1.new"
		mv "$1.new" "$1"
		exec sleep 1000' - "$S/keeper" 2>/dev/null &
	wait_until '[ -e "$S/keeper" ]' || bail 'no job to be left alone'
	id=$(cat "$S/keeper.id")
	kill -KILL "$(cat "$S/keeper")"
	wait $! 2>/dev/null
	run "what a killed supervisor has left with $options" 0 '' '*' "$GPULEASE" --cancel "$id"
	told "$id" 'and told once' '*"state":"cancelled",*"status":143,*'
	run 'its status, too' 143 '' '' "$GPULEASE" --wait-for "$id"

	: >"$S/care.stubborn"
	rm -f "$S/care.all"
	# shellcheck disable=SC2086 # options
	starter care $options --retries 5
	id=$(id_of care)
	kill -KILL "$(pid_of care)"
	ended care
	run "or does not heed TERM with $options" 0 '' '' "$GPULEASE" --cancel "$id" --grace 100ms
	told "$id" 'and told by what has ended it' '*"state":"cancelled",*"status":137,*'
	rm "$S/care.stubborn"
done

holder busy -n 2
ids=
for i in 1 2 3 4 5 6 7 8 9 10; do
	for j in 1 2 3 4 5 6 7 8 9 10; do
		case $j in
		1) new=$("$GPULEASE" --submit -n 0 sleep 1000) ;; # runs
		*) new=$("$GPULEASE" --submit -n 1 sleep 1000) ;; # waits
		esac
		ids="$ids${ids:+,}$new"
	done
done
run 'a hundred at once' 0 '' '' "$GPULEASE" --cancel "$ids"
run 'all have ended so' 143 '' '' "$GPULEASE" --wait-for "$ids"
json --queue
is 'nobody waits' like '*"queue":\[\],*' "$out"
count=$("$GPULEASE" --history 100 --json | grep -c '"state": "cancelled"')
is 'each is told once' [ "$count" -eq 100 ]
release_all busy
free 'nothing is left of them'

# --- a lease for a shell ---------------------------------------------------------------------

cat >"$S/shell" <<'END'
eval "$("$1" -n 2 --shell 2>"$2.shell-err")"
echo "$GPULEASE_ID" >"$2.id.new"
sleep 1000 &
echo $! >"$2.child"
mv "$2.id.new" "$2.id"
wait
echo "$?" >"$2.child-status"
exec 3<>"$2.hold"
read -r word <&3
exit 8
END
rm -f "$S"/lease.*
mkfifo "$S/lease.hold"
sh "$S/shell" "$GPULEASE" "$S/lease" 2>"$S/lease.err" </dev/null &
echo $! >"$S/lease.pid"
started="$started $!"
if wait_until '[ -e "$S/lease.id" ]' && [ -n "$(cat "$S/lease.id")" ]; then
	id=$(cat "$S/lease.id")
	"$GPULEASE" --wait-for "$id" 2>"$S/watcher.err" &
	watcher=$!
	started="$started $watcher"
	run 'a lease for a shell' 0 '' '' "$GPULEASE" --cancel "$id"
	is 'the shell goes on' wait_until '[ -e "$S/lease.child-status" ]'
	is 'without what it had started' gone "$(cat "$S/lease.child")"
	free 'its GPUs are free'
	told "$id" 'the history says so' '*"state":"cancelled",*'
	release lease
	run 'it has finished' 1 '' "gpulease: ticket $id has finished" "$GPULEASE" --cancel "$id"
	wait "$watcher"
	is 'who waited for it goes on' [ $? -ne 0 ]
else
	not_ok 'a shell has a lease' "$(cat "$S/lease.err" "$S/lease.shell-err")"
fi

# --- a ticket that is swept meanwhile --------------------------------------------------------

# A start may give the ticket back as soon as its owner is dead.
"$GPULEASE" -n 0 sh -c '
	trap ": >\"$0/termed\"" TERM
	echo "$GPULEASE_ID" >"$0/swept.new"
	mv "$0/swept.new" "$0/swept"
	while :; do sleep 0.1; done' "$S" 2>"$S/swept.err" &
started="$started $!"
is 'a job that does not obey' wait_until '[ -e "$S/swept" ]'
id=$(cat "$S/swept")
"$GPULEASE" --cancel "$id" --grace 3s 2>"$S/cancel.err" &
canceller=$!
started="$started $canceller"
is 'is told to end' wait_until '[ -e "$S/termed" ]'
dd if=/dev/zero of="$(state_dir)/tickets" bs=512 count=1 seek="$id" conv=notrunc 2>"$S/dd.err"
wait "$canceller"
is 'is ended' [ $? -eq 0 ]
told "$id" 'and the history says so without its ticket' '*"state":"cancelled",*'

# --- from within -----------------------------------------------------------------------------

# within TEXT OUTPUT COMMAND: a shell with a lease and something that runs there cancels it by
# COMMAND, and prints its status.  A shell that is ended has no part in the command's group.
within() {
	run "a shell cancels its own lease $1" 0 "$2" '' timeout 30 sh -c '
		eval "$("$1" -n 2 --shell)"
		sleep 1000 &
		eval "$2"
		echo "$?"
		unset CUDA_VISIBLE_DEVICES
		wait "$!"
		[ "$?" -gt 128 ] && exec "$1" -n 2 -I true' shell "$GPULEASE" "$3"
}
within 'itself' 0 '"$1" --cancel "$GPULEASE_ID"'
within 'by another program' 0 'timeout 20 "$1" --cancel "$GPULEASE_ID"'
within 'by another shell' 'and on
0' 'sh -c '\''"$1" --cancel "$GPULEASE_ID"; echo and on'\'' sh "$1"'
within 'in a pipeline' 0 '"$1" --cancel "$GPULEASE_ID" 2>&1 | cat'

# itself TEXT OPTION… -- COMMAND…: a job that cancels itself; its GPUs are free soon after it has
# ended: what it had started may end a moment later, and whoever comes in between is told of it.
itself() {
	text=$1
	shift
	run "a job that cancels itself $text" 143 '' '*' "$GPULEASE" -n 2 "$@"
	run 'keeps nothing' 0 '' '*' timeout 25 "$GPULEASE" -n 2 true
}
itself 'at once' sh -c '"$1" --cancel "$GPULEASE_ID" --grace 1000s' sh "$GPULEASE"
itself 'and would go on' sh -c '"$1" --cancel "$GPULEASE_ID" --grace 1000s; echo on' sh "$GPULEASE"
itself 'by another shell' sh -c '
	sh -c "\"\$1\" --cancel \$GPULEASE_ID --grace 1000s; echo on" sh "$1" | cat; echo on' sh "$GPULEASE"
itself 'and is looked after' --retries 3 sh -c '
	sh -c "\"\$1\" --cancel \$GPULEASE_ID --grace 1000s; echo on" sh "$1" | cat; echo on' sh "$GPULEASE"

finish

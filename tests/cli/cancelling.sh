#!/bin/sh
# --cancel in every state of a job: waiting, running, with a supervisor, between two attempts; a
# hundred jobs at once; and what the history says of them.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
conf=$S/conf
configured

delay 0s

# json VERB: sets $out to the JSON of this verb, without the spaces.
json() {
	try "$GPULEASE" "$1" --json
	out=$(printf %s "$out" | tr -d '\n ')
}

# in_queue ID ATTEMPT: whether the job waits in the queue with this attempt
in_queue() {
	json --queue
	like "*\"ticket\":$1,\"attempt\":$2,*" "$out"
}

# history ID: sets $lines to the records of the history about the job
history() {
	lines=$("$GPULEASE" --history all --json | tr -d '\n ' | sed 's/{"ticket"/\n&/g' |
		grep "^{\"ticket\":$1,")
}

# told ID TEXT PATTERN: a result, good if the history has one record of the job, which matches
told() {
	history "$1"
	if [ "$(printf '%s\n' "$lines" | wc -l)" -eq 1 ] && like "$3" "$lines"; then
		ok "$2"
	else
		not_ok "$2" "not $3:" "$lines"
	fi
}

# starter NAME OPTION…: a job of several attempts.  Each attempt notes its pid, its id and its
# number, ends with 1 at `release NAME`, and ignores TERM if $S/NAME.stubborn exists.
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

# gone PID: whether the process has ended, also if its parent has not waited for it yet.
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
run '--cancel of a waiting job succeeds' 0 '' '' "$GPULEASE" --cancel "$id"
ended one
is 'the cancelled waiter ends with the status of TERM' [ "$rc" -eq 143 ]
told "$id" 'the history has the waiter as cancelled' \
	'*"gpus":\[\],*"state":"cancelled",*"started_unix_ms":null,*"how":"cancel","by":"*","status":143,*'
try "$GPULEASE" --history
is '--history shows the cancelled waiter' like '*cancelled by *' "$out"
run 'a second --cancel of the waiter says that it has finished' 1 '' \
	"gpulease: job $id has finished" "$GPULEASE" --cancel "$id"
run '--wait-for knows the status of the cancelled waiter' 143 '' '' "$GPULEASE" --wait-for "$id"

waiter stopped
id=$(ticket_of stopped)
stop stopped
run 'a stopped waiter is cancelled' 0 '' '' "$GPULEASE" --cancel "$id" --grace 100ms
ended stopped
told "$id" 'the history has the stopped waiter as cancelled' \
	'*"state":"cancelled",*"started_unix_ms":null,*"status":143,*'

waiter twice
id=$(ticket_of twice)
run 'a job that is named twice is cancelled' 0 '' '' "$GPULEASE" --cancel "$id,$id" "$id"
ended twice
told "$id" 'the history has the job that was named twice once' '*"state":"cancelled",*'

delay 1h
begin after --after "$(id_of busy)" -n 0
wait_until '[ -s "$S/after.err" ]'
id=$(ticket_of after)
run 'a job that waits for another job is cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
ended after
told "$id" 'the history has the job that waited for another job as cancelled' \
	'*"state":"cancelled",*"status":143,*'
release_all busy

# --- a job that runs -------------------------------------------------------------------------

for options in '-n 1' '-n 0'; do
	# shellcheck disable=SC2086 # options
	holder plain $options
	id=$(id_of plain)
	run "a running job with $options is cancelled" 0 '' '' "$GPULEASE" --cancel "$id"
	ended plain
	is 'the cancelled command ends by TERM' [ "$rc" -eq 143 ]
	told "$id" 'the history has the cancelled job once' '*"state":"cancelled",*'
done

delay 0s
for options in '-n 1' '-n 0'; do
	rm -f "$S"/care.*
	# shellcheck disable=SC2086 # options
	starter care $options --retries 5
	id=$(id_of care)
	run "a job with a supervisor and $options is cancelled" 0 '' '' "$GPULEASE" --cancel "$id"
	ended care
	is 'the cancelled job with a supervisor ends by TERM' [ "$rc" -eq 143 ]
	is 'the cancelled job is not tried again' [ "$(cat "$S/care.all")" = 1 ]
	told "$id" 'the history has the cancelled job with a supervisor once' \
		'*"attempt":1,*"state":"cancelled",*"status":143,*'

	: >"$S/care.stubborn"
	rm -f "$S/care.all"
	# shellcheck disable=SC2086 # options
	starter care $options --retries 5
	id=$(id_of care)
	command=$(cut -d ' ' -f 1 "$S/care.runs")
	run "a job that ignores TERM with $options is cancelled" 0 '' '' \
		"$GPULEASE" --cancel "$id" --grace 100ms
	is 'the command that ignores TERM is killed' gone "$command"
	ended care
	is 'the status of the killed job is that of KILL' [ "$rc" -eq 137 ]
	told "$id" 'the history has the killed job with a supervisor once' \
		'*"attempt":1,*"state":"cancelled",*"status":137,*'
done
free 'after these cancels both GPUs are free'

# The supervisor is stopped: it cannot obey.
rm -f "$S"/care.*
starter care --retries 5
id=$(id_of care)
stop care
run 'a job with a stopped supervisor is cancelled' 0 '' '' "$GPULEASE" --cancel "$id" \
	--grace 100ms
ended care
is 'the job with the stopped supervisor ends' [ "$rc" -gt 128 ]
is 'the job with the stopped supervisor is not tried again' [ "$(cat "$S/care.all")" = 1 ]
told "$id" 'the history has the job with the stopped supervisor once' '*"state":"cancelled",*'
free 'the job with the stopped supervisor leaves both GPUs free'

# The supervisor is gone: its command is the job.
rm -f "$S"/care.*
starter care --retries 5
id=$(id_of care)
command=$(cut -d ' ' -f 1 "$S/care.runs")
kill -KILL "$(pid_of care)"
ended care
run 'a job with a killed supervisor is cancelled' 0 '' '' "$GPULEASE" --cancel "$id" --grace 100ms
is 'the command of the killed supervisor is ended' gone "$command"
free 'the job with the killed supervisor leaves both GPUs free'

# --- between two attempts --------------------------------------------------------------------

# again OPTION…: starts a job that has failed once and waits to be tried again; $id is its id
again() {
	delay 1h
	rm -f "$S"/care.*
	starter care "$@" --retries 5
	id=$(id_of care)
	release care 1
	wait_until 'in_queue "$id" 2'
}

# obeys OPTION…: whether such a job says that it was cancelled; a slow one is ended by a signal
obeys() {
	again "$@" && "$GPULEASE" --cancel "$id" && ended care &&
		grep -q "job $id was cancelled by " "$S/care.err"
}

for options in '-n 1' '-n 0'; do
	# shellcheck disable=SC2086 # options
	is 'a job that is cancelled between two attempts ends itself' sometimes obeys $options
	# shellcheck disable=SC2086 # options
	is "a job with $options waits to be tried again" again $options
	run 'a job that waits to be tried again is cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
	ended care
	is 'the job that is cancelled between two attempts ends as if by TERM' [ "$rc" -eq 143 ]
	is 'the job that is cancelled between two attempts is not tried again' [ \
		"$(cat "$S/care.all")" = 1 ]
	history "$id"
	is 'the history has both attempts' like \
		'*"attempt":1,*"state":"failed",*"attempt":2,*"state":"cancelled",*' \
		"$(printf %s "$lines" | tr -d '\n')"
	run '--wait-for has the status of the last attempt' 143 '' '' "$GPULEASE" --wait-for "$id"
done

# The second attempt has a number of its own, which is not the job's id.
again || bail 'no second attempt'
run 'a job is cancelled by the number of its attempt' 0 '' '' "$GPULEASE" --cancel "$((id + 1))"
ended care
is 'the number of an attempt cancels the whole job' [ "$rc" -eq 143 ]

# A job that goes back into the queue again and again is cancelled meanwhile.
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
free 'the job that was tried again all the time leaves both GPUs free'

# --- in the background, and a hundred at once -------------------------------------------------

id=$("$GPULEASE" --submit --retries 3 -- sleep 1000)
run 'a background job is cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
run '--wait-for has the status of the cancelled background job' 143 '' '' "$GPULEASE" \
	--wait-for "$id"
told "$id" 'the history has the cancelled background job' '*"state":"cancelled",*"status":143,*'

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
	run "the command of a killed supervisor with $options is cancelled" 0 '' '*' \
		"$GPULEASE" --cancel "$id"
	told "$id" 'the history has the job of the killed supervisor once' \
		'*"state":"cancelled",*"status":143,*'
	run '--wait-for has the status of the job of the killed supervisor' 143 '' '' \
		"$GPULEASE" --wait-for "$id"

	: >"$S/care.stubborn"
	rm -f "$S/care.all"
	# shellcheck disable=SC2086 # options
	starter care $options --retries 5
	id=$(id_of care)
	kill -KILL "$(pid_of care)"
	ended care
	run "an orphaned command that ignores TERM with $options is cancelled" 0 '' '' \
		"$GPULEASE" --cancel "$id" --grace 100ms
	told "$id" 'the history has KILL as the end of the orphaned command' \
		'*"state":"cancelled",*"status":137,*'
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
run 'a hundred jobs are cancelled at once' 0 '' '' "$GPULEASE" --cancel "$ids"
run 'all hundred jobs have the status of TERM' 143 '' '' "$GPULEASE" --wait-for "$ids"
json --queue
is 'after the hundred cancels the queue is empty' like '*"queue":\[\],*' "$out"
count=$("$GPULEASE" --history 100 --json | grep -c '"state": "cancelled"')
is 'the history has each of the hundred jobs once' [ "$count" -eq 100 ]
release_all busy
free 'after the hundred cancels both GPUs are free'

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
	run 'the lease of a shell is cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
	is 'the shell goes on after its lease is cancelled' wait_until \
		'[ -e "$S/lease.child-status" ]'
	is 'the child that the shell had started is ended' gone "$(cat "$S/lease.child")"
	free 'the GPUs of the cancelled shell are free'
	told "$id" 'the history has the lease of the shell as cancelled' '*"state":"cancelled",*'
	release lease
	run 'a second --cancel of the shell'"'"'s lease says that it has finished' 1 '' \
		"gpulease: job $id has finished" "$GPULEASE" --cancel "$id"
	wait "$watcher"
	is 'a --wait-for of the cancelled lease ends' [ $? -ne 0 ]
else
	not_ok 'a shell has a lease' "$(cat "$S/lease.err" "$S/lease.shell-err")"
fi

# --- a ticket that is swept meanwhile --------------------------------------------------------

# A gpulease that starts may free the ticket as soon as the ticket's owner is dead.
"$GPULEASE" -n 0 sh -c '
	trap ": >\"$0/termed\"" TERM
	echo "$GPULEASE_ID" >"$0/swept.new"
	mv "$0/swept.new" "$0/swept"
	while :; do sleep 0.1; done' "$S" 2>"$S/swept.err" &
started="$started $!"
is 'a job that ignores TERM runs' wait_until '[ -e "$S/swept" ]'
id=$(cat "$S/swept")
"$GPULEASE" --cancel "$id" --grace 3s 2>"$S/cancel.err" &
canceller=$!
started="$started $canceller"
is 'the canceller sends TERM to the job that ignores it' wait_until '[ -e "$S/termed" ]'
dd if=/dev/zero of="$(state_dir)/tickets" bs=512 count=1 seek="$id" conv=notrunc 2>"$S/dd.err"
wait "$canceller"
is '--cancel ends the job that ignores TERM' [ $? -eq 0 ]
told "$id" 'the history has the cancel of a job without its ticket' '*"state":"cancelled",*'

# --- from within -----------------------------------------------------------------------------

# within TEXT OUTPUT COMMAND: a shell has a lease and a running child.  It cancels its lease by
# COMMAND and prints the exit status of COMMAND.  A shell that is ended has no part in the
# command's group.
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
within 'directly' 0 '"$1" --cancel "$GPULEASE_ID"'
within 'from another program' 0 'timeout 20 "$1" --cancel "$GPULEASE_ID"'
within 'from another shell' 'and on
0' 'sh -c '\''"$1" --cancel "$GPULEASE_ID"; echo and on'\'' sh "$1"'
within 'from a pipeline' 0 '"$1" --cancel "$GPULEASE_ID" 2>&1 | cat'

# itself TEXT OPTION… -- COMMAND…: a job that cancels itself.  Its GPUs are free soon after it has
# ended: processes that it had started may end a moment later, and a job that comes in between
# waits and prints why.
itself() {
	text=$1
	shift
	run "a job that cancels itself $text" 143 '' '*' "$GPULEASE" -n 2 "$@"
	run 'a job that cancels itself leaves its GPUs free' 0 '' '*' timeout 25 "$GPULEASE" \
		-n 2 true
}
itself 'at once' sh -c '"$1" --cancel "$GPULEASE_ID" --grace 1000s' sh "$GPULEASE"
itself 'and would go on' sh -c '"$1" --cancel "$GPULEASE_ID" --grace 1000s; echo on' sh "$GPULEASE"
itself 'from another shell' sh -c '
	sh -c "\"\$1\" --cancel \$GPULEASE_ID --grace 1000s; echo on" sh "$1" | cat; echo on' sh "$GPULEASE"
itself 'under a supervisor' --retries 3 sh -c '
	sh -c "\"\$1\" --cancel \$GPULEASE_ID --grace 1000s; echo on" sh "$1" | cat; echo on' sh "$GPULEASE"

finish

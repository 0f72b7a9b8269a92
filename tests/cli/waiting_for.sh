#!/bin/sh
# --wait-for, which waits for other jobs, and --signal-job, which sends them a signal.
# shellcheck disable=SC2016,SC2154,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
configured

delay 0s

# waits_for NAME OPERAND…: starts --wait-for, and returns when it sleeps without a timeout
waits_for() {
	waits_name=$1
	shift
	"$GPULEASE" --wait-for "$@" >"$S/$waits_name.out" 2>"$S/$waits_name.err" </dev/null &
	echo $! >"$S/$waits_name.pid"
	started="$started $!"
	wait_until 'sleeps "$waits_name"' || bail "--wait-for $* does not wait"
}

# sleeps NAME: whether the process is in poll(2) without a timeout: no timer is set.
sleeps() {
	read -r call _ _ timeout _ 2>/dev/null <"/proc/$(pid_of "$1")/syscall" || return 1
	# -1, of 32 bits or, as musl passes it, of 64
	[ "$call" = "$poll_call" ] && like '0xffffffff*' "$timeout"
}
case $(uname -m) in
x86_64) poll_call=7 ;;
*) # without its number any sleep will do
	sleeps() {
		[ "$(process_state "$(pid_of "$1")")" = S ]
	}
	;;
esac

# json VERB: sets $out to the JSON that the verb prints, without blanks.
json() {
	try "$GPULEASE" "$1" --json
	out=$(printf %s "$out" | tr -d '\n ')
}

still_waits() {
	[ -d "/proc/$(pid_of "$1")" ] && ! like Z "$(process_state "$(pid_of "$1")")"
}

# Whether the kernel tells a process how another one ended that is not its child.
holder probe
waits_for asker "$(id_of probe)"
release_all probe
ended asker
knows_ends=true
[ "$rc" -eq 0 ] || knows_ends=false

# status TEXT STATUS: a result: the exit status of the process that `ended` has waited for last
status() {
	if $knows_ends; then
		is "$1" [ "$rc" -eq "$2" ]
	else
		skip "$1" 'this kernel does not tell others how a process ended'
	fi
}

# --- jobs that run, wait, or have ended ------------------------------------------------------

holder one
waits_for first "$(id_of one)"
waits_for second "$(id_of one)"
release one 3
ended one
ended first
status '--wait-for exits with the status of the job' 3
is '--wait-for prints nothing' [ ! -s "$S/first.out" ] && [ ! -s "$S/first.err" ]
ended second
status 'a second --wait-for for the same job has its status, too' 3

holder both -n 2
waiter later -n 2
waits_for first "$(ticket_of later)"
release_all both
is '--wait-for waits for a job that waits, and on when it runs' still_waits first
wait_until 'runs later'
release_all later
ended first
status '--wait-for ends when that job has ended' 0

holder a
holder b
holder c -n 0
waits_for several "$(id_of a),$(id_of b)" "$(id_of c)" "$(id_of a)"
release a 4
ended a
release b 9
ended b
is '--wait-for with several jobs waits for all of them' still_waits several
release_all c
ended several
status '--wait-for with several jobs exits with the highest status' 9

run '--wait-for with an id that does not exist' 1 '' 'gpulease: job 4711 is unknown; --status and --history list the jobs' \
	"$GPULEASE" --wait-for 4711
holder a
waits_for known "$(id_of a),4711"
release_all a
ended known
is '--wait-for with an existing and a missing id exits with 1' [ "$rc" -eq 1 ]
run '--wait-for with the name of no job' 1 '' "gpulease: no job* named 'x' waits or runs; *" \
	"$GPULEASE" --wait-for x
holder a --name train
holder b
waits_for named "train,$(id_of b)"
waits_for words mine 1
release_all a
is '--wait-for with a name and an id waits for both' still_waits named
release_all b
ended named
status '--wait-for ends with the job of a name' 0
ended words
is '--wait-for takes mine beside an id' like '*job 1 has ended, *' "$(cat "$S/words.err")"
run '--wait-for with a job whose end is not recorded' 1 '' \
	'gpulease: job 1 has ended, but its exit status is not recorded: it needs *--report' \
	"$GPULEASE" --wait-for 1

try "$GPULEASE" --report -- sh -c 'echo $GPULEASE_ID; exit 5'
id=$out
run '--wait-for knows the status of an ended job with a supervisor' 5 '' '' "$GPULEASE" --wait-for "$id"
try "$GPULEASE" -n 0 --report -- sh -c 'echo $GPULEASE_ID; kill -USR1 $$'
run '--wait-for knows that a signal ended a job' 138 '' '' "$GPULEASE" --wait-for "$out,$id"
run '--wait-for -v says with which status a job ended' 5 '' '*job '"$id"' has ended with status 5*' \
	"$GPULEASE" -v --wait-for "$id"

holder a
run '--wait-for gives up after --max-wait' 124 '' 'gpulease: gave up after <1s: 1 of 1 jobs has not ended' \
	"$GPULEASE" --wait-for "$(id_of a)" --max-wait 50ms
waits_for interrupted "$(id_of a)"
kill -INT "$(pid_of interrupted)" 2>/dev/null
kill -TERM "$(pid_of interrupted)" # a shell's background processes may ignore INT
ended interrupted
is '--wait-for can be interrupted' [ "$rc" -gt 128 ]
is 'the job runs on after its --wait-for was interrupted' runs a
release_all a

# --- all, mine -----------------------------------------------------------------------------

run '--wait-for all ends at once when there is no job' 0 '' '' "$GPULEASE" --wait-for all
holder a -n 2
holder none -n 0
waiter b -n 2
waits_for all all
waits_for mine mine
release a 1
ended a
wait_until 'runs b'
release_all b
is '--wait-for all also waits for a job without GPUs' still_waits all
release none 7
ended none
ended all
status '--wait-for all exits with the highest status' 7
ended mine
status 'all are mine' 7
run '--wait-for all in a job does not wait for that job' 0 '' '' "$GPULEASE" -- "$GPULEASE" --wait-for all --max-wait 20s
run '--wait-for mine in a job without GPUs does not wait for that job' 0 '' '' "$GPULEASE" -n 0 -- "$GPULEASE" --wait-for mine --max-wait 20s
run '--wait-for in a job with its own id is refused' 1 '' 'gpulease: job * is this one; it would wait for itself, so leave it out' \
	"$GPULEASE" -- sh -c '"$1" --wait-for $GPULEASE_ID' sh "$GPULEASE"

# --- attempts ------------------------------------------------------------------------------

# tries NAME OPTION…: a job; each attempt ends with the status that it reads from the job's FIFO.
tries() {
	rm -f "$S/$1".*
	mkfifo "$S/$1.hold"
	name=$1
	shift
	"$GPULEASE" "$@" -- sh -c '
		exec 3<>"$1.hold"
		echo "$$ $GPULEASE_ID $CUDA_VISIBLE_DEVICES $GPULEASE_ATTEMPT" >"$1.new"
		mv "$1.new" "$1.runs"
		read -r status <&3
		rm "$1.runs"
		exit "$status"' job "$S/$name" >"$S/$name.out" 2>"$S/$name.err" </dev/null &
	echo $! >"$S/$name.pid"
	started="$started $!"
	wait_until 'tries_now "$name" 1' || bail "job $name does not start"
}

tries_now() {
	runs "$1" && [ "$(cut -d ' ' -f 4 "$S/$1.runs")" = "$2" ]
}

tries a --retries 2
id=$(id_of a)
waits_for first "$id"
begin after -n 1 --after-ok "$id"
wait_until '[ -s "$S/after.err" ]'
release a 1
is 'a job with --retries is started again after a failure' wait_until 'tries_now a 2'
is 'the second attempt has the same id' [ "$(id_of a)" = "$id" ]
is '--wait-for waits on during the second attempt' still_waits first
is 'a job with --after-ok waits on during the second attempt' [ ! -e "$S/after.runs" ]
waits_for second "$id"
release a 1
is 'the job is started a third time' wait_until 'tries_now a 3'
json --status
is '--status --json shows the job and its attempt' \
	like "*\"ticket\":$id,\"attempt\":3,*" "$out"
try "$GPULEASE" --status
is '--status shows the attempt in a column' like "* TRY *" "$out"
release_all a
ended first
is '--wait-for exits with the status of the last attempt' [ "$rc" -eq 0 ]
ended second
is '--wait-for begun in the second attempt has the same status' [ "$rc" -eq 0 ]
is 'the job with --after-ok starts after the last attempt' wait_until 'runs after'
release_all after
run '--wait-for of the ended job has the status of the last attempt' 0 '' '' "$GPULEASE" --wait-for "$id"
json --history
is 'the history has one line for each attempt' like \
	"*\"ticket\":$id,\"attempt\":1,*\"ticket\":$id,\"attempt\":2,*\"ticket\":$id,\"attempt\":3,*" "$out"

delay 1h
tries a --retries 1 --after "$id"
id=$(id_of a)
waits_for first "$id"
release a 1
in_queue() {
	json --queue
	like "*\"ticket\":$id,\"attempt\":2,*" "$out"
}
is 'a job that will be tried again later is in the queue' wait_until in_queue
is 'the second attempt of a job does not depend on --after any more' like '*"attempt":2,*"after":\[\],*' "$out"
is '--queue says that the job is to be tried again' like '*"reason_kind":"held"*"why":"istriedagainin*' "$out"
run 'other jobs start before the second attempt' 0 '' '' "$GPULEASE" -n 2 -I true
run 'a job between two attempts cannot be sent a signal' 1 '' "gpulease: job $id waits to be tried again" \
	"$GPULEASE" --signal-job "$id" USR1
is '--wait-for waits on between two attempts' still_waits first
"$GPULEASE" --cancel "$id"
ended a
ended first
is '--wait-for ends when the job is cancelled between two attempts' [ "$rc" -eq 143 ]
run '--wait-for knows afterwards that the job was cancelled' 143 '' '' "$GPULEASE" --wait-for "$id"

# The command outlives its supervisor: then the job has not ended.
delay 0s
tries a --retries 1
waits_for first "$(id_of a)"
kill -KILL "$(pid_of a)"
ended a
is 'a command whose supervisor was killed is waited for' still_waits first
run '--signal-job reaches a command whose supervisor was killed' 0 '' '' "$GPULEASE" --signal-job "$(id_of a)" KILL
ended first
is '--wait-for ends when the command has ended, too' [ "$rc" -ne 0 ]

# --- signals -------------------------------------------------------------------------------

# catcher NAME OPTION…: a job that notes USR1 and USR2 in $S/NAME.caught, and ends at USR2.
catcher() {
	rm -f "$S/$1".*
	name=$1
	shift
	"$GPULEASE" "$@" -- sh -c '
		trap "echo USR1 >>$1.caught" USR1
		trap "echo USR2 >>$1.caught; exit 6" USR2
		echo "$$ $GPULEASE_ID" >"$1.new"
		mv "$1.new" "$1.runs"
		while :; do
			sleep 0.05
		done' job "$S/$name" >"$S/$name.out" 2>"$S/$name.err" </dev/null &
	echo $! >"$S/$name.pid"
	started="$started $!"
	wait_until 'runs "$name"' || bail "job $name does not start"
}

for options in '' '--report' '-n 0' '-n 0 --report'; do
	# shellcheck disable=SC2086 # options
	catcher a $options
	# it may run before its supervisor has noted which process it is
	wait_until 'try "$GPULEASE" --signal-job "$(id_of a)" USR1; ! like "*, just now" "$err"'
	is "--signal-job to a job with '$options'" [ "$rc:$out$err" = 0: ]
	is "the job with '$options' gets the signal" wait_until '[ -s "$S/a.caught" ]'
	run '--signal-job takes the number of a signal' 0 '' '' "$GPULEASE" --signal-job "$(id_of a)" 12
	ended a
	is 'the signal ends the job' [ "$rc" -eq 6 ]
	is 'the job got each signal once' [ "$(tr '\n' ' ' <"$S/a.caught")" = 'USR1 USR2 ' ]
	run '--signal-job to a finished job' 1 '' 'gpulease: job * has finished' \
		"$GPULEASE" --signal-job "$(id_of a)" USR1
done
holder a -n 2
waiter b -n 2
run '--signal-job to a job that waits' 1 '' 'gpulease: job * has not started yet' \
	"$GPULEASE" --signal-job "$(ticket_of b)" USR1
run '--signal-job to a job that does not exist' 1 '' 'gpulease: job 4711 is unknown; --status and --history list the jobs' \
	"$GPULEASE" --signal-job 4711 USR1
run '--signal-job with an unknown signal' 125 '' "gpulease: --signal-job: there is no signal 'NONE'" "$GPULEASE" --signal-job 1 NONE
release_all a b

# --- a job that never started ------------------------------------------------------------------

sim 8
holder all -n 8
id=$("$GPULEASE" --submit --max-wait 50ms -n 8 true)
run '--wait-for knows that a background job gave up' 124 '' '' "$GPULEASE" --wait-for "$id"
run 'the history says that this job never started' 0 '*"started_unix_ms": null*"status": 124*' '' \
	"$GPULEASE" --history --json 1
release_all all

finish

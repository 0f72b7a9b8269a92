#!/bin/sh
# Waiting for jobs of others, --wait-for, and signals to them, --signal-job.
# shellcheck disable=SC2016,SC2154,SC2317 # functions and conditions that are called by others

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

# waits_for NAME OPERAND…: starts --wait-for, and returns when it sleeps until something happens
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

# json VERB: sets $out to what it prints, without the spaces.
json() {
	try "$GPULEASE" "$1" --json
	out=$(printf %s "$out" | tr -d '\n ')
}

ticket_of() {
	sed -n 's/.*ticket \([0-9]*\) waits.*/\1/p' "$S/$1.err" | head -n 1
}

still_waits() {
	[ -d "/proc/$(pid_of "$1")" ] && ! like Z "$(process_state "$(pid_of "$1")")"
}

# Whether the kernel lets one ask how a process ended that is not one's child.
holder probe
waits_for asker "$(id_of probe)"
release_all probe
ended asker
knows_ends=true
[ "$rc" -eq 0 ] || knows_ends=false

# status TEXT STATUS: a result: how the last one that `ended` waited for ended
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
status 'the status is that of the job' 3
is 'nothing is printed' [ ! -s "$S/first.out" ] && [ ! -s "$S/first.err" ]
ended second
status 'also for a second one who waits for it' 3

holder both -n 2
waiter later -n 2
waits_for first "$(ticket_of later)"
release_all both
is 'who waits is waited for, and when it runs as well' still_waits first
wait_until 'runs later'
release_all later
ended first
status 'until it has ended' 0

holder a
holder b
holder c -n 0
waits_for several "$(id_of a),$(id_of b)" "$(id_of c)" "$(id_of a)"
release a 4
ended a
release b 9
ended b
is 'of several jobs all are waited for' still_waits several
release_all c
ended several
status 'the highest status counts' 9

run 'an id that does not exist' 1 '' 'gpulease: job 4711 does not exist' \
	"$GPULEASE" --wait-for 4711
holder a
waits_for known "$(id_of a),4711"
release_all a
ended known
is 'beside one that does' [ "$rc" -eq 1 ]
run 'no id' 125 '' 'gpulease: --wait-for: *' "$GPULEASE" --wait-for x
run 'a job that nobody saw end' 1 '' 'gpulease: job 1 has ended, but how is not recorded' \
	"$GPULEASE" --wait-for 1

try "$GPULEASE" --report -- sh -c 'echo $GPULEASE_ID; exit 5'
id=$out
run 'one that was looked after is known afterwards, too' 5 '' '' "$GPULEASE" --wait-for "$id"
try "$GPULEASE" -n 0 --report -- sh -c 'echo $GPULEASE_ID; kill -USR1 $$'
run 'one that a signal ended' 138 '' '' "$GPULEASE" --wait-for "$out,$id"
run 'with -v it is told' 5 '' '*job '"$id"' has ended with status 5*' \
	"$GPULEASE" -v --wait-for "$id"

holder a
run '--max-wait' 124 '' 'gpulease: gave up after <1s: 1 of 1 jobs has not ended' \
	"$GPULEASE" --wait-for "$(id_of a)" --max-wait 50ms
waits_for interrupted "$(id_of a)"
kill -INT "$(pid_of interrupted)" 2>/dev/null
kill -TERM "$(pid_of interrupted)" # a shell's background processes may ignore INT
ended interrupted
is 'who waits is interrupted' [ "$rc" -gt 128 ]
is 'the job runs on' runs a
release_all a

# --- all, mine -----------------------------------------------------------------------------

run 'all, and there is none' 0 '' '' "$GPULEASE" --wait-for all
holder a -n 2
holder none -n 0
waiter b -n 2
waits_for all all
waits_for mine mine
release a 1
ended a
wait_until 'runs b'
release_all b
is 'all of them are waited for, also the one without GPUs' still_waits all
release none 7
ended none
ended all
status 'and the highest status is told' 7
ended mine
status 'all are mine' 7
run 'a job does not wait for itself' 0 '' '' "$GPULEASE" -- "$GPULEASE" --wait-for all --max-wait 20s
run 'nor one without GPUs' 0 '' '' "$GPULEASE" -n 0 -- "$GPULEASE" --wait-for mine --max-wait 20s
run 'nor where it names itself' 1 '' 'gpulease: job * is this one; it would wait for itself' \
	"$GPULEASE" -- sh -c '"$1" --wait-for $GPULEASE_ID' sh "$GPULEASE"

# --- attempts ------------------------------------------------------------------------------

# tries NAME: the job ends as each attempt is told, by a line in its FIFO.
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
is 'it is tried again' wait_until 'tries_now a 2'
is 'under the same id' [ "$(id_of a)" = "$id" ]
is 'and waited for still' still_waits first
is 'also by who is to come after it' [ ! -e "$S/after.runs" ]
waits_for second "$id"
release a 1
is 'and once more' wait_until 'tries_now a 3'
json --status
is 'the status shows the job, and which attempt that is' \
	like "*\"ticket\":$id,\"attempt\":3,*" "$out"
try "$GPULEASE" --status
is 'as a column' like "* TRY *" "$out"
release_all a
ended first
is 'the last attempt decides' [ "$rc" -eq 0 ]
ended second
is 'for everybody' [ "$rc" -eq 0 ]
is 'who comes after it starts' wait_until 'runs after'
release_all after
run 'and afterwards' 0 '' '' "$GPULEASE" --wait-for "$id"
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
is 'while it is to be tried again later it stands in the queue' wait_until in_queue
is 'what it came after has ended' like '*"attempt":2,*"after":\[\],*' "$out"
is 'and why' like '*"reason_kind":"held"*"why":"istriedagainin*' "$out"
run 'others start meanwhile' 0 '' '' "$GPULEASE" -n 2 -I true
run 'what cannot be signalled' 1 '' "gpulease: job $id waits to be tried again" \
	"$GPULEASE" --signal-job "$id" USR1
is 'it is waited for' still_waits first
"$GPULEASE" --cancel "$id"
ended a
ended first
is 'until it is cancelled' [ "$rc" -eq 143 ]
run 'which the history knows' 143 '' '' "$GPULEASE" --wait-for "$id"

# The command outlives the process that looked after it: a job that has not ended.
delay 0s
tries a --retries 1
waits_for first "$(id_of a)"
kill -KILL "$(pid_of a)"
ended a
is 'a command whose supervisor was killed is waited for' still_waits first
run 'and is still its command' 0 '' '' "$GPULEASE" --signal-job "$(id_of a)" KILL
ended first
is 'until it has ended, too' [ "$rc" -ne 0 ]

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
	is "a signal to a job with '$options'" [ "$rc:$out$err" = 0: ]
	is 'it has it' wait_until '[ -s "$S/a.caught" ]'
	run 'another, by its number' 0 '' '' "$GPULEASE" --signal-job "$(id_of a)" 12
	ended a
	is 'that ends it' [ "$rc" -eq 6 ]
	is 'each once' [ "$(tr '\n' ' ' <"$S/a.caught")" = 'USR1 USR2 ' ]
	run 'it has finished' 1 '' 'gpulease: job * has finished' \
		"$GPULEASE" --signal-job "$(id_of a)" USR1
done
holder a -n 2
waiter b -n 2
run 'a job that waits has no command' 1 '' 'gpulease: job * has not started yet' \
	"$GPULEASE" --signal-job "$(ticket_of b)" USR1
run 'one that does not exist' 1 '' 'gpulease: job 4711 does not exist' \
	"$GPULEASE" --signal-job 4711 USR1
run 'no signal' 125 '' "gpulease: --signal-job: there is no signal 'NONE'" "$GPULEASE" --signal-job 1 NONE
release_all a b

# --- one that never started ------------------------------------------------------------------

sim 8
holder all -n 8
id=$("$GPULEASE" --submit --max-wait 50ms -n 8 true)
run 'a job in the background that gave up' 124 '' '' "$GPULEASE" --wait-for "$id"
run 'it never started' 0 '*"started_unix_ms": null*"status": 124*' '' \
	"$GPULEASE" --history --json 1
release_all all

finish

#!/bin/sh
# --set-priority: a waiting job gets another priority, and keeps its id, its arrival and all that
# others know of it.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 1
printf '%s\n' 'max-priority = 1000' 'retry-delay = 100ms' >"$S/conf"
configured

# queue: the ids of the waiting jobs in their order
queue() {
	"$GPULEASE" --queue --json | tr ',{' '[\n*]' | sed -n 's/^ *"ticket": *\([0-9]*\)$/\1/p' |
		tr '\n' ' '
}

set_priority() {
	"$GPULEASE" --set-priority "$@"
}

holder first
waiter a
waiter b
waiter c --name same --report
A=$(ticket_of a) B=$(ticket_of b) C=$(ticket_of c)

run 'a waiting job gets a higher priority' 0 '' '' set_priority "$C" 5
is 'it comes before jobs of lower priority' like "$C $A $B *" "$(queue)"
run 'the queue shows the priority' 0 "*$C*5*" '' "$GPULEASE" --queue
run 'the same priority again changes nothing' 0 '' '' set_priority "$C" 5
run 'another waiting job gets the same priority' 0 '' '' set_priority "$A" 5
is 'jobs of one priority stand in the order of their arrival' like "$A $C $B *" "$(queue)"
run 'a priority may be negative' 0 '' '' set_priority "$A" -5
is 'then the job comes last' like "$C $B $A *" "$(queue)"
run 'a job gets its old priority back' 0 '' '' set_priority "$A" 0
run 'another job, too' 0 '' '' set_priority "$C" 0
is 'and stands where it came' like "$A $B $C *" "$(queue)"
is 'it says anew that it waits' wait_until 'grep -c waits "$S/c.err" | grep -qv "^1$"'
is 'with its id' [ -z "$(grep waits "$S/c.err" | grep -v "job $C waits")" ]

# what others know of the job
run 'one job is shown by its id' 0 "job *$C*waiting*" '' "$GPULEASE" --status "$C"
"$GPULEASE" --wait-for "$C" >"$S/wait.out" 2>&1 &
wait_pid=$!
started="$started $wait_pid"
begin after --after "$C" -n 0
begin started --after "after:$C" -n 0
wait_status() {
	wait "$wait_pid"
	[ $? = "$1" ]
}
waits_for() {
	[ -s "$S/$1.err" ] && ! runs "$1"
}
is 'a job waits for its end' wait_until 'waits_for after'
set_priority "$C" 7
is 'a job after it still waits' waits_for after
is 'a process that waits for it still waits' kill -0 "$wait_pid"
set_priority "$A" 9
stop=$(pid_of b)
kill -STOP "$stop"
run 'a stopped job is told, and obeys later' 1 '' \
	"gpulease: job $B gets it once its process acts again" set_priority "$B" 8
run 'but has one request at a time' 1 '' \
	"gpulease: job $B has another request for its priority; try again" set_priority "$B" 9
kill -CONT "$stop"
is 'once it goes on, it has the priority' wait_until \
	'like "$A $B $C *" "$(queue)"'
release first
is 'the first of the new order starts' wait_until 'runs a'
is 'the job runs with its id' [ "$(id_of a)" = "$A" ]
run 'a running job gets no priority' 1 '' \
	"gpulease: job $A has started; only a waiting job gets a priority" set_priority "$A" 3
release_all a b
release c 3
ended c
is 'the process that waits for it gets its status' wait_status 3
is 'the job after it starts' wait_until 'runs after'
release_all after
run 'an ended job gets no priority' 1 '' "gpulease: job $C has finished" set_priority "$C" 3
run 'an unknown job gets no priority' 1 '' 'gpulease: job 9999 is unknown; *' set_priority 9999 3

# cancels, background jobs, further attempts
holder first
id=$("$GPULEASE" --submit --retries 1 sh -c 'echo "$GPULEASE_ID try"; exit 3')
is 'a background job waits' wait_until 'like "$id *" "$(queue)"'
run 'a background job gets another priority' 0 '' '' set_priority "$id" 2
gone=$("$GPULEASE" --submit true)
is 'a further background job waits' wait_until 'like "*$gone *" "$(queue)"'
set_priority "$gone" 4
run 'a job with a new ticket is cancelled by its id' 0 '' '' "$GPULEASE" --cancel "$gone"
run 'the history has its end' 0 "*$gone*cancelled*" '' "$GPULEASE" --history
release_all first
run 'its status is that of its last attempt' 3 '' '' "$GPULEASE" --wait-for "$id"
run 'both attempts have run with its id' 0 "*$id try*$id try*" '' "$GPULEASE" --log "$id"

# a job that starts by its new priority needs no new ticket
holder low --preemptible
waiter high --max-wait 1h
run 'a priority that sends a job back' 0 '' '' set_priority "$(ticket_of high)" 3
is 'the job starts' wait_until 'runs high'
rm -f "$S/low.runs"
release_all high low

# the ticket file does not grow by what is over; a start sweeps a group at least
holder first
waiter often
tickets=$(echo "$XDG_STATE_HOME"/gpulease/sim-*)/tickets
OFTEN=$(ticket_of often)
for each in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32; do
	set_priority "$OFTEN" 2 && set_priority "$OFTEN" 1 && set_priority "$OFTEN" 0
done
size=$(stat -c %s "$tickets")
swept() {
	"$GPULEASE" -n 0 true
	[ $(($(stat -c %b "$tickets") * 512)) -lt $((size / 2)) ]
}
if [ "$size" -lt 90000 ]; then
	is 'each change takes a ticket' false
else
	is 'tickets that a job has left, and requests that it has obeyed, are swept' wait_until swept
fi
release_all first often

# a line of a jobs file
printf 'true\n' >"$S/jobs"
holder first
"$GPULEASE" --batch "$S/jobs" >"$S/batch.out" 2>&1 &
batch_pid=$!
started="$started $batch_pid"
is 'a job of a batch waits' wait_until '[ -n "$(queue)" ]'
line=$(queue)
run 'a job of a batch gets another priority' 0 '' '' set_priority "${line% }" 6
release_all first
is 'the batch ends well' wait "$batch_pid"

finish

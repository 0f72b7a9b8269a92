#!/bin/sh
# Jobs that begin at a time (--begin), or once they are released (--hold, --release).
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 1

# queue: the JSON of the queue into $S/out, which has_json reads
queue() {
	"$GPULEASE" --queue --json >"$S/out"
}

# number KEY: the first value of this member in $S/out
number() {
	grep -o "\"$1\": *[0-9]*" "$S/out" | head -n 1 | tr -dc '0-9'
}

# --- --begin -------------------------------------------------------------------------------

waiter a --begin now+1hour
is 'the waiting line has the time' like "gpulease: job $(ticket_of a) waits, 1st in the queue: begins [0-9]*:[0-9][0-9]" \
	"$(cat "$S/a.err")"
run 'a job that begins later delays no other' 0 'x' '' "$GPULEASE" -I echo x
is '--queue has the time' like '*begins [0-9]*:[0-9][0-9] *' "$("$GPULEASE" --queue)"
queue
has_json 'the JSON has the time' 'held false null 1' queue.0.reason_kind queue.0.on_hold \
	queue.0.held_by queue.0.attempt
is 'it is in an hour' [ $(($(number begin_at_unix_ms) / 100000 - $(date +%s) / 100)) -ge 35 ]
run 'a waiting job can be cancelled' 0 '' '' "$GPULEASE" --cancel "$(ticket_of a)"
ended a

begin b --begin now+2
wait_until 'queue; [ -n "$(number begin_at_unix_ms)" ]'
due=$(number begin_at_unix_ms)
is 'the job starts by itself' wait_until 'runs b'
"$GPULEASE" --status "$(id_of b)" --json >"$S/out"
is 'it starts at its time' [ "$(number started_unix_ms)" -ge $((due - 100)) ]
is 'its id is the one that it was given' [ "$(id_of b)" = "$(ticket_of b)" ]
waiter c
waiter d --begin 2020-01-01
is 'a time that has passed means now, and is no better place' like \
	"*job $(ticket_of d) waits, 2nd in the queue: *" "$(cat "$S/d.err")"
release_all b c d

run '--dry-run has the time, with the date of another day' 124 \
	"would wait, 1st in the queue: begins 2[0-9][0-9][0-9]-*-* 00:00" '' \
	"$GPULEASE" --dry-run --begin 'now+3days' --begin "$(($(date +%Y) + 1))-03-04" true
run 'without a GPU it begins later, too' 0 'late' '*begins*' "$GPULEASE" -n 0 --begin now+1 echo late
run '--max-wait counts from the beginning' 0 'x' '*begins*' "$GPULEASE" --begin now+2 --max-wait 1s echo x
holder e
run 'and ends the wait then' 124 '' '*begins*gave up after 2s*' \
	"$GPULEASE" --begin now+1 --max-wait 2s true
run 'as --immediate does' 124 '' '*not available at once*' "$GPULEASE" --begin now+1 -I true
release_all e
run 'a job that fails is tried again after its delay' 7 '' '*begins*' "$GPULEASE" --begin now+1 \
	--retries 1 sh -c 'exit 7'
run 'the forms are named' 125 '' "gpulease: --begin: '9am' is not a time to begin; write 22:00, 'fri 9:00', *" \
	"$GPULEASE" --begin 9am true
run 'srun takes the letter' 0 'x' '*begins*' "$GPULEASE" -b now+1 echo x

# --- --hold --------------------------------------------------------------------------------

run 'a held job is submitted' 0 '[0-9]*' '' "$GPULEASE" --submit --hold sh -c "echo ran >>$S/ran"
held=$out
is '--queue says that it is held' wait_until \
	'"$GPULEASE" --queue | grep -q "is held; gpulease --release ID lets it go"'
queue
has_json 'the JSON, too' 'held true null null' queue.0.reason_kind queue.0.on_hold \
	queue.0.begin_at_unix_ms queue.0.start_at_unix_ms
run 'a held job delays no other' 0 'x' '' "$GPULEASE" -I echo x
# A stand-in for the notifier keeps what it is told.
mkdir "$S/told"
cp "$GPULEASE" "$S/told/gpulease"
printf '#!/bin/sh\nexec cat >>%s\n' "$S/told/lines" >"$S/told/gpulease-view"
chmod +x "$S/told/gpulease-view"
run 'a held job with a notifier' 0 '[0-9]*' '' "$S/told/gpulease" --submit --hold --notify : true
told=$out
wait_until '"$GPULEASE" --queue | grep -q "^ *[0-9]* *$told "'
before=$(awk '{printf "%.0f", $1 * 1000}' /proc/uptime)
"$GPULEASE" --release "$told"
is 'its wait is told from its release on' wait_until 'grep -q "^e" "$S/told/lines"'
is 'and not before' [ "$(sed -n 's/^q [0-9]* \([0-9]*\) .*/\1/p' "$S/told/lines")" -ge "$((before - 10))" ]

holder f
waiter g
run 'a job that is not held cannot be released' 1 '' "gpulease: job $(ticket_of g) is not held" \
	"$GPULEASE" --release "$(ticket_of g)"
run 'nor one that runs' 1 '' "gpulease: job $(id_of f) is not held" "$GPULEASE" --release "$(id_of f)"
run 'nor one that is unknown' 1 '' 'gpulease: job 9999 is unknown;*' "$GPULEASE" --release 9999
run 'a held job cannot have to start at once' 125 '' '*-I and --hold exclude each other*' "$GPULEASE" -I --hold true
run '--release needs an id' 125 '' 'gpulease: --release needs the id of a job*' "$GPULEASE" --release
is 'it has not run' [ ! -e "$S/ran" ]
run 'it is released' 0 '' '' "$GPULEASE" --release "$held"
wait_until 'queue; ! grep -q "\"on_hold\": *true" "$S/out"'
has_json 'its place is that of a job that comes now' "$(ticket_of g) $held 2" queue.0.ticket \
	queue.1.ticket queue.1.position
release_all f
wait_until 'runs g'
is 'the job that came meanwhile starts first' [ ! -e "$S/ran" ]
release_all g
run 'the released job runs' 0 '' '' "$GPULEASE" --wait-for "$held" --max-wait 30s
is 'once' [ "$(cat "$S/ran")" = ran ]
run 'it has ended' 1 '' "gpulease: job $held has finished" "$GPULEASE" --release "$held"

waiter h -H
run 'a held job can be cancelled' 0 '' '' "$GPULEASE" --cancel "$(ticket_of h)"
ended h
waiter i --hold --begin now+1hour
run 'a released job still begins at its time' 0 '' '' "$GPULEASE" --release "$(ticket_of i)"
is 'as its line says' wait_until '"$GPULEASE" --queue | grep -q "begins [0-9]*:[0-9][0-9]"'
kill "$(pid_of i)"
ended i
waiter j --hold --max-wait 100ms
holder k
run 'the time to wait counts from the release' 0 '' '' "$GPULEASE" --release "$(ticket_of j)"
ended j
is 'and is then over' [ "$rc" = 124 ]
release_all k
run 'an array of ids' 0 '' '' sh -c 'a=$("$0" --submit --hold true) && b=$("$0" --submit -H true) &&
	"$0" --release "$a,$b" && exec "$0" --wait-for "$a" "$b" --max-wait 30s' "$GPULEASE"

# --- jobs that come after ---------------------------------------------------------------------

id=$("$GPULEASE" --submit --hold sh -c 'exit 3')
waiter l --after "$id"
waiter m --after-ok "$id"
waiter n -n 0 -d "after:$id"
holder busy
"$GPULEASE" --release "$id"
is 'a released job waits for its GPU' wait_until '"$GPULEASE" --queue | grep -q "needs 1 GPU, none is free"'
is 'and a job that waits for its start waits on' like '*which has not started*' "$("$GPULEASE" --queue)"
! runs n || not_ok 'it did not wait'
release_all busy
is 'until then' wait_until 'runs n'
is 'a job that comes after a held one starts after it' wait_until 'runs l'
ended m
is 'and one that needs its success gives up' like "*gave up: job $id has ended with status 3" \
	"$(cat "$S/m.err")"
release_all l n

# --- steps, adopted processes ----------------------------------------------------------------

run 'a step does not begin later' 125 '' 'gpulease: this is a step of job *, and a step does not wait; leave --begin out' \
	"$GPULEASE" "$GPULEASE" --begin now+1hour true
run 'nor is it held' 125 '' 'gpulease: *leave --hold out' "$GPULEASE" "$GPULEASE" --hold true
run 'nor is a process that runs already' 125 '' 'gpulease: --pid leases *' \
	"$GPULEASE" --lease-only --pid $$ --hold
# a job that is not there yet holds up no other of its name
holder busy
waiter first --hold --name nightly --singleton
waiter second --name nightly --singleton
release busy
is 'a held singleton holds back no other of its name' wait_until 'runs second'
run 'it is released' 0 '' '' "$GPULEASE" --release "$(ticket_of first)"
is 'and then waits for the other' wait_until \
	'"$GPULEASE" --queue | grep -q "job $(id_of second) of the same name comes first"'
release second
is 'until that has ended' wait_until 'runs first'
release_all busy first second

# the process of a held job that does not act
waiter still --hold
stop=$(pid_of still)
kill -STOP "$stop"
tickets=$(echo "$XDG_STATE_HOME"/gpulease/sim-*)/tickets
run 'a stopped job is released' 0 '' '' "$GPULEASE" --release "$(ticket_of still)"
size=$(stat -c %s "$tickets")
run 'once more' 0 '' '' "$GPULEASE" --release "$(ticket_of still)"
is 'a second request takes no room' [ "$(stat -c %s "$tickets")" = "$size" ]
kill -CONT "$stop"
is 'once it goes on, it runs' wait_until 'runs still'
release_all still
finish

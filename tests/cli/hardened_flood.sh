#!/bin/sh
# One user of the set-group-ID form floods the state with what a user can append or leave there.
# What remains is bounded by number, and the job of another user starts as before.
#
#	hardened_flood.sh			some hundreds of each kind; only numbers are results
#	hardened_flood.sh KIND SECONDS		one kind for so long, and then how long a start of
#						another user takes; more than twice as long as
#						before fails.  For a quiet machine.
#
# The kinds: tickets, lists, held, temporary, bells, requests, history, samples, notes
# shellcheck disable=SC2016,SC2154,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
# the arguments pass through own_mounts.sh, which starts the script again
hardened 'floods by one user' "$@"
attack=$TOOLS/attack
driver 'gpus 4'

# --- what is left ------------------------------------------------------------------------------

# blocks: of 512 bytes, in the ticket file
blocks() {
	stat -c %b "$M/state/tickets"
}

# fifos: in live/ and bell/, temporary names, too
fifos() {
	find "$M/state/live" "$M/state/bell" -mindepth 1 | wc -l
}

# --- the kinds ---------------------------------------------------------------------------------

# Each is a loop of user 1, which ends by itself after $1 rounds, or goes on for ever with $1 = 0.
# A function KIND_begin comes before it, if there is one.

loop='n=0; while n=$((n + 1)); [ "$n" != "$1" ]; do'

kind_tickets() {
	as 1 sh -c "$loop"' "$0" -n 0 true; done' "$ROOT" "$1"
}

# with the command line of the job in $2
misusing() {
	as 1 sh -c "$loop"' "$0" -n 0 -- sh -c "$2" - "$3" "$4"; done >/dev/null' \
		"$ROOT" "$1" "$2" "$attack" "$S/open/socket"
}

kind_lists() {
	misusing "$1" '"$1" fd "$(basename /proc/$$/fd/1??)" acl'
}

# the FIFO of each job is held by a process that is none of the job's
held_begin() {
	setpriv --reuid=$((UID_BASE + 1)) --regid=$((UID_BASE + 1)) --clear-groups -- \
		"$attack" keep "$S/open/socket" &
	started="$started $!"
	wait_until '[ -S "$S/open/socket" ]' || bail 'no socket'
}

kind_held() {
	misusing "$1" '"$1" give "$2" "$(basename /proc/$$/fd/1??)"'
}

# killed at any moment of its start
kind_temporary() {
	as 1 sh -c "$loop"' "$0" -n 0 true & kill -KILL $!; done' "$ROOT" "$1" 2>/dev/null
}

# killed once it waits
kind_bells() {
	as 1 sh -c "$loop"' "$0" -n 1 --gpu-ids 0 true 2>/dev/null & sleep 0.03; kill -KILL $!; done' \
		"$ROOT" "$1" 2>/dev/null
}

requests_begin() {
	i=0
	while [ $((i += 1)) -le 50 ]; do
		"$U1" -n 0 -- sh -c 'trap "" TERM; : >"$1/stubborn.$2"; while :; do sleep 1000; done' \
			- "$S/open" "$i" &
		started="$started $!"
	done
	wait_until '[ "$(ls "$S/open" | grep -c stubborn)" -eq 50 ]' || bail 'the jobs do not run'
}

kind_requests() {
	as 1 sh -c "$loop"' timeout -s KILL 0.2 "$0" --cancel mine --yes; done' \
		"$ROOT" "$1" >/dev/null 2>&1
}

kind_history() {
	as 1 sh -c "$loop"' "$0" -n 0 --retries 1 true; done' "$ROOT" "$1"
}

samples_begin() {
	by 1 holder sampled -n 1
}

kind_samples() {
	as 1 sh -c "$loop"' "$0" --sample "$2"; done' "$ROOT" "$1" "$(id_of sampled)" >/dev/null 2>&1
}

kind_notes() {
	"$U1" -n 1 -- sh -c "$loop"' "$0" --note "note $n"; done' "$ROOT" "$1"
}

begin_kind() {
	if type "${1}_begin" >/dev/null 2>&1; then
		"${1}_begin"
	fi
}

# --- with a clock ------------------------------------------------------------------------------

# measure: sets $passed and $used, the time and the CPU time of a start of user 2 on an idle GPU, in
# microseconds, and prints them with $1
measure() {
	as 2 "$TOOLS/starttime" 40 "$ROOT" -n 1 true >"$S/times" || bail 'a start has failed'
	{ read -r passed && read -r used; } <"$S/times"
	echo "# $1: $passed us, CPU $used us; $(blocks) blocks of tickets, $(fifos) names beside," \
		"$(du -b -s "$M/state" | cut -f 1) bytes"
}

timed() {
	by 3 holder other --gpu-ids 0
	by 1 waiter first --gpu-ids 0
	begin_kind "$1"
	measure before
	before=$passed before_used=$used
	"kind_$1" 0 &
	flooding=$!
	sleep "$2"
	# the loop of the user, and then the shell that has started it
	pkill -KILL -P "$flooding" >/dev/null 2>&1
	wait "$flooding" 2>/dev/null
	# what the flood has left stays; other load on the machine passes
	measures=0 ratio=201
	while [ "$ratio" -gt 200 ] && [ $((measures += 1)) -le 5 ]; do
		measure after
		ratio=$((passed * 100 / before))
	done
	echo "# ratio $((ratio / 100)).$(printf %02d $((ratio % 100)))," \
		"of the CPU time $((used * 100 / before_used)) %"
	is "after $2 s of $1 of one user a start of another takes at most twice as long" \
		[ "$ratio" -le 200 ]
}

if [ $# -ge 2 ]; then
	timed "$1" "$2"
	finish
fi

# --- by number -----------------------------------------------------------------------------------

# starts N: so many starts of another user, each of which sweeps
starts() {
	as 2 "$TOOLS/starttime" "$1" "$ROOT" -n 0 true >/dev/null
}

# few TEXT: a result, good if the tickets and FIFOs of a flood of 200 were swept.  A page of tickets
# has 8 blocks; the last group of 64 records, and names that no sweep has looked at, stay.
few() {
	starts 150
	is "$1: the tickets are swept" [ "$(blocks)" -lt 200 ]
	is "$1: the FIFOs are swept" [ "$(fifos)" -lt 150 ]
}

"$U3" -n 0 true # makes the files
by 3 holder other --gpu-ids 0
by 1 waiter first --gpu-ids 0

kind_lists 200
few 'after 200 jobs whose FIFOs were closed to others by a list'
held_begin
kind_held 200
few 'after 200 jobs whose FIFOs another process holds'
kind_temporary 200
few 'after 200 jobs that were killed as they began'
# the FIFO of a job with a GPU, closed to others: no process of the job lives
"$U1" -n 1 --gpu-ids 1 -- sh -c '"$1" fd "$(basename /proc/$$/fd/1??)" acl' - "$attack" >/dev/null
run 'a lease whose FIFO is closed by a list is over with its job' 0 '' '' \
	"$U2" --immediate -n 1 --gpu-ids 1 true

requests_begin
before=$(blocks)
kind_requests 15
is '15 requests to cancel 50 jobs that live on take the room of one' \
	[ $(($(blocks) - before)) -le 80 ]
run 'and root can end the jobs' 0 '*' '*' "$ROOT" --cancel all --grace 0 --yes
finish

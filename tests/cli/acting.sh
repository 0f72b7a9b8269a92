#!/bin/sh
# --cancel, --pause and --resume.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# ticket_of NAME: of a job that has said that it waits
ticket_of() {
	sed -n 's/.*ticket \([0-9]*\) waits.*/\1/p' "$S/$1.err" | head -n 1
}

# --- cancel ------------------------------------------------------------------------------

holder busy -n 8
waiter one -n 1
run 'a waiting ticket is cancelled' 0 '' '' "$GPULEASE" --cancel "$(ticket_of one)"
ended one
is 'its process ends as by TERM' [ "$rc" -eq 143 ]
# who does not obey within a second is ended
says_who() {
	waiter one -n 1
	"$GPULEASE" --cancel "$(ticket_of one)" || return
	ended one
	grep -q 'was cancelled by' "$S/one.err"
}
is 'and says who did it' sometimes says_who
run 'again: it has finished' 1 '' "gpulease: ticket $(ticket_of one) has finished" \
	"$GPULEASE" --cancel "$(ticket_of one)"
run 'an id that was never given' 1 '' 'gpulease: ticket 4711 does not exist' \
	"$GPULEASE" --cancel 4711
run 'what is no id' 125 '' 'gpulease: *' "$GPULEASE" --cancel abc
run 'no id at all' 125 '' 'gpulease: *' "$GPULEASE" --cancel
waiter two -n 1
stop two
run 'a stopped waiter, too' 0 '' '' "$GPULEASE" --cancel "$(ticket_of two)" --grace 100ms
ended two
waiter three -n 1
waiter four -n 8
run 'several at once, and one that is unknown' 1 '' '*4711 does not exist' \
	"$GPULEASE" --cancel "$(ticket_of three),4711" "$(ticket_of four)"
ended three
ended four
waiter last -n 8
run 'a running job is ended' 0 '' '' "$GPULEASE" --cancel "$(id_of busy)"
ended busy
is 'by TERM' [ "$rc" -eq 143 ]
is 'and its GPUs are handed on' wait_until 'runs last'
run 'the history says who ended it' 0 "*cancelled by $(id -un)*" '' "$GPULEASE" --history 1
release_all last

begin stubborn -n 8
wait_until 'runs stubborn'
"$GPULEASE" -n 0 --name stubborn sh -c 'trap "" TERM; echo $GPULEASE_ID >"$0"
	while :; do sleep 1; done' "$S/stubborn.id" >/dev/null 2>&1 </dev/null &
started="$started $!"
wait_until "[ -s '$S/stubborn.id' ]"
run 'one that ignores TERM is killed' 0 '' '' \
	"$GPULEASE" --cancel "$(cat "$S/stubborn.id")" --grace 100ms
release_all stubborn

"$GPULEASE" -n 8 sh -c 'sleep 1000 & echo $GPULEASE_ID' </dev/null >"$S/left" 2>/dev/null
run 'what a dead job left behind is ended by its id' 0 '' '' \
	"$GPULEASE" --cancel "$(cat "$S/left")"
run 'then its GPUs are free' 0 '' '' "$GPULEASE" -n 8 -I true

# --- pause and resume --------------------------------------------------------------------

run 'a GPU is paused' 0 '' '' "$GPULEASE" --pause 0 --reason 'fan is loud'
run 'it is not leased, and why' 124 '' '*GPU 0 is paused by *: fan is loud' \
	"$GPULEASE" -n 8 -I true
run 'the others are' 0 '1,2,3,4,5,6,7' '' "$GPULEASE" -n 7 sh -c 'echo $CUDA_VISIBLE_DEVICES'
waiter all -n 8
holder some -n 7
is 'who waits for a paused GPU stops nobody' [ "$(gpus_of some)" = 1,2,3,4,5,6,7 ]
release_all some
run 'a list and a range' 0 '' '' "$GPULEASE" --pause 1 3-5
run 'twice is once' 0 '' '' "$GPULEASE" --pause 1
run 'without another reason' 0 '' '' "$GPULEASE" --pause 0-3
run 'the reason stays' 0 '*GPU 0: paused by *: fan is loud*' '' "$GPULEASE" --status
run 'with another' 0 '' '' "$GPULEASE" --pause 0-1 --reason 'a new fan'
run 'that is it' 0 '*GPU 0,1: paused by *: a new fan*' '' "$GPULEASE" --status
long=$(printf '%0160d' 0)
run 'one that is too long' 125 '' 'gpulease: --reason has 160 bytes, and 159 are kept; shorten it' \
	"$GPULEASE" --pause 6 --reason "$long"
run 'pauses nothing' 0 '6' '' "$GPULEASE" --gpu-ids 6 sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'the longest' 0 '' '' "$GPULEASE" --pause 1 --reason "${long#0}"
run 'is kept' 0 "*GPU 1: paused by *: ${long#0}
*" '' "$GPULEASE" --status
run 'they are resumed' 0 '' '' "$GPULEASE" --resume 0-5
run 'without their reasons' 0 '' '' "$GPULEASE" --pause 0
run 'of before' 0 "*GPU 0: paused by $(id -un)
*" '' "$GPULEASE" --status
run 'the last, too' 0 '' '' "$GPULEASE" --resume 0
is 'who waits is told' wait_until 'runs all'
release_all all
run 'a GPU that is not there' 1 '' 'gpulease: there is no GPU 9' "$GPULEASE" --pause 9
run 'by uuid' 0 '' '' "$GPULEASE" --pause GPU-51111111-0000-4000-8000-000000000002
run 'a uuid of none' 1 '' "gpulease: there is no GPU 'GPU-9', or more than one" \
	"$GPULEASE" --resume GPU-9
run 'all again' 0 '' '' "$GPULEASE" --resume 2
holder using -n 8
run 'one in use is paused for the next' 0 '' '' "$GPULEASE" --pause 2
release_all using
run 'so it is' 124 '' '*GPU 2 is paused*' "$GPULEASE" -n 8 -I true
run 'and resumed' 0 '' '' "$GPULEASE" --resume 2

finish

#!/bin/sh
# --cancel, --pause and --resume.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# --- cancel ------------------------------------------------------------------------------

holder busy -n 8
waiter one -n 1
run 'a waiting job is cancelled' 0 '' '' "$GPULEASE" --cancel "$(ticket_of one)"
ended one
is 'the cancelled waiter ends as if by TERM' [ "$rc" -eq 143 ]
# A job that does not end itself within a second is killed and prints nothing.
says_who() {
	waiter one -n 1
	"$GPULEASE" --cancel "$(ticket_of one)" || return
	ended one
	grep -q 'was cancelled by' "$S/one.err"
}
is 'the cancelled waiter says which user cancelled it' sometimes says_who
run 'a second --cancel of a job says that the job has finished' 1 '' \
	"gpulease: job $(ticket_of one) has finished" \
	"$GPULEASE" --cancel "$(ticket_of one)"
run 'an id that was never given out cannot be cancelled' 1 '' 'gpulease: job 4711 is unknown; --status and --history list the jobs' \
	"$GPULEASE" --cancel 4711
run '--cancel refuses an empty id' 125 '' "gpulease: --cancel: '' is not the id of a job*" \
	"$GPULEASE" --cancel 1,,2
run '--cancel without an id is refused' 125 '' 'gpulease: *' "$GPULEASE" --cancel
waiter two -n 1
stop two
run 'a stopped waiter is cancelled' 0 '' '' "$GPULEASE" --cancel "$(ticket_of two)" --grace 100ms
ended two
waiter three -n 1
waiter four -n 8
run '--cancel with several ids reports the unknown one' 1 '' '*4711 is unknown;*' \
	"$GPULEASE" --cancel "$(ticket_of three),4711" "$(ticket_of four)"
ended three
ended four
waiter last -n 8
run 'a running job is cancelled' 0 '' '' "$GPULEASE" --cancel "$(id_of busy)"
ended busy
is 'the cancelled command ends by TERM' [ "$rc" -eq 143 ]
is 'the GPUs of the cancelled job go to the next job' wait_until 'runs last'
run 'the history says which user cancelled the job' 0 "*cancelled by $(id -un)*" '' \
	"$GPULEASE" --history 1
release_all last

begin stubborn -n 8
wait_until 'runs stubborn'
"$GPULEASE" -n 0 --name stubborn sh -c 'trap "" TERM; echo $GPULEASE_ID >"$0"
	while :; do sleep 1; done' "$S/stubborn.id" >/dev/null 2>&1 </dev/null &
started="$started $!"
wait_until "[ -s '$S/stubborn.id' ]"
run 'a command that ignores TERM is killed' 0 '' '' \
	"$GPULEASE" --cancel "$(cat "$S/stubborn.id")" --grace 100ms
release_all stubborn

"$GPULEASE" -n 8 sh -c 'sleep 1000 & echo $GPULEASE_ID' </dev/null >"$S/left" 2>/dev/null
run '--cancel ends the processes that an ended job has left' 0 '' '' \
	"$GPULEASE" --cancel "$(cat "$S/left")"
run 'after that the GPUs of the ended job are free' 0 '' '' "$GPULEASE" -n 8 -I true

# --- pause and resume --------------------------------------------------------------------

run 'a GPU is paused' 0 '' '' "$GPULEASE" --pause 0 --reason 'fan is loud'
run 'a paused GPU is not leased, and the refusal has the reason' 124 '' \
	'*GPU 0 is paused by *: fan is loud' \
	"$GPULEASE" -n 8 -I true
run 'the GPUs that are not paused are leased' 0 '1,2,3,4,5,6,7' '' "$GPULEASE" -n 7 \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
waiter all -n 8
holder some -n 7
is 'a job that waits for a paused GPU stops no other job' [ "$(gpus_of some)" = 1,2,3,4,5,6,7 ]
release_all some
run '--pause takes a list and a range' 0 '' '' "$GPULEASE" --pause 1 3-5
run 'to pause a GPU twice does no harm' 0 '' '' "$GPULEASE" --pause 1
run 'a paused GPU is paused again without a reason' 0 '' '' "$GPULEASE" --pause 0-3
run 'a pause without a reason keeps the earlier reason' 0 '*GPU 0: paused by *: fan is loud*' \
	'' "$GPULEASE" --status
run 'a paused GPU is paused again with another reason' 0 '' '' "$GPULEASE" --pause 0-1 \
	--reason 'a new fan'
run 'the new reason replaces the earlier one' 0 '*GPU 0,1: paused by *: a new fan*' '' \
	"$GPULEASE" --status
run 'a refusal names all GPUs that are paused' 124 '' \
	'*; GPU 0 is paused by *: a new fan; also paused: GPU 1,2,3,4,5' \
	"$GPULEASE" -n 8 -I true
long=$(printf '%0160d' 0)
run 'a reason that is too long is refused' 125 '' \
	'gpulease: --reason has 160 bytes, and 159 are kept; shorten it' \
	"$GPULEASE" --pause 6 --reason "$long"
run 'a refused --pause pauses no GPU' 0 '6' '' "$GPULEASE" --gpu-ids 6 \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'the longest possible reason is accepted' 0 '' '' "$GPULEASE" --pause 1 --reason "${long#0}"
run 'the longest possible reason is kept whole' 0 "*GPU 1: paused by *: ${long#0}
*" '' "$GPULEASE" --status
run 'a range of GPUs is resumed' 0 '' '' "$GPULEASE" --resume 0-5
run 'a resumed GPU is paused again without a reason' 0 '' '' "$GPULEASE" --pause 0
run 'a pause after a resume does not have the old reason' 0 "*GPU 0: paused by $(id -un)
*" '' "$GPULEASE" --status
run 'the last paused GPU is resumed' 0 '' '' "$GPULEASE" --resume 0
is 'after the resume the waiting job starts' wait_until 'runs all'
release_all all
run '--pause refuses an index without a GPU' 1 '' 'gpulease: there is no GPU 9' "$GPULEASE" \
	--pause 9
run 'a GPU is paused by its UUID' 0 '' '' "$GPULEASE" \
	--pause GPU-51111111-0000-4000-8000-000000000002
run '--resume refuses a UUID that no GPU has' 1 '' \
	"gpulease: no GPU, or more than one, has a UUID that begins with 'GPU-9'" \
	"$GPULEASE" --resume GPU-9
run 'the GPU that was paused by its UUID is resumed by its index' 0 '' '' "$GPULEASE" --resume 2
holder using -n 8
run 'a GPU in use can be paused' 0 '' '' "$GPULEASE" --pause 2
release_all using
run 'after the job that used it, the paused GPU is not leased' 124 '' '*GPU 2 is paused*' \
	"$GPULEASE" -n 8 -I true
run 'the GPU that was paused while in use is resumed' 0 '' '' "$GPULEASE" --resume 2

finish

#!/bin/sh
# Jobs that are tried again after a failure, and with more memory after lack of memory.
# shellcheck disable=SC2016,SC2034,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
printf 'retry-delay = 50ms\nretry-delay-max = 100ms\n' >"$S/soon"
printf 'retry-delay = 1h\nretry-delay-max = 1h\n' >"$S/late"

# attempts: how often the command ran; each attempt notes its id, GPUs and memory
cat >"$S/note" <<'END'
echo "$GPULEASE_ID $CUDA_VISIBLE_DEVICES ${GPULEASE_VRAM_MIB-}" >>"$1/notes"
count=$(grep -c . "$1/notes")
END
attempts() {
	grep -c . "$S/notes"
}
again() {
	rm -f "$S/notes"
}

# job OPTION… CODE: runs the shell code, in which $count is the number of the attempt
job() {
	again
	last=
	for word; do
		shift
		[ -z "$last" ] || set -- "$@" "$last"
		last=$word
	done
	"$GPULEASE" -Q --config "$S/soon" "$@" sh -c '. "$1/note"; '"$last" - "$S"
}

# --- failures ----------------------------------------------------------------------------

run 'a job that fails ends with its status after the last retry' 3 '' '' \
	job --retries 2 'exit 3'
is '--retries 2 makes three attempts' [ "$(attempts)" = 3 ]
is 'all attempts have the same job id' [ "$(cut -d ' ' -f 1 "$S/notes" | sort -u | grep -c .)" = 1 ]
run 'a job that succeeds in a later attempt ends with 0' 0 '' '' job --retries 5 '[ $count = 3 ]'
is 'no attempt follows a success' [ "$(attempts)" = 3 ]
run 'a job that succeeds at once ends with 0' 0 '' '' job --retries 5 'exit 0'
is 'a job that succeeds at once has one attempt' [ "$(attempts)" = 1 ]
# the shell prints a message
run 'a job that a signal ends ends with its status' 137 '' '*' job --retries 1 'kill -KILL $$'
is 'a job that a signal ends is tried again' [ "$(attempts)" = 2 ]
run 'a job that SIGINT ends ends with 130' 130 '' '' job --retries 5 'kill -INT $$'
is 'a job that SIGINT ends is not tried again' [ "$(attempts)" = 1 ]
run 'a shell that exits with 130 ends with 130' 130 '' '' job --retries 5 'exit 130'
is 'a shell that exits with 130 is not tried again' [ "$(attempts)" = 1 ]
run 'a job without GPUs ends with its status after the last retry' 3 '' '' job -n 0 --retries 1 'exit 3'
is 'a job without GPUs is tried again, too' [ "$(attempts)" = 2 ]
run 'messages announce the next attempt' 1 '' '*ended: exit status 1,*
gpulease: job * is tried again in * (attempt 2)
*attempt 2, ended: exit status 1,*' "$GPULEASE" --config "$S/soon" --retries 1 --report \
	sh -c 'exit 1'
sim 1
again
: >"$S/late.err"
"$GPULEASE" --config "$S/late" --retries 1 --report sh -c '. "$1/note"; exit 1' - "$S" \
	2>"$S/late.err" &
late=$!
started="$started $late"
is 'a job waits for its second attempt' wait_until 'grep -q "tried again" "$S/late.err"'
is 'the GPU of a job is free between two attempts' wait_until '"$GPULEASE" -Q -I true'
"$GPULEASE" --cancel "$(cut -d ' ' -f 1 "$S/notes")"
wait "$late"
is 'a job that is cancelled between two attempts ends with 143' [ $? = 143 ]
is 'a cancelled job has no further attempt' [ "$(attempts)" = 1 ]
for signal in TERM HUP; do
	again
	: >"$S/late.err"
	"$GPULEASE" --config "$S/late" --retries 1 \
		--report sh -c '. "$1/note"; exit 1' - "$S" 2>"$S/late.err" </dev/null &
	late=$!
	started="$started $late"
	wait_until 'grep -q "tried again" "$S/late.err"'
	id=$(cut -d ' ' -f 1 "$S/notes")
	# until the job is in the queue: there it obeys signals
	wait_until '"$GPULEASE" --queue | grep -q " $id  *2 "'
	kill -$signal "$late"
	wait "$late"
	late=$?
	is "$signal ends a job between two attempts" [ "$late" -gt 128 ]
	run 'the history has the last attempt of a job ended by a signal' 0 "*$id *2 *failed *$late *" '' "$GPULEASE" --history
done

# --- --immediate and --max-wait ----------------------------------------------------------

run 'a job with -I ends with its status after the last retry' 3 '' '' \
	job -I --retries 2 'exit 3'
is 'a job with -I is tried again as often as allowed' [ "$(attempts)" = 3 ]
run 'the delay before an attempt does not count for --max-wait' 3 '' '' \
	job --max-wait 1ms --retries 2 'exit 3'
is 'a job with a short --max-wait has all its attempts' [ "$(attempts)" = 3 ]
# behind NAME OPTION…: a job with these options fails, and waits behind the job `other` for its
# second attempt
behind() {
	holder "$@" --config "$S/soon" --retries 1
	waiter other
	release "$1" 3
	wait_until 'runs other'
	rm "$S/$1.runs"
}
behind at-once -I
is 'a job with -I may wait for GPUs before its second attempt' \
	wait_until 'grep -q waits "$S/at-once.err"'
release_all other
is 'a job with -I that waited starts its second attempt' wait_until 'runs at-once'
release at-once 4
ended at-once
is 'the second attempt decides the exit status' [ "$rc" = 4 ]
behind patient --max-wait 10ms
ended patient
is '--max-wait holds for the second attempt' [ "$rc" = 124 ]
is 'the second attempt says that it gave up' grep -q 'gave up after <1s: ' "$S/patient.err"
release_all other

# --- its input ---------------------------------------------------------------------------

printf 'a\nb\n' >"$S/lines"
mkfifo "$S/fifo"
whole='a
b'
run 'each attempt reads its input from the beginning' 3 "$whole
$whole" '' job --retries 1 -i "$S/lines" 'cat; exit 3'
run 'an attempt with more memory reads its input from the beginning' 0 '' '' job --oom-retries 1 --vram 1G -i "$S/lines" \
	-o "$S/log" 'cat; [ $count = 2 ] || { echo "CUDA out of memory."; exit 1; }'
is 'all attempts write to one output file' [ "$(cat "$S/log")" = "$whole
CUDA out of memory.
$whole" ]
# until the limit leaves each attempt the time to read
for limit in 300ms 3s 30s; do
	try job -t $limit --on-limit requeue --max-requeues 1 -i "$S/lines" \
		'cat; : >"$1/read$count"; exec sleep 1000'
	[ ! -e "$S/read1" ] || [ ! -e "$S/read2" ] || break
	rm -f "$S/read1" "$S/read2"
done
is 'an attempt after a time limit reads its input from the beginning' [ "$rc:$out:$err" = "124:$whole
$whole:" ]
again
submitted=$("$GPULEASE" -Q --config "$S/soon" --submit --retries 1 -i "$S/lines" -o "$S/log" \
	sh -c '. "$1/note"; cat; exit 3' - "$S")
run 'a background job with -i ends with its status after the last retry' 3 '' '' "$GPULEASE" --wait-for "$submitted"
is 'each attempt of a background job reads its input' [ "$(grep -c '^[ab]$' "$S/log")" = 4 ]
cat "$S/lines" >"$S/fifo" &
started="$started $!"
run 'a second attempt does not get the data of a FIFO again' 3 "$whole" '' job --retries 1 -i "$S/fifo" 'cat; exit 3'
run 'a second attempt does not get redirected input again' 3 "$whole" '' sh -c '
	again=$1; shift; "$@" <"$again"' - "$S/lines" "$GPULEASE" -Q --config "$S/soon" \
	--retries 1 sh -c 'cat; exit 3'

# --- lack of memory ----------------------------------------------------------------------

sim 2x24G
oom='echo "torch.OutOfMemoryError: CUDA out of memory." >&2; exit 1'
run 'a job that lacks memory is tried again' 0 '' '' \
	job --oom-retries 3 --vram 2000 -o "$S/log" "[ \$count = 2 ] || { $oom; }"
is 'the second attempt declares a quarter more memory' [ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '2000 2500 ' ]
is 'the output of the first attempt is kept' [ "$(grep -c . "$S/log")" = 1 ]
run 'a job that always lacks memory ends with its status' 1 '' '' \
	job --oom-retries 2 --vram 2000 -o "$S/log" "$oom"
is 'each attempt declares a quarter more, as often as allowed' [ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '2000 2500 3125 ' ]
run 'output of an earlier attempt does not count as lack of memory' 1 '' '' \
	job --oom-retries 5 --vram 2000 -o "$S/log" "[ \$count = 2 ] && exit 1; $oom"
is 'an attempt that fails for another reason is the last' [ "$(attempts)" = 2 ]
run '--oom-retries does not retry another failure' 1 '' '' \
	job --oom-retries 5 --vram 2000 -o "$S/log" 'echo MemoryError; exit 1'
is 'a failure other than lack of memory is final' [ "$(attempts)" = 1 ]
run 'lack of memory is also seen in the file of -e' 0 '' '' \
	job --oom-retries 1 --vram 2000 -o "$S/log" -e "$S/log2" "[ \$count = 2 ] || { $oom; }"
run '--oom-retries and --retries together end with the status' 1 '' '' \
	job --oom-retries 1 --retries 1 --vram 2000 -o "$S/log" "$oom"
is 'retries for memory come first, then the plain retry' \
	[ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '2000 2500 2500 ' ]
sim 2x4000
run 'a job whose memory cannot grow ends with its status' 1 '' '' \
	job --oom-retries 9 --vram 3000 -o "$S/log" "$oom"
is 'the last attempt declares all memory of a card' [ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '3000 3488 ' ]
run '--oom-retries is refused if the output is no file' 125 \
	'gpulease: --oom-retries needs the output in a file: add -o FILE, or --submit' '' \
	sh -c '"$0" --oom-retries 1 true 2>&1 | cat; exit 125' "$GPULEASE"
GPULEASE_DIR=$XDG_STATE_HOME/gpulease/sim-2x24576
is 'the history has how=oom' grep -aq ' how=oom ' "$GPULEASE_DIR/history"

finish

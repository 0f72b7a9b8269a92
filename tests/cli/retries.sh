#!/bin/sh
# Jobs that are tried again: when they fail, and with more memory when that ran out.
# shellcheck disable=SC2016,SC2034,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
printf 'retry-delay = 50ms\nretry-delay-max = 100ms\n' >"$S/soon"
printf 'retry-delay = 1h\nretry-delay-max = 1h\n' >"$S/late"

# attempts: how often the command ran; each notes what it has
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

# job OPTION… CODE: runs the shell code, which knows how often it has run as $count
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

run 'a failure is tried again, and no more often than allowed' 3 '' '' \
	job --retries 2 'exit 3'
is 'which makes three attempts' [ "$(attempts)" = 3 ]
is 'of one job' [ "$(cut -d ' ' -f 1 "$S/notes" | sort -u | grep -c .)" = 1 ]
run 'what succeeds at last has succeeded' 0 '' '' job --retries 5 '[ $count = 3 ]'
is 'and is done' [ "$(attempts)" = 3 ]
run 'what succeeds at once, too' 0 '' '' job --retries 5 'exit 0'
is 'with one attempt' [ "$(attempts)" = 1 ]
# its shell has a word for it
run 'a signal is a failure' 137 '' '*' job --retries 1 'kill -KILL $$'
is 'which is tried again' [ "$(attempts)" = 2 ]
run 'unless it is from the keyboard' 130 '' '' job --retries 5 'kill -INT $$'
is 'then it is not' [ "$(attempts)" = 1 ]
run 'nor is a shell that says so' 130 '' '' job --retries 5 'exit 130'
is 'and that is all' [ "$(attempts)" = 1 ]
run 'a job without GPUs is tried again, too' 3 '' '' job -n 0 --retries 1 'exit 3'
is 'as often' [ "$(attempts)" = 2 ]
run 'what comes next is said' 1 '' '*ended: exit status 1,*
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
is 'while it waits to be tried again' wait_until 'grep -q "tried again" "$S/late.err"'
is 'its GPU is free for others' wait_until '"$GPULEASE" -Q -I true'
"$GPULEASE" --cancel "$(cut -d ' ' -f 1 "$S/notes")"
wait "$late"
is 'cancelled it ends' [ $? = 143 ]
is 'without another attempt' [ "$(attempts)" = 1 ]
for signal in TERM HUP; do
	again
	: >"$S/late.err"
	"$GPULEASE" --config "$S/late" --retries 1 \
		--report sh -c '. "$1/note"; exit 1' - "$S" 2>"$S/late.err" </dev/null &
	late=$!
	started="$started $late"
	wait_until 'grep -q "tried again" "$S/late.err"'
	id=$(cut -d ' ' -f 1 "$S/notes")
	# until it stands in the queue: signals are obeyed there
	wait_until '"$GPULEASE" --queue | grep -q " $id  *2 "'
	kill -$signal "$late"
	wait "$late"
	late=$?
	is "$signal ends it, too" [ "$late" -gt 128 ]
	run 'and the history has its last attempt' 0 "*$id *2 *failed *$late *" '' "$GPULEASE" --history
done

# --- its patience ------------------------------------------------------------------------

run 'that it was to start at once is no reason not to try again' 3 '' '' \
	job -I --retries 2 'exit 3'
is 'as often as allowed' [ "$(attempts)" = 3 ]
run 'the time before another attempt is no wait for GPUs' 3 '' '' \
	job --max-wait 1ms --retries 2 'exit 3'
is 'so there are all of them' [ "$(attempts)" = 3 ]
# behind NAME OPTION…: with these, a job that is to be tried again behind another, `other`
behind() {
	holder "$@" --config "$S/soon" --retries 1
	waiter other
	release "$1" 3
	wait_until 'runs other'
	rm "$S/$1.runs"
}
behind at-once -I
is 'what has begun at once may wait for its second attempt' \
	wait_until 'grep -q waits "$S/at-once.err"'
release_all other
is 'and gets it' wait_until 'runs at-once'
release at-once 4
ended at-once
is 'whose end is the end' [ "$rc" = 4 ]
behind patient --max-wait 10ms
ended patient
is 'each attempt has its own patience' [ "$rc" = 124 ]
is 'which is said' grep -q 'gave up after <1s: ' "$S/patient.err"
release_all other

# --- its input ---------------------------------------------------------------------------

printf 'a\nb\n' >"$S/lines"
mkfifo "$S/fifo"
whole='a
b'
run 'each attempt reads its input from the beginning' 3 "$whole
$whole" '' job --retries 1 -i "$S/lines" 'cat; exit 3'
run 'also one with more memory' 0 '' '' job --oom-retries 1 --vram 1G -i "$S/lines" \
	-o "$S/log" 'cat; [ $count = 2 ] || { echo "CUDA out of memory."; exit 1; }'
is 'whose output is in one file' [ "$(cat "$S/log")" = "$whole
CUDA out of memory.
$whole" ]
# until the limit leaves each attempt the time to read
for limit in 300ms 3s 30s; do
	try job -t $limit --on-limit requeue --max-requeues 1 -i "$S/lines" \
		'cat; : >"$1/read$count"; exec sleep 1000'
	[ ! -e "$S/read1" ] || [ ! -e "$S/read2" ] || break
	rm -f "$S/read1" "$S/read2"
done
is 'and one after a limit' [ "$rc:$out:$err" = "124:$whole
$whole:" ]
again
submitted=$("$GPULEASE" -Q --config "$S/soon" --submit --retries 1 -i "$S/lines" -o "$S/log" \
	sh -c '. "$1/note"; cat; exit 3' - "$S")
run 'and those of a job in the background' 3 '' '' "$GPULEASE" --wait-for "$submitted"
is 'whose log has it twice' [ "$(grep -c '^[ab]$' "$S/log")" = 4 ]
cat "$S/lines" >"$S/fifo" &
started="$started $!"
run 'what a FIFO has given is gone' 3 "$whole" '' job --retries 1 -i "$S/fifo" 'cat; exit 3'
run 'and so is what was not named' 3 "$whole" '' sh -c '
	again=$1; shift; "$@" <"$again"' - "$S/lines" "$GPULEASE" -Q --config "$S/soon" \
	--retries 1 sh -c 'cat; exit 3'

# --- lack of memory ----------------------------------------------------------------------

sim 2x24G
oom='echo "torch.OutOfMemoryError: CUDA out of memory." >&2; exit 1'
run 'what lacks memory is tried with a quarter more' 0 '' '' \
	job --oom-retries 3 --vram 2000 -o "$S/log" "[ \$count = 2 ] || { $oom; }"
is 'which it declares, and is told' [ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '2000 2500 ' ]
is 'the output of both is there' [ "$(grep -c . "$S/log")" = 1 ]
run 'and again with a quarter more of that' 1 '' '' \
	job --oom-retries 2 --vram 2000 -o "$S/log" "$oom"
is 'as often as allowed' [ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '2000 2500 3125 ' ]
run 'an attempt does not see what an earlier one has said' 1 '' '' \
	job --oom-retries 5 --vram 2000 -o "$S/log" "[ \$count = 2 ] && exit 1; $oom"
is 'so the second, which fails otherwise, is the last' [ "$(attempts)" = 2 ]
run 'another failure uses no retry for memory' 1 '' '' \
	job --oom-retries 5 --vram 2000 -o "$S/log" 'echo MemoryError; exit 1'
is 'and is final' [ "$(attempts)" = 1 ]
run 'stderr of its own is looked at, too' 0 '' '' \
	job --oom-retries 1 --vram 2000 -o "$S/log" -e "$S/log2" "[ \$count = 2 ] || { $oom; }"
run 'both kinds go together' 1 '' '' \
	job --oom-retries 1 --retries 1 --vram 2000 -o "$S/log" "$oom"
is 'first with more memory, then once more' \
	[ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '2000 2500 2500 ' ]
sim 2x4000
run 'no more is declared than a card has' 1 '' '' \
	job --oom-retries 9 --vram 3000 -o "$S/log" "$oom"
is 'and with that tried once' [ "$(cut -d ' ' -f 3 "$S/notes" | tr '\n' ' ')" = '3000 3488 ' ]
run 'where its output is not kept nothing can be seen in it' 125 \
	'gpulease: --oom-retries needs the output in a file: add -o FILE, or --submit' '' \
	sh -c '"$0" --oom-retries 1 true 2>&1 | cat; exit 125' "$GPULEASE"
GPULEASE_DIR=$XDG_STATE_HOME/gpulease/sim-2x24576
is 'the history calls it by its name' grep -aq ' how=oom ' "$GPULEASE_DIR/history"

finish

#!/bin/sh
# What a batch knows of earlier runs, and what becomes of jobs whose runner was killed.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# kill_runner NAME: at once, and waits until it has gone
kill_runner() {
	kill -KILL "$(pid_of "$1")"
	ended "$1"
}

# --- again -------------------------------------------------------------------------------

again() {
	clean
	lines "$(say one)" "$(say two); exit 5" "$(say three)"
	run 'a run' 5 '*' '' batch
	lines "$(say one)" "$(say two); exit 5" "$(say three)" "$(say four)"
	run 'the next one lists what has failed' 5 '*done before*failed earlier: job 2*2-*.log*' '' \
		batch
	is 'and does what is new' [ "$(sort "$S/ran" | words /dev/stdin)" = 'four one three two' ]
	run 'with nothing to do it still counts' 5 '*' '' batch
	lines "$(say one)" "$(say three)" "$(say four)"
	run 'without the line it does not' 0 '*' '' batch
	: >"$S/ran"
	run 'with --fresh' 0 '*3 finished*' '' batch --fresh --jobs 1
	is 'all are run again' [ "$(words "$S/ran")" = 'one three four' ]
	is 'the old journal is put aside' [ -s "$W/journal.jsonl~" ]
	run 'that counts as before' 0 '*done before*' '' batch
	is 'so nothing is run' [ "$(words "$S/ran")" = 'one three four' ]
	clean
	lines "$(say same)" "$(say same)"
	run 'equal lines' 0 '*2 finished*' '' batch
	lines "$(say same)" "$(say same)" "$(say same)" "$(say other)"
	run 'one more of them' 0 '*' '' batch
	is 'is run once more' [ "$(count same "$S/ran")" = 3 ]
	lines "$(say same)" "$(say same)" "$(say same)" "$(say same)"
	run 'with --once' 0 '*dropped*' '' batch --once
	is 'it is not' [ "$(count same "$S/ran")" = 3 ]
}

# Lines that are not there when the next run begins, and come.
put_back() {
	clean
	lines 'exit 5'
	run 'a line fails' 5 '*' '' batch
	lines "$S/held a"
	batch_begin b
	await_on a
	lines "$S/held a" 'exit 5'
	go a
	ended b
	is 'where it is put back in the next run' [ "$rc" = 5 ]
	is 'it is listed at the end' [ "$(count '^failed earlier: job 1, exit status 5, log ' "$S/b.out")" = 1 ]
	run 'and at the start of one that has it' 5 '*failed earlier: job 1, *' '' batch
	is 'once' [ "$(count '^failed earlier' "$S/out")" = 1 ]
	run 'and through a pipe' 5 '*failed earlier: job 1, *2 jobs: 1 finished, 1 failed*' '' \
		sh -c '"$1" --batch - --log-dir "$2" <"$3"' sh "$GPULEASE" "$W" "$J"
}

equal_lines() {
	clean
	sim 1
	lines "$(say same)" "$S/held a" "$(say same)"
	batch_begin b --jobs 1
	await_on a
	kill -INT "$(pid_of b)"
	ended b
	rm -rf "$S"/*.on
	lines "$S/held a" "$(say same)"
	go a
	run 'of two equal lines one is done and one is deleted' 0 '*' '' batch --jobs 1
	is 'the one that is left runs' [ "$(count same "$S/ran")" = 2 ]
}

# What is edited between two runs.
edited() {
	clean
	sim 1
	lines "[gpus=99] $(say one)" "[gpus=99] $(say two)"
	run 'lines that cannot be run' 125 '*2 failed*' '' batch
	lines "[gpus=1] $(say one)" "[gpus=99] $(say two)"
	run 'are tried in the next run where they were mended' 125 '*1 finished, 1 failed*' '' batch
	is 'and run' [ "$(words "$S/ran")" = one ]
	clean
	lines "[name=first] $(say one)" "[after=first] $(say two)"
	run 'a line that others come after' 0 '*2 finished*' '' batch
	lines "[after=first] $(say two)" "[after-ok=first] $(say three)"
	run 'may go once it is done' 0 '*' '' batch
	is 'and others still come after it' [ "$(words "$S/ran")" = 'one two three' ]
	cp "$W/journal.jsonl" "$S/before"
	run 'with --fresh nobody knows it' 125 '' "*line 1: *'first'*" batch --fresh
	is 'and nothing is forgotten' cmp "$W/journal.jsonl" "$S/before"
}

cancelled() {
	clean
	sim 1
	lines "[cancel] $(say one)"
	run 'a line is cancelled' 0 '*1 cancelled*' '' batch
	is 'and is not run' [ ! -s "$S/ran" ]
	run 'it stays so' 0 '*1 cancelled*' '' batch
	lines "$(say one)"
	run 'until the word is taken away' 0 '*1 finished*' '' batch
	is 'then it is run' [ "$(words "$S/ran")" = one ]
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	"$GPULEASE" --cancel "$(event started 1 | member ticket)"
	ended b
	is 'one that was cancelled from outside' [ "$rc" = 143 ]
	run 'counts in the next run as well' 143 '*failed earlier: job 1*' '' batch
	is 'which does not run it' [ "$(words "$S/starts")" = a ]
}

# What has begun before goes on in its log.
logs() {
	clean
	sim 1
	lines "echo begun; $S/held a" "$(say two)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
	kill -INT "$(pid_of b)"
	ended b
	rm -rf "$S"/*.on
	go a
	run 'what was interrupted and is run again' 0 '*2 finished*' '' batch
	is 'goes on in its log' [ "$(grep -cx begun "$W"/1-*.log)" = 2 ]
	is 'and there is no other, nor of who has waited' [ -z "$(find "$W" -name '*~')" ]
}

two_runners() {
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	run 'a second runner' 125 '' "gpulease: *pid $(pid_of b), since *" batch
	run 'or with --fresh' 125 '' "gpulease: *pid $(pid_of b), since *" batch --fresh
	run 'is refused by the folder of the journal' 125 '' "*pid $(pid_of b)*" \
		sh -c 'cp "$2" "$2.copy" && "$1" --batch "$2.copy" --log-dir "$2.logs"' \
		sh "$GPULEASE" "$J"
	rm -f "$J.copy"
	go a
	ended b
	is 'and harms nobody' [ "$rc $(words "$S/ends")" = '0 a' ]
	run 'then it may' 0 '*' '' batch
}

# What is started then nobody would know of.
folder_removed() {
	begin_two
	rm -rf "$W"
	go a
	is 'where the journal is removed no job is started' wait_until \
		'grep -q "cannot start job 2 now: cannot write the journal" "$S/b.err"'
	is 'none' [ ! -s "$S/ran" ]
	run 'another runner' 0 '*2 finished*' '' batch
	kill -INT "$(pid_of b)"
	ended b
	is 'runs it, and nobody else' [ "$rc $(words "$S/ran")" = '130 two' ]
}

# --- killed ------------------------------------------------------------------------------

killed() {
	clean
	sim 1
	lines "$S/held a 6" "$(say two)" "$(say three)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 2 ]'
	kill_runner b
	is 'a runner is killed: who waited leaves the queue' wait_until '[ "$(queued)" = 0 ]'
	is 'who ran runs on' on a
	run 'it cannot be forgotten meanwhile' 125 '' '*still run*' batch --fresh
	batch_begin c
	is 'the next runner finds it' wait_until 'grep -q "still at work: 1" "$S/c.out"'
	is 'and has the others wait' wait_until '[ "$(queued)" = 2 ]'
	go a
	ended c
	is 'its end is the status' [ "$rc" = 6 ]
	is 'it ran once' [ "$(words "$S/starts") $(words "$S/ends")" = 'a a' ]
	is 'and so did the others' [ "$(words "$S/ran")" = 'two three' ]
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	kill_runner b
	go a
	wait_until '[ -n "$(event ended 1)" ]'
	run 'one that has ended without a runner' 0 '*done before*' '' batch
	is 'is not run again' [ "$(words "$S/starts")" = a ]
}

# Not even its supervisor is left.
killed_both() {
	clean
	sim 2
	lines "$S/held a" "$(say two)"
	batch_begin b
	await_on a
	wait_until '[ -n "$(event ended 2)" ]'
	supervisor=$(event started 1 | member pid)
	kill_runner b
	kill -KILL "$supervisor"
	batch_begin c
	is 'while its command runs it is not started again' wait_until 'grep -q "still at work: 1" "$S/c.out"'
	go a
	ended c
	is 'one whose end nobody has seen' [ "$(count '"event": "ended".*"job": 1,.*lost' "$W/journal.jsonl")" = 1 ]
	is 'counts as killed' [ "$rc" = 137 ]
	clean
	lines "$S/held a" "$(say two)"
	batch_begin b
	await_on a
	supervisor=$(event started 1 | member pid)
	kill_runner b
	kill -KILL "$supervisor"
	go a
	wait_until '[ -s "$S/ends" ] && "$GPULEASE" -Q -I -n 2 true'
	run 'ended before anybody has come again' 0 '*2 finished*' '' batch
	is 'it is run again' [ "$(words "$S/ends")" = 'a a' ]
	is 'one after the other' [ ! -e "$S/twice" ]
}

killed_supervisor() {
	begin_two
	kill -KILL "$(event started 1 | member pid)"
	is 'a supervisor is killed: its command goes on' on a
	go a
	ended b
	is 'how it ends is not known' grep -q 'job 1 .*lost' "$S/b.out"
	is 'which counts' [ "$rc" = 137 ]
	is 'it ran once, and then the next' \
		[ "$(words "$S/starts") $(words "$S/ends") $(words "$S/ran")" = 'a a two' ]
}

interrupted_without() {
	clean
	sim 1
	lines "$S/held a" "$(say two)"
	batch_begin b
	await_on a
	kill_runner b
	kill -TERM "$(event started 1 | member pid)"
	is 'ended without a runner by TERM' wait_until '[ -n "$(event ended 1)" ]'
	rm -rf "$S"/*.on
	go a
	run 'it is run again' 0 '*2 finished*' '' batch
	is 'to its end' [ "$(words "$S/ends")" = a ]
}

# Told to end by a runner that is there, without anybody who sees how they do.
interrupted_orphans() {
	clean
	sim 1
	lines "[fail-retries=1] [ -e $S/a.go ] || exit 3"
	printf 'retry-delay = 1h\nretry-delay-max = 1h\n' >"$S/later"
	batch_begin b --config "$S/later"
	wait_until '[ -n "$(event attempt 1)" ]'
	kill_runner b
	batch_begin c
	wait_until 'grep -q "still at work: 1" "$S/c.out"'
	is 'one of before that waits for its next attempt does not run' wait_until \
		'grep -q "^jobs: 0 running, 1 waiting" "$W/status.txt"'
	is 'and it says why' wait_until 'grep -q "exit status 3, tried again" "$W/status.txt"'
	kill -INT "$(pid_of c)"
	ended c
	is 'it is interrupted by Ctrl-C' [ "$rc $(event ended 1 | member interrupted)" = '130 true' ]
	go a
	run 'and run again' 0 '*1 finished*' '' batch
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	supervisor=$(event started 1 | member pid)
	kill -KILL "$supervisor"
	wait_until '[ ! -e "/proc/$supervisor" ]'
	kill -INT "$(pid_of b)"
	ended b
	is 'so is one whose supervisor was killed' \
		[ "$rc $(event ended 1 | member interrupted)" = '130 true' ]
	rm -rf "$S"/*.on
	go a
	run 'and it is run again as well' 0 '*1 finished*' '' batch
}

# adopted LINE [OPTION…]: a job "held a" that runs on without its runner, and the next one, c
adopted() {
	clean
	lines "$1"
	shift
	batch_begin b
	await_on a
	kill_runner b
	batch_begin c "$@"
	wait_until 'grep -q "still at work: 1" "$S/c.out"'
}

# What a runner tells of jobs that are not its own is what the journal has of them.
told_of_others() {
	sim 1x24G
	adopted "[timeout=1h] $S/held a 4" --json
	go a
	ended c
	is 'the end of one of before' [ "$rc" = 4 ]
	is 'is told whole' [ "$(event ended 1)" = "$(grep '"event": "ended"' "$S/c.out")" ]
	is 'with its limit' [ "$(event ended 1 | member limit_ms)" = 3600000 ]
	adopted "$S/held a" --json
	kill -INT "$(pid_of c)"
	ended c
	is 'one that is interrupted' [ "$(event ended 1 | member interrupted)" = true ]
	is 'as well' [ "$(event ended 1)" = "$(grep '"event": "ended"' "$S/c.out")" ]
	pidfds=$GPULEASE
	without_pidfds
	adopted "$S/held a"
	kill -INT "$(pid_of c)"
	ended c
	is 'also without pidfds' [ "$(event ended 1 | member interrupted)" = true ]
	GPULEASE=$pidfds
	oom='echo "torch.OutOfMemoryError: CUDA out of memory." >&2; exit 1'
	adopted "[vram=2000 retries=1] [ -e $S/a.go ] && exec $S/held b; $S/held a; $oom" --json
	go a
	is 'its attempts are told' wait_until \
		'grep -q "\"event\": \"started\".*\"attempt\": 2" "$S/c.out"'
	is 'and the board has its GPU' wait_until \
		'grep -q "^  1  .* 0  *[0-9<]*s$" "$W/status.txt"'
	go b
	ended c
	is 'to its end' [ "$rc $(count '"event": "ended"' "$S/c.out")" = '0 1' ]
}

cancelled_without() {
	sim 1
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	kill_runner b
	lines "[cancel] $S/held a"
	run 'the word cancel for one of before' 0 '*1 cancelled*' '' batch
	is 'ends it' [ "$(event ended 1 | tail -n 1 | member cause)" = cancelled ]
	run 'which counts in no later run, either' 0 '*' '' batch
}

# --- memory ------------------------------------------------------------------------------

memory() {
	oom='echo "torch.OutOfMemoryError: CUDA out of memory." >&2; exit 1'
	clean
	sim 1x24G
	# the first attempt lacks memory, the second is interrupted
	job="echo \$GPULEASE_VRAM_MIB >>$S/ran; [ \$(grep -c . $S/ran) != 1 ] || { $oom; }; $S/held a"
	lines "[vram=2000 retries=3] $job"
	batch_begin b
	await_on a
	kill -INT "$(pid_of b)"
	ended b
	is 'lack of memory' [ "$(words "$S/ran")" = '2000 2500' ]
	rm -rf "$S"/*.on
	batch_begin b
	await_on a
	is 'is remembered by the next run' [ "$(words "$S/ran")" = '2000 2500 2500' ]
	kill -INT "$(pid_of b)"
	ended b
	rm -rf "$S"/*.on
	go a
	lines "[vram=4000 retries=3] $job"
	run 'unless the line says otherwise then' 0 '*' '' batch
	is 'which counts' [ "$(tail -n 1 "$S/ran")" = 4000 ]
}

# --- journals that are damaged -----------------------------------------------------------

damaged() {
	clean
	lines "$(say one)" "$(say two)"
	run 'a journal' 0 '*' '' batch
	printf '{"event": "ended", "job": 1, "sta' >>"$W/journal.jsonl"
	say three >>"$J"
	run 'whose last line is not whole' 0 '*3 finished*' '*journal*skipped*' batch
	is 'does not make a line run again' [ "$(sort "$S/ran" | words /dev/stdin)" = 'one three two' ]
	printf 'garbage\n{"event": 7}\n\377\376\n{"event": "ended", "job": 99, "status": 0}\n' \
		>>"$W/journal.jsonl"
	run 'nor do lines that are none' 0 '*' 'gpulease: *lines of the journal*skipped*' batch
	is 'not at all' [ "$(count . "$S/ran")" = 3 ]
	rm -f "$W/journal.jsonl"
	ln -s "$S/elsewhere" "$W/journal.jsonl"
	: >"$S/elsewhere"
	run 'a link in its place' 125 '' "gpulease: *journal*" batch
	is 'is not followed' [ ! -s "$S/elsewhere" ]
}

again
put_back
equal_lines
edited
cancelled
logs
two_runners
folder_removed
killed
killed_both
killed_supervisor
interrupted_without
interrupted_orphans
told_of_others
cancelled_without
memory
damaged
finish

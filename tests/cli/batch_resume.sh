#!/bin/sh
# What a batch knows of earlier runs, and what happens to jobs of a killed runner.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# kill_runner NAME: kills the runner and waits until it has gone
kill_runner() {
	kill -KILL "$(pid_of "$1")"
	ended "$1"
}

# --- again -------------------------------------------------------------------------------

again() {
	clean
	lines "$(say one)" "$(say two); exit 5" "$(say three)"
	run 'a batch with a job that fails ends' 5 '*' '' batch
	lines "$(say one)" "$(say two); exit 5" "$(say three)" "$(say four)"
	skipped='ended in an earlier run and now skipped: 3 of 4 lines (2 finished, 1 failed); '
	run 'the next run lists the job that has failed' \
		5 "*$skipped*failed earlier: entry 2*2-*.log*" '' batch
	is 'the next run runs only the new line' \
		[ "$(sort "$S/ran" | words /dev/stdin)" = 'four one three two' ]
	run 'a job that failed counts in the status of a later run' 5 '*' '' batch
	lines "$(say one)" "$(say three)" "$(say four)"
	run 'a job that failed does not count once its line is deleted' 0 '*' '' batch
	: >"$S/ran"
	run 'a run with --fresh counts only its own jobs' \
		0 '*3 finished*' '' batch --fresh --jobs 1
	is 'with --fresh all lines are run again' \
		[ "$(words "$S/ran")" = 'one three four' ]
	is 'with --fresh the old journal is renamed' [ -s "$W/journal.jsonl~" ]
	run 'after --fresh the next run finds all jobs done' 0 '*ended in an earlier run*' '' batch
	is 'after --fresh the next run runs nothing' \
		[ "$(words "$S/ran")" = 'one three four' ]
	clean
	lines "$(say same)" "$(say same)"
	run 'two equal lines are two jobs' 0 '*2 finished*' '' batch
	lines "$(say same)" "$(say same)" "$(say same)" "$(say other)"
	run 'a third equal line is accepted in the next run' 0 '*' '' batch
	is 'a third equal line is run once' [ "$(count same "$S/ran")" = 3 ]
	lines "$(say same)" "$(say same)" "$(say same)" "$(say same)"
	run 'with --once a fourth equal line is dropped' \
		0 '*entry 5 dropped: an equal line has finished*' '' batch --once
	is 'with --once a fourth equal line is not run' [ "$(count same "$S/ran")" = 3 ]
}

# Lines that are missing when the next run begins and are put back while it runs.
put_back() {
	clean
	lines 'exit 5'
	run 'a batch with one line that fails ends with its status' 5 '*' '' batch
	lines "$S/held a"
	batch_begin b
	await_on a
	lines "$S/held a" 'exit 5'
	go a
	ended b
	is 'a failed line that is put back in the next run counts in the status' \
		[ "$rc" = 5 ]
	is 'a failed line that is put back is listed at the end' \
		[ "$(count '^failed earlier: entry 1, exit status 5, log ' "$S/b.out")" = 1 ]
	run 'a failed line is listed at the start of a run that has it' \
		5 '*failed earlier: entry 1, *' '' batch
	is 'a failed line is listed once' [ "$(count '^failed earlier' "$S/out")" = 1 ]
	run 'a failed line is listed when the lines come through a pipe' \
		5 '*failed earlier: entry 1, *2 jobs: 1 finished, 1 failed*' '' \
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
	run 'of two equal lines one is finished and one is deleted before the next run' \
		0 '*' '' batch --jobs 1
	is 'the equal line that is left runs' [ "$(count same "$S/ran")" = 2 ]
}

# Lines that are edited between two runs.
edited() {
	clean
	sim 1
	lines "[gpus=99] $(say one)" "[gpus=99] $(say two)"
	run 'lines with too many GPUs fail' 125 '*2 failed*' '' batch
	lines "[gpus=1] $(say one)" "[gpus=99] $(say two)"
	run 'the next run counts the line that was mended and the line that was not' \
		124 '*1 finished, 1 failed*' '' batch
	is 'a line that was mended is run in the next run' [ "$(words "$S/ran")" = one ]
	clean
	lines "[name=first] $(say one)" "[after=first] $(say two)"
	run 'a batch with after= ends' 0 '*2 finished*' '' batch
	lines "[after=first] $(say two)" "[after-ok=first] $(say three)"
	run 'a finished line that after= names may be deleted before the next run' \
		0 '*' '' batch
	is 'lines after a deleted, finished line are run' \
		[ "$(words "$S/ran")" = 'one two three' ]
	cp "$W/journal.jsonl" "$S/before"
	run 'with --fresh a finished line that is deleted is unknown to after=' \
		125 '' "*line 1: *'first'*" batch --fresh
	is '--fresh with an error in the file leaves the journal as it is' \
		cmp "$W/journal.jsonl" "$S/before"
}

cancelled() {
	clean
	sim 1
	lines "[cancel] $(say one)"
	run 'a line with the word cancel counts as cancelled' 0 '*1 cancelled*' '' batch
	is 'a line with the word cancel is not run' [ ! -s "$S/ran" ]
	run 'a cancelled line stays cancelled in the next run' 0 '*1 cancelled*' '' batch
	lines "$(say one)"
	run 'a line without its word cancel finishes in the next run' \
		0 '*1 finished*' '' batch
	is 'a line without its word cancel is run' [ "$(words "$S/ran")" = one ]
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	"$GPULEASE" --cancel "$(event started 1 | member ticket)"
	ended b
	is 'a job ended by --cancel gives the status of its signal' [ "$rc" = 143 ]
	run 'a job ended by --cancel counts in the status of the next run' \
		143 '*failed earlier: entry 1*' '' batch
	is 'a job ended by --cancel is not run by the next run' \
		[ "$(words "$S/starts")" = a ]
}

# A job that an earlier run has begun appends to its log.
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
	run 'the next run finishes the interrupted job' 0 '*2 finished*' '' batch
	is 'a job that is run again appends to its log' \
		[ "$(grep -cx begun "$W"/1-*.log)" = 2 ]
	is 'no log is renamed, also not that of a job that only waited' \
		[ -z "$(find "$W" -name '*~')" ]
}

two_runners() {
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	run 'a second runner is refused with the pid of the first' \
		125 '' "gpulease: *pid $(pid_of b), since *" batch
	run 'a second runner with --fresh is refused' \
		125 '' "gpulease: *pid $(pid_of b), since *" batch --fresh
	run 'a second runner of another file with the same folder is refused' \
		125 '' "*pid $(pid_of b)*" \
		sh -c 'cp "$2" "$2.copy" && "$1" --batch "$2.copy" --log-dir "$2.logs"' \
		sh "$GPULEASE" "$J"
	rm -f "$J.copy"
	go a
	ended b
	is 'a refused runner does not disturb the first one' \
		[ "$rc $(words "$S/ends")" = '0 a' ]
	run 'a second runner is accepted when the first has ended' 0 '*' '' batch
}

# Without a journal no later run would know of a job that is started now.
folder_removed() {
	begin_two
	rm -rf "$W"
	go a
	is 'when the journal is removed a start gives an error' wait_until \
		'grep -q "cannot start entry 2 now: cannot write the journal" "$S/b.err"'
	is 'when the journal is removed no job is started' [ ! -s "$S/ran" ]
	run 'another runner makes a new journal and finishes' 0 '*2 finished*' '' batch
	kill -INT "$(pid_of b)"
	ended b
	is 'only the other runner runs the waiting line' \
		[ "$rc $(words "$S/ran")" = '130 two' ]
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
	is 'when a runner is killed its waiting jobs leave the queue' \
		wait_until '[ "$(queued)" = 0 ]'
	is 'when a runner is killed its running job runs on' on a
	run '--fresh is refused while a job of a killed runner runs' \
		125 '' '*have not ended: [0-9]*cancel*' batch --fresh
	batch_begin c
	is 'the next runner finds the job that still runs' \
		wait_until 'grep -q "have not ended: [0-9]*$" "$S/c.out"'
	is 'the next runner queues the waiting jobs again' \
		wait_until '[ "$(queued)" = 2 ]'
	go a
	ended c
	is 'the next run exits with the status of the job that still ran' [ "$rc" = 6 ]
	is 'the running job of a killed runner runs once' \
		[ "$(words "$S/starts") $(words "$S/ends")" = 'a a' ]
	is 'the waiting jobs of a killed runner run once' \
		[ "$(words "$S/ran")" = 'two three' ]
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	kill_runner b
	go a
	wait_until '[ -n "$(event ended 1)" ]'
	run 'a job that ended without a runner counts as done' 0 '*ended in an earlier run*' '' batch
	is 'a job that ended without a runner is not run again' \
		[ "$(words "$S/starts")" = a ]
}

# The runner and the supervisor of a job are killed.
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
	is 'a job without runner and supervisor is not started while its command runs' \
		wait_until 'grep -q "have not ended: [0-9]*$" "$S/c.out"'
	go a
	ended c
	is 'a job that ends without runner and supervisor is lost in the journal' \
		[ "$(count '"event": "ended".*"job": 1,.*lost' "$W/journal.jsonl")" = 1 ]
	is 'a job that is lost counts as killed' [ "$rc" = 137 ]
	clean
	lines "$S/held a" "$(say two)"
	batch_begin b
	await_on a
	supervisor=$(event started 1 | member pid)
	kill_runner b
	kill -KILL "$supervisor"
	go a
	wait_until '[ -s "$S/ends" ] && "$GPULEASE" -Q -I -n 2 true'
	run 'the next runner finishes a job that ended unseen' \
		0 '*2 finished*' '' batch
	is 'a job that ended unseen is run again' [ "$(words "$S/ends")" = 'a a' ]
	is 'a job that ended unseen never runs twice at a time' [ ! -e "$S/twice" ]
}

killed_supervisor() {
	begin_two
	kill -KILL "$(event started 1 | member pid)"
	is 'when a supervisor is killed its command runs on' on a
	go a
	ended b
	is 'a job with a killed supervisor is printed as lost' \
		grep -q 'entry 1 .*lost' "$S/b.out"
	is 'a job with a killed supervisor counts as killed' [ "$rc" = 137 ]
	is 'a job with a killed supervisor runs once, then the next job' \
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
	is 'TERM to a supervisor without a runner ends its job' \
		wait_until '[ -n "$(event ended 1)" ]'
	rm -rf "$S"/*.on
	go a
	run 'the next run finishes a job that TERM ended without a runner' \
		0 '*2 finished*' '' batch
	is 'a job that TERM ended without a runner runs to its end' \
		[ "$(words "$S/ends")" = a ]
}

# A runner interrupts jobs of an earlier runner, and jobs that have no supervisor any more.
interrupted_orphans() {
	clean
	sim 1
	lines "[fail-retries=1] [ -e $S/a.go ] || exit 3"
	printf 'retry-delay = 1h\nretry-delay-max = 1h\n' >"$S/later"
	batch_begin b --config "$S/later"
	wait_until '[ -n "$(event attempt 1)" ]'
	kill_runner b
	batch_begin c
	wait_until 'grep -q "have not ended: [0-9]*$" "$S/c.out"'
	is 'a job of an earlier runner that waits for its next attempt is waiting' \
		wait_until \
		'grep -q "^jobs: 0 running, 1 waiting" "$W/status.txt"'
	is 'the board says why a job of an earlier runner waits' \
		wait_until 'grep -q "exit status 3, tried again" "$W/status.txt"'
	kill -INT "$(pid_of c)"
	ended c
	is 'Ctrl-C interrupts a job of an earlier runner' \
		[ "$rc $(event ended 1 | member interrupted)" = '130 true' ]
	go a
	run 'an interrupted job of an earlier runner is run again' \
		0 '*1 finished*' '' batch
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	supervisor=$(event started 1 | member pid)
	kill -KILL "$supervisor"
	wait_until '[ ! -e "/proc/$supervisor" ]'
	kill -INT "$(pid_of b)"
	ended b
	is 'Ctrl-C interrupts a job with a killed supervisor' \
		[ "$rc $(event ended 1 | member interrupted)" = '130 true' ]
	rm -rf "$S"/*.on
	go a
	run 'an interrupted job with a killed supervisor is run again' \
		0 '*1 finished*' '' batch
}

# adopted LINE [OPTION…]: starts LINE, which runs "held a", kills its runner and starts the next, c
adopted() {
	clean
	lines "$1"
	shift
	batch_begin b
	await_on a
	kill_runner b
	rm "$W/status.txt"
	batch_begin c "$@"
	wait_until '[ -e "$W/status.txt" ]'
}

# What a runner prints about jobs of an earlier runner is what the journal has of them.
told_of_others() {
	sim 1x24G
	adopted "[timeout=1h] $S/held a 4" --json
	go a
	ended c
	is 'the status of a job of an earlier runner is that of the batch' [ "$rc" = 4 ]
	is 'the end of a job of an earlier runner is printed as in the journal' \
		[ "$(event ended 1)" = "$(grep '"event": "ended"' "$S/c.out")" ]
	is 'the end of a job of an earlier runner has its time limit' \
		[ "$(event ended 1 | member limit_ms)" = 3600000 ]
	adopted "$S/held a" --json
	kill -INT "$(pid_of c)"
	ended c
	is 'an interrupted job of an earlier runner has this in its end' \
		[ "$(event ended 1 | member interrupted)" = true ]
	is 'the end of an interrupted job is printed as in the journal' \
		[ "$(event ended 1)" = "$(grep '"event": "ended"' "$S/c.out")" ]
	pidfds=$GPULEASE
	without_pidfds
	adopted "$S/held a"
	kill -INT "$(pid_of c)"
	ended c
	is 'without pidfds a job of an earlier runner is interrupted' \
		[ "$(event ended 1 | member interrupted)" = true ]
	GPULEASE=$pidfds
	oom='echo "torch.OutOfMemoryError: CUDA out of memory." >&2; exit 1'
	adopted "[vram=2000 retries=1] [ -e $S/a.go ] && exec $S/held b; $S/held a; $oom" --json
	go a
	is 'an attempt of a job of an earlier runner is printed' wait_until \
		'grep -q "\"event\": \"started\".*\"attempt\": 2" "$S/c.out"'
	is 'the board has the GPU of a job of an earlier runner' wait_until \
		'grep -q "^ *1  .* 0  *[0-9<]*s$" "$W/status.txt"'
	go b
	ended c
	is 'the end of a job of an earlier runner is printed once' \
		[ "$rc $(count '"event": "ended"' "$S/c.out")" = '0 1' ]
}

cancelled_without() {
	sim 1
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	kill_runner b
	lines "[cancel] $S/held a"
	run 'the word cancel for a job of an earlier runner is read' \
		0 '*1 cancelled*' '' batch
	is 'the word cancel ends a job of an earlier runner' \
		[ "$(event ended 1 | tail -n 1 | member cause)" = cancelled ]
	run 'a job ended by the word cancel does not count in the next run' 0 '*' '' batch
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
	is 'after lack of memory the job declares a quarter more' \
		[ "$(words "$S/ran")" = '2000 2500' ]
	rm -rf "$S"/*.on
	batch_begin b
	await_on a
	is 'the next run remembers how much memory the job needs' \
		[ "$(words "$S/ran")" = '2000 2500 2500' ]
	kill -INT "$(pid_of b)"
	ended b
	rm -rf "$S"/*.on
	go a
	lines "[vram=4000 retries=3] $job"
	run 'a run with an edited vram= finishes' 0 '*' '' batch
	is 'an edited vram= overrides what was learned in earlier runs' \
		[ "$(tail -n 1 "$S/ran")" = 4000 ]
}

# --- journals that are damaged -----------------------------------------------------------

damaged() {
	clean
	lines "$(say one)" "$(say two)"
	run 'a batch writes its journal' 0 '*' '' batch
	printf '{"event": "ended", "job": 1, "sta' >>"$W/journal.jsonl"
	say three >>"$J"
	run 'a journal with half a last line is accepted with a message' \
		0 '*3 finished*' '*journal*skipped*' batch
	is 'half a last line in the journal makes no line run again' \
		[ "$(sort "$S/ran" | words /dev/stdin)" = 'one three two' ]
	printf 'garbage\n{"event": 7}\n\377\376\n{"event": "ended", "job": 99, "status": 0}\n' \
		>>"$W/journal.jsonl"
	run 'a journal with invalid lines is accepted with a message' \
		0 '*' 'gpulease: *journal in *lines*skipped*' batch
	is 'invalid lines in the journal make no line run again' \
		[ "$(count . "$S/ran")" = 3 ]
	rm -f "$W/journal.jsonl"
	ln -s "$S/elsewhere" "$W/journal.jsonl"
	: >"$S/elsewhere"
	run 'a link in the place of the journal is refused' \
		125 '' "gpulease: *journal*" batch
	is 'a link in the place of the journal is not followed' [ ! -s "$S/elsewhere" ]
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

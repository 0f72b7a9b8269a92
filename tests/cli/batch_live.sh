#!/bin/sh
# Jobs files that change while a batch runs them.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# listed RANGES: whether the runner has last read a file with exactly those jobs, in that order
listed() {
	grep '"event": "list"' "$W/journal.jsonl" | tail -n 1 | grep -q "\"jobs\": \"$1\""
}

# --- lines come, go and move ---------------------------------------------------------------

lines_come() {
	clean
	sim 1
	lines "$S/held a"
	batch_begin b
	await_on a
	say more >>"$J"
	is 'a line that is appended while the batch runs gets a ticket' \
		wait_until '[ "$(queued)" = 1 ]'
	printf 'echo un' >>"$J"
	printf 'finished >>%s\n' "$S/ran" >>"$J"
	is 'a line that is written in two pieces gets one ticket' \
		wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'appended lines are run in order' \
		[ "$rc $(words "$S/ran")" = '0 more unfinished' ]
	is 'appended lines count as jobs of the batch' \
		grep -q '^3 jobs: 3 finished' "$S/b.out"
}

# A line from a program that keeps the file open.
lines_come_last() {
	clean
	sim 1
	lines "$S/held a"
	batch_begin b
	await_on a
	exec 5>>"$J"
	say more >&5
	go a
	ended b
	exec 5>&-
	is 'a line that is appended as the last job ends is run' \
		[ "$rc $(words "$S/ran")" = '0 more' ]
	is 'a line that is appended as the last job ends is run by this runner' \
		grep -q '^2 jobs: 2 finished' "$S/b.out"
}

lines_go() {
	clean
	sim 1
	lines "$S/held a" "$(say one)" "$(say two)" "$(say three)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 3 ]'
	lines "$S/held a" "$(say one)" "$(say three)"
	is 'a waiting line that is deleted leaves the queue' \
		wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'a deleted line does not run' [ "$rc $(words "$S/ran")" = '0 one three' ]
	is 'a deleted line does not count as a job' \
		grep -q '^3 jobs: 3 finished' "$S/b.out"
	is 'a deleted line has no end in the journal' [ -z "$(event ended 3)" ]
}

lines_move() {
	clean
	sim 1
	lines "$S/held a" "$(say one)" "$(say two)" "$(say three)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 3 ]'
	lines "$S/held a" "$(say three)" "$(say one)" "$(say two)"
	is 'waiting lines can be moved while the batch runs' wait_until 'listed 1,4,2-3'
	is 'moved lines are all in the queue' wait_until '[ "$(queued)" = 3 ]'
	lines "$(say zero)" "$S/held a" "$(say three)" "$(say one)" "$(say two)"
	is 'an inserted line is in its place in the queue' \
		wait_until '[ "$(queued_words)" = "zero three one two" ]'
	go a
	ended b
	is 'moved and inserted lines run in the order of the file' \
		[ "$rc $(words "$S/ran")" = '0 zero three one two' ]
	is 'a job that queues again keeps one log' [ -z "$(find "$W" -name '*~')" ]
}

# A process that is slow to leave the queue keeps the place of its line: no later line overtakes it.
slow_to_leave() {
	clean
	sim 1
	lines "$S/held a" "[setup='word=old'] echo \$word >>$S/ran" "$(say two)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 2 ]'
	slow=$(queue pid | head -n 1)
	kill -STOP "$slow"
	wait_until '[ "$(process_state "$slow")" = T ]'
	lines "$S/held a" "[setup='word=new'] echo \$word >>$S/ran" "$(say two)"
	is 'while its process is stopped, an edited line leaves the queue' \
		wait_until '[ "$(queued)" = 1 ]'
	kill -CONT "$slow"
	is 'an edited line queues again when its process goes on' \
		wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'an edited line with a slow process is not overtaken' \
		[ "$rc $(words "$S/ran")" = '0 new two' ]
}

equal_lines() {
	clean
	sim 1
	lines "$S/held a" "$(say same)" "$(say same)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 2 ]'
	lines "$S/held a" "$(say same)" "$(say same)" "$(say same)"
	wait_until '[ "$(queued)" = 3 ]'
	go a
	ended b
	is 'equal lines run as often as they are written' \
		[ "$rc $(words "$S/ran")" = '0 same same same' ]
}

# A line that is appended, after all others, does not make them queue again.
tickets_stay() {
	clean
	sim 1
	lines "$S/held a" "$(say one)" "$(say two)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 2 ]'
	before=$(queue ticket)
	say three >>"$J"
	wait_until '[ "$(queued)" = 3 ]'
	is 'an appended line leaves the earlier tickets as they are' \
		[ "$(queue ticket | head -n 2)" = "$before" ]
	# one that comes after another has a later ticket than those below it
	clean
	holder h -n 1
	lines "[gpus=0 name=first] $S/held a" "[after=first] $(say late)" "$(say two)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
	go a
	wait_until '[ "$(queued)" = 2 ]'
	before=$(queue ticket)
	say three >>"$J"
	wait_until '[ "$(queued)" = 3 ]'
	is 'tickets stay also when they are not in the order of the lines' \
		[ "$(queue ticket | head -n 2)" = "$before" ]
	release h
	ended b
	is 'the lines run in the order of their tickets' \
		[ "$rc $(words "$S/ran")" = '0 two late three' ]
}

# --- lines are edited ----------------------------------------------------------------------

waiting_lines() {
	clean
	sim 1
	lines "$S/held a" "[setup='word=old'] echo \$word >>$S/ran" "$(say two)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 2 ]'
	# shellcheck disable=SC2034 # for wait_until
	before=$(queue ticket | head -n 1)
	lines "$S/held a" "[setup='word=new'] echo \$word >>$S/ran" "$(say two)"
	is 'a waiting line with an edited setup= gets a new ticket' \
		wait_until '[ "$(queued)" = 2 ] &&
		! queue ticket | grep -qx "$before"'
	is 'an edited waiting line keeps its place before the next' \
		wait_until '[ "$(queued)" = 2 ] &&
		[ "$(queue command | head -n 1)" != "$(say two)" ]'
	lines "$S/held a" "[setup='word=new'] echo \$word >>$S/ran" "echo 2 >>$S/ran"
	is 'a waiting line with an edited command is a new job' wait_until 'listed 1-2,4'
	wait_until '[ "$(queued_words)" = "\$word 2" ]'
	go a
	ended b
	is 'edited waiting lines run as they are edited' \
		[ "$rc $(words "$S/ran")" = '0 new 2' ]
	is 'a line with an edited setup= keeps its job number' [ -n "$(event ended 2)" ]
}

running_lines() {
	clean
	sim 2
	lines "$S/held a" 'true'
	batch_begin b
	await_on a
	wait_until '[ -n "$(event ended 2)" ]'
	lines "[timeout=1ms gpus=2 retries=3] $S/held a" '[vram=1G] true' "$(say read)"
	is 'edits of running and finished lines are read' \
		wait_until 'grep -q read "$S/ran"'
	is 'an edit of a running line does not end its command' on a
	is 'an edit of a finished line does not run it again' \
		[ "$(event started 2 | grep -c .)" = 1 ]
	lines "[cancel] $S/held a" true "$(say read)"
	ended b
	is 'the word cancel ends a running line' \
		[ "$(event ended 1 | member cause)" = cancelled ]
	is 'a line ended by the word cancel does not count in the status' [ "$rc" = 0 ]
	is 'the command of a cancelled line does not end by itself' [ ! -s "$S/ends" ]
	clean
	lines "$S/held a" "$S/held b" "$(say three)"
	sim 1
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 2 ]'
	lines "$S/held a" "[cancel] $S/held b" "$(say three)"
	is 'the word cancel takes a waiting line out of the queue' \
		wait_until '[ "$(queued)" = 1 ]'
	lines "$S/held a" "$(say three)"
	go a
	ended b
	is 'a waiting line that is cancelled is not run' \
		[ "$rc $(words "$S/starts")" = '0 a' ]
	clean
	sim 1
	lines "$S/held a"
	batch_begin b
	await_on a
	lines "$(say new)"
	is 'a new line in the place of a running one waits' \
		wait_until '[ "$(queued)" = 1 ]'
	is 'a running line that is deleted runs on' on a
	go a
	ended b
	is 'a running line that is deleted runs to its end' \
		[ "$rc $(words "$S/ends")" = '0 a' ]
}

# Jobs that wait for their next attempt are waiting jobs: cancel and deletion take them out.
waiting_again() {
	clean
	sim 1
	printf 'retry-delay = 1h\nretry-delay-max = 1h\n' >"$S/late"
	lines "[fail-retries=3] $S/held a 143" "[fail-retries=3] $S/held b 4" "$S/held c"
	batch_begin b --config "$S/late"
	await_on a
	go a
	await_on b
	go b
	await_on c
	is 'jobs that have failed are to be tried again' \
		wait_until '[ -n "$(event attempt 1)$(event attempt 2)" ]'
	is 'jobs that have failed wait in the queue' wait_until '[ "$(queued)" = 2 ]'
	lines "[fail-retries=3 cancel] $S/held a 143" "$S/held c"
	is 'cancel and deletion take jobs before their next attempt out of the queue' \
		wait_until '[ "$(queued)" = 0 ]'
	is 'the word cancel before the next attempt ends the job as cancelled' \
		wait_until '[ "$(event ended 1 | member cause)" = cancelled ]'
	is 'a job deleted before its next attempt counts as interrupted' \
		wait_until '[ "$(event ended 2 | member interrupted)" = true ]'
	go c
	ended b
	is 'a cancelled and a deleted job do not count in the status' \
		[ "$rc $(words "$S/starts")" = '0 a b c' ]
	is 'the summary has the cancelled job and not the deleted one' \
		grep -q '^2 jobs: 1 finished, 1 cancelled' "$S/b.out"

	clean
	lines "[fail-retries=3] $S/held a 143"
	batch_begin b --config "$S/late"
	await_on a
	go a
	wait_until '[ "$(queued)" = 1 ]'
	"$GPULEASE" --cancel "$(queue ticket)"
	ended b
	is '--cancel before the next attempt ends the job as cancelled' \
		[ "$rc $(event ended 1 | member cause)" = '143 cancelled' ]
	is '--cancel before the next attempt: the batch prints who has cancelled' \
		grep -q 'cancelled by ' "$S/b.out"
}

# The next attempt uses what the line says now, whatever the last attempt has needed.
edited_again() {
	clean
	sim 1x24G
	lines "[vram=2000M retries=3] $S/held a 1; echo 'CUDA out of memory'; exit 1"
	batch_begin b
	await_on a
	allow_priorities begin h -n 1 --priority 9
	wait_until '[ "$(queued)" = 1 ]'
	go a
	wait_until 'runs h && [ "$(queued)" = 1 ]'
	is 'after lack of memory the next attempt declares more' \
		[ "$(queue vram_mib)" = 2500 ]
	lines "[vram=9000M retries=3] $S/held a 1; echo 'CUDA out of memory'; exit 1"
	is 'an edited vram= overrides what was learned from the last attempt' \
		wait_until '[ "$(queue vram_mib)" = 9000 ]'
	rm "$S/a.go"
	release h
	await_on a
	is 'the next attempt runs with the edited vram=' \
		[ "$(event started 1 | tail -n 1 | member vram_mib)" = 9000 ]
	lines "[vram=3000M] $S/held a 1; echo 'CUDA out of memory'; exit 1"
	echo 'true' >>"$J"
	wait_until 'listed 1-2'
	allow_priorities begin h -n 1 --priority 9
	wait_until '[ "$(queued)" -ge 1 ]'
	go a
	wait_until 'runs h && queue vram_mib | grep -qx 3000'
	is 'a vram= edited while the job ran counts for its next attempt' \
		wait_until 'queue vram_mib | grep -qx 3000'
	release h
	ended b
	is 'without its retries= a job has no attempt after the next' \
		[ "$rc $(words "$S/starts")" = '1 a a a' ]
}

# Lines that can never run, and are mended then.
mended_lines() {
	clean
	sim 1
	lines "[gpus=99] $(say one)" "[gpus=99] $(say two)" "$S/held a"
	batch_begin b
	await_on a
	wait_until '[ -n "$(event ended 2)" ]'
	is 'a line with too many GPUs ends as not-run' \
		[ "$(event ended 1 | member cause)" = not-run ]
	lines "[gpus=1] $(say one)" "[gpus=98] $(say two)" "$S/held a"
	is 'a line that could not run and is mended gets a ticket' \
		wait_until '[ "$(queued)" = 1 ]'
	is 'a line that is edited and still cannot run ends once more' \
		wait_until '[ "$(event ended 2 | grep -c .)" = 2 ]'
	lines "$(say one)" "$(say two)" "$S/held a"
	wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'lines that are mended are run' [ "$rc $(words "$S/ran")" = '0 one two' ]
	is 'a mended line keeps its job number' [ "$(event started 1 | grep -c .)" = 1 ]
}

done_lines_go() {
	clean
	sim 1
	lines "[name=first] $(say one)" "[after=first] $S/held a" "[after=first] $(say two)"
	batch_begin b
	await_on a
	lines "[after=first] $S/held a" "[after-ok=first] $(say two)" "[after=first] $(say three)"
	is 'a finished line may be deleted although after= names it' \
		wait_until '[ "$(queued)" = 2 ]'
	is 'no error is printed for after= a deleted, finished line' [ ! -s "$S/b.err" ]
	go a
	ended b
	is 'lines after a deleted, finished line are run' \
		[ "$rc $(words "$S/ran")" = '0 one two three' ]
}

uncancelled() {
	clean
	sim 1
	lines "[cancel] $(say one)" "$S/held a"
	batch_begin b
	await_on a
	lines "$(say one)" "$S/held a" "$(say two)"
	is 'a cancelled line that never ran waits when the word cancel is removed' \
		wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'a line without the word cancel is run' \
		[ "$rc $(sort "$S/ran" | words /dev/stdin)" = '0 one two' ]
	clean
	lines "$S/held a" "$S/held b"
	sim 2
	batch_begin b
	await_on a b
	lines "[cancel] $S/held a" "$S/held b"
	wait_until '[ -n "$(event ended 1)" ]'
	lines "$S/held a" "$S/held b" "$(say two)"
	wait_until '[ -n "$(event ended 3)" ]'
	go b
	ended b
	is 'a cancelled line that has run is not run again without the word' \
		[ "$rc $(words "$S/ran") $(count a "$S/starts")" = '0 two 1' ]
}

broken() {
	begin_two
	lines "$S/held a" "[gpu=1] $(say two)" "$(say three)"
	is 'an edit with a bad line gives an error' wait_until '[ -s "$S/b.err" ]'
	is 'the error of a bad edit names file and line' \
		grep -q "jobs, line 2: .*gpu" "$S/b.err"
	touch "$J"
	printf '\n' >>"$J"
	is 'after a bad edit the waiting job stays in the queue' [ "$(queued)" = 1 ]
	is 'after a bad edit the running job runs on' on a
	lines "$S/held a" "$(say two)" "$(say three)"
	is 'an edit that is mended is read' wait_until '[ "$(queued)" = 2 ]'
	is 'the error of a bad edit is printed once' [ "$(grep -c . "$S/b.err")" = 1 ]
	go a
	ended b
	is 'after the edit is mended all lines are run' \
		[ "$rc $(words "$S/ran")" = '0 two three' ]
}

# --- how files are written -----------------------------------------------------------------

left_broken() {
	clean
	sim 1
	lines "$S/held a"
	batch_begin b
	await_on a
	echo 'priority,script,conda_env,arguments,allowed_gpus' >>"$J"
	wait_until '[ -s "$S/b.err" ]'
	go a
	ended b
	is 'an edit that stays bad gives exit status 125' [ "$rc" = 125 ]
}

replaced() {
	clean
	sim 1
	lines "$S/held a"
	batch_begin b
	await_on a
	printf '%s\n' "$S/held a" "$(say one)" >"$S/new"
	mv "$S/new" "$J"
	is 'a jobs file that is replaced is read' wait_until '[ "$(queued)" = 1 ]'
	say two >>"$J"
	is 'a line that is appended to the replaced file is read' \
		wait_until '[ "$(queued)" = 2 ]'
	sed -i "s/echo two/echo deux/" "$J"
	is 'an edit of the replaced file by sed -i is read' wait_until 'listed 1-2,4'
	mv "$J" "$S/old"
	is 'a jobs file that is removed gives an error' wait_until '[ -s "$S/b.err" ]'
	is 'when the jobs file is removed the running job runs on' on a
	printf '%s\n' "$S/held a" "$(say one)" >"$S/new"
	mv "$S/new" "$J"
	wait_until 'listed 1-2'
	mv "$J" "$S/old"
	is 'a jobs file that is removed a second time gives a second error' \
		wait_until '[ "$(count "cannot read" "$S/b.err")" = 2 ]'
	printf '%s\n' "$S/held a" "$(say one)" "$(say three)" >"$J"
	is 'a jobs file that is there again is read' wait_until 'listed 1-2,5'
	wait_until '[ "$(queued_words)" = "one three" ]'
	go a
	ended b
	is 'all lines of the jobs file that is there again are run' \
		[ "$rc $(words "$S/ran")" = '0 one three' ]
}

# Without inotify the runner looks at the file from time to time.
unwatchable() {
	clean
	sim 1
	set -- unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"' sh
	"$@" true 2>/dev/null || {
		skip 'a jobs file is watched without inotify' \
			'no user namespaces here'
		return
	}
	lines "$S/held a" "$(say one)"
	"$@" "$GPULEASE" --batch "$J" >"$S/b.out" 2>"$S/b.err" </dev/null &
	echo $! >"$S/b.pid"
	started="$started $!"
	await_on a
	is 'without inotify the runner has no inotify descriptor' \
		[ -z "$(find "/proc/$(pid_of b)/fd" -lname '*inotify*')" ]
	wait_until '[ "$(queued)" = 1 ]'
	say two >>"$J"
	is 'without inotify an appended line is read' wait_until '[ "$(queued)" = 2 ]'
	lines "$S/held a" "$(say two)"
	is 'without inotify a rewritten file is read' wait_until '[ "$(queued)" = 1 ]'
	go a
	ended b
	is 'without inotify the batch ends well' [ "$rc $(words "$S/ran")" = '0 two' ]
}

watching() {
	clean
	sim 2
	lines "$(say one)"
	batch_begin b --watch
	is 'with --watch the lines of the file are run' wait_until 'grep -q one "$S/ran"'
	wait_until '[ -n "$(event ended 1)" ]'
	say two >>"$J"
	is 'with --watch a line that is appended when all jobs have ended is run' \
		wait_until 'grep -q two "$S/ran"'
	is 'with --watch the board says that the file is watched' \
		wait_until 'grep -q watching "$W/status.txt"'
	wait_until '[ -n "$(event ended 2)" ]'
	kill -TERM "$(pid_of b)"
	ended b
	is 'with --watch the batch ends at SIGTERM' [ "$rc" = 130 ]
	is 'with --watch the batch prints its summary at its end' \
		grep -q '^2 jobs: 2 finished' "$S/b.out"
}

lines_come
lines_come_last
lines_go
lines_move
slow_to_leave
tickets_stay
equal_lines
waiting_lines
running_lines
waiting_again
edited_again
mended_lines
done_lines_go
uncancelled
broken
left_broken
replaced
unwatchable
watching
finish

#!/bin/sh
# Jobs files that change while they are worked through.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# listed RANGES: whether the runner has read a file of those jobs, in that order
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
	is 'a line that is appended' wait_until '[ "$(queued)" = 1 ]'
	printf 'echo un' >>"$J"
	printf 'finished >>%s\n' "$S/ran" >>"$J"
	is 'and one that was written in two pieces' wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'run' [ "$rc $(words "$S/ran")" = '0 more unfinished' ]
	is 'and are jobs like any other' grep -q '^3 jobs: 3 finished' "$S/b.out"
}

# By somebody who keeps the file open.
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
	is 'a line that is written as the last job ends' [ "$rc $(words "$S/ran")" = '0 more' ]
	is 'is run by this runner' grep -q '^2 jobs: 2 finished' "$S/b.out"
}

lines_go() {
	clean
	sim 1
	lines "$S/held a" "$(say one)" "$(say two)" "$(say three)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 3 ]'
	lines "$S/held a" "$(say one)" "$(say three)"
	is 'a line that is deleted leaves the queue' wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'and does not run' [ "$rc $(words "$S/ran")" = '0 one three' ]
	is 'nor count' grep -q '^3 jobs: 3 finished' "$S/b.out"
	is 'nor has it an end' [ -z "$(event ended 3)" ]
}

lines_move() {
	clean
	sim 1
	lines "$S/held a" "$(say one)" "$(say two)" "$(say three)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 3 ]'
	lines "$S/held a" "$(say three)" "$(say one)" "$(say two)"
	is 'lines in another order' wait_until 'listed 1,4,2-3'
	is 'are all in the queue' wait_until '[ "$(queued)" = 3 ]'
	lines "$(say zero)" "$S/held a" "$(say three)" "$(say one)" "$(say two)"
	is 'with one that is inserted' wait_until '[ "$(queued_words)" = "zero three one two" ]'
	go a
	ended b
	is 'and run in that order' [ "$rc $(words "$S/ran")" = '0 zero three one two' ]
	is 'who had to queue again has one log' [ -z "$(find "$W" -name '*~')" ]
}

# Who is slow to leave the queue keeps his place: those behind him do not overtake.
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
	is 'an edit of a line whose process is stopped' wait_until '[ "$(queued)" = 1 ]'
	kill -CONT "$slow"
	is 'counts when it goes on' wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'and the next has not overtaken it' [ "$rc $(words "$S/ran")" = '0 new two' ]
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

# Lines behind the others are in nobody's way.
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
	is 'a line that is appended takes nobody'"'"'s ticket' \
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
	is 'nor where the tickets are not in the order of the lines' \
		[ "$(queue ticket | head -n 2)" = "$before" ]
	release h
	ended b
	is 'which is that of the tickets' [ "$rc $(words "$S/ran")" = '0 two late three' ]
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
	is 'an edit of what waits' wait_until '[ "$(queued)" = 2 ] &&
		! queue ticket | grep -qx "$before"'
	is 'keeps its place before the next' wait_until '[ "$(queued)" = 2 ] &&
		[ "$(queue command | head -n 1)" != "$(say two)" ]'
	lines "$S/held a" "[setup='word=new'] echo \$word >>$S/ran" "echo 2 >>$S/ran"
	is 'and of its command' wait_until 'listed 1-2,4'
	wait_until '[ "$(queued_words)" = "\$word 2" ]'
	go a
	ended b
	is 'is what runs' [ "$rc $(words "$S/ran")" = '0 new 2' ]
	is 'in its place and under its number' [ -n "$(event ended 2)" ]
}

running_lines() {
	clean
	sim 2
	lines "$S/held a" 'true'
	batch_begin b
	await_on a
	wait_until '[ -n "$(event ended 2)" ]'
	lines "[timeout=1ms gpus=2 retries=3] $S/held a" '[vram=1G] true' "$(say read)"
	is 'edits of what runs' wait_until 'grep -q read "$S/ran"'
	is 'do nothing' on a
	is 'nor those of what is done' [ "$(event started 2 | grep -c .)" = 1 ]
	lines "[cancel] $S/held a" true "$(say read)"
	ended b
	is 'but the word cancel ends it' [ "$(event ended 1 | member cause)" = cancelled ]
	is 'which was asked for, and does not count' [ "$rc" = 0 ]
	is 'it has not ended by itself' [ ! -s "$S/ends" ]
	clean
	lines "$S/held a" "$S/held b" "$(say three)"
	sim 1
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 2 ]'
	lines "$S/held a" "[cancel] $S/held b" "$(say three)"
	is 'cancelled, what waits leaves the queue' wait_until '[ "$(queued)" = 1 ]'
	lines "$S/held a" "$(say three)"
	go a
	ended b
	is 'and has not run' [ "$rc $(words "$S/starts")" = '0 a' ]
	clean
	sim 1
	lines "$S/held a"
	batch_begin b
	await_on a
	lines "$(say new)"
	is 'a running line that is deleted' wait_until '[ "$(queued)" = 1 ]'
	is 'runs on' on a
	go a
	ended b
	is 'to its end' [ "$rc $(words "$S/ends")" = '0 a' ]
}

# Jobs that wait for their next attempt wait like others.
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
	is 'jobs that have failed' wait_until '[ -n "$(event attempt 1)$(event attempt 2)" ]'
	is 'wait for their next attempt' wait_until '[ "$(queued)" = 2 ]'
	lines "[fail-retries=3 cancel] $S/held a 143" "$S/held c"
	is 'the word cancel takes one out of the queue, a deletion the other' \
		wait_until '[ "$(queued)" = 0 ]'
	is 'one is cancelled, whatever it ended with before' \
		wait_until '[ "$(event ended 1 | member cause)" = cancelled ]'
	is 'the other has no end' wait_until '[ "$(event ended 2 | member interrupted)" = true ]'
	go c
	ended b
	is 'and neither counts' [ "$rc $(words "$S/starts")" = '0 a b c' ]
	is 'nor is what is gone in the summary' \
		grep -q '^2 jobs: 1 finished, 1 cancelled' "$S/b.out"

	clean
	lines "[fail-retries=3] $S/held a 143"
	batch_begin b --config "$S/late"
	await_on a
	go a
	wait_until '[ "$(queued)" = 1 ]'
	"$GPULEASE" --cancel "$(queue ticket)"
	ended b
	is 'one that somebody cancels says so' \
		[ "$rc $(event ended 1 | member cause)" = '143 cancelled' ]
	is '... with his name' grep -q 'cancelled by ' "$S/b.out"
}

# What a line says now, it says of its next attempt, whatever the one before has taught.
edited_again() {
	clean
	sim 1x24G
	lines "[vram=2000M retries=3] $S/held a 1; echo 'CUDA out of memory'; exit 1"
	batch_begin b
	await_on a
	begin h -n 1 --priority 9
	wait_until '[ "$(queued)" = 1 ]'
	go a
	wait_until 'runs h && [ "$(queued)" = 1 ]'
	is 'memory ran out, and more is asked for' [ "$(queue vram_mib)" = 2500 ]
	lines "[vram=9000M retries=3] $S/held a 1; echo 'CUDA out of memory'; exit 1"
	is 'but what the line says then counts' wait_until '[ "$(queue vram_mib)" = 9000 ]'
	rm "$S/a.go"
	release h
	await_on a
	is 'and it runs with that' [ "$(event started 1 | tail -n 1 | member vram_mib)" = 9000 ]
	lines "[vram=3000M] $S/held a 1; echo 'CUDA out of memory'; exit 1"
	echo 'true' >>"$J"
	wait_until 'listed 1-2'
	begin h -n 1 --priority 9
	wait_until '[ "$(queued)" -ge 1 ]'
	go a
	wait_until 'runs h && queue vram_mib | grep -qx 3000'
	is 'what was edited while it ran counts once it waits' \
		wait_until 'queue vram_mib | grep -qx 3000'
	release h
	ended b
	is 'one more attempt is the last' [ "$rc $(words "$S/starts")" = '1 a a a' ]
}

# What could never be run, and says something else then.
mended_lines() {
	clean
	sim 1
	lines "[gpus=99] $(say one)" "[gpus=99] $(say two)" "$S/held a"
	batch_begin b
	await_on a
	wait_until '[ -n "$(event ended 2)" ]'
	is 'a line that cannot be run' [ "$(event ended 1 | member cause)" = not-run ]
	lines "[gpus=1] $(say one)" "[gpus=98] $(say two)" "$S/held a"
	is 'and is mended' wait_until '[ "$(queued)" = 1 ]'
	is 'one that is not gets another end' wait_until '[ "$(event ended 2 | grep -c .)" = 2 ]'
	lines "$(say one)" "$(say two)" "$S/held a"
	wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'is run' [ "$rc $(words "$S/ran")" = '0 one two' ]
	is 'as the job that it was' [ "$(event started 1 | grep -c .)" = 1 ]
}

done_lines_go() {
	clean
	sim 1
	lines "[name=first] $(say one)" "[after=first] $S/held a" "[after=first] $(say two)"
	batch_begin b
	await_on a
	lines "[after=first] $S/held a" "[after-ok=first] $(say two)" "[after=first] $(say three)"
	is 'a line that is done may go, though others come after it' wait_until '[ "$(queued)" = 2 ]'
	is 'which is nothing to complain about' [ ! -s "$S/b.err" ]
	go a
	ended b
	is 'and they run' [ "$rc $(words "$S/ran")" = '0 one two three' ]
}

uncancelled() {
	clean
	sim 1
	lines "[cancel] $(say one)" "$S/held a"
	batch_begin b
	await_on a
	lines "$(say one)" "$S/held a" "$(say two)"
	is 'a line that never ran for the word in it waits without it' \
		wait_until '[ "$(queued)" = 2 ]'
	go a
	ended b
	is 'and runs' [ "$rc $(sort "$S/ran" | words /dev/stdin)" = '0 one two' ]
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
	is 'one that has run stays as it is' \
		[ "$rc $(words "$S/ran") $(count a "$S/starts")" = '0 two 1' ]
}

broken() {
	begin_two
	lines "$S/held a" "[gpu=1] $(say two)" "$(say three)"
	is 'a broken edit' wait_until '[ -s "$S/b.err" ]'
	is 'is told with file and line' grep -q "jobs, line 2: .*gpu" "$S/b.err"
	touch "$J"
	printf '\n' >>"$J"
	is 'and what was there before stays' [ "$(queued)" = 1 ]
	is 'what runs is not touched' on a
	lines "$S/held a" "$(say two)" "$(say three)"
	is 'mended it counts' wait_until '[ "$(queued)" = 2 ]'
	is 'it was told once' [ "$(grep -c . "$S/b.err")" = 1 ]
	go a
	ended b
	is 'and all goes well' [ "$rc $(words "$S/ran")" = '0 two three' ]
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
	is 'one that is not mended shows in the status' [ "$rc" = 125 ]
}

replaced() {
	clean
	sim 1
	lines "$S/held a"
	batch_begin b
	await_on a
	printf '%s\n' "$S/held a" "$(say one)" >"$S/new"
	mv "$S/new" "$J"
	is 'a file that another takes the place of' wait_until '[ "$(queued)" = 1 ]'
	say two >>"$J"
	is 'and that is appended to then' wait_until '[ "$(queued)" = 2 ]'
	sed -i "s/echo two/echo deux/" "$J"
	is 'and edited by sed -i' wait_until 'listed 1-2,4'
	mv "$J" "$S/old"
	is 'a file that is gone' wait_until '[ -s "$S/b.err" ]'
	is 'is told, and what was in it goes on' on a
	printf '%s\n' "$S/held a" "$(say one)" >"$S/new"
	mv "$S/new" "$J"
	wait_until 'listed 1-2'
	mv "$J" "$S/old"
	is 'if it comes back and goes again that is told again' \
		wait_until '[ "$(count "cannot read" "$S/b.err")" = 2 ]'
	printf '%s\n' "$S/held a" "$(say one)" "$(say three)" >"$J"
	is 'one that comes again is read' wait_until 'listed 1-2,5'
	wait_until '[ "$(queued_words)" = "one three" ]'
	go a
	ended b
	is 'all of it has run' [ "$rc $(words "$S/ran")" = '0 one three' ]
}

# Where there is no inotify to be had, the file is looked at.
unwatchable() {
	clean
	sim 1
	set -- unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"' sh
	"$@" true 2>/dev/null || {
		skip 'without inotify' 'no user namespaces here'
		return
	}
	lines "$S/held a" "$(say one)"
	"$@" "$GPULEASE" --batch "$J" >"$S/b.out" 2>"$S/b.err" </dev/null &
	echo $! >"$S/b.pid"
	started="$started $!"
	await_on a
	is 'without inotify' [ -z "$(find "/proc/$(pid_of b)/fd" -lname '*inotify*')" ]
	wait_until '[ "$(queued)" = 1 ]'
	say two >>"$J"
	is 'a line is seen' wait_until '[ "$(queued)" = 2 ]'
	lines "$S/held a" "$(say two)"
	is 'and another file, too' wait_until '[ "$(queued)" = 1 ]'
	go a
	ended b
	is 'and all goes well' [ "$rc $(words "$S/ran")" = '0 two' ]
}

watching() {
	clean
	sim 2
	lines "$(say one)"
	batch_begin b --watch
	is 'with --watch' wait_until 'grep -q one "$S/ran"'
	wait_until '[ -n "$(event ended 1)" ]'
	say two >>"$J"
	is 'a line that comes when all is done is run' wait_until 'grep -q two "$S/ran"'
	is 'and the board says that more may come' wait_until 'grep -q watching "$W/status.txt"'
	wait_until '[ -n "$(event ended 2)" ]'
	kill -TERM "$(pid_of b)"
	ended b
	is 'until it is ended' [ "$rc" = 130 ]
	is 'with its summary' grep -q '^2 jobs: 2 finished' "$S/b.out"
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

#!/bin/sh
# Jobs files where the journal has no room, and where descriptors run out: nothing is run twice
# for it, and nothing is given up.
#
# A disk that is full is one limit: that of the size of files, for one process at a time.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
if ! command -v prlimit >/dev/null 2>&1; then
	skip 'a journal without room' 'prlimit is not installed'
	finish
fi
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# blow_up: makes the journal larger than all other files, with empty lines
blow_up() {
	head -c 100000 /dev/zero | tr '\0' '\n' >>"$W/journal.jsonl"
}

# no_room BYTES PID…: they cannot add more than so much to the journal
no_room() {
	most=$(($(stat -c %s "$W/journal.jsonl") + $1))
	shift
	for each; do
		prlimit --pid "$each" --fsize="$most:" || bail 'cannot set a limit'
	done
}

# room PID: as much as it may have
room() {
	prlimit --pid "$1" --fsize="$(prlimit --pid "$1" --fsize --noheadings -o HARD | tr -d ' '):"
}

# supervisor NUMBER: its pid, of a job that runs
supervisor() {
	event started "$1" | member pid
}

# --- what the runner writes ----------------------------------------------------------------

a_new_line() {
	clean
	lines "echo first >>$S/ran"
	batch_begin b --watch
	wait_until '[ -n "$(event ended 1)" ]'
	blow_up
	no_room 40 "$(pid_of b)"
	echo "$S/held a" >>"$J"
	is 'a line that the journal has no room for' \
		wait_until 'grep -q "cannot write the journal" "$S/b.err"'
	is 'is not begun' [ ! -s "$S/starts" ]
	room "$(pid_of b)"
	await_on a
	is 'until there is, and then the journal knows of it' [ -n "$(event seen 2)" ]
	kill -KILL "$(pid_of b)"
	ended b
	batch_begin c
	is 'as does the next run' wait_until 'grep -q "still at work: 1" "$S/c.out"'
	go a
	ended c
	is 'which does not run it again' [ "$rc $(words "$S/starts")" = '0 a' ]
}

# --- what the jobs write -------------------------------------------------------------------

an_end() {
	clean
	lines "$S/held a" "$S/held b"
	batch_begin b
	await_on a b
	blow_up
	no_room 40 "$(pid_of b)" "$(supervisor 1)"
	go a
	is 'an end that the journal has no room for is told' \
		wait_until 'grep -q "job 1 ended: exit status 0" "$S/b.out"'
	is 'and not kept' [ -z "$(event ended 1)" ]
	room "$(pid_of b)"
	is 'until there is' wait_until '[ -n "$(event ended 1)" ]'
	go b
	ended b
	is 'with all that is known of it' like '0 1 [1-9]*' \
		"$(event ended 1 | member status) $(event ended 1 | member attempt) \
$(event ended 1 | member ran_ms)"
	run 'so it is done' 0 '*done before: 2 finished*' '*skipped: 1' batch
	is 'and not run again' [ "$(sort "$S/starts" | words /dev/stdin)" = 'a b' ]
}

an_end_by_hand() {
	clean
	lines "$S/held a" "$S/held b"
	batch_begin b
	await_on a b
	blow_up
	no_room 0 "$(supervisor 1)"
	go a
	is 'an end that the job could not write is written by the runner' \
		wait_until '[ -n "$(event ended 1)" ]'
	is 'without a word' [ ! -s "$S/b.err" ]
	no_room 0 "$(pid_of b)" "$(supervisor 2)"
	go b
	ended b
	is 'where it cannot either it says so' grep -q 'lacks the ends of jobs 2: ' "$S/b.err"
	rm -rf "$S"/*.on
	run 'and that one is run again' 0 '*2 finished*' '' batch
	is 'alone' [ "$(sort "$S/starts" | words /dev/stdin)" = 'a b b' ]
}

a_start() {
	clean
	lines "$S/held a" "[name=two] echo two >>$S/ran" "[after-ok=two] echo three >>$S/ran"
	batch_begin b --jobs 1
	await_on a
	blow_up
	no_room 0 "$(pid_of b)" # and those that it starts from now on
	go a
	is 'a job whose start the journal has no room for is put off' wait_until \
		'grep -q "cannot start job 2 .*now: cannot write the journal of the batch" "$S/b.err"'
	is 'and not run' [ ! -s "$S/ran" ]
	room "$(pid_of b)"
	ended b
	is 'until there is' [ "$rc $(words "$S/ran")" = '0 two three' ]
	is 'which is told once' [ "$(count 'cannot start' "$S/b.err")" = 1 ]
	is 'and has no trace in its log' [ "$(count 'cannot' "$W/2-two.log")" = 0 ]
}

# Its second attempt.
a_start_again() {
	clean
	lines "[fail-retries=1] $S/held a 4"
	batch_begin b
	await_on a
	blow_up
	no_room 0 "$(supervisor 1)"
	go a
	ended b
	is 'of a job that is tried again, too' [ "$rc $(words "$S/ends")" = '4 a a' ]
	is 'which is not given up' [ "$(event ended 1 | member status | words /dev/stdin)" = '4 4' ]
	is 'and not tried more often for it' [ "$(event attempt 1 | grep -c .)" = 1 ]
}

# --- descriptors ---------------------------------------------------------------------------

few_descriptors() {
	clean
	lines "$S/held a"
	batch_begin b
	await_on a
	prlimit --pid "$(pid_of b)" --nofile=40: || bail 'cannot set a limit'
	for each in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 \
		30 31 32 33 34 35 36 37 38 39; do
		echo "[gpus=0] until [ -e $S/all.go ]; do sleep 0.2; done; echo $each >>$S/ran"
	done >>"$J"
	is 'where descriptors run out the rest is put off' wait_until \
		'grep -q "cannot start job .*: \(Too many open files\|No file descriptors\)" "$S/b.err"'
	go a all
	ended b
	is 'and all are run' [ "$rc $(sort -u "$S/ran" | grep -c .)" = '0 39' ]
	is 'none is given up' grep -q '^40 jobs: 40 finished' "$S/b.out"
}

sim 2
a_new_line
an_end
an_end_by_hand
a_start
a_start_again
few_descriptors
finish

#!/bin/sh
# A batch that has no room for its journal, or no more descriptors: no line is run twice for it,
# and no line is given up.
#
# A limit of the size of files, set for one process at a time, stands for a full disk.
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

# no_room BYTES PID…: lets these processes add at most BYTES to the journal
no_room() {
	most=$(($(stat -c %s "$W/journal.jsonl") + $1))
	shift
	for each; do
		prlimit --pid "$each" --fsize="$most:" || bail 'cannot set a limit'
	done
}

# room PID: raises the limit of the process to its hard limit
room() {
	prlimit --pid "$1" --fsize="$(prlimit --pid "$1" --fsize --noheadings -o HARD | tr -d ' '):"
}

# supervisor NUMBER: prints the pid of the supervisor of a job that runs
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
	is 'without room in the journal a new line gives an error' \
		wait_until 'grep -q "cannot write the journal" "$S/b.err"'
	is 'without room in the journal a new line is not started' [ ! -s "$S/starts" ]
	room "$(pid_of b)"
	await_on a
	is 'with room again the new line starts and is in the journal' \
		[ -n "$(event seen 2)" ]
	kill -KILL "$(pid_of b)"
	ended b
	batch_begin c
	is 'the next runner finds the new line running' \
		wait_until 'grep -q "have not ended: [0-9]*$" "$S/c.out"'
	go a
	ended c
	is 'the next runner does not run the new line again' \
		[ "$rc $(words "$S/starts")" = '0 a' ]
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
	is 'without room in the journal the end of a job is still printed' \
		wait_until 'grep -q "entry 1 ended: exit status 0" "$S/b.out"'
	is 'without room the end is not in the journal' [ -z "$(event ended 1)" ]
	room "$(pid_of b)"
	is 'with room again the end is written to the journal' \
		wait_until '[ -n "$(event ended 1)" ]'
	go b
	ended b
	is 'the late end has status, attempt and run time' like '0 1 [1-9]*' \
		"$(event ended 1 | member status) $(event ended 1 | member attempt) \
$(event ended 1 | member ran_ms)"
	run 'a job with a late end counts as done in the next run' \
		0 '*ended in an earlier run*2 of *(2 finished)*' '*skipped: 1' batch
	is 'a job with a late end is not run again' \
		[ "$(sort "$S/starts" | words /dev/stdin)" = 'a b' ]
}

an_end_by_hand() {
	clean
	lines "$S/held a" "$S/held b"
	batch_begin b
	await_on a b
	blow_up
	no_room 0 "$(supervisor 1)"
	go a
	is 'the runner writes the end that the supervisor could not write' \
		wait_until '[ -n "$(event ended 1)" ]'
	is 'the runner writes that end without a message' [ ! -s "$S/b.err" ]
	no_room 0 "$(pid_of b)" "$(supervisor 2)"
	go b
	ended b
	is 'the runner prints an error when it cannot write the end, either' \
		grep -q 'lacks the ends of entries 2: ' "$S/b.err"
	rm -rf "$S"/*.on
	run 'the next run is complete after an end was lost' 0 '*2 finished*' '' batch
	is 'the next run runs only the job that lost its end' \
		[ "$(sort "$S/starts" | words /dev/stdin)" = 'a b b' ]
}

a_start() {
	clean
	lines "$S/held a" "[name=two] echo two >>$S/ran" "[after-ok=two] echo three >>$S/ran"
	batch_begin b --jobs 1
	await_on a
	blow_up
	no_room 0 "$(pid_of b)" # and the processes that it starts from now on
	go a
	is 'without room in the journal the start of a job is put off' wait_until \
		'grep -q "cannot start entry 2 .*now: cannot write the journal of the batch" "$S/b.err"'
	is 'a job that is put off is not run' [ ! -s "$S/ran" ]
	room "$(pid_of b)"
	ended b
	is 'with room again the job and the one after it run' \
		[ "$rc $(words "$S/ran")" = '0 two three' ]
	is 'that the start is put off is printed once' \
		[ "$(count 'cannot start' "$S/b.err")" = 1 ]
	is 'that the start is put off is not in the log of the job' \
		[ "$(count 'cannot' "$W/2-two.log")" = 0 ]
}

# The journal has no room for the second attempt of a job.
a_start_again() {
	clean
	lines "[fail-retries=1] $S/held a 4"
	batch_begin b
	await_on a
	blow_up
	no_room 0 "$(supervisor 1)"
	go a
	ended b
	is 'without room in the journal a job is tried again' \
		[ "$rc $(words "$S/ends")" = '4 a a' ]
	is 'without room the status of both attempts is in the journal' \
		[ "$(event ended 1 | member status | words /dev/stdin)" = '4 4' ]
	is 'without room the job is tried again only once' \
		[ "$(event attempt 1 | grep -c .)" = 1 ]
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
	is 'when descriptors run out the other lines are put off' wait_until \
		'grep -q "cannot start entry .*: \(Too many open files\|No file descriptors\)" "$S/b.err"'
	go a all
	ended b
	is 'after descriptors ran out all lines are run' \
		[ "$rc $(sort -u "$S/ran" | grep -c .)" = '0 39' ]
	is 'after descriptors ran out no line is given up' \
		grep -q '^40 jobs: 40 finished' "$S/b.out"
}

sim 2
a_new_line
an_end
an_end_by_hand
a_start
a_start_again
few_descriptors
finish

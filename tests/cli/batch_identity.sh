#!/bin/sh
# Which lines of a jobs file are equal: what decides the result of a command belongs to its line.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# Appends the value of $X, or "-", to $S/ran.
show='echo "${X--}" >>'$S/ran

# ran WORD…: whether the jobs so far have appended these words, in any order
ran() {
	[ "$(sort "$S/ran" | words /dev/stdin)" = "$*" ]
}

setup() {
	clean
	lines "[setup='X=1'] $show" "[setup='X=2'] $show" "[setup='X=1'] $show"
	run 'with --once lines with two setups are accepted' \
		0 '*2 finished, 1 dropped*' '' batch --once
	is 'with --once each setup is run once' ran 1 2
	run 'the next run with --once has nothing to do' 0 '*' '' batch --once
	is 'a line that is done is not run again' ran 1 2
	lines "[setup='X=1'] $show" "[setup='X=3'] $show"
	run 'a line with a new setup says that it runs again' \
		0 '*lines to run again,*: 1*' '' batch --once
	is 'a line with a new setup is run again' ran 1 2 3
	lines "[setup='X=1'] $show" "[setup='X=2'] $show"
	run 'an earlier setup is accepted' 0 '*' '' batch --once
	is 'a line that returns to an earlier setup is done' ran 1 2 3
	lines "[setup='X=2' gpus=0 priority=-1 timeout=1h retries=2 fail-retries=2] $show" \
		"[setup='X=1' vram=1G allow=0 name=other] $show"
	run 'other attributes are accepted' 0 '*2 finished*' '' batch
	is 'GPUs, times and priorities do not make a line another line, a name does' \
		ran 1 1 2 3
}

# The numbers of the GPUs in the arguments decide the result, too.
inject() {
	clean
	lines 'echo {gpus} >>'"$S/ran"
	run 'a line with the numbers of its GPUs is run' 0 '*1 finished*' '' batch
	run 'with --inject-style physical it is run again' 0 '*1 finished*' '' \
		batch --inject-style physical
	is 'it has run twice' [ "$(wc -l <"$S/ran")" -eq 2 ]
}

# What the command line says of all lines.
command_line() {
	clean
	mkdir -p "$S/one" "$S/two"
	lines 'pwd -P >>'"$S/ran"
	at=$(cd "$S" && pwd -P)
	for dir in one two one; do
		run "a batch with -D $dir ends" 0 '*1 finished*' '' batch -D "$S/$dir"
	done
	is 'a line runs once in each directory' ran "$at/one $at/two"
	run 'a batch in that directory ends' 0 '*1 finished*' '' \
		sh -c 'cd "$1" && exec "$2" --batch "$3"' sh "$S/two" "$GPULEASE" "$J"
	is 'the directory of the runner counts as that of -D' ran "$at/one $at/two"
	clean
	lines "$show" "[setup='X=own'] $show"
	for setup in X=1 X=2 X=1; do
		run "a batch with --setup $setup ends" 0 '*' '' batch --setup "$setup"
	done
	is 'another --setup runs the lines without a setup again' ran 1 2 own
	clean
	lines "$show"
	for value in ALL,X=1 ALL,X=2; do
		run "a batch with --export $value ends" 0 '*' '' batch --export "$value"
	done
	is 'another --export runs all lines again' ran 1 2
}

# Edits while a runner works.
live() {
	clean
	sim 1
	lines "[setup='X=1'] $S/held a" "[setup='X=1'] $show"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
	lines "[setup='X=1'] $S/held a" "[setup='X=2'] $show"
	is 'a waiting line with a new setup keeps its number' wait_until \
		'[ "$(queued)" = 1 ] && [ "$(count "\"event\": \"seen\"" "$W/journal.jsonl")" = 2 ]'
	go a
	ended b
	is 'a waiting line runs with its new setup, once' ran 2
	run 'the next run has nothing to do' 0 '*2 finished*' '' batch
	is 'a line that was edited while it waited is done' ran 2
	clean
	lines "[setup='X=1'] $S/held a"
	batch_begin b --watch
	await_on a
	lines "[setup='X=2' gpus=0] $S/held a"
	is 'a running line with a new setup is run again' wait_until \
		'[ "$(words "$S/starts")" = "a a" ]'
	go a
	wait_until '[ "$(words "$S/ends")" = "a a" ]'
	kill -INT "$(pid_of b)"
	ended b
}

# A journal of an earlier version does not know the environments of its jobs.
old_journal() {
	clean
	lines "[setup='X=1'] $show" "[setup='X=2'] exit 3"
	run 'a batch with a job that fails ends' 3 '*' '' batch
	sed 's/, "environment": "[0-9a-f]*"//' "$W/journal.jsonl" >"$S/old"
	is 'the journal has environments' [ "$(diff "$S/old" "$W/journal.jsonl" | grep -c '^>')" = 4 ]
	cp "$S/old" "$W/journal.jsonl"
	lines "[setup='X=4'] $show" "[setup='X=2'] exit 3"
	run 'an old journal is accepted' 3 '*1 finished, 1 failed*' '' batch
	run 'an old journal is accepted with --once' 3 '*1 finished, 1 failed*' '' batch --once
	is 'finished lines of an old journal stay finished' ran 1
	lines "[setup='X=5'] $show" "[setup='X=5'] $show"
	run 'with --once an equal line of an old journal counts' 0 '*1 dropped*' '' batch --once
	is 'with --once nothing of an old journal is run again' ran 1
}

setup
inject
command_line
live
old_journal
finish

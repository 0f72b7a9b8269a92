#!/bin/sh
# Jobs files that are none, environments that lack something, and how a batch is ended.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# --- bad files ---------------------------------------------------------------------------

# bad TEXT PATTERN LINE: a file whose second line is that
bad() {
	clean
	lines "echo 1 >>$S/ran" "$3" "echo 3 >>$S/ran"
	run "$1" 125 '' "gpulease: *jobs, line 2: $2" batch
	[ "$(grep -c . "$S/err")" = 1 ] || not_ok 'in one line' "$err"
	[ ! -s "$S/ran" ] || not_ok 'nothing runs'
	[ ! -e "$W" ] || not_ok 'there is no journal'
}

bad_lines() {
	bad 'an attribute that there is not' "*'gpu'*gpus*" '[gpu=2] true'
	bad 'a number that is none' '*gpus*' '[gpus=two] true'
	bad 'a share beyond a GPU' '*gpus*' '[gpus=1.5] true'
	bad 'a size' '*vram*' '[vram=18X] true'
	bad 'a duration' '*timeout*' '[timeout=soon] true'
	bad 'a number of retries' '*retries*' '[retries=-1] true'
	bad 'a priority' '*priority*' '[priority=high] true'
	bad 'a list of GPUs' '*allow*' '[allow=one] true'
	bad 'a name that is a number' '*name*' '[name=7] true'
	bad 'a value without an end' '*' '[setup="x] true'
	bad 'brackets without an end' '*' '[gpus=1 true'
	bad 'no command' '*no command*' '[gpus=1]'
	bad 'the same twice' '*gpus*' '[gpus=1 gpus=2] true'
	bad 'a word with a value that takes none' '*cancel*' '[cancel=1] true'
	bad 'a table' 'this is a table; add --batch-format csv' 'priority,script,x,y,z'
	bad 'after nobody' "*'nobody'*" '[after=nobody] true'
	bad 'after itself' "*'me'*itself*" '[name=me after=me] true'
	clean
	lines '[ 1 = 1 ] && echo yes'
	run 'what the shell means by [ is a command' 0 '*' '' batch
	is 'which runs' grep -qx yes "$W"/1-*.log
}

no_files() {
	clean
	run 'a file that is not there' 125 '' "gpulease: *'$J'*No such file*" batch
	mkdir "$J"
	run 'a folder' 125 '' "gpulease: *'$J'*" batch
	rmdir "$J"
	mkfifo "$J"
	run 'a FIFO' 125 '' "gpulease: *'$J'*regular*" batch
	rm -f "$J"
	ln -s "$S/nowhere" "$J"
	run 'a link that leads nowhere' 125 '' "gpulease: *'$J'*No such file*" batch
	rm -f "$J"
	printf 'true\n\0\n' >"$J"
	run 'a file that is no text' 125 '' '*line 2*NUL*' batch
	lines true
	chmod 0500 "$S"
	if [ "$(id -u)" != 0 ]; then
		(cd "$S/tmp" && exec "$GPULEASE" --batch "$J") >/dev/null 2>"$S/tmp/err"
		is 'a folder that cannot be written' \
			grep -q -- '--log-dir' "$S/tmp/err"
		rm -f "$S/tmp/err"
	fi
	chmod 0700 "$S"
	is 'nothing was left behind by any of them' [ ! -e "$W" ]
	printf 'a file' >"$W"
	run 'a file where the folder of logs is to be' 125 '' "gpulease: *'$W'*--log-dir*" batch
	rm -f "$W"
	run 'no file at all' 125 '' '*--batch*jobs file*' "$GPULEASE" --batch
	run 'two of them' 125 '' '*one file*' "$GPULEASE" --batch "$J" "$J"
	run 'no jobs at once' 125 '' '*--jobs*0*' batch --jobs 0
}

# What is wrong for all lines is told once.
bad_options() {
	clean
	lines "echo 1 >>$S/ran" "echo 2 >>$S/ran"
	run 'a folder that is not there' 125 '' \
		"gpulease: cannot change to '$S/none': No such file*" batch -D "$S/none"
	run 'a table of models that is not there' 125 '' \
		"gpulease: cannot read models '$S/none': No such file*" batch --models "$S/none"
	printf 'a = x\n' >"$S/models"
	run 'or is none' 125 '' "gpulease: $S/models, line 1: *" batch --models "$S/models"
	printf 'a = 1\n' >"$S/models"
	run 'or is not where the lines are to run' 125 '' "gpulease: cannot read models '/*models'*" \
		sh -c 'cd "$2" && "$1" --batch jobs -D / --models models' sh "$GPULEASE" "$S"
	is 'and nothing runs' [ ! -s "$S/ran" ]
	is 'nor is anything left behind' [ ! -e "$W" ]
	run 'one that is there' 0 '*2 finished*' '' \
		sh -c 'cd / && "$1" --batch "$2/jobs" -D "$2" --models models' \
		sh "$GPULEASE" "$S"
}

environments() {
	clean
	lines 'echo "${HOME-none}"'
	run 'without HOME' 0 '*1 finished*' '' env -u HOME "$GPULEASE" --batch "$J"
	is 'commands have none' grep -qx none "$W"/1-*.log
	clean
	lines 'echo out'
	(umask 077 && exec "$GPULEASE" --batch "$J") >"$S/out" 2>"$S/err"
	is 'with umask 077' grep -qx out "$W"/1-*.log
	clean
	lines 'cat; echo "end $?"'
	"$GPULEASE" --batch "$J" <&- >"$S/out" 2>"$S/err"
	is 'without stdin' grep -qx 'end 0' "$W"/1-*.log
	clean
	lines 'echo out'
	"$GPULEASE" --batch "$J" <&- >&- 2>&-
	is 'without any descriptors' grep -qx out "$W"/1-*.log
	clean
	lines 'echo 1' 'echo 2 >>'"$S/ran" 'echo 3 >>'"$S/ran"
	"$GPULEASE" --batch "$J" --jobs 1 2>"$S/err" | head -n 1 >"$S/out"
	is 'a reader that goes after a line' [ "$(words "$S/ran")" = '2 3' ]
	is 'is nothing to complain about' [ ! -s "$S/err" ]
	clean
	lines "echo 1 >>$S/ran"
	"$GPULEASE" --batch "$J" >/dev/full 2>"$S/err"
	is 'output that cannot be written is' [ "$? $(words "$S/ran")" = '125 1' ]
	"$GPULEASE" --batch "$J" --json >/dev/full 2>"$S/err"
	is 'even the last of it' [ "$? $(words "$S/ran")" = '125 1' ]
	is 'and the reason is told' grep -q 'cannot write the output: No space' "$S/err"
	clean
	mkdir "$S/linked"
	lines 'echo by link'
	mv "$J" "$S/linked/real"
	ln -s linked/real "$J"
	run 'a link to the file' 0 '*' '' batch
	is 'has its logs beside the file' grep -qx 'by link' "$S"/linked/real.logs/1-*.log
	rm -rf "$S/linked"
}

# --- being ended -------------------------------------------------------------------------

# stopped_by SIGNAL: with a command that notes TERM, one that waits in the queue
stopped_by() {
	clean
	sim 1
	lines "trap 'echo TERM >>$S/ran; exit 3' TERM; $S/held a & wait" 'echo second'
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
	kill "-$1" "$(pid_of b)"
	ended b
	is "ended by $1 it is 130" [ "$rc" = 130 ]
	is 'the command had TERM' [ "$(words "$S/ran")" = TERM ]
	is 'the queue is empty' wait_until empty_queue
	is 'stderr, too' [ ! -s "$S/b.err" ]
	is 'who waited was not run' [ ! -e "$W/2-second.log" ] || [ ! -s "$W/2-second.log" ]
	go a
	rm -rf "$S"/*.on
	lines "trap 'echo TERM >>$S/ran; exit 3' TERM; $S/held a & wait" 'echo second'
	run 'the next run does what was interrupted' 0 '*2 finished*' '' batch
	is 'again' [ "$(count a "$S/starts")" = 2 ]
}

stubborn() {
	clean
	sim 8
	lines "trap '' TERM; $S/held a" "$S/held b"
	batch_begin b --grace 200ms
	await_on a b
	kill -INT "$(pid_of b)"
	ended b
	is 'who ignores TERM is killed after the grace' [ "$rc" = 130 ]
	is 'and is gone' wait_until '[ -z "$(grep -l held /proc/[0-9]*/cmdline 2>/dev/null |
		while read -r f; do tr "\0" " " <"$f" 2>/dev/null | grep -F "$S/held"; done)" ]'
	clean
	lines "trap '' TERM; $S/held a"
	batch_begin b --grace 1h
	await_on a
	kill -INT "$(pid_of b)"
	is 'with a long grace it waits' wait_until 'grep -q interrupted "$S/b.out"'
	is 'for the command' on a
	kill -INT "$(pid_of b)"
	ended b
	is 'until it is told once more' [ "$rc" = 130 ]
	is 'and the queue is empty' wait_until empty_queue
}

failing_fast() {
	clean
	sim 8
	lines "$S/held a" "until [ -d $S/a.on ]; do sleep 0.05; done; exit 6"
	run 'with --fail-fast one that fails ends the others' 6 '*' '' batch --fail-fast
	is 'as they are' [ ! -s "$S/ends" ]
	is 'and the queue is empty' wait_until empty_queue
	rm -rf "$S"/*.on
	go a
	lines "$S/held a" "until [ -d $S/a.on ]; do sleep 0.05; done; exit 6"
	run 'the next run does what was ended, and counts what has failed' 6 '*' '' batch
	is 'once' [ "$(words "$S/ends")" = a ]
	clean
	lines 'exit 3' "echo on >>$S/ran"
	run 'with --keep-going they go on' 3 '*' '' batch --keep-going --jobs 1
	is 'all of them' [ "$(words "$S/ran")" = on ]
}

bad_lines
no_files
bad_options
environments
stopped_by INT
stopped_by TERM
stubborn
failing_fast
finish

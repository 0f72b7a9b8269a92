#!/bin/sh
# Invalid jobs files, incomplete environments, and how a batch is ended.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"

# --- bad files ---------------------------------------------------------------------------

# bad TEXT PATTERN LINE: a file with LINE as its second line gives an error that matches
bad() {
	clean
	lines "echo 1 >>$S/ran" "$3" "echo 3 >>$S/ran"
	run "$1" 125 '' "gpulease: *jobs, line 2: $2" batch
	[ "$(grep -c . "$S/err")" = 1 ] || not_ok 'a bad line gives one line of error' \
		"$err"
	[ ! -s "$S/ran" ] || not_ok 'with a bad line nothing runs'
	[ ! -e "$W" ] || not_ok 'with a bad line no folder is made'
}

bad_lines() {
	bad 'an unknown attribute is refused' "*'gpu'*gpus*" '[gpu=2] true'
	bad 'a number of GPUs that is not a number is refused' '*gpus*' '[gpus=two] true'
	bad 'a share of more than one GPU is refused' '*gpus*' '[gpus=1.5] true'
	bad 'an invalid amount of memory is refused' '*vram*' '[vram=18X] true'
	bad 'an invalid duration is refused' '*timeout*' '[timeout=soon] true'
	bad 'an invalid number of retries is refused' '*retries*' '[retries=-1] true'
	bad 'an invalid priority is refused' '*priority*' '[priority=high] true'
	bad 'an invalid list of GPUs is refused' '*allow*' '[allow=one] true'
	bad 'a name that is a number is refused' '*name*' '[name=7] true'
	bad 'a value without a closing quote is refused' '*' '[setup="x] true'
	bad 'attributes without a closing bracket are refused' '*' '[gpus=1 true'
	bad 'a line without a command is refused' '*no command*' '[gpus=1]'
	bad 'an attribute that is given twice is refused' '*gpus*' '[gpus=1 gpus=2] true'
	bad 'a value for the word cancel is refused' '*cancel*' '[cancel=1] true'
	bad 'the title line of a table is refused with advice' \
		'this is a table; add --batch-format csv' 'priority,script,x,y,z'
	bad 'after= with a name that no line has is refused' "*'nobody'*" '[after=nobody] true'
	bad 'after= with the name of the line itself is refused' "*'me'*itself*" '[name=me after=me] true'
	clean
	lines '[ 1 = 1 ] && echo yes'
	run 'a line with the shell command [ is accepted' 0 '*' '' batch
	is 'the shell command [ is run' grep -qx yes "$W"/1-*.log
}

no_files() {
	clean
	run 'a jobs file that does not exist is refused' \
		125 '' "gpulease: *'$J'*No such file*" batch
	mkdir "$J"
	run 'a folder as the jobs file is refused' 125 '' "gpulease: *'$J'*" batch
	rmdir "$J"
	mkfifo "$J"
	run 'a FIFO as the jobs file is refused' 125 '' "gpulease: *'$J'*regular*" batch
	rm -f "$J"
	ln -s "$S/nowhere" "$J"
	run 'a dangling link as the jobs file is refused' \
		125 '' "gpulease: *'$J'*No such file*" batch
	rm -f "$J"
	printf 'true\n\0\n' >"$J"
	run 'a jobs file with a NUL is refused' 125 '' '*line 2*NUL*' batch
	lines true
	chmod 0500 "$S"
	if [ "$(id -u)" != 0 ]; then
		(cd "$S/tmp" && exec "$GPULEASE" --batch "$J") >/dev/null 2>"$S/tmp/err"
		is 'a folder without write permission: the error names --log-dir' \
			grep -q -- '--log-dir' "$S/tmp/err"
		rm -f "$S/tmp/err"
	fi
	chmod 0700 "$S"
	is 'a refused jobs file leaves no folder for logs' [ ! -e "$W" ]
	printf 'a file' >"$W"
	run 'a file in the place of the folder for logs is refused' \
		125 '' "gpulease: *'$W'*--log-dir*" batch
	rm -f "$W"
	run '--batch without a jobs file is refused' \
		125 '' '*--batch*jobs file*' "$GPULEASE" --batch
	run '--batch with two jobs files is refused' \
		125 '' '*one file*' "$GPULEASE" --batch "$J" "$J"
	run '--jobs 0 is refused' 125 '' '*--jobs*0*' batch --jobs 0
}

# An error that concerns all lines is printed once.
bad_options() {
	clean
	lines "echo 1 >>$S/ran" "echo 2 >>$S/ran"
	run '-D with a folder that does not exist is refused' 125 '' \
		"gpulease: cannot change to '$S/none': No such file*" batch -D "$S/none"
	run '--models with a file that does not exist is refused' 125 '' \
		"gpulease: cannot read the models in '$S/none': No such file*" batch --models "$S/none"
	printf 'a = x\n' >"$S/models"
	run '--models with a file that is not a table of models is refused' \
		125 '' "gpulease: $S/models, line 1: *" batch --models "$S/models"
	printf 'a = 1\n' >"$S/models"
	run '--models with a relative path is opened in the folder of -D' \
		125 '' "gpulease: cannot read the models in '/*models'*" \
		sh -c 'cd "$2" && "$1" --batch jobs -D / --models models' sh "$GPULEASE" "$S"
	run '--gpus 0, which means GPU 0 elsewhere, is refused' \
		125 '' '*--gpus 0*--allow 0*' batch --gpus 0
	run 'a list of GPUs as their number is refused' \
		125 '' "*--gpus: '0,1,3'*--allow*" batch --gpus 0,1,3
	is 'with a wrong option no line is run' [ ! -s "$S/ran" ]
	is 'with a wrong option no folder for logs is made' [ ! -e "$W" ]
	run '-n 0 is accepted' 0 '*without a GPU*2 finished*' '' batch -n 0 --fresh
	run '--models with a relative path is found in the folder of -D' \
		0 '*2 finished*' '' \
		sh -c 'cd / && "$1" --batch "$2/jobs" -D "$2" --models models' \
		sh "$GPULEASE" "$S"
}

environments() {
	clean
	lines 'echo "${HOME-none}"'
	run 'a batch without HOME runs' \
		0 '*1 finished*' '' env -u HOME "$GPULEASE" --batch "$J"
	is 'in a batch without HOME commands have no HOME' grep -qx none "$W"/1-*.log
	clean
	lines 'echo out'
	(umask 077 && exec "$GPULEASE" --batch "$J") >"$S/out" 2>"$S/err"
	is 'with umask 077 a command of a batch runs' grep -qx out "$W"/1-*.log
	clean
	lines 'cat; echo "end $?"'
	"$GPULEASE" --batch "$J" <&- >"$S/out" 2>"$S/err"
	is 'a batch without stdin gives its commands an empty stdin' \
		grep -qx 'end 0' "$W"/1-*.log
	clean
	lines 'echo out'
	"$GPULEASE" --batch "$J" <&- >&- 2>&-
	is 'a batch without stdin, stdout and stderr runs its commands' \
		grep -qx out "$W"/1-*.log
	clean
	lines 'echo 1' 'echo 2 >>'"$S/ran" 'echo 3 >>'"$S/ran"
	"$GPULEASE" --batch "$J" --jobs 1 2>"$S/err" | head -n 1 >"$S/out"
	is 'all lines run although the reader of stdout has gone' \
		[ "$(words "$S/ran")" = '2 3' ]
	is 'when the reader of stdout has gone no error is printed' [ ! -s "$S/err" ]
	clean
	lines "echo 1 >>$S/ran"
	"$GPULEASE" --batch "$J" >/dev/full 2>"$S/err"
	is 'output to a full device gives exit status 125' \
		[ "$? $(words "$S/ran")" = '125 1' ]
	"$GPULEASE" --batch "$J" --json >/dev/full 2>"$S/err"
	is 'with --json a summary to a full device gives exit status 125' \
		[ "$? $(words "$S/ran")" = '125 1' ]
	is 'that the output cannot be written is printed' \
		grep -q 'cannot write the output: No space' "$S/err"
	clean
	mkdir "$S/linked"
	lines 'echo by link'
	mv "$J" "$S/linked/real"
	ln -s linked/real "$J"
	run 'a link to a jobs file is accepted' 0 '*' '' batch
	is 'the logs are beside the file that the link leads to' \
		grep -qx 'by link' "$S"/linked/real.logs/1-*.log
	rm -rf "$S/linked"
}

# --- being ended -------------------------------------------------------------------------

# stopped_by SIGNAL: ends a batch with a command that notes TERM and a line that waits
stopped_by() {
	clean
	sim 1
	lines "trap 'echo TERM >>$S/ran; exit 3' TERM; $S/held a & wait" 'echo second'
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
	kill "-$1" "$(pid_of b)"
	ended b
	is "a batch ended by $1 exits with 130" [ "$rc" = 130 ]
	is 'a batch ended by a signal sends TERM to its command' \
		[ "$(words "$S/ran")" = TERM ]
	is 'after a batch ended by a signal the queue is empty' wait_until empty_queue
	is 'a batch ended by a signal prints nothing on stderr' [ ! -s "$S/b.err" ]
	is 'a batch ended by a signal does not run the waiting job' \
		[ ! -e "$W/2-second.log" ] || [ ! -s "$W/2-second.log" ]
	go a
	rm -rf "$S"/*.on
	lines "trap 'echo TERM >>$S/ran; exit 3' TERM; $S/held a & wait" 'echo second'
	run 'the next run finishes the interrupted batch' 0 '*2 finished*' '' batch
	is 'the next run runs the interrupted job again' [ "$(count a "$S/starts")" = 2 ]
}

stubborn() {
	clean
	sim 8
	lines "trap '' TERM; $S/held a" "$S/held b"
	batch_begin b --grace 200ms
	await_on a b
	kill -INT "$(pid_of b)"
	ended b
	is 'a batch ends although its command ignores TERM' [ "$rc" = 130 ]
	is 'a command that ignores TERM is killed after the grace' \
		wait_until '[ -z "$(grep -l held /proc/[0-9]*/cmdline 2>/dev/null |
		while read -r f; do tr "\0" " " <"$f" 2>/dev/null | grep -F "$S/held"; done)" ]'
	clean
	lines "trap '' TERM; $S/held a"
	batch_begin b --grace 1h
	await_on a
	kill -INT "$(pid_of b)"
	is 'with a long grace the interrupted batch waits' \
		wait_until 'grep -q interrupted "$S/b.out"'
	is 'with a long grace the command runs on' on a
	kill -INT "$(pid_of b)"
	ended b
	is 'a second interrupt ends the batch before the grace is over' [ "$rc" = 130 ]
	is 'after the second interrupt the queue is empty' wait_until empty_queue
}

failing_fast() {
	clean
	sim 8
	lines "$S/held a" "until [ -d $S/a.on ]; do sleep 0.05; done; exit 6"
	run 'with --fail-fast a job that fails ends the other jobs' \
		6 '*' '' batch --fail-fast
	is 'with --fail-fast the other jobs are killed in the middle' [ ! -s "$S/ends" ]
	is 'after --fail-fast the queue is empty' wait_until empty_queue
	rm -rf "$S"/*.on
	go a
	lines "$S/held a" "until [ -d $S/a.on ]; do sleep 0.05; done; exit 6"
	run 'the run after --fail-fast counts the job that had failed' 6 '*' '' batch
	is 'the run after --fail-fast runs the jobs that were killed, once' \
		[ "$(words "$S/ends")" = a ]
	clean
	lines 'exit 3' "echo on >>$S/ran"
	run 'with --keep-going a job that fails does not end the batch' \
		3 '*' '' batch --keep-going --jobs 1
	is 'with --keep-going the other jobs are run' [ "$(words "$S/ran")" = on ]
}

unread() {
	clean
	lines "echo one >>$S/ran" "echo two >>$S/ran"
	mkdir -p "$W/status.txt/x" # for a message
	mkfifo "$S/full"
	exec 9<>"$S/full"
	dd if=/dev/zero bs=4096 oflag=nonblock >&9 2>/dev/null
	timeout -k 5 "$DEADLINE" sh -c 'exec 9>&-; exec "$@" 2>"$0"' "$S/full" \
		"$GPULEASE" --batch "$J" --jobs 1 >"$S/out"
	is 'a batch goes on although nothing reads stderr' [ "$? $(words "$S/ran")" = '0 one two' ]
	exec 9>&-
}

bad_lines
no_files
bad_options
environments
stopped_by INT
stopped_by TERM
stubborn
failing_fast
unread
finish

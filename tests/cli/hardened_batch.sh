#!/bin/sh
# Jobs files and the set-group-ID form: all that a batch reads and writes it opens with the
# user's rights, and what a user writes into their journal harms no other user.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'jobs files and the set-group-ID form' "$@"
# shellcheck source=tests/cli/batch_lib.sh
. "$CLI/batch_lib.sh"
me=$((UID_BASE + 1)):$((UID_BASE + 1))

# owners FILE…: the users and groups of the files, each once
owners() {
	stat -c %u:%g "$@" | sort -u
}

# modes FILE…: the modes of the files, each once
modes() {
	stat -c %a "$@" | sort -u | words /dev/stdin
}

# state: the names and sizes of all files in the state directory
state() {
	find "$M/state" -type f -exec stat -c '%n %s' {} + | sort
}

# place: removes what earlier cases have left, and lets users write to the files of the test
place() {
	clean
	chmod 0666 "$S/starts" "$S/ends" "$S/ran"
	rm -rf "$S/link"
}

# own_folder: a folder for logs that user 1 has made
own_folder() {
	place
	as 1 mkdir -m 0700 "$W"
}

# --- a user's batch ------------------------------------------------------------------------

a_user() {
	place
	lines "$TOOLS/attack rights $GROUP" 'id -G' '[name=last] echo done; exit 3'
	run 'a user runs a batch' 3 '*2 finished, 1 failed*' '' by 1 batch
	is 'the commands of a batch have no right of the group' [ \
		-z "$(grep -v '^gpulease: ' "$W"/1-*.log)" ]
	is 'a command of a batch does not have the group' grep -qx $((UID_BASE + 1)) "$W"/2-*.log
	is 'logs, journal, board and lock belong to the user' [ "$(owners "$W" "$W"/*)" = "$me" ]
	is 'only the user can read the files in the folder of the batch' [ \
		"$(modes "$W"/*)" = 600 ]
	is 'only the user can enter the folder of the batch' [ "$(modes "$W")" = 700 ]
	is 'the folder of the batch has all its files' [ "$(cd "$W" && echo *)" = \
		"1-attack.log 2-id.log 3-last.log journal.jsonl lock status.txt" ]
	say_more="echo more >>$S/ran"
	echo "$say_more" >>"$J"
	run 'the next run of the batch runs only the new line' 3 \
		'*ended in an earlier run*(2 finished, 1 failed)*' '' by 1 batch
	is 'the next run of the batch has run the new line' [ "$(words "$S/ran")" = more ]
	run 'another user cannot use the folder of the batch' 125 '' '*Permission denied*' by \
		2 batch
	run 'another user cannot use the folder with --fresh' 125 '' '*Permission denied*' by \
		2 batch --fresh
	run 'another user runs the batch with a folder of their own' 3 \
		'*3 finished, 1 failed*' '' \
		by 2 batch --log-dir "$S/open/two"
	rm -rf "$S/open/two"
	(umask 027 && by 1 batch --log-dir "$S/open/narrow") >/dev/null 2>&1
	is 'the umask does not widen the mode of the folder' [ "$(modes "$S/open/narrow")" = 700 ]
	rm -rf "$S/open/narrow"
}

# The runner of a batch is killed, and the next runner is interrupted.
a_life() {
	place
	lines "$S/held a" "[gpus=2] echo two >>$S/ran"
	by 1 batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
	supervisor=$(event started 1 | member pid)
	for each in "$(pid_of b)" "$supervisor"; do
		run 'a gpulease process of a batch is closed to its user' 0 '' '' as 1 \
			"$TOOLS/attack" process "$each"
	done
	as 1 kill -KILL "$(pid_of b)"
	ended b
	is 'a waiting line leaves the queue when its runner is killed' wait_until \
		'[ "$(queued)" = 0 ]'
	by 1 batch_begin b
	is 'the next runner finds the job that still runs' wait_until \
		'grep -q "have not ended: [0-9]*$" "$S/b.out"'
	as 1 kill -INT "$(pid_of b)"
	ended b
	is 'an interrupt of the next runner ends that job' [ "$rc $(words "$S/ends")" = '130 ' ]
	rm -rf "$S"/*.on
	go a
	run 'a third runner runs both lines' 0 '*2 finished*' '' by 1 batch
	goes_on 'after the batch the GPUs are free'
	intact 'after the batch the state can be read'
}

# --- files that are not the user's ---------------------------------------------------------

# Files that the group may read and write, and the user may not.
only_the_group() {
	place
	lines "echo secret >>$S/ran"
	chgrp "$GROUP" "$J"
	chmod 0640 "$J"
	run 'a jobs file that the user may not read is refused' 125 '' \
		"gpulease: *'$J'*Permission denied*" \
		by 1 batch
	is 'no line of the unreadable jobs file is run' [ ! -s "$S/ran" ]
	is 'no folder is made for the unreadable jobs file' [ ! -e "$W" ]
	chmod 0660 "$J"
	cp "$J" "$S/before"
	run '--add to a jobs file of the group is refused' 125 '' "*'$J'*Permission denied*" \
		"$U1" --add "$J" -- true
	is 'the jobs file of the group is not changed' cmp "$J" "$S/before"
	place
	lines "echo never >>$S/ran"
	mkdir -m 2770 "$S/link"
	chgrp "$GROUP" "$S/link"
	chmod 2770 "$S/link"
	run 'a folder for logs that only the group may write to is refused' 125 '' \
		'*Permission denied*' \
		by 1 batch --log-dir "$S/link"
	run 'a new folder for logs inside such a folder is refused' 125 '' '*Permission denied*' \
		by 1 batch --log-dir "$S/link/logs"
	run 'a folder for logs in the state directory is refused' 125 '' '*Permission denied*' \
		by 1 batch --log-dir "$M/state/logs"
	is 'nothing is made in the folder of the group' [ -z "$(ls -A "$S/link")" ]
	is 'with a refused folder for logs no line is run' [ ! -s "$S/ran" ]
	run '--add makes no file in the folder of the group' 125 '' '*Permission denied*' \
		"$U1" --add "$S/link/jobs" -- true
	is 'the folder of the group is still empty' [ -z "$(ls -A "$S/link")" ]
	state >"$S/before"
	run '--add makes no file in the state directory' 125 '' '*Permission denied*' \
		"$U1" --add "$M/state/jobs" -- true
	as 1 ln -s "$M/state/tickets" "$S/open/jobs"
	run '--add does not follow a link to a state file' 125 '' '*Permission denied*' \
		"$U1" --add "$S/open/jobs" -- true
	run '--batch does not read a state file through a link' 125 '' '*Permission denied*' \
		"$U1" --batch "$S/open/jobs"
	state >"$S/after"
	is 'nothing new is in the state directory' cmp "$S/before" "$S/after"
	rm -f "$S/open/jobs"
	run '--add makes a jobs file in a folder of the user' 0 '*' '' "$U1" \
		--add "$S/open/jobs" -- true
	is 'the jobs file that --add makes belongs to the user' [ \
		"$(owners "$S/open/jobs")" = "$me" ]
	rm -f "$S/open/jobs"
}

# leads NAME TARGET STATUS PATTERN: runs a batch with a link NAME to TARGET in its folder
leads() {
	own_folder
	lines "echo out; echo ran >>$S/ran"
	as 1 ln -s "$2" "$W/$1"
	run "$1, a link to $(basename "$2") of the state directory" "$3" '*' "$4" by 1 batch
}

links() {
	"$U1" -n 1 true 2>/dev/null # all files of the state directory are there
	cp "$M/state/tickets" "$S/tickets"
	leads journal.jsonl "$M/state/tickets" 125 '*journal.jsonl*'
	is 'a journal that is a link does not change a state file' cmp "$M/state/tickets" \
		"$S/tickets"
	leads journal.jsonl "$M/state/new" 125 '*journal.jsonl*'
	is 'a journal that is a link makes no state file' [ ! -e "$M/state/new" ]
	leads lock "$M/state/tickets" 125 '*lock*'
	is 'a lock that is a link does not change a state file' cmp "$M/state/tickets" \
		"$S/tickets"
	leads 1-echo.log "$M/state/tickets" 0 ''
	is 'a link in the place of a log is renamed' [ -L "$W/1-echo.log~" ]
	is 'the log of the line is a regular file' grep -qx out "$W/1-echo.log"
	is 'the output of the line is in no state file' [ \
		-z "$(grep -rlx out "$M/state" 2>/dev/null)" ]
	leads status.txt "$M/state/board" 0 ''
	is 'a link in the place of the board is replaced' [ -f "$W/status.txt" ] && [ ! -L \
		"$W/status.txt" ]
	leads status.txt.new "$M/state/board" 0 ''
	is 'the board is not written into the state directory' [ ! -e "$M/state/board" ]
	# a job that an earlier run has begun appends to its log
	own_folder
	lines "$S/held a"
	by 1 batch_begin b
	await_on a
	as 1 kill -INT "$(pid_of b)"
	ended b
	rm -rf "$S"/*.on
	go a
	as 1 ln -sf "$M/state/new" "$W/1-held.log"
	run 'a link in the place of a log that is appended to' 125 '*' '*' by 1 batch
	is 'a link in the place of a log makes no state file' [ ! -e "$M/state/new" ]
	place
	lines true
	as 1 ln -s "$M/state" "$W"
	run 'a folder that is a link to the state directory is refused' 125 '' \
		'*Permission denied*' by 1 batch
	intact 'after the links the state can be read'
}

# --- a journal that lies -------------------------------------------------------------------

# Users 1 and 2 have the same line, but it notes another name for each.
line="[gpus=1] $S/held b\$(id -u)"
mine=b$((UID_BASE + 1)) other=b$((UID_BASE + 2))

# forge [SED]: copies the journal of user 2 to user 1, changed by the sed script SED
forge() {
	rm -rf "$W"
	as 1 mkdir -m 0700 "$W"
	lines "$line"
	sed "${1-}" "$S/open/two/journal.jsonl" >"$S/forged"
	as 1 cp "$S/forged" "$W/journal.jsonl"
}

# unharmed TEXT: results, good if the job of user 2 has its lease, its ticket and its FIFO
unharmed() {
	"$U3" --status --json >"$S/status"
	is "$1" grep -q "\"ticket\": $ticket," "$S/status"
	is "$1: the FIFO of the other job is there" [ -p "$M/state/live/$token" ]
}

lies() {
	place
	lines "$line"
	cp "$J" "$S/open/jobs"
	J=$S/open/jobs by 2 batch_begin two --log-dir "$S/open/two"
	await_on "$other"
	ticket=$(member ticket <"$S/open/two/journal.jsonl")
	token=$(member token <"$S/open/two/journal.jsonl")
	forge
	by 1 batch_begin b --grace 100ms
	is 'a runner with a forged journal waits for the other user'"'"'s job' \
		wait_until 'grep -q "have not ended: [0-9]*$" "$S/b.out"'
	lines "[cancel] $line" "echo read >>$S/ran"
	is 'with a forged journal the word cancel is read' wait_until 'grep -q read "$S/ran"'
	as 1 kill -INT "$(pid_of b)"
	is 'with a forged journal Ctrl-C interrupts the batch' wait_until \
		'grep -q interrupted "$S/b.out"'
	ended b
	is 'the batch with the forged journal ends' [ "$rc" = 130 ]
	unharmed 'cancel in a forged journal does not end the other user'"'"'s job'
	go "$mine"
	forge 's/"inode": /&1/; s/"start": /&1/; s/"token": "[^"]*"/"token": "0123456789abcdef"/'
	run 'a forged journal with a dead supervisor: the line is run again' 0 '*1 finished*' \
		'' by 1 batch
	unharmed 'with a dead supervisor in the journal the other user'"'"'s job goes on'
	forge 's|"token": "[^"]*"|"token": "../tickets"|'
	run 'a journal with an invalid token: the line is run again' 0 '*1 finished*' \
		'*journal*skipped*' by 1 batch
	unharmed 'with an invalid token the other user'"'"'s job goes on'
	go "$other"
	ended two
	is 'the other user'"'"'s job ends by itself' [ "$rc" = 0 ]
	intact 'after the forged journals the state can be read'
}

# --- max-waiting ---------------------------------------------------------------------------

few_tickets() {
	configure 'max-waiting = 2'
	place
	by 3 holder h -n 2
	for each in 1 2 3 4 5 6; do
		echo "echo $each >>$S/ran"
	done >"$J"
	by 1 batch_begin b
	is 'max-waiting: only so many lines wait at once' wait_until '[ "$(queued)" = 2 ] &&
		grep -q max-waiting "$W/status.txt"'
	release h
	ended b
	is 'max-waiting: the other lines run later' [ \
		"$rc $(sort "$S/ran" | words /dev/stdin)" = '0 1 2 3 4 5 6' ]
	is 'max-waiting: all six lines finish' grep -q '^6 jobs: 6 finished' "$S/b.out"
	is 'max-waiting: the batch prints no error' [ ! -s "$S/b.err" ]
	is 'max-waiting: each line has one log' [ "$(cd "$W" && echo *.log*)" = \
		'1-echo.log 2-echo.log 3-echo.log 4-echo.log 5-echo.log 6-echo.log' ]
	ended h
	configure
}

a_user
a_life
only_the_group
links
few_tickets
lies
finish

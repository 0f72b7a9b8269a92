#!/bin/sh
# Jobs files and the set-group-ID form: all that a batch reads and writes it opens with the
# user's rights, and what a user writes into his journal harms nobody else.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'jobs files and the set-group-ID form' "$@"
# shellcheck source=tests/cli/batch_lib.sh
. "$CLI/batch_lib.sh"
me=$((UID_BASE + 1)):$((UID_BASE + 1))

# owners FILE…: their users and groups, each once
owners() {
	stat -c %u:%g "$@" | sort -u
}

# modes FILE…: likewise
modes() {
	stat -c %a "$@" | sort -u | words /dev/stdin
}

# state: the names and sizes of what lies in the state directory beside that which every job
# leaves there
state() {
	find "$M/state" -type f -exec stat -c '%n %s' {} + | sort
}

# place: what a user may write, and nothing of earlier cases
place() {
	clean
	chmod 0666 "$S/starts" "$S/ends" "$S/ran"
	rm -rf "$S/link"
}

# own_folder: that of the logs, as a user has made it
own_folder() {
	place
	as 1 mkdir -m 0700 "$W"
}

# --- a user's batch ------------------------------------------------------------------------

a_user() {
	place
	lines "$TOOLS/attack rights $GROUP" 'id -G' '[name=last] echo done; exit 3'
	run 'a user runs a batch' 3 '*2 finished, 1 failed*' '' by 1 batch
	is 'its commands have no right of the group' [ -z "$(grep -v '^gpulease: ' "$W"/1-*.log)" ]
	is 'nor the group' grep -qx $((UID_BASE + 1)) "$W"/2-*.log
	is 'logs, journal, board and lock are the user'"'"'s' [ "$(owners "$W" "$W"/*)" = "$me" ]
	is 'and nobody else'"'"'s' [ "$(modes "$W"/*)" = 600 ]
	is 'nor is their folder' [ "$(modes "$W")" = 700 ]
	is 'the journal and all else is there' [ "$(cd "$W" && echo *)" = \
		"1-attack.log 2-id.log 3-last.log journal.jsonl lock status.txt" ]
	say_more="echo more >>$S/ran"
	echo "$say_more" >>"$J"
	run 'the next run' 3 '*done before: 2 finished, 1 failed*' '' by 1 batch
	is 'does what is new' [ "$(words "$S/ran")" = more ]
	run 'another user does not get into that folder' 125 '' '*Permission denied*' by 2 batch
	run 'nor does --fresh' 125 '' '*Permission denied*' by 2 batch --fresh
	run 'with one of its own it runs all' 3 '*3 finished, 1 failed*' '' \
		by 2 batch --log-dir "$S/open/two"
	rm -rf "$S/open/two"
	(umask 027 && by 1 batch --log-dir "$S/open/narrow") >/dev/null 2>&1
	is 'the umask takes what it takes' [ "$(modes "$S/open/narrow")" = 700 ]
	rm -rf "$S/open/narrow"
}

# What runs, and what leaves it: a batch that is ended, and one whose runner is killed.
a_life() {
	place
	lines "$S/held a" "[gpus=2] echo two >>$S/ran"
	by 1 batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
	supervisor=$(event started 1 | member pid)
	for each in "$(pid_of b)" "$supervisor"; do
		run 'a process of it is closed to its user' 0 '' '' as 1 "$TOOLS/attack" process "$each"
	done
	as 1 kill -KILL "$(pid_of b)"
	ended b
	is 'a runner that is killed: who waits leaves the queue' wait_until '[ "$(queued)" = 0 ]'
	by 1 batch_begin b
	is 'the next finds who runs' wait_until 'grep -q "still at work: 1" "$S/b.out"'
	as 1 kill -INT "$(pid_of b)"
	ended b
	is 'and ends it' [ "$rc $(words "$S/ends")" = '130 ' ]
	rm -rf "$S"/*.on
	go a
	run 'then it is run again, and the other' 0 '*2 finished*' '' by 1 batch
	goes_on 'the GPUs are free'
	intact 'and the state is whole'
}

# --- files that are not the user's ---------------------------------------------------------

# What the group may read and write, and the user may not.
only_the_group() {
	place
	lines "echo secret >>$S/ran"
	chgrp "$GROUP" "$J"
	chmod 0640 "$J"
	run 'a jobs file that the user may not read' 125 '' "gpulease: *'$J'*Permission denied*" \
		by 1 batch
	is 'is not read' [ ! -s "$S/ran" ]
	is 'nor is anything made of it' [ ! -e "$W" ]
	chmod 0660 "$J"
	cp "$J" "$S/before"
	run 'nor is it added to' 125 '' "*'$J'*Permission denied*" "$U1" --add "$J" -- true
	is 'it is what it was' cmp "$J" "$S/before"
	place
	lines "echo never >>$S/ran"
	mkdir -m 2770 "$S/link"
	chgrp "$GROUP" "$S/link"
	chmod 2770 "$S/link"
	run 'a folder for logs that only the group may write to' 125 '' '*Permission denied*' \
		by 1 batch --log-dir "$S/link"
	run 'or one that would be in it' 125 '' '*Permission denied*' \
		by 1 batch --log-dir "$S/link/logs"
	run 'or in the state directory' 125 '' '*Permission denied*' \
		by 1 batch --log-dir "$M/state/logs"
	is 'nothing is made there' [ -z "$(ls -A "$S/link")" ]
	is 'and nothing runs' [ ! -s "$S/ran" ]
	run 'nor is a file made there' 125 '' '*Permission denied*' \
		"$U1" --add "$S/link/jobs" -- true
	is 'at all' [ -z "$(ls -A "$S/link")" ]
	state >"$S/before"
	run 'nor in the state directory' 125 '' '*Permission denied*' \
		"$U1" --add "$M/state/jobs" -- true
	as 1 ln -s "$M/state/tickets" "$S/open/jobs"
	run 'to which no link leads, either' 125 '' '*Permission denied*' \
		"$U1" --add "$S/open/jobs" -- true
	run 'nor is that a jobs file' 125 '' '*Permission denied*' \
		"$U1" --batch "$S/open/jobs"
	state >"$S/after"
	is 'there is nothing new' cmp "$S/before" "$S/after"
	rm -f "$S/open/jobs"
	run 'what a user adds' 0 '*' '' "$U1" --add "$S/open/jobs" -- true
	is 'is its own' [ "$(owners "$S/open/jobs")" = "$me" ]
	rm -f "$S/open/jobs"
}

# leads NAME TARGET STATUS PATTERN: with a link NAME in the folder to there
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
	is 'is not followed' cmp "$M/state/tickets" "$S/tickets"
	leads journal.jsonl "$M/state/new" 125 '*journal.jsonl*'
	is 'nor to one that is not there' [ ! -e "$M/state/new" ]
	leads lock "$M/state/tickets" 125 '*lock*'
	is 'is not, either' cmp "$M/state/tickets" "$S/tickets"
	leads 1-echo.log "$M/state/tickets" 0 ''
	is 'steps aside' [ -L "$W/1-echo.log~" ]
	is 'and the log is a file' grep -qx out "$W/1-echo.log"
	is 'nothing of the state directory has that' [ -z "$(grep -rlx out "$M/state" 2>/dev/null)" ]
	leads status.txt "$M/state/board" 0 ''
	is 'makes room for the board' [ -f "$W/status.txt" ] && [ ! -L "$W/status.txt" ]
	leads status.txt.new "$M/state/board" 0 ''
	is 'and there is none in the state directory' [ ! -e "$M/state/board" ]
	# one that has begun before appends to its log
	own_folder
	lines "$S/held a"
	by 1 batch_begin b
	await_on a
	as 1 kill -INT "$(pid_of b)"
	ended b
	rm -rf "$S"/*.on
	go a
	as 1 ln -sf "$M/state/new" "$W/1-held.log"
	run 'in the place of a log that is appended to' 125 '*' '*' by 1 batch
	is 'nothing is made' [ ! -e "$M/state/new" ]
	place
	lines true
	as 1 ln -s "$M/state" "$W"
	run 'a folder that is a link there' 125 '' '*Permission denied*' by 1 batch
	intact 'the state is whole'
}

# --- a journal that lies -------------------------------------------------------------------

# The same line is of user 1 as of user 2, but for what it notes.
line="[gpus=1] $S/held b\$(id -u)"
mine=b$((UID_BASE + 1)) other=b$((UID_BASE + 2))

# forge [SED]: the journal of user 2 as that of user 1, changed
forge() {
	rm -rf "$W"
	as 1 mkdir -m 0700 "$W"
	lines "$line"
	sed "${1-}" "$S/open/two/journal.jsonl" >"$S/forged"
	as 1 cp "$S/forged" "$W/journal.jsonl"
}

# unharmed TEXT: a result, good if the job of user 2 runs, with its lease, ticket and FIFO
unharmed() {
	"$U3" --status --json >"$S/status"
	is "$1" grep -q "\"ticket\": $ticket," "$S/status"
	is 'and its FIFO' [ -p "$M/state/live/$token" ]
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
	is 'who forges a journal waits for a job of somebody else' \
		wait_until 'grep -q "still at work: 1" "$S/b.out"'
	lines "[cancel] $line" "echo read >>$S/ran"
	is 'the word cancel' wait_until 'grep -q read "$S/ran"'
	as 1 kill -INT "$(pid_of b)"
	is 'and Ctrl-C' wait_until 'grep -q interrupted "$S/b.out"'
	ended b
	is 'end the batch' [ "$rc" = 130 ]
	unharmed 'and not that job'
	go "$mine"
	forge 's/"inode": /&1/; s/"start": /&1/; s/"token": "[^"]*"/"token": "0123456789abcdef"/'
	run 'one whose supervisor is said to be dead is run again' 0 '*1 finished*' '' by 1 batch
	unharmed 'and the other goes on'
	forge 's|"token": "[^"]*"|"token": "../tickets"|'
	run 'and one whose token is none' 0 '*1 finished*' '*journal*skipped*' by 1 batch
	unharmed 'and the other goes on then'
	go "$other"
	ended two
	is 'it ends by itself' [ "$rc" = 0 ]
	intact 'and the state is whole'
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
	is 'with max-waiting so many wait' wait_until '[ "$(queued)" = 2 ] &&
		grep -q max-waiting "$W/status.txt"'
	release h
	ended b
	is 'and the others come after them' [ "$rc $(sort "$S/ran" | words /dev/stdin)" = '0 1 2 3 4 5 6' ]
	is 'all of them' grep -q '^6 jobs: 6 finished' "$S/b.out"
	is 'nobody was told of an error' [ ! -s "$S/b.err" ]
	is 'and each has one log' [ "$(cd "$W" && echo *.log*)" = \
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

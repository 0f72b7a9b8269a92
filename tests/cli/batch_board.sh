#!/bin/sh
# The board of a batch on a terminal: drawn in place, below the lines, and erased at the end.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"
unset COLUMNS NO_COLOR
export TERM=xterm
escape=$(printf '\033')

# terminal NAME COLUMNS OPTION…: as batch_begin, with a terminal for what it prints, which is
# gathered in $S/NAME.out
terminal() {
	terminal_name=$1 columns=$2
	shift 2
	: >"$S/$terminal_name.out" # as batch_begin
	"$TOOLS/onterminal" "$columns" sh -c 'exec "$@" 2>&1' sh "$GPULEASE" --batch "$J" "$@" \
		>"$S/$terminal_name.out" 2>"$S/$terminal_name.err" </dev/null &
	echo $! >"$S/$terminal_name.pid"
	started="$started $!"
}

# screen FILE: what is on the terminal after all of that was written to it: lines, and going
# back to one of them and erasing what follows.  Fails at any other code except colours.
screen() {
	awk '
	{
		gsub(/\033\[[0-9;]*m/, "")
		while (match($0, /^\033\[[0-9]+A\033\[J/)) {
			count -= substr($0, 3, RLENGTH - 6)
			$0 = substr($0, RLENGTH + 1)
			if (count < 0)
				odd = 1
		}
		if (/\033/)
			odd = 1
		lines[count++] = $0
	}
	END {
		for (i = 0; i < count; i++)
			print lines[i]
		exit odd
	}' "$1"
}

# is_screen FILE: whether the file has no codes but those that screen knows
is_screen() {
	screen "$1" >"$S/screen"
}

# shows PATTERN: whether a line of the screen matches now, for wait_until
shows() {
	screen "$S/b.out" | grep -q -- "$1"
}

# drawn PATTERN: waits for a screen with a line that matches, and puts this screen into $S/now.
# Look only at $S/now then: a screen that is read later can have half of a board.
drawn() {
	# shellcheck disable=SC2034 # for wait_until
	drawn_line=$1
	wait_until 'screen "$S/b.out" >"$S/now"; grep -q -- "$drawn_line" "$S/now"'
}

# has_board FILE: whether the file has a part of a board
has_board() {
	grep -q 'running, \|^ *ENTRY\|not in the queue' "$1"
}

# --- on a terminal -------------------------------------------------------------------------

in_place() {
	clean
	sim 1
	lines "[name=first timeout=1h] $S/held a 3" "echo two" "$S/held c"
	terminal b 80
	is 'the board has the running job' \
		wait_until "shows '^ *1  first .* 0  *\[.*of 1h00m'"
	is 'the board has the waiting job and why it waits' \
		wait_until "shows '^ *2  echo two .*needs 1 GPU'"
	is 'the board has the number of jobs in each state' \
		drawn '^jobs: 1 running, 2 waiting, 0 finished, of 3'
	go a
	is 'the board has the exit status of a job that has ended' \
		wait_until "shows '^ *1  first  *.*status 3'"
	await_on c
	drawn '^jobs: 1 running, 0 waiting'
	is 'the board is on the screen once' [ "$(count '^jobs: ' "$S/now")" = 1 ]
	is 'the board stands below the lines' \
		[ "$(grep -n '^jobs: ' "$S/now" | cut -d : -f 1)" = 6 ]
	is 'each line about a job is on the screen' \
		[ "$(head -n 5 "$S/now" | sed 's/^[0-9:]* //' |
		cut -d ' ' -f 1-2 | sort | uniq -c | tr -s ' ' | words /dev/stdin)" = \
		' 2 entry 1  2 entry 2  1 entry 3' ]
	go c
	ended b
	is 'with a board the exit status is that of the batch' [ "$rc" = 3 ]
	is 'the output has only lines, boards and codes that erase boards' \
		is_screen "$S/b.out"
	screen "$S/b.out" >"$S/now"
	is 'when the batch has ended no board is left' eval '! has_board "$S/now"'
	is 'when the batch has ended all lines about jobs are left' \
		[ "$(grep -c '^[0-9:]* entry ' "$S/now")" = 6 ]
	is 'the last line on the screen is the summary' \
		like '3 jobs: 2 finished, 1 failed, in *' "$(tail -n 1 "$S/now")"
	is 'the board has colours' grep -q "$escape\[[0-9;]*m" "$S/b.out"
}

# A message on stderr, and a batch that is interrupted.
interrupted() {
	clean
	sim 1
	lines "$S/held a" "echo two"
	terminal b 80
	wait_until "shows '^ *2  echo two .*needs'"
	lines "$S/held a" "[gpu=1] echo two"
	is 'an error message stands above the board' \
		wait_until "shows '^gpulease: .*line 2' &&
		shows '^jobs: 1 running'"
	kill -INT "$(cut -d ' ' -f 1 "$W/lock")"
	ended b
	is 'an interrupted batch with a board exits with 130' [ "$rc" = 130 ]
	screen "$S/b.out" >"$S/now"
	is 'of an interrupted batch no board is left' eval '! has_board "$S/now"'
	is 'the error message stays on the screen' grep -q '^gpulease: .*line 2' "$S/now"
	is 'the message about the interrupt stays on the screen' \
		grep -q 'interrupted: ending 2 jobs' "$S/now"
}

# widest FILE: prints the length of the longest line
widest() {
	awk '{ if (length > most) most = length } END { print most + 0 }' "$1"
}

narrow() {
	clean
	sim 1
	long=$(printf '%0100d' 0)
	lines "[name=first timeout=1h] $S/held a"
	i=0
	while [ $((i += 1)) -le 40 ]; do
		echo "echo $i $long"
	done >>"$J"
	terminal b 40
	is 'the board has the number of many waiting jobs' \
		wait_until "shows '^jobs: 1 running, 40 waiting'"
	is 'the board says that there are more jobs' drawn 'more'
	sed -n '/^jobs: /,$p' "$S/now" | LC_ALL=C sed 's/[^ -~][^ -~]*/./g' >"$S/board"
	is 'the board uses half of the rows of the terminal' \
		[ "$(grep -c . "$S/board")" -le 12 ]
	is 'the board is not wider than the terminal' [ "$(widest "$S/board")" -le 40 ]
	kill -INT "$(cut -d ' ' -f 1 "$W/lock")"
	ended b
	is 'a narrow board is erased with the usual codes' is_screen "$S/b.out"
	screen "$S/b.out" >"$S/now"
	is 'of a narrow board nothing is left' eval '! has_board "$S/now"'
}

# A job that was requeued has no GPU, and the board does not count it as running.
sent_back() {
	clean
	sim 1
	"$GPULEASE" "$S/held" f 2>"$S/f.err" &
	started="$started $!"
	await_on f
	lines "[name=guest] $S/held a"
	batch_begin b --preemptible --priority -5
	is 'the board says why the first attempt waits' wait_until \
		'grep -q "^ *1 *guest .*needs 1 GPU" "$W/status.txt"'
	go f
	await_on a
	wait_until 'grep -q "^jobs: 1 running" "$W/status.txt"'
	"$GPULEASE" "$S/held" h 2>"$S/h.err" &
	started="$started $!"
	is 'a preempted job is not counted as running' wait_until 'on h &&
		grep -q "^jobs: 0 running, 1 waiting" "$W/status.txt"'
	is 'the board says why the second attempt waits' \
		wait_until 'grep -q "^ *1 *guest .*for attempt 2: needs 1 GPU" \
		"$W/status.txt"'
	rm -rf "$S/a.on"
	go h
	await_on a
	is 'a preempted job is counted as running when it has a GPU again' \
		wait_until 'grep -q "^jobs: 1 running, 0 waiting" \
		"$W/status.txt"'
	go a
	ended b
}

# --- where there is none -------------------------------------------------------------------

# plain TEXT VARIABLE=VALUE OPTION…: a result, good if the output has no codes and no board
plain() {
	plain_text=$1 plain_variable=$2
	shift 2
	clean
	lines 'echo one' 'exit 2'
	"$TOOLS/onterminal" 80 env "$plain_variable" "$GPULEASE" --batch "$J" "$@" >"$S/out" 2>&1
	if [ "$?" = 2 ] && ! grep -q "$escape" "$S/out" && ! has_board "$S/out"; then
		ok "$plain_text"
	else
		not_ok "$plain_text" "$(cat "$S/out")"
	fi
}

others() {
	clean
	lines "$S/held a"
	export NO_COLOR=1
	terminal b 80
	is 'with NO_COLOR there is a board' wait_until "shows '^jobs: 1 running'"
	go a
	ended b
	unset NO_COLOR
	is 'with NO_COLOR the board is erased' \
		grep -q "$escape\[[0-9]*A$escape\[J" "$S/b.out"
	is 'with NO_COLOR the board has no colours' \
		[ -z "$(grep "$escape\[[0-9;]*m" "$S/b.out")" ]
	plain 'a dumb terminal gets only lines' TERM=dumb
	is 'a dumb terminal gets all lines' [ "$(grep -c '^[0-9:]* entry ' "$S/out")" = 4 ]
	plain 'a terminal with an empty TERM gets only lines' TERM=
	plain 'with --json a terminal gets only events' TERM=xterm --json
	is 'with --json the first line on a terminal is an event in JSON' \
		[ "$(head -n 1 "$S/out" | "$TOOLS/jsoncheck" event)" = batch ]
	plain 'with -Q a terminal gets no board' TERM=xterm -Q
	is 'with -Q a terminal gets nothing at all' [ ! -s "$S/out" ]
	clean
	lines 'echo one' 'exit 2'
	run 'a pipe gets only lines' 2 '*2 jobs: 1 finished, 1 failed, in *' '' batch
	is 'a pipe gets no codes' [ -z "$(grep "$escape" "$S/out")" ]
	is 'status.txt has no codes' [ -z "$(grep "$escape" "$W/status.txt")" ]
}

in_place
interrupted
narrow
sent_back
others
finish

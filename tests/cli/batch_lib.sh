# shellcheck shell=sh disable=SC2034
# What the scripts of --batch share; read in after lib.sh and scratch.
#
#	$J	the jobs file
#	$W	its folder, with logs and journal

: "${S:?scratch sets it}"
J=$S/jobs W=$S/jobs.logs

# A command of a line: "held NAME [STATUS]" notes that it runs in $S/starts, waits for
# $S/NAME.go, and notes its end in $S/ends.  Two of one NAME at a time are noted as "twice".
cat >"$S/held" <<'END'
#!/bin/sh
d=${0%/*}
echo "$1" >>"$d/starts"
mkdir "$d/$1.on" 2>/dev/null || echo "$1" >>"$d/twice"
until [ -e "$d/$1.go" ]; do sleep 0.05; done
rmdir "$d/$1.on"
echo "$1" >>"$d/ends"
exit "${2-0}"
END
chmod +x "$S/held"

# lines LINE…: writes the jobs file anew
lines() {
	printf '%s\n' "$@" >"$J"
}

# clean: ends the jobs of earlier cases and removes their files
clean() {
	end_all
	rm -rf "$W" "$J" "$S"/*.go "$S"/*.on "$S/starts" "$S/ends" "$S/twice" "$S/ran"
	: >"$S/starts"
	: >"$S/ends"
	: >"$S/ran"
	rm -rf "$XDG_STATE_HOME/gpulease"
}

# batch OPTION…: runs a batch to its end; a command for run and try
batch() {
	timeout -k 5 "$DEADLINE" "$GPULEASE" --batch "$J" "$@"
}

# batch_begin NAME OPTION…: starts a batch; "ended NAME" waits for its end and sets $rc
batch_begin() {
	begin_name=$1
	shift
	# emptied before the start, so that output of an earlier batch is not taken for this one's
	: >"$S/$begin_name.out"
	: >"$S/$begin_name.err"
	"$GPULEASE" --batch "$J" "$@" >"$S/$begin_name.out" 2>"$S/$begin_name.err" </dev/null &
	echo $! >"$S/$begin_name.pid"
	started="$started $!"
}

# go NAME…: lets those commands end
go() {
	for each; do
		: >"$S/$each.go"
	done
}

# on NAME…: whether all these commands run
on() {
	for each; do
		[ -d "$S/$each.on" ] || return 1
	done
}

# await_on NAME…: waits until all these commands run
await_on() {
	wait_until "on $*" || bail "not running: $* ($(cat "$S"/*.err "$W"/*.log 2>/dev/null))"
}

# words FILE: prints its lines as one line
words() {
	tr '\n' ' ' <"$1" | sed 's/ $//'
}

# count PATTERN FILE: prints how many lines match
count() {
	grep -c -- "$1" "$2"
}

# event KIND NUMBER: prints the lines of the journal with that event of that job
event() {
	grep "\"event\": \"$1\".*\"job\": $2," "$W/journal.jsonl"
}

# member NAME: prints that member of each line on stdin
member() {
	sed -n 's/.*"'"$1"'": "\{0,1\}\([^",}]*\).*/\1/p'
}

# queue MEMBER: prints that member of each waiting ticket, one per line
queue() {
	"$GPULEASE" --queue --json | sed -n '/^  "queue_is_cut"/q
		s/^ *"'"$1"'": "\{0,1\}\([^",]*\).*/\1/p'
}

# say WORD: prints a command that appends the word to $S/ran
say() {
	echo "echo $1 >>$S/ran"
}

# begin_two: starts a batch b on one GPU, where `held a` runs and a line that says `two` waits
begin_two() {
	clean
	sim 1
	lines "$S/held a" "$(say two)"
	batch_begin b
	await_on a
	wait_until '[ "$(queued)" = 1 ]'
}

# queued_words: prints the second word of the command of each waiting ticket, in queue order
queued_words() {
	queue command | cut -d ' ' -f 2 | words /dev/stdin
}

# queued: prints the number of waiting tickets
queued() {
	queue ticket | grep -c .
}

# empty_queue: whether no ticket waits and no GPU is leased
empty_queue() {
	[ "$(queued)" = 0 ] && "$GPULEASE" -Q -I -n "${GPULEASE_SIM%%x*}" true
}

#!/bin/sh
# --log and --follow: all that a job in the background writes, and no end before its end.
# shellcheck disable=SC2016,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
: "${LOG_RUNS:=200}"

# A job here does what it is told, line by line.
# talker NAME OPTION…: $id
talker() {
	talker_name=$1
	shift
	rm -f "$S/$talker_name".*
	mkfifo "$S/$talker_name.hold"
	id=$("$GPULEASE" --submit "$@" -- sh -c '
		exec 3<>"$1.hold"
		echo "$$" >"$1.new"
		mv "$1.new" "$1.runs"
		while read -r line <&3; do
			eval "$line"
		done' job "$S/$talker_name")
}

# tell NAME CODE
tell() {
	wait_until "runs $1" || bail "job $1 does not run"
	echo "$2" 1<>"$S/$1.hold"
}

# follower NAME ARGUMENT…: `gpulease ARGUMENT…`, with its output in $S/NAME.out
follower() {
	follower_name=$1
	shift
	# a script's own background jobs ignore INT
	env --default-signal=INT "$GPULEASE" "$@" \
		>"$S/$follower_name.out" 2>"$S/$follower_name.err" </dev/null &
	echo $! >"$S/$follower_name.pid"
	started="$started $!"
}

# shows NAME TEXT: whether that is what it has printed, but for what gpulease says in it
shows() {
	[ "$(grep -v '^gpulease: ' "$S/$1.out")" = "$2" ]
}

# sleeps NAME: it lives, and waits for more
sleeps() {
	[ "$(process_state "$(pid_of "$1")")" = S ]
}

lines='one
two'

nothing_there() {
	run 'a job that never was has no log' 1 '' '*no log*99*' "$GPULEASE" --log 99
	run 'nor is there anything to follow' 1 '' '*no log*99*' "$GPULEASE" --follow 99
	holder a -n 1
	run 'one in the foreground has none' 1 '' '*--submit*' "$GPULEASE" --log "$(id_of a)"
	run 'which is told before it ends' 1 '' '*--submit*' "$GPULEASE" --follow "$(id_of a)"
	release_all a
	run 'a number is wanted' 125 '' '*--log*' "$GPULEASE" --log
	run 'and one alone' 125 '' '*one job*' "$GPULEASE" --follow 1 2
}

live() {
	talker a -n 1
	follower f --follow "$id"
	follower g --follow "$id"
	tell a 'echo one'
	is 'what a job writes is shown as it comes' wait_until 'shows f one'
	is 'to each who follows' wait_until 'shows g one'
	run 'and printed' 0 one '' "$GPULEASE" --log "$id"
	is 'nobody ends before it does' wait_until 'sleeps f && sleeps g'
	tell a 'printf "%s" two'
	is 'a part of a line, too' wait_until 'shows f "$lines"'
	tell a 'echo; exit 3'
	ended f
	is 'they end with it, and well' [ "$rc" = 0 ]
	ended g
	is 'both' [ "$rc" = 0 ]
	is 'all is shown, also what gpulease said of its end' \
		like "*two?gpulease: job $id ended: *3*" "$(cat "$S/f.out")"
	is 'to both' cmp -s "$S/f.out" "$S/g.out"
	run 'and nothing else' 0 "$(cat "$S/f.out")" '' "$GPULEASE" --follow "$id"
	is 'nor was anything said' [ ! -s "$S/f.err" ]
}

waiting() {
	holder a -n 8
	talker b -n 1
	follower f --follow "$id"
	is 'a job that waits is followed: its log says why' wait_until '[ -s "$S/f.out" ]'
	run 'cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
	ended f
	is 'it is not followed any more' [ "$rc" = 0 ]
	is 'and was told' like '*cancelled by*' "$(tail -n 1 "$S/f.out")"
	release_all a
}

interrupted() {
	talker a -n 1
	follower f --follow "$id"
	tell a 'echo one'
	wait_until 'shows f one'
	kill -INT "$(pid_of f)"
	ended f
	is 'Ctrl-C ends the following' [ "$rc" = 130 ]
	tell a 'echo two'
	is 'and not the job' wait_until '[ "$("$GPULEASE" --log "$id")" = "$lines" ]'
	{
		timeout "$DEADLINE" "$GPULEASE" --follow "$id"
		echo $? >"$S/status"
	} | sed 1q >"$S/out"
	is 'who follows for a reader shows it a line' [ "$(cat "$S/out")" = one ]
	is 'and ends when it has gone' [ "$(cat "$S/status")" = 141 ]
	tell a exit
}

changed_files() {
	log=$(state_dir)/logs
	talker a -n 1
	follower f --follow "$id"
	tell a 'echo one'
	wait_until 'shows f one'
	rm "$log/$id.log"
	is 'a log that is deleted: that is said' wait_until 'grep -q deleted "$S/f.err"'
	tell a 'echo two'
	is 'and the job followed on' wait_until 'shows f "$lines"'
	tell a exit
	ended f
	is 'to its end' [ "$rc" = 0 ]
	is 'it is said once' [ "$(grep -c deleted "$S/f.err")" = 1 ]
	run 'afterwards there is none' 1 '' '*no log*' "$GPULEASE" --log "$id"

	talker a -n 1
	follower f --follow "$id"
	tell a 'echo one'
	wait_until 'shows f one'
	mv "$log/$id.log" "$log/$id.old"
	tell a 'echo two'
	is 'one that is renamed is followed, too' wait_until 'shows f "$lines"'
	: >"$log/$id.old"
	is 'one that is cut: that is said' wait_until 'grep -q "cut to 0" "$S/f.err"'
	tell a 'echo new'
	is 'and the new beginning shown' wait_until 'shows f "$lines
new"'
	tell a exit
	ended f
	is 'to the end' [ "$rc" = 0 ]
}

attempts() {
	echo 'retry-delay = 10ms' >"$S/conf"
	run 'a job that is tried again' 2 '*' '*' "$GPULEASE" --config "$S/conf" \
		--submit --follow -n 1 --retries 2 -- sh -c 'echo try $GPULEASE_ATTEMPT; exit 2'
	is 'writes into one log' [ "$(grep -c '^try [123]$' "$S/out")" = 3 ]
	is 'which is followed through' like '*try 1*try 2*try 3*' "$out"
}

both() {
	run 'submitted and followed' 7 '*' 'gpulease: job *' \
		"$GPULEASE" --submit --follow -n 1 -- sh -c 'echo one; exit 7'
	is 'there is the log alone on stdout' [ "$(sed 1q "$S/out")" = one ]
	run 'a command that dies of a signal' 143 '*' '*' \
		"$GPULEASE" --submit --follow -n 1 -- sh -c 'kill -TERM $$'
	run 'what goes wrong before is told' 127 '' '*not found*' \
		"$GPULEASE" --submit --follow -n 1 -- no-such-command
	rm -f "$S/a".*
	mkfifo "$S/a.hold"
	follower f --submit --follow -n 1 -- sh -c \
		': >"$1.runs"; echo one; read -r line <"$1.hold"; echo "$line"' sh "$S/a"
	wait_until 'shows f one'
	kill -INT "$(pid_of f)"
	ended f
	is 'Ctrl-C ends the following alone' [ "$rc" = 130 ]
	id=$(sed -n 's/^gpulease: job \([0-9]*\)$/\1/p' "$S/f.err")
	follower g --follow "$id"
	echo two >"$S/a.hold"
	ended g
	is 'the job goes on, and is found by its id' shows g "$lines"
}

# The command outlives who looks after it, and so does the lease; also that of a later attempt.
orphan() {
	talker a --config "$S/conf" -n 1 --retries 1
	follower f --follow "$id"
	wait_until 'mv "$S/a.runs" "$S/a.first" 2>/dev/null' || bail 'job a does not run'
	echo 'exit 1' 1<>"$S/a.hold"
	tell a 'echo one'
	wait_until 'shows f one'
	kill -KILL "$(ps -o ppid= -p "$(cat "$S/a.runs")" | tr -d ' ')"
	tell a 'echo two'
	is 'a job whose supervisor was killed is followed' wait_until 'shows f "$lines"'
	is 'as long as it runs' wait_until 'sleeps f'
	tell a exit
	ended f
	is 'and no longer' [ "$rc" = 0 ]
}

# The last thing that a job does is to write; who follows begins at any moment.
last_lines() {
	lost=0
	for each in $(seq "$LOG_RUNS"); do
		id=$("$GPULEASE" --submit -n 1 -Q -- sh -c "seq 200; printf 'last %s' $each")
		"$GPULEASE" --follow "$id" >"$S/out"
		[ "$(tail -c $((${#each} + 5)) "$S/out")" = "last $each" ] || lost=$((lost + 1))
	done
	is "no last line of $LOG_RUNS jobs is lost" [ "$lost" = 0 ]
}

nothing_there
live
waiting
if env --default-signal=INT true 2>/dev/null; then
	interrupted
fi
changed_files
attempts
both
orphan
last_lines
finish

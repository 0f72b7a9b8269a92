#!/bin/sh
# --log and --follow: all that a job in the background writes, and no end before its end.
# shellcheck disable=SC2016,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
: "${LOG_RUNS:=200}"

# talker NAME OPTION…: submits a job that runs the lines that `tell` sends; $id is its id
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

# tell NAME CODE: the job runs this line
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

# shows NAME TEXT: whether the follower has printed TEXT, apart from the lines of gpulease
shows() {
	[ "$(grep -v '^gpulease: ' "$S/$1.out")" = "$2" ]
}

# sleeps NAME: whether the follower lives and waits for more
sleeps() {
	[ "$(process_state "$(pid_of "$1")")" = S ]
}

lines='one
two'

nothing_there() {
	run 'a job that never was has no log' 1 '' '*job 99 is unknown;*' "$GPULEASE" --log 99
	run 'a job that never was cannot be followed' 1 '' '*job 99 is unknown;*' "$GPULEASE" --follow 99
	holder a -n 1
	run 'a job in the foreground has no log' 1 '' '*--submit*' "$GPULEASE" --log "$(id_of a)"
	run 'a job in the foreground cannot be followed while it runs' 1 '' '*--submit*' \
		"$GPULEASE" --follow "$(id_of a)"
	release_all a
	run '--log without a number is refused' 125 '' '*--log*' "$GPULEASE" --log
	run '--follow with two numbers is refused' 125 '' '*one job*' "$GPULEASE" --follow 1 2
}

live() {
	talker a -n 1
	follower f --follow "$id"
	follower g --follow "$id"
	tell a 'echo one'
	is 'what a job writes is shown as it comes' wait_until 'shows f one'
	is 'every follower shows what the job writes' wait_until 'shows g one'
	run '--log prints what the job has written' 0 one '' "$GPULEASE" --log "$id"
	is 'the followers do not end before the job' wait_until 'sleeps f && sleeps g'
	tell a 'printf "%s" two'
	is 'a part of a line is shown, too' wait_until 'shows f "$lines"'
	tell a 'echo; exit 3'
	ended f
	is 'a follower ends with status 0 when the job ends' [ "$rc" = 0 ]
	ended g
	is 'the other follower ends with status 0, too' [ "$rc" = 0 ]
	is 'the follower shows the message about the job'"'"'s end' \
		like "*two?gpulease: job $id ended: *3*" "$(cat "$S/f.out")"
	is 'both followers show the same' cmp -s "$S/f.out" "$S/g.out"
	run 'a follower that begins after the end shows the same' 0 "$(cat "$S/f.out")" '' \
		"$GPULEASE" --follow "$id"
	is 'the follower prints nothing on stderr' [ ! -s "$S/f.err" ]
}

named() {
	"$GPULEASE" --submit -n 0 --name two sleep 1000 >"$S/two"
	two=$(cat "$S/two")
	talker a -n 1 --name one
	tell a 'echo one'
	wait_until '[ "$("$GPULEASE" --log "$id")" = one ]'
	run '--log takes the name of a job' 0 one '' "$GPULEASE" --log one
	follower f --follow one
	is '--follow takes the name of a job' wait_until 'shows f one'
	tell a exit
	ended f
	is 'the follower of a name ends with the job' [ "$rc" = 0 ]
	run 'an ended job is not found by its name' 1 '' \
		'gpulease: no job* named '"'one'"' waits or runs; *' "$GPULEASE" --log one
	id=$("$GPULEASE" --submit -n 0 --name two sleep 1000)
	for option in --log --follow --wait-for; do
		run "a name of several jobs is refused with their ids: $option" 1 '' \
			"gpulease: 'two' means several jobs, as *; give an id" \
			"$GPULEASE" "$option" two
		is 'the message has both ids' eval 'like "* $id *" " $(tr \; " " <"$S/err")" &&
			like "* $two *" " $(tr \; " " <"$S/err")"'
		run "a range is no job: $option" 125 '' \
			"gpulease: $option: '1-2' is not the id of a job*" "$GPULEASE" "$option" 1-2
	done
	"$GPULEASE" --cancel "$id,$two"
}

waiting() {
	holder a -n 8
	talker b -n 1
	follower f --follow "$id"
	is 'a waiting job is followed, and its log says why it waits' wait_until \
		'[ -s "$S/f.out" ]'
	run 'the waiting job is cancelled' 0 '' '' "$GPULEASE" --cancel "$id"
	ended f
	is 'the follower of the cancelled job ends' [ "$rc" = 0 ]
	is 'the log of the cancelled job ends with the cancel' like '*cancelled by*' \
		"$(tail -n 1 "$S/f.out")"
	release_all a
}

interrupted() {
	talker a -n 1
	follower f --follow "$id"
	tell a 'echo one'
	wait_until 'shows f one'
	kill -INT "$(pid_of f)"
	ended f
	is 'Ctrl-C ends the follower' [ "$rc" = 130 ]
	tell a 'echo two'
	is 'Ctrl-C of the follower does not end the job' wait_until \
		'[ "$("$GPULEASE" --log "$id")" = "$lines" ]'
	{
		timeout "$DEADLINE" "$GPULEASE" --follow "$id"
		echo $? >"$S/status"
	} | sed 1q >"$S/out"
	is 'a follower in a pipe passes on a line' [ "$(cat "$S/out")" = one ]
	is 'a follower in a pipe ends when its reader has ended' [ "$(cat "$S/status")" = 141 ]
	tell a exit
}

changed_files() {
	log=$(state_dir)/logs
	talker a -n 1
	follower f --follow "$id"
	tell a 'echo one'
	wait_until 'shows f one'
	rm "$log/$id.log"
	is 'the follower reports that the log was deleted' wait_until 'grep -q deleted "$S/f.err"'
	tell a 'echo two'
	is 'the follower goes on after the log was deleted' wait_until 'shows f "$lines"'
	tell a exit
	ended f
	is 'the follower of the deleted log ends with the job' [ "$rc" = 0 ]
	is 'the follower reports the deleted log once' [ "$(grep -c deleted "$S/f.err")" = 1 ]
	run 'after the job there is no log' 1 '' '*no log*' "$GPULEASE" --log "$id"

	talker a -n 1
	follower f --follow "$id"
	tell a 'echo one'
	wait_until 'shows f one'
	mv "$log/$id.log" "$log/$id.old"
	tell a 'echo two'
	is 'the follower goes on after the log was renamed' wait_until 'shows f "$lines"'
	: >"$log/$id.old"
	is 'the follower reports that the log was cut' wait_until 'grep -q "cut to 0" "$S/f.err"'
	tell a 'echo new'
	is 'the follower shows the new beginning of the log' wait_until 'shows f "$lines
new"'
	tell a exit
	ended f
	is 'the follower of the cut log ends with the job' [ "$rc" = 0 ]
}

attempts() {
	echo 'retry-delay = 10ms' >"$S/conf"
	run 'a job with three attempts is followed' 2 '*' '*' "$GPULEASE" --config "$S/conf" \
		--submit --follow -n 1 --retries 2 -- sh -c 'echo try $GPULEASE_ATTEMPT; exit 2'
	is 'all attempts write into one log' [ "$(grep -c '^try [123]$' "$S/out")" = 3 ]
	is 'the log of all attempts is followed to the end' like '*try 1*try 2*try 3*' "$out"
	id=$(sed -n 's/^gpulease: job \([0-9]*\)$/\1/p' "$S/err")
	run 'the ticket of a later attempt finds the log of the job' 0 '*try 1*try 3*' '' \
		"$GPULEASE" --log $((id + 2))
	run 'the ticket of a later attempt is followed' 0 '*try 1*try 3*' '' \
		"$GPULEASE" --follow $((id + 1))
}

both() {
	run '--submit --follow ends with the status of the job' 7 '*' 'gpulease: job *' \
		"$GPULEASE" --submit --follow -n 1 -- sh -c 'echo one; exit 7'
	is '--submit --follow prints only the log on stdout' [ "$(sed 1q "$S/out")" = one ]
	run '--submit --follow ends with the signal of the command' 143 '*' '*' \
		"$GPULEASE" --submit --follow -n 1 -- sh -c 'kill -TERM $$'
	run '--submit --follow reports a command that is not found' 127 '' '*not found*' \
		"$GPULEASE" --submit --follow -n 1 -- no-such-command
	rm -f "$S/a".*
	mkfifo "$S/a.hold"
	follower f --submit --follow -n 1 -- sh -c \
		': >"$1.runs"; echo one; read -r line <"$1.hold"; echo "$line"' sh "$S/a"
	wait_until 'shows f one'
	kill -INT "$(pid_of f)"
	ended f
	is 'Ctrl-C ends --submit --follow and not the job' [ "$rc" = 130 ]
	id=$(sed -n 's/^gpulease: job \([0-9]*\)$/\1/p' "$S/f.err")
	follower g --follow "$id"
	echo two >"$S/a.hold"
	ended g
	is 'after Ctrl-C the job is followed by its id' shows g "$lines"
}

# The command outlives its supervisor, and so does the lease, also in a later attempt.
orphan() {
	talker a --config "$S/conf" -n 1 --retries 1
	follower f --follow "$id"
	wait_until 'mv "$S/a.runs" "$S/a.first" 2>/dev/null' || bail 'job a does not run'
	echo 'exit 1' 1<>"$S/a.hold"
	tell a 'echo one'
	wait_until 'shows f one'
	kill -KILL "$(ps -o ppid= -p "$(cat "$S/a.runs")" | tr -d ' ')"
	tell a 'echo two'
	is 'a job with a killed supervisor is followed' wait_until 'shows f "$lines"'
	is 'the follower waits as long as the command runs' wait_until 'sleeps f'
	tell a exit
	ended f
	is 'the follower ends with the command' [ "$rc" = 0 ]
}

# A job writes as the last thing that it does; the follower begins at any moment.
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
named
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

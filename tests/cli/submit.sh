#!/bin/sh
# Jobs in the background: what --submit starts, and what it lets go of.
# shellcheck disable=SC2016,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# submit NAME OPTION…: a job of lib.sh's kind (runs, release …) in the background; $id.
submit() {
	submit_name=$1
	shift
	rm -f "$S/$submit_name".*
	mkfifo "$S/$submit_name.hold"
	id=$(timeout "$DEADLINE" "$GPULEASE" --submit "$@" -- sh -c '
		exec 3<>"$1.hold"
		echo "$$ ${GPULEASE_ID-} ${CUDA_VISIBLE_DEVICES-}" >"$1.new"
		mv "$1.new" "$1.runs"
		read -r status <&3
		exit "$status"' job "$S/$submit_name" 2>"$S/$submit_name.err")
}

logs() {
	echo "$(state_dir)/logs"
}

# supervisor ID: the process behind job ID
supervisor() {
	dd if="$(state_dir)/tickets" bs=512 skip="$1" count=1 2>/dev/null |
		sed -n 's/.* pid=\([0-9]*\) .*/\1/p'
}

# over ID: whether it has gone
over() {
	like '[ZX]' "$(process_state "$(supervisor "$1")")" || [ ! -e "/proc/$(supervisor "$1")" ]
}

# said ID: its output without what gpulease says in it
said() {
	"$GPULEASE" --log "$1" | grep -v '^gpulease: '
}

await() {
	wait_until "over $1" || bail "job $1 does not end: $(cat "$(logs)/$1.log")"
}

# --- the id, and the caller ----------------------------------------------------------------

the_caller() {
	run 'the id is all that is printed' 0 1 '' "$GPULEASE" --submit -n 1 -- true
	await 1
	submit a -n 1
	is 'a pipe that the id was read from ends while the job runs' [ "$id" = 2 ]
	is 'and nothing was said' [ ! -s "$S/a.err" ]
	is 'the job runs' wait_until 'runs a'
	is 'under its id' [ "$(id_of a)" = 2 ]
	pid=$(supervisor 2)
	is 'it has a session of its own' [ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ]
	is 'and no terminal' [ "$(ps -o tty= -p "$pid" | tr -d ' ')" = '?' ]
	release a
	await 2
	: "$( (exec 3>&1 4>&1
		exec timeout "$DEADLINE" "$GPULEASE" --submit -n 8 -- sleep 1000) >"$S/out")"
	is 'no other descriptor of the caller'"'"'s is kept either' [ "$(cat "$S/out")" = 3 ]
	run 'it is cancelled by its id' 0 '' '' "$GPULEASE" --cancel 3
	await 3
}

errors() {
	run 'an unknown command is told at once' 127 '' '*not found*' \
		"$GPULEASE" --submit -n 1 -- no-such-command
	: >"$S/closed"
	run 'so is one that cannot be executed' 126 '' '*cannot execute*' \
		"$GPULEASE" --submit -n 1 -- "$S/closed"
	run 'a request that can never be met' 125 '' '*this machine has 8*' \
		"$GPULEASE" --submit -n 9 -- true
	run 'a job that it is to come after and that never was' 125 '' '*999*' \
		"$GPULEASE" --submit --after 999 -- true
	run 'a folder for the output that is missing' 125 '' "*'$S/no/out'*No such*" \
		"$GPULEASE" --submit -o "$S/no/out" -- true
	run 'one for the errors' 125 '' "*'$S/no/err'*No such*" \
		"$GPULEASE" --submit -e "$S/no/err" -- true
	run 'a missing input' 125 '' "*'$S/no'*No such*" \
		"$GPULEASE" --submit -i "$S/no" -- true
	run 'a letter that stands for nothing' 125 '' '*%j (job id)*' \
		"$GPULEASE" --submit -o '%q' -- true
	run 'a folder that depends on the id is found missing later' 125 '' '*No such*' \
		"$GPULEASE" --submit -o "$S/%j/out" -- true
	if [ -w /dev/full ]; then
		run 'an id that cannot be printed' 125 '' 'gpulease: cannot print the id of job *' \
			sh -c '"$0" --submit -n 8 -- sleep 1000 >/dev/full' "$GPULEASE"
	fi
	run 'a closed stdout' 125 '' 'gpulease: cannot submit: stdout is closed*' \
		sh -c '"$0" --submit -n 8 -- sleep 1000 >&-' "$GPULEASE"
	# it learns of that by itself
	run 'and that job is none' 0 '' '*' "$GPULEASE" --max-wait 30s -n 8 true
}

# --- what the command gets -----------------------------------------------------------------

the_command() {
	run 'a job' 0 '*' '' "$GPULEASE" --submit -n 1 -- sh -c 'cat; echo "end $?"'
	await "$out"
	is 'has nothing on stdin' [ "$(said "$out")" = 'end 0' ]
	echo 'a line' >"$S/input"
	run 'with -i' 0 '*' '' "$GPULEASE" --submit -n 1 -i "$S/input" -- cat
	await "$out"
	is 'it has the file' [ "$(said "$out")" = 'a line' ]
	mkdir -p "$S/folder"
	try sh -c 'cd "$1/folder" && "$2" --submit -n 1 -- pwd' sh "$S" "$GPULEASE"
	await "$out"
	is 'it runs in the folder of the caller' [ "$(said "$out")" = "$S/folder" ]
	run 'another one' 0 '*' '' "$GPULEASE" --submit -n 1 -D "$S/folder" -o here -- pwd
	await "$out"
	is 'or in that of -D, from where the log is named, too' \
		[ "$(readlink "$(logs)/$out.log")" = "$S/folder/here" ]
	run 'of descriptors' 0 '*' '' "$GPULEASE" --submit -n 1 -- \
		sh -c 'cd /proc/$$/fd && echo *' 8<"$S/input"
	await "$out"
	# and perhaps that of the list itself
	is 'it has the three, and the FIFO' \
		like '0 1 1[0-9][0-9] 2' "$(said "$out" | sed 's/ 3$//')"
	run 'its stdout' 0 '*' '' "$GPULEASE" --submit -n 1 -- \
		sh -c 'readlink /proc/$$/fd/1 /proc/$$/fd/2; grep flags /proc/$$/fdinfo/1'
	await "$out"
	is 'is the log itself' \
		[ "$(said "$out" | sed '$d' | uniq)" = "$(logs)/$out.log" ]
	is 'to which is appended' like 'flags:*[2367]???' "$(said "$out" | tail -n 1)"
}

# ignored PID: whether HUP is, there
ignored() {
	sed -n 's/^SigIgn:.*\(.\)$/\1/p' "/proc/$1/status" | grep -q '[13579bdf]'
}

hangup() {
	submit a -n 1
	wait_until 'runs a'
	pid=$(supervisor "$id") command=$(cut -d ' ' -f 1 "$S/a.runs")
	is 'who looks after the job ignores HUP' ignored "$pid"
	is 'the command does not' [ "$(ignored "$command" && echo yes)" = '' ]
	kill -HUP "$pid"
	is 'a hang-up' [ "$(process_state "$pid")" != Z ]
	is 'does not reach it' kill -0 "$command"
	release a
	await "$id"
	trap '' HUP
	run 'who has HUP ignored' 0 '*' '' "$GPULEASE" --submit -n 1 -- \
		sh -c 'grep SigIgn /proc/$$/status'
	trap 'exit 129' HUP
	await "$out"
	is 'has a command that ignores it' like '*[13579bdf]' "$(said "$out")"

	rm -f "$S/b".*
	mkfifo "$S/b.hold"
	setsid sh -c '"$1" --submit -n 1 -- sh -c "
		: >\"$2.runs\"; read -r line <\"$2.hold\"; echo lives"; kill -HUP 0' \
		sh "$GPULEASE" "$S/b" >"$S/out" 2>/dev/null
	wait_until 'runs b'
	echo >"$S/b.hold"
	id=$(cat "$S/out")
	await "$id"
	is 'a job outlives the end of its session' [ "$(said "$id")" = lives ]
}

# --- files ---------------------------------------------------------------------------------

# mode FILE
mode() {
	stat -L -c %a "$1"
}

files() {
	submit a -n 1
	is 'the log is the user'"'"'s alone' [ "$(mode "$(logs)/$id.log")" = 600 ]
	is 'and so is its folder' [ "$(mode "$(logs)")" = 700 ]
	release a
	await "$id"
	umask 027
	run 'another log' 0 '*' '' "$GPULEASE" --submit -n 1 -J a/name -o "$S/%u-%5j-%t.out" \
		-- sh -c 'echo one; echo two >&2'
	umask 022
	await "$out"
	name=$S/$(id -un)-$(printf %05d "$out")-0.out
	is 'has the name of -o' [ "$(sed 2q "$name")" = "one
two" ]
	is 'a mode by the umask' [ "$(mode "$name")" = 640 ]
	is 'and is found by the id' [ "$(readlink "$(logs)/$out.log")" = "$name" ]
	run 'with -e' 0 '*' '' "$GPULEASE" --submit -n 1 -e "$S/err-%j" -- \
		sh -c 'echo one; echo two >&2'
	await "$out"
	is 'stdout alone is in the log' [ "$(cat "$(logs)/$out.log")" = one ]
	is 'and stderr in the file' [ "$(sed 1q "$S/err-$out")" = two ]
	run 'where the file is the log' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$(logs)/%j.log" \
		-- echo one
	await "$out"
	is 'it is no link to itself' [ "$(said "$out")" = one ]
	run 'one file for both' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$S/both" -e "$S/both" \
		-- sh -c 'echo one; echo two >&2; echo three'
	await "$out"
	is 'has all of it' [ "$(sed 3q "$S/both")" = "one
two
three" ]
	echo before >"$S/twice"
	run 'a file' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$S/twice" -- echo one
	await "$out"
	is 'is emptied first' [ "$(sed 1q "$S/twice")" = one ]
	run 'none' 0 '*' '' "$GPULEASE" --submit -n 1 -o none -- echo one
	await "$out"
	next=$((out + 1))
	run 'keeps nothing' 1 '' '*nothing of it was kept*' "$GPULEASE" --log "$out"

	echo old >"$(logs)/$next.log"
	run 'a log of another job of that number' 0 "$next" '' \
		"$GPULEASE" --submit -n 1 -- echo new
	await "$next"
	is 'is put aside' [ "$(cat "$(logs)/$next.log~")" = old ]
	is 'and the new one is new' [ "$(said "$next")" = new ]
}

no_place() {
	before=$(stat -c %s "$(state_dir)/tickets")
	mv "$(logs)" "$S/logs.aside"
	: >"$(logs)"
	run 'a folder for logs that cannot be' 125 '' "*'$(logs)'*-o FILE*" \
		"$GPULEASE" --submit -n 1 -- true
	is 'is told before there is a ticket' [ "$(stat -c %s "$(state_dir)/tickets")" = "$before" ]
	run 'with -o' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$S/placed" -- echo one
	is 'a job does without it' wait_until 'grep -q "^gpulease: .*ended" "$S/placed"'
	rm "$(logs)"
	run 'a missing one' 0 '*' '' "$GPULEASE" --submit -n 1 -- echo one
	await "$out"
	is 'is made' [ "$(said "$out")" = one ]
	rm -r "$(logs)"
	mv "$S/logs.aside" "$(logs)"
	if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
		as_user='setpriv --reuid=54321 --regid=54321 --clear-groups --'
		chmod 0755 "$S"
		mkdir -m 0755 "$S/home"
		chown 54321:54321 "$S/home"
	else
		as_user=
		mkdir "$S/home"
	fi
	# shellcheck disable=SC2086
	run 'a job of somebody' 0 '' '*' $as_user env XDG_STATE_HOME="$S/home" "$GPULEASE" -n 1 true
	mkdir "$S/home/gpulease/sim-8x24576/logs"
	chmod 0555 "$S/home/gpulease/sim-8x24576/logs"
	if [ -n "$as_user" ] || [ "$(id -u)" -ne 0 ]; then
		# shellcheck disable=SC2086
		run 'a folder for logs that is not writable is told' 125 '' '*Permission denied*-o FILE*' \
			$as_user env XDG_STATE_HOME="$S/home" "$GPULEASE" --submit -n 1 -- true
	else
		skip 'a folder for logs that is not writable is told' 'nothing is closed to root'
	fi
}

no_home() {
	with_driver
	gpus 1
	run 'without HOME' 125 '' '*HOME is not set*-o FILE*' \
		env -u HOME -u XDG_STATE_HOME "$GPULEASE" --submit -n 1 -- true
	run 'it takes -o' 0 1 '' \
		env -u HOME -u XDG_STATE_HOME "$GPULEASE" --submit -n 1 -o "$S/homeless" -- true
	is 'and the job runs' wait_until 'grep -q "^gpulease: .*ended" "$S/homeless"'
	run 'in a home' 0 2 '' \
		env -u XDG_STATE_HOME HOME="$S/somebody" "$GPULEASE" --submit -n 1 -- echo one
	is 'the log is below .local/state' \
		wait_until 'grep -q "^gpulease: .*ended" "$S/somebody/.local/state/gpulease/logs/2.log"'
	sim 8
}

# --- inside a lease ------------------------------------------------------------------------

# inside NAME OPTION…: a job that ignores TERM, submits another for four GPUs, and ends when it is
# told to
inside() {
	inside_name=$1
	shift
	rm -f "$S/$inside_name".* "$S/inner".*
	mkfifo "$S/$inside_name.hold" "$S/inner.hold"
	"$GPULEASE" "$@" -- sh -c '
		exec 3<>"$1.hold"
		trap "" TERM
		"$2" --submit -n 4 -- sh -c "
			exec 3<>\"$3.hold\"
			\"$2\" -- sh -c \"echo inner \\\$CUDA_VISIBLE_DEVICES \\\$GPULEASE_ID\"
			echo \"\$\$ \$GPULEASE_ID \$CUDA_VISIBLE_DEVICES\" >\"$3.new\"
			mv \"$3.new\" \"$3.runs\"
			read -r status <&3
		" >"$1.id"
		echo "$$ $GPULEASE_ID" >"$1.new"
		mv "$1.new" "$1.runs"
		read -r status <&3' \
		sh "$S/$inside_name" "$GPULEASE" "$S/inner" >"$S/$inside_name.out" 2>&1 &
	echo $! >"$S/$inside_name.pid"
	started="$started $!"
	wait_until "runs $inside_name" || bail "job $inside_name: $(cat "$S/$inside_name.out")"
	id=$(cat "$S/$inside_name.id")
}

# a_job_of_its_own TEXT GRACE OPTION…: in a job with these options, which is cancelled with GRACE
a_job_of_its_own() {
	inside_what=$1 inside_grace=$2
	shift 2
	inside outer "$@"
	is "inside $inside_what another is submitted" [ -n "$id" ]
	is 'and starts on other GPUs' wait_until 'runs inner'
	is 'which it has alone' [ "$(gpus_of inner)" = 4,5,6,7 ]
	pid=$(supervisor "$id")
	is 'it shows no token of the lease around' \
		[ "$(tr '\0' '\n' <"/proc/$pid/environ" | grep -c '^GPULEASE_TOKEN=[0-9a-f]')" = 0 ]
	echo >"$S/outer.hold"
	ended outer
	is 'the one around ends well' [ "$rc" = 0 ]
	run 'its GPUs are free at once' 0 '' '*' "$GPULEASE" --immediate=30s -n 4 true
	is 'the other lives' kill -0 "$pid"
	is 'and so does its command' kill -0 "$(cut -d ' ' -f 1 "$S/inner.runs")"
	echo >"$S/inner.hold"
	await "$id"
	is 'steps of it are its own' [ "$(said "$id")" = "inner 4,5,6,7 $id" ]

	inside outer "$@"
	wait_until 'runs inner'
	run 'where the one around is killed with all that it has started' 0 '' '*' \
		"$GPULEASE" --cancel "$(id_of outer)" --grace "$inside_grace"
	ended outer
	is 'the other lives all the same' \
		like '[SRD]' "$(process_state "$(supervisor "$id")")"
	is 'with its command' kill -0 "$(cut -d ' ' -f 1 "$S/inner.runs")"
	echo >"$S/inner.hold"
	await "$id"
	is 'to its end' like '*exit status 0*' "$("$GPULEASE" --log "$id")"
}

from_within() {
	a_job_of_its_own 'a job' 50ms -n 4
	# which ends it itself, before who cancels it does
	a_job_of_its_own 'one that is looked after' "${DEADLINE}s" -n 4 --report --grace 50ms

	inside outer -n 8
	run 'one that waits for the lease around' 0 '*' '' "$GPULEASE" --queue
	echo >"$S/outer.hold"
	ended outer
	is 'gets its GPUs' wait_until 'runs inner'
	echo >"$S/inner.hold"
	await "$id"
}

# --- many ----------------------------------------------------------------------------------

# count_waiting: how many wait
count_waiting() {
	"$GPULEASE" --queue | tail -n +2 | wc -l
}

# background: the processes of all jobs in the background
background() {
	for each in $(strays); do
		! grep -qsx gpulease-job "/proc/$each/comm" || echo "$each"
	done
}

jobs_left() {
	background | wc -l
}

many() {
	submit a -n 8
	wait_until 'runs a'
	first=$((id + 1))
	for part in 1 2 3 4; do
		# shellcheck disable=SC2034
		for each in $(seq 25); do
			"$GPULEASE" --submit -n 1 -- true
		done >"$S/ids.$part" &
		started="$started $!"
	done
	for part in 25 50 75 100; do # each in DEADLINE
		wait_until '[ "$(count_waiting)" -ge "$part" ]' || bail 'not all jobs wait'
	done
	ok 'a hundred jobs wait'
	most=0
	for pid in $(background); do
		rss=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status")
		[ "${rss:-0}" -le "$most" ] || most=$rss
	done
	if is_sanitized "$GPULEASE"; then
		skip 'each in less than 1 MiB' 'built with sanitizers'
	else
		is 'each in less than 1 MiB' [ "$((most > 0 && most < 1024))" = 1 ]
	fi
	# shellcheck disable=SC2046
	run 'all are cancelled at once' 0 '' '' "$GPULEASE" --cancel $(seq "$first" $((first + 99)))
	is 'and none of them is left' [ "$(count_waiting)" -eq 0 ]
	is 'nor its process' wait_until '[ "$(jobs_left)" -eq 1 ]'
	run 'each log says why' 0 '*cancelled*' '' "$GPULEASE" --log "$first"
	release a
	await "$id"
}

# --- an error inside -----------------------------------------------------------------------

# What was accepted and then fails leaves a line, too.
error_inside() {
	submit a -n 8
	wait_until 'runs a'
	submit b -n 1
	wait_until '"$GPULEASE" --queue | grep -q " $id "'
	mv "$(state_dir)/tickets" "$S/tickets.away"
	mkdir "$(state_dir)/tickets"
	release a
	is 'a job whose tickets cannot be read any more leaves a line' \
		wait_until 'grep -aq "ticket=$id .* status=125 " "$(state_dir)/history"'
	is 'with the reason in its log' \
		like '*gpulease: *Is a directory*' "$(cat "$(logs)/$id.log")"
	is 'and does not start' [ ! -e "$S/b.runs" ]
	rmdir "$(state_dir)/tickets"
	mv "$S/tickets.away" "$(state_dir)/tickets"
	await "$id"
}

the_caller
errors
the_command
hangup
files
no_place
no_home
from_within
many
error_inside
finish

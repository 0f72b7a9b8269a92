#!/bin/sh
# Jobs in the background: what --submit starts, and what the job does not keep of its caller.
# shellcheck disable=SC2016,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# submit NAME OPTION…: a background job that lib.sh controls (runs, release …); sets $id.
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

# supervisor ID: the process that runs job ID
supervisor() {
	dd if="$(state_dir)/tickets" bs=512 skip="$1" count=1 2>/dev/null |
		sed -n 's/.* pid=\([0-9]*\) .*/\1/p'
}

# over ID: whether that process has ended
over() {
	like '[ZX]' "$(process_state "$(supervisor "$1")")" || [ ! -e "/proc/$(supervisor "$1")" ]
}

# said ID: the job's log without the lines of gpulease
said() {
	"$GPULEASE" --log "$1" | grep -v '^gpulease: '
}

await() {
	wait_until "over $1" || bail "job $1 does not end: $(cat "$(logs)/$1.log")"
}

# --- the id, and the caller ----------------------------------------------------------------

the_caller() {
	run '--submit prints nothing but the id' 0 1 '' "$GPULEASE" --submit -n 1 -- true
	await 1
	submit a -n 1
	is 'a pipe from which the id is read closes while the job runs' [ "$id" = 2 ]
	is '--submit writes nothing to stderr' [ ! -s "$S/a.err" ]
	is 'the job runs' wait_until 'runs a'
	is 'GPULEASE_ID of the job is the id that was printed' [ "$(id_of a)" = 2 ]
	pid=$(supervisor 2)
	is 'the supervisor has a session of its own' [ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ]
	is 'the supervisor has no terminal' [ "$(ps -o tty= -p "$pid" | tr -d ' ')" = '?' ]
	release a
	await 2
	: "$( (exec 3>&1 4>&1
		exec timeout "$DEADLINE" "$GPULEASE" --submit -n 8 -- sleep 1000) >"$S/out")"
	is 'the job keeps no other descriptor of the caller' [ "$(cat "$S/out")" = 3 ]
	run 'a background job is cancelled by its id' 0 '' '' "$GPULEASE" --cancel 3
	await 3
}

errors() {
	run '--submit refuses an unknown command' 127 '' '*not found*' \
		"$GPULEASE" --submit -n 1 -- no-such-command
	: >"$S/closed"
	run '--submit refuses a command that cannot be executed' 126 '' '*cannot execute*' \
		"$GPULEASE" --submit -n 1 -- "$S/closed"
	run '--submit refuses a request that can never be met' 125 '' '*this machine has 8*' \
		"$GPULEASE" --submit -n 9 -- true
	run '--submit refuses --after with a job that does not exist' 125 '' '*999*' \
		"$GPULEASE" --submit --after 999 -- true
	: >"$S/file"
	run '--submit refuses -o in a folder that cannot be made' 125 '' "*'$S/file/*Not a directory*" \
		"$GPULEASE" --submit -o "$S/file/out" -- true
	run '--submit refuses -e in a folder that cannot be made' 125 '' "*'$S/file/*Not a directory*" \
		"$GPULEASE" --submit -e "$S/file/err" -- true
	run '--submit refuses -i with a missing file' 125 '' "*'$S/no'*No such*" \
		"$GPULEASE" --submit -i "$S/no" -- true
	run '--submit refuses an unknown placeholder in -o' 125 '' '*%j (job id)*' \
		"$GPULEASE" --submit -o '%q' -- true
	if [ -w /dev/full ]; then
		run '--submit fails if it cannot print the id' 125 '' 'gpulease: cannot print the id of job *' \
			sh -c '"$0" --submit -n 8 -- sleep 1000 >/dev/full' "$GPULEASE"
	fi
	run '--submit refuses a closed stdout' 125 '' 'gpulease: cannot submit: stdout is closed*' \
		sh -c '"$0" --submit -n 8 -- sleep 1000 >&-' "$GPULEASE"
	# the job notices by itself that its id was not printed
	run 'a job whose id could not be printed does not start' 0 '' '*' "$GPULEASE" --max-wait 30s -n 8 true
}

# --- what the command gets -----------------------------------------------------------------

the_command() {
	run 'a job that reads its stdin is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -- sh -c 'cat; echo "end $?"'
	await "$out"
	is 'the stdin of a background job is empty' [ "$(said "$out")" = 'end 0' ]
	echo 'a line' >"$S/input"
	run 'a job with -i is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -i "$S/input" -- cat
	await "$out"
	is 'the stdin of a job with -i is the file' [ "$(said "$out")" = 'a line' ]
	mkdir -p "$S/folder"
	try sh -c 'cd "$1/folder" && "$2" --submit -n 1 -- pwd' sh "$S" "$GPULEASE"
	await "$out"
	is 'a background job runs in the folder of its caller' [ "$(said "$out")" = "$S/folder" ]
	run 'a job with -D is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -D "$S/folder" -o here -- pwd
	await "$out"
	is 'a relative -o is below the folder of -D' \
		[ "$(readlink "$(logs)/$out.log")" = "$S/folder/here" ]
	run 'a job that lists its descriptors is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -- \
		sh -c 'cd /proc/$$/fd && echo *' 8<"$S/input"
	await "$out"
	# and perhaps that of the list itself
	is 'a background job has stdin, stdout, stderr and a FIFO open' \
		like '0 1 1[0-9][0-9] 2' "$(said "$out" | sed 's/ 3$//')"
	run 'a job that examines its stdout is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -- \
		sh -c 'readlink /proc/$$/fd/1 /proc/$$/fd/2; grep flags /proc/$$/fdinfo/1'
	await "$out"
	is 'stdout and stderr of a background job are the log itself' \
		[ "$(said "$out" | sed '$d' | uniq)" = "$(logs)/$out.log" ]
	is 'the log is open for appending' like 'flags:*[2367]???' "$(said "$out" | tail -n 1)"
}

# ignored PID: whether the process ignores HUP
ignored() {
	sed -n 's/^SigIgn:.*\(.\)$/\1/p' "/proc/$1/status" | grep -q '[13579bdf]'
}

hangup() {
	submit a -n 1
	wait_until 'runs a'
	pid=$(supervisor "$id") command=$(cut -d ' ' -f 1 "$S/a.runs")
	is 'the supervisor of a background job ignores HUP' ignored "$pid"
	is 'the command of a background job does not ignore HUP' [ "$(ignored "$command" && echo yes)" = '' ]
	kill -HUP "$pid"
	is 'HUP does not end the supervisor of a background job' [ "$(process_state "$pid")" != Z ]
	is 'HUP to the supervisor does not reach the command' kill -0 "$command"
	release a
	await "$id"
	trap '' HUP
	run 'a caller that ignores HUP submits a job' 0 '*' '' "$GPULEASE" --submit -n 1 -- \
		sh -c 'grep SigIgn /proc/$$/status'
	trap 'exit 129' HUP
	await "$out"
	is 'the command of such a caller ignores HUP' like '*[13579bdf]' "$(said "$out")"

	rm -f "$S/b".*
	mkfifo "$S/b.hold"
	setsid sh -c '"$1" --submit -n 1 -- sh -c "
		: >\"$2.runs\"; read -r line <\"$2.hold\"; echo lives"; kill -HUP 0' \
		sh "$GPULEASE" "$S/b" >"$S/out" 2>/dev/null
	wait_until 'runs b'
	echo >"$S/b.hold"
	id=$(cat "$S/out")
	await "$id"
	is 'a background job outlives the session of its caller' [ "$(said "$id")" = lives ]
}

# --- files ---------------------------------------------------------------------------------

# mode FILE
mode() {
	stat -L -c %a "$1"
}

files() {
	submit a -n 1
	is 'only the user can read the log' [ "$(mode "$(logs)/$id.log")" = 600 ]
	is 'only the user can enter the folder of the logs' [ "$(mode "$(logs)")" = 700 ]
	release a
	await "$id"
	umask 027
	run 'a job with placeholders in -o is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -J a/name -o "$S/%u-%5j-%t.out" \
		-- sh -c 'echo one; echo two >&2'
	umask 022
	await "$out"
	name=$S/$(id -un)-$(printf %05d "$out")-0.out
	is 'the log has the name that -o describes' [ "$(sed 2q "$name")" = "one
two" ]
	is 'a log named by -o has a mode by the umask' [ "$(mode "$name")" = 640 ]
	is 'a link named by the id leads to that log' [ "$(readlink "$(logs)/$out.log")" = "$name" ]
	run 'a job with -e is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -e "$S/err-%j" -- \
		sh -c 'echo one; echo two >&2'
	await "$out"
	is 'with -e only stdout is in the log' [ "$(cat "$(logs)/$out.log")" = one ]
	is 'with -e stderr is in the file of -e' [ "$(sed 1q "$S/err-$out")" = two ]
	run 'a job whose -o is the default log is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$(logs)/%j.log" \
		-- echo one
	await "$out"
	is 'the default log as -o is no link to itself' [ "$(said "$out")" = one ]
	run 'a job with one file for -o and -e is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$S/both" -e "$S/both" \
		-- sh -c 'echo one; echo two >&2; echo three'
	await "$out"
	is 'one file for -o and -e has all output in order' [ "$(sed 3q "$S/both")" = "one
two
three" ]
	echo before >"$S/twice"
	run 'a job with -o of an existing file is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$S/twice" -- echo one
	await "$out"
	is 'an existing file of -o is emptied first' [ "$(sed 1q "$S/twice")" = one ]
	run 'a job with -o none is submitted' 0 '*' '' "$GPULEASE" --submit -n 1 -o none -- echo one
	await "$out"
	next=$((out + 1))
	run '-o none keeps no output' 1 '' '*none of it was kept*' "$GPULEASE" --log "$out"

	echo old >"$(logs)/$next.log"
	run 'a job is submitted whose number an older log has' 0 "$next" '' \
		"$GPULEASE" --submit -n 1 -- echo new
	await "$next"
	is 'the older log is put aside' [ "$(cat "$(logs)/$next.log~")" = old ]
	is 'the new log has only the new output' [ "$(said "$next")" = new ]
}

no_place() {
	before=$(stat -c %s "$(state_dir)/tickets")
	mv "$(logs)" "$S/logs.aside"
	: >"$(logs)"
	run '--submit is refused if the folder of the logs cannot be made' 125 '' "*'$(logs)'*-o FILE*" \
		"$GPULEASE" --submit -n 1 -- true
	is 'a refusal for lack of a folder of logs leaves no ticket' [ "$(stat -c %s "$(state_dir)/tickets")" = "$before" ]
	run 'a job with -o is submitted without a folder of logs' 0 '*' '' "$GPULEASE" --submit -n 1 -o "$S/placed" -- echo one
	is 'a job with -o does not need the folder of the logs' wait_until 'grep -q "^gpulease: .*ended" "$S/placed"'
	rm "$(logs)"
	run 'a job is submitted while the folder of the logs is missing' 0 '*' '' "$GPULEASE" --submit -n 1 -- echo one
	await "$out"
	is 'the missing folder of the logs is made' [ "$(said "$out")" = one ]
	rm -r "$(logs)"
	mv "$S/logs.aside" "$(logs)"
	if others_can_run; then
		as_user='setpriv --reuid=54321 --regid=54321 --clear-groups --'
		mkdir -m 0755 "$S/home"
		chown 54321:54321 "$S/home"
	else
		as_user=
		mkdir "$S/home"
	fi
	# shellcheck disable=SC2086
	run 'a job of a user with another home' 0 '' '*' $as_user env XDG_STATE_HOME="$S/home" "$GPULEASE" -n 1 true
	mkdir "$S/home/gpulease/sim-8x24576/logs"
	chmod 0555 "$S/home/gpulease/sim-8x24576/logs"
	if [ -n "$as_user" ] || [ "$(id -u)" -ne 0 ]; then
		# shellcheck disable=SC2086
		run '--submit is refused if the folder of the logs is not writable' 125 '' '*Permission denied*-o FILE*' \
			$as_user env XDG_STATE_HOME="$S/home" "$GPULEASE" --submit -n 1 -- true
	else
		skip '--submit is refused if the folder of the logs is not writable' 'nothing is closed to root'
	fi
}

no_home() {
	with_driver
	gpus 1
	run '--submit without HOME is refused' 125 '' '*HOME is not set*-o FILE*' \
		env -u HOME -u XDG_STATE_HOME "$GPULEASE" --submit -n 1 -- true
	run '--submit without HOME is accepted with -o' 0 1 '' \
		env -u HOME -u XDG_STATE_HOME "$GPULEASE" --submit -n 1 -o "$S/homeless" -- true
	is 'a job without HOME runs' wait_until 'grep -q "^gpulease: .*ended" "$S/homeless"'
	run 'a job is submitted with HOME but without XDG_STATE_HOME' 0 2 '' \
		env -u XDG_STATE_HOME HOME="$S/somebody" "$GPULEASE" --submit -n 1 -- echo one
	is 'the log is below .local/state' \
		wait_until 'grep -q "^gpulease: .*ended" "$S/somebody/.local/state/gpulease/logs/2.log"'
	sim 8
}

# --- inside a lease ------------------------------------------------------------------------

# inside NAME OPTION…: a job that ignores TERM, submits another for four GPUs, and ends when a line
# arrives in its FIFO
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

# a_job_of_its_own TEXT GRACE OPTION…: an outer job with these options submits an inner one, and is
# cancelled with GRACE
a_job_of_its_own() {
	inside_what=$1 inside_grace=$2
	shift 2
	inside outer "$@"
	is "inside $inside_what another job is submitted" [ -n "$id" ]
	is 'the inner job starts' wait_until 'runs inner'
	is 'the inner job gets GPUs that the outer one does not have' [ "$(gpus_of inner)" = 4,5,6,7 ]
	pid=$(supervisor "$id")
	is 'the inner job has no token of the outer lease' \
		[ "$(tr '\0' '\n' <"/proc/$pid/environ" | grep -c '^GPULEASE_TOKEN=[0-9a-f]')" = 0 ]
	echo >"$S/outer.hold"
	ended outer
	is 'the outer job ends with status 0' [ "$rc" = 0 ]
	run 'the GPUs of the outer job are free at once' 0 '' '*' "$GPULEASE" --immediate=30s -n 4 true
	is 'the supervisor of the inner job runs after the outer job has ended' kill -0 "$pid"
	is 'the command of the inner job runs after the outer job has ended' kill -0 "$(cut -d ' ' -f 1 "$S/inner.runs")"
	echo >"$S/inner.hold"
	await "$id"
	is 'a step of the inner job uses the lease of the inner job' [ "$(said "$id")" = "inner 4,5,6,7 $id" ]

	inside outer "$@"
	wait_until 'runs inner'
	run 'the outer job is cancelled with all its processes' 0 '' '*' \
		"$GPULEASE" --cancel "$(id_of outer)" --grace "$inside_grace"
	ended outer
	is 'the supervisor of the inner job survives the cancel' \
		like '[SRD]' "$(process_state "$(supervisor "$id")")"
	is 'the command of the inner job survives the cancel' kill -0 "$(cut -d ' ' -f 1 "$S/inner.runs")"
	echo >"$S/inner.hold"
	await "$id"
	is 'the inner job runs to its end after the cancel' like '*exit status 0*' "$("$GPULEASE" --log "$id")"
}

from_within() {
	a_job_of_its_own 'a job' 50ms -n 4
	# whose supervisor ends it, before the process that cancels does
	a_job_of_its_own 'a job with --report' "${DEADLINE}s" -n 4 --report --grace 50ms

	inside outer -n 8
	run 'a job submitted inside waits for the GPUs of the outer job' 0 '*' '' "$GPULEASE" --queue
	echo >"$S/outer.hold"
	ended outer
	is 'the inner job gets the GPUs of the outer job' wait_until 'runs inner'
	echo >"$S/inner.hold"
	await "$id"
}

# --- many ----------------------------------------------------------------------------------

# count_waiting: the number of jobs that wait
count_waiting() {
	"$GPULEASE" --queue | tail -n +2 | wc -l
}

# background: the pids of all jobs in the background
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
		skip 'each of a hundred background jobs needs less than 1 MiB' 'built with sanitizers'
	else
		is 'each of a hundred background jobs needs less than 1 MiB' [ "$((most > 0 && most < 1024))" = 1 ]
	fi
	# shellcheck disable=SC2046
	run 'a hundred jobs are cancelled at once' 0 '' '' "$GPULEASE" --cancel $(seq "$first" $((first + 99)))
	is 'no cancelled job is left in the queue' [ "$(count_waiting)" -eq 0 ]
	is 'no process of a cancelled job is left' wait_until '[ "$(jobs_left)" -eq 1 ]'
	run 'the log of a cancelled job says so' 0 '*cancelled*' '' "$GPULEASE" --log "$first"
	release a
	await "$id"
}

# --- an error after the job was accepted -------------------------------------------------

# What happens to the tickets ends no job that waits.
error_inside() {
	submit a -n 8
	wait_until 'runs a'
	submit b -n 1
	wait_until '"$GPULEASE" --queue | grep -q " $id "'
	mv "$(state_dir)/tickets" "$S/tickets.away"
	mkdir "$(state_dir)/tickets"
	release a
	is 'the log of a job that cannot read the tickets has the reason' \
		wait_until 'like "*gpulease: *Is a directory*" "$(cat "$(logs)/$id.log")"'
	is 'a job that can no longer read the tickets does not start' [ ! -e "$S/b.runs" ]
	rmdir "$(state_dir)/tickets"
	mv "$S/tickets.away" "$(state_dir)/tickets"
	is 'it starts once it can read them again' wait_until 'runs b'
	release b
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

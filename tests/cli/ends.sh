#!/bin/sh
# How a job has ended: each cause of an end, for each kind of job, as each reader tells it.  The
# command of a job saves and exits with 0 at TERM, as handlers do.  So its status says nothing: the
# cause decides.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
program=$GPULEASE
configured

# saves NAME OPTION…: a job whose command exits with 0 at TERM; `release NAME STATUS` ends it, too
saves() {
	rm -f "$S/$1".*
	mkfifo "$S/$1.hold"
	name=$1
	shift
	# the shell between reaps the job at once: only then the kernel tells its status to others
	sh -c 'base=$1
		shift
		"$@" </dev/null &
		echo $! >"$base.pid"
		wait $!' parent "$S/$name" "$GPULEASE" "$@" -- sh -c '
		trap "exit 0" TERM
		exec 3<>"$1.hold"
		echo "$$ $GPULEASE_ID" >"$1.new"
		mv "$1.new" "$1.runs"
		read -r status <&3
		exit "$status"' job "$S/$name" >"$S/$name.out" 2>"$S/$name.err" </dev/null &
	started="$started $!"
	parent=$!
	wait_until 'runs "$name"' || bail "job $name does not start: $(cat "$S/$name.err")"
}

# asks ID: asks for the end while the job runs
asks() {
	rm -f "$S/needs.err"
	"$GPULEASE" --wait-for "$1" >"$S/asks.out" 2>&1 </dev/null &
	echo $! >"$S/asks.pid"
	started="$started $!"
	wait_until 'like S "$(process_state "$(pid_of asks)")"'
	"$GPULEASE" -n 0 --after-ok "$1" true >"$S/needs.out" 2>"$S/needs.err" </dev/null &
	echo $! >"$S/needs.pid"
	started="$started $!"
	wait_until '[ -s "$S/needs.err" ]'
}

# past ID MEMBER: a member of the last attempt of the job in --history --json
past() {
	"$GPULEASE" --history all --json | tr -d ' \n' | tr '{' '\n' | grep "^\"ticket\":$1," |
		tail -n 1 | sed "s/.*\"$2\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/"
}
told() {
	[ -n "$(past "$1" state)" ]
}

# table ID: STATE STATUS in the table of --history
table() {
	"$GPULEASE" --status "$1"
}

# check TEXT ID STATE STATUS OK SLURM: what each reader says of the end; OK: yes or no
check() {
	ended asks
	is "$1: --wait-for, while it ends" [ "$rc" -eq "$4" ]
	ended needs
	case $5 in
	yes) is "$1: --after-ok starts" [ "$rc" -eq 0 ] ;;
	no) is "$1: --after-ok does not start" [ "$rc" -eq 124 ] ;;
	esac
	checked=$2
	wait_until 'told "$checked"' || bail "$1: no line in the history"
	is "$1: state" [ "$(past "$2" state)" = "$3" ]
	is "$1: status" [ "$(past "$2" status)" = "$4" ]
	is "$1: one line" [ "$("$GPULEASE" --history all --json | tr -d ' \n' |
		tr '{' '\n' | grep -c "^\"ticket\":$2,")" -eq 1 ]
	try "$GPULEASE" --wait-for "$2"
	is "$1: --wait-for, afterwards" [ "$rc" -eq "$4" ]
	like "*$3*" "$(table "$2")" || not_ok "$1: --status ID" "$(table "$2")"
	is "$1: scontrol" like "*JobState=$6*" "$(scontrol show job "$2" 2>&1)"
}

scontrol() {
	"$(dirname "$program")/gpulease-slurm" scontrol "$@"
}

cancel() {
	"$GPULEASE" --cancel "$1" 2>/dev/null || bail "cannot cancel job $1"
}

# Whether the kernel tells a process how another one ended that is not its child.
echo 'record-ends = no' >"$S/conf"
saves probe -n 1
asks "$(id_of probe)"
release probe 0
ended asks
if [ "$rc" -ne 0 ]; then
	skip 'how jobs have ended' 'the kernel tells only the parent how a process ended'
	finish
fi
ended needs

# kinds: TEXT|configuration|options
kinds='plain|no|-n 1
watched|yes|-n 1
with a limit|no|-n 1 -t 1h
supervised|no|-n 2 --report
tried again|no|-n 1 --retries 2
without GPUs|no|-n 0
without GPUs, watched|yes|-n 0
without GPUs, supervised|no|-n 0 --report'

echo "$kinds" >"$S/kinds"
while IFS='|' read -r text records options <&9; do
	echo "record-ends = $records" >"$S/conf"
	# shellcheck disable=SC2086 # one word each
	saves one $options
	id=$(id_of one)
	asks "$id"
	cancel "$id"
	check "$text, cancelled" "$id" cancelled 143 no CANCELLED
	is "$text, cancelled: by whom" [ "$(past "$id" by)" = "$(id -un)" ]

	# shellcheck disable=SC2086
	saves one $options
	id=$(id_of one)
	asks "$id"
	kill -TERM "$(cut -d ' ' -f 1 "$S/one.runs")"
	case $text in
	plain | 'without GPUs') # nobody records it until the GPUs are taken
		ended asks
		is "$text, ended by its user: a success" [ "$rc" -eq 0 ]
		ended needs
		is "$text, ended by its user: --after-ok starts" [ "$rc" -eq 0 ]
		;;
	*) check "$text, ended by its user" "$id" finished 0 yes COMPLETED ;;
	esac
done 9<"$S/kinds"

# --- at the limit --------------------------------------------------------------------------

echo 'record-ends = no' >"$S/conf"
for options in '-n 1' '-n 0' '-n 1 --report' '-n 0 --report'; do
	# shellcheck disable=SC2086
	saves one $options -t 1500ms
	id=$(id_of one)
	asks "$id"
	check "$options, timed out" "$id" timed-out 124 no TIMEOUT
done

# what the command has left keeps the GPUs until the limit; the job itself has ended by itself
"$GPULEASE" -n 1 -t 1s -- sh -c 'echo "$GPULEASE_ID" >"$1"
	sleep 1000 & exit 0' sh "$S/left" &
started="$started $!"
wait $!
id=$(cat "$S/left")
asks "$id"
check 'a job whose children were ended at the limit' "$id" finished 0 yes COMPLETED

# --- a cancel that comes too late ------------------------------------------------------------

# the command has ended by itself; only a child of it lives when --cancel comes
for records in yes no; do
	echo "record-ends = $records" >"$S/conf"
	rm -f "$S/left"
	"$GPULEASE" -n 1 -- sh -c 'sleep 1000 & echo "$GPULEASE_ID" >"$1"' sh "$S/left"
	id=$(cat "$S/left")
	cancel "$id"
	wait_until 'told "$id"'
	[ "$records" = yes ] && wanted=finished || wanted='*'
	is "ended before --cancel, record-ends = $records: the state" \
		like "$wanted" "$(past "$id" state)"
	is "ended before --cancel, record-ends = $records: not cancelled" \
		[ "$(past "$id" state)" != cancelled ]
done

# the supervisor has not seen the end yet
saves one -n 2 --retries 1
id=$(id_of one)
command=$(cut -d ' ' -f 1 "$S/one.runs")
asks "$id"
stop one
release one 0
wait_until 'like Z "$(process_state "$command")"'
cancel "$id"
check 'ended before the supervisor saw --cancel' "$id" finished 0 yes COMPLETED

# --- leases without a command --------------------------------------------------------------

for records in no yes; do
	echo "record-ends = $records" >"$S/conf"
	"$GPULEASE" -n 1 --lease-only >"$S/held.out" 2>"$S/held.err" </dev/null &
	echo $! >"$S/held.pid"
	started="$started $!"
	wait_until 'grep -q "has GPU" "$S/held.err"'
	id=$(sed -n 's/.*job \([0-9]*\) has GPU.*/\1/p' "$S/held.err")
	asks "$id"
	cancel "$id"
	check "--lease-only, record-ends = $records, cancelled" "$id" cancelled 143 no CANCELLED

	# a shell whose lease is cancelled and that ends with 0, after another job has had its GPU
	mkfifo "$S/shell.$records"
	sh -c 'exec 3<>"$2"
		eval "$("$1" -n 2 --shell)"
		echo "$GPULEASE_ID" >"$2.id"
		read -r line <&3
		exit 0' sh "$GPULEASE" "$S/shell.$records" 2>/dev/null </dev/null &
	shell=$!
	started="$started $shell"
	wait_until '[ -s "$S/shell.$records.id" ]'
	id=$(cat "$S/shell.$records.id")
	asks "$id"
	cancel "$id"
	"$GPULEASE" -n 2 -- true
	echo >"$S/shell.$records"
	wait "$shell"
	check "--shell, record-ends = $records, cancelled" "$id" cancelled 143 no CANCELLED
done

# --- lost ------------------------------------------------------------------------------------

echo 'record-ends = yes' >"$S/conf"
saves one -n 1
id=$(id_of one)
asks "$id"
for pid in $(strays); do
	! grep -sqx gpulease-limit "/proc/$pid/comm" || kill -KILL "$pid"
done
kill -KILL "$(pid_of one)"
ended needs
is 'killed with its watchdog: --after-ok does not start' [ "$rc" -eq 124 ]
ended asks
is 'killed with its watchdog: --wait-for' [ "$rc" -eq 137 ]

saves one -n 2 --report
id=$(id_of one)
asks "$id"
command=$(cut -d ' ' -f 1 "$S/one.runs")
kill -KILL "$(pid_of one)"
wait "$parent"
release one 0
wait_until '[ ! -e "/proc/$command" ]'
ended needs
is 'with a killed supervisor: --after-ok does not start' [ "$rc" -eq 124 ]
ended asks
is 'with a killed supervisor: --wait-for' [ "$rc" -ne 0 ]
"$GPULEASE" -n 2 -- true
is 'with a killed supervisor: the history' [ "$(past "$id" state)" = lost ]

# --- the runner of a batch -------------------------------------------------------------------

saver="$S/saver"
printf '%s\n' '#!/bin/sh' 'trap "exit 0" TERM' "echo \$GPULEASE_ID >$S/in-batch" \
	"mkfifo $S/\$\$.hold" "exec 3<>$S/\$\$.hold" 'read -r line <&3' >"$saver"
chmod +x "$saver"
echo "[timeout=1s] $saver" >"$S/list"
rm -f "$S/in-batch"
try "$GPULEASE" -Q --batch "$S/list"
is 'a line of a batch that timed out: the status' [ "$rc" -eq 124 ]
echo "$saver" >"$S/list2"
rm -f "$S/in-batch"
"$GPULEASE" -Q --batch "$S/list2" </dev/null >"$S/batch.out" 2>&1 &
echo $! >"$S/batch.pid"
started="$started $!"
wait_until '[ -s "$S/in-batch" ]'
cancel "$(cat "$S/in-batch")"
ended batch
is 'a line of a batch that was cancelled: the status' [ "$rc" -eq 143 ]
finish

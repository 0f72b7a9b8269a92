#!/bin/sh
# A command that gets the warning signal may save and exit with status 0: its job is not over.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
printf 'max-priority = 1000\n' >"$S/conf"
configured
sim 1

# A command with a handler of USR1: "saver NAME WHAT" counts its runs in $S/NAME.count, and runs the
# shell code WHAT at USR1.  When $S/NAME.go exists, it ends by itself with status 0.
cat >"$S/saver" <<'END'
#!/bin/sh
trap "$2" USR1
echo run >>"$1.count"
echo "$$ $GPULEASE_ID" >"$1.new" && mv "$1.new" "$1.runs"
until [ -e "$1.go" ]; do sleep 0.02; done
echo end >>"$1.count"
END
cat >"$S/saver.py" <<'END'
import os, signal, sys, time
name, what = sys.argv[1:3]
def save(number, frame):
    open(name + ".saved", "a").write("saved\n")
    if what == "exit":
        sys.exit(0)
    if what == "finish":            # it would have ended in that instant
        open(name + ".count", "a").write("end\n")
        os._exit(0)
    raise KeyboardInterrupt         # status 1, with a traceback
signal.signal(signal.SIGUSR1, save)
open(name + ".count", "a").write("run\n")
open(name + ".new", "w").write("%d %s\n" % (os.getpid(), os.environ["GPULEASE_ID"]))
os.rename(name + ".new", name + ".runs")
while not os.path.exists(name + ".go"):
    time.sleep(0.02)
open(name + ".count", "a").write("end\n")
END
chmod +x "$S/saver"

# saves NAME WHAT OPTION…: starts a job with that handler; returns when it runs
saves() {
	saves_name=$1 what=$2
	shift 2
	rm -f "$S/$saves_name".*
	case $what in
	py-*) set -- "$@" python3 "$S/saver.py" "$S/$saves_name" "${what#py-}" ;;
	*) set -- "$@" "$S/saver" "$S/$saves_name" "$what" ;;
	esac
	"$GPULEASE" "$@" >"$S/$saves_name.out" 2>"$S/$saves_name.err" </dev/null &
	echo $! >"$S/$saves_name.pid"
	started="$started $!"
	wait_until "runs $saves_name" || bail "$saves_name does not run: $(cat "$S/$saves_name.err")"
}

counts() {
	tr '\n' ' ' <"$S/$1.count" | sed 's/ $//'
}

# ends_well NAME: whether the job runs again and then ends by itself
ends_well() {
	wait_until "runs $1" || return 1
	: >"$S/$1.go"
	ended "$1"
	[ "$rc" -eq 0 ]
}

# comes_back TEXT NAME COUNT: results, good if the preempted job waits again, a job that depends on
# it does not start, it ends in its next attempt, and its count is then COUNT
comes_back() {
	id=$(id_of "$2")
	rm "$S/$2.runs"
	begin dependent -n 0 --after-ok "$id"
	begin high --priority 5
	wait_until 'runs high' || bail "$1: $(cat "$S/$2.err")"
	is "$1: the job has not ended" kill -0 "$(pid_of "$2")"
	is "$1: a job that depends on it does not start" eval '! runs dependent'
	release_all high
	is "$1: the job runs again, and ends" ends_well "$2"
	is "$1: the job has run twice" [ "$(counts "$2")" = "$3" ]
	is "$1: the dependent job starts after the second run" wait_until 'runs dependent'
	release_all dependent
}

# --- preempted ---------------------------------------------------------------------------

saves low 'exit 0' --preemptible --signal USR1@30
comes_back 'a handler that exits with 0' low 'run run end'
saves low 'exit 3' --preemptible --signal USR1@30
comes_back 'a handler that exits with 3' low 'run run end'
saves low 'trap - USR1; kill -USR1 $$' --preemptible --signal USR1@30
comes_back 'a handler that dies of the warning' low 'run run end'
saves low 'echo end >>"$1.count"; exit 0' --preemptible --signal USR1@30
comes_back 'a command that ends at the moment of the warning' low 'run end run end'
if python3 -c '' 2>/dev/null; then
	for way in exit finish raise; do
		saves low py-$way --preemptible --signal USR1@30
		case $way in
		finish) comes_back "Python: $way" low 'run end run end' ;;
		*) comes_back "Python: $way" low 'run run end' ;;
		esac
	done
else
	skip 'handlers in Python' 'Python is not installed'
fi
saves low 'exit 0' --submit --preemptible --signal USR1@30
id=$(id_of low)
"$GPULEASE" --wait-for "$id" &
waits=$!
started="$started $waits"
rm "$S/low.runs"
begin high --priority 5
wait_until 'runs high'
is '--wait-for does not end when a background job is preempted' kill -0 $waits
release_all high
wait_until 'runs low'
: >"$S/low.go"
wait $waits
is '--wait-for ends when the background job has ended' [ $? -eq 0 ]

# --- what ends the job -------------------------------------------------------------------

# keeps NAME OPTION…: a job whose handler saves and goes on
keeps() {
	keeps_name=$1
	shift
	saves "$keeps_name" 'echo saved >>"$1.saved"' --preemptible --signal USR1@60 "$@"
	begin high --priority 5
	wait_until '[ -s "$S/$keeps_name.saved" ]' || bail "$(cat "$S/$keeps_name.err")"
}

keeps low
kill -TERM "$(pid_of low)"
ended low
is 'TERM from the user ends a job that was warned' [ "$rc" -eq 143 ]
release_all high
is 'a warned job that got TERM does not run again' [ "$(counts low)" = run ]
keeps low
"$GPULEASE" --signal-job "$(id_of low)" TERM
ended low
is 'TERM to the command alone ends a job that was warned' [ "$rc" -eq 143 ]
release_all high
keeps low
run 'a job that was warned can be cancelled' 0 '' '' "$GPULEASE" --cancel "$(id_of low)"
ended low
is 'a cancel ends a job that was warned' [ "$rc" -eq 143 ]
release_all high
saves low 'exit 0' --preemptible --signal USR1@30 --done-status 0
begin high --priority 5
ended low
is 'a command that exits with the --done-status ends its job' [ "$rc" -eq 0 ]
release_all high
saves low 'exit 7' --preemptible --signal USR1@30 --done-status 7
begin dependent -n 0 --after-ok "$(id_of low)"
begin high --priority 5
ended low
is 'the --done-status may be another status than 0' [ "$rc" -eq 7 ]
ended dependent
is 'a job with --after-ok gives up if that status is not 0' [ "$rc" -eq 124 ]
release_all high
saves low 'exit 85' --preemptible --signal USR1@30 --done-status 0
comes_back 'a command that exits with another status than --done-status' low 'run run end'
run 'a command with that status is not tried again' 4 '' '' \
	"$GPULEASE" --retries 3 --done-status 4 sh -c 'echo x >>"$1"; exit 4' - "$S/tried"
is 'a command that exits with the --done-status has run once' [ "$(grep -c . "$S/tried")" -eq 1 ]
run '--done-status needs an option that sends back' 125 '' '*--done-status goes only with*' \
	"$GPULEASE" --done-status 0 true

# --- at a limit ------------------------------------------------------------------------------

# limited OPTION… CODE: runs the shell code, with a handler of USR1 that exits with 0
limited() {
	rm -f "$S/limited.count"
	last=
	for word; do
		shift
		[ -z "$last" ] || set -- "$@" "$last"
		last=$word
	done
	timeout 60 "$GPULEASE" -Q --on-limit requeue "$@" sh -c '
		trap "echo saved >>$1.count; exit 0" USR1
		echo run >>"$1.count"; '"$last"'; while :; do sleep 0.02; done' - "$S/limited"
}

run 'a job whose handler exits before the limit is requeued' 0 '' '' limited -t 3s --signal USR1@2s \
	'[ "$(grep -c run "$1.count")" -lt 3 ] || exit 0'
is 'the job is requeued each time' [ "$(counts limited)" = 'run saved run saved run' ]
run 'a job that is requeued as often as allowed then times out' 124 '' '' \
	limited -t 3s --signal USR1@2s --max-requeues 1 :
is 'the last attempt also saved' [ "$(counts limited)" = 'run saved run saved' ]
try "$GPULEASE" --history
is 'the history says timed-out' like '*timed-out*' "$out"
run 'the --done-status ends a job that has a limit, too' 0 '' '' \
	limited -t 3s --signal USR1@2s --done-status 0 :
is 'the job with the --done-status had one attempt' [ "$(counts limited)" = 'run saved' ]
run 'a job that ends before its warning has ended' 0 '' '' limited -t 1h --signal USR1@1s 'exit 0'
run 'a job without requeue that exits at its warning has ended' 5 '' '' \
	"$GPULEASE" -t 3s --signal USR1@2s sh -c 'trap "exit 5" USR1; while :; do sleep 0.02; done'

finish

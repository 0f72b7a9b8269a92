#!/bin/sh
# A lease is over only when no process of its job lives, whatever descriptors it has closed.
#
# The oracle: each process that uses a GPU holds a lock on $S/lock.GPU, and the next job on the
# GPU tries to take that lock.  gpulease knows nothing of these locks.
# shellcheck disable=SC2016,SC2317 # conditions, and functions that are called by others
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
for PYTHON in /usr/bin/python3 python3; do
	! command -v "$PYTHON" >/dev/null || break
done
export PYTHON S TMPDIR="$S/tmp"

# --- programs that leave processes behind -------------------------------------------------

cat >"$S/hold.py" <<'END'
import fcntl, os, sys

def use(place):
    "Uses the GPUs as long as what is returned is open, here or in a child."
    locks = []
    for gpu in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
        locks.append(open(os.environ["S"] + "/lock." + gpu, "w"))
        fcntl.flock(locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(place + ".new", "w") as said:
        said.write("%d\n" % os.getpid())
    os.rename(place + ".new", place + ".holds")
    return locks

def hold(place):
    "Uses the GPUs until it is let go."
    locks = use(place)
    open(place + ".let").read()

if __name__ == "__main__":
    hold(sys.argv[1])
END

cat >"$S/launch.py" <<'END'
import multiprocessing, os, subprocess, sys, time
from hold import hold, use

def detach(closed):
    "A session of its own, and no descriptors but the first three."
    os.setsid()
    os.closerange(3, closed)

def launch(kind, place):
    if kind == "popen":
        subprocess.Popen([sys.executable, os.environ["S"] + "/hold.py", place],
                         start_new_session=True)
    elif kind in ("spawn", "forkserver"):
        multiprocessing.get_context(kind).Process(target=hold, args=(place,)).start()
    elif kind == "closerange":
        if os.fork() == 0:
            detach(65536)
            hold(place)
            os._exit(0)
    elif kind == "daemon":
        if os.fork() == 0:
            detach(65536)
            if os.fork() != 0:
                os._exit(0)
            os.chdir("/")
            hold(place)
            os._exit(0)

    elif kind == "chain":
        if os.fork() == 0:
            detach(65536)
            locks = use(place)
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                time.sleep(0.001)
                if os.fork() != 0:
                    os._exit(0)
            os._exit(0)

if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2])
    for _ in range(3000):
        if os.path.exists(sys.argv[2] + ".holds"):
            break
        time.sleep(0.01)
    if len(sys.argv) > 3:
        time.sleep(1000)
    sys.stdout.flush()
    os._exit(0)  # multiprocessing would wait for its workers
END

# prepare NAME: makes the FIFO of a process that will be left as NAME
prepare() {
	rm -f "$S/$1".*
	mkfifo "$S/$1.let"
}

# leave NAME KIND OPTION…: a job on both GPUs that ends and leaves a process of that kind
leave() {
	leave_name=$1 leave_kind=$2
	shift 2
	prepare "$leave_name"
	"$GPULEASE" "$@" -n 2 -- "$PYTHON" "$S/launch.py" "$leave_kind" "$S/$leave_name" \
		>/dev/null 2>"$S/$leave_name.err" </dev/null
}

# holds NAME: whether the process left as NAME lives
holds() {
	[ -s "$S/$1.holds" ] && [ -d "/proc/$(cat "$S/$1.holds")" ]
}

# let_go NAME: ends the process left as NAME, and waits for its end
let_go() {
	# shellcheck disable=SC2034 # in a condition
	let_pid=$(cat "$S/$1.holds")
	: >"$S/$1.let" &
	started="$started $!"
	wait_until 'like "[ZX]" "$(process_state "$let_pid")" || [ ! -e "/proc/$let_pid" ]' ||
		bail "process $1 does not end"
}

# next NAME OPTION…: starts a job on one GPU; returns when it waits or has ended.
next() {
	next_name=$1
	shift
	rm -f "$S/$next_name".*
	: >"$S/$next_name.err"
	"$GPULEASE" "$@" -n 1 -- sh -c '
		flock -n "$S/lock.$CUDA_VISIBLE_DEVICES" true && echo alone || echo beside
	' >"$S/$next_name.out" 2>"$S/$next_name.err" </dev/null &
	echo $! >"$S/$next_name.pid"
	started="$started $!"
	wait_until "grep -q waits '$S/$next_name.err' || [ -s '$S/$next_name.out' ]"
}

# found NAME: prints what that job found on its GPU; waits for its end
found() {
	ended "$1"
	cat "$S/$1.out"
}

# named NAME: how many processes of this script have that name
named() {
	for pid in $(strays); do
		grep -sx "$1" "/proc/$pid/comm"
	done | wc -l
}

# waits_for_it TEXT NAME: results: the next job waits until the process left as NAME has ended
waits_for_it() {
	next after || bail "the job after $2 does not say that it waits"
	is "$1: the next job waits" [ ! -s "$S/after.out" ]
	is "$1: the process still runs" holds "$2"
	let_go "$2"
	is "$1: the next job starts when the process has ended" [ "$(found after)" = alone ]
}

if ! "$PYTHON" -c 'import multiprocessing' 2>/dev/null; then
	skip 'processes that Python leaves behind' 'python3 is not installed'
	finish
fi

# --- jobs that end ------------------------------------------------------------------------

for kind in popen spawn forkserver closerange daemon; do
	leave one "$kind"
	waits_for_it "a process left by $kind" one
done

# Each process starts the next one and ends, so a listed process is gone when it is examined.
for option in -Q --report -Q --report; do
	leave one chain $option
	next after
	is "$option: a chain of short processes keeps the lease" [ "$(found after)" = alone ]
done

for kind in popen forkserver; do
	leave one "$kind" --report
	waits_for_it "a process left by $kind under --report" one
done

prepare one
"$GPULEASE" --submit -n 2 -- "$PYTHON" "$S/launch.py" spawn "$S/one" >/dev/null
wait_until 'holds one && [ "$(named gpulease-job)" -eq 0 ]' || bail 'the job does not end'
waits_for_it 'a process left by spawn under --submit' one

leave one popen -t 10m
waits_for_it 'a process left by popen with a time limit' one

# --- jobs that are killed -----------------------------------------------------------------

# killed NAME OPTION…: kills the launcher once its worker holds the GPUs
killed() {
	killed_name=$1
	shift
	prepare "$killed_name"
	"$GPULEASE" "$@" -n 2 -- "$PYTHON" "$S/launch.py" popen "$S/$killed_name" stay \
		>/dev/null 2>"$S/$killed_name.err" </dev/null &
	killed_pid=$!
	started="$started $killed_pid"
	wait_until "[ -s '$S/$killed_name.holds' ]" || bail 'no worker'
	kill -KILL "$killed_pid"
	wait "$killed_pid" 2>/dev/null
}
killed one
waits_for_it 'a process left by a launcher that was killed' one

# --- the linger rule ----------------------------------------------------------------------

printf 'linger-time = 1s\n' >"$S/conf"
leave one popen
next after --config "$S/conf" || bail 'the next job does not say that it waits'
is 'a process left on idle GPUs: the next job waits at first' [ ! -s "$S/after.out" ]
is 'a process left on idle GPUs: after the linger time the job starts' [ \
	"$(found after)" = beside ]
next again
is 'after the linger time later jobs do not wait' [ "$(found again)" = beside ]
is 'after the linger time the process still runs' holds one
is 'the history has the end by the linger time' grep -qa 'how=lingered' "$(state_dir)/history"
let_go one

# --- without a GPU to take, no process is examined ----------------------------------------

if command -v strace >/dev/null; then
	strace -f -o "$S/trace" -e trace=prlimit64 "$GPULEASE" -n 1 true
	strace -f -o "$S/trace" -e trace=prlimit64 "$GPULEASE" -n 1 -- "$GPULEASE" true
	"$GPULEASE" -n 2 -- sleep 1000 &
	started="$started $!"
	wait_until '[ "$("$GPULEASE" --status | grep -c leased)" -eq 2 ]'
	strace -f -o "$S/trace" -e trace=prlimit64 "$GPULEASE" -I -n 1 true 2>"$S/err"
	is 'a job that finds no GPU just released looks at no process' \
		[ "$(grep -c 'prlimit64([1-9].*NULL' "$S/trace")" -eq 0 ]
	kill "$!"
fi

# --- what keeps the lease -------------------------------------------------------------------

# A gpulease in another pid namespace cannot see the processes of a job.  It relies on the FIFO,
# which the watchdog and, once the supervisor has ended, its witness hold.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	printf '#!/bin/sh\nexec unshare --pid --fork --mount-proc --kill-child "%s" "$@"\n' \
		"$GPULEASE" >"$S/apart"
	chmod +x "$S/apart"
	outside=$GPULEASE
	for option in '-t 10m' --report; do
		# shellcheck disable=SC2086 # they are words
		leave one spawn $option
		GPULEASE=$S/apart
		next after || bail 'the job in another pid namespace does not say that it waits'
		is "$option: a job in another pid namespace waits, too" [ ! -s "$S/after.out" ]
		is "$option: the process that was left still runs" holds one
		let_go one
		is "$option: the job starts when the process has ended" [ \
			"$(found after)" = alone ]
		GPULEASE=$outside
		is "$option: then the witness ends" wait_until \
			'[ "$(named gpulease-limit)" -eq 0 ]'
	done
	leave one spawn
	GPULEASE=$S/apart
	next after
	is 'without a witness a job in another pid namespace does not wait' [ \
		"$(found after)" = beside ]
	GPULEASE=$outside
	let_go one

	# the other way round: processes in a namespace below are seen
	prepare one
	# shellcheck disable=SC2016
	unshare --pid --fork --mount-proc --kill-child sh -c \
		'"$1" -n 2 -- "$PYTHON" "$S/launch.py" daemon "$S/one"; exec sleep 1000' - \
		"$GPULEASE" >/dev/null 2>&1 </dev/null &
	started="$started $!"
	container=$!
	wait_until "[ -s '$S/one.holds' ] && [ \"\$('$GPULEASE' --status --json | grep -c 'lingering.: *true')\" -gt 0 ]"
	next after
	is 'a job in a pid namespace below: the next job waits' [ ! -s "$S/after.out" ]
	: >"$S/one.let" &
	started="$started $!"
	is 'a job in a pid namespace below: the next job starts in the end' [ \
		"$(found after)" = alone ]
	kill "$container"

	# inside a namespace: the pids of the job are low, later pids are high
	unshare --pid --fork --mount-proc --kill-child sleep 1000 &
	started="$started $!"
	container=$! inner=
	wait_until 'read -r inner <"/proc/$container/task/$container/children"; [ "$inner" ]'
	printf '#!/bin/sh\nexec nsenter --target %s --pid --mount sh -c %s "%s" "$@"\n' \
		"$inner" "'\"\$0\" \"\$@\"; exit'" "$GPULEASE" >"$S/within"
	chmod +x "$S/within"
	GPULEASE=$S/within
	leave one popen
	nsenter --target "$inner" --pid --mount sh -c 'echo 1000 >/proc/sys/kernel/ns_last_pid'
	next after || bail 'the job in the same pid namespace does not say that it waits'
	is 'within a pid namespace below: the next job waits' [ ! -s "$S/after.out" ]
	: >"$S/one.let" &
	started="$started $!"
	is 'within a pid namespace below: the next job starts in the end' [ \
		"$(found after)" = alone ]
	GPULEASE=$outside
	kill "$inner"
else
	skip 'other pid namespaces' 'they need root'
fi

# If the watchdog was killed, the next job examines the processes.
leave one popen -t 10m
# shellcheck disable=SC2046
kill -KILL $(for pid in $(strays); do grep -qsx gpulease-limit "/proc/$pid/comm" && echo "$pid"; done)
waits_for_it 'a process left without its witness' one

# --- shells, processes, steps --------------------------------------------------------------

prepare one
sh -c 'eval "$("$1" --shell -n 2)"; shift; "$@"' - "$GPULEASE" \
	"$PYTHON" "$S/launch.py" popen "$S/one" >/dev/null 2>&1 </dev/null
waits_for_it 'a process left by a shell' one

prepare one
"$GPULEASE" -n 2 -- "$GPULEASE" -n 1 -- "$PYTHON" "$S/launch.py" popen "$S/one" >/dev/null 2>&1
waits_for_it 'a process left by a step' one

# --- a time limit ----------------------------------------------------------------------------

# The command ends; what it has started may stay to the limit and no longer.
"$GPULEASE" -Q --report -t 2s --grace 1s -n 1 sh -c \
	'sleep 1000 >/dev/null 2>&1 3>&- & echo $! >"$0"' "$S/rest" >/dev/null 2>&1 </dev/null
read -r rest <"$S/rest"
started="$started $rest"
# shellcheck disable=SC2016 # for wait_until
wait_until '[ ! -e "/proc/$rest" ] || like "[ZX]" "$(process_state "$rest")"'
is 'a process left by a supervised job ends at the time limit of the job' [ $? = 0 ]

# --- nothing left ----------------------------------------------------------------------------

# The watchdog holds the FIFO until it has examined the processes; that stops no job.
tries=0 refused=0
while [ "$tries" -lt 25 ]; do
	"$GPULEASE" -n 2 -t 10m true
	"$GPULEASE" -n 2 -I true 2>>"$S/refused" || refused=$((refused + 1))
	tries=$((tries + 1))
done
is 'right after a job with a limit its GPUs are there at once' [ "$refused" = 0 ]
is 'right after a job with a limit no message is printed' [ ! -s "$S/refused" ]

# --- signs that were forged ------------------------------------------------------------------

# A process of another real user with the tag of a job that has ended.  Its effective user is that
# of the job, as in a set-user-ID program: else its tag is not even read.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	tag=$("$GPULEASE" -n 2 -- prlimit --locks --noheadings -o SOFT | tr -d ' ')
	setpriv --ruid=65534 prlimit "--locks=$tag:$tag" sleep 1000 &
	started="$started $!"
	becomes "$!" sleep
	is 'a forged tag of another user keeps no lease' "$GPULEASE" -I -n 2 true
fi

finish

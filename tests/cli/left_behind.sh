#!/bin/sh
# A lease is over only when no process of its job lives, whatever that process has closed.
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

def hold(place):
    "Uses the GPUs until it is let go."
    locks = []
    for gpu in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
        locks.append(open(os.environ["S"] + "/lock." + gpu, "w"))
        fcntl.flock(locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(place + ".new", "w") as said:
        said.write("%d\n" % os.getpid())
    os.rename(place + ".new", place + ".holds")
    open(place + ".let").read()

if __name__ == "__main__":
    hold(sys.argv[1])
END

cat >"$S/launch.py" <<'END'
import multiprocessing, os, subprocess, sys, time
from hold import hold

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

if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2])
    while not os.path.exists(sys.argv[2] + ".holds"):
        time.sleep(0.01)
    if len(sys.argv) > 3:
        time.sleep(1000)
    sys.stdout.flush()
    os._exit(0)  # multiprocessing would wait for its workers
END

# prepare NAME: before a process is left as $S/NAME
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

# Whether the process left as NAME lives.
holds() {
	[ -s "$S/$1.holds" ] && [ -d "/proc/$(cat "$S/$1.holds")" ]
}

# Its end, and until it has come.
let_go() {
	let_pid=$(cat "$S/$1.holds")
	: >"$S/$1.let" &
	started="$started $!"
	wait_until '! kill -0 "$let_pid" 2>/dev/null' || bail "process $1 does not end"
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

# What that job found on its GPU; waits for its end.
found() {
	ended "$1"
	cat "$S/$1.out"
}

# waits_for_it TEXT NAME: the next job after NAME, from beginning to end
waits_for_it() {
	next after || bail "the job after $2 does not say that it waits"
	is "$1: the next job waits" [ ! -s "$S/after.out" ]
	is "$1: which still runs" holds "$2"
	let_go "$2"
	is "$1: and starts when it has ended" [ "$(found after)" = alone ]
}

if ! "$PYTHON" -c 'import multiprocessing' 2>/dev/null; then
	skip 'processes that Python leaves behind' 'python3 is not installed'
	finish
fi

# --- jobs that end ------------------------------------------------------------------------

for kind in popen spawn forkserver closerange daemon; do
	leave one "$kind"
	waits_for_it "$kind" one
done

for kind in popen forkserver; do
	leave one "$kind" --report
	waits_for_it "$kind under --report" one
done

prepare one
id=$("$GPULEASE" --submit -n 2 -- "$PYTHON" "$S/launch.py" spawn "$S/one")
"$GPULEASE" --wait-for "$id"
waits_for_it 'spawn under --submit' one

leave one popen -t 10m
waits_for_it 'popen with a time limit' one

# --- jobs that are killed -----------------------------------------------------------------

# killed NAME OPTION…: the launcher, once its worker holds the GPUs
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
waits_for_it 'a launcher that was killed' one

finish

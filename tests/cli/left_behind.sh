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

# What that job found on its GPU; waits for its end.
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
"$GPULEASE" --submit -n 2 -- "$PYTHON" "$S/launch.py" spawn "$S/one" >/dev/null
wait_until 'holds one && [ "$(named gpulease-job)" -eq 0 ]' || bail 'the job does not end'
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

# --- the linger rule ----------------------------------------------------------------------

printf 'linger-time = 1s\n' >"$S/conf"
leave one popen
next after --config "$S/conf" || bail 'the next job does not say that it waits'
is 'left behind on idle GPUs: the next job waits at first' [ ! -s "$S/after.out" ]
is 'left behind on idle GPUs: the linger time ends that' [ "$(found after)" = beside ]
next again
is 'and once and for all' [ "$(found again)" = beside ]
is 'while the process runs' holds one
is 'the history says so' grep -qa 'how=lingered' "$(state_dir)/history"
let_go one

# --- without a GPU to take, nothing is looked for ------------------------------------------

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

# Another pid namespace cannot see the processes of a job; it goes by the FIFO, which the
# watchdog and, once the supervisor has ended, its witness hold.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	printf '#!/bin/sh\nexec unshare --pid --fork --mount-proc --kill-child %s "$@"\n' \
		"$GPULEASE" >"$S/apart"
	chmod +x "$S/apart"
	outside=$GPULEASE
	for option in '-t 10m' --report; do
		# shellcheck disable=SC2086 # they are words
		leave one spawn $option
		GPULEASE=$S/apart
		next after || bail 'the job in another pid namespace does not say that it waits'
		is "$option: it waits in another pid namespace, too" [ ! -s "$S/after.out" ]
		is "$option: which" holds one
		let_go one
		is "$option: until that has ended" [ "$(found after)" = alone ]
		GPULEASE=$outside
		is "$option: and the witness goes" wait_until '[ "$(named gpulease-limit)" -eq 0 ]'
	done
	leave one spawn
	GPULEASE=$S/apart
	next after
	is 'without a witness it goes by the FIFO' [ "$(found after)" = beside ]
	GPULEASE=$outside
	let_go one

	# the other way round: what runs in a namespace below is seen
	prepare one
	# shellcheck disable=SC2016
	unshare --pid --fork --mount-proc --kill-child sh -c \
		'"$1" -n 2 -- "$PYTHON" "$S/launch.py" daemon "$S/one"; exec sleep 1000' - \
		"$GPULEASE" >/dev/null 2>&1 </dev/null &
	started="$started $!"
	container=$!
	wait_until "[ -s '$S/one.holds' ] && [ \"\$('$GPULEASE' --status --json | grep -c 'lingering.: *true')\" -gt 0 ]"
	next after
	is 'a job in a pid namespace below: the next one waits' [ ! -s "$S/after.out" ]
	: >"$S/one.let" &
	started="$started $!"
	is 'a job in a pid namespace below: until nothing is left' [ "$(found after)" = alone ]
	kill "$container"
else
	skip 'other pid namespaces' 'they need root'
fi

# A watchdog that was killed leaves it to the next job to look.
leave one popen -t 10m
# shellcheck disable=SC2046
kill -KILL $(for pid in $(strays); do grep -qsx gpulease-limit "/proc/$pid/comm" && echo "$pid"; done)
waits_for_it 'a witness that was killed' one

# --- shells, processes, steps --------------------------------------------------------------

prepare one
sh -c 'eval "$("$1" --shell -n 2)"; shift; "$@"' - "$GPULEASE" \
	"$PYTHON" "$S/launch.py" popen "$S/one" >/dev/null 2>&1 </dev/null
waits_for_it 'a shell' one

prepare one
"$GPULEASE" -n 2 -- "$GPULEASE" -n 1 -- "$PYTHON" "$S/launch.py" popen "$S/one" >/dev/null 2>&1
waits_for_it 'a step' one

# --- nothing left ----------------------------------------------------------------------------

# The watchdog holds the FIFO until it has looked, which keeps no job from starting.
tries=0 refused=0
while [ "$tries" -lt 25 ]; do
	"$GPULEASE" -n 2 -t 10m true
	"$GPULEASE" -n 2 -I true 2>>"$S/refused" || refused=$((refused + 1))
	tries=$((tries + 1))
done
is 'right after a job with a limit its GPUs are there at once' [ "$refused" = 0 ]
is 'and nothing is said' [ ! -s "$S/refused" ]

# --- signs that were forged ------------------------------------------------------------------

# A process of another real user with the tag of a job that has ended.  Its effective user is the
# job's, as that of a set-user-ID program: else its tag is not even read.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	tag=$("$GPULEASE" -n 2 -- prlimit --locks --noheadings -o SOFT | tr -d ' ')
	setpriv --ruid=65534 prlimit "--locks=$tag:$tag" sleep 1000 &
	started="$started $!"
	becomes "$!" sleep
	is 'a forged tag of another user keeps no lease' "$GPULEASE" -I -n 2 true
fi

finish

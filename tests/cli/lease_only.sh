#!/bin/sh
# Leases without a command: held by gpulease itself, for a process that is there already, and
# for the shell that asks for one.
# shellcheck disable=SC2016,SC2034,SC2086,SC2317 # functions that are called by others, options

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
export GPULEASE
not_now='gpulease: not available at once:'

# keep NAME OPTION…: `gpulease OPTION… --lease-only`, as from a terminal; returns when it has
# printed its GPUs on stdout and its message on stderr
keep() {
	keep_name=$1
	shift
	: >"$S/$keep_name.out"
	env --default-signal=INT "$GPULEASE" --lease-only "$@" \
		>"$S/$keep_name.out" 2>"$S/$keep_name.err" </dev/null &
	echo $! >"$S/$keep_name.pid"
	started="$started $!"
	wait_until "[ -s '$S/$keep_name.out' ] && grep -q ' has GPU ' '$S/$keep_name.err'" ||
		bail "$keep_name does not get its lease: $(cat "$S/$keep_name.err")"
}

# job_of NAME: the id of the job in its message
job_of() {
	sed -n 's/^gpulease: job \([0-9]*\) has .*/\1/p' "$S/$1.err"
}

# told ID: prints how the job has ended according to the history, "HOW STATUS"
told() {
	tr '\0' '\n' <"$(state_dir)/history" | grep -a "^[^ ]* ticket=$1 " | tail -n 1 |
		awk '{ for (i = 1; i <= NF; i++) if (split($i, of, "=") == 2) is[of[1]] = of[2] }
			END { print is["how"] ? is["how"] : "-", is["status"] }'
}

# lease_of PID: the fields of its lease in the lease files, one per line
lease_of() {
	cat "$(state_dir)"/gpu/*.lease | tr '\0' '\n' | grep -a "^lease/1 .* pid=$1 " |
		sort -u | tr ' ' '\n'
}

# is_free: whether both GPUs are free
is_free() {
	"$GPULEASE" -n 2 -I true 2>/dev/null
}

# --- held by gpulease ---------------------------------------------------------------------

keep kept -n 2
is '--lease-only prints its GPUs on stdout' [ "$(cat "$S/kept.out")" = 0,1 ]
is '--lease-only prints its job and its GPUs on stderr' like \
	'gpulease: job 1 has GPU 0,1; Ctrl-C gives it back' \
	"$(cat "$S/kept.err")"
run 'the GPUs of --lease-only are leased' 124 '' "$not_now *" "$GPULEASE" -I true
run '--lease-only waits its turn like any job' 124 '' '*gpulease: gave up *' \
	"$GPULEASE" --lease-only --max-wait 1s
waiter next -n 2
# context switches of `kept` are counted while another process reads the state
switches() {
	awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$(pid_of kept)/status"
}
wait_until '[ "$(process_state "$(pid_of kept)")" = S ]'
before=$(switches)
"$GPULEASE" --status >"$S/status"
is '--lease-only is not woken by other processes' [ "$(switches)" = "$before" ]
kill -INT "$(pid_of kept)"
ended kept
is '--lease-only ends with status 0 at INT' [ "$rc" -eq 0 ]
is 'after INT the next job starts' wait_until 'runs next'
release_all next
is 'the history has the exact end of --lease-only' [ "$(told 1)" = '- 0' ]

for signal in HUP TERM; do
	keep kept
	kill -s $signal "$(pid_of kept)"
	ended kept
	is "--lease-only ends with status 0 at $signal" [ "$rc" -eq 0 ]
	is "$signal: the GPU of --lease-only is free" is_free
done

trap '' HUP
keep deaf
trap 'exit 129' HUP
kill -HUP "$(pid_of deaf)"
run '--lease-only started by nohup ignores HUP' 124 '' '*' "$GPULEASE" -n 2 -I true
kill -TERM "$(pid_of deaf)"
ended deaf
is '--lease-only started by nohup ends at TERM' [ "$rc" -eq 0 ]

keep short --time 1s
ended short
is 'at its time limit --lease-only ends with status 124' [ "$rc" -eq 124 ]
is '--lease-only reports that its time limit was reached' grep -q 'has reached its time limit' \
	"$S/short.err"
is 'the history has the time limit of --lease-only' [ "$(told "$(job_of short)")" = 'limit 124' ]

keep kept -n 2
run '--lease-only can be cancelled' 0 '' '' "$GPULEASE" --cancel "$(job_of kept)"
ended kept
is 'the cancelled --lease-only ends with the status of TERM' [ "$rc" -eq 143 ]
is 'the cancelled --lease-only says which user cancelled it' grep -q 'was cancelled by' \
	"$S/kept.err"
is 'the history has the cancel of --lease-only' [ "$(told "$(job_of kept)")" = 'cancel 143' ]

keep kept -n 2
kill -KILL "$(pid_of kept)"
ended kept
is 'a killed --lease-only holds no GPU' wait_until is_free

run '--lease-only takes no command' 125 '' '*--lease-only takes no command, not *true*' \
	"$GPULEASE" --lease-only true
run '--lease-only refuses -n 0' 125 '' '*-n 0 asks for no GPU*' "$GPULEASE" --lease-only -n 0
run '--lease-only refuses a file for output' 125 '' '*there is no command to set up; leave out *-o*' \
	"$GPULEASE" --lease-only -o "$S/file"
run '--lease-only inside a lease is refused' 125 '' '*step of job*' \
	"$GPULEASE" "$GPULEASE" --lease-only
run '--lease-only that cannot print its GPUs fails' 125 '' '*cannot hold the lease*' \
	sh -c '"$1" --lease-only >/dev/full' - "$GPULEASE"
is 'after the failed --lease-only the GPU is free' is_free

# --- for a shell --------------------------------------------------------------------------

# begin_shell NAME CODE: starts a shell (${shell:-sh}) that runs CODE, notes its pid, its job and
# its GPUs, and then runs the lines that `tell NAME CODE` sends
begin_shell() {
	rm -f "$S/$1".*
	mkfifo "$S/$1.hold"
	# shellcheck disable=SC2086 # it may have arguments
	S=$S NAME=$1 GPULEASE=$GPULEASE ${shell:-sh} -c "$2"'
		exec 9<>"$S/$NAME.hold"
		echo "$$ ${GPULEASE_ID-} ${CUDA_VISIBLE_DEVICES-}" >"$S/$NAME.new"
		mv "$S/$NAME.new" "$S/$NAME.runs"
		while read -r line <&9; do
			eval "$line"
			echo $? >"$S/$NAME.said"
		done' >"$S/$1.out" 2>"$S/$1.err" </dev/null &
	echo $! >"$S/$1.pid"
	started="$started $!"
	wait_until "[ -e '$S/$1.runs' ]" || bail "shell $1 does not start: $(cat "$S/$1.err")"
}

# tell NAME CODE: the shell runs CODE; $said is the exit status
tell() {
	rm -f "$S/$1.said"
	echo "$2" 1<>"$S/$1.hold"
	wait_until "[ -s '$S/$1.said' ]" || bail "shell $1 does not answer: $2"
	said=$(cat "$S/$1.said")
}

# leave NAME: the shell ends
leave() {
	echo 'exit 0' 1<>"$S/$1.hold"
	ended "$1"
}

usual='eval "$("$GPULEASE" -n 1 --shell)"'
for each in sh dash bash zsh ksh mksh yash 'busybox ash'; do
	command -v "${each%% *}" >/dev/null || continue
	shell=$each
	begin_shell mine "$usual"
	is "$each: the shell has a GPU" [ "$(gpus_of mine)" = 0 ]
	is "$each: the lease belongs to the shell" sh -c 'echo "$1" | grep -qx shell=1' - \
		"$(lease_of "$(pid_of mine)")"
	tell mine '"$GPULEASE" --lease-only -n 2 -I'
	is "$each: a second lease is refused" [ "$said" -eq 125 ]
	leave mine
	is "$each: the lease ends with the shell" wait_until is_free
	for code in 'eval "$("$GPULEASE" -n 1 --shell || echo false)"' \
		'trap : USR1; eval "$("$GPULEASE" -n 1 --shell; exit $?)"' \
		'lines=$("$GPULEASE" -n 1 --shell) && eval "$lines"' \
		'"$GPULEASE" -n 1 --shell >"$S/lines"; . "$S/lines"' \
		'eval "$("$GPULEASE" --shell --pid $$ | cat)"' \
		'eval "$( (env "$GPULEASE" --shell; true) )"'; do
		begin_shell mine "$code"
		is "$each: the shell gets its lease by $code" \
			sh -c 'echo "$1" | grep -qx shell=1' - \
			"$(lease_of "$(pid_of mine)")"
		leave mine
	done
done
shell='sh'

begin_shell mine "$usual"
run 'other jobs wait for the GPU of the shell' 124 '' "$not_now *" "$GPULEASE" -n 2 -I true
tell mine '"$GPULEASE" sh -c "echo \$CUDA_VISIBLE_DEVICES \$GPULEASE_ID" >"$S/step"'
is 'gpulease in the shell is a step' [ "$(cat "$S/step")" = "0 $(id_of mine)" ]
tell mine 'env >"$S/shell.env"; env -i grep "Max file locks" /proc/self/limits >"$S/tag"'
is 'a child of the shell has the tag of the lease' sh -c 'grep -q . "$1" &&
	! grep -q "unlimited  *unlimited" "$1"' - "$S/tag"
"$GPULEASE" -n 1 env >"$S/command.env"
for each in shell command; do
	grep '^\(CUDA\|NVIDIA\|GPULEASE\)' "$S/$each.env" | grep -v '^GPULEASE=' |
		cut -d = -f 1 | sort >"$S/$each.names"
done
is 'the shell has the variables of a command' cmp "$S/shell.names" "$S/command.names"
waiter next -n 2
kill -KILL "$(pid_of mine)"
is 'when the shell is killed, the next job gets its GPU' wait_until 'runs next'
release_all next

odd="$S/it's a \$(dir)"
mkdir -m 0700 "$odd"
unset GPULEASE_SIM
export FAKE_SMI_DIR="$S/smi"
gpus 2
ODD=$odd PATH=$CLI/../bin:$PATH begin_shell odd 'eval "$("$GPULEASE" --dir "$ODD" --shell)"
	GPULEASE_ID=$GPULEASE_DIR'
is 'a directory with special characters is quoted' [ \
	"$(cut -d ' ' -f 2- "$S/odd.runs")" = "$odd 0" ]
leave odd
sim 2

run '--shell prints no variables into a terminal' 125 '*eval "$(gpulease -n 1 --shell)"*' '' \
	sh -c '"$1/onterminal" 80 "$2" --shell 2>&1' - "$TOOLS" "$GPULEASE"
# The search for the reader ends at a caller that belongs to another user, as sshd does.
if [ "$(id -u)" -ne 0 ]; then
	skip '--shell needs a caller as its reader' 'not root, who sees all callers'
else
	# the shell has the reading end, too, until it has started both sides
	run '--shell needs a caller as its reader' 0 '(exit 125);
125' '*gpulease --shell --pid $$*' \
		sh -c '{
			exec 3>&1
			pipe=$(readlink /proc/self/fd/3)
			while ls -l /proc/$$/fd | grep -qF "$pipe"; do :; done
			"$1" --shell
			echo $?
		} | cat' - "$GPULEASE"
fi
run '--shell that cannot print its variables fails' 125 '' '*lease is given back*' \
	sh -c '"$1" --shell >/dev/full' - "$GPULEASE"
is 'after the failed --shell the GPU is free' is_free
keep kept -n 2
run '--shell that gives up makes eval fail' 7 '' '*gave up*' \
	sh -c 'eval "$("$GPULEASE" --max-wait 1s --shell)" || exit $(($? - 117))' -
for each in --typo '-o file'; do
	run "--shell with a wrong command line makes eval fail: $each" 125 '' 'gpulease: *' \
		sh -ec 'eval "$("$GPULEASE" --shell '"$each"')"; echo goes on'
done
run '--shell that fails ends a script under sh -e' 124 '' '*not available at once*' \
	sh -ec 'eval "$("$GPULEASE" -I --shell)"; echo goes on'
kill -TERM "$(pid_of kept)"
ended kept
run '--shell --pid refuses a pid without a process' 125 '(exit 125);' \
	'gpulease: there is no process 2147483647' \
	"$GPULEASE" --shell --pid 2147483647

# A cancelled shell goes on without the GPU; the old time limit does not end what it starts then.
for limit in 3s 20s; do
	begin_shell cancelled 'eval "$("$GPULEASE" -n 2 --time '$limit' --shell)"
		sleep 1000 & echo $! >"$S/$NAME.child"'
	child=$(cat "$S/cancelled.child")
	started="$started $child"
	try "$GPULEASE" --cancel "$(id_of cancelled)"
	like '*has finished' "$err" || break # this machine needs a longer limit
	leave cancelled
done
is 'the lease of a shell can be cancelled' [ "$rc:$out$err" = 0: ]
is 'the GPUs of the cancelled shell are free' is_free
is 'the child of the cancelled shell was ended' sh -c '! [ -e "/proc/$1" ] ||
	grep -q "^State:.*Z" "/proc/$1/status"' - "$child"
tell cancelled 'sleep 1000 & echo $! >"$S/$NAME.child"'
is 'the cancelled shell goes on' [ "$said" -eq 0 ]
is 'the history has the cancel of the shell'"'"'s lease' like 'cancel *' \
	"$(told "$(id_of cancelled)")"
watchdogs() {
	for each in $(strays); do
		cat "/proc/$each/comm" 2>/dev/null
	done | grep -c gpulease-limit
}
is 'the watchdog of the cancelled shell ends at the limit' wait_until '[ "$(watchdogs)" -eq 0 ]'
is 'a child started after the cancel survives the limit' kill -0 "$(cat "$S/cancelled.child")"
kill "$(cat "$S/cancelled.child")"
leave cancelled

# At the time limit the children of the shell end, and the shell goes on.
begin_shell limited 'eval "$("$GPULEASE" -n 2 --time 2s --grace 1s --shell)"
	sleep 1000 & echo $! >"$S/$NAME.child"
	(trap "" TERM; while :; do sleep 1000; done) & echo $! >"$S/$NAME.deaf"'
child=$(cat "$S/limited.child") deaf=$(cat "$S/limited.deaf")
started="$started $child $deaf"
begin next -n 2
is 'at the time limit of the shell the next job starts' wait_until 'runs next'
for each in "$child" "$deaf"; do
	is 'the time limit ends the children of the shell' sh -c '! [ -e "/proc/$1" ] ||
		grep -q "^State:.*Z" "/proc/$1/status"' - "$each"
done
tell limited 'true'
is 'the shell goes on after its time limit' [ "$said" -eq 0 ]
is 'the history has the time limit of the shell' like 'limit *' "$(told "$(id_of limited)")"
tell limited 'unset CUDA_VISIBLE_DEVICES; "$GPULEASE" -n 1 -I true 2>/dev/null'
is 'after its time limit the shell has no lease' [ "$said" -eq 124 ]
release_all next
tell limited 'unset CUDA_VISIBLE_DEVICES; eval "$("$GPULEASE" -n 1 --shell)"; echo $GPULEASE_ID >"$S/again"'
is 'the shell can take another lease' [ "$(cat "$S/again")" -gt "$(id_of limited)" ]
leave limited
is 'the second lease ends with the shell' wait_until is_free

# A shell that takes one lease after the other keeps no watchdog of those that were cancelled.
begin_shell again "$usual"
is 'a shell without a time limit has a watchdog' [ "$(watchdogs)" -eq 1 ]
try "$GPULEASE" --cancel "$(id_of again)"
is 'the watchdog of the cancelled shell ends, although the shell lives' \
	wait_until '[ "$(watchdogs)" -eq 0 ]'
tell again 'true'
is 'that shell goes on' [ "$said" -eq 0 ]
leave again

# --- a shell in another pid namespace -----------------------------------------------------

# Who cannot see the shell goes by the FIFO of its watchdog.
apart='unshare -m -p -f --kill-child --mount-proc'
# watchdog_in NAME: the watchdog in the pid namespace of the shell NAME
watchdog_in() {
	watchdog_ns=$(readlink "/proc/$(inner_of "$1")/ns/pid")
	for each in $(strays); do
		[ "$(cat "/proc/$each/comm" 2>/dev/null)" != gpulease-limit ] ||
			[ "$(readlink "/proc/$each/ns/pid")" != "$watchdog_ns" ] || echo "$each"
	done
}
# inner_of NAME: the shell NAME below the unshare that started it
inner_of() {
	grep -ls "^PPid:[[:space:]]*$(pid_of "$1")\$" /proc/[0-9]*/status | tr -dc '0-9\n'
}
# sees_all: whether this process sees all processes, so that it need not wait for idle GPUs
sees_all() {
	[ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ]
}
if [ "$(id -u)" -eq 0 ] && $apart true 2>/dev/null; then
	echo 'linger-time = 1s' >"$S/lingers"
	soon="$GPULEASE --config $S/lingers"
	elsewhere="$apart $GPULEASE"
	shell="$apart sh"

	begin_shell far "$usual"
	run 'a shell in another pid namespace has its GPU' 124 '' "$not_now *" "$GPULEASE" -n 2 -I true
	run 'that is seen from a third namespace' 124 '' "$not_now *" $elsewhere -n 2 -I true
	run 'it cannot be cancelled from a namespace that does not see it' 1 '' \
		'gpulease: job * belongs to a process in another pid namespace; cancel it there, or *--force' \
		$elsewhere --cancel "$(id_of far)"
	begin next -n 2
	wait_until '[ -s "$S/next.err" ]'
	kill -KILL "$(pid_of far)"
	is 'when the namespace has ended, the next job gets the GPU' wait_until 'runs next'
	release_all next

	begin_shell far "$usual"
	kill -KILL "$(pid_of far)"
	ended far
	run 'that the namespace has ended is seen from a third one, once the GPU has been idle' 0 \
		'' '*' $apart $soon -n 2 --max-wait 30s true

	# the namespace of this shell does not end with it
	printf '#!/bin/sh\nexec %s sh -c '"'"'sh "$@"; exec sleep 1000'"'"' - "$@"\n' "$apart" \
		>"$S/stays"
	chmod +x "$S/stays"
	shell=$S/stays
	begin_shell far "$usual"
	echo 'exit 0' 1<>"$S/far.hold"
	run 'a shell that has ended is seen from a third namespace at once' 0 '' '*' $elsewhere \
		-n 2 --max-wait 20s true
	kill -KILL "$(pid_of far)"
	shell="$apart sh"

	# The watchdog alone is killed: the shell keeps its GPU where it can be seen.
	begin_shell far "$usual"
	kill -KILL "$(watchdog_in far)"
	wait_until '[ -z "$(watchdog_in far)" ]'
	run 'the watchdog alone was killed: the GPU of the shell is not given away' 124 '' \
		"$not_now *" "$GPULEASE" -n 2 -I true
	run 'nor in its own namespace' 124 '' "$not_now *" nsenter -t "$(inner_of far)" -p -m -- \
		"$GPULEASE" -n 2 -I true
	run 'nor at once in a third namespace' 124 '' "$not_now *" $elsewhere -n 2 -I true
	try $elsewhere --doctor
	is '--doctor tells of a lease of which it cannot be seen whether it is over' like \
		"*warn  leases: job $(id_of far) belongs to a process of another pid namespace*--cancel $(id_of far) --force*" \
		"$out"
	run 'without --force it is not cancelled, and no message names a place that may be gone' 1 '' \
		'gpulease: job * of another pid namespace, which may have ended; *--force' \
		$elsewhere --cancel "$(id_of far)"
	run '--cancel --force gives its GPU back' 0 '' '' $elsewhere --cancel "$(id_of far)" --force
	is 'the GPU of the shell that was cancelled by force is free' is_free
	tell far true
	is 'the shell goes on' [ "$said" -eq 0 ]
	leave far

	# From outside all processes of a namespace can be seen.
	if sees_all; then
		begin_shell far "$usual"'
			sleep 1000 >/dev/null 2>&1 &'
		run 'a shell in a container is cancelled from outside' 0 '' '' "$GPULEASE" --cancel \
			"$(id_of far)"
		tell far 'kill -0 $! 2>/dev/null'
		is 'that ends what the shell has started' [ "$said" -ne 0 ]
		is 'the GPU is free' is_free
		leave far
		holder far -n 1
		release_all far
		GPULEASE_BEFORE=$GPULEASE
		printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$apart" "$GPULEASE" >"$S/apart"
		chmod +x "$S/apart"
		GPULEASE=$S/apart
		begin far -n 2
		GPULEASE=$GPULEASE_BEFORE
		wait_until 'runs far'
		run 'a job in a container is cancelled from outside' 0 '' '' "$GPULEASE" --cancel \
			"$(id_of far)"
		is 'its GPUs are free' is_free
	else
		skip 'cancelling from outside' 'needs the first pid namespace'
	fi
	shell='sh'
else
	skip 'a shell in another pid namespace' 'needs root'
fi

# the notebook of the manual: the kernel of the notebook takes the place of the shell
if command -v python3 >/dev/null; then
	mkfifo "$S/kernel.hold"
	python3 -c 'if True:
		import os, shlex, subprocess, sys
		lease = subprocess.check_output(
		    [sys.argv[1], "-n", "1", "--shell"], text=True)
		for word in shlex.split(lease):
		    name, is_set, value = word.rstrip(";").partition("=")
		    if is_set:
		        os.environ[name] = value
		print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["GPULEASE_ID"], flush=True)
		open(sys.argv[2]).read()' "$GPULEASE" "$S/kernel.hold" >"$S/kernel.out" &
	kernel=$!
	started="$started $kernel"
	wait_until '[ -s "$S/kernel.out" ]'
	is 'a notebook has a lease' like '0 [0-9]*' "$(cat "$S/kernel.out")"
	is 'the lease of the notebook belongs to the notebook' [ -n "$(lease_of "$kernel")" ]
	: >"$S/kernel.hold"
	is 'the lease of the notebook ends with the notebook' wait_until is_free
else
	skip 'a notebook' 'needs python3'
fi

# --- for a process ------------------------------------------------------------------------

with_driver

# machine: a healthy machine with two idle GPUs
machine() {
	fresh
	rm -f "$S"/*.runs
	touch "$FAKE_SMI_DIR/reap"
}

# stranger [COMMAND…]: starts a process outside gpulease; $stranger is its pid
stranger() {
	"$@" sleep 1000 &
	stranger=$!
	started="$started $stranger"
	becomes "$stranger" sleep
}

# used LINE…: nvidia-smi lists these processes from now on; a LINE is INDEX PID MIB
used() {
	printf '%s\n' "$@" >"$FAKE_SMI_DIR/procs"
}

adopt='--lease-only --pid'
machine
stranger
run 'a process that uses no GPU cannot be adopted' 125 '' "*process $stranger uses no GPU*" \
	"$GPULEASE" $adopt "$stranger"
used "0 $stranger 5000"
run 'a process that uses a GPU is adopted' 0 '[0-9]' \
	"gpulease: job [0-9] is process $stranger, which has GPU 0" "$GPULEASE" $adopt "$stranger"
id=$out
is 'the lease of the process is marked as adopted' sh -c 'echo "$1" | grep -qx adopted=2' - \
	"$(lease_of "$stranger")"
run '--status shows the adopted process as a job' 0 "*0  Card 0*leased*$id*$stranger*sleep*" \
	'' "$GPULEASE" --status
run 'a process cannot be adopted twice' 125 '' "*GPU 0 is leased by job $id of *" \
	"$GPULEASE" $adopt "$stranger"
run 'other jobs wait for the GPU of the adopted process' 124 '' \
	"$not_now needs 2 GPUs, 1 is free" "$GPULEASE" -n 2 -I true
run 'a job gets the GPU that the process does not use' 0 1 '' "$GPULEASE" -I \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
waiter next -n 2
kill "$stranger"
is 'when the adopted process ends, the next job starts' wait_until 'runs next'
release_all next

machine
sh -c 'sleep 1000 & echo $! >"$1"; sleep 1000 & wait' - "$S/child" &
parent=$!
started="$started $parent"
wait_until "[ -s '$S/child' ]"
child=$(cat "$S/child")
started="$started $child"
used "0 $child 5000" "1 $child 300"
run 'a process that uses more GPUs than -n has is refused' 125 '' \
	"*process $parent uses 2 GPUs, not 1" \
	"$GPULEASE" -n 1 $adopt "$parent"
run 'GPUs of children count as those of the parent' 0 '*' '*which has GPU 0,1' "$GPULEASE" -n 2 $adopt "$parent"
is 'the lease belongs to the parent' [ -n "$(lease_of "$parent")" ]
kill "$child" "$parent"

machine
holder first
is 'this test: it is on GPU 0' [ "$(gpus_of first)" = 0 ]
stranger
used "0 $stranger 5000" "1 $stranger 5000"
run 'a process on a leased GPU is not adopted' 125 '' \
	"*GPU 0 is leased by job $(id_of first) of *" "$GPULEASE" $adopt "$stranger"
is 'the refused process has no lease' [ -z "$(lease_of "$stranger")" ]
run 'no share of a leased GPU is adopted' 125 '' '*GPU 0 is leased *' "$GPULEASE" -n 0.5 \
	$adopt "$stranger"
release_all first
run 'the process is adopted once the lease is over' 0 '*' '*which has GPU 0,1' "$GPULEASE" $adopt "$stranger"

machine
"$GPULEASE" --gpu-ids 0 -n 1 -- sh -c '"$1" sleep 1000 >/dev/null 2>&1 & echo $! >"$2"' - \
	"$TOOLS/closing" "$S/left"
started="$started $(cat "$S/left")"
becomes "$(cat "$S/left")" sleep
stranger
used "0 $stranger 5000"
run 'a process is not adopted while the job before it has one left' 125 '' \
	"*GPU 0 is leased by job [0-9]* of *" "$GPULEASE" $adopt "$stranger"
kill "$(cat "$S/left")"
run 'the process is adopted once the process left has ended' 0 '*' '*which has GPU 0' "$GPULEASE" $adopt "$stranger"
kill "$stranger"

machine
holder half -n 0.5
stranger
used "0 $stranger 5000"
run 'beside a share no whole GPU is adopted' 125 '' '*and there is no room for another' \
	"$GPULEASE" $adopt "$stranger"
run 'beside a share no share that is too large is adopted' 125 '' \
	'*and there is no room for another' \
	"$GPULEASE" -n 0.6 $adopt "$stranger"
run 'beside a share a share that fits is adopted' 0 '*' '*which has GPU 0' "$GPULEASE" -n 0.5 $adopt "$stranger"
run 'the memory of the adopted process is no outside use' 124 '' "$not_now needs 0.5 of a GPU*" \
	"$GPULEASE" --gpu-ids 0 -n 0.5 -I true
release_all half
run 'the other half of the GPU can be leased' 0 0 '' "$GPULEASE" --gpu-ids 0 -n 0.5 \
	--max-wait 30s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
kill "$stranger"

machine
holder big --vram 60G
stranger
used "0 $stranger 15000"
run 'the memory of an adopted process does not count twice' 0 '*' '*which has GPU 0' "$GPULEASE" --vram 15G \
	$adopt "$stranger"
kill "$stranger"
release_all big

machine
stranger
used "0 $stranger 5000"
run 'a process is adopted with a time limit' 0 '*' '*which has GPU 0' "$GPULEASE" --time 1s $adopt "$stranger"
id=$out
is 'the time limit ends the adopted process' wait_until "! kill -0 $stranger 2>/dev/null"
# with the status, if the kernel reports it
is 'the history has the time limit of the process' wait_until \
	'[ "$(told "$id")" = "limit 143" ] || [ "$(told "$id")" = "limit " ]'

machine
stranger
used "0 $stranger 5000"
printf 'all-gpus = 1\n' >"$S/conf"
holder other -n 1 # on GPU 1
run 'a limit of the configuration holds for an adopted process' 125 '' \
	'*limit of the configuration*all-gpus*' \
	"$GPULEASE" --config "$S/conf" $adopt "$stranger"
release_all other

machine
run 'a pid without a process is refused' 125 '' 'gpulease: there is no process 2147483647' \
	"$GPULEASE" $adopt 2147483647
run 'a pid that is no number is refused' 125 '' '*' "$GPULEASE" $adopt none
run '--pid with a choice of GPUs is refused' 125 '' '*leave out options that choose GPUs or wait for jobs' \
	"$GPULEASE" --gpu-ids 0 $adopt $$
run '--pid without nvidia-smi is refused' 125 '' '*' env PATH=/usr/bin:/bin "$GPULEASE" $adopt $$
stranger
used "0 $stranger 5000"
run '--pid that cannot print the id says that the lease stands' 125 '' '*the process has its lease*' \
	sh -c '"$1" --lease-only --pid "$2" >/dev/full' - "$GPULEASE" "$stranger"
is 'the lease stands although the id was not printed' [ -n "$(lease_of "$stranger")" ]
kill "$stranger"

# --- seen from elsewhere ------------------------------------------------------------------

if [ "$(id -u)" -eq 0 ] && unshare -p -f --mount-proc true 2>/dev/null; then
	machine
	stranger
	used "0 $stranger 10" # as good as idle
	run 'a process is adopted' 0 '*' '*' "$GPULEASE" $adopt "$stranger"
	elsewhere='unshare -m -p -f --kill-child --mount-proc'
	run 'an adopted process is alive for another pid namespace' 124 '' \
		"$not_now needs 2 GPUs, 1 is free" \
		$elsewhere "$GPULEASE" -n 2 -I true
	kill "$stranger"
	run 'when the adopted process has ended, its GPU is free' 0 '*' '*' "$GPULEASE" -n 2 \
		--max-wait 30s true
	run 'the GPU is free in another pid namespace, too' 0 '*' '*' $elsewhere "$GPULEASE" \
		-n 2 --max-wait 30s true
	machine
	echo 'linger-time = 1s' >"$S/conf"
	S=$S $apart sh -c 'sleep 1000 & echo "0 $! 10" >"$FAKE_SMI_DIR/procs"
		"$GPULEASE" --lease-only --pid $! >"$S/far.id" 2>"$S/far.err"
		wait' &
	far=$!
	started="$started $far"
	wait_until '[ -s "$S/far.id" ]' || bail "no adoption: $(cat "$S/far.err")"
	: >"$FAKE_SMI_DIR/procs"
	run 'a process that was adopted in another pid namespace has its GPU' 124 '' \
		"$not_now needs 2 GPUs, 1 is free*" "$GPULEASE" -n 2 -I true
	kill -KILL "$far"
	run 'when that namespace has ended, its GPU is free' 0 '' '*' "$GPULEASE" --config \
		"$S/conf" -n 2 --max-wait 30s true
	unshare -p -f --kill-child sleep 1000 2>/dev/null &
	started="$started $!"
	inside=''
	wait_until 'inside=$(grep -ls "^PPid:[[:space:]]*$!\$" /proc/[0-9]*/status |
		tr -dc "0-9\n") && [ -n "$inside" ]'
	run 'a process of another pid namespace is refused' 125 '' \
		"*$inside is in another pid namespace*" \
		"$GPULEASE" $adopt "$inside"
	kill -KILL "$inside"
else
	skip 'other pid namespaces' 'needs root'
fi
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	machine
	chmod 0711 "$S"
	stranger setpriv --reuid=65534 --regid=65534 --clear-groups
	used "0 $stranger 5000"
	run 'root may adopt a process of any user' 0 '*' '*' "$GPULEASE" $adopt "$stranger"
	is 'the adopted lease belongs to the owner of the process' \
		sh -c 'echo "$1" | grep -qx uid=65534' - "$(lease_of "$stranger")"
	stranger
	mkdir -m 0755 "$S/pub"
	mkdir -m 0777 "$S/none"
	install -m 0755 "$GPULEASE" "$S/pub/gpulease"
	run 'a user may not adopt a process of another user' 125 '' \
		'gpulease: process * belongs to root*' \
		setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_STATE_HOME="$S/none" \
		GPULEASE_DIR= "$S/pub/gpulease" --sim 2 $adopt "$stranger"
else
	skip 'processes of others' 'needs root'
fi
finish

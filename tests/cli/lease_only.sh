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
# printed its GPUs, and then said so
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

# job_of NAME: what it calls itself
job_of() {
	sed -n 's/^gpulease: job \([0-9]*\) has .*/\1/p' "$S/$1.err"
}

# told ID: how the history says that the job has ended, "HOW STATUS"
told() {
	tr '\0' '\n' <"$(state_dir)/history" | grep -a "^[^ ]* ticket=$1 " | tail -n 1 |
		awk '{ for (i = 1; i <= NF; i++) if (split($i, of, "=") == 2) is[of[1]] = of[2] }
			END { print is["how"] ? is["how"] : "-", is["status"] }'
}

# lease_of PID: the fields of its lease as they stand in the files, one a line
lease_of() {
	cat "$(state_dir)"/gpu/*.lease | tr '\0' '\n' | grep -a "^lease/1 .* pid=$1 " |
		sort -u | tr ' ' '\n'
}

# is_free: whether both GPUs are
is_free() {
	"$GPULEASE" -n 2 -I true 2>/dev/null
}

# --- held by gpulease ---------------------------------------------------------------------

keep kept -n 2
is 'stdout is the GPUs' [ "$(cat "$S/kept.out")" = 0,1 ]
is 'stderr says so, and the job' like 'gpulease: job 1 has GPU 0,1; Ctrl-C gives it back' \
	"$(cat "$S/kept.err")"
run 'they are leased' 124 '' "$not_now *" "$GPULEASE" -I true
run 'it waits its turn as any job' 124 '' '*gpulease: gave up *' \
	"$GPULEASE" --lease-only --max-wait 1s
waiter next -n 2
# what is not to happen is counted while something else does
switches() {
	awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$(pid_of kept)/status"
}
wait_until '[ "$(process_state "$(pid_of kept)")" = S ]'
before=$(switches)
"$GPULEASE" --status >"$S/status"
is 'who only holds is not woken by others' [ "$(switches)" = "$before" ]
kill -INT "$(pid_of kept)"
ended kept
is 'INT is its normal end' [ "$rc" -eq 0 ]
is 'and the next one starts' wait_until 'runs next'
release_all next
is 'the history knows it exactly' [ "$(told 1)" = '- 0' ]

for signal in HUP TERM; do
	keep kept
	kill -s $signal "$(pid_of kept)"
	ended kept
	is "$signal, too" [ "$rc" -eq 0 ]
	is "$signal: its GPU is free" is_free
done

trap '' HUP
keep deaf
trap 'exit 129' HUP
kill -HUP "$(pid_of deaf)"
run 'who was started by nohup stays' 124 '' '*' "$GPULEASE" -n 2 -I true
kill -TERM "$(pid_of deaf)"
ended deaf
is 'until TERM' [ "$rc" -eq 0 ]

keep short --time 1s
ended short
is 'at its time limit the status is 124' [ "$rc" -eq 124 ]
is 'it says so' grep -q 'has reached its time limit' "$S/short.err"
is 'the history, too' [ "$(told "$(job_of short)")" = 'limit 124' ]

keep kept -n 2
run 'it can be cancelled' 0 '' '' "$GPULEASE" --cancel "$(job_of kept)"
ended kept
is 'its status is that of TERM' [ "$rc" -eq 143 ]
is 'it says by whom' grep -q 'was cancelled by' "$S/kept.err"
is 'and so does the history' [ "$(told "$(job_of kept)")" = 'cancel 143' ]

keep kept -n 2
kill -KILL "$(pid_of kept)"
ended kept
is 'killed, it holds nothing' wait_until is_free

run 'it takes no command' 125 '' '*--lease-only takes no command, not *true*' \
	"$GPULEASE" --lease-only true
run 'nor -n 0' 125 '' '*no GPU to hold*' "$GPULEASE" --lease-only -n 0
run 'nor a file for output' 125 '' '*no command to be redirected*' \
	"$GPULEASE" --lease-only -o "$S/file"
run 'inside a lease there is none' 125 '' '*step of a lease*' \
	"$GPULEASE" "$GPULEASE" --lease-only
run 'who cannot print the GPUs holds none' 125 '' '*cannot hold the lease*' \
	sh -c '"$1" --lease-only >/dev/full' - "$GPULEASE"
is 'and the GPU is free' is_free

# --- for a shell --------------------------------------------------------------------------

# shell NAME CODE: a shell that runs CODE, notes its pid, its job and its GPUs, and then obeys
# what `tell NAME CODE` sends it; ${shell:-sh} is which
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

# tell NAME CODE: $said is the status
tell() {
	rm -f "$S/$1.said"
	echo "$2" 1<>"$S/$1.hold"
	wait_until "[ -s '$S/$1.said' ]" || bail "shell $1 does not answer: $2"
	said=$(cat "$S/$1.said")
}

# leave NAME: it ends
leave() {
	echo 'exit 0' 1<>"$S/$1.hold"
	ended "$1"
}

usual='eval "$("$GPULEASE" -n 1 --shell)"'
for each in sh dash bash zsh ksh mksh yash 'busybox ash'; do
	command -v "${each%% *}" >/dev/null || continue
	shell=$each
	begin_shell mine "$usual"
	is "$each: it has a GPU" [ "$(gpus_of mine)" = 0 ]
	is "$each: whose lease is its own" sh -c 'echo "$1" | grep -qx shell=1' - \
		"$(lease_of "$(pid_of mine)")"
	tell mine '"$GPULEASE" --lease-only -n 2 -I'
	is "$each: a second one is refused" [ "$said" -eq 125 ]
	leave mine
	is "$each: it ends with the shell" wait_until is_free
	for code in 'eval "$("$GPULEASE" -n 1 --shell || echo false)"' \
		'trap : USR1; eval "$("$GPULEASE" -n 1 --shell; exit $?)"' \
		'lines=$("$GPULEASE" -n 1 --shell) && eval "$lines"' \
		'"$GPULEASE" -n 1 --shell >"$S/lines"; . "$S/lines"' \
		'eval "$("$GPULEASE" --shell --pid $$ | cat)"' \
		'eval "$( (env "$GPULEASE" --shell; true) )"'; do
		begin_shell mine "$code"
		is "$each: $code" sh -c 'echo "$1" | grep -qx shell=1' - \
			"$(lease_of "$(pid_of mine)")"
		leave mine
	done
done
shell='sh'

begin_shell mine "$usual"
run 'others have to wait' 124 '' "$not_now *" "$GPULEASE" -n 2 -I true
tell mine '"$GPULEASE" sh -c "echo \$CUDA_VISIBLE_DEVICES \$GPULEASE_ID" >"$S/step"'
is 'gpulease in it is a step' [ "$(cat "$S/step")" = "0 $(id_of mine)" ]
tell mine 'env >"$S/shell.env"; env -i grep "Max file locks" /proc/self/limits >"$S/tag"'
is 'what it starts carries the tag' sh -c 'grep -q . "$1" &&
	! grep -q "unlimited  *unlimited" "$1"' - "$S/tag"
"$GPULEASE" -n 1 env >"$S/command.env"
for each in shell command; do
	grep '^\(CUDA\|NVIDIA\|GPULEASE\)' "$S/$each.env" | grep -v '^GPULEASE=' |
		cut -d = -f 1 | sort >"$S/$each.names"
done
is 'it has the variables of a command' cmp "$S/shell.names" "$S/command.names"
waiter next -n 2
kill -KILL "$(pid_of mine)"
is 'killed, it gives its GPU to the next' wait_until 'runs next'
release_all next

odd="$S/it's a \$(dir)"
mkdir -m 0700 "$odd"
unset GPULEASE_SIM
export FAKE_SMI_DIR="$S/smi"
gpus 2
ODD=$odd PATH=$CLI/../bin:$PATH begin_shell odd 'eval "$("$GPULEASE" --dir "$ODD" --shell)"
	GPULEASE_ID=$GPULEASE_DIR'
is 'what a name holds is quoted' [ "$(cut -d ' ' -f 2- "$S/odd.runs")" = "$odd 0" ]
leave odd
sim 2

run 'into a terminal nothing is printed' 125 '*eval "$(gpulease -n 1 --shell)"*' '' \
	sh -c '"$1/onterminal" 80 "$2" --shell 2>&1' - "$TOOLS" "$GPULEASE"
# the shell has the end for reading, too, until it has begun both
run 'who reads it has to be one of its callers' 0 '(exit 125);
125' '*gpulease --shell --pid $$*' \
	sh -c '{
		exec 3>&1
		pipe=$(readlink /proc/self/fd/3)
		while ls -l /proc/$$/fd | grep -qF "$pipe"; do :; done
		"$1" --shell
		echo $?
	} | cat' - "$GPULEASE"
run 'who cannot be told gets no lease' 125 '' '*lease is given back*' \
	sh -c '"$1" --shell >/dev/full' - "$GPULEASE"
is 'and the GPU is free' is_free
keep kept -n 2
run 'who gives up makes eval fail' 7 '' '*gave up*' \
	sh -c 'eval "$("$GPULEASE" --max-wait 1s --shell)" || exit $(($? - 117))' -
run 'and a script that ends with what fails' 124 '' '*not available at once*' \
	sh -ec 'eval "$("$GPULEASE" -I --shell)"; echo goes on'
kill -TERM "$(pid_of kept)"
ended kept
run 'no other shell' 125 '(exit 125);' 'gpulease: there is no process 2147483647' \
	"$GPULEASE" --shell --pid 2147483647

# cancelled, it goes on without the GPU; its time limit is nothing to what it starts then
for limit in 3s 20s; do
	begin_shell cancelled 'eval "$("$GPULEASE" -n 2 --time '$limit' --shell)"
		sleep 1000 & echo $! >"$S/$NAME.child"'
	child=$(cat "$S/cancelled.child")
	started="$started $child"
	try "$GPULEASE" --cancel "$(id_of cancelled)"
	like '*has finished' "$err" || break # this machine needs a longer limit
	leave cancelled
done
is 'it can be cancelled' [ "$rc:$out$err" = 0: ]
is 'the GPUs are free' is_free
is 'what it had started was ended' sh -c '! [ -e "/proc/$1" ] ||
	grep -q "^State:.*Z" "/proc/$1/status"' - "$child"
tell cancelled 'sleep 1000 & echo $! >"$S/$NAME.child"'
is 'the shell lives' [ "$said" -eq 0 ]
is 'the history says so' like 'cancel *' "$(told "$(id_of cancelled)")"
watchdogs() {
	for each in $(strays); do
		cat "/proc/$each/comm" 2>/dev/null
	done | grep -c gpulease-limit
}
is 'its watchdog goes at the limit' wait_until '[ "$(watchdogs)" -eq 0 ]'
is 'and leaves alone what it has started since' kill -0 "$(cat "$S/cancelled.child")"
kill "$(cat "$S/cancelled.child")"
leave cancelled

# at the limit what it has started ends, and it itself stays
begin_shell limited 'eval "$("$GPULEASE" -n 2 --time 2s --grace 1s --shell)"
	sleep 1000 & echo $! >"$S/$NAME.child"
	(trap "" TERM; while :; do sleep 1000; done) & echo $! >"$S/$NAME.deaf"'
child=$(cat "$S/limited.child") deaf=$(cat "$S/limited.deaf")
started="$started $child $deaf"
begin next -n 2
is 'at its time limit the next one starts' wait_until 'runs next'
for each in "$child" "$deaf"; do
	is 'what it has started was ended' sh -c '! [ -e "/proc/$1" ] ||
		grep -q "^State:.*Z" "/proc/$1/status"' - "$each"
done
tell limited 'true'
is 'the shell lives' [ "$said" -eq 0 ]
is 'the history says why' like 'limit *' "$(told "$(id_of limited)")"
tell limited 'unset CUDA_VISIBLE_DEVICES; "$GPULEASE" -n 1 -I true 2>/dev/null'
is 'it has to ask as everybody' [ "$said" -eq 124 ]
release_all next
tell limited 'unset CUDA_VISIBLE_DEVICES; eval "$("$GPULEASE" -n 1 --shell)"; echo $GPULEASE_ID >"$S/again"'
is 'and may have another lease' [ "$(cat "$S/again")" -gt "$(id_of limited)" ]
leave limited
is 'which ends with it' wait_until is_free

# the notebook of the manual: the kernel takes the part of the shell
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
	is 'of its own' [ -n "$(lease_of "$kernel")" ]
	: >"$S/kernel.hold"
	is 'which ends with it' wait_until is_free
else
	skip 'a notebook' 'needs python3'
fi

# --- for a process ------------------------------------------------------------------------

with_driver

# machine: a healthy one with two GPUs, and nobody on it
machine() {
	fresh
	rm -f "$S"/*.runs
	touch "$FAKE_SMI_DIR/reap"
}

# stranger [COMMAND…]: starts a process that nobody knows; $stranger is its pid
stranger() {
	"$@" sleep 1000 &
	stranger=$!
	started="$started $stranger"
	becomes "$stranger" sleep
}

# used LINE…: nvidia-smi lists these processes, INDEX PID MIB
used() {
	printf '%s\n' "$@" >"$FAKE_SMI_DIR/procs"
}

adopt='--lease-only --pid'
machine
stranger
run 'who uses no GPU' 125 '' "*process $stranger uses no GPU*" "$GPULEASE" $adopt "$stranger"
used "0 $stranger 5000"
run 'who uses one has it as a lease' 0 '[0-9]' \
	"gpulease: job [0-9] is process $stranger, it has GPU 0" "$GPULEASE" $adopt "$stranger"
id=$out
is 'it is recorded as such' sh -c 'echo "$1" | grep -qx adopted=1' - "$(lease_of "$stranger")"
run 'as a job' 0 "*0  Card 0*leased*$id*$stranger*sleep*" '' "$GPULEASE" --status
run 'a second time it is not' 125 '' "*GPU 0 is leased by job $id of *" \
	"$GPULEASE" $adopt "$stranger"
run 'others have to wait' 124 '' "$not_now needs 2 GPUs, 1 is free" "$GPULEASE" -n 2 -I true
run 'or use the rest' 0 1 '' "$GPULEASE" -I sh -c 'echo $CUDA_VISIBLE_DEVICES'
waiter next -n 2
kill "$stranger"
is 'its end is the end of the lease' wait_until 'runs next'
release_all next

machine
sh -c 'sleep 1000 & echo $! >"$1"; sleep 1000 & wait' - "$S/child" &
parent=$!
started="$started $parent"
wait_until "[ -s '$S/child' ]"
child=$(cat "$S/child")
started="$started $child"
used "0 $child 5000" "1 $child 300"
run 'one more than asked for' 125 '' "*process $parent uses 2 GPUs, not 1" \
	"$GPULEASE" -n 1 $adopt "$parent"
run 'children count as their parent' 0 '*' '*it has GPU 0,1' "$GPULEASE" -n 2 $adopt "$parent"
is 'whose lease it is' [ -n "$(lease_of "$parent")" ]
kill "$child" "$parent"

machine
holder first
is 'this test: it is on GPU 0' [ "$(gpus_of first)" = 0 ]
stranger
used "0 $stranger 5000" "1 $stranger 5000"
run 'a GPU that is leased is nobody else'"'"'s' 125 '' \
	"*GPU 0 is leased by job $(id_of first) of *" "$GPULEASE" $adopt "$stranger"
is 'then there is no lease at all' [ -z "$(lease_of "$stranger")" ]
run 'neither a part of it' 125 '' '*GPU 0 is leased *' "$GPULEASE" -n 0.5 $adopt "$stranger"
release_all first
run 'it is once the lease is over' 0 '*' '*it has GPU 0,1' "$GPULEASE" $adopt "$stranger"

machine
holder half -n 0.5
stranger
used "0 $stranger 5000"
run 'beside a share a whole GPU is not to be had' 125 '' '*and there is no room for another' \
	"$GPULEASE" $adopt "$stranger"
run 'nor a share that is too large' 125 '' '*and there is no room for another' \
	"$GPULEASE" -n 0.6 $adopt "$stranger"
run 'one that fits is' 0 '*' '*it has GPU 0' "$GPULEASE" -n 0.5 $adopt "$stranger"
run 'and its memory is no stranger'"'"'s' 124 '' "$not_now needs 0.5 of a GPU*" \
	"$GPULEASE" --gpu-ids 0 -n 0.5 -I true
release_all half
run 'so the other half can be had' 0 0 '' "$GPULEASE" --gpu-ids 0 -n 0.5 --max-wait 30s \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
kill "$stranger"

machine
holder big --vram 60G
stranger
used "0 $stranger 15000"
run 'its memory does not count twice' 0 '*' '*it has GPU 0' "$GPULEASE" --vram 15G \
	$adopt "$stranger"
kill "$stranger"
release_all big

machine
stranger
used "0 $stranger 5000"
run 'with a limit' 0 '*' '*it has GPU 0' "$GPULEASE" --time 1s $adopt "$stranger"
id=$out
is 'it is ended' wait_until "! kill -0 $stranger 2>/dev/null"
# with its status, where the kernel tells it
is 'as the history says' wait_until \
	'[ "$(told "$id")" = "limit 143" ] || [ "$(told "$id")" = "limit " ]'

machine
stranger
used "0 $stranger 5000"
printf 'all-gpus = 1\n' >"$S/conf"
holder other -n 1 # on GPU 1
run 'a limit of the configuration binds it' 125 '' '*limit of the configuration*all-gpus*' \
	"$GPULEASE" --config "$S/conf" $adopt "$stranger"
release_all other

machine
run 'a process that is not there' 125 '' 'gpulease: there is no process 2147483647' \
	"$GPULEASE" $adopt 2147483647
run 'a process that is no number' 125 '' '*' "$GPULEASE" $adopt none
run 'together with a choice of GPUs' 125 '' '*leave options that choose or wait out' \
	"$GPULEASE" --gpu-ids 0 $adopt $$
run 'without nvidia-smi' 125 '' '*' env PATH=/usr/bin:/bin "$GPULEASE" $adopt $$
stranger
used "0 $stranger 5000"
run 'who cannot print the id says so' 125 '' '*the lease stands*' \
	sh -c '"$1" --lease-only --pid "$2" >/dev/full' - "$GPULEASE" "$stranger"
is 'and it does' [ -n "$(lease_of "$stranger")" ]
kill "$stranger"

# --- seen from elsewhere ------------------------------------------------------------------

if [ "$(id -u)" -eq 0 ] && unshare -p -f --mount-proc true 2>/dev/null; then
	machine
	stranger
	used "0 $stranger 10" # as good as idle
	run 'a process is adopted' 0 '*' '*' "$GPULEASE" $adopt "$stranger"
	elsewhere='unshare -m -p -f --kill-child --mount-proc'
	run 'from another pid namespace it is alive' 124 '' "$not_now needs 2 GPUs, 1 is free" \
		$elsewhere "$GPULEASE" -n 2 -I true
	kill "$stranger"
	run 'once it has ended' 0 '*' '*' "$GPULEASE" -n 2 --max-wait 30s true
	run 'so everywhere' 0 '*' '*' $elsewhere "$GPULEASE" -n 2 --max-wait 30s true
	unshare -p -f --kill-child sleep 1000 2>/dev/null &
	started="$started $!"
	inside=''
	wait_until 'inside=$(grep -ls "^PPid:[[:space:]]*$!\$" /proc/[0-9]*/status |
		tr -dc "0-9\n") && [ -n "$inside" ]'
	run 'a process of another one is leased there' 125 '' "*$inside is in another pid namespace*" \
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
	run 'root may adopt a process of anybody' 0 '*' '*' "$GPULEASE" $adopt "$stranger"
	is 'whose lease it is then' sh -c 'echo "$1" | grep -qx uid=65534' - "$(lease_of "$stranger")"
	stranger
	mkdir -m 0755 "$S/pub"
	mkdir -m 0777 "$S/none"
	cp "$GPULEASE" "$S/pub/gpulease"
	run 'others may not' 125 '' 'gpulease: process * belongs to root*' \
		setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_STATE_HOME="$S/none" \
		GPULEASE_DIR= "$S/pub/gpulease" --sim 2 $adopt "$stranger"
else
	skip 'processes of others' 'needs root'
fi
finish

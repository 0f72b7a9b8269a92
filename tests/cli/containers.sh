#!/bin/sh
# One queue for the machine and its containers: other pid, mount and user namespaces, a /proc
# that hides processes, and what a container needs.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'containers, in namespaces' "$@"

driver 'gpus 2'
# the same program for the lab form and the private form, without a set-group-ID bit
cp "$M/bin/gpulease" "$M/plain"
chgrp 0 "$M/plain" && chmod 0755 "$M/plain"

# inner NAME: the process of NAME below the unshare or nsenter that started it
inner() {
	inner_of=$(pid_of "$1")
	grep -ls "^PPid:[[:space:]]*$inner_of\$" /proc/[0-9]*/status | tr -dc '0-9\n'
}

# wrapper NAME COMMAND…: makes a program $M/NAME that runs COMMAND, followed by its own arguments
wrapper() {
	wrapper_name=$M/$1
	shift
	printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$wrapper_name"
	chmod 0755 "$wrapper_name"
}

# with PROGRAM COMMAND…: runs a function of lib.sh with PROGRAM as its gpulease
with() {
	with_before=$GPULEASE
	GPULEASE=$1
	shift
	"$@"
	with_rc=$?
	GPULEASE=$with_before
	return $with_rc
}

# takes_turns TEXT ONE OTHER: a job started with OTHER waits for a job started with ONE, and
# starts when that job is killed
takes_turns() {
	with "$2" begin first -n 2
	wait_until 'runs first' || bail "$1: $(cat "$S/first.err")"
	with "$3" begin second -n 2
	wait_until "[ -s '$S/second.err' ]"
	is "$1: the second job waits" grep -q waits "$S/second.err"
	run "$1: --status shows the second job" 0 '*2*needs 2 GPUs*' '*' "$2" --status
	# shellcheck disable=SC2046 # there may be none
	kill -KILL $(inner first) "$(pid_of first)"
	is "$1: the second job gets its turn" wait_until 'runs second'
	release_all second
}

# --- what gpulease says in a container -----------------------------------------------------

# A root directory that has the programs of the machine and nothing else of it.
R=$M/root
mkdir -p "$R/etc" "$R/run" "$R/var/lib" "$R/tmp" "$R/home" "$R/bin.own"
for dir in usr proc dev bin sbin lib lib32 lib64 libx32; do
	if [ -L "/$dir" ]; then
		cp -P "/$dir" "$R/$dir"
	elif [ -d "/$dir" ]; then
		mkdir "$R/$dir"
		mount --rbind "/$dir" "$R/$dir" || bail 'cannot make a root directory'
	fi
done
[ ! -e /etc/ld.so.cache ] || cp /etc/ld.so.cache "$R/etc"
cp "$M/plain" "$R/bin.own/gpulease"
cp "$M/bin/gpulease-view" "$R/bin.own/gpulease-view"
cp "$M/bin/nvidia-smi" "$R/bin.own/nvidia-smi"
own=/var/lib/gpulease chroot=$(command -v chroot)

# told TEXT STDERR OPTION…: a result, good if gpulease prints STDERR inside that root directory
told() {
	told_text=$1 told_err=$2
	shift 2
	run "$told_text" 0 '' "$told_err" env -u XDG_STATE_HOME HOME=/home \
		PATH=/bin.own:/usr/bin:/bin "$chroot" "$R" /bin.own/gpulease "$@" -n 1 true
}

alone='gpulease: no shared directory*: only your own jobs are coordinated*'
blind="gpulease: no shared directory '$own' in this container*host's queue*own jobs*--docker-args*"
told 'a machine without a shared directory: a job says so' "$alone"
for mark in .dockerenv run/.containerenv; do
	: >"$R/$mark"
	told "/$mark: a container without a shared directory: a job says so" "$blind"
	try env -u XDG_STATE_HOME HOME=/home PATH=/bin.own:/usr/bin:/bin "$chroot" "$R" \
		/bin.own/gpulease --doctor
	is '--doctor says that the container does not see the host'"'"'s queue' like \
		"*in a container that does not see the host's queue*" "$out"
	rm "$R/$mark"
done
: >"$R/.dockerenv"
told_where() {
	told "$1: the message names the private directory" \
		"*jobs are coordinated, in '/home/.local/state/gpulease'*"
}
told_where 'in a container without a shared directory'
rm "$R/.dockerenv"
told_where 'on a machine without a shared directory'
echo 'root:x:0:0::/home:/bin/sh' >"$R/etc/passwd"
for each in '-u HOME' 'HOME=' 'HOME=home' 'HOME=.'; do
	# shellcheck disable=SC2086 # an option or a variable
	run "with $each the private directory is in the same home" 0 '' \
		"*jobs are coordinated, in '/home/.local/state/gpulease'*" env -u XDG_STATE_HOME \
		$each PATH=/bin.own:/usr/bin:/bin "$chroot" "$R" /bin.own/gpulease -n 1 true
done
: >"$R/.dockerenv"
told '-Q: the message is not printed' '' -Q
told '--sim: the message is not printed' '' --sim 1
mkdir -m 0700 "$R/home/named"
told '--dir: the message is not printed' '' --dir /home/named
: >"$R/etc/gpulease.conf"
chmod 0644 "$R/etc/gpulease.conf"
told 'the configuration alone, without the directory, is not enough' "$blind"
rm "$R/etc/gpulease.conf"
mkdir "$R$own"
chmod 2770 "$R$own"
told 'a state directory of the container itself is reported' \
	"gpulease: this container does not see the host's queue, '$own' is its own*--docker-args*"
rm "$R/.dockerenv"
told 'a state directory of a machine itself is not reported' ''
: >"$R/.dockerenv"
mkdir "$M/shared"
chmod 2770 "$M/shared"
mount --bind "$M/shared" "$R$own"
is 'this test: both directories are on one file system' [ \
	"$(stat -c %d "$R")" = "$(stat -c %d "$R$own")" ]
told 'the directory of the host without its configuration' \
	"gpulease: this container has the host's '$own' but not its /etc/gpulease.conf*"
: >"$R/etc/gpulease.conf"
chmod 0644 "$R/etc/gpulease.conf"
told 'a container with the directory and the configuration is silent' ''

# --- arguments for the engine --------------------------------------------------------------

# an engine that prints its arguments, one per line
printf '#!/bin/sh\nprintf "%%s\\n" "$@"\n' >"$M/bin/docker"
chmod 0755 "$M/bin/docker"
PATH=$M/bin:$PATH
odd="$S/open/it's a \"dir\""
mkdir -m 0700 "$odd"
line='args=$(gpulease --docker-args) && eval "docker run --rm $args image a\\ b"'
uuid=GPU-00000000-1111-2222-3333-444444444444
run '--docker-args in a lease: its GPUs, queue, configuration, program' 0 "run
--rm
--gpus
\"device=$uuid\"
--volume
$M/state:$M/state
--volume
/etc/gpulease.conf:/etc/gpulease.conf:ro
--volume
$M/bin/gpulease:/usr/local/bin/gpulease:ro
--volume
$M/bin/gpulease-view:/usr/local/lib/gpulease/gpulease-view:ro
--env
GPULEASE_ID=*
--env
GPULEASE_TOKEN=*
--env
GPULEASE_UUIDS=$uuid
image
a b" '' "$U1" -n 1 sh -c "$line"
is '--docker-args in a lease has no GPU numbers of the host' \
	sh -c '! grep -q VISIBLE_DEVICES "$1"' - "$S/out"
run '--docker-args quotes a directory of a strange name' 0 "*
--volume
$odd:$odd
*
GPULEASE_DIR=$odd" '' sh -c 'eval "docker $(GPULEASE_DIR=$1 "$2" --docker-args)"' - \
	"$odd" "$M/plain"
run '--docker-args outside a lease has all GPUs' 0 '--gpus all *' '' "$U1" --docker-args
run '--docker-args in a lease without GPUs has no GPU' 0 \
	'--env NVIDIA_VISIBLE_DEVICES=void *' '' \
	"$U1" -n 0 "$M/bin/gpulease" --docker-args
run '--docker-args podman, for root' 0 \
	"--device nvidia.com/gpu=GPU-0* --group-add keep-groups --volume *" '' \
	"$ROOT" -n 1 "$ROOT" --docker-args podman
run '--docker-args=podman for a user says that the queue is out of reach' 0 \
	'--device nvidia.com/gpu=all --group-add keep-groups' \
	'gpulease: *user namespace*lease outside: gpulease -n 1 -- podman run*' \
	"$U1" --docker-args=podman
run '--docker-args=podman for a user works inside a lease' 0 \
	"--device nvidia.com/gpu=GPU-0* --group-add keep-groups --env GPULEASE_ID=*" '' \
	"$U1" -n 1 "$M/bin/gpulease" --docker-args=podman
run '--docker-args refuses simulated GPUs' 125 '' 'gpulease: --docker-args: simulated GPUs *' \
	env XDG_STATE_HOME="$S/open" "$U1" --sim 2 --docker-args
run '--docker-args refuses a simulated lease' 125 '' 'gpulease: --docker-args: simulated GPUs *' \
	"$M/plain" --sim 2 "$M/plain" --docker-args

# --- other namespaces ----------------------------------------------------------------------

wrapper outside "env GPULEASE_DIR=$S/dir $M/plain"
wrapper inside "unshare -m -p -f --kill-child --mount-proc sh -c \
	'mount --bind \"\$GPULEASE_DIR\" \"\$GPULEASE_DIR\" && exec \"\$@\"' - $M/plain"
sed -i "2s,^exec ,exec env GPULEASE_DIR=$S/dir ," "$M/inside"
takes_turns 'a job in the namespaces after a job outside' "$M/outside" "$M/inside"
takes_turns 'a job outside after a job in the namespaces' "$M/inside" "$M/outside"
takes_turns 'a job in namespaces after a job in other namespaces' "$M/inside" "$M/inside"

# --- a /proc of another pid namespace ------------------------------------------------------

# Its numbers are those of other processes: a job there would take these for its own.
refused='gpulease: /proc is missing, or shows another pid namespace *unshare --mount-proc*'
for how in '"$@"' '"$@"; exit'; do # as process 1, and as another
	for each in '' '--retries 1' '--report' '--time 1h' '-n 0'; do
		# shellcheck disable=SC2086 # no option, or one with its value
		run "without a /proc of its own a job is refused: $each, $how" 125 '' "$refused" \
			unshare -p -f --kill-child sh -c "$how" - "$M/outside" -n 1 $each true
	done
done
run 'a plain step needs no /proc' 0 'a step' '' "$M/outside" -n 1 unshare -p -f --kill-child \
	"$M/outside" echo a step
run 'a step with a time limit is refused there' 125 '' "$refused" "$M/outside" -n 1 \
	unshare -p -f --kill-child "$M/outside" --time 1h true
run '--status works without a /proc of its own' 0 '*' '' unshare -p -f --kill-child \
	"$M/outside" --status

# --- a /proc that hides --------------------------------------------------------------------

# Members of one group share a directory.
mkdir "$M/lab"
chgrp 54319 "$M/lab"
chmod 2770 "$M/lab"
unshare -m -p -f --kill-child sh -c '
	mount -t proc -o hidepid=2 proc /proc && : >"$1" && exec sleep 1000' - "$S/hides" &
started="$started $!"
wait_until "[ -e '$S/hides' ]" || bail 'no /proc with hidepid'
hiding=$(grep -ls "^PPid:[[:space:]]*$!\$" /proc/[0-9]*/status | tr -dc '0-9\n')
for user in 1 2; do
	wrapper "member.$user" "nsenter -t $hiding -m -p -- setpriv --reuid=$((UID_BASE + user)) \
		--regid=$((UID_BASE + user)) --groups=54319 -- env GPULEASE_DIR=$M/lab $M/plain"
done
run 'hidepid=2: processes of other users are hidden' 1 '' '' nsenter -t "$hiding" -m -p -- \
	setpriv --reuid=$((UID_BASE + 1)) --regid=$((UID_BASE + 1)) --clear-groups \
	test -e /proc/1
takes_turns 'hidepid=2' "$M/member.1" "$M/member.2"
with "$M/member.1" holder hidden -n 2
run 'hidepid=2: a job of another user is seen' 0 "*$((UID_BASE + 1))*" '' "$M/member.2" --status
run 'hidepid=2: the GPUs of a job of another user are not given away' 124 '' '*' "$M/member.2" \
	-n 1 -I true
release_all hidden
run 'hidepid=2: the GPUs are free when the job of another user ends' 0 '' '*' "$M/member.2" \
	-n 2 --max-wait 30s true

# --- another user namespace ----------------------------------------------------------------

if as 1 unshare -U -r true 2>/dev/null; then
	mkdir -m 0700 "$S/open/own"
	chown $((UID_BASE + 1)) "$S/open/own"
	wrapper user.outside "setpriv --reuid=$((UID_BASE + 1)) --regid=$((UID_BASE + 1)) \
		--clear-groups -- env GPULEASE_DIR=$S/open/own $M/plain"
	wrapper user.inside "setpriv --reuid=$((UID_BASE + 1)) --regid=$((UID_BASE + 1)) \
		--clear-groups -- env GPULEASE_DIR=$S/open/own unshare -U -r -- $M/plain"
	takes_turns 'user namespace, private form' "$M/user.outside" "$M/user.inside"
	takes_turns 'user namespace, the other way round' "$M/user.inside" "$M/user.outside"
	wrapper lab.inside "setpriv --reuid=$((UID_BASE + 1)) --regid=$((UID_BASE + 1)) \
		--groups=54319 -- env GPULEASE_DIR=$M/lab unshare -U -r -- $M/plain"
	takes_turns 'user namespace, lab form' "$M/member.2" "$M/lab.inside"
	takes_turns 'user namespace, lab form, the other way round' "$M/lab.inside" "$M/member.2"
	# A child without the FIFO is known by its tag and its user, whatever the user is called.
	install -m 0755 "$TOOLS/closing" "$M/closing"
	for pair in 'inside outside' 'outside inside' 'inside inside'; do
		rm -f "$S/open/own/left"
		"$M/user.${pair% *}" -n 2 sh -c '"$1" sleep 1000 >/dev/null 2>&1 &
			echo $! >"$2"' - "$M/closing" "$S/open/own/left"
		left=$(cat "$S/open/own/left")
		started="$started $left"
		wait_until "[ \"\$(cat /proc/$left/comm)\" = sleep ]"
		run "user namespace, $pair: the GPUs of a process that a job left are not given away" \
			124 '' '*' "$M/user.${pair#* }" -n 1 -I true
		kill -KILL "$left"
		run "user namespace, $pair: then they are free" 0 '' '*' "$M/user.${pair#* }" -n 2 \
			--max-wait 30s true
	done
	run 'user namespace: gpulease in a job is a step' 0 '0 1' '' "$M/user.inside" -n 1 \
		sh -c '"$0" -n 1 sh -c "echo \$CUDA_VISIBLE_DEVICES \$GPULEASE_ID" |
			sed "s/ .*/ 1/"' "$M/plain"
	run 'user namespace: gpulease inside one is a step of the job around it' 0 '0' '' \
		"$M/user.outside" -n 1 unshare -U -r "$M/plain" -n 1 --max-wait 20s \
		sh -c 'echo $CUDA_VISIBLE_DEVICES'
	run 'a job starts in a user namespace without ids' 0 '' '' as 1 env \
		"GPULEASE_DIR=$S/open/own" \
		unshare -U "$M/plain" -n 1 true
	run 'hardened form in a user namespace: the cause and what to do' 125 '' \
		'gpulease: cannot use*user namespace*gpulease -n 1 -- podman run*' \
		as 1 unshare -U -r "$M/bin/gpulease" -n 1 true
else
	skip 'another user namespace' 'users may not make one here'
fi
finish

#!/bin/sh
# --doctor: every check, with everything in order and with faults.
# shellcheck disable=SC2016,SC2317 # conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
own_mounts "$@" && has_mounts=1 || has_mounts=''
scratch
umask 022

# examine STATUS COMMAND…: runs `COMMAND… --doctor`; $out has its lines.  A result only if it fails.
examine() {
	examine_rc=$1
	shift
	try "$@" --doctor
	[ "$rc" -eq "$examine_rc" ] && [ -z "$err" ] && return
	not_ok "--doctor exits with $examine_rc" "exit status $rc" "$out" "stderr: $err"
}

# finds TEXT RESULT CHECK PATTERN: a result, good if a line of the last `examine` matches.
finds() {
	if printf '%s\n' "$out" | sed -n "s/^$2 *$3: //p" | {
		while read -r finds_line; do
			# shellcheck disable=SC2254 # it is a pattern
			case $finds_line in
			$4) exit 0 ;;
			esac
		done
		exit 1
	}; then
		ok "$1"
	else
		not_ok "$1" "no '$2 $3: $4' in:" "$out"
	fi
}

# examine_quick STATUS COMMAND…: the same, with an nvidia-smi that is quick enough for --doctor
examine_quick() {
	sometimes is_quick "$@"
}

is_quick() {
	examine "$@"
	! printf '%s\n' "$out" | grep -q '^warn *nvidia-smi: .* took '
}

# --- all is well ---------------------------------------------------------------------------

simulated() {
	# Nothing here depends on the kernel or on this machine.
	examine 0 "$GPULEASE"
	finds 'the directory of simulated GPUs is in order' ok 'state directory' \
		"*sim-8x24576', simulated form*0700"
	finds 'no nvidia-smi is needed' ok nvidia-smi 'not needed: simulated'
	finds 'no driver is needed' ok driver 'not needed: simulated'
	finds 'all simulated GPUs are known' ok gpus '8 known'
	finds 'the line of the file system has its name' ok 'file system' '* is on *'
	finds 'the line of free space has its size' ok 'free space' '*[0-9][GMK]*'
	finds 'the kernel has its release' ok kernel "Linux $(uname -r)"
	finds 'the program is not set-group-ID' ok set-id '*no set-group-ID bit*'
	is 'every check has its line' [ "$(printf '%s\n' "$out" | cut -c 7- |
		sed 's/:.*//' | sort -u | wc -l)" -eq 22 ]
	is 'each line begins with its result' [ -z "$(printf '%s\n' "$out" |
		grep -v '^ok    [a-z]\|^warn  [a-z]\|^fail  [a-z]')" ]
	run 'an operand is misuse' 125 '' 'gpulease: *' "$GPULEASE" --doctor 3
	holder some -n 2
	waiter more -n 8
	"$GPULEASE" --pause 7 --reason 'the fan'
	examine 0 "$GPULEASE"
	finds 'leases are counted' ok leases '1 in force'
	finds 'waiting tickets are counted' ok queue '1 ticket waits'
	finds 'a pause is shown' ok 'paused gpus' 'GPU 7 is paused by *: the fan, until *--resume 7'
	"$GPULEASE" --resume 7
	examine 0 "$GPULEASE"
	finds 'without a pause it names what lists windows' ok 'paused gpus' 'none, *gpulease --windows*'
	release_all some more
	"$GPULEASE" -n 1 -- sh -c 'sleep 1000 & echo $! >"$1"' sh "$S/left" </dev/null >/dev/null 2>&1
	examine 0 "$GPULEASE"
	finds 'a lingering lease is shown' ok leases 'job * has ended, but lingers*'
	kill -KILL "$(cat "$S/left")"
}

for_programs() {
	try "$GPULEASE" --doctor --json
	is 'JSON: exit status 0' [ "$rc" -eq 0 ]
	"$TOOLS/jsoncheck" format checks.0.name checks.0.result checks.8.name checks.8.text \
		checks.8.remedy <"$S/out" | tr '\n' ' ' >"$S/values"
	is 'JSON: the checks have names, results and texts' [ "$(cat "$S/values")" = \
		'gpulease-doctor/1 configuration ok nvidia-smi not needed: simulated null ' ]
	try "$GPULEASE" --doctor --json --config "$S/none"
	is 'JSON: a failure has exit status 1 and the result fail' [ \
		"$rc $("$TOOLS/jsoncheck" result <"$S/out")" = \
		'1 fail' ]
	is 'JSON: a failure has its text' like "*cannot open configuration*" \
		"$("$TOOLS/jsoncheck" checks.0.text <"$S/out")"
	view=${GPULEASE%/*}/gpulease-view
	run 'gpulease-view without what gpulease tells it shows nothing' 125 '' \
		'gpulease: this needs the gpulease that *' \
		sh -c '"$1" view gpulease --doctor </dev/null' sh "$view"
	head -c 200000 /dev/zero >"$S/zeros"
	run 'gpulease-view refuses what another build tells it' 125 '' \
		'gpulease: this needs the gpulease that *' \
		sh -c '"$1" view gpulease --doctor <"$2"' sh "$view" "$S/zeros"
}

terminals() {
	escape=$(printf '\033')
	TERM=xterm "$TOOLS/onterminal" 40 "$GPULEASE" --doctor >"$S/page"
	is 'a terminal gets colours' grep -q "$escape\[32mok$escape" "$S/page"
	is 'a terminal gets whole lines' grep -q 'configuration: .*gpulease.conf.,' "$S/page"
	TERM=xterm NO_COLOR=1 "$TOOLS/onterminal" 40 "$GPULEASE" --doctor >"$S/page"
	is 'with NO_COLOR a terminal gets no colours' [ -z "$(grep "$escape" "$S/page")" ]
	if [ -w /dev/full ]; then
		run 'output that cannot be written is an error' 125 '' \
			'gpulease: cannot write the output: *' \
			sh -c '"$0" --doctor >/dev/full' "$GPULEASE"
	fi
}

# --- the driver ------------------------------------------------------------------------------

drivers() {
	fresh
	examine_quick 0 "$GPULEASE"
	finds 'a private directory' ok 'state directory' "'$GPULEASE_DIR', private form*0700"
	finds 'nvidia-smi is shown with its time' ok nvidia-smi "'*/nvidia-smi' took * ms"
	finds 'a driver without a version is shown' ok driver '*version*'
	finds 'the GPUs of the driver are counted' ok gpus '2 known'
	finds 'the compute modes of the GPUs are shown' ok 'compute mode' \
		'2 can be used by several*'
	finds 'no process uses the GPUs outside leases' ok 'use outside leases' none
	is 'the answer is stored for other processes' [ -s "$GPULEASE_DIR/probe" ]
	echo 1.1 >"$FAKE_SMI_DIR/delay"
	examine 0 "$GPULEASE"
	finds 'a slow nvidia-smi is a warning' warn nvidia-smi "*took [1-9]*[0-9][0-9][0-9] ms; *nvidia-smi -pm 1*"
	rm "$FAKE_SMI_DIR/delay"
	echo 9 >"$FAKE_SMI_DIR/exit"
	echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." \
		>"$FAKE_SMI_DIR/stdout"
	examine 1 "$GPULEASE"
	finds 'a failing nvidia-smi is quoted' fail nvidia-smi "*couldn't communicate*; *modprobe*"
	finds 'without nvidia-smi no GPU is known' warn gpus 'not known without nvidia-smi'
	finds 'without nvidia-smi no compute mode is known' warn 'compute mode' \
		'not known without nvidia-smi'
	finds 'without nvidia-smi no use outside leases is known' warn 'use outside leases' \
		'not known without *'
	[ -e /proc/driver/nvidia/version ] ||
		finds 'without its version file no driver is known' fail driver \
			'*; modprobe nvidia*'
	fresh
	touch "$FAKE_SMI_DIR/hang"
	echo 'probe-deadline = 1s' >"$S/conf"
	try timeout "$DEADLINE" "$GPULEASE" --doctor --config "$S/conf"
	is 'a hanging nvidia-smi does not hang --doctor' [ "$rc" -eq 1 ]
	finds 'a hanging nvidia-smi is a failure' fail nvidia-smi \
		'*did not answer within 1 s; *probe-deadline*'
	fresh
	examine 1 env PATH=/usr/bin:/bin "$GPULEASE"
	finds 'a missing nvidia-smi is a failure' fail nvidia-smi 'not found in PATH; install the NVIDIA driver*'
}

sick_gpus() {
	fresh
	gpus 4
	run 'before the GPUs are sick, a job starts' 0 '' '' "$GPULEASE" -n 4 true
	{
		echo '= 0, GPU-00000000-1111-2222-3333-444444444444, 00000000:00:00.0, [GPU requires reset], 0, [GPU requires reset], [N/A], Default, Card'
		sed -n '3,4p' "$FAKE_SMI_DIR/gpus"
	} >"$FAKE_SMI_DIR/new" && mv "$FAKE_SMI_DIR/new" "$FAKE_SMI_DIR/gpus"
	echo Prohibited >"$FAKE_SMI_DIR/mode.2"
	echo Exclusive_Process >"$FAKE_SMI_DIR/mode.3"
	echo Enabled >"$FAKE_SMI_DIR/mig.3"
	examine 0 "$GPULEASE"
	finds 'a GPU that needs a reset is reported' warn gpus \
		'GPU 0 is not leased: *reset*--gpu-reset -i 0*'
	finds 'a GPU that is gone is reported' warn gpus 'nvidia-smi no longer lists GPU 1; *'
	finds 'the other GPUs are known' ok gpus '2 known'
	finds 'MIG is shown' ok gpus 'MIG is enabled on 1,*'
	finds 'a GPU in compute mode Prohibited is reported' warn 'compute mode' \
		'GPU 2 is Prohibited*; nvidia-smi -i 2 -c DEFAULT'
	finds 'a GPU in compute mode Exclusive_Process is shown' ok 'compute mode' \
		'GPU 3 is Exclusive_Process: one process*'
}

outside() {
	fresh
	sleep 1000 &
	user=$!
	started="$started $user"
	becomes "$user" sleep
	holder job
	is 'GPU 0 is leased' [ "$(gpus_of job)" = 0 ]
	job_command=$(cut -d ' ' -f 1 "$S/job.runs")
	printf '0 %s 4000\n' "$job_command" >"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'the process of a lease is no outside use' ok 'use outside leases' none
	env -i prlimit --locks=unlimited sh -c 'echo $$ >"$0"; exec sleep 1000' "$S/tagless" &
	started="$started $!"
	wait_until '[ -s "$S/tagless" ]'
	printf '0 %s 4000\n' "$(cat "$S/tagless")" >"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'a process without any sign of a lease is outside use' warn 'use outside leases' \
		"GPU 0, leased to job *, is also used by pid $(cat "$S/tagless") *"
	is 'with outside use no line says none' [ \
		-z "$(printf '%s\n' "$out" | grep 'leases: none')" ]
	printf '0 %s 4000\n0 %s 700\n1 %s 5000\n' "$job_command" "$user" "$user" \
		>"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'a process on a free GPU is outside use' warn 'use outside leases' \
		"GPU 1 is used outside gpulease by pid $user ($(id -un), sleep); *"
	finds 'a foreign process on a leased GPU is outside use' warn 'use outside leases' \
		"GPU 0, leased to job *, is also used by pid $user ($(id -un), sleep); *"
	is 'the process of the lease is no outside use beside a foreign one' [ \
		-z "$(printf '%s\n' "$out" |
		grep "pid $job_command ")" ]
	rm "$FAKE_SMI_DIR/procs"
	echo 3000 >"$FAKE_SMI_DIR/base.1"
	examine 0 "$GPULEASE"
	finds 'memory without a process is outside use' warn 'use outside leases' \
		'GPU 1 *by a process that nvidia-smi does not show; *'
	release_all job
	fresh
	"$GPULEASE" -n 1 -- sh -c 'env -i prlimit --locks=unlimited sh -c \
		"echo \$\$ >$0; exec sleep 1000" & wait' "$S/child" </dev/null >/dev/null 2>&1 &
	started="$started $!"
	wait_until '[ -s "$S/child" ]'
	printf '0 %s 4000\n' "$(cat "$S/child")" >"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'a descendant of the command belongs to its lease' ok 'use outside leases' none
	finds 'the lease is in force' ok leases '1 in force'
	kill -KILL "$(cat "$S/child")"
	fresh
	"$GPULEASE" -n 1 -- sh -c 'sleep 1000 & echo $! >"$1"' sh "$S/left" </dev/null >/dev/null 2>&1
	printf '0 %s 4000\n' "$(cat "$S/left")" >"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'a process that a job has left belongs to its lease' ok 'use outside leases' none
	kill -KILL "$(cat "$S/left")"
}

# --- the directory -----------------------------------------------------------------------------

files() {
	fresh
	run 'a job makes the files' 0 '' '' "$GPULEASE" -n 2 true
	examine 0 "$GPULEASE"
	finds 'the files are in order' ok 'state files' '[0-9]*, all in order'
	finds 'no lock is held' ok locks 'no lease file is locked'
	finds 'no ticket waits' ok queue 'no ticket waits'
	lease=$GPULEASE_DIR/gpu/GPU-00000001-1111-2222-3333-444444444444.lease
	ln "$lease" "$S/link"
	examine 1 "$GPULEASE"
	finds 'a second hard link of a lease file is a failure' fail 'state files' \
		"'$lease' has another hard link*"
	rm "$S/link"
	printf x | dd of="$lease" bs=1 seek=20 conv=notrunc 2>/dev/null
	examine 0 "$GPULEASE"
	finds 'a damaged lease file is a warning' warn 'state files' \
		'*GPU 1 is damaged, but no lease was lost; *mends it'
	run 'a job starts in spite of a damaged lease file' 0 '' '' "$GPULEASE" -n 2 true
	examine 0 "$GPULEASE"
	finds 'the next job has mended it' ok 'state files' '[0-9]*, all in order'
	holder lost -n 2
	for each in "$GPULEASE_DIR"/gpu/GPU-*; do
		printf x | dd of="$each" bs=1 seek=600 conv=notrunc 2>/dev/null
	done
	examine 0 "$GPULEASE"
	finds 'a damaged file of a live lease is a warning' warn 'state files' \
		'*a live job has lost its lease*; *'
	release_all lost
	rm "$lease"
	mkdir "$lease"
	examine 1 "$GPULEASE"
	finds 'a folder in the place of a lease file is a failure' fail 'state files' \
		'*leads to no lease file*; *remove*'
	rmdir "$lease"
	run 'a job makes the lease file anew' 0 '' '*' "$GPULEASE" -n 2 true
	printf 'ticket/1 x%504s' '' >>"$GPULEASE_DIR/tickets"
	examine 0 "$GPULEASE"
	finds 'a broken ticket is a warning' warn queue '*/tickets* cannot be read*; *'
	chmod 0770 "$GPULEASE_DIR" && chmod g+s "$GPULEASE_DIR"
	chmod 0600 "$lease"
	chmod 0664 "$GPULEASE_DIR/history"
	examine 1 "$GPULEASE"
	finds 'a directory shared by a group has the lab form' ok 'state directory' \
		'*, lab form*2770'
	finds 'a file that is closed to the group is a failure' fail 'state files' \
		"'$lease' is closed to*&& chmod 0660*"
	finds 'a file that is open to all is a failure' fail 'state files' \
		"*/history' is open to everybody*"
	rm "$GPULEASE_DIR/tickets"
	mkdir "$GPULEASE_DIR/tickets"
	examine 1 "$GPULEASE"
	finds 'a queue that cannot be read is a failure' fail queue 'cannot read the queue*'
	finds 'without the queue no leases are known' warn leases 'not known without the queue'
	finds 'a folder in the place of the ticket file is a failure' fail 'state files' \
		"*/tickets' is no regular file*"
}

locks() {
	if ! flock -F /dev/null true 2>/dev/null; then
		skip 'a locked GPU' 'there is no flock(1) that becomes its command'
		return
	fi
	fresh
	run 'a job makes the files' 0 '' '' "$GPULEASE" -n 2 true
	flock -F "$GPULEASE_DIR/gpu/slot.1" sleep 1000 &
	locker=$!
	started="$started $locker"
	becomes "$locker" sleep # once it has the lock
	wait_until 'like "*GPU 1 is locked*" "$("$GPULEASE" --doctor)"'
	examine 0 "$GPULEASE"
	finds 'a lock that is held for long is a warning' warn locks \
		"GPU 1 is locked by pid $locker ($(id -un), sleep)*; *kill -CONT $locker*"
}

litter() {
	fresh
	holder some -n 1
	waiter more -n 2
	before=$("$GPULEASE" --doctor | sed -n 's/^ok *litter: \([0-9]*\) .*/\1/p')
	touch "$GPULEASE_DIR/tmp.x" "$GPULEASE_DIR/gpu/tmp.x"
	mkfifo "$GPULEASE_DIR/live/0123456789abcdef" "$GPULEASE_DIR/bell/0123456789abcdef"
	examine 0 "$GPULEASE"
	finds 'litter is counted, but no file in use' ok litter \
		"$((before + 4)) files*"
	is 'before that there is no litter' [ "$before" -eq 0 ]
	(cd "$GPULEASE_DIR/live" && seq -f 'tmp.%.0f' 1000 | xargs touch)
	examine 0 "$GPULEASE"
	finds 'much litter is a warning' warn litter '100[0-9] files*; *'
	is '--doctor removes no litter' [ -p "$GPULEASE_DIR/live/0123456789abcdef" ]
	release_all some more
}

# fingerprint: everything in the state directory, except the last answer of nvidia-smi
fingerprint() {
	(cd "$GPULEASE_DIR" && find . ! -name probe -type f -exec cksum {} + | sort &&
		find . ! -path ./probe ! -path . -exec ls -dli {} + | sort)
}

nothing_changes() {
	fresh
	run 'a job makes the files' 0 '' '' "$GPULEASE" -n 2 true
	holder some -n 1
	waiter more -n 2
	fingerprint >"$S/before"
	try "$GPULEASE" --doctor
	fingerprint >"$S/after"
	is '--doctor changes no file of the state directory' cmp -s "$S/before" "$S/after"
	release_all some more
}

directories() {
	fresh
	examine 1 env GPULEASE_DIR="$S/none" "$GPULEASE"
	finds 'a missing state directory is a failure' fail 'state directory' \
		"cannot open *'$S/none'*; mkdir -m 0700 -p $S/none makes it *"
	finds 'without a state directory its file system is not known' warn 'file system' \
		'not known without *'
	finds 'without a state directory its free space is not known' warn 'free space' \
		'not known without *'
	finds 'without a state directory its files are not known' warn 'state files' \
		'not known without the state directory'
	finds 'without a state directory its leases are not known' warn leases \
		'not known without the state directory'
	finds 'without a state directory its locks are not known' warn locks 'not known without *'
	finds 'without a state directory its pauses are not known' warn 'paused gpus' \
		'not known without *'
	finds 'without a state directory its queue is not known' warn queue 'not known without *'
	finds 'without a state directory its litter is not known' warn litter \
		'not known without *'
	finds 'without a state directory the GPUs are known' ok gpus '2 known'
	chmod 2777 "$GPULEASE_DIR"
	examine 1 "$GPULEASE"
	finds 'a state directory that all may write to is a failure' fail 'state directory' \
		"*everybody may write there; chmod o-w $GPULEASE_DIR"
	chmod g-s,o-w "$GPULEASE_DIR"
	examine 1 "$GPULEASE"
	finds 'a state directory that does not pass on its group is a failure' fail \
		'state directory' \
		"*; chmod g+s $GPULEASE_DIR"
	chmod 0700 "$GPULEASE_DIR"
	printf 'margin = 1G\n' >"$S/conf"
	examine 0 "$GPULEASE" --config "$S/conf"
	finds 'the configuration is shown with its number of keys' ok configuration \
		"'$S/conf', 1 key set"
	printf 'nvidia-smi = /none\nsize = 3\n' >"$S/conf"
	examine 1 "$GPULEASE" --config "$S/conf"
	finds 'an error in the configuration is a failure' fail configuration "*$S/conf*2*size*"
	finds 'a wrong configuration stops no other check and is not in force' ok gpus '2 known'
}

# --- as root ---------------------------------------------------------------------------------

# mounted OPTIONS: mounts a file system with these options at $S/small
mounted() {
	mkdir -p "$S/small"
	mount -t tmpfs -o "$1,mode=0700" tmpfs "$S/small"
}

file_systems() {
	fresh
	mounted size=900k
	examine 0 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'the file system of the state directory is shown' ok 'file system' '*is on tmpfs'
	finds 'a file system with little space is a warning' warn 'free space' '*[0-9]K*; *'
	umount "$S/small"
	mounted size=9m,nr_inodes=50
	examine 0 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'a file system with few inodes is a warning' warn 'free space' \
		'[89]M and [0-9]* inodes free; *'
	mount -o remount,ro "$S/small"
	examine 1 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'a read-only file system is a failure' fail 'state directory' \
		'*; mount its file system *'
	umount "$S/small"
	mount -t ramfs -o mode=0700 ramfs "$S/small"
	examine 0 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'a file system without holes in files is a warning' warn 'file system' \
		'*cannot make holes in files*'
	umount "$S/small"
	examine 0 "$GPULEASE"
	finds 'a /proc that shows all processes is in order' ok proc '*shows all processes'
	if unshare -pf --mount-proc mount -o remount,hidepid=2 /proc 2>/dev/null; then
		examine 0 unshare -pf --mount-proc sh -c \
			'mount -o remount,hidepid=2 /proc && exec "$0" "$@"' "$GPULEASE"
		finds 'a /proc with hidepid is a warning' warn proc '*mounted with hidepid=*; *'
	else
		skip 'a /proc with hidepid is a warning' 'proc cannot be mounted here'
	fi
}

kernels() {
	for way in enosys eperm; do
		try "$TOOLS/nopidfd" "$way" "$GPULEASE" --doctor
		finds "a kernel without pidfds is a warning: $way" warn pidfd \
			'pidfd_open: *; *5.3*'
	done
	try "$TOOLS/nopidfd" noexit "$GPULEASE" --doctor
	case $out in
	*' pidfd_open: '*)
		skip 'a kernel that tells no exit status is a warning' 'it has no pidfds'
		;;
	*)
		finds 'a kernel that tells no exit status is a warning' warn pidfd \
			'pidfds do not tell how a process ended: *; *6.15*--report'
		;;
	esac
}

# user COMMAND…: runs it as a user without a name and without groups
user() {
	setpriv --reuid 54321 --regid 54321 --clear-groups "$@"
}

installed() {
	unset GPULEASE_DIR FAKE_SMI_DIR
	overlay /etc
	mkdir "$M/bin" "$M/state" "$M/home"
	chown 54321 "$M/home"
	install -m 0755 "$GPULEASE" "$M/bin/gpulease"
	install -m 0755 "${GPULEASE%/*}/gpulease-view" "$M/bin/"
	install -m 0755 "$CLI/../bin/nvidia-smi" "$M/bin/nvidia-smi"
	mkdir "$M/bin/fake-smi"
	chmod 0777 "$M/bin/fake-smi"
	cp "$S/smi/gpus" "$M/bin/fake-smi/"
	chgrp 54320 "$M/bin/gpulease" "$M/state"
	chmod 2755 "$M/bin/gpulease"
	chmod 2770 "$M/state"
	printf '%s\n' "directory = $M/state" "nvidia-smi = $M/bin/nvidia-smi" >/etc/gpulease.conf
	chmod 0644 /etc/gpulease.conf
	examine_quick 0 user "$M/bin/gpulease"
	finds 'set-group-ID is in force' ok set-id 'in force, lends group 54320'
	finds 'the hardened form is shown' ok 'state directory' \
		"'$M/state', hardened form, owner root, group 54320, mode 2770"
	finds 'the configuration of the hardened form is shown' ok configuration \
		"'/etc/gpulease.conf', 2 keys set"
	finds 'the nvidia-smi of the hardened form is shown' ok nvidia-smi \
		"'$M/bin/nvidia-smi' took *"
	examine 0 "$M/bin/gpulease"
	finds 'root is shown the hardened form, too' ok 'state directory' '*, hardened form, *'
	examine_quick 1 user setpriv --no-new-privs "$M/bin/gpulease"
	finds 'a set-group-ID bit without effect is a failure' fail set-id \
		'*no_new_privs*; start gpulease outside of it'
	finds 'without the set-group-ID bit the directory is closed' fail 'state directory' \
		"cannot use *no_new_privs*; start gpulease outside of it"
	finds 'without the set-group-ID bit nvidia-smi is examined all the same' ok nvidia-smi \
		'*took*'
	chgrp 54322 "$M/state"
	examine 1 user "$M/bin/gpulease"
	finds 'another group of the program than of the directory is a failure' fail set-id \
		"*group 54320, but *group 54322; chgrp 54320 $M/state*"
	finds 'the check of the directory reports the other group, too' fail 'state directory' \
		"*; chgrp 54320 $M/state"
	chgrp 54320 "$M/state"
	chmod 2777 "$M/state"
	examine 1 user "$M/bin/gpulease"
	finds 'a wrong mode of the directory is a failure' fail 'state directory' \
		"*; chmod 2770 $M/state"
	chmod 2770 "$M/state"
	chmod 0755 "$M/bin/gpulease"
	examine 1 user "$M/bin/gpulease"
	finds 'a user outside the group gets the command to join it' fail 'state directory' \
		"cannot open *; usermod -aG 54320 54321, and log in again"
	cp "$M/bin/gpulease" "$M/copy"
	chmod 2755 "$M/bin/gpulease"
	before=$PATH PATH=$M/bin:$PATH
	run 'a copy of the installed program is refused' 125 '' \
		"gpulease: cannot use *is not the installed one; use '$M/bin/gpulease'" \
		user "$M/copy" -n 0 true
	run '--doctor of a copy of the program alone names the installed one' 125 '' \
		"*needs gpulease-view*is not the installed one; use '$M/bin/gpulease'" \
		user "$M/copy" --doctor
	cp "$M/bin/gpulease-view" "$M/gpulease-view"
	examine 1 user "$M/copy"
	finds '--doctor of a copy of the program names the installed one' fail 'state directory' \
		"*is not the installed one; use '$M/bin/gpulease'"
	PATH=$before
	cp /etc/group "$S/group"
	printf 'lent:x:54320:mallory,trudy\n' >>/etc/group
	examine 0 user "$M/bin/gpulease"
	finds 'members of the lent group are a warning' warn set-id \
		'members of group lent can forge *: mallory, trudy; *gpasswd -d USER lent'
	cat "$S/group" >/etc/group
	chmod 0755 "$M/bin/gpulease"
	try user "$M/bin/gpulease" --doctor --json
	is 'JSON without a directory' [ "$("$TOOLS/jsoncheck" state_directory <"$S/out")" = null ]
	rm -r "$M/state"
	examine 0 user env XDG_STATE_HOME="$M/home" "$M/bin/gpulease"
	finds 'a missing shared directory is a warning' warn 'state directory' \
		"'$M/home/gpulease', private form, *; run sudo make install, which makes '$M/state'"
}

simulated
for_programs
terminals
with_driver
drivers
sick_gpus
outside
files
locks
litter
nothing_changes
directories
kernels
if [ -n "$has_mounts" ]; then
	file_systems
else
	skip 'file systems' "$own_mounts_why"
fi
if [ -z "$has_mounts" ]; then
	skip 'the hardened form is shown' "$own_mounts_why"
elif grep -q '^NoNewPrivs:.*1' /proc/self/status; then
	skip 'the hardened form is shown' 'started under no_new_privs'
elif is_sanitized "$GPULEASE"; then
	skip 'the hardened form is shown' 'built with sanitizers'
else
	installed
fi
finish

#!/bin/sh
# --doctor: every check, as it is where all is well and where something is not.
# shellcheck disable=SC2016,SC2317 # conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
own_mounts "$@" && has_mounts=1 || has_mounts=''
scratch
umask 022

# examine STATUS COMMAND…: a result; the lines are in $out then.
examine() {
	examine_rc=$1
	shift
	try "$@" --doctor
	[ "$rc" -eq "$examine_rc" ] && [ -z "$err" ] && return
	not_ok "--doctor exits with $examine_rc" "exit status $rc" "$out" "stderr: $err"
}

# finds TEXT RESULT CHECK PATTERN: a result, good if a line of the last `examine` is so.
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

# examine_quick STATUS COMMAND…: likewise, with an nvidia-smi that is quick enough for doctor
examine_quick() {
	sometimes is_quick "$@"
}

is_quick() {
	examine "$@"
	! printf '%s\n' "$out" | grep -q '^warn *nvidia-smi: .* took '
}

# --- all is well ---------------------------------------------------------------------------

simulated() {
	# whatever the kernel and this machine are
	examine 0 "$GPULEASE"
	finds 'a simulated directory' ok 'state directory' "*sim-8x24576', simulated form*0700"
	finds 'no nvidia-smi is needed' ok nvidia-smi 'not needed: simulated'
	finds 'no driver either' ok driver 'not needed: simulated'
	finds 'all GPUs are known' ok gpus '8 known'
	finds 'the file system has a name' ok 'file system' '* is on *'
	finds 'and room' ok 'free space' '*[0-9] [GMK]iB*'
	finds 'the kernel' ok kernel "Linux $(uname -r)"
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
	finds 'who waits, too' ok queue '1 ticket waits'
	finds 'a pause is told' ok 'paused gpus' 'GPU 7 is paused by *: the fan, until *--resume 7'
	"$GPULEASE" --resume 7
	release_all some more
	"$GPULEASE" -n 1 -- sh -c 'sleep 1000 & echo $! >"$1"' sh "$S/left" </dev/null >/dev/null 2>&1
	examine 0 "$GPULEASE"
	finds 'what lingers is told' ok leases 'ticket * has ended, but lingers*'
	kill -KILL "$(cat "$S/left")"
}

for_programs() {
	try "$GPULEASE" --doctor --json
	is 'JSON: exit status 0' [ "$rc" -eq 0 ]
	"$TOOLS/jsoncheck" format checks.0.name checks.0.result checks.8.name checks.8.text \
		checks.8.remedy <"$S/out" | tr '\n' ' ' >"$S/values"
	is 'with names, results and texts' [ "$(cat "$S/values")" = \
		'gpulease-doctor/1 configuration ok nvidia-smi not needed: simulated null ' ]
	try "$GPULEASE" --doctor --json --config "$S/none"
	is 'a failure is one there, too' [ "$rc $("$TOOLS/jsoncheck" result <"$S/out")" = \
		'1 fail' ]
	is 'and its text' like "*cannot open configuration*" \
		"$("$TOOLS/jsoncheck" checks.0.text <"$S/out")"
}

terminals() {
	escape=$(printf '\033')
	TERM=xterm "$TOOLS/onterminal" 40 "$GPULEASE" --doctor >"$S/page"
	is 'a terminal gets colours' grep -q "$escape\[32mok$escape" "$S/page"
	is 'and whole lines' grep -q 'configuration: .*gpulease.conf.,' "$S/page"
	TERM=xterm NO_COLOR=1 "$TOOLS/onterminal" 40 "$GPULEASE" --doctor >"$S/page"
	is 'NO_COLOR: none' [ -z "$(grep "$escape" "$S/page")" ]
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
	finds 'nvidia-smi and how long it took' ok nvidia-smi "'*/nvidia-smi' took * ms"
	finds 'a driver that has no version is told' ok driver '*version*'
	finds 'its GPUs' ok gpus '2 known'
	finds 'which can be shared' ok 'compute mode' '2 can be used by several*'
	finds 'and which nobody uses' ok 'use outside leases' none
	is 'the answer is there for others' [ -s "$GPULEASE_DIR/probe" ]
	echo 1.1 >"$FAKE_SMI_DIR/delay"
	examine 0 "$GPULEASE"
	finds 'a slow one' warn nvidia-smi "*took [1-9]*[0-9][0-9][0-9] ms; *nvidia-smi -pm 1*"
	rm "$FAKE_SMI_DIR/delay"
	echo 9 >"$FAKE_SMI_DIR/exit"
	echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." \
		>"$FAKE_SMI_DIR/stdout"
	examine 1 "$GPULEASE"
	finds 'one that fails, in its words' fail nvidia-smi "*couldn't communicate*; *modprobe*"
	finds 'then no GPU is known' warn gpus 'not known without nvidia-smi'
	finds 'nor its mode' warn 'compute mode' 'not known without nvidia-smi'
	finds 'nor who uses it' warn 'use outside leases' 'not known without *'
	[ -e /proc/driver/nvidia/version ] ||
		finds 'nor a driver' fail driver '*; modprobe nvidia*'
	fresh
	touch "$FAKE_SMI_DIR/hang"
	echo 'probe-deadline = 1s' >"$S/conf"
	try timeout "$DEADLINE" "$GPULEASE" --doctor --config "$S/conf"
	is 'one that hangs does not hang --doctor' [ "$rc" -eq 1 ]
	finds 'and is told' fail nvidia-smi '*did not answer within 1 s; *probe-deadline*'
	fresh
	examine 1 env PATH=/usr/bin:/bin "$GPULEASE"
	finds 'none' fail nvidia-smi 'not found in PATH; install the NVIDIA driver*'
}

sick_gpus() {
	fresh
	gpus 4
	run 'GPUs known' 0 '' '' "$GPULEASE" -n 4 true
	{
		echo '= 0, GPU-00000000-1111-2222-3333-444444444444, 00000000:00:00.0, [GPU requires reset], 0, [GPU requires reset], [N/A], Default, Card'
		sed -n '3,4p' "$FAKE_SMI_DIR/gpus"
	} >"$FAKE_SMI_DIR/new" && mv "$FAKE_SMI_DIR/new" "$FAKE_SMI_DIR/gpus"
	echo Prohibited >"$FAKE_SMI_DIR/mode.2"
	echo Exclusive_Process >"$FAKE_SMI_DIR/mode.3"
	echo Enabled >"$FAKE_SMI_DIR/mig.3"
	examine 0 "$GPULEASE"
	finds 'one that needs a reset' warn gpus 'GPU 0 is not leased: *reset*--gpu-reset -i 0*'
	finds 'one that is gone' warn gpus 'GPU 1 was there and is not listed any more; *'
	finds 'the others are known' ok gpus '2 known'
	finds 'MIG is told' ok gpus 'MIG is enabled on 1,*'
	finds 'Prohibited' warn 'compute mode' 'GPU 2 is Prohibited*; nvidia-smi -i 2 -c DEFAULT'
	finds 'Exclusive_Process' ok 'compute mode' 'GPU 3 is Exclusive_Process: one process*'
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
	finds 'the process of a lease is nobody else' ok 'use outside leases' none
	env -i prlimit --locks=unlimited sh -c 'echo $$ >"$0"; exec sleep 1000' "$S/tagless" &
	started="$started $!"
	wait_until '[ -s "$S/tagless" ]'
	printf '0 %s 4000\n' "$(cat "$S/tagless")" >"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'one without any sign of it is' warn 'use outside leases' \
		"GPU 0, leased to ticket *, is also used by pid $(cat "$S/tagless") *"
	is 'which is not none' [ -z "$(printf '%s\n' "$out" | grep 'leases: none')" ]
	printf '0 %s 4000\n0 %s 700\n1 %s 5000\n' "$job_command" "$user" "$user" \
		>"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'a process on a free GPU' warn 'use outside leases' \
		"GPU 1 is used outside gpulease by pid $user ($(id -un), sleep); *"
	finds 'one on a leased GPU' warn 'use outside leases' \
		"GPU 0, leased to ticket *, is also used by pid $user ($(id -un), sleep); *"
	is 'but not the lease'"'"'s own' [ -z "$(printf '%s\n' "$out" |
		grep "pid $job_command ")" ]
	rm "$FAKE_SMI_DIR/procs"
	echo 3000 >"$FAKE_SMI_DIR/base.1"
	examine 0 "$GPULEASE"
	finds 'memory without a process' warn 'use outside leases' \
		'GPU 1 *by a process that nvidia-smi does not show; *'
	release_all job
	fresh
	"$GPULEASE" -n 1 -- sh -c 'env -i prlimit --locks=unlimited sh -c \
		"echo \$\$ >$0; exec sleep 1000" & wait' "$S/child" </dev/null >/dev/null 2>&1 &
	started="$started $!"
	wait_until '[ -s "$S/child" ]'
	printf '0 %s 4000\n' "$(cat "$S/child")" >"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'a descendant is of the lease' ok 'use outside leases' none
	finds 'which is in force' ok leases '1 in force'
	kill -KILL "$(cat "$S/child")"
	fresh
	"$GPULEASE" -n 1 -- sh -c 'sleep 1000 & echo $! >"$1"' sh "$S/left" </dev/null >/dev/null 2>&1
	printf '0 %s 4000\n' "$(cat "$S/left")" >"$FAKE_SMI_DIR/procs"
	examine 0 "$GPULEASE"
	finds 'what a job left behind, too' ok 'use outside leases' none
	kill -KILL "$(cat "$S/left")"
}

# --- the directory -----------------------------------------------------------------------------

files() {
	fresh
	run 'files are there' 0 '' '' "$GPULEASE" -n 2 true
	examine 0 "$GPULEASE"
	finds 'they are in order' ok 'state files' '[0-9]*, all in order'
	finds 'nobody holds a lock' ok locks 'nobody*'
	finds 'nobody waits' ok queue 'nobody waits'
	lease=$GPULEASE_DIR/gpu/GPU-00000001-1111-2222-3333-444444444444.lease
	ln "$lease" "$S/link"
	examine 1 "$GPULEASE"
	finds 'a hard link' fail 'state files' "'$lease' has another name*"
	rm "$S/link"
	printf x | dd of="$lease" bs=1 seek=20 conv=notrunc 2>/dev/null
	examine 0 "$GPULEASE"
	finds 'a damaged one' warn 'state files' '*GPU 1 is damaged; no lease was lost; *mends it'
	run 'the next job' 0 '' '' "$GPULEASE" -n 2 true
	examine 0 "$GPULEASE"
	finds 'has mended it' ok 'state files' '[0-9]*, all in order'
	holder lost -n 2
	for each in "$GPULEASE_DIR"/gpu/GPU-*; do
		printf x | dd of="$each" bs=1 seek=600 conv=notrunc 2>/dev/null
	done
	examine 0 "$GPULEASE"
	finds 'one whose lease is lost' warn 'state files' '*a job lives whose lease is lost*; *'
	release_all lost
	rm "$lease"
	mkdir "$lease"
	examine 1 "$GPULEASE"
	finds 'what is no lease file' fail 'state files' '*leads to no lease file*; *remove*'
	rmdir "$lease"
	run 'made anew' 0 '' '*' "$GPULEASE" -n 2 true
	printf 'ticket/1 x%504s' '' >>"$GPULEASE_DIR/tickets"
	examine 0 "$GPULEASE"
	finds 'a broken ticket' warn queue '*/tickets* cannot be read*; *'
	chmod 0770 "$GPULEASE_DIR" && chmod g+s "$GPULEASE_DIR"
	chmod 0600 "$lease"
	chmod 0664 "$GPULEASE_DIR/history"
	examine 1 "$GPULEASE"
	finds 'the same directory, shared' ok 'state directory' '*, lab form*2770'
	finds 'one closed to the group' fail 'state files' "'$lease' is closed to*&& chmod 0660*"
	finds 'one open to all' fail 'state files' "*/history' is open to everybody*"
	rm "$GPULEASE_DIR/tickets"
	mkdir "$GPULEASE_DIR/tickets"
	examine 1 "$GPULEASE"
	finds 'a queue that cannot be read' fail queue 'cannot read the queue*'
	finds 'without it no leases are known' warn leases 'not known without the queue'
	finds 'no folder is a file' fail 'state files' "*/tickets' is no regular file*"
}

locks() {
	if ! flock -F /dev/null true 2>/dev/null; then
		skip 'a locked GPU' 'there is no flock(1) that becomes its command'
		return
	fi
	fresh
	run 'files are there' 0 '' '' "$GPULEASE" -n 2 true
	flock -F "$GPULEASE_DIR/gpu/slot.1" sleep 1000 &
	locker=$!
	started="$started $locker"
	becomes "$locker" sleep # once it has the lock
	wait_until 'like "*GPU 1 is locked*" "$("$GPULEASE" --doctor)"'
	examine 0 "$GPULEASE"
	finds 'a lock that stays' warn locks \
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
	finds 'litter is counted, and nothing that somebody holds' ok litter \
		"$((before + 4)) files*"
	is 'which was none' [ "$before" -eq 0 ]
	(cd "$GPULEASE_DIR/live" && seq -f 'tmp.%.0f' 1000 | xargs touch)
	examine 0 "$GPULEASE"
	finds 'much of it' warn litter '100[0-9] files*; *'
	is 'nothing of it was touched' [ -p "$GPULEASE_DIR/live/0123456789abcdef" ]
	release_all some more
}

# Everything in the state directory, but for the last answer of nvidia-smi.
fingerprint() {
	(cd "$GPULEASE_DIR" && find . ! -name probe -type f -exec cksum {} + | sort &&
		find . ! -path ./probe ! -path . -exec ls -dli {} + | sort)
}

nothing_changes() {
	fresh
	run 'files are there' 0 '' '' "$GPULEASE" -n 2 true
	holder some -n 1
	waiter more -n 2
	fingerprint >"$S/before"
	try "$GPULEASE" --doctor
	fingerprint >"$S/after"
	is 'nothing is changed' cmp -s "$S/before" "$S/after"
	release_all some more
}

directories() {
	fresh
	examine 1 env GPULEASE_DIR="$S/none" "$GPULEASE"
	finds 'one that is not there' fail 'state directory' \
		"cannot open *'$S/none'*; mkdir -m 2770 $S/none"
	finds 'then its file system is not known' warn 'file system' 'not known without *'
	finds 'nor its room' warn 'free space' 'not known without *'
	finds 'nor its files' warn 'state files' 'not known without the state directory'
	finds 'nor its leases' warn leases 'not known without the state directory'
	finds 'nor its locks' warn locks 'not known without *'
	finds 'nor its pauses' warn 'paused gpus' 'not known without *'
	finds 'nor its queue' warn queue 'not known without *'
	finds 'nor its litter' warn litter 'not known without *'
	finds 'the GPUs are' ok gpus '2 known'
	chmod 2777 "$GPULEASE_DIR"
	examine 1 "$GPULEASE"
	finds 'one that all may write to' fail 'state directory' \
		"*everybody may write there; chmod o-w $GPULEASE_DIR"
	chmod g-s,o-w "$GPULEASE_DIR"
	examine 1 "$GPULEASE"
	finds 'one that hands its group to nobody' fail 'state directory' \
		"*; chmod g+s $GPULEASE_DIR"
	chmod 0700 "$GPULEASE_DIR"
	printf 'margin = 1G\n' >"$S/conf"
	examine 0 "$GPULEASE" --config "$S/conf"
	finds 'a configuration' ok configuration "'$S/conf', 1 key set"
	printf 'nvidia-smi = /none\nsize = 3\n' >"$S/conf"
	examine 1 "$GPULEASE" --config "$S/conf"
	finds 'one with an error' fail configuration "*$S/conf*2*size*"
	finds 'does not stop the others, and nothing of it counts' ok gpus '2 known'
}

# --- as root ---------------------------------------------------------------------------------

# mounted TEXT OPTIONS: an own file system with these options at $S/small.
mounted() {
	mkdir -p "$S/small"
	mount -t tmpfs -o "$1,mode=0700" tmpfs "$S/small"
}

file_systems() {
	fresh
	mounted size=900k
	examine 0 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'a file system' ok 'file system' '*is on tmpfs'
	finds 'with little room' warn 'free space' '*KiB*; *'
	umount "$S/small"
	mounted size=9m,nr_inodes=50
	examine 0 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'with few inodes' warn 'free space' '[89] MiB and [0-9]* inodes; *'
	mount -o remount,ro "$S/small"
	examine 1 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'one that is read-only' fail 'state directory' '*; mount its file system *'
	umount "$S/small"
	mount -t ramfs -o mode=0700 ramfs "$S/small"
	examine 0 env GPULEASE_DIR="$S/small" "$GPULEASE"
	finds 'one without holes' warn 'file system' 'this file system has no holes*'
	umount "$S/small"
	examine 0 "$GPULEASE"
	finds 'proc shows all' ok proc 'shows all processes'
	if unshare -pf --mount-proc mount -o remount,hidepid=2 /proc 2>/dev/null; then
		examine 0 unshare -pf --mount-proc sh -c \
			'mount -o remount,hidepid=2 /proc && exec "$0" "$@"' "$GPULEASE"
		finds 'hidepid is seen' warn proc 'mounted with hidepid=*; *'
	else
		skip 'hidepid is seen' 'proc cannot be mounted here'
	fi
}

kernels() {
	for way in enosys eperm; do
		try "$TOOLS/nopidfd" "$way" "$GPULEASE" --doctor
		finds "no pidfd: $way" warn pidfd 'pidfd_open: *; *5.3*'
	done
}

# user COMMAND…: as a user without a name, who is in no group
user() {
	setpriv --reuid 54321 --regid 54321 --clear-groups "$@"
}

installed() {
	unset GPULEASE_DIR FAKE_SMI_DIR
	overlay /etc
	mkdir "$M/bin" "$M/state" "$M/home"
	chown 54321 "$M/home"
	cp "$GPULEASE" "$M/bin/gpulease"
	cp "$CLI/../bin/nvidia-smi" "$M/bin/nvidia-smi"
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
	finds 'the hardened form' ok 'state directory' \
		"'$M/state', hardened form, owner root, group 54320, mode 2770"
	finds 'its configuration' ok configuration "'/etc/gpulease.conf', 2 keys set"
	finds 'its nvidia-smi' ok nvidia-smi "'$M/bin/nvidia-smi' took *"
	examine 0 "$M/bin/gpulease"
	finds 'for root, too' ok 'state directory' '*, hardened form, *'
	examine_quick 1 user setpriv --no-new-privs "$M/bin/gpulease"
	finds 'without effect' fail set-id '*no_new_privs*; start gpulease outside of it'
	finds 'so the directory is closed' fail 'state directory' \
		"cannot use *no_new_privs*; start gpulease outside of it"
	finds 'yet nvidia-smi is looked at' ok nvidia-smi '*took*'
	chgrp 54322 "$M/state"
	examine 1 user "$M/bin/gpulease"
	finds 'another group than the directory' fail set-id \
		"*group 54320, but *group 54322; chgrp 54320 $M/state*"
	finds 'which the directory says, too' fail 'state directory' \
		"*; chgrp 54320 $M/state"
	chgrp 54320 "$M/state"
	chmod 2777 "$M/state"
	examine 1 user "$M/bin/gpulease"
	finds 'a wrong mode' fail 'state directory' "*; chmod 2770 $M/state"
	chmod 2770 "$M/state"
	chmod 0755 "$M/bin/gpulease"
	examine 1 user "$M/bin/gpulease"
	finds 'a user who is not in the group' fail 'state directory' \
		"cannot open *; usermod -aG 54320 54321, and log in anew"
	cp "$M/bin/gpulease" "$M/copy"
	chmod 2755 "$M/bin/gpulease"
	before=$PATH PATH=$M/bin:$PATH
	run 'a copy of the installed program' 125 '' \
		"gpulease: cannot use *is not the installed one; use '$M/bin/gpulease'" \
		user "$M/copy" -n 0 true
	examine 1 user "$M/copy"
	finds '… likewise' fail 'state directory' \
		"*is not the installed one; use '$M/bin/gpulease'"
	PATH=$before
	cp /etc/group "$S/group"
	printf 'lent:x:54320:mallory,trudy\n' >>/etc/group
	examine 0 user "$M/bin/gpulease"
	finds 'members of the group' warn set-id \
		'group lent has members, *: mallory, trudy; *gpasswd -d USER lent'
	cat "$S/group" >/etc/group
	chmod 0755 "$M/bin/gpulease"
	try user "$M/bin/gpulease" --doctor --json
	is 'JSON without a directory' [ "$("$TOOLS/jsoncheck" state_directory <"$S/out")" = null ]
	rm -r "$M/state"
	examine 0 user env XDG_STATE_HOME="$M/home" "$M/bin/gpulease"
	finds 'no shared directory' warn 'state directory' \
		"'$M/home/gpulease', private form, *; make '$M/state' with sudo make install"
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
	skip 'the hardened form' "$own_mounts_why"
elif grep -q '^NoNewPrivs:.*1' /proc/self/status; then
	skip 'the hardened form' 'started under no_new_privs'
elif is_sanitized "$GPULEASE"; then
	skip 'the hardened form' 'built with sanitizers'
else
	installed
fi
finish

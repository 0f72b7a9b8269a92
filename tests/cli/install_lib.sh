# shellcheck shell=sh disable=SC2034,SC2154
# What the tests of installations share; read in after lib.sh and own_mounts.sh.  The user of
# these tests has the number $USER_ID, is in no group, and has a home directory.
#
#	at_source "$@"	first: a mount namespace if there can be one, and scratch; in the source
#			tree, $build being where its program is made
#	pristine DIR…	puts overlays over them, and takes an installed gpulease out of those:
#			/etc, /var/lib and /usr/local are among them or below them
#	with_gpus	a driver for all, as an administrator would configure it

USER_ID=61001

at_source() {
	own_mounts "$@"
	scratch
	cd "$CLI/../.." || bail 'no source'
	# the variables that an outer make passes down are for that make
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
	# $GPULEASE may be one that is installed
	build=$(dirname "$GPULEASE")
	[ -d "$build/o" ] || build=${TOOLS%/tests/tools}
	build=${build#"$PWD"/} # for make a path must not have a blank
}

# files_of_machine: all files that an installation could leave.  Other programs write to /var/lib
# meanwhile, and an overlay shows that, so there only names with gpulease count.
files_of_machine() {
	find /usr/local /usr/bin /usr/share/man /usr/share/doc /usr/share/bash-completion \
		/usr/share/zsh /usr/share/fish /etc \
		! -type d ! -path '/etc/*-' ! -path '/etc/.pwd.lock' 2>/dev/null | sort
	find /var/lib -name '*gpulease*' ! -path '/var/lib/apt/*' ! -path '/var/lib/dpkg/*' \
		2>/dev/null | sort
	getent group | sort
}

pristine() {
	# a state directory that is a mount of its own would shine through
	! mountpoint -q /var/lib/gpulease 2>/dev/null || umount -l /var/lib/gpulease
	overlay "$@"
	rm -rf /var/lib/gpulease*
	rm -rf /usr/local/bin/gpulease /usr/local/bin/gpulease-simjob /usr/local/lib/gpulease
	find /usr/local/share \( -name 'gpulease*' -o -name _gpulease \) -exec rm -rf {} +
	! getent group gpulease >/dev/null || groupdel gpulease
	unset GPULEASE_SIM
	mkdir -m 0700 "$M/home"
	chown "$USER_ID:$USER_ID" "$M/home"
}

with_gpus() {
	mkdir -m 1777 "$M/smi"
	cp "$CLI/../bin/nvidia-smi" "$M/fake-nvidia-smi"
	chmod 0755 "$M/fake-nvidia-smi"
	cat >"$M/nvidia-smi" <<-END
		#!/bin/sh
		FAKE_SMI_DIR=$M/smi exec $M/fake-nvidia-smi "\$@"
	END
	chmod 0755 "$M/nvidia-smi"
	cat >"$M/smi/gpus" <<-END
		0 GPU-11111111-0000-0000-0000-000000000000 00000000:01:00.0 24576 Fake GPU
		1 GPU-22222222-0000-0000-0000-000000000000 00000000:02:00.0 24576 Fake GPU
	END
}

# configure: the driver, in the settings that were just installed.
configure() {
	echo "nvidia-smi = $M/nvidia-smi" >>/etc/gpulease.conf
}

# as_user [-g GROUP] COMMAND…
as_user() {
	as_groups=--clear-groups
	if [ "$1" = -g ]; then
		as_groups=--groups=$(getent group "$2" | cut -d : -f 3)
		shift 2
	fi
	(cd / && exec setpriv --reuid "$USER_ID" --regid "$USER_ID" "$as_groups" -- \
		env HOME="$M/home" XDG_STATE_HOME="$M/home/state" TMPDIR="$M/home" "$@")
}

# hold NAME PROGRAM [-g GROUP]: starts a job of the user that runs until `let_go NAME`.
hold() {
	hold_at=$M/home/$1 hold_program=$2
	shift 2
	mkfifo -m 0666 "$hold_at.hold"
	as_user "$@" "$hold_program" -n 1 -- sh -c 'exec 3<>"$1.hold"; echo >"$1.runs"
		read -r status <&3; exit "$status"' job "$hold_at" >"$hold_at.log" 2>&1 &
	hold_pid=$!
	started="$started $hold_pid"
	wait_until "[ -e '$hold_at.runs' ]" || bail "the job does not start: $(cat "$hold_at.log")"
}

# let_go NAME: sets $rc to the exit status of the job.
let_go() {
	echo 7 1<>"$M/home/$1.hold"
	wait "$hold_pid"
	rc=$?
	rm -f "$M/home/$1".*
}

# serves_user PROGRAM TEXT: results, good if the program runs a job for a user who is in no group
# and cannot read the state directory.
serves_user() {
	run "$2: a user gets a GPU" 0 '[01]' '' \
		as_user "$1" -n 1 -- sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
	run "$2: the exit status is that of the command" 7 '' '' as_user "$1" -n 1 -- \
		sh -c 'exit 7'
	run "$2: the command is in no group of gpulease" 0 "$USER_ID
$USER_ID" '' as_user "$1" -n 1 -- sh -c 'id -G; sed -n "s/^Gid:.*	//p" /proc/self/status'
	run "$2: the user cannot look into the directory" 2 '' '*Permission denied*' \
		as_user ls /var/lib/gpulease
	is "$2: yet the history in the directory has the job" test -s /var/lib/gpulease/history
}

# watch: notes the group and mode of $program in $S/seen until $S/enough exists: the program must
# exist all the time, with one group and mode.
watch() {
	while [ ! -e "$S/enough" ]; do
		stat -c %G:%a "$program"
	done >"$S/seen" 2>&1
}

# shellcheck shell=sh
# The set-group-ID form, for the scripts that try it as several users.  Read in after lib.sh:
#
#	. "$CLI/hardened_lib.sh"
#	hardened 'TEXT' "$@"	# instead of scratch; ends the script where it cannot be
#
# These files are visible in the script's own mount namespace only:
#
#	$M/bin		the program, root:$GROUP 2755, a copy of each test tool, nvidia-smi
#	$M/state	the state directory, named by an /etc/gpulease.conf of the script's own
#	$S/open		a folder in which every user may write
#
#	by N COMMAND…	a function of lib.sh; user N (1, 2, 3) starts its gpulease
#	as N COMMAND…	any command as that user
#	teller PROGRAM	$M/bin/PROGRAM tells its rights from now on; the real one is $S/PROGRAM
#	$HERS		what it tells to user 2 of its groups if it has only that of the user
#	$U1 $U2 $U3	for `run` and the like: gpulease as that user; $ROOT: as root
#
# The users are bare numbers: no account is needed, and none of them is in the group.
# shellcheck disable=SC2034,SC2119,SC2120,SC2154 # variables of the scripts that read this in

# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"

GROUP=54320 UID_BASE=54320

hardened() {
	hardened_text=$1
	shift
	if ! own_mounts "$@"; then
		skip "$hardened_text" "$own_mounts_why"
		finish
	fi
	if grep -q '^NoNewPrivs:.*1' /proc/self/status; then
		skip "$hardened_text" 'no_new_privs is set: no program gets more rights'
		finish
	fi
	if is_sanitized "$GPULEASE"; then
		skip "$hardened_text" 'built with sanitizers'
		finish
	fi
	scratch
	unset GPULEASE_SIM
	umask 022
	# root's own PATH may name folders that users cannot enter
	PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	overlay /etc
	mkdir "$M/bin" "$S/open"
	chmod 0777 "$S" "$S/open" "$S/tmp"
	for hardened_tool in "$TOOLS"/*; do
		[ ! -f "$hardened_tool" ] || install -m 0755 "$hardened_tool" "$M/bin/"
	done
	TOOLS=$M/bin
	install_hardened
	# commands of users write their temporary files here
	export TMPDIR="$S/open"
	cd "$S/open" || bail 'no place'
	# commands of other users must be able to open the FIFOs that lib.sh makes
	umask 0
}

install_hardened() {
	cp "$GPULEASE" "$M/bin/gpulease"
	# beside the program, as in the folder of a build
	for hardened_part in slurm view engine; do
		install -m 0755 "${GPULEASE%/*}/gpulease-$hardened_part" "$M/bin/"
	done
	chgrp "$GROUP" "$M/bin/gpulease"
	chmod 2755 "$M/bin/gpulease"
	mv "$M/bin/fakesmi" "$M/bin/nvidia-smi"
	# the same mode as that of make install
	mkdir "$M/state"
	chgrp "$GROUP" "$M/state"
	chmod 2770 "$M/state"
	configure
	for hardened_user in 1 2 3; do
		printf '#!/bin/sh\nexec setpriv --reuid=%d --regid=%d --clear-groups -- %s "$@"\n' \
			$((UID_BASE + hardened_user)) $((UID_BASE + hardened_user)) \
			"$M/bin/gpulease" >"$M/bin/gpulease.$hardened_user"
		chmod 0755 "$M/bin/gpulease.$hardened_user"
	done
	U1=$M/bin/gpulease.1 U2=$M/bin/gpulease.2 U3=$M/bin/gpulease.3
	ROOT=$M/bin/gpulease GPULEASE=$ROOT
}

# configure [LINE…]: the configuration: the lines that the tests need, then these lines.
configure() {
	printf '%s\n' "directory = $M/state" "nvidia-smi = $M/bin/nvidia-smi" "$@" \
		>/etc/gpulease.conf
	chmod 0644 /etc/gpulease.conf
}

# driver LINE…: what the nvidia-smi of the tests does from now on; see tests/tools/fakesmi.c.
driver() {
	printf '%s\n' "$@" >"$M/bin/nvidia-smi.conf"
	chmod 0644 "$M/bin/nvidia-smi.conf"
}

by() {
	by_before=$GPULEASE
	GPULEASE=$M/bin/gpulease.$1
	shift
	"$@"
	by_rc=$?
	GPULEASE=$by_before
	return $by_rc
}

as() {
	as_uid=$((UID_BASE + $1))
	shift
	setpriv --reuid="$as_uid" --regid="$as_uid" --clear-groups -- "$@"
}

# It is no shell script: some shells drop such a group.
teller() {
	mv "$M/bin/$1" "$S/$1"
	cat >"$M/bin/$1" <<-END
		#!$(command -v awk) -f
		BEGIN {
			while ((getline line <"/proc/self/status") > 0)
				if (line ~ /^(Gid|Groups|Umask):/)
					print line
			print "path " ENVIRON["LD_LIBRARY_PATH"] " " ENVIRON["TMPDIR"]
			for (i = 1; i < ARGC; i++)
				print "word " ARGV[i]
			print "opens " ((getline line <"$M/state/tickets") >= 0)
			system("stat -L -c 'stdin %u:%g' /proc/self/fd/0; echo descriptors /proc/self/fd/*")
			exit
		}
	END
	chmod 0755 "$M/bin/$1"
	teller_user=$((UID_BASE + 2)) teller_tab=$(printf '\t')
	HERS="Gid:$teller_tab$teller_user$teller_tab$teller_user$teller_tab$teller_user$teller_tab$teller_user
Groups:$teller_tab "
}

# own_guards: the pids of the guards of user 1's time limits that belong to this script
own_guards() {
	for pid in $(pgrep -u $((UID_BASE + 1)) -x gpulease-limit); do
		! like "$M/*" "$(readlink "/proc/$pid/exe")" || echo "$pid"
	done
}

# lease_wait NAME: until the job runs, or the script ends.
lease_wait() {
	wait_until "runs '$1'" || bail "job $1 does not start: $(cat "$S/$1.err")"
}

# goes_on TEXT: a result, good if an unrelated user gets all GPUs.
goes_on() {
	run "$1" 0 '' '*' "$U3" -n 2 true
}

# intact TEXT: a result, good if everything in the state directory can be read.
intact() {
	try "$U3" --status --json
	intact_why=$("$TOOLS/jsoncheck" <"$S/out")
	if [ "$rc" -eq 0 ] && [ -z "$intact_why$err" ]; then
		ok "$1"
	else
		not_ok "$1" "exit status $rc" "$intact_why" "stderr: $err"
	fi
}

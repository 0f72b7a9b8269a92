#!/bin/sh
# What `make install` and `make uninstall` do.
#
#	setup.sh install | uninstall
#
# From make: BUILT, the program, beside which gpulease-simjob lies; PREFIX, DESTDIR, MODE, GROUP as its user gave them.  Three
# forms: hardened (the program is set-group-ID, nobody need be in the group), lab (the members
# of a group share the directory and trust each other), private (the program alone).  Nothing
# is changed before all that can be refused has been looked at.

set -eu

: "${BUILT:?}" "${PREFIX:?}" "${DESTDIR=}" "${MODE=}" "${GROUP=}"
OWN_GROUP=gpulease
STATE=/var/lib/gpulease
CONF=/etc/gpulease.conf
bin=$DESTDIR$PREFIX/bin
share=$DESTDIR$PREFIX/share
state=$DESTDIR$STATE
conf=$DESTDIR$CONF
source=$(cd "$(dirname "$0")/../.." && pwd)
umask 022

die() {
	echo "gpulease: $*" >&2
	exit 1
}

is_root() {
	[ "$(id -u)" -eq 0 ]
}

# --- groups ------------------------------------------------------------------------------

# group_line NAME: its line of the group table.
group_line() {
	if command -v getent >/dev/null 2>&1; then
		getent group "$1"
	else
		grep "^$1:" /etc/group
	fi
}

made_group=
make_group() {
	group_line "$1" >/dev/null && return
	groupadd --system "$1" 2>/dev/null || addgroup -S "$1" 2>/dev/null ||
		die "cannot make the group $1"
	made_group=$1
}

# --- the state directory -----------------------------------------------------------------

# Whether a process of this machine, in a container or not, has a FIFO open in there: each
# job holds one as long as it lives, and each that waits does.
has_jobs() {
	# shellcheck disable=SC2012 # it reads links, which find of busybox cannot
	ls -l /proc/[0-9]*/fd 2>/dev/null |
		sed -n 's,.* -> .*/\(\(live\|bell\)/[^/ ]*\)$,\1,p' | sort -u |
		while read -r fifo; do
			[ ! -p "$state/$fifo" ] || echo yes
		done | grep -q yes
}

# state_is GROUP: whether it is as gpulease wants it for that group.
state_is() {
	[ "$(stat -L -c '%U:%G:%a' "$state")" = "root:$1:2770" ]
}

# Whether there is one that must make room: others than the new group wants may own what is in
# there, or have descriptors and hard links of it, which stay good whatever chgrp says.
must_renew() {
	[ -e "$state" ] && ! state_is "$1"
}

# is_own: whether it is of the group that nobody is to be in, but for the program
is_own() {
	[ "$(stat -L -c %G "$state")" = "$OWN_GROUP" ]
}

# check_state GROUP
check_state() {
	must_renew "$1" || return 0
	lab_form=
	is_own || lab_form=yes
	was="of $(stat -L -c '%U:%G, mode %a' "$state")"
	[ ! -h "$state" ] || die "$STATE is a link to a directory $was; it has to be of" \
		"root:$1, mode 2770, and empty"
	! has_jobs || die "jobs run on $STATE, which is $was; try again when none does," \
		"or keep this form: make install${lab_form:+ MODE=lab}"
}

# make_state GROUP: with the name of the old one, if any, in $kept.
kept=
make_state() {
	if must_renew "$1"; then
		kept=$STATE.old number=1
		while [ -e "$DESTDIR$kept" ]; do
			kept=$STATE.old.$((number += 1))
		done
		# closed to new jobs, and looked at again
		mode=$(stat -c %a "$state")
		chmod 0700 "$state"
		if has_jobs; then
			chmod "$mode" "$state"
			die "a job has just started on $STATE; try again when none runs"
		fi
		mv "$state" "$DESTDIR$kept"
	fi
	[ -e "$state" ] || install -d -m 2770 -o root -g "$1" "$state"
}

# --- installing --------------------------------------------------------------------------

# The new program takes the place of the old one in one step: at no time is there none or
# one of another mode, and what runs is not disturbed.
# install_program [GROUP]: set-group-ID where a group is given.
install_program() {
	install -s -m 0755 "$BUILT-simjob" "$bin/gpulease-simjob"
	new=$bin/.gpulease.new.$$
	trap 'rm -f "$new"' EXIT
	install -s -m 0755 "$BUILT" "$new"
	if [ $# -gt 0 ]; then
		chown "root:$1" "$new"
		chmod 2755 "$new"
	elif is_root; then
		chown root:root "$new"
	fi
	mv -f "$new" "$bin/gpulease"
	trap - EXIT
}

install_texts() {
	install -d "$bin" "$share/bash-completion/completions"
	for page in "$source"/man/*.[157]; do
		install -d "$share/man/man${page##*.}"
		install -m 0644 "$page" "$share/man/man${page##*.}"
	done
	install -m 0644 "$source/gpulease/completion/gpulease.bash" \
		"$share/bash-completion/completions/gpulease"
}

install_conf() {
	[ -e "$conf" ] || [ -h "$conf" ] ||
		install -D -m 0644 "$source/gpulease/packaging/gpulease.conf" "$conf"
}

undo_line() {
	echo "To undo${1:+, when no job runs}: make uninstall PREFIX=$PREFIX${1:+; rm -r $1}$(
		[ -z "$made_group" ] || echo "; groupdel $made_group")"
}

say_kept() {
	[ -z "$kept" ] || printf ' The former one is now %s.' "$kept"
}

# What comes of a program that not root has installed: it takes a shared directory that is there.
say_private() {
	if [ ! -e "$state" ]; then
		echo "Installed in $PREFIX, not as root: without the shared $STATE."
		echo "It coordinates only your own jobs until root runs make install."
	elif [ -w "$state" ]; then
		echo "Installed in $PREFIX, not as root. It uses the shared $STATE that is there."
	else
		echo "Installed in $PREFIX, not as root. The shared $STATE is not open to it:"
		echo "use the gpulease that is installed for all, ask for its group $(
			stat -L -c %G "$state"), or set GPULEASE_DIR to a directory of your own."
	fi
}

install_private() {
	[ -n "$DESTDIR" ] || [ ! -e "$state" ] || ! is_root ||
		die "$STATE is there, and is used where it is: for MODE=private first" \
			"make uninstall, and when no job runs: rm -r $STATE"
	install_texts
	install_program
	if is_root || [ -n "$DESTDIR" ]; then
		echo "Installed in $DESTDIR$PREFIX: the program alone (MODE=private)."
		echo "Each user's jobs wait for each other, not for those of other users."
	else
		say_private
	fi
	undo_line ''
}

install_lab() {
	[ "${GROUP:-none}" != "$OWN_GROUP" ] || die "GROUP=$OWN_GROUP is the group of" \
		"MODE=hardened, which nobody is in; name the one of those who share the GPUs"
	[ -n "$GROUP" ] || [ ! -e "$state" ] || ! is_own ||
		die "$STATE is that of MODE=hardened; for MODE=lab name the group of those who" \
			"share the GPUs, GROUP=NAME, or keep this form: make install"
	# one that is there stays as the administrator has it, unless another group is named
	if [ -z "$GROUP" ] && [ -e "$state" ]; then
		GROUP=$(stat -L -c %G "$state")
	else
		[ -n "$GROUP" ] || die "MODE=lab takes GROUP=NAME, the group of those who share the GPUs"
		check_state "$GROUP"
		make_group "$GROUP"
		make_state "$GROUP"
	fi
	install_texts
	install_conf
	install_program
	echo "Installed in $PREFIX, with $CONF and $STATE of group $GROUP.$(say_kept)"
	echo "Its members trust each other; add each user, who logs in anew: usermod -aG $GROUP USER"
	undo_line "$STATE${kept:+ $kept}"
}

# Members from times of the lab form could still forge what is in the directory.
warn_of_members() {
	members=$(group_line "$OWN_GROUP" | cut -d : -f 4)
	[ -z "$members" ] || echo "gpulease: warning: members of group $OWN_GROUP can forge what" \
		"is in $STATE: $members; take each out with gpasswd -d USER $OWN_GROUP, and" \
		"when no job runs: rm -r $STATE, and make install again" >&2
}

install_hardened() {
	check_state "$OWN_GROUP"
	make_group "$OWN_GROUP"
	warn_of_members
	make_state "$OWN_GROUP"
	install_texts
	install_conf
	install_program "$OWN_GROUP"
	made_group=$OWN_GROUP # its own, now or from an earlier time
	echo "Installed in $PREFIX for all users: gpulease is set-group-ID $OWN_GROUP, which nobody is in."
	echo "Settings: $CONF. Nothing but gpulease opens $STATE.$(say_kept)"
	undo_line "$STATE${kept:+ $kept}"
}

# As for a package, or an image: the groups of this machine are not those of that one, unless
# they are there already.
install_staged() {
	group=${GROUP:-$OWN_GROUP}
	install_texts
	install_conf
	if ! is_root || ! group_line "$group" >/dev/null; then
		install_program
		echo "Installed below $DESTDIR$PREFIX, not set-group-ID: that takes root and a group $group."
		echo "Left to the package: $STATE, root:$group 2770$(
			[ "$MODE" = lab ] || echo "; $PREFIX/bin/gpulease, root:$group 2755")."
	else
		[ -e "$state" ] || install -d -m 2770 -o root -g "$group" "$state"
		if [ "$MODE" = lab ]; then
			install_program
		else
			install_program "$group"
		fi
		echo "Installed below $DESTDIR$PREFIX, with $STATE (MODE=$MODE)."
		echo "The group $group has to have the number $(stat -c %g "$state") there, too."
	fi
	echo "To undo: make uninstall PREFIX=$PREFIX DESTDIR=$DESTDIR"
}

# check_writable DIRECTORY: or what of its path there is.
check_writable() {
	at=$1
	until [ -e "$at" ]; do
		at=$(dirname "$at")
	done
	[ -w "$at" ] || die "cannot write to $at; try: sudo make install, or" \
		"make install PREFIX=\$HOME/.local"
}

# The hardened form has a group of its own, and nobody is to be in it.
refuse_group() {
	[ -z "$GROUP" ] || die "GROUP=$GROUP is for MODE=lab; without it the group is" \
		"$OWN_GROUP, and nobody is in it"
}

install_all() {
	case $GROUP in
	-* | *[!A-Za-z0-9_.-]*) die "GROUP=$GROUP: that is no name of a group" ;;
	esac
	case $MODE in
	'') refuse_group ;;
	hardened | lab | private)
		[ "$MODE" = lab ] || refuse_group
		[ "$MODE" = private ] || is_root || [ -n "$DESTDIR" ] ||
			die "MODE=$MODE takes root; without it: MODE=private"
		;;
	*) die "MODE=$MODE: it is hardened, lab or private" ;;
	esac
	for directory in "$bin" "$share/bash-completion/completions" "$share/man/man1"; do
		is_root || check_writable "$directory"
	done
	if [ -z "$MODE" ] && { is_root || [ -n "$DESTDIR" ]; }; then
		MODE=hardened
	fi
	if [ "${MODE:=private}" != private ] && [ -n "$DESTDIR" ]; then
		install_staged
	else
		"install_$MODE"
	fi
}

# --- removing ----------------------------------------------------------------------------

uninstall() {
	rm -f "$bin/gpulease" "$bin/gpulease-simjob" "$share/bash-completion/completions/gpulease" \
		"$DESTDIR$PREFIX/lib/gpulease/bin/srun"
	for page in "$source"/man/*.[157]; do
		rm -f "$share/man/man${page##*.}/${page##*/}"
	done
	rmdir "$DESTDIR$PREFIX/lib/gpulease/bin" "$DESTDIR$PREFIX/lib/gpulease" 2>/dev/null || :
	[ -n "$DESTDIR" ] || is_root || return 0
	rest='' again=''
	if cmp -s "$conf" "$source/gpulease/packaging/gpulease.conf"; then
		rm -f "$conf"
	elif [ -e "$conf" ]; then
		echo "$CONF was left, it has been changed: rm $CONF"
	fi
	for directory in "$state" "$state".old*; do
		[ ! -d "$directory" ] || rest="$rest $directory"
	done
	[ -n "$rest" ] || return 0
	[ -n "$DESTDIR" ] || ! group_line "$OWN_GROUP" >/dev/null || again="; groupdel $OWN_GROUP"
	echo "$STATE was left, jobs may run on its leases; when none does: rm -r$rest$again"
}

case ${1-} in
install) install_all ;;
uninstall) uninstall ;;
*) die 'usage: setup.sh install | uninstall' ;;
esac

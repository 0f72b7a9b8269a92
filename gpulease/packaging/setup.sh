#!/bin/sh
# Installs and uninstalls gpulease, for `make install`, `make install-srun` and `make uninstall`.
#
#	setup.sh install | install-srun | uninstall
#
# make sets BUILT, the program, with -simjob, -slurm, -view and -engine beside it, and passes on
# PREFIX, DESTDIR, MODE, GROUP and OVER_SLURM.  There are three forms: hardened (the program is set-group-ID, and its group has no
# members), lab (the members of a group share the directory and trust each other) and private (the
# program alone).  All checks come before the first change.

set -eu

: "${BUILT:?}" "${PREFIX:?}" "${DESTDIR=}" "${MODE=}" "${GROUP=}" "${OVER_SLURM=}"
OWN_GROUP=gpulease
STATE=/var/lib/gpulease
CONF=/etc/gpulease.conf
bin=$DESTDIR$PREFIX/bin
lib=$DESTDIR$PREFIX/lib/gpulease
share=$DESTDIR$PREFIX/share
state=$DESTDIR$STATE
conf=$DESTDIR$CONF
source=$(cd "$(dirname "$0")/../.." && pwd)
sample=$source/gpulease/packaging/gpulease.conf
umask 022

# shellcheck source=gpulease/packaging/state.sh
. "$source/gpulease/packaging/state.sh"

die() {
	echo "gpulease: $*" >&2
	exit 1
}

# completion_of SHELL: where that shell looks for the completion; a package has a place of its own
# for zsh
completion_of() {
	case $1 in
	bash) echo "$share/bash-completion/completions/gpulease" ;;
	zsh) echo "$share/zsh/${ZSH_FUNCTIONS:-site-functions}/_gpulease" ;;
	fish) echo "$share/fish/vendor_completions.d/gpulease.fish" ;;
	esac
}

is_root() {
	[ "$(id -u)" -eq 0 ]
}

# --- groups ------------------------------------------------------------------------------

# group_line NAME: prints the line of group NAME in the group table; fails if there is none.
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
		die "cannot create the group $1; create it by hand, and try again"
	made_group=$1
}

# --- the state directory -----------------------------------------------------------------

# Whether a job runs or waits: each holds a FIFO of the directory open.  Sees the processes of this
# machine, in containers, too.
has_jobs() {
	# shellcheck disable=SC2012 # it reads links, which find of busybox cannot
	ls -l /proc/[0-9]*/fd 2>/dev/null |
		sed -n 's,.* -> .*/\(\(live\|bell\)/[^/ ]*\)$,\1,p' | sort -u |
		while read -r fifo; do
			[ ! -p "$state/$fifo" ] || echo yes
		done | grep -q yes
}

# state_is GROUP: whether the directory has the owner, the group and the mode for GROUP.
state_is() {
	[ "$(stat -L -c '%U:%G:%a' "$state")" = "root:$1:2770" ]
}

# must_renew GROUP: whether a directory exists that GROUP cannot take over.  Users outside the group
# may own files in it, or have descriptors and hard links of them; chgrp would not change that.
must_renew() {
	[ -e "$state" ] && ! state_is "$1"
}

# is_own: whether the directory has the group of the hardened form, which has no members
is_own() {
	[ "$(stat -L -c %G "$state")" = "$OWN_GROUP" ]
}

# check_state GROUP: exits with a message if the directory cannot be made ready for GROUP now.
check_state() {
	must_renew "$1" || return 0
	lab_form=
	is_own || lab_form=yes
	was="of $(stat -L -c '%U:%G, mode %a' "$state")"
	[ ! -h "$state" ] || die "$STATE is a link to a directory $was; make it" \
		"root:$1, mode 2770, and empty"
	! has_jobs || die "jobs run on $STATE, which is $was; try again when none does," \
		"or keep this form: make install${lab_form:+ MODE=lab}"
}

# make_state GROUP: creates the directory, and renames a former one, to the name in $kept.
kept=
make_state() {
	if must_renew "$1"; then
		kept=$STATE.old number=1
		while [ -e "$DESTDIR$kept" ]; do
			kept=$STATE.old.$((number += 1))
		done
		# close it to new jobs, and then look again: a job may have started since check_state
		mode=$(stat -c %a "$state")
		chmod 0700 "$state"
		if has_jobs; then
			chmod "$mode" "$state"
			die "a job has just started on $STATE; try again when none runs"
		fi
		mv "$state" "$DESTDIR$kept"
	fi
	if [ ! -e "$state" ]; then
		new_state "$state" "$1"
	elif is_own; then
		# in the lab form the members could put a link in the place of a file meanwhile
		fill_state "$state" "$1"
	fi
}

# --- installing --------------------------------------------------------------------------

# install_program [GROUP]: installs the programs; with GROUP gpulease is set-group-ID.  The rename
# replaces the old program in one step, so that there is always a complete one with the right mode,
# and running jobs keep theirs.
install_program() {
	install -s ${STRIP:+"--strip-program=$STRIP"} -m 0755 "$BUILT-simjob" "$bin/gpulease-simjob"
	install -d "$lib"
	for name in slurm view engine; do
		install -s ${STRIP:+"--strip-program=$STRIP"} -m 0755 "$BUILT-$name" "$lib/gpulease-$name"
	done
	new=$bin/.gpulease.new.$$
	trap 'rm -f "$new"' EXIT
	install -s ${STRIP:+"--strip-program=$STRIP"} -m 0755 "$BUILT" "$new"
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
	install -d "$bin"
	for page in "$source"/man/*.[1578]; do
		install -d "$share/man/man${page##*.}"
		install -m 0644 "$page" "$share/man/man${page##*.}"
	done
	for shell in bash zsh fish; do
		install -D -m 0644 "$source/gpulease/completion/gpulease.$shell" "$(completion_of "$shell")"
	done
}

# Installs the configuration.  One that is there belongs to the administrator: it stays as it is.
install_conf() {
	if [ -e "$conf" ] || [ -h "$conf" ]; then
		say_new_settings
	else
		install -D -m 0644 "$sample" "$conf"
	fi
}

# Prints each setting of the new file that the old one does not mention, and each setting that is
# in force in the new file and that the old one leaves to the built-in default.
say_new_settings() {
	[ -r "$conf" ] || return 0
	new=$(sed -n -e '/^#*\[models\]/q' -e '/^#*[a-z][a-z-]* *=/p' "$sample" |
		while IFS= read -r line; do
			key=${line%%[ =]*} before='[[:space:]]*'
			case $key in
			\#*) before='[[:space:]#]*' ;;
			esac
			grep -q "^$before${key#\#}[[:space:]]*=" "$conf" || printf '\t%s\n' "$line"
		done)
	[ -z "$new" ] || printf '%s stays as it is; new since then, see gpulease.conf(5):\n%s\n' \
		"$conf" "$new"
}

undo_line() {
	echo "To undo${1:+, when no job runs}: make uninstall PREFIX=$PREFIX${1:+; rm -r $1}$(
		[ -z "$made_group" ] || echo "; groupdel $made_group")"
}

say_kept() {
	[ -z "$kept" ] || printf ' The former one is now %s.' "$kept"
}

# Says what a program does that root did not install: it uses a shared directory if there is one.
say_private() {
	if [ ! -e "$state" ]; then
		echo "Installed in $PREFIX, not as root: without the shared $STATE."
		echo "It coordinates only your own jobs until root runs make install."
	elif [ -w "$state" ]; then
		echo "Installed in $PREFIX, not as root. It uses the existing shared $STATE."
	else
		echo "Installed in $PREFIX, not as root. The shared $STATE is not open to it:"
		echo "use the gpulease that is installed for all, ask for its group $(
			stat -L -c %G "$state"), or set GPULEASE_DIR to a directory of your own."
	fi
}

install_private() {
	[ -n "$DESTDIR" ] || [ ! -e "$state" ] || ! is_root ||
		die "$STATE exists, and would be used; for MODE=private first:" \
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
		"MODE=hardened, which has no members; name the group of the users of the GPUs"
	[ -n "$GROUP" ] || [ ! -e "$state" ] || ! is_own ||
		die "$STATE is that of MODE=hardened; for MODE=lab, name the group of the users of" \
			"the GPUs, GROUP=NAME, or keep this form: make install"
	# an existing directory stays as it is, unless another group is named
	if [ -z "$GROUP" ] && [ -e "$state" ]; then
		GROUP=$(stat -L -c %G "$state")
	else
		[ -n "$GROUP" ] || die "MODE=lab needs GROUP=NAME, the group of the users of the GPUs"
		check_state "$GROUP"
		make_group "$GROUP"
		make_state "$GROUP"
	fi
	install_texts
	install_conf
	install_program
	echo "Installed in $PREFIX, with $CONF and $STATE of group $GROUP.$(say_kept)"
	echo "Its members trust each other. Each user has to be added, and then to log in again: usermod -aG $GROUP USER"
	undo_line "$STATE${kept:+ $kept}"
}

# warn_of_members: members of the group, perhaps from the lab form, could change the files of all jobs.
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
	made_group=$OWN_GROUP # for undo_line: made now or by an earlier install
	echo "Installed in $PREFIX for all users: gpulease is set-group-ID $OWN_GROUP, a group without members."
	echo "Settings: $CONF. Nothing but gpulease opens $STATE.$(say_kept)"
	undo_line "$STATE${kept:+ $kept}"
}

# install_staged: installs below DESTDIR, for a package or an image.  Its groups may have other
# numbers than those of this machine, so no group is created here.
install_staged() {
	group=${GROUP:-$OWN_GROUP}
	install_texts
	install_conf
	if ! is_root || ! group_line "$group" >/dev/null; then
		install_program
		echo "Installed below $DESTDIR$PREFIX, not set-group-ID: that needs root and a group $group."
		echo "Left to the package: $STATE, root:$group 2770$(
			[ "$MODE" = lab ] || echo "; $PREFIX/bin/gpulease, root:$group 2755")."
	else
		[ -e "$state" ] || new_state "$state" "$group"
		if [ "$MODE" = lab ]; then
			install_program
		else
			install_program "$group"
		fi
		echo "Installed below $DESTDIR$PREFIX, with $STATE (MODE=$MODE)."
		echo "On the target machine, the group $group must have the number $(stat -c %g "$state")."
	fi
	echo "To undo: make uninstall PREFIX=$PREFIX DESTDIR=$DESTDIR"
}

# check_writable DIRECTORY: exits with a message if DIRECTORY, or its nearest existing parent, is
# not writable.
check_writable() {
	at=$1
	until [ -e "$at" ]; do
		at=$(dirname "$at")
	done
	[ -w "$at" ] || die "cannot write to $at; try: sudo make install, or" \
		"make install PREFIX=\$HOME/.local"
}

# refuse_group: exits with a message if GROUP is set: the hardened form has its own group.
refuse_group() {
	[ -z "$GROUP" ] || die "GROUP=$GROUP is for MODE=lab; without it the group is" \
		"$OWN_GROUP, which has no members"
}

install_all() {
	case $GROUP in
	-* | *[!A-Za-z0-9_.-]*) die "GROUP=$GROUP: this is not the name of a group" ;;
	esac
	case $MODE in
	'') refuse_group ;;
	hardened | lab | private)
		[ "$MODE" = lab ] || refuse_group
		[ "$MODE" = private ] || is_root || [ -n "$DESTDIR" ] ||
			die "MODE=$MODE needs root; without root: MODE=private"
		;;
	*) die "MODE=$MODE: write hardened, lab or private" ;;
	esac
	for directory in "$bin" "$(dirname "$(completion_of bash)")" \
		"$(dirname "$(completion_of zsh)")" "$(dirname "$(completion_of fish)")" \
		"$share/man/man1" "$lib"; do
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

# --- the names of Slurm ------------------------------------------------------------------

SLURM_PARTS='sbatch scancel squeue scontrol' # of gpulease-slurm; srun is gpulease itself

# slurm_commands: prints the commands of a real Slurm in PATH.  Links to gpulease are none.
slurm_commands() {
	for name in srun $SLURM_PARTS; do
		(
			IFS=:
			set -f
			# shellcheck disable=SC2086 # it is split at colons
			set -- $PATH
			for folder; do
				{ [ -f "$folder/$name" ] && [ -x "$folder/$name" ]; } || continue
				case $(readlink -f "$folder/$name") in
				*/gpulease | */gpulease-slurm) ;;
				*) printf ' %s' "$folder/$name" ;;
				esac
			done
		)
	done
}

# Not in PREFIX/bin: programs that find srun in PATH believe that they run inside Slurm.
install_srun() {
	[ -e "$bin/gpulease" ] || die "$PREFIX/bin/gpulease does not exist; make install makes it"
	# a package or an image is for another machine
	found=
	[ -n "$DESTDIR" ] || found=$(slurm_commands)
	case $OVER_SLURM in
	yes) ;;
	'' | no)
		[ -z "$found" ] || die "Slurm is installed here:$found; to link these names to" \
			"gpulease nevertheless: make install-srun OVER_SLURM=yes"
		;;
	*) die "OVER_SLURM=$OVER_SLURM: write yes or no" ;;
	esac
	[ -n "$DESTDIR" ] || is_root || check_writable "$lib"
	install -d "$lib/bin"
	ln -sfn ../../../bin/gpulease "$lib/bin/srun"
	for name in $SLURM_PARTS; do
		ln -sfn ../gpulease-slurm "$lib/bin/$name"
	done
	[ -z "$found" ] || echo "These hide the commands of Slurm:$found"
	echo "To use it: PATH=$PREFIX/lib/gpulease/bin:\$PATH"
}

# --- removing ----------------------------------------------------------------------------

uninstall() {
	rm -f "$bin/gpulease" "$bin/gpulease-simjob" "$(completion_of bash)" "$(completion_of zsh)" \
		"$(completion_of fish)" "$lib/bin/srun" "$lib/gpulease-slurm" \
		"$lib/gpulease-view" "$lib/gpulease-engine"
	for name in $SLURM_PARTS; do
		rm -f "$lib/bin/$name"
	done
	for page in "$source"/man/*.[1578]; do
		rm -f "$share/man/man${page##*.}/${page##*/}"
	done
	rmdir "$lib/bin" "$lib" 2>/dev/null || :
	[ -n "$DESTDIR" ] || is_root || return 0
	rest='' again=''
	if cmp -s "$conf" "$sample"; then
		rm -f "$conf"
	elif [ -e "$conf" ]; then
		echo "$CONF was left, because it has been changed; to remove it: rm $CONF"
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
install-srun) install_srun ;;
uninstall) uninstall ;;
*) die 'usage: setup.sh install | install-srun | uninstall' ;;
esac

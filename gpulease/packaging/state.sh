# shellcheck shell=sh
# The files of the state directory that root makes, for setup.sh and for postinst, which contains
# this file.  Users only write into them.  So no user owns what all users need, and no user's disk
# quota decides whether others can take tickets or record ends.

# fill_state DIRECTORY GROUP: makes what is missing, and takes over what a user has made.  Nobody
# but root, or a program that root has installed, may be able to change names in DIRECTORY.
fill_state() {
	for fill_name in gpu live bell; do
		[ -e "$1/$fill_name" ] || install -d -m 2770 -o root -g "$2" "$1/$fill_name"
	done
	# an empty file is a good one of each kind
	for fill_name in tickets history history.1 usage; do
		[ -e "$1/$fill_name" ] || install -m 0660 -o root -g "$2" /dev/null "$1/$fill_name"
	done
	chown -h root "$1"/gpu "$1"/live "$1"/bell "$1"/tickets "$1"/history "$1"/history.1 "$1"/usage
	for fill_name in "$1"/gpu/*.lease; do
		[ ! -f "$fill_name" ] || chown -h root "$fill_name"
	done
}

# new_state DIRECTORY GROUP: makes the directory with these files.  It is open to the group only
# once they are there.
new_state() {
	install -d -m 0700 -o root -g root "$1"
	fill_state "$1" "$2"
	chgrp "$2" "$1"
	chmod 2770 "$1"
}

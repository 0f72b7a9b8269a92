# shellcheck shell=sh disable=SC2034
# A mount namespace of the script's own: its mounts over /etc or /usr/local are invisible to other
# processes, and end with the script.  Read in after lib.sh, and called before scratch:
#
#	. "$CLI/own_mounts.sh"
#	if ! own_mounts "$@"; then
#		skip 'TEXT' "$own_mounts_why"
#		finish
#	fi
#	scratch
#	overlay /etc /usr/local
#
#	$M	below $S: a tmpfs of the script's own without nosuid, for files that users of
#		the test execute, set-group-ID ones too; there once overlay or own_tmpfs ran

own_mounts_why='' # for the script
M=''

# own_mounts "$@": runs the script anew, in its own namespace; there it returns 0 at once.
# Otherwise it returns 1: this is not root, or a container that may not mount.
own_mounts() {
	[ -z "${OWN_MOUNTS-}" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		own_mounts_why='not root'
	elif ! command -v unshare >/dev/null 2>&1 || ! command -v setpriv >/dev/null 2>&1; then
		own_mounts_why='unshare or setpriv is not installed'
	elif ! unshare -m --propagation private mount -t tmpfs tmpfs "${TMPDIR:-/tmp}" \
		2>/dev/null; then
		own_mounts_why='root may not mount here'
	else
		OWN_MOUNTS=1 exec unshare -m --propagation private sh "$0" "$@"
	fi
	return 1
}

# own_tmpfs: makes $M, and $S a place that users of the test can pass through.
own_tmpfs() {
	[ -z "$M" ] || return 0
	chmod 0755 "$S"
	mkdir "$S/mounts"
	mount -t tmpfs -o mode=0755 tmpfs "$S/mounts" || bail 'cannot mount a tmpfs'
	M=$S/mounts
	# The mounts over directories of the machine end with the namespace.
	at_exit 'umount -l "$M"'
}

# has_overlay: whether the kernel has overlays; if so, `overlay` copies nothing.
has_overlay() {
	own_tmpfs
	mkdir -p "$M/try/lower" "$M/try/upper" "$M/try/work" "$M/try/at"
	mount -t overlay -o "lowerdir=$M/try/lower,upperdir=$M/try/upper,workdir=$M/try/work" \
		overlay "$M/try/at" 2>/dev/null && umount "$M/try/at"
}

# overlay DIR…: all that is written to DIR from now on goes into memory.  If the kernel has no
# overlay file system, it goes to a copy of DIR: so DIR must not be large.  In an /etc of its own a
# script begins without a configuration, and its programs read the one that it writes there.
overlay() {
	own_tmpfs
	for overlay_dir in "$@"; do
		overlay_at=$(mktemp -d "$M/overlay.XXXXXX") || bail 'no place for an overlay'
		mkdir "$overlay_at/upper" "$overlay_at/work"
		# the upper directory stands in for the mode and owner of the one below
		chmod --reference="$overlay_dir" "$overlay_at/upper"
		chown --reference="$overlay_dir" "$overlay_at/upper"
		chmod 0711 "$overlay_at"
		if ! mount -t overlay -o \
			"lowerdir=$overlay_dir,upperdir=$overlay_at/upper,workdir=$overlay_at/work" \
			overlay "$overlay_dir" 2>/dev/null; then
			cp -a "$overlay_dir/." "$overlay_at/upper"
			mount --bind "$overlay_at/upper" "$overlay_dir" ||
				bail "cannot put a directory over $overlay_dir"
		fi
		if [ "$overlay_dir" = /etc ]; then
			rm -f /etc/gpulease.conf
			unset GPULEASE_CONFIG
		fi
	done
}

# as_uid UID COMMAND…: runs it as the user and the group of that number, in no other group.
as_uid() {
	as_uid=$1
	shift
	setpriv --reuid "$as_uid" --regid "$as_uid" --clear-groups -- "$@"
}

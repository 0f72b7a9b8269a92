#!/bin/sh
# A state directory on overlayfs, where stat(2) and /proc/locks show different devices for a file.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
if ! own_mounts "$@"; then
	skip 'overlayfs' "$own_mounts_why"
	finish
fi
scratch
with_driver
gpus 1
own_tmpfs
mkdir "$M/upper" "$M/work" "$S/lower"
# with layers on two file systems
if ! mount -t overlay -o "xino=off,lowerdir=$S/lower,upperdir=$M/upper,workdir=$M/work" \
	overlay "$S/dir" 2>/dev/null; then
	skip 'overlayfs' 'it cannot be mounted here'
	finish
fi
at_exit 'umount -l "$S/dir"'
chmod 0700 "$S/dir"
run 'a job starts on overlayfs' 0 '' '' "$GPULEASE" true
lease=$(echo "$S/dir"/gpu/*.lease)
is 'this test: the devices differ' [ "$(stat -c %d "$lease")" != "$(stat -c %d "$S/dir")" ]
exec 8<>"$lease"
flock 8
listed=$(awk -v inode="$(stat -c %i "$lease")" '$2 == "FLOCK" && $6 ~ (":" inode "$") { print $5 }' \
	/proc/locks)
run '--pause names the process that has the lock' 1 '' "*GPU 0 is locked by pid $listed; *" \
	"$GPULEASE" --pause 0
waiter waits -n 1
is 'a waiter names the process that has the lock' grep -q "GPU 0 is locked by pid $listed\$" \
	"$S/waits.err"
flock -u 8
release_all waits
finish

#!/bin/sh
# A disk that is full under the log of a job in the background: the job goes on.
# shellcheck disable=SC2016,SC2034 # code of commands; what own_mounts.sh reads

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
if ! own_mounts "$@"; then
	skip 'a full disk under the log' "$own_mounts_why"
	finish
fi
scratch
own_tmpfs

run 'a job' 0 '*' '*' "$GPULEASE" -n 1 true
logs=$(state_dir)/logs
mkdir -m 0700 "$logs"
mount -t tmpfs -o size=64k,mode=0700 tmpfs "$logs" || bail 'cannot mount a tmpfs'
at_exit 'umount -l "$logs"'

# filled NAME: a job that writes more than there is room for
filled() {
	id=$("$GPULEASE" --submit -n 1 -- sh -c \
		'echo one; head -c 200000 /dev/zero; echo "$?" >"$1"; exit 3' sh "$S/$1")
}

filled a
is 'the job goes on' wait_until '[ -s "$S/a" ]'
is 'its command was told' [ "$(cat "$S/a")" != 0 ]
run 'who follows it' 0 'one*' '*' "$GPULEASE" --follow "$id"
is 'sees what there was room for' [ "$(stat -c %s "$logs/$id.log")" -eq "$(wc -c <"$S/out")" ]
run 'the history knows how it ended' 0 '*' '' "$GPULEASE" --history
is 'and that the log was cut' wait_until \
	'grep -aq "ticket=$id .*logfull=1 .*status=3 " "$(state_dir)/history"'

run 'without any room another one' 0 '*' '' "$GPULEASE" --submit -n 1 -- sh -c ': >"$1"' sh "$S/b"
is 'runs all the same' wait_until '[ -e "$S/b" ]'
mount -t tmpfs -o ro tmpfs "$logs" || bail 'cannot mount a tmpfs'
at_exit 'umount -l "$logs"'
run 'on a disk that may only be read' 125 '' '*Read-only*-o FILE*' \
	"$GPULEASE" --submit -n 1 -- true
finish

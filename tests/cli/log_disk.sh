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

run 'a first job makes the state directory' 0 '*' '*' "$GPULEASE" -n 1 true
logs=$(state_dir)/logs
mkdir -m 0700 "$logs"
mount -t tmpfs -o size=64k,mode=0700 tmpfs "$logs" || bail 'cannot mount a tmpfs'
at_exit 'umount -l "$logs"'

# filled NAME: starts a job that writes more than there is room for
filled() {
	id=$("$GPULEASE" --submit -n 1 -- sh -c \
		'echo one; head -c 200000 /dev/zero; echo "$?" >"$1"; exit 3' sh "$S/$1")
}

filled a
is 'a job with a full log goes on' wait_until '[ -s "$S/a" ]'
is 'the command got an error or a signal when the log was full' [ "$(cat "$S/a")" != 0 ]
run '--follow of a job with a full log succeeds' 0 'one*' '*' "$GPULEASE" --follow "$id"
is '--follow shows all that the log had room for' [ \
	"$(stat -c %s "$logs/$id.log")" -eq "$(wc -c <"$S/out")" ]
run '--history shows the job with the full log' 0 '*' '' "$GPULEASE" --history
is 'the history has that the log is full' wait_until \
	'grep -aq "ticket=$id .*logfull=1 .*status=3 " "$(state_dir)/history"'

run 'a job is submitted without any room for its log' 0 '*' '' "$GPULEASE" --submit -n 1 -- \
	sh -c ': >"$1"' sh "$S/b"
is 'the job without room for its log runs' wait_until '[ -e "$S/b" ]'
mount -t tmpfs -o ro tmpfs "$logs" || bail 'cannot mount a tmpfs'
at_exit 'umount -l "$logs"'
run 'a job without a place for its log is refused' 125 '' '*Read-only*-o FILE*' \
	"$GPULEASE" --submit -n 1 -- true
finish

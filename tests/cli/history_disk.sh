#!/bin/sh
# A full disk: gpulease reports a missing record of the history, at once and later.
# shellcheck disable=SC2016,SC2034,SC2317 # conditions; what own_mounts.sh reads; functions

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/own_mounts.sh
. "$CLI/own_mounts.sh"
if ! own_mounts "$@"; then
	skip 'a full disk under the history' "$own_mounts_why"
	finish
fi
scratch
with_driver
gpus 2
mount -t tmpfs -o size=256k,mode=0700 tmpfs "$S/dir" || bail 'cannot mount a tmpfs'
at_exit 'umount -l "$S/dir"'
echo 'record-ends = yes' >"$S/conf"

# fill: fills the disk, so that only a page that exists already can be written.  The history has
# filled its last page, and the ticket file has not: else no job would start at all.
fill() {
	while [ $(($(size_of history) % 4096)) -ne 0 ]; do
		"$TOOLS/tellend" "$S/dir" ticket=1 uid=1 user=alice command=padding
	done
	while [ $(($(size_of tickets) % 4096)) -gt 512 ] || [ $(($(size_of tickets) % 4096)) -eq 0 ]; do
		"$GPULEASE" -n 0 true
	done
	dd if=/dev/zero of="$S/dir/filler" bs=4096 2>/dev/null
	[ "$(df --output=avail "$S/dir" | tail -n 1)" -eq 0 ] || bail 'the disk is not full'
}

size_of() {
	stat -c %s "$S/dir/$1"
}

# missing VERB: how many records are missing, as this verb says
missing() {
	"$GPULEASE" "$@" --json | "$TOOLS/jsoncheck" missing_lines | tr -dc 0-9
}

run 'a first job starts' 0 '' '' "$GPULEASE" -n 2 true
run 'a second job records the end of the first' 0 '' '' "$GPULEASE" -n 2 true
run 'with free space no record is missing' 0 '* ok *history: no line is missing*' '' \
	sh -c '"$1" --doctor | tr "\n" " "' sh "$GPULEASE"
is 'JSON says that no record is missing' [ \
	"$(missing --history) $(missing --accounting)" = '0 0' ]
fill

run 'a job that cannot record the end of the previous one says so' 0 '' \
	'*cannot append to the history: No space left on device*' "$GPULEASE" -n 2 true
run '--history says later that a record is missing' 0 \
	'*1 line of the history could not be written, the last on 20*' '' "$GPULEASE" --history
run '--accounting says that a record is missing' 0 \
	'*1 line of the history could not be written*' '' \
	"$GPULEASE" --accounting
is 'JSON says that one record is missing' [ \
	"$(missing --history) $(missing --accounting)" = '1 1' ]
run '--doctor says that a record is missing' 0 '*warn *history: 1 line could not be written*' '' \
	sh -c '"$1" --doctor | tr "\n" " "' sh "$GPULEASE"

holder watched --config "$S/conf" -n 1
begin next -n 2
wait_until '[ -s "$S/next.err" ]'
release watched 3
ended watched
wait_until 'runs next'
is 'an end with a watchdog misses both of its records' wait_until \
	'[ "0$(missing --history)" -ge 3 ]'
release_all next

run 'a job with a parent says that its end may be missing' 5 '' \
	'*cannot append to the history: No space left on device*' \
	"$GPULEASE" -n 1 --report sh -c 'exit 5'

rm "$S/dir/filler"
before=$(missing --history)
run 'once there is room again a job starts' 0 '' '' "$GPULEASE" -n 2 true
is 'with room again no more records are missing' [ "$(missing --history)" -eq "$before" ]
run '--history still says that records are missing' 0 \
	'*lines of the history could not be written*' '' \
	"$GPULEASE" --history
finish

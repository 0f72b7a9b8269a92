#!/bin/sh
# Jobs in the background of the set-group-ID form: their logs belong to the user and are made with
# the user's rights, and their supervisor is as closed as any gpulease.
# shellcheck disable=SC2016 # code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'jobs in the background of the set-group-ID form' "$@"
umask 022
mkdir "$S/open/home"
chown $((UID_BASE + 1)):$((UID_BASE + 1)) "$S/open/home"
export XDG_STATE_HOME="$S/open/home"
logs=$XDG_STATE_HOME/gpulease/logs

# whose FILE: the user and group of the file
whose() {
	stat -c %u:%g "$1"
}

# owner_of ID: the process that owns the ticket
owner_of() {
	dd if="$M/state/tickets" bs=512 skip="$1" count=1 2>/dev/null |
		sed -n 's/.* pid=\([0-9]*\) .*/\1/p'
}

# rest: what a job has written, without the lines of gpulease in its log
rest() {
	grep -v '^gpulease: ' "$S/out"
}

me=$((UID_BASE + 1)):$((UID_BASE + 1))
run 'a user submits a job' 0 '*' '' "$U1" --submit -n 1 -- "$TOOLS/attack" rights "$GROUP"
id=$out
run 'a user follows a job of their own' 0 '*' '' "$U1" --follow "$id"
is 'the command in the background has no right of the group' [ -z "$(rest)" ]
run 'a user sees the log of a job of their own' 0 "*ended: exit status 0*" '' "$U1" --log "$id"
is 'the log has the user and the user'"'"'s group' [ "$(whose "$logs/$id.log")" = "$me" ]
is 'the folder of the logs has the user and the user'"'"'s group' [ "$(whose "$logs")" = "$me" ]
is 'no other user can read the log' [ \
	"$(stat -c %a "$logs/$id.log" "$logs" | tr '\n' ' ')" = '600 700 ' ]
run 'a user submits a job with -o' 0 '*' '' "$U1" --submit --follow -Q -n 1 \
	-o "$S/open/%j.out" -- id -g
is 'the file of -o has the user and the user'"'"'s group' [ "$(whose "$S"/open/*.out)" = "$me" ]
run '-o of a job in the background makes no state file' 125 '' '*Permission denied*' \
	"$U1" --submit -n 1 -o "$M/state/file" -- true
is 'the refused -o has made no file' [ ! -e "$M/state/file" ]
mv "$logs" "$S/open/aside"
as 1 ln -s "$M/state" "$logs"
run 'a link does not lead a log into the state directory' 125 '' '*Permission denied*' \
	"$U1" --submit -n 1 -- true
rm "$logs"
mv "$S/open/aside" "$logs"

run 'a job in the background has all GPUs' 0 '*' '' "$U1" --submit -n 2 -- \
	sh -c ': >"$1"; exec sleep 1000' sh \
	"$S/open/runs"
first=$out
wait_until '[ -e "$S/open/runs" ]' || bail 'it does not start'
run 'a second job in the background waits' 0 '*' '' "$U1" --submit -n 2 -- true
second=$out
run 'another user cannot see the log' 1 '' '*belongs to*' "$U2" --log "$first"
run 'another user cannot follow the job' 1 '' '*belongs to*' "$U2" --follow "$second"
for each in "$first" "$second"; do
	pid=$(owner_of "$each")
	is 'the supervisor of a job runs' kill -0 "$pid"
	run 'the supervisor of a job is closed to its user' 0 '' '' as 1 "$TOOLS/attack" \
		process "$pid"
done
run 'the user cancels both jobs' 0 '' '' "$U1" --cancel "$first" "$second"
run 'after the cancel the GPUs are free' 0 '' '*' "$U3" --immediate=10s -n 2 true
finish

#!/bin/sh
# Jobs in the background of the set-group-ID form: their logs are the user's, made with the
# user's rights, and who looks after them is as closed as any gpulease.
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

# whose FILE: its user and group
whose() {
	stat -c %u:%g "$1"
}

# owner ID: the process behind a job
owner_of() {
	dd if="$M/state/tickets" bs=512 skip="$1" count=1 2>/dev/null |
		sed -n 's/.* pid=\([0-9]*\) .*/\1/p'
}

# rest: what a job has written, but for what gpulease says in its log
rest() {
	grep -v '^gpulease: ' "$S/out"
}

me=$((UID_BASE + 1)):$((UID_BASE + 1))
run 'a user submits a job' 0 '*' '' "$U1" --submit -n 1 -- "$TOOLS/attack" rights "$GROUP"
id=$out
run 'and follows it' 0 '*' '' "$U1" --follow "$id"
is 'its command has no right of the group' [ -z "$(rest)" ]
run 'of the log' 0 "*ended: exit status 0*" '' "$U1" --log "$id"
is 'user and group are those of the user' [ "$(whose "$logs/$id.log")" = "$me" ]
is 'of its folder, too' [ "$(whose "$logs")" = "$me" ]
is 'and nobody else can read it' [ "$(stat -c %a "$logs/$id.log" "$logs" | tr '\n' ' ')" = '600 700 ' ]
run 'with -o' 0 '*' '' "$U1" --submit --follow -Q -n 1 -o "$S/open/%j.out" -- id -g
is 'the file is the user'"'"'s as well' [ "$(whose "$S"/open/*.out)" = "$me" ]
run 'one in the state directory cannot be made' 125 '' '*Permission denied*' \
	"$U1" --submit -n 1 -o "$M/state/file" -- true
is 'and is not' [ ! -e "$M/state/file" ]
mv "$logs" "$S/open/aside"
as 1 ln -s "$M/state" "$logs"
run 'nor does a link lead a log there' 125 '' '*Permission denied*' \
	"$U1" --submit -n 1 -- true
rm "$logs"
mv "$S/open/aside" "$logs"

run 'a job of all GPUs' 0 '*' '' "$U1" --submit -n 2 -- sh -c ': >"$1"; exec sleep 1000' sh \
	"$S/open/runs"
first=$out
wait_until '[ -e "$S/open/runs" ]' || bail 'it does not start'
run 'and one that waits' 0 '*' '' "$U1" --submit -n 2 -- true
second=$out
run 'another user is not shown its log' 1 '' '*belongs to*' "$U2" --log "$first"
run 'nor follows it' 1 '' '*belongs to*' "$U2" --follow "$second"
for each in "$first" "$second"; do
	pid=$(owner_of "$each")
	is 'who looks after a job is there' kill -0 "$pid"
	run 'and closed to its user' 0 '' '' as 1 "$TOOLS/attack" process "$pid"
done
run 'its user cancels both' 0 '' '' "$U1" --cancel "$first" "$second"
run 'and the GPUs are free' 0 '' '*' "$U3" --immediate=10s -n 2 true
finish

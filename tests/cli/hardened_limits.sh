#!/bin/sh
# The limits of users and groups where gpulease is installed set-group-ID: the lines bind by what the
# kernel knows of the process, names come from /etc/passwd and /etc/group, and no user can choose.
# shellcheck disable=SC2016,SC2154 # conditions; variables of hardened_lib.sh

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'limits of users and groups' "$@"
driver 'gpus 2'

# User 1 is a student by a supplementary group, user 2 is alice, user 3 has a group with a name.
STUDENTS=54390 LAB=54391
printf '%s\n' "students:x:$STUDENTS:someone" "lent:x:$GROUP:" "lab:x:$LAB:" >>/etc/group
printf 'alice:x:%d:%d::/:/bin/sh\n' $((UID_BASE + 2)) $((UID_BASE + 2)) >>/etc/passwd
# user N GROUP LISTED…: how user N starts gpulease from now on
user() {
	user_file=$M/bin/gpulease.$1
	printf '#!/bin/sh\nexec setpriv --reuid=%d --regid=%d %s -- %s "$@"\n' $((UID_BASE + $1)) \
		"$2" "$3" "$M/bin/gpulease" >"$user_file"
}
user 1 "$LAB" "--groups $STUDENTS"
user 3 "$LAB" --clear-groups

limited() {
	configure 'user-gpus = 1' 'max-time = 2d' '[limits]' 'user alice = gpus 2' \
		'group students = time 8h, jobs 1, gpus none' 'group lent = gpus none' "$@"
}
limited
conf=/etc/gpulease.conf

run 'a user is found by the name' 0 '' '' "$U2" -n 2 -I true
run 'a group is found by its name, though the user is not listed as a member' 125 '' \
	"gpulease: a time limit of 9h00m is too long: line 7 of $conf for group students *" \
	"$U1" -t 9h true
run 'the group that is lent to the program is not one of the user' 125 '' \
	'gpulease: cannot lease 2 GPUs: user-gpus in the configuration allows 1 at once' \
	"$U3" -n 2 true
run 'what the environment says of the user does not count' 125 '' \
	'gpulease: cannot lease 2 GPUs: user-gpus *' as 3 env USER=alice LOGNAME=alice \
	HOME=/home/alice "$M/bin/gpulease" -n 2 true
printf '[limits]\nuser %d = gpus none\n' $((UID_BASE + 3)) >"$S/open/own.conf"
chmod 0644 "$S/open/own.conf"
run 'a user cannot bring another configuration' 125 '' '*user-gpus in the configuration *' \
	"$U3" --config "$S/open/own.conf" -n 2 true
as 3 mkdir "$S/open/dir"
run 'nor another directory' 125 '' '*user-gpus in the configuration *' \
	as 3 env "GPULEASE_DIR=$S/open/dir" "$M/bin/gpulease" -n 2 true
if as 3 unshare -Ur true 2>/dev/null; then
	run 'who is root in a user namespace only gets nothing' 125 '' '*set-group-ID*' \
		as 3 unshare -Ur "$M/bin/gpulease" -n 2 true
else
	skip 'who is root in a user namespace only gets nothing' 'unshare -Ur fails'
fi

by 1 holder one -n 0.5
by 1 waiter two -n 0.5
is 'the second job of a student waits, and names the line' like \
	"*limit: 1 job by line 7 of $conf for group students, 1 running" "$(cat "$S/two.err")"
run 'another user sees why' 0 '*limit: 1 job by line 7 of the configuration, 1 running*' '' \
	"$U3" --queue
run 'and goes past it' 0 '' '' "$U3" -n 1 -I true
run 'no user can write the limits into a ticket' 2 '' '*denied' as 1 sh -c ': >>"$1"' - "$M/state/tickets"
# the file changes while the job waits: its limits stay
configure 'user-jobs = 9'
run 'a waiting job keeps the limits with which it came' 0 '*limit: 1 job by line 7 *' '' \
	"$U3" --queue
limited
release_all one
is 'the job of the student starts after the first' wait_until 'runs two'
release_all two

# the names of a service that gpulease does not ask
limited 'group ldap-users = gpus 1' 'group lab = gpus 2'
run 'a user whose groups have names is not in a group without one' 0 '' '' "$U3" -n 2 -I true
user 3 $((UID_BASE + 3)) "--groups $LAB"
run 'a user with a group that has no name may be in it' 125 '' \
	"gpulease: cannot lease 2 GPUs: line 9 of $conf for group ldap-users allows 1 at once" \
	"$U3" -n 2 true
run '--show-config says which line that is' 0 '*
# line 9: /etc/group has no such name
*' '' "$U3" --show-config
try "$U3" --doctor
is '--doctor warns of it' like \
	"*warn  configuration: '$conf', line 9: 'ldap-users' is not in /etc/group; *" "$out"
rm /etc/group /etc/passwd
run 'without these files all lines with names bind, and give nothing' 125 '' \
	'gpulease: cannot lease 2 GPUs: user-gpus in the configuration allows 1 at once' \
	"$U2" -n 2 true
intact 'all files are intact'

finish

#!/bin/sh
# The set-group-ID form: no user gets a better place in the queue than the configuration allows.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'no user gets a better place than allowed' "$@"

usage=$M/state/usage

# waiting: the ids of the waiting jobs in their order
waiting() {
	"$ROOT" --queue --json | tr ',{' '[\n*]' | sed -n 's/^ *"ticket": *\([0-9]*\)$/\1/p' |
		tr '\n' ' '
}

# fields KEY: the values of this field in the file usage
fields() {
	tr ' ' '\n' <"$usage" | sed -n "s/^$1=//p" | sort -u | tr '\n' ' '
}

configure 'max-priority = 5'
by 1 holder busy -n 2
by 2 waiter a -n 2
by 3 waiter b -n 2
A=$(ticket_of a) B=$(ticket_of b)
run 'a user may not raise a priority above max-priority' 125 '' '*users may have 5 at most*' \
	"$U3" --set-priority "$B" 6
run 'a user may not change the priority of the job of another' 1 '' '*belongs to*' \
	"$U3" --set-priority "$A" -1
is 'the order is as before' like "$A $B " "$(waiting)"
run 'a user raises the priority of a job of their own' 0 '' '' "$U3" --set-priority "$B" 5
is 'then it comes first' like "$B $A " "$(waiting)"
run 'root sets any priority of any job' 0 '' '' "$ROOT" --set-priority "$A" 1000
is 'and that job comes first' like "$A $B " "$(waiting)"
release_all busy a b

configure 'fair-share = 1h/7d/24h'
by 1 holder busy -n 2
by 2 waiter much -n 2 --time 10h
by 2 waiter more -n 2
by 3 waiter little -n 2
is 'the job of a user who asks for less comes before the second of one who asks for much' \
	like "$(ticket_of much) $(ticket_of little) $(ticket_of more) " "$(waiting)"
# a process that is stopped before its first turn, and goes on when the GPUs are free, is late, too:
# test_share.c has this
release_all busy much little more
is 'the hours of all users are counted' wait_until \
	'like "* $((UID_BASE + 1)) $((UID_BASE + 2)) $((UID_BASE + 3)) *" " $(fields uid) "'
# had USER: the GPU-milliseconds of a user
had() {
	tr '\0' ' ' <"$usage" | sed -n "s/.*uid=$((UID_BASE + $1)) .*gpums=\([0-9]*\).*/\1/p" | head -n 1
}

by 1 holder unseen -n 2
before=$(had 1)
# other scripts have watchdogs of the same user
for pid in $(pgrep -u $((UID_BASE + 1)) -x gpulease-limit); do
	case $(readlink "/proc/$pid/exe") in
	"$S"/*) kill -KILL "$pid" ;;
	esac
done
release_all unseen
run 'the next job starts' 0 '' '' "$U3" -n 2 true
is 'a job whose user has killed its watchdog counts' [ "$(had 1)" -gt "$before" ]

for user in 1 2 3; do
	run "user $user cannot read the hours" '1' '' '*' as $user cat "$usage"
	run "user $user cannot change the hours" 1 '' '*' as $user \
		sh -c 'echo >>"$1" || exit 1' - "$usage"
	run "user $user cannot remove the hours" 1 '' '*' as $user rm -f "$usage"
done
finish

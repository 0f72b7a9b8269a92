#!/bin/sh
# fair-share: a job that has to wait counts as having come later if its user has had many GPU-hours.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 1
printf '%s\n' 'fair-share = 15m/7d/24h' >"$S/conf"
configured

# numbers MEMBER: the values of this member of the waiting jobs, in their order
numbers() {
	"$GPULEASE" --queue --json | tr ',{' '[\n*]' | sed -n "s/^ *\"$1\": *\([0-9]*\)\$/\1/p" |
		tr '\n' ' '
}

used() {
	sed -n 's/.*gpums=\([0-9]*\).*/\1/p' "$usage" | tr '\n' ' '
}

run 'a job that starts at once pays nothing' 0 '1' '' "$GPULEASE" sh -c 'echo $GPULEASE_ID'
usage=$(echo "$XDG_STATE_HOME"/gpulease/sim-*)/usage
is 'the end of a job counts' wait_until '[ -n "$(used)" ]'
rm "$usage"

holder first
waiter long --time 2h
is 'the first that waits has nothing before it' like '[0-9] *' "$(numbers late_ms)"
waiter a
waiter b --time 24h
waiter c
run '--queue says by how much a job counts as later' 0 '*counts as 30m later*' '' \
	"$GPULEASE" --queue
run '--queue says why' 0 '* has had 0.0 GPU-hours in 7d and asked for 28.0 more, which counts as 7h00m later*' \
	'' "$GPULEASE" --queue
is 'the waiting line says so, too' grep -q \
	'you have had 0.0 GPU-hours in 7d and asked for 2.0 more, which counts as 30m later' "$S/a.err"
run '--dry-run counts it' 124 'would wait, 5th *counts as 7h*later*' '' "$GPULEASE" --dry-run true
is 'ids stay as they are' like "$(ticket_of long) $(ticket_of a) $(ticket_of b) $(ticket_of c) " \
	"$(numbers ticket)"
release first
in_order_ok=
for each in long a b c; do
	wait_until 'runs "$each"' || in_order_ok=no
	release_all "$each"
done
is 'all of them run in their order' [ -z "$in_order_ok" ]

printf '%0512d' 0 | tr 0 x >>"$usage"
run '--doctor tells of damage' 0 "*1 record of '*/usage' cannot be read and do not count*" '*' \
	"$GPULEASE" --doctor

sim 2
printf '%s\n' 'fair-share = 24h/7d/7d' >"$S/conf"
holder first -n 1
waiter held --hold --time 24h
waiter both -n 2
run 'a job that could start at once does not pass one that fair-share has put behind it' 124 '' \
	'*behind job *' "$GPULEASE" -I -n 1 true
run '--dry-run knows that' 124 'would wait*' '' "$GPULEASE" --dry-run -n 1 true
release_all first both
"$GPULEASE" --cancel "$(ticket_of held)"

printf '%s\n' 'fair-share = 15m/7d' >"$S/conf"
run 'a bad value is refused' 125 '' \
	"gpulease: */conf, line 1: fair-share: '15m/7d' is not three durations; write one like 15m/7d/24h, or none" \
	"$GPULEASE" true
finish

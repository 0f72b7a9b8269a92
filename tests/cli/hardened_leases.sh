#!/bin/sh
# Leases without a command in the set-group-ID form: the shell and the process of a user are
# looked at with that user's rights, and what looks after them keeps those it needs.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'leases without a command, set-group-ID' "$@"
driver 'gpus 2'

# shell NAME USER CODE: a shell of that user's, which runs CODE, notes its pid, its job and
# the group of its children, and waits
shell() {
	rm -f "$S/open/$1".*
	mkfifo "$S/open/$1.hold"
	chmod 0666 "$S/open/$1.hold"
	as "$2" env GPULEASE="$M/bin/gpulease" PLACE="$S/open/$1" sh -c "$3"'
		echo "$$ ${GPULEASE_ID-} ${CUDA_VISIBLE_DEVICES-}" >"$PLACE.new"
		mv "$PLACE.new" "$PLACE.runs"
		read -r line <"$PLACE.hold"' >"$S/open/$1.out" 2>"$S/open/$1.err" &
	started="$started $!"
	wait_until "[ -e '$S/open/$1.runs' ]" || bail "$1: $(cat "$S/open/$1.err")"
}

# stranger USER: a process of that user's that nobody knows; $stranger is its pid
stranger() {
	as "$1" sh -c 'echo $$ >"$1" && exec sleep 1000' - "$S/open/stranger" &
	started="$started $!"
	wait_until '[ -s "$S/open/stranger" ]' || bail 'no stranger'
	stranger=$(cat "$S/open/stranger")
	started="$started $stranger"
}


"$U1" --lease-only -n 2 >"$S/keep.out" 2>"$S/keep.err" &
keep=$!
started="$started $keep"
is 'a user holds GPUs' wait_until '[ "$(cat "$S/keep.out")" = 0,1 ]'
by 2 waiter next -n 2
kill -TERM "$keep"
wait "$keep"
is 'until TERM' [ $? -eq 0 ]
is 'and the next one gets them' wait_until 'runs next'
release_all next
run 'the history knows it exactly' 0 '*--lease-only*' '' "$U1" --history

# in_shell OPTION…: code for `shell`: a lease for it, and something that it starts
in_shell() {
	echo 'eval "$("$GPULEASE" '"$*"' --shell || echo false)"
		sleep 1000 & echo $! >"$PLACE.child"'
}

# over FILE: whether the process whose pid is in there has ended; nobody may have asked how
over() {
	over_pid=$(cat "$1")
	[ ! -e "/proc/$over_pid" ] || like '[ZX]' "$(process_state "$over_pid")"
}

shell mine 1 "$(in_shell -n 2)"
is 'a shell has its lease' [ "$(cut -d ' ' -f 3 "$S/open/mine.runs")" = 0,1 ]
run 'which is its user'"'"'s' 0 "*$((UID_BASE + 1))*$(cut -d ' ' -f 1 "$S/open/mine.runs")*" '' \
	"$U2" --status
is 'what it starts carries the tag' sh -c '! grep -q "Max file locks *unlimited *unlimited" "$1"' \
	- "/proc/$(cat "$S/open/mine.child")/limits"
run 'nobody else gives it back' 1 '' '*belongs to*' "$U2" --cancel \
	"$(cut -d ' ' -f 2 "$S/open/mine.runs")"
by 2 waiter next -n 2
kill "$(cat "$S/open/mine.child")"
echo >"$S/open/mine.hold"
is 'its end is the next one'"'"'s turn' wait_until 'runs next'
release_all next

# which may wait or not, on a slow machine
shell mine 1 "$(in_shell --time 2s --grace 1s -n 2)"
by 2 begin next -n 2
is 'at its limit those who wait are told' wait_until 'runs next'
is 'the shell lives' kill -0 "$(cut -d ' ' -f 1 "$S/open/mine.runs")"
is 'what it has started does not' wait_until 'over "$S/open/mine.child"'
release_all next
echo >"$S/open/mine.hold"

stranger 1
driver 'gpus 2' "process 0 $stranger"
run 'nobody adopts what is another'"'"'s' 125 '' "gpulease: process $stranger belongs to *" \
	"$U2" --lease-only --pid "$stranger"
run 'a user adopts what is their own' 0 '[0-9]*' '*it has GPU 0' \
	"$U1" --lease-only --pid "$stranger" --time 2s --grace 1s
run 'it is leased' 124 '' '*needs 2 GPUs*' "$U2" -n 2 -I true
is 'it is ended at its limit' wait_until 'over "$S/open/stranger"'
driver 'gpus 2'
run 'and others get its GPU' 0 '' '*' "$U2" -n 2 --max-wait 30s true

# The FIFO is the user's own file, which the command has open.
for way in 'chmod 0' "chgrp $((UID_BASE + 1))"; do
	rm -f "$S/open/changed"
	as 1 "$M/bin/gpulease" -n 2 -- sh -c '$1 /proc/self/fd/100 && echo >"$2" && read -r line <"$3"' \
		- "$way" "$S/open/changed" "$S/open/mine.hold" >"$S/open/way.err" 2>&1 &
	started="$started $!"
	wait_until '[ -e "$S/open/changed" ]' || bail "$way: $(cat "$S/open/way.err")"
	by 2 waiter next -n 2
	echo >"$S/open/mine.hold"
	is "$way of its FIFO: others get its GPUs" wait_until 'runs next'
	release_all next
	run 'when it ends, not after a time' 0 '* ended *' '' "$U2" --history
	is 'nothing is given up' [ "${out#*given up}" = "$out" ]
done
intact 'nothing of it is broken'
finish

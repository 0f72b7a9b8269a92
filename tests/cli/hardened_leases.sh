#!/bin/sh
# Leases without a command in the set-group-ID form: gpulease examines the shell and the process of a
# user with that user's rights, and the watchdog keeps the rights that it needs.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'leases without a command, set-group-ID' "$@"
driver 'gpus 2'

# shell NAME USER CODE: starts a shell of that user, which runs CODE, notes its pid, its job and its
# GPUs, and waits
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

# stranger USER: starts a process of that user outside gpulease; $stranger is its pid
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
is 'a user holds GPUs with --lease-only' wait_until '[ "$(cat "$S/keep.out")" = 0,1 ]'
by 2 waiter next -n 2
kill -TERM "$keep"
wait "$keep"
is '--lease-only ends at TERM' [ $? -eq 0 ]
is 'after TERM the next job gets the GPUs' wait_until 'runs next'
release_all next
run 'the history has the exact end of --lease-only' 0 '*--lease-only*' '' "$U1" --history

# in_shell OPTION…: code for `shell`: takes a lease, and starts a child
in_shell() {
	echo 'eval "$("$GPULEASE" '"$*"' --shell || echo false)"
		sleep 1000 & echo $! >"$PLACE.child"'
}

# over FILE: whether the process whose pid is in FILE has ended; a zombie has ended
over() {
	over_pid=$(cat "$1")
	[ ! -e "/proc/$over_pid" ] || like '[ZX]' "$(process_state "$over_pid")"
}

shell mine 1 "$(in_shell -n 2)"
is 'a shell of a user has its lease' [ "$(cut -d ' ' -f 3 "$S/open/mine.runs")" = 0,1 ]
run 'the lease of the shell belongs to the user' 0 \
	"*$((UID_BASE + 1))*$(cut -d ' ' -f 1 "$S/open/mine.runs")*" '' \
	"$U2" --status
is 'a child of the shell has the tag of the lease' \
	sh -c '! grep -q "Max file locks *unlimited *unlimited" "$1"' \
	- "/proc/$(cat "$S/open/mine.child")/limits"
run 'another user cannot cancel the lease of the shell' 1 '' '*belongs to*' "$U2" --cancel \
	"$(cut -d ' ' -f 2 "$S/open/mine.runs")"
by 2 waiter next -n 2
kill "$(cat "$S/open/mine.child")"
echo >"$S/open/mine.hold"
is 'when the shell ends, the next job starts' wait_until 'runs next'
release_all next

# on a slow machine the next job may not have to wait
shell mine 1 "$(in_shell --time 2s --grace 1s -n 2)"
by 2 begin next -n 2
is 'at the time limit of the shell the next job starts' wait_until 'runs next'
is 'after its time limit the shell goes on' kill -0 "$(cut -d ' ' -f 1 "$S/open/mine.runs")"
is 'the time limit ends the child of the shell' wait_until 'over "$S/open/mine.child"'
release_all next
echo >"$S/open/mine.hold"

stranger 1
driver 'gpus 2' "process 0 $stranger"
run 'a user cannot adopt a process of another user' 125 '' \
	"gpulease: process $stranger belongs to *" \
	"$U2" --lease-only --pid "$stranger"
run 'a user adopts what is their own' 0 '[0-9]*' '*which has GPU 0' \
	"$U1" --lease-only --pid "$stranger" --time 2s --grace 1s
run 'the GPU of the adopted process is leased' 124 '' '*needs 2 GPUs*' "$U2" -n 2 -I true
is 'the adopted process is ended at its time limit' wait_until 'over "$S/open/stranger"'
driver 'gpus 2'
run 'after that another user gets the GPU' 0 '' '*' "$U2" -n 2 --max-wait 30s true

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
	run "$way of its FIFO: the history has the end of the job" 0 '* ended *' '' "$U2" \
		--history
	is "$way of its FIFO: the lease is not given up" [ "${out#*given up}" = "$out" ]
done
intact 'after all of these leases the state can be read'
finish

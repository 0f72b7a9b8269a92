#!/bin/sh
# record-ends while another job waits for each end: the process that takes the GPUs records the end
# first, and does not know the status.  The oracle is the file that the jobs themselves have
# written.
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
conf=$S/conf
echo 'record-ends = yes' >"$conf"

# watchdogs: their pids
watchdogs() {
	for pid in $(strays); do
		! grep -sqx gpulease-limit "/proc/$pid/comm" || echo "$pid"
	done
}

# shown: "ID STATE STATUS" of each end in the history
shown() {
	"$GPULEASE" --history all --json | tr -d ' \n' | tr '{' '\n' |
		sed -n 's/^"ticket":\([0-9]*\),.*"state":"\([a-z-]*\)".*"status":\([0-9a-z]*\),.*/\1 \2 \3/p' |
		sort
}

# shows ID STATE STATUS: whether the history has just this line for the job
shows() {
	[ "$(shown | grep "^$1 ")" = "$1 $2 $3" ]
}

# unreaped NAME: a holder whose parent does not reap it until let_reap
unreaped() {
	rm -f "$S/$1".*
	mkfifo "$S/$1.hold"
	sh -c 'base=$1 program=$2
		shift 2
		"$program" "$@" -- sh -c "exec 3<>\"\$1.hold\"
			echo \"\$\$ \$GPULEASE_ID\" >\"\$1.new\"
			mv \"\$1.new\" \"\$1.runs\"
			read -r status <&3
			exit \"\$status\"" job "$base" >"$base.out" 2>"$base.err" &
		echo $! >"$base.pid"
		exec sleep 1000' parent "$S/$1" "$GPULEASE" --config "$conf" -n 2 </dev/null &
	echo $! >"$S/$1.parent"
	started="$started $!"
	wait_until "[ -e '$S/$1.runs' ]" || bail "job $1 does not start: $(cat "$S/$1.err")"
}

let_reap() {
	kill -KILL "$(cat "$S/$1.parent")"
}

# From Linux 6.15 on, the kernel tells the status of a process to others than its parent.
holder probe --config "$conf" -n 1
release_all probe
wait_until '[ -z "$(watchdogs)" ]' || bail 'a watchdog stays'
if ! shows "$(id_of probe)" finished 0; then
	skip 'each end with its status' 'the kernel tells only the parent how a process ended'
	finish
fi

# --- 48 ends, each with a waiting job ----------------------------------------------------

rm -f "$S/oracle"
for each in $(seq 48); do
	"$GPULEASE" -Q --config "$conf" -n 1 -- sh -c \
		'echo "$GPULEASE_ID $1" >>"$2"; exit "$1"' sh $((each % 5)) "$S/oracle" &
	started="$started $!"
	jobs="${jobs-} $!"
done
# shellcheck disable=SC2086 # one word each
wait $jobs
wait_until '[ -z "$(watchdogs)" ]'
is 'all of 48 jobs have run' [ "$(grep -c . "$S/oracle")" -eq 48 ]
sort "$S/oracle" >"$S/wanted"
shown | grep -v "^$(id_of probe) " | cut -d ' ' -f 1,3 >"$S/found"
is 'the history has each of 48 ends once, with its status' \
	cmp "$S/wanted" "$S/found"
is '--accounting counts each of 48 ends once' like '*"jobs":49,*' \
	"$("$GPULEASE" --accounting --json | tr -d ' \n')"

# --- jobs that come after ------------------------------------------------------------------

# taken NAME STATUS: a job ends with that status, and the next job takes its GPUs before the status
# is known
taken() {
	unreaped "$1"
	waiter next -n 2
	release "$1" "$2"
	wait_until 'runs next'
}

after_ok() {
	taken first 0
	begin second --config "$conf" -n 0 --after-ok "$(id_of first)"
	wait_until '[ -s "$S/second.err" ]'
	! runs second || bail 'second did not have to wait'
	let_reap first
	wait_until 'runs second || [ ! -d "/proc/$(pid_of second)" ]'
	release_all next
	runs second || return
	release_all second
}
is '--after-ok waits for the exact end and starts' sometimes after_ok

failed() {
	taken first 7
	"$GPULEASE" -n 0 --after-ok "$(id_of first)" true 2>"$S/err" &
	second=$!
	started="$started $second"
	wait_until '[ -s "$S/err" ]'
	let_reap first
	wait "$second"
	release_all next
	grep -q 'status 7' "$S/err"
}
is '--after-ok says with which status the job failed' sometimes failed

waited() {
	taken first 9
	"$GPULEASE" --wait-for "$(id_of first)" &
	second=$!
	started="$started $second"
	wait_until 'like S "$(process_state "$second")"'
	let_reap first
	wait "$second"
	waited_rc=$?
	release_all next
	[ "$waited_rc" -eq 9 ]
}
is '--wait-for waits for the exact end, too' sometimes waited

# --- other ends ----------------------------------------------------------------------------

holder one --config "$conf" -n 2
waiter next -n 2
run 'a job that is canceled while others wait' 0 '*' '*' "$GPULEASE" --cancel "$(id_of one)"
ended one
is 'the history says cancelled, with the status' wait_until 'shows "$(id_of one)" cancelled 143'
is 'the watchdog of a cancelled job ends' wait_until '[ -z "$(watchdogs)" ]'
is 'the history has the end of a cancelled job once' shows "$(id_of one)" cancelled 143
release_all next

holder one -n 2
waiter late -n 2 -t 300ms
waiter next -n 2
release_all one
is 'a job starts when the one before reaches its limit' wait_until 'runs next'
is 'the history says timed-out, with the status' wait_until 'shows "$(cut -d " " -f 2 "$S/late.runs")" timed-out 124'
release_all next

holder one --config "$conf" -n 2
waiter next -n 2
kill -KILL "$(watchdogs)"
release one 6
wait_until 'runs next'
is 'the next job records the end if the watchdog was killed' \
	wait_until '[ "$(shown | grep -c "^$(id_of one) ")" -eq 1 ]'
release_all next
ended one
finish

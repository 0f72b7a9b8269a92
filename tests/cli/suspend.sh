#!/bin/sh
# Long deadlines count the time that the machine is suspended.  No test can suspend the machine, so
# /proc tells on which clock each deadline sleeps: CLOCK_BOOTTIME has number 7.
# shellcheck disable=SC2016,SC2317 # conditions, and functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 1
echo 'record-ends = yes' >"$S/conf"

# timers PID: the clocks of the timers that the process has set
timers() {
	for info in "/proc/$1"/fdinfo/*; do
		grep -q '^it_value: (0, 0)' "$info" && continue
		sed -n 's/^clockid: //p' "$info"
	done 2>/dev/null | tr '\n' ' '
}

# counts_suspend PID: whether the process sleeps on one timer of CLOCK_BOOTTIME
counts_suspend() {
	[ "$(timers "$1")" = '7 ' ]
}

# has_no_timer PID: whether the process sleeps and has no timer at all
has_no_timer() {
	[ "$(process_state "$1")" = S ] && [ -z "$(timers "$1")" ]
}

# watchdog: the pid of the watchdog, if there is one
watchdog() {
	for pid in $(strays); do
		! grep -sqx gpulease-limit "/proc/$pid/comm" || echo "$pid"
	done
}

holder limited -n 1 -t 2h
if "$GPULEASE" --doctor | grep -q 'pidfd_open: '; then
	skip 'the watchdog of a time limit has a timer that counts a suspend' \
		'without pidfds it looks at the clock each second'
else
	is 'the watchdog of a time limit has a timer that counts a suspend' \
		wait_until 'counts_suspend "$(watchdog)"'
fi
release_all limited
holder recorded --config "$S/conf" -n 1
if "$GPULEASE" --doctor | grep -q 'pidfd_open: '; then
	skip 'a watchdog that only records the end sleeps until the next sample of the use' \
		'without pidfds it looks at the clock each second'
else
	is 'a watchdog that only records the end sleeps until the next sample of the use' \
		wait_until 'counts_suspend "$(watchdog)"'
fi
release_all recorded

holder watched -n 1 -t 2h --retries 1
is 'the supervisor of a job with a limit has such a timer' \
	wait_until 'counts_suspend "$(pid_of watched)"'
release_all watched
holder reported -n 1 --retries 1
is 'the supervisor of a job without a limit sleeps until the next sample' \
	wait_until 'counts_suspend "$(pid_of reported)"'
release_all reported

"$GPULEASE" -n 1 -t 2h --lease-only >"$S/held.out" 2>"$S/held.err" &
held=$!
started="$started $held"
is '--lease-only with a limit has such a timer' wait_until 'counts_suspend "$held"'
waiter patient -n 1 --max-wait 2h
is 'a waiting job with --max-wait has such a timer' \
	wait_until 'counts_suspend "$(pid_of patient)"'
waiter endless -n 1
is 'a waiting job without --max-wait has no timer' \
	wait_until 'has_no_timer "$(pid_of endless)"'
"$GPULEASE" --wait-for --max-wait 2h "$(sed -n 's/.*job \([0-9]*\) waits.*/\1/p' "$S/endless.err")" \
	>"$S/asker.out" 2>"$S/asker.err" &
asker=$!
started="$started $asker"
is '--wait-for with --max-wait has such a timer' wait_until 'counts_suspend "$asker"'
kill -TERM "$held"
release_all patient endless

printf 'retry-delay = 2h\nretry-delay-max = 2h\n' >"$S/conf"
begin again --config "$S/conf" -n 1 --retries 1
release again 3
is 'a job that is tried again later has such a timer' wait_until 'counts_suspend "$(pid_of again)"'
finish

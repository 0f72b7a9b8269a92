#!/bin/sh
# Jobs that begin later, are held or get more time, where gpulease is installed set-group-ID: no user
# changes the job of another, or gets a better place by these options.
# shellcheck disable=SC2016,SC2154 # conditions; variables of hardened_lib.sh

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'later, held and prolonged jobs' "$@"
driver 'gpus 1'
configure 'max-time = 3h'

# place ID: the place of the job in the queue
place() {
	"$ROOT" --queue | sed -n "s/^ *\([0-9][0-9]*\)  *$1 .*/\1/p"
}

by 1 holder runs -n 1 --time 1h
by 2 waiter early -n 1 --hold --max-wait 1h
held=$(ticket_of early)
run 'another user cannot release it' 1 '' "gpulease: job $held belongs to $((UID_BASE + 2)); only they and root may release it" \
	"$U3" --release "$held"
by 3 waiter fair -n 1
by 2 waiter past -n 1 --begin 2020-01-01
is 'a time that has passed is no better place' [ "$(place "$(ticket_of past)")" = 3 ]
is 'the job is still held' like '*is held;*' "$("$ROOT" --queue)"
run 'its owner releases it' 0 '' '' "$U2" --release "$held"
is 'and it comes after the jobs that wait' wait_until '[ "$(place "$held")" = 3 ]'

run 'another user cannot prolong a job' 1 '' "gpulease: job $(id_of runs) belongs to $((UID_BASE + 1)); only they and root may extend it" \
	"$U2" --extend "$(id_of runs)" 1h
run 'its owner can, up to max-time in all' 0 '' "gpulease: job $(id_of runs) may run until *, 3h00m in all
gpulease: job $(ticket_of fair) of $((UID_BASE + 3)) may start 2h00m later*" "$U1" --extend "$(id_of runs)" 2h
run 'and no further' 1 '' "gpulease: job $(id_of runs) may run for 3h00m in all: max-time in the configuration" \
	"$U1" --extend "$(id_of runs)" 1s
run 'root can' 0 '' "gpulease: job $(id_of runs) may run until *, 4h00m in all*" \
	"$ROOT" --extend "$(id_of runs)" 1h
release_all runs
is 'the jobs start in the order of the queue' wait_until 'runs fair && ! runs past && ! runs early'
release_all fair past early

# the watchdog has no more rights than its user, and its files are no way in.  Without pidfds it is
# two processes.
for limit in 2 8 30; do
	rm -f "$S/long.runs"
	by 1 begin long -n 1 --time "${limit}s"
	lease_wait long
	guards=$(own_guards)
	try "$U1" --extend "$(id_of long)" 1h
	[ $rc -ne 0 ] || break
	ended long
done
hers="$((UID_BASE + 1)) $((UID_BASE + 1)) $((UID_BASE + 1)) $((UID_BASE + 1))"
is 'there is a watchdog' [ -n "$guards" ]
for guard in $guards; do
	run 'its user cannot see the files of the watchdog' 2 '' '*Permission denied*' \
		as 1 ls "/proc/$guard/fd"
	is 'the watchdog has given up the group' \
		[ "$(sed -n 's/^Gid:[^0-9]*//p' "/proc/$guard/status" | tr '\t' ' ')" = "$hers" ]
done
is 'and still reads the new limit' wait_until "[ \"\$(\"\$ROOT\" --status $(id_of long) --json |
	grep -o '\"age_ms\": *[0-9]*' | head -n 1 | tr -dc 0-9)\" -gt $((limit * 1000 + 500)) ]"
release_all long
run "the GPU is free afterwards" 0 "" "*" "$U3" -n 1 --max-wait 20s true
finish

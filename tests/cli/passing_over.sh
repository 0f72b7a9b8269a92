#!/bin/sh
# A head of the queue whose owner is stopped or frozen is passed over: the jobs behind it and new
# jobs start.  When its owner is woken, it goes on in its place.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# --- how to halt a process, so that it cannot say so --------------------------------------

# mounted TYPE OPTION: where a file system of this type is mounted, with this option if it is not
# ''.
mounted() {
	sed -n "s/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - $1 [^ ]* \(.*,\)*$2.*/\1/p" \
		/proc/self/mountinfo | head -n 1
}

# Makes a cgroup with a freezer and sets $group to it: below that of this process, else below the
# root.
make_group() {
	group='' freezer=''
	v2=$(mounted cgroup2 '')
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	for parent in "${v2:+$v2$own}" "$v2" "$(mounted cgroup freezer)"; do
		group=${parent:-/nowhere}/gpulease-test.$$
		mkdir "$group" 2>/dev/null || continue
		if [ -w "$group/cgroup.freeze" ]; then
			freezer=v2
			return
		elif [ -w "$group/freezer.state" ]; then
			freezer=v1
			return
		fi
		rmdir "$group"
	done
	group=''
	return 1
}

freezer_is() {
	if [ "$freezer" = v2 ]; then
		[ "$(sed -n 's/^frozen //p' "$group/cgroup.events")" = "$1" ]
	else
		like "$([ "$1" = 1 ] && echo FROZEN || echo THAWED)" \
			"$(cat "$group/freezer.state")"
	fi
}

set_freezer() {
	if [ "$freezer" = v2 ]; then
		echo "$1" >"$group/cgroup.freeze"
	elif [ "$1" = 1 ]; then
		echo FROZEN >"$group/freezer.state"
	else
		echo THAWED >"$group/freezer.state"
	fi
}

remove_group() {
	[ -n "$group" ] || return 0
	set_freezer 0
	while read -r member; do
		kill -KILL "$member"
	done <"$group/cgroup.procs"
	wait_until 'rmdir "$group" 2>/dev/null'
}

freeze() {
	pid_of "$1" >"$group/cgroup.procs"
	set_freezer 1
	wait_until 'freezer_is 1' || bail 'the cgroup does not freeze'
}

thaw() {
	set_freezer 0
	wait_until 'freezer_is 0' || bail 'the cgroup does not thaw'
}

# --- situations ----------------------------------------------------------------------------
#
# $1 says how the head is halted, $2 is the function that halts it, $3 the function that wakes it.

# All GPUs become free while the head, which wants them all, is halted.
head_could_start() {
	holder first -n 8
	waiter head -n 8
	waiter next -n 4
	"$2" head
	release_all first
	is "head $1 while it could start: the next job starts" wait_until 'runs next'
	begin newcomer -n 4
	is "head $1 while it could start: a new job starts" wait_until 'runs newcomer'
	! runs head || not_ok "head $1: the head has not started"
	awake "$3"
	waiter last -n 1
	goes_on_in_its_place "head $1 while it could start" next newcomer
}

# The head is halted while it waits for a job that goes on; the free GPUs are enough for other jobs.
head_could_not_start() {
	holder first -n 4
	waiter head -n 8
	"$2" head
	begin next -n 2
	is "head $1 while it could not start: the next job starts" wait_until 'runs next'
	begin newcomer -n 2
	is "head $1 while it could not start: a new job starts" wait_until 'runs newcomer'
	! runs head || not_ok "head $1: the head has not started"
	awake "$3"
	waiter last -n 1
	release_all first
	goes_on_in_its_place "head $1 while it could not start" next newcomer
}

# awake WAKE: wakes the head with the function WAKE, and returns when its ticket says that it takes
# turns again.  No other job waits, so no other process writes to the tickets.
awake() {
	tickets=$(state_dir)/tickets
	asleep=$(cksum <"$tickets")
	"$1" head
	is "the head takes a turn when it is woken" wait_until tickets_have_changed
}

tickets_have_changed() {
	[ "$(cksum <"$tickets")" != "$asleep" ]
}

# goes_on_in_its_place TEXT JOB…: the head is awake again, and the job `last` waits behind it.  When
# these jobs have ended, the head starts first, although `last` wants less.
goes_on_in_its_place() {
	place_text=$1
	shift
	release "$1"
	ended "$1"
	shift
	release_all "$@"
	is "$place_text: the head starts when it is woken" wait_until 'runs head'
	if runs last; then
		not_ok "$place_text: the head starts first" "a later job has started before it"
	else
		ok "$place_text: the head starts first"
	fi
	release_all head
	is "$place_text: the job behind the head starts after it" wait_until 'runs last'
	release_all last
}

scratch
head_could_start stopped stop wake
head_could_not_start stopped stop wake

if make_group; then
	at_exit remove_group
	head_could_start frozen freeze thaw
	head_could_not_start frozen freeze thaw
else
	skip 'a frozen head is passed over' 'no cgroup with a freezer can be made here'
fi
finish

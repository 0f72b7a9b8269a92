#!/bin/sh
# A head of the queue that is stopped or frozen is passed over: those behind it go on, and
# so do newcomers.  Woken, it goes on in its place.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# --- how to halt a process, so that it cannot say so --------------------------------------

# Where a file system of this type, with this option if one is given, is mounted.
mounted() {
	sed -n "s/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - $1 [^ ]* \(.*,\)*$2.*/\1/p" \
		/proc/self/mountinfo | head -n 1
}

# A cgroup of its own, in $group: below this process's own one, else below the root.
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
# $1 says how the head is halted, $2 is the function for it, $3 the one that wakes it.

# All GPUs become free while the head, which wants them all, is halted.
head_could_start() {
	holder first -n 8
	waiter head -n 8
	waiter next -n 4
	"$2" head
	release_all first
	is "$1 while it could start: the next one goes on" wait_until 'runs next'
	begin newcomer -n 4
	is "$1 while it could start: so does a newcomer" wait_until 'runs newcomer'
	! runs head || not_ok "$1: the head has run"
	awake "$3"
	waiter last -n 1
	goes_on_in_its_place "$1 while it could start" next newcomer
}

# The head, halted, waits for a job that goes on; what it leaves is enough for others.
head_could_not_start() {
	holder first -n 4
	waiter head -n 8
	"$2" head
	begin next -n 2
	is "$1 while it could not start: the next one goes on" wait_until 'runs next'
	begin newcomer -n 2
	is "$1 while it could not start: so does a newcomer" wait_until 'runs newcomer'
	! runs head || not_ok "$1: the head has run"
	awake "$3"
	waiter last -n 1
	release_all first
	goes_on_in_its_place "$1 while it could not start" next newcomer
}

# Wakes the head with $1 and returns when it has said in its ticket that it takes turns again:
# nobody else waits, so nobody else writes there.
awake() {
	tickets=$(state_dir)/tickets
	asleep=$(cksum <"$tickets")
	"$1" head
	is "woken, the head takes a turn" wait_until tickets_have_changed
}

tickets_have_changed() {
	[ "$(cksum <"$tickets")" != "$asleep" ]
}

# goes_on_in_its_place TEXT JOB…: the head is awake again, and `last` has come behind it.
# When these jobs have ended, it starts first, although `last` wants less.
goes_on_in_its_place() {
	place_text=$1
	shift
	release "$1"
	ended "$1"
	shift
	release_all "$@"
	is "$place_text: woken, the head goes on" wait_until 'runs head'
	if runs last; then
		not_ok "$place_text: in its place" "one that came later has started before it"
	else
		ok "$place_text: in its place"
	fi
	release_all head
	is "$place_text: and the one behind it after it" wait_until 'runs last'
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

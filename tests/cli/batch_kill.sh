#!/bin/sh
# The runner of a batch is killed at its system calls: each line still runs exactly once.
#
#	BATCH_EVERY	the distance between two of these calls (11)
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"
: "${BATCH_EVERY:=11}"
is_sanitized "$GPULEASE" && BATCH_EVERY=$((BATCH_EVERY * 8))

"$TOOLS/sysfault" --count true >/dev/null 2>&1 || {
	skip 'a runner is killed at its system calls' 'no ptrace here'
	finish
}

# kill_at N: runs a runner and kills it right before its Nth call; fails with 1 if it had ended
# before
kill_at() {
	timeout -k 5 "$DEADLINE" "$TOOLS/sysfault" --kill "$1" "$GPULEASE" --batch "$J" \
		>"$S/k.out" 2>"$S/k.err" </dev/null
}

# why NAME…: prints what is wrong after the last run, which ended with $rc.  Each of the
# jobs must have run once.
why() {
	[ "$rc" = 0 ] || echo "exit status $rc: $err"
	[ ! -e "$S/twice" ] || echo "two at a time: $(words "$S/twice")"
	for each; do
		[ "$(count "^$each\$" "$S/starts")" = 1 ] ||
			echo "'$each' was started $(count "^$each\$" "$S/starts") times"
	done
	[ "$(count '"event": "ended"' "$W/journal.jsonl")" = $# ] ||
		echo "the journal has $(count '"event": "ended"' "$W/journal.jsonl") ends"
	wait_until empty_queue || echo 'the queue is not empty'
}

# sweep TEXT PREPARE NAME…: one result.  For each point at which a runner can be killed:
# evaluates PREPARE, kills a runner there, lets the jobs NAME… end, and runs a whole batch.
sweep() {
	sweep_text=$1 prepare=$2 points=0 at=1 sweep_why=
	shift 2
	while [ -z "$sweep_why" ]; do
		clean
		eval "$prepare"
		kill_at "$at"
		is_over=$?
		go "$@"
		try batch
		sweep_why=$(why "$@")
		[ "$is_over" = 0 ] || break
		points=$((points + 1))
		at=$((at + BATCH_EVERY))
	done
	if [ -z "$sweep_why" ] && [ "$is_over" = 1 ]; then
		ok "$sweep_text: $points points"
	else
		not_ok "$sweep_text, before call $at" "$sweep_why" "sysfault: $is_over" \
			"$(cat "$S/k.err")" "$(cat "$W/journal.jsonl")"
	fi
}

sim 2
sweep 'a runner is killed at a system call' '
	lines "$S/held a" "[gpus=2] $S/held b" "$S/held c"
	go a b c' a b c

sweep 'a runner is killed while it takes over running jobs' '
	lines "$S/held a" "$S/held b" "$S/held c"
	batch_begin p
	await_on a b
	kill -KILL "$(pid_of p)"
	ended p
	# the jobs end once the runner waits for them
	: >"$S/k.out"
	(wait_until "grep -q \"have not ended\" \"$S/k.out\""; go a b c) &
	started="$started $!"' a b c

finish

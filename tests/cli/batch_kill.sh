#!/bin/sh
# The runner of a batch is killed at its system calls: each line runs once all the same.
#
#	BATCH_EVERY	at every so-manieth of them (11)
# shellcheck disable=SC2016,SC2154,SC2317 # conditions, and code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/batch_lib.sh
. "$(dirname "$0")/batch_lib.sh"
: "${BATCH_EVERY:=11}"
is_sanitized "$GPULEASE" && BATCH_EVERY=$((BATCH_EVERY * 8))

"$TOOLS/sysfault" --count true >/dev/null 2>&1 || {
	skip 'killing a runner' 'no ptrace here'
	finish
}

# kill_at N: the runner, right before its Nth call; 1: it had ended before
kill_at() {
	timeout -k 5 "$DEADLINE" "$TOOLS/sysfault" --kill "$1" "$GPULEASE" --batch "$J" \
		>"$S/k.out" 2>"$S/k.err" </dev/null
}

# why NAME…: what is wrong once a last run has ended with $rc, where each is to have run once
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

# sweep TEXT PREPARE NAME…: a kill at each point behind the shell code, and then a whole run
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
sweep 'killed at a call of its own' '
	lines "$S/held a" "[gpus=2] $S/held b" "$S/held c"
	go a b c' a b c

sweep 'killed while it takes over what runs' '
	lines "$S/held a" "$S/held b" "$S/held c"
	batch_begin p
	await_on a b
	kill -KILL "$(pid_of p)"
	ended p
	# once it waits for them they end
	: >"$S/k.out"
	(wait_until "grep -q \"still at work\" \"$S/k.out\""; go a b c) &
	started="$started $!"' a b c

finish

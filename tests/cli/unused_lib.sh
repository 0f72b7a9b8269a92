# shellcheck shell=sh
# What unused.sh, unused_never.sh and unused_kinds.sh share, after scratch.  The clock is scaled: a
# sample each 200 ms, told after 1 s, ended after 3 s.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, functions that are called by others

with_driver
# lines of the sample child would end in the test's own jobs
program=$GPULEASE
configured
unset COLUMNS

# settings: writes the scaled keys
settings() {
	printf '%s\n' 'record-ends = yes' 'idle-interval = 200ms' 'idle-after = 1s' \
		'idle-end = 3s' 'probe-deadline = 1s' >"$S/conf"
}

# machine N: a fresh machine with N idle GPUs
machine() {
	fresh
	gpus "$1"
	settings
}

# busy GPU PERCENT
busy() {
	echo "$2" >"$FAKE_SMI_DIR/util.$1.new" && mv "$FAKE_SMI_DIR/util.$1.new" "$FAKE_SMI_DIR/util.$1"
}

# shown GPU MEMBER: a member of the first lease of the GPU in --status --json
shown() {
	"$GPULEASE" --status --json | "$TOOLS/jsoncheck" "gpus.$1.leases.0.$2"
}

# span_of GPU MEMBER: the same of a time, 0 if it is null
span_of() {
	shown "$1" "$2" 2>/dev/null | sed 's/[^0-9].*/0/'
}

# status_says TEXT
status_says() {
	"$GPULEASE" --status | grep -q "$1"
}

# sees N: until N more samples of the use were taken
seen_at() {
	sed -n 's/.* seen=\([0-9]*\) .*/\1/p' "$GPULEASE_DIR"/live/*.use 2>/dev/null | sort -n | tail -n 1
}
sees() {
	sees_from=$(seen_at)
	wait_until '[ "$(($(seen_at) + 0))" -ge $((${sees_from:-0} + '"$1"' * 200)) ]'
}

# told NAME TEXT: how many lines with the text its stderr has
told() {
	grep -c "$2" "$S/$1.err"
}

# past ID MEMBER: a member of the ended job in --history --json, without quotes
past() {
	"$GPULEASE" --history all --json | tr -d ' \n' | tr '{' '\n' |
		sed -n "s/^\"ticket\":$1,.*\"$2\":\"*\([^\",]*\).*/\1/p"
}

# has_ended ID HOW STATE STATUS: whether the history says so, in the line of the recorder.  The status of a job without a
# supervisor is known only where the kernel tells it (recording.sh); the state depends on it.
has_ended() {
	[ "$(past "$1" unused_ms)" -ge 0 ] 2>/dev/null && [ "$(past "$1" how)" = "$2" ] &&
		case $(past "$1" status) in
		"$4") [ "$(past "$1" state)" = "$3" ] ;;
		null) [ "$2" != unused ] || [ "$(past "$1" state)" = "$3" ] ;;
		*) false ;;
		esac
}

# guards: the pids of the watchdogs of this script
guards() {
	for pid in $(strays); do
		! grep -sqx gpulease-limit "/proc/$pid/comm" || echo "$pid"
	done
}

# strays_run NAME: whether a process of this script runs that program
strays_run() {
	for pid in $(strays); do
		! grep -sqx "$1" "/proc/$pid/comm" || return 0
	done
	return 1
}

# calls: how often nvidia-smi was asked for the GPUs
calls() {
	grep -c gpus "$FAKE_SMI_DIR/count"
}

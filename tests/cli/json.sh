#!/bin/sh
# What all JSON of gpulease begins with, and --dry-run --json.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 4

host=$(uname -n)
version=$("$GPULEASE" --version | cut -d ' ' -f 2)

# begins KIND COMMAND…: a result: the object says what it is and where it comes from
begins() {
	kind=$1
	shift
	try "$@"
	has_json "$* says what it is" "gpulease-$kind/1 1 $version $host" format schema version host
	is "$* says when" [ "$("$TOOLS/jsoncheck" taken_unix_ms <"$S/out")" -gt 1700000000000 ]
}

"$GPULEASE" --name first true
"$GPULEASE" --name second true
begins status "$GPULEASE" --status --json
begins queue "$GPULEASE" --queue --json
begins history "$GPULEASE" --history --json
begins accounting "$GPULEASE" --accounting --json
# even a tmux that only lists makes a folder for its sockets
begins sessions env TMUX_TMPDIR="$S" "$GPULEASE" --sessions --json
begins config "$GPULEASE" --show-config --json
begins doctor "$GPULEASE" --doctor --json
begins dry-run "$GPULEASE" --dry-run --json -n 2 touch "$S/ran"

echo true >"$S/jobs"
try "$GPULEASE" --batch "$S/jobs" --json
sed -n 1p "$S/out" >"$S/first"
mv "$S/first" "$S/out"
has_json 'the first event of a batch says what they are' "batch gpulease-batch/1 1 $version $host" \
	event format schema version host
is 'the journal has no such event' [ "$(grep -c '"batch"' "$S/jobs.logs/journal.jsonl")" = 0 ]

# --- --dry-run --------------------------------------------------------------------------------

try "$GPULEASE" --dry-run --json --gpu-ids 0-1 touch "$S/ran"
is 'a job that would start: exit status 0' [ "$rc" -eq 0 ]
has_json 'a job that would start' 'true 0 1 null null null null' \
	can_start gpus.0 gpus.1 step_of position reason_kind why
uuids=$("$GPULEASE" --gpu-ids 0-1 sh -c 'echo "$GPULEASE_UUIDS"')
has_json 'the UUIDs are those of the job' "$(echo "$uuids" | tr ',' ' ')" uuids.0 uuids.1
is 'it would start now' \
	[ "$("$TOOLS/jsoncheck" start_at_unix_ms <"$S/out")" = \
	"$("$TOOLS/jsoncheck" taken_unix_ms <"$S/out")" ]
try "$GPULEASE" --dry-run --json -n 0 touch "$S/ran"
is 'a job without GPUs gets none' like '*"can_start": true*"gpus": \[\]*' "$out"

holder busy -n 4 --time 1h
try "$GPULEASE" --dry-run --json -n 2 touch "$S/ran"
is 'a job that would wait: exit status 124' [ "$rc" -eq 124 ]
has_json 'a job that would wait' 'false 1 leased' can_start position reason_kind
is 'a job that would wait has no GPUs' like '*"gpus": \[\],*"uuids": \[\],*' "$out"
why=$("$TOOLS/jsoncheck" why <"$S/out")
at=$("$TOOLS/jsoncheck" start_at_unix_ms <"$S/out")
try "$GPULEASE" --dry-run -n 2 touch "$S/ran"
is 'the line without --json has the same reason' [ "$out" = "would wait, 1st in the queue: $why" ]
limit=$("$GPULEASE" --status --json | "$TOOLS/jsoncheck" gpus.0.started_unix_ms)
is 'it would start at the time limit' [ $((at - limit - 3600000)) -ge 0 ] && is 'and not later' \
	[ $((at - limit - 3600000)) -lt 60000 ]
release_all busy

holder open -n 4
try "$GPULEASE" --dry-run --json touch "$S/ran"
has_json 'without a limit the start is not known' 'false null' can_start start_at_unix_ms
release_all open

try "$GPULEASE" --gpu-ids 0-1 "$GPULEASE" --dry-run --json -n 1 touch "$S/ran"
has_json 'a step would start on a GPU of its job' 'true 0' can_start gpus.0
is 'a step names its job' [ "$("$TOOLS/jsoncheck" step_of <"$S/out")" -gt 0 ]
run 'what can never start prints no JSON' 125 '' 'gpulease: cannot lease 5 GPUs*' \
	"$GPULEASE" --dry-run --json -n 5 true
is 'none of them has run' [ ! -e "$S/ran" ]

# --- --history --last ---------------------------------------------------------------------------

try "$GPULEASE" --history --json --last 1
is '--last 1 shows one job' [ "$(grep -c '"ticket"' "$S/out")" -eq 1 ]
try "$GPULEASE" --history --json --last all
# in either order: the ends that no process recorded are known only when the GPUs are taken again
is '--last all shows all' eval 'like "*\"first\"*" "$out" && like "*\"second\"*" "$out"'
finish

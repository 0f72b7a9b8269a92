#!/bin/sh
# When a job usually starts, how such jobs usually run, and limits far above that: from the history.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2

dir=$XDG_STATE_HOME/gpulease/sim-2x24576
me=$(id -u)
now=$(date +%s)000

# ran TIMES MINUTES NAME [KEY=VALUE…]: so many jobs of this name, of this user, have run so long
ran() {
	times=$1 minutes=$2 name=$3
	shift 3
	"$TOOLS/tellend" "$dir" -n "$times" ticket=1 uid="$me" since=$((now - 86400000)) \
		alive=$((now - 86400000 + minutes * 60000)) gone=$((now - 86400000 + minutes * 60000)) \
		status=0 name="$name" command=train "$@"
}

# minutes MEMBER: in how many minutes that moment of $S/out is
minutes() {
	echo $((($("$TOOLS/jsoncheck" "$1" <"$S/out") - now) / 60000))
}

# --- without runs ------------------------------------------------------------------------

holder long -n 2 --name long
try "$GPULEASE" --dry-run --json --name short true
has_json 'without runs nothing is known' 'null null null null null null null null' \
	usual_start_from_unix_ms usual_start_to_unix_ms usual_start_runs usual_runs usual_p50_ms \
	usual_p90_ms usual_p50_mib usual_p90_mib
run 'and nothing is said' 124 'would wait, 1st in the queue: needs 1 GPU, none is free' '' \
	"$GPULEASE" --dry-run --name short true
ran 2 60 long
run 'two runs are too few' 124 'would wait, 1st in the queue: needs 1 GPU, none is free' '' \
	"$GPULEASE" --dry-run --name short true

# --- with runs -----------------------------------------------------------------------------

ran 2 90 long
run 'the usual start, without a limit' 124 'would wait, *none is free; usually starts * to * (4 runs)' '' \
	"$GPULEASE" --dry-run --name short true
try "$GPULEASE" --dry-run --json --name short true
has_json 'it rests on four runs' '4 null' usual_start_runs start_at_unix_ms
from=$(minutes usual_start_from_unix_ms) to=$(minutes usual_start_to_unix_ms)
is 'the shortest took an hour' [ "$from" -ge 58 ] && is 'and not more' [ "$from" -le 62 ]
is 'nine of ten took one and a half at most' [ "$to" -ge 88 ] && is 'and not more, either' [ "$to" -le 92 ]

: >"$S/waits"
"$GPULEASE" --name short true 2>"$S/waits" &
started="$started $!"
run 'the line of a waiting job says it' 0 '' '' wait_until \
	'grep -q "job [0-9]* waits, 1st in the queue: .*; usually starts .* to .* (4 runs)" "$S/waits"'
try "$GPULEASE" --queue
is '--queue says it' like '*usually starts*(4 runs)*' "$(echo "$out" | tr -s ' \n' ' ')"
try "$GPULEASE" --queue --json
has_json '--queue --json has it' 4 queue.0.usual_start_runs
is 'as a time' [ "$(minutes queue.0.usual_start_to_unix_ms)" -le 92 ]

# jobs of a name that usually run for 10 minutes come first
ran 3 10 short
try "$GPULEASE" --dry-run --json --name other -n 2 true
has_json 'a job behind another one waits for both' 3 usual_start_runs
to=$(minutes usual_start_to_unix_ms)
is 'its start is later by what that one usually runs' [ "$to" -ge 98 ] && is 'and no more' [ "$to" -le 102 ]
release_all long

# --- the job itself ------------------------------------------------------------------------

ran 4 30 big spans=1 peaks=18432,1000
run '--dry-run says how such jobs run' 0 \
	'would start now on GPU [01]
usually runs 30m and uses 18.0G of each GPU at most (4 runs)' '' "$GPULEASE" --dry-run --name big true
try "$GPULEASE" --dry-run --json --name big true
has_json '--json has it' '4 1800000 1800000 18432 18432' \
	usual_runs usual_p50_ms usual_p90_ms usual_p50_mib usual_p90_mib
run 'a limit far above is mentioned at the submit' 0 '[0-9]*' \
	'gpulease: such jobs usually need 30m (4 runs), and the limit is 2d0h; with a lower one*' \
	"$GPULEASE" --submit --name big -t 2d true
run 'one that is near is not' 0 '[0-9]*' '' "$GPULEASE" --submit --name big -t 50m true
run 'nor is it mentioned with -Q' 0 '[0-9]*' '' "$GPULEASE" -Q --submit --name big -t 2d true

# jobs of other users say nothing
"$TOOLS/tellend" "$dir" -n 4 ticket=1 uid=$((me + 1)) since=$((now - 86400000)) \
	alive=$((now - 80000000)) gone=$((now - 80000000)) status=0 name=theirs command=train
run 'jobs of other users are no example' 0 'would start now on GPU [01]' '' "$GPULEASE" --dry-run --name theirs true

finish

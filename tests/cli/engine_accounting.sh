#!/bin/sh
# --history, --accounting and --timeline with the engine slurm, on a cluster with accounting.

# shellcheck disable=SC2016 # variables of other shells

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$CLI/cluster_lib.sh"
scratch
cluster_accounting
cluster 2 2 || {
	skip 'the accounting of a cluster' "$cluster_why"
	finish
}
slurm_engine
cd "$S" || bail "no $S"
me=$(id -un)
newline='
'
unit=$(printf '\037')

# submit NAME COMMAND OPTION…: prints the id of a job
submit() {
	submit_name=$1 submit_command=$2
	shift 2
	sbatch --parsable -o /dev/null -N1 -n1 -J "$submit_name" "$@" --wrap "$submit_command"
}

# accounted ID STATE: the accounting, which lags, has this end of the job
accounted() {
	wait_until "sacct -X -n -P -D -j $1 -o State | grep -q '^$2'"
}

run 'nothing has run yet' 0 'no job has ended in the last 30 days' '' "$GPULEASE" --history
run 'nothing to sum up' 0 'no matching job has run' '' "$GPULEASE" --accounting

# --- what has ended ----------------------------------------------------------------------------

good=$(submit good true --gpus=2)
accounted "$good" COMPLETED
bad=$(submit bad 'exit 3' --gpus=1)
accounted "$bad" FAILED
killed=$(submit killed 'kill -KILL $$' --gpus=1)
accounted "$killed" FAILED
cancelled=$(submit cancelled 'sleep 1000' --gpus=1)
wait_until "[ \$(squeue -h -t R -j $cancelled | grep -c .) = 1 ]"
scancel "$cancelled"
accounted "$cancelled" CANCELLED
evil=$(submit "e$unit${newline}7${unit}root" true --gpus=1)
accounted "$evil" COMPLETED
array=$(submit array 'exit $SLURM_ARRAY_TASK_ID' --gpus=1 -a 4)
accounted "$array" FAILED
again=$(submit again 'sleep 1000' --gpus=1)
wait_until "[ \$(squeue -h -t R -j $again | grep -c .) = 1 ]"
scontrol requeue "$again"
accounted "$again" REQUEUED
runs=$(submit runs 'sleep 1000' --gpus=2)
accounted "$runs" RUNNING

try "$GPULEASE" --history
is 'one line for each job that has ended' [ "$(grep -c " $me " "$S/out")" = 7 ]
is 'a job that has finished' like "*$good  $me  2 on n1*finished*0  good *" "$out"
is 'a job that has failed' like "*$bad  $me  1 on n?*failed* 3  bad *" "$out"
is 'a signal is 128 and its number' like "*$killed  $me *failed* 137  killed *" "$out"
is 'a job that was cancelled, and by whom' like "*$cancelled  $me *cancelled by $me* 143  cancelled*" "$out"
is 'a name ends at a line feed' like "*$evil  $me *finished* e\\? *" "$out"
is 'the task of an array' like "*$array  $me *failed* 4  array *" "$out"
is 'an attempt that was queued again' like "*$again  $me *ended* again *" "$out"
run '--history N: the latest ones' 0 "*JOB*$array *$again *" '' "$GPULEASE" --history 2
is 'no more of them' [ "$(grep -c " $me " "$S/out")" = 2 ]
run '--state' 0 "*$bad *$killed *$array *" '' "$GPULEASE" --history --state failed
is 'only that state' [ "$(grep -c " $me " "$S/out")" = 3 ]
run '--name' 0 "*$bad *" '' "$GPULEASE" --history --name bad
run '--user' 0 "*$good *" '' "$GPULEASE" --history --user "$me" --since 1h
run 'another user' 0 'no such job has ended' '' "$GPULEASE" --history --user nobody
run '--until' 0 'no such job has ended' '' "$GPULEASE" --history --until 2020-01-01
run '--since' 0 'no such job has ended' '' "$GPULEASE" --history --since @4102444800

try "$GPULEASE" --history all --json
has_json 'the JSON' "slurm gpulease-history/1 $good finished 2 0 null" engine format jobs.0.ticket \
	jobs.0.state jobs.0.gpu_count jobs.0.status jobs.0.by
has_json 'how it has ended' "cancel $me" jobs.3.how jobs.3.by
cat >"$S/members.py" <<'END'
import json, sys

JOB = """ticket uid attempt name user command gpus instance gpu_count share vram_mib state waited_ms
started_unix_ms alive_unix_ms gone_unix_ms ran_at_least_ms ran_at_most_ms how by status peak_mib
spans_run utilization_mean_percent utilization_peak_percent unused_ms unused_at_end_ms gpu_seconds
log_is_full"""
ROW = """jobs attempts running gpu_hours_least gpu_hours_most wait_mean_ms wait_p95_ms
utilization_mean_percent unused_gpu_hours machine_share_percent"""
ALL = "format schema version host engine taken_unix_ms state_directory missing_lines missing_unix_ms "

def check(value, members):
    assert set(value) == set(members.split()), set(value) ^ set(members.split())

value = json.load(sys.stdin)
if value["format"] == "gpulease-history/1":
    check(value, ALL + "jobs events")
    for job in value["jobs"]:
        check(job, JOB)
else:
    check(value, ALL + "since_unix_ms until_unix_ms gpus users total")
    check(value["total"], ROW)
    for user in value["users"]:
        check(user, ROW + " user uid")
END

# members TEXT: a result: the JSON in $S/out has the members that gpulease-json(5) promises
members() {
	if command -v python3 >/dev/null; then
		run "$1" 0 '' '' sh -c "python3 '$S/members.py' <'$S/json'"
	else
		skip "$1" 'no python3'
	fi
}
cp "$S/out" "$S/json"
members 'the members of --history'

# --- one job -------------------------------------------------------------------------------------

run 'a job that has ended' 0 "job *'bad'*failed, exit status 3*on GPU *1 on n?*" '' \
	"$GPULEASE" --status "$bad"
run 'a job that waits for its second attempt' 0 "*waiting*attempt *2*attempt 1  ended*" '' \
	"$GPULEASE" --status "$again"

# --- sums ------------------------------------------------------------------------------------------

try "$GPULEASE" --accounting
is 'the sums of a user' like "USER *JOBS *RUNNING *GPU-HOURS*$me *8 *1 *total *on 4 GPUs" "$out"
try "$GPULEASE" --accounting --json
cp "$S/out" "$S/json"
has_json 'the JSON of the sums' "slurm 4 $me 8 1" engine gpus users.0.user total.jobs total.running
members 'the members of --accounting'
run 'for spreadsheets' 0 "user,uid,jobs,*$me,$(id -u),8,8,1,*" '' "$GPULEASE" --accounting --csv
run 'nothing in that time' 0 'no matching job has run' '' "$GPULEASE" --accounting --until 2020-01-01

# --- pictures ---------------------------------------------------------------------------------------

run '--timeline has a line for each GPU' 0 '*GPU n1/0*GPU n1/1*GPU n2/0*GPU n2/1*' '' \
	env COLUMNS=80 "$GPULEASE" --timeline --since 1h
run '--timeline as a picture' 0 '' '' "$GPULEASE" --timeline --since 1h --svg "$S/t.svg"
if command -v xmllint >/dev/null; then
	is 'it is XML' xmllint --noout "$S/t.svg"
else
	skip 'it is XML' 'no xmllint'
fi
run '--timeline as a page' 0 '' '' "$GPULEASE" --timeline --since 1h --html "$S/t.html"
COLUMNS=80 try "$GPULEASE" --top
is '--top has the jobs that ended last' like "*ENDED *$again $me again ended*" "$out"

# --- trouble -----------------------------------------------------------------------------------------

cluster_kill slurmdbd
run 'without slurmdbd: one line' 125 '' 'gpulease: sacct *' "$GPULEASE" --history
is 'it is one line' [ "$(grep -c . "$S/err")" = 1 ]
run 'a job that runs is still shown' 0 "*running on GPU*" '' "$GPULEASE" --status "$runs"
finish

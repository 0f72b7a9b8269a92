#!/bin/sh
# --status, --queue, --top, --metrics and --timeline with the engine slurm, on a cluster without
# accounting.
# shellcheck disable=SC2016 # the text of another program

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$CLI/cluster_lib.sh"
scratch
cluster_extra 'PrivateData=jobs'
cluster 4 2 || {
	skip 'a look at a cluster' "$cluster_why"
	finish
}
slurm_engine
cd "$S" || bail "no $S"
newline='
'
unit=$(printf '\037')

# submit NAME OPTION…: prints the id of a job that runs for a long time
submit() {
	submit_name=$1
	shift
	sbatch --parsable -o /dev/null -N1 -n1 -J "$submit_name" "$@" --wrap 'sleep 1000'
}

# --- an idle cluster -----------------------------------------------------------------------

run 'an idle cluster' 0 "4 nodes with 8 GPUs: 0 in use, 8 free
NODE  STATE  GPUS  FREE  TYPE  USED BY
n1    idle      2     2  sim   -
n2    idle      2     2  sim   -
n3    idle      2     2  sim   -
n4    idle      2     2  sim   -

no job waits" '' "$GPULEASE" --status
run 'an idle queue' 0 'no job waits' '' "$GPULEASE" --queue

# --- jobs ------------------------------------------------------------------------------------

scontrol update NodeName=n4 State=DRAIN Reason='a fan is | broken'
one=$(submit one --gpus=1 -t 60)
two=$(sbatch --parsable -o /dev/null -N2 -n2 -J two --gpus=3 --exclude="$(squeue -h -j "$one" -o %N)" \
	-t 1-0 --wrap 'sleep 1000')
wait_until "[ \$(squeue -h -t R -j $one,$two | grep -c .) = 2 ]"
idle=$(submit cpu)
wait_until "[ \$(squeue -h -t R -j $idle | grep -c .) = 1 ]"
waits=$(submit waits --gpus=2 -w n2 -t 100)
held=$(submit held --gpus=2 -H)
after=$(submit after --gpus=1 -d "afterok:$two,afterany:$one")
submit array --gpus=1 -H -a 1-3 >/dev/null
evil=$(submit "e$unit$newline$one${unit}COMPLETED$unit" --gpus=1 -H \
	--comment="c$newline$two${unit}PENDING$unit$newline Nodes=n1 GRES=gpu:sim:2(IDX:0-1)")
long=$(submit "$(printf '%01000d' 0)" --gpus=1 -H)
wait_until "[ \"\$(squeue -h -j $waits -o %r)\" = Resources ]"
wait_until "[ \"\$(squeue -h -j $waits -o %S)\" != N/A ]"

try "$GPULEASE" --status
is 'the sum of the GPUs' like '4 nodes with 8 GPUs: 4 in use, 2 free, 2 on nodes that take no jobs*' "$out"
is 'a drained node has its reason and who gave it' like \
	'*n4: drained since ??:??:??: a fan is | broken (root)*' "$out"
is 'a node says who uses it' like "*n?    in use *2     0  sim   $(id -un) 2*" "$out"
is 'a job on two nodes' like "*$two  $(id -un)     3  n\\[?-3\\] *two*" "$out"
is 'jobs without a GPU are counted' like '*1 job runs without a GPU*' "$out"
is 'a job that waits has a reason in our words' like \
	'*waits for GPUs or CPUs that are in use*' "$out"
is 'a dependency names the jobs' like "*waits for other jobs to end: $one,$two*" "$out"
is 'a held job says how to release it' like '*is held; gpulease --release ID lets it go*' "$out"
is 'tasks of an array that wait are one line' like '*; 3 tasks of an array*' "$out"
is 'control characters do not reach the terminal' \
	[ -z "$(printf '%s' "$out" | LC_ALL=C tr -d '[:print:]\n' | LC_ALL=C tr -d '\342\200\246')" ]
COLUMNS=80 try "$GPULEASE" --queue
is '--queue has all jobs that wait' [ "$(grep -cE '^ *[0-9]+ +[0-9]+ ' "$S/out")" = 6 ]

# --- JSON ---------------------------------------------------------------------------------------

try "$GPULEASE" --status --json
cp "$S/out" "$S/status.json"
has_json 'the JSON says the engine' 'slurm gpulease-status/1 null false' \
	engine format state_directory nvidia_smi.found
has_json 'a GPU has its node' 'n1 0 n1/0 sim null' \
	gpus.0.node gpus.0.index gpus.0.uuid gpus.0.model gpus.0.memory_total_mib
has_json 'a GPU of a drained node' 'paused true is on node n4, which is drained: a fan is | broken (root)' \
	gpus.7.state gpus.7.paused gpus.7.why
cat >"$S/members.py" <<'END'
import json, sys

GPU = """index instance parent uuid bus_id model memory_total_mib memory_used_mib
utilization_percent state why paused paused_by pause_reason idle_for_ms ticket attempt name user
pid command age_ms started_unix_ms limit_ms free_share free_mib foreign_mib leases mig node"""
LEASE = """ticket attempt name user pid command age_ms started_unix_ms limit_ms lingering share
vram_mib exclusive peak_mib over_declared utilization_mean_percent unused_for_ms unused_ms unused
unused_ok unused_ok_ms watched note"""
JOB = """position ticket attempt name user pid gpus share vram_mib exclusive priority after
after_ok singleton limit_ms since_unix_ms waits_ms begin_at_unix_ms on_hold late_ms
start_at_unix_ms can_start stopped stuck reason_kind behind held_by limit_line why
usual_start_from_unix_ms usual_start_to_unix_ms usual_start_runs command"""
STATUS = """format schema version host engine taken_unix_ms state_directory simulated nvidia_smi
broken_records without_slot gpus queue queue_is_cut running_without_gpus fair_share
windows"""

def check(value, members):
    assert set(value) == set(members.split()), set(value) ^ set(members.split())

status = json.load(open(sys.argv[1]))
check(status, STATUS)
for gpu in status["gpus"]:
    check(gpu, GPU)
    assert gpu["uuid"] == "%s/%d" % (gpu["node"], gpu["index"])
    for lease in gpu["leases"]:
        check(lease, LEASE)
for job in status["queue"]:
    check(job, JOB)
assert len({gpu["uuid"] for gpu in status["gpus"]}) == 8
leases = sorted(lease["ticket"] for gpu in status["gpus"] for lease in gpu["leases"])
one, two, evil, longest = (int(word) for word in sys.argv[2:6])
assert leases == sorted([one, two, two, two]), leases
names = {job["ticket"]: job["name"] for job in status["queue"]}
assert names[evil] is None or "COMPLETED" not in names[evil], names
assert names[longest] == 255 * "0", names
END
if command -v python3 >/dev/null; then
	run 'the JSON has all members, and each job its GPUs' 0 '' '' \
		python3 "$S/members.py" "$S/status.json" "$one" "$two" "$evil" "$long"
else
	skip 'the JSON has all members, and each job its GPUs' 'no python3'
fi
try "$GPULEASE" --queue --json
has_json 'the queue begins with the job that Slurm takes next' "slurm $waits 2 leased false 6000000" \
	engine queue.0.ticket queue.0.gpus queue.0.reason_kind queue.0.can_start queue.0.limit_ms
is 'a job that waits for resources has an estimate' \
	[ "$("$TOOLS/jsoncheck" queue.0.start_at_unix_ms <"$S/out")" -gt 1700000000000 ]

# --- jobs by id -----------------------------------------------------------------------------------

run 'a job that runs' 0 "job *$two 'two'*running on GPU n?/?,n?/?,n?/?*limit *1d0h*" '' \
	"$GPULEASE" --status "$two"
run 'jobs that wait' 0 "*waiting, 1st in the queue*why *in use*'after'*after *$one*after ok *$two*" '' \
	"$GPULEASE" --status "$waits" "$after"
run 'an unknown job' 1 '' 'gpulease: job 77 is unknown;*' "$GPULEASE" --status 77
tasks=$(submit tasks -a 1-2)
wait_until "[ \$(squeue -h -t R -j $tasks | grep -c .) = 2 ]"
first=$(squeue -h -j "${tasks}_1" -o %A)
second=$(squeue -h -j "${tasks}_2" -o %A)
run 'a task of an array' 0 "job *$first 'tasks'*running*" '' "$GPULEASE" --status "${tasks}_1"
run 'tasks and jobs in a list' 0 "job *$second *job *$two *job *$first *" '' \
	"$GPULEASE" --status "${tasks}_2,$two" "${tasks}_1"
scancel "$tasks"
wait_until "[ -z \"\$(squeue -h -j $tasks)\" ]"
run 'a task of an array that has ended' 0 "job *$second*cancelled*" '' "$GPULEASE" --status "${tasks}_2"
run 'an unknown task' 1 '' "gpulease: job ${tasks}_9 is unknown;*" "$GPULEASE" --status "${tasks}_9"
run 'what is no job' 125 '' "gpulease: *'n1'*" "$GPULEASE" --status n1
scancel "$held"
wait_until "[ -z \"\$(squeue -h -j $held)\" ]"
run 'a job that has ended, as long as Slurm knows it' 0 '*cancelled*, exit status 143*' '' \
	"$GPULEASE" --status "$held"
try "$GPULEASE" --status "$two" --json
has_json 'its JSON' "slurm running n2/0" engine jobs.0.state jobs.0.uuids.0

# --- what reads the JSON ------------------------------------------------------------------------

COLUMNS=80 try "$GPULEASE" --top
is '--top has a line for each GPU' [ "$(grep -cE '^n[1-4]/[01] ' "$S/out")" = 8 ]
is '--top has no columns that Slurm cannot fill' like 'GPU *USER *JOB *NAME *LEFT *COMMAND*' \
	"$(grep '^GPU' "$S/out")"
is '--top has the queue' like "*$waits*waits for GPUs*" "$out"
try "$GPULEASE" --metrics
cp "$S/out" "$S/metrics"
is 'the metrics name GPUs with their nodes' \
	grep -qx 'gpulease_gpu_info{gpu="n1/0",uuid="n1/0",model="sim",node="n1"} 1' "$S/metrics"
is 'the metrics count what users have' \
	grep -qx "gpulease_leased_gpus{user=\"$(id -un)\"} 4" "$S/metrics"
is 'the metrics do not speak of nvidia-smi' [ "$(grep -c '^gpulease_probe' "$S/metrics")" = 0 ]
if command -v promtool >/dev/null; then
	promtool check metrics <"$S/metrics" >"$S/promtool" 2>&1
	is 'promtool accepts the metrics' [ "$(grep -c 'error' "$S/promtool")" = 0 ]
else
	skip 'promtool accepts the metrics' 'no promtool'
fi

# --- without accounting ---------------------------------------------------------------------------

for verb in --history --accounting '--history 5 --json' '--accounting --csv'; do
	# shellcheck disable=SC2086 # words
	run "$verb needs accounting" 125 '' \
		"gpulease: ${verb%% *} needs the accounting of the cluster (slurmdbd), which is not set up;*" \
		"$GPULEASE" $verb
done
run '--timeline needs it, too' 125 '' 'gpulease: --history needs the accounting*' "$GPULEASE" --timeline

# --- other users ------------------------------------------------------------------------------------

# look_as UID WORDS…: gpulease as another user
look_as() {
	look_uid=$1
	shift
	try setpriv --reuid="$look_uid" --regid="$look_uid" --clear-groups "$S/bin/gpulease" "$@"
}
mine=$GPULEASE
if ! others_can_run; then
	skip 'jobs of others are not shown' "$others_why"
else
	mkdir "$S/bin"
	for program in gpulease gpulease-engine gpulease-view; do
		install -m 0755 "${TOOLS%/tests/tools}/$program" "$S/bin/$program"
	done
	look_as 65534 --status
	is 'with PrivateData=jobs, GPUs of other users are in use by others' like \
		'*4 in use, 2 free*others 2*' "$out"
	is 'their jobs are not shown' like '*no job waits*' "$out"
	look_as 65534 --status --json
	has_json 'such a GPU is leased, and says why it has no job' \
		'leased null is used by a job that you may not see' gpus.2.state gpus.2.ticket gpus.2.why
fi

GPULEASE=$mine

# --- trouble ------------------------------------------------------------------------------------------

cluster_stop slurmctld
run 'a controller that does not answer: one line' 125 '' 'gpulease: s*' "$GPULEASE" --queue
is 'it is one line' [ "$(grep -c . "$S/err")" = 1 ]
cluster_cont slurmctld
finish

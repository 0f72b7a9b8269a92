#!/bin/sh
# How a job's use of its GPUs is sampled: the report at its end, the warning while it runs, and
# how often nvidia-smi runs for it.  The cards have 81559 MiB.
# shellcheck disable=SC2016,SC2034,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver

asked() {
	grep -sc gpus "$1/count" || :
}

# CLOCK_BOOTTIME in seconds
now() {
	read -r now_s _ </proc/uptime
	echo "${now_s%.*}"
}

command_of() {
	cut -d ' ' -f 1 "$S/$1.runs"
}

# noted SLOT PEAK: whether a lease on that GPU has this peak
noted() {
	tr '\0' ' ' <"$GPULEASE_DIR/gpu/slot.$1" | grep -aq " peak=$2 "
}

# ends_of ID: the records of that job in the history
ends_of() {
	tr '\0' '\n' <"$GPULEASE_DIR/history" | grep -a " ticket=$1 "
}

# --- a job without a report --------------------------------------------------------------

# In a state directory of its own: nvidia-smi must not run again as long as this job runs.
fresh
here=$GPULEASE_DIR smi=$FAKE_SMI_DIR
mkdir -m 0700 "$S/other-dir" "$S/other-smi"
export GPULEASE_DIR="$S/other-dir" FAKE_SMI_DIR="$S/other-smi"
gpus 1
holder plain --retries 1
plain_asked=$(asked "$S/other-smi")
export GPULEASE_DIR="$here" FAKE_SMI_DIR="$smi"

# --- five jobs, one nvidia-smi -----------------------------------------------------------

gpus 5
touch "$FAKE_SMI_DIR/reap"
holder within --report --name within --gpu-ids 0 --vram 2000
holder over --retries 1 --gpu-ids 1 --vram 2000
holder under --report --gpu-ids 2 --vram 2000
holder alone --report -n 2 --gpu-ids 3,4
holder share --report --gpu-ids 1 -n 0.3
for each in 0 1 2 3 4; do
	echo $((each * 10 + 50)) >"$FAKE_SMI_DIR/util.$each"
done
echo 7000 >"$FAKE_SMI_DIR/base.4" # of a container, whose processes nvidia-smi does not list
{
	echo "0 $(command_of within) 1900"
	echo "1 $(command_of over) 2300"
	echo "1 $(command_of share) 3000"
	echo "2 $(command_of under) 1000"
	echo "2 1 4000"
	echo "3 $(command_of alone) 5000"
} >"$S/procs"
# soon after its start a job is sampled by its own clock, and later with all others
last=$(now)
wait_until '[ "$(now)" -gt $((last + 5)) ]'
since=$(now)
before=$(asked "$smi")
mv "$S/procs" "$FAKE_SMI_DIR/procs"
is 'each lease has the peak of its own job' wait_until \
	'noted 0 1900 && noted 1 2300 && noted 1 3000 && noted 2 1000 && noted 3 7000 && noted 4 7000'
probes=$(($(asked "$smi") - before))
moments=$(($(now) / 5 - since / 5))
is "nvidia-smi runs once per interval, not once per job" \
	[ "$probes" -le $((moments + 1)) ]

id=$(id_of over)
over="job $id (*) uses 2.2G on GPU 1 and declared 2.0G"
excess="uses 2.2G on GPU 1 and declared 2.0G: its neighbors may run out of memory"
is 'a job that uses more than it declared is reported' wait_until \
	'grep -q "^gpulease: job $id $excess$" "$S/over.err"'
run '--queue names the job that uses more than it declared' 0 "no job waits; 5 jobs run: see --status
$over" '' "$GPULEASE" --queue
run '--status names the job that uses more than it declared' 0 "*$over" '' "$GPULEASE" --status
run '--queue --json names the job that uses more than it declared' 0 "*\"over_declared\": \[
    $id
  \]*" '' "$GPULEASE" --queue --json
try "$GPULEASE" --status --json
is '--status --json marks only the lease of that job' [ "$(echo "$out" | grep -c '"over_declared": true')" = 1 ]
is 'the other jobs are not warned' [ "$(cat "$S/within.err" "$S/under.err" "$S/alone.err" \
	"$S/share.err")" = '' ]

is 'nvidia-smi does not run for a job without --report' \
	[ "$(asked "$S/other-smi")" = "$plain_asked" ]
release_all plain
is 'a job without --report gets no report' [ "$(cat "$S/plain.err")" = '' ]

id=$(id_of within)
release_all within over under alone share
is 'a job with --report has a report at its end' like \
	"gpulease: job $id 'within' ended: exit status 0, after *, waited *, 2G of a GPU, *
gpulease: job $id, GPU 0: peak *1.9G of 2.0G declared, *; utilization * %, * % at most" \
	"$(sed 's/on average/%/; s/% %/%/' "$S/within.err")"
is 'the report has the peak of the processes of the job alone' like \
	'*GPU 2: peak *1.0G of 2.0G declared, *' "$(cat "$S/under.err")"
is 'the report has a line for each GPU' like '* 2 GPUs, *
*GPU 3: peak *4.9G of the card'"'"'s 79.6G; utilization * on average, 80 % at most
*GPU 4: peak *6.8G of the card'"'"'s 79.6G; utilization * on average, 90 % at most' \
	"$(cat "$S/alone.err")"
is 'the report of a job with a share' like '*, 0.3 of a GPU, *GPU 1: peak *2.9G of *' "$(cat "$S/share.err")"
is 'a job that was warned gets no report without --report' [ "$(grep -c . "$S/over.err")" = 1 ]
ends_of "$(id_of alone)" >"$S/end"
is 'the history has the peaks and the utilization' grep -q ' peaks=5000,7000 busy=[0-9]*/90 ' "$S/end"
ends_of "$(id_of over)" >"$S/end"
is 'the history has the peak of a job without --report' grep -q ' peaks=2300 busy=' "$S/end"

# --- what the samples allow to say -------------------------------------------------------

# seen MIB: whether the lease of this job has that peak, for use in the command of a job
seen='seen() { tr "\\0" " " <"$GPULEASE_DIR/gpu/slot.0" | grep -aq " peak=$1 "; }'
# sampled COUNT: whether nvidia-smi was asked so often since this job has begun
sampled='begun=$(wc -l <"$FAKE_SMI_DIR/count")
	sampled() { [ $(($(wc -l <"$FAKE_SMI_DIR/count") - begun)) -ge "$1" ]; }'

# uses MIB COMMAND: a job that uses so much memory until the command succeeds
uses() {
	rm -f "$FAKE_SMI_DIR/procs"
	timeout "$DEADLINE" "$GPULEASE" --report --gpu-ids 0 --vram 2000 sh -c "$seen
		$sampled
		echo \"0 \$\$ $1\" >\"\$FAKE_SMI_DIR/procs\"
		until $2; do sleep 0.02; done"
}

fresh
gpus 1
echo 'sample-interval = 1h' >"$S/conf"
plain=$GPULEASE
configured
run 'a job is sampled soon after its start, and one sample is not compared' 0 '' \
	'*GPU 0: peak at least 1.9G of 2.0G declared, too few samples to compare; *' \
	uses 1900 'seen 1900'
run 'one sample is enough to say that a job used too much' 0 '' \
	'*uses 2.9G on GPU 0 and declared 2.0G: its neighbors may run out of memory
*GPU 0: peak at least 2.9G of 2.0G declared, over by more than 10 %; *' uses 3000 'seen 3000'
echo 'sample-interval = 1s' >"$S/conf"
compared() {
	like "*GPU 0: peak $2 of 2.0G declared, $3 10 %; *" "$(uses "$1" 'sampled 16' 2>&1)"
}
is 'samples that span the run are compared: within' sometimes compared 1900 1.9G within
is 'samples that span the run are compared: under' sometimes compared 1000 1.0G 'under by more than'
"$plain" --history 1 --json >"$S/end"
is 'the history says that the samples span the run' grep -q '"spans_run": true' "$S/end"

# a process outside gpulease, or of a container
unseen() {
	echo '0 1 1500' >"$FAKE_SMI_DIR/procs"
	timeout "$DEADLINE" "$GPULEASE" --report --gpu-ids 0 --vram 2000 sh -c "$sampled
		until sampled 6; do sleep 0.02; done"
}
run 'memory that is not seen to be of the job is not compared' 0 '' \
	'*GPU 0: peak n/a of 2.0G declared, none of its processes was seen; *' unseen
"$plain" --history 1 --json | tr -d ' \n' >"$S/end"
is 'the history has no peak of that job' grep -q '"peak_mib":\[\],"spans_run":false' "$S/end"
GPULEASE=$plain

# --- how the job ended -------------------------------------------------------------------

sim 2x24G
run 'the report names the signal that ended the job' 143 '' 'gpulease: job * ended: signal TERM, after *, waited *, 1 GPU, * GPU-seconds
gpulease: job *: its use of the GPUs was not sampled*' "$GPULEASE" --report sh -c 'kill $$'
run 'the report names the time limit' 124 '' '*ended: time limit, signal TERM, after *' \
	"$GPULEASE" --report --time 100ms sleep 1000
run 'the report of a job without a GPU is short' 3 '' \
	'gpulease: job * ended: exit status 3, after *, waited *s' \
	"$GPULEASE" -n 0 --report sh -c 'exit 3'
is 'the report of a job without a GPU names no GPU' [ "$(echo "$err" | grep -c 'GPU')" = 0 ]
run '-Q suppresses the report' 0 '' '' "$GPULEASE" -Q --report true
holder cancelled --report
run 'a job is cancelled' 0 '*' '*' "$GPULEASE" --cancel "$(id_of cancelled)"
ended cancelled
is 'the report says by which user the job was cancelled' like "*ended: cancelled by $(id -un), signal TERM, *" \
	"$(cat "$S/cancelled.err")"

echo 'RuntimeError: CUDA out of memory.' >"$S/text"
run 'the report names lack of memory if the output shows it' 1 '*' '*ended: out of GPU memory, exit status 1, *' \
	"$GPULEASE" --report -o "$S/oom.out" sh -c "cat '$S/text'; exit 1"
run 'lack of memory in the output does not count if the command succeeds' 0 '*' '*ended: exit status 0, *' \
	"$GPULEASE" --report -o "$S/oom.out" cat "$S/text"

# A report that finds no room on a pipe is left to a child: the lease ends with the job.
mkfifo "$S/full"
exec 9<>"$S/full"
dd if=/dev/zero bs=4096 oflag=nonblock >&9 2>/dev/null
run 'a job ends although its report finds a full pipe' 3 '' '' timeout -s KILL "$DEADLINE" sh -c '
	exec 9>&-
	exec "$@" 2>"$0"' "$S/full" "$GPULEASE" --report -n 2 sh -c 'exit 3'
run 'the reader of its standard output sees the end' 0 'out' '' timeout -s KILL "$DEADLINE" sh -c '
	exec 9>&-
	"$@" 2>"$0" | cat' "$S/full" "$GPULEASE" --report -n 2 echo out
run 'its GPUs are free before the report is read' 0 '' '' "$GPULEASE" -I30s -n 2 true
exec 8<"$S/full" 9>&-
tr -d '\0' <&8 >"$S/late"
exec 8<&-
is 'the report is there for the reader of the pipe' [ "$(grep -c '^gpulease: job .* ended: exit status 3, ' \
	"$S/late")" = 1 ]
is 'the history does not say that output of these jobs was lost' [ "$("$GPULEASE" --history 3 --json |
	grep -c '"log_is_full": false')" = 3 ]

# On a full disk the last output is lost: then the history says so.
GPULEASE_DIR=$(state_dir)
"$GPULEASE" --report --name full true 2>/dev/full
is 'the history marks a job whose output was lost' [ "$(tr '\0' '\n' <"$GPULEASE_DIR/history" |
	grep -a ' name=full ' | grep -c ' logfull=1 ')" = 1 ]
is 'the history marks no other job as having lost output' [ "$(grep -ac ' logfull=1 ' "$GPULEASE_DIR/history")" = 1 ]

finish

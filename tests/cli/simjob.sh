#!/bin/sh
# gpulease-simjob: a job that is seen to use memory on simulated GPUs.
# shellcheck disable=SC2016,SC2317 # conditions and functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2x24G
# as it is installed gpulease was copied without its neighbour
[ -e "$(dirname "$GPULEASE")/gpulease-simjob" ] || cp "$TOOLS/../../gpulease-simjob" "$S"
simjob=$(dirname "$GPULEASE")/gpulease-simjob

# job NAME OPTION… -- OPTION…: a gpulease with a simjob that is there for good.
job() {
	job_name=$1
	shift
	rm -f "$S/$job_name".*
	"$GPULEASE" "$@" --hold 1h >"$S/$job_name.out" 2>"$S/$job_name.err" </dev/null &
	echo $! >"$S/$job_name.pid"
	started="$started $!"
}

# shows GPU MIB [STATE]: whether --status shows so much memory in use on it.
shows() {
	"$GPULEASE" --status | grep -q "^ *$1 .* $2/24576 MiB .*${3-}"
}

# simjobs: the files of those that show something.
simjobs() {
	(cd "$(state_dir)/sim" && ls)
}

# noted SLOT PEAK: whether it stands in a lease on that GPU.
noted() {
	tr '\0' ' ' <"$(state_dir)/gpu/slot.$1" | grep -aq " peak=$2 "
}

# --- the command line --------------------------------------------------------------------

run '--help' 0 'usage: gpulease-simjob --vram SIZE*' '' "$simjob" --help
run '--version' 0 'gpulease-simjob [0-9]*' '' "$simjob" --version
run '--vram must be given' 125 '' 'gpulease-simjob: --vram SIZE is missing; see --help' "$simjob"
run 'as a size' 125 '' "gpulease-simjob: --vram: 'much' is not a size; *" "$simjob" --vram much
run 'with a value' 125 '' "gpulease-simjob: '--vram' is no option, or lacks a value; *" \
	"$simjob" --vram
run '--hold is a time' 125 '' "gpulease-simjob: --hold: 'long' is not a duration; *" \
	"$simjob" --vram 1G --hold long
run '--exit a number' 125 '' "gpulease-simjob: --exit: *" "$simjob" --vram 1G --exit 256
run 'nothing else is allowed' 125 '' "gpulease-simjob: '--what' is no option*" "$simjob" --what
run 'nor operands' 125 '' "gpulease-simjob: 'what' is no option*" "$simjob" --vram 1G what
run 'without simulated GPUs it runs all the same' 7 'training with 1024 MiB
step *
done, exit status 7' 'gpulease-simjob: this is no job of gpulease --sim, so no memory is shown' \
	env -u GPULEASE_SIM "$simjob" --vram 1G --ramp 0 --hold 0 --exit 7
run 'also where the simulation is none' 0 '*' 'gpulease-simjob: no memory is shown: *' \
	env GPULEASE_SIM=many "$simjob" --vram 1G --ramp 0 --hold 0
run 'or has no such GPU' 0 '*' "*: no memory is shown: '2' are no simulated GPUs" \
	env CUDA_VISIBLE_DEVICES=2 "$simjob" --vram 1G --ramp 0 --hold 0

# --- in a job ------------------------------------------------------------------------------

run 'where nobody shows anything, reports say so' 0 '' \
	'*: its use of the GPUs was not sampled' "$GPULEASE" --report true
is 'and there is no folder' test ! -e "$(state_dir)/sim"
run 'a job finds it' 0 'training with 1024 MiB on 2 GPUs
*' '' "$GPULEASE" -n 2 gpulease-simjob --vram 1G --ramp 0 --hold 0
run 'also by its shell' 3 '*' '' \
	"$GPULEASE" sh -c 'gpulease-simjob --vram 1G --ramp 0 --hold 0 --exit 3'
run 'it leaves nothing' 0 '' '' simjobs

job within --report --vram 4G --gpu-ids 0 -- gpulease-simjob --vram 3000 --ramp 0
is 'what it uses is shown' wait_until 'shows 0 3000 leased'
is 'and noted in its lease' wait_until 'noted 0 3000'
job over --report --vram 2000 --gpu-ids 0 -- gpulease-simjob --vram 2500 --ramp 0
is 'beside another on the same GPU' wait_until 'shows 0 5500 leased && noted 0 2500'
is 'each its own' noted 0 3000
is 'who uses too much is told so' wait_until \
	'grep -q "^gpulease: job .* uses 2.4G on GPU 0, declared 2.0G$" "$S/over.err"'
is 'the other GPU is idle' shows 1 0 idle
job both --report --gpu-ids 1 -- sh -c 'gpulease-simjob "$@" --vram 1G --ramp 0; exit 5' sh
is 'also what a shell has started is the job'"'"'s' wait_until 'noted 1 1024'
for each in $(simjobs); do
	kill -TERM "$each"
done
ended within
is 'the report has it' like 'gpulease: job * ended: signal TERM, *
gpulease: job *, GPU 0: peak 2.9G of 4.0G declared, under by more than 10 %; utilization * at most' \
	"$(cat "$S/within.err")"
ended over
is 'of each' like '*, GPU 0: peak 2.4G of 2.0G declared, over by more than 10 %; utilization *' \
	"$(cat "$S/over.err")"
ended both
is 'a whole GPU' like '*: exit status 5, *, GPU 1: peak 1.0G of the card*' \
	"$(tr '\n' ' ' <"$S/both.err")"
run 'the GPUs are idle again' 0 '*0 *0/24576 MiB *idle*1 *0/24576 MiB *idle*' '' \
	"$GPULEASE" --status
run 'and whoever looks removes the files of those who were killed' 0 '' '' simjobs

# --- out of memory ---------------------------------------------------------------------------

run 'once out of memory it is tried again with a quarter more' 0 '' \
	'*: out of GPU memory, exit status 1, *
gpulease: job * is tried again (attempt 2) and declares 2.4G
*, attempt 2, ended: exit status 0, *' "$GPULEASE" --report --vram 2000 --oom-retries 1 \
	-o "$S/log" gpulease-simjob --vram 2000 --ramp 0 --hold 0 --oom-once "$S/once"
is 'in the words of PyTorch' grep -q '^torch.OutOfMemoryError: CUDA out of memory. ' "$S/log"
is 'and then all is well' grep -q '^done, exit status 0$' "$S/log"
run 'the file is that of the first time' 0 '' '' cat "$S/once"
run 'another time it is well at once' 0 '*done, exit status 0' '' \
	"$simjob" --vram 1G --ramp 0 --hold 0 --oom-once "$S/once"
run 'a file that cannot be made is an error' 125 '*' \
	"gpulease-simjob: cannot make '$S/none/once': No such file or directory" \
	"$simjob" --vram 1G --ramp 0 --hold 0 --oom-once "$S/none/once"

# --- without a lease -------------------------------------------------------------------------

"$simjob" --vram 5G --ramp 0 --hold 1h >"$S/alone.out" 2>&1 &
alone=$!
started="$started $alone"
is 'outside of any job it is somebody else' wait_until 'shows 0 5120 external'
waiter behind --gpu-ids 0
is 'for whose end a job waits' like "*GPU 0*$alone*" "$(cat "$S/behind.err")"
kill -KILL "$alone"
is 'and starts then' wait_until 'runs behind'
release_all behind

# --- the examples ----------------------------------------------------------------------------

examples=$CLI/../../gpulease/examples

# said PATTERN: whether the tour has said so.
said() {
	echo "$out" | sed 's/^[0-9:]\{8\} //' | grep -qx "$1"
}

# tour FOLDER
tour() {
	try "$GPULEASE" --batch "$examples/tour.txt" --log-dir "$1"
	rm -f "$S"/tmp/gpulease-tour-*.oom
}

# One that is slow in the start may find its place taken by those behind it.
for logs in "$S/logs" "$S/logs.2" "$S/logs.3"; do
	tour "$logs"
	[ "$(echo "$out" | grep -c ' job [234] started on GPU 0, ')" -ne 3 ] || break
done
is 'the tour ends with the highest exit status' test "$rc" -eq 125
is 'and says what it came to' said '9 jobs: 6 finished, 3 failed, in .*'
for number in 2 3 4; do
	is "job $number shares GPU 0" said "job $number started on GPU 0, .*"
done
is 'one runs out of memory and is tried again' \
	said "job 5 'grows' ended: out of GPU memory (exit status 1) after .*, tried again with 2500MiB.*"
is 'and is done' said "job 5 'grows' ended: exit status 0 after .*"
is 'one has both GPUs then' said "job 6 'both' started on GPUs 0,1, .*"
is 'one fails' said 'job 7 ended: exit status 3 after .*'
is 'one cannot run' said 'job 8 cannot run: .*3 GPUs.*'
is 'one has its time' said 'job 9 ended: time limit after .*'
tour "$logs"
is 'again it runs nothing' test "$rc" -eq 125 -a -z "$(echo "$out" | grep started)"
cd "$examples/../.." || bail 'no source'
run 'the table runs, the lowest number first' 0 '*job 2 started*3 jobs: 3 finished*' '*' \
	"$GPULEASE" --batch-format=csv --batch gpulease/examples/jobs.csv --log-dir "$S/table"
is 'with its arguments as they were' grep -qx 'epochs: 3, tags: small,first' "$S/table"/*.log

# --- where it is found -----------------------------------------------------------------------

own=$(dirname "$GPULEASE")
is 'in a simulation the folder of gpulease is the last of PATH' like "*[!:]:$own" \
	"$("$GPULEASE" sh -c 'echo "$PATH"')"
is 'once, also within another job' test "$("$GPULEASE" sh -c 'echo "$PATH"')" = \
	"$("$GPULEASE" "$GPULEASE" sh -c 'echo "$PATH"')"
with_driver
gpus 1
is 'and nowhere else' test "$("$GPULEASE" sh -c 'echo "$PATH"')" = "$PATH"
finish

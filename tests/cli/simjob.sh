#!/bin/sh
# gpulease-simjob: a program that pretends to use memory on simulated GPUs.
# shellcheck disable=SC2016,SC2317 # conditions and functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2x24G
# tests of an installation copy gpulease without gpulease-simjob
[ -e "$(dirname "$GPULEASE")/gpulease-simjob" ] || cp "$TOOLS/../../gpulease-simjob" "$S"
simjob=$(dirname "$GPULEASE")/gpulease-simjob

# job NAME OPTION… -- COMMAND…: a job whose gpulease-simjob runs until it is killed.
job() {
	job_name=$1
	shift
	rm -f "$S/$job_name".*
	"$GPULEASE" "$@" --hold 1h >"$S/$job_name.out" 2>"$S/$job_name.err" </dev/null &
	echo $! >"$S/$job_name.pid"
	started="$started $!"
}

# shows GPU MIB [STATE]: whether --status shows that memory in use on the GPU.
shows() {
	"$GPULEASE" --status --json | "$TOOLS/jsoncheck" "gpus.$1.memory_used_mib" \
		"gpus.$1.state" | tr '\n' ' ' | grep -q "^$2 ${3-}"
}

# simjobs: the files of the simjobs that show memory.
simjobs() {
	(cd "$(state_dir)/sim" && ls)
}

# noted SLOT PEAK: whether a lease on that GPU has this peak.
noted() {
	tr '\0' ' ' <"$(state_dir)/gpu/slot.$1" | grep -aq " peak=$2 "
}

# --- the command line --------------------------------------------------------------------

run '--help' 0 'usage: gpulease-simjob --vram SIZE*' '' "$simjob" --help
run '--version' 0 'gpulease-simjob [0-9]*' '' "$simjob" --version
run '--vram must be given' 125 '' 'gpulease-simjob: --vram SIZE is missing; see --help' "$simjob"
run '--vram must be a size' 125 '' "gpulease-simjob: --vram: 'much' is not a size; *" "$simjob" --vram much
run '--vram needs a value' 125 '' "gpulease-simjob: '--vram' is not an option, or lacks a value; *" \
	"$simjob" --vram
run '--hold must be a duration' 125 '' "gpulease-simjob: --hold: 'long' is not a duration; *" \
	"$simjob" --vram 1G --hold long
run '--exit must be at most 255' 125 '' "gpulease-simjob: --exit: *" "$simjob" --vram 1G --exit 256
run 'another option is refused' 125 '' "gpulease-simjob: '--what' is not an option*" "$simjob" --what
run 'an operand is refused' 125 '' "gpulease-simjob: 'what' is not an option*" "$simjob" --vram 1G what
run 'gpulease-simjob runs without simulated GPUs' 7 'training with 1024 MiB
step *
done, exit status 7' 'gpulease-simjob: this is not a job of gpulease --sim, so no memory is shown' \
	env -u GPULEASE_SIM "$simjob" --vram 1G --ramp 0 --hold 0 --exit 7
run 'gpulease-simjob runs with a wrong GPULEASE_SIM' 0 '*' 'gpulease-simjob: no memory is shown: *' \
	env GPULEASE_SIM=many "$simjob" --vram 1G --ramp 0 --hold 0
run 'gpulease-simjob runs with a GPU that does not exist' 0 '*' "*: no memory is shown: CUDA_VISIBLE_DEVICES: '2' are not simulated GPUs" \
	env CUDA_VISIBLE_DEVICES=2 "$simjob" --vram 1G --ramp 0 --hold 0

# --- in a job ------------------------------------------------------------------------------

run 'without a simjob the report says that nothing was sampled' 0 '' \
	'*: its use of the GPUs was not sampled' "$GPULEASE" --report true
is 'without a simjob there is no folder for simjobs' test ! -e "$(state_dir)/sim"
run 'the command of a job finds gpulease-simjob' 0 'training with 1024 MiB on 2 GPUs
*' '' "$GPULEASE" -n 2 gpulease-simjob --vram 1G --ramp 0 --hold 0
run 'the shell of a job finds gpulease-simjob' 3 '*' '' \
	"$GPULEASE" sh -c 'gpulease-simjob --vram 1G --ramp 0 --hold 0 --exit 3'
run 'gpulease-simjob removes its file at its end' 0 '' '' simjobs

job within --report --vram 4G --gpu-ids 0 -- gpulease-simjob --vram 3000 --ramp 0
is '--status shows the memory that a simjob uses' wait_until 'shows 0 3000 leased'
is 'the lease of a simjob has its peak' wait_until 'noted 0 3000'
job over --report --vram 2000 --gpu-ids 0 -- gpulease-simjob --vram 2500 --ramp 0
is '--status adds up two simjobs on one GPU' wait_until 'shows 0 5500 leased && noted 0 2500'
is 'each lease has the peak of its own simjob' noted 0 3000
is 'a simjob that uses more than declared is warned' wait_until \
	'grep -q "^gpulease: job .* uses 2.4G on GPU 0 and declared 2.0G: its n.* memory$" "$S/over.err"'
is 'the other GPU is idle' shows 1 0 idle
job both --report --gpu-ids 1 -- sh -c 'gpulease-simjob "$@" --vram 1G --ramp 0; exit 5' sh
is 'a simjob that a shell has started counts for its job' wait_until 'noted 1 1024'
for each in $(simjobs); do
	kill -TERM "$each"
done
ended within
is 'the report of a simjob that a signal ended has its peak' like 'gpulease: job * ended: signal TERM, *
gpulease: job *, GPU 0: peak *2.9G of 4.0G declared, *; utilization * at most' \
	"$(cat "$S/within.err")"
ended over
is 'each report has the peak of its own simjob' like '*, GPU 0: peak *2.4G of 2.0G declared, over by more than 10 %; utilization *' \
	"$(cat "$S/over.err")"
ended both
is 'the report of a whole GPU has the peak' like '*: exit status 5, *, GPU 1: peak *1.0G of the card*' \
	"$(tr '\n' ' ' <"$S/both.err")"
run 'the GPUs are idle again' 0 '*0 *0.0G *idle*1 *0.0G *idle*' '' \
	"$GPULEASE" --status
run '--status has removed the files of the killed simjobs' 0 '' '' simjobs

# The line that says that the job uses too much has no room.
mkfifo "$S/full"
exec 9<>"$S/full"
dd if=/dev/zero bs=4096 oflag=nonblock >&9 2>/dev/null
run 'the end of a job is seen although stderr is a full pipe' 0 '' '' timeout -s KILL "$DEADLINE" sh -c '
	exec 9>&-
	exec "$@" 2>"$0"' "$S/full" "$GPULEASE" --retries 1 --gpu-ids 0 --vram 1000 sh -c '
	exec 2>/dev/null # only gpulease writes to the pipe
	gpulease-simjob --vram 3000 --ramp 0 --hold 1h >/dev/null &
	until tr "\\0" " " <"$1" | grep -aq " peak=3000 "; do sleep 0.02; done
	kill $!' sh "$(state_dir)/gpu/slot.0"
exec 9>&-

# --- out of memory ---------------------------------------------------------------------------

run 'a simjob with --oom-once is tried again with more memory' 0 '' \
	'*: out of GPU memory, exit status 1, *
gpulease: job * is tried again (attempt 2) and declares 2.5G
*, attempt 2, ended: exit status 0, *' "$GPULEASE" --report --vram 2000 --oom-retries 1 \
	-o "$S/log" gpulease-simjob --vram 2000 --ramp 0 --hold 0 --oom-once "$S/once"
is 'the first attempt prints the message of PyTorch' grep -q '^torch.OutOfMemoryError: CUDA out of memory. ' "$S/log"
is 'the second attempt succeeds' grep -q '^done, exit status 0$' "$S/log"
run 'the file of --oom-once exists' 0 '' '' cat "$S/once"
run 'a simjob whose file of --oom-once exists succeeds at once' 0 '*done, exit status 0' '' \
	"$simjob" --vram 1G --ramp 0 --hold 0 --oom-once "$S/once"
run 'a file of --oom-once that cannot be made is an error' 125 '*' \
	"gpulease-simjob: cannot make '$S/none/once': No such file or directory" \
	"$simjob" --vram 1G --ramp 0 --hold 0 --oom-once "$S/none/once"

# --- without a lease -------------------------------------------------------------------------

"$simjob" --vram 5G --ramp 0 --hold 1h >"$S/alone.out" 2>&1 &
alone=$!
started="$started $alone"
is 'a simjob outside gpulease is shown as external' wait_until 'shows 0 5120 external'
waiter behind --gpu-ids 0
is 'a job waits for the end of that simjob' like "*GPU 0*$alone*" "$(cat "$S/behind.err")"
kill -KILL "$alone"
is 'the job starts when that simjob has ended' wait_until 'runs behind'
release_all behind

# --- the examples ----------------------------------------------------------------------------

examples=$CLI/../../gpulease/examples

# said PATTERN: whether the tour has printed a line like that.
said() {
	echo "$out" | sed 's/^[0-9:]\{8\} //' | grep -qx "$1"
}

# tour FOLDER
tour() {
	try "$GPULEASE" --batch "$examples/tour.txt" --log-dir "$1"
	rm -f "$S"/tmp/gpulease-tour-*.oom
}

# A job that is slow to start may find its place taken by later ones: then the tour runs again.
for logs in "$S/logs" "$S/logs.2" "$S/logs.3"; do
	tour "$logs"
	[ "$(echo "$out" | grep -c ' job [234] started on GPU 0, ')" -ne 3 ] || break
done
is 'the tour ends with the highest exit status' test "$rc" -eq 124
is 'the tour ends with a summary' said '9 jobs: 6 finished, 3 failed, in .*'
for number in 2 3 4; do
	is "job $number of the tour shares GPU 0" said "entry $number started on GPU 0, .*"
done
is 'job 5 of the tour runs out of memory and is tried again' \
	said "entry 5 'grows' ended: out of GPU memory (exit status 1) after .*, tried again with 2.5G.*"
is 'job 5 of the tour succeeds in its second attempt' said "entry 5 'grows' ended: exit status 0 after .*"
is 'job 6 of the tour gets both GPUs' said "entry 6 'both' started on GPUs 0,1, .*"
is 'job 7 of the tour fails' said 'entry 7 ended: exit status 3 after .*'
is 'job 8 of the tour cannot run' said 'entry 8 cannot run: .*3 GPUs.*'
is 'job 9 of the tour reaches its time limit' said 'entry 9 ended: time limit after .*'
tour "$logs"
is 'the tour, run again, starts no job' test "$rc" -eq 124 -a -z "$(echo "$out" | grep started)"
cd "$examples/../.." || bail 'no source'
run 'the jobs of the example table run, the lowest number first' 0 '*entry 2 started*3 jobs: 3 finished*' '*' \
	"$GPULEASE" --batch-format=csv --batch gpulease/examples/jobs.csv --log-dir "$S/table"
is 'a job of the table gets its arguments unchanged' grep -qx 'epochs: 3, tags: small,first' "$S/table"/*.log

# --- where it is found -----------------------------------------------------------------------

own=$(dirname "$GPULEASE")
is 'in a simulation the folder of gpulease is the last of PATH' like "*[!:]:$own" \
	"$("$GPULEASE" sh -c 'echo "$PATH"')"
is 'a job within another job has that folder in PATH once' test "$("$GPULEASE" sh -c 'echo "$PATH"')" = \
	"$("$GPULEASE" "$GPULEASE" sh -c 'echo "$PATH"')"
with_driver
gpus 1
is 'without a simulation PATH is unchanged' test "$("$GPULEASE" sh -c 'echo "$PATH"')" = "$PATH"
finish

#!/bin/sh
# With an nvidia-smi: use outside gpulease, sick GPUs, a driver that hangs or is not there.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver

probes() {
	grep -c gpus "$FAKE_SMI_DIR/count"
}

fresh
run 'GPUs are found and leased' 0 '0,1 GPU-00000000-*,GPU-00000001-*' '' \
	"$GPULEASE" -n 2 sh -c 'echo "$CUDA_VISIBLE_DEVICES $GPULEASE_UUIDS"'
run 'a job that needs too many GPUs: the message has their number' 125 '' \
	'gpulease: cannot lease 3 GPUs: this machine has 2' "$GPULEASE" -n 3 true

# --- use outside gpulease ----------------------------------------------------------------

fresh
sleep 1000 &
outside=$!
started="$started $outside"
becomes "$outside" sleep
echo "0 $outside 5000" >"$FAKE_SMI_DIR/procs"
touch "$FAKE_SMI_DIR/reap"
run 'a GPU used by a process outside is avoided' 0 '1' '' \
	"$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'a waiter names the process that uses the GPU outside gpulease' 124 '' \
	"*GPU 0 is used outside gpulease by pid $outside (*sleep)*" "$GPULEASE" -n 2 -I true
waiter both -n 2
kill "$outside"
is 'when the process outside ends, the waiter gets the GPU' wait_until 'runs both'
release_all both
fresh
echo 3000 >"$FAKE_SMI_DIR/base.1"
run 'memory of a process that nvidia-smi does not list is use' 124 '' \
	'*GPU 1 is used outside gpulease by a process that nvidia-smi does not show' \
	"$GPULEASE" -n 2 -I true
echo 150 >"$FAKE_SMI_DIR/base.1"
run 'a little memory is no use' 0 '' '*' "$GPULEASE" -n 2 --max-wait 20s true
echo 3000 >"$FAKE_SMI_DIR/base.0"
waiter patient -n 2
rm "$FAKE_SMI_DIR/base.0"
is 'memory that comes free without an event is seen' wait_until 'runs patient'
release_all patient

# --- settling ----------------------------------------------------------------------------

fresh
holder before -n 2
echo 9000 >"$FAKE_SMI_DIR/base.0"
waiter after -n 2
release_all before
wait_until "grep -q 'just released' '$S/after.err'" || : # at most one line in 10 s
is 'a GPU with memory still in use is not handed on' sh -c '! [ -e "$1" ]' - "$S/after.runs"
rm "$FAKE_SMI_DIR/base.0"
is 'the GPU is handed on once its memory is free' wait_until 'runs after'
release_all after

# --- sick GPUs ---------------------------------------------------------------------------

fresh
run 'both GPUs are leased while they are healthy' 0 '' '' "$GPULEASE" -n 2 true
{
	echo "= Unable to determine the device handle for GPU0: 0000:00:00.0: GPU is lost.  Reboot the system to recover this GPU"
	sed -n 2p "$FAKE_SMI_DIR/gpus"
} >"$FAKE_SMI_DIR/new" && mv "$FAKE_SMI_DIR/new" "$FAKE_SMI_DIR/gpus"
run 'if one GPU is lost, the other one is leased' 0 '1' '' "$GPULEASE" \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'a job waits for a lost GPU, which is not forgotten' 124 '' \
	'*GPU 0 is in an unknown state: *lost*' \
	"$GPULEASE" -n 2 -I true
fresh
{
	echo '= 0, [GPU requires reset], 00000000:00:00.0, [GPU requires reset], 0, [GPU requires reset], [N/A], Default, Card'
	sed -n 2p "$FAKE_SMI_DIR/gpus"
} >"$FAKE_SMI_DIR/new" && mv "$FAKE_SMI_DIR/new" "$FAKE_SMI_DIR/gpus"
run 'a GPU that needs a reset is not idle although its memory is 0' 0 '1' '' \
	"$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'
fresh
echo Enabled >"$FAKE_SMI_DIR/mig.0"
echo Prohibited >"$FAKE_SMI_DIR/mode.1"
run 'MIG without instances and a prohibited GPU are reasons for waiting' 124 '' \
	'*GPU * is in an unknown state: *' \
	"$GPULEASE" -I true

# --- MIG ---------------------------------------------------------------------------------

lists() {
	grep -c list "$FAKE_SMI_DIR/count"
}

fresh
run 'a job starts on GPUs without MIG' 0 '' '' "$GPULEASE" -n 2 true
is 'without MIG nvidia-smi is not asked for instances' [ "$(lists)" -eq 0 ]
fresh
echo Enabled >"$FAKE_SMI_DIR/mig.0"
printf '%s\n' '0 0 3g.40gb MIG-aaaa' '0 1 1g.10gb MIG-bbbb' >"$FAKE_SMI_DIR/migs"
run 'a GPU with MIG is not leased itself' 125 '' \
	'gpulease: cannot lease 2 GPUs: CUDA sees one MIG instance at a time, and there is only 1 GPU without MIG' \
	"$GPULEASE" -n 2 true
is 'with MIG nvidia-smi is asked for instances' [ "$(lists)" -ge 1 ]
fresh
echo Enabled >"$FAKE_SMI_DIR/mig.0"
echo 'GPU 0: what is this' >"$FAKE_SMI_DIR/list.raw"
run 'an unreadable list of instances hides only those instances' 0 '1' '' \
	"$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'

# --- a sick driver -----------------------------------------------------------------------

fresh
echo 9 >"$FAKE_SMI_DIR/exit"
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." \
	>"$FAKE_SMI_DIR/stdout"
run 'the words of a failing nvidia-smi are printed' 125 '' \
	"gpulease: no GPU is known: *couldn't communicate*" \
	"$GPULEASE" true
fresh
run 'a job starts with a healthy driver' 0 '' '' "$GPULEASE" -n 2 true
echo garbage >"$FAKE_SMI_DIR/stdout"
run 'after an answer that is garbage no GPU is idle' 124 '' '*unknown state*' "$GPULEASE" -I true
waiter through
rm "$FAKE_SMI_DIR/stdout"
is 'a driver that recovers is noticed' wait_until 'runs through'
release_all through
run 'without nvidia-smi the message has what is missing, and --sim' 125 '' \
	'gpulease: nvidia-smi was not found*--sim 4*' env PATH=/usr/bin:/bin "$GPULEASE" true
run 'a job without GPUs needs no nvidia-smi' 0 'ran' '' env PATH=/usr/bin:/bin "$GPULEASE" \
	-n 0 echo ran

fresh
run 'a job starts with a healthy driver' 0 '' '' "$GPULEASE" -n 2 true
touch "$FAKE_SMI_DIR/hang"
begin hung
is 'a waiter says that nvidia-smi hangs' wait_until "grep -q 'did not answer' '$S/hung.err'"
rm "$FAKE_SMI_DIR/hang"
is 'once nvidia-smi answers again, the waiter starts' wait_until 'runs hung'
release_all hung

# --- few probes --------------------------------------------------------------------------

fresh
run 'a job starts with a healthy driver' 0 '' '' "$GPULEASE" -n 2 true
holder all -n 2
: >"$FAKE_SMI_DIR/count"
for i in 1 2 3 4 5 6; do waiter "w$i" -n 2; done
is 'jobs that wait for a lease do not run nvidia-smi' [ "$(probes)" -eq 0 ]
# A waiter that is too late for the result of a probe asks again; that does not happen each time.
next=1
release_all all
while wait_until "runs w$next" && [ "$(probes)" -ne 1 ] && [ "$next" -lt 4 ]; do
	: >"$FAKE_SMI_DIR/count"
	release_all "w$next"
	next=$((next + 1))
done
is 'a GPU is handed on with one probe, however many jobs wait' [ "$(probes)" -eq 1 ]
while [ "$next" -le 6 ]; do
	release_all "w$next"
	next=$((next + 1))
done

# --- CUDA_VISIBLE_DEVICES ----------------------------------------------------------------

fresh
run 'CUDA_VISIBLE_DEVICES limits the choice' 0 '1' '' \
	env CUDA_VISIBLE_DEVICES=1 "$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'CUDA_VISIBLE_DEVICES takes the beginning of a UUID' 0 '1' '' \
	env CUDA_VISIBLE_DEVICES=GPU-00000001 "$GPULEASE" sh -c 'echo $CUDA_VISIBLE_DEVICES'
run 'the first invalid entry ends the list of CUDA_VISIBLE_DEVICES' 125 '' \
	'gpulease: cannot lease 2 GPUs: CUDA_VISIBLE_DEVICES 0,-1,1 leaves only 1 of 2; unset it to have all GPUs' \
	env CUDA_VISIBLE_DEVICES=0,-1,1 "$GPULEASE" -n 2 true
holder first -n 2
export CUDA_VISIBLE_DEVICES=1
waiter bound
unset CUDA_VISIBLE_DEVICES
is 'a waiter names CUDA_VISIBLE_DEVICES as the reason' \
	grep -q 'limited to GPU 1 by CUDA_VISIBLE_DEVICES' "$S/bound.err"
release_all first bound

finish

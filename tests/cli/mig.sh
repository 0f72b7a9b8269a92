#!/bin/sh
# MIG: instances are leased; the GPU that has the instances is not.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver

A=MIG-aaaaaaaa-0000 B=MIG-bbbbbbbb-0000
OLD=MIG-GPU-00000000-1111-2222-3333-444444444444/7/0

# only_mig: a machine with one GPU, which has MIG enabled and two instances
only_mig() {
	fresh
	gpus 1
	echo Enabled >"$FAKE_SMI_DIR/mig.0"
	instances "0 0 3g.40gb $A" "0 1 1g.10gb $B"
}

# shellcheck disable=SC2016
show='echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $GPULEASE_GPUS $GPULEASE_UUIDS'

# instances LINE…: these instances exist from now on, and no earlier probe is stored
instances() {
	rm -f "$FAKE_SMI_DIR/migs" "$GPULEASE_DIR/probe"
	[ $# -eq 0 ] || printf '%s\n' "$@" >"$FAKE_SMI_DIR/migs"
}

# --- leasing -----------------------------------------------------------------------------

only_mig
run 'CUDA gets the UUID of the instance, people its number' 0 \
	"$A $A 0:0 $A" '' "$GPULEASE" sh -c "$show"
only_mig
holder first -n 1
holder second -n 1
is 'two jobs get different instances' \
	[ "$(gpus_of first) $(gpus_of second)" = "$A $B" ]
run 'a third job waits for an instance, not for the whole GPU' 124 '' \
	'gpulease: not available at once: needs 1 GPU, none is free' "$GPULEASE" -I true
release_all second
run 'an instance that is released is leased again' 0 "$B *" '' "$GPULEASE" sh -c "$show"
run 'two instances in one lease are refused' 125 '' \
	'gpulease: cannot lease 2 GPUs: CUDA sees one MIG instance at a time, and there are only 0 GPUs without MIG' \
	"$GPULEASE" -n 2 true
release_all first

only_mig
gpus 2
run 'an instance and a whole GPU in one lease are refused' 125 '' \
	'gpulease: cannot lease 2 GPUs: CUDA sees one MIG instance at a time, and there is only 1 GPU without MIG' \
	"$GPULEASE" -n 2 true
gpus 3
run '--gpu-ids with an instance and a whole GPU is refused' 125 '' \
	'gpulease: cannot lease 2 GPUs: --gpu-ids 0:0,1 leaves only 1 of 4; CUDA sees one MIG instance at a time' \
	"$GPULEASE" --gpu-ids 0:0,1 true
run '--gpu-ids with two instances is refused' 125 '' \
	'gpulease: cannot lease 2 GPUs: --gpu-ids 0:0,0:1 leaves none of 4; CUDA sees one MIG instance at a time' \
	"$GPULEASE" --gpu-ids 0:0,0:1 true
run '--allow that leaves only one whole GPU is refused' 125 '' \
	'gpulease: cannot lease 2 GPUs: --allow 0-1 leaves only 1 of 4; CUDA sees one MIG instance at a time' \
	"$GPULEASE" -n 2 --allow 0-1 true
run '--gpu-ids takes an instance' 0 "$B *" '' "$GPULEASE" --gpu-ids 0:1 sh -c "$show"
run 'a lease of several GPUs has those without MIG' 0 '1,2 1,2 1,2 *' '' "$GPULEASE" -n 2 \
	sh -c "$show"

only_mig
instances "0 0 1g.5gb $OLD"
run 'an instance with the UUID of an old driver is leased' 0 "$OLD $OLD 0:0 $OLD" '' \
	"$GPULEASE" sh -c "$show"
run 'an instance with the UUID of an old driver is leased again' 0 "$OLD *" '' "$GPULEASE" \
	sh -c "$show"

only_mig
instances
run 'MIG without instances is refused' 125 '' \
	'gpulease: no GPU is known: MIG is enabled, but there is no MIG instance; create one' \
	"$GPULEASE" true

# --- CUDA_VISIBLE_DEVICES ------------------------------------------------------------------

only_mig
run 'CUDA_VISIBLE_DEVICES takes an instance' 0 "$B *" '' \
	env CUDA_VISIBLE_DEVICES=MIG-bbbb "$GPULEASE" sh -c "$show"
holder inside
run 'in CUDA_VISIBLE_DEVICES a GPU with MIG is its first instance' 124 '' '*needs 1 GPU*' \
	env CUDA_VISIBLE_DEVICES=0 "$GPULEASE" -I true
release_all inside

# --- what is shown -------------------------------------------------------------------------

only_mig
holder shown -n 1
try "$GPULEASE" --status
is '--status shows the GPU with MIG' like '*
  0 * MIG *' "$out"
is '--status shows the state of its instances' like "*
0:0 * leased *
0:1 * idle *" "$out"
is '--status says why the GPU with MIG is not leased itself' \
	like '*GPU 0: MIG is enabled; its instances 0:0, 0:1 are leased instead*' "$out"
try "$GPULEASE" --status --json
is '--status --json has an instance with its numbers and its GPU' \
	sh -c 'printf %s "$1" | tr -d "\n " |
	grep -q "\"index\":0,\"instance\":1,\"parent\":\"GPU-00000000-[^\"]*\",\"uuid\":\"MIG-bbbb"' \
	- "$out"
is '--status --json has null for a GPU in place of an instance' \
	sh -c 'printf %s "$1" | tr -d "\n " |
	grep -q "\"index\":0,\"instance\":null,\"parent\":null,\"uuid\":\"GPU-"' - "$out"
release_all shown
try "$GPULEASE" --history
is '--history shows an instance by its number' like '* 0:0 *' "$out"
try "$GPULEASE" --history --json
is '--history --json has the index and the number of an instance' \
	sh -c 'printf %s "$1" | tr -d "\n " |
	grep -q "\"gpus\":\[0\],\"instance\":0,"' - "$out"

# --- pauses ----------------------------------------------------------------------------------

only_mig
run 'an instance can be paused' 0 '' '' "$GPULEASE" --pause 0:0
run 'with one instance paused the other one is leased' 0 "$B *" '' "$GPULEASE" sh -c "$show"
run '--pause of a GPU with MIG succeeds' 0 '' '' "$GPULEASE" --pause 0
run '--pause of a GPU pauses all its instances' 124 '' '*GPU 0:? is paused*' "$GPULEASE" -I true
run '--resume of a GPU with MIG succeeds' 0 '' '' "$GPULEASE" --resume 0
run '--resume of a GPU resumes all its instances' 0 "$A *" '' "$GPULEASE" sh -c "$show"
run '--pause of a missing instance is refused' 1 '' 'gpulease: there is no MIG instance 0:7' \
	"$GPULEASE" --pause 0:7

# --- use outside gpulease ------------------------------------------------------------------

only_mig
sleep 1000 &
outside=$!
started="$started $outside"
becomes "$outside" sleep
touch "$FAKE_SMI_DIR/reap"
echo "0 $outside 5000" >"$FAKE_SMI_DIR/procs"
run 'a foreign process may be on any instance' 124 '' \
	"*GPU 0:? is used outside gpulease (this instance or another one of its GPU) by pid $outside (*sleep)*" \
	"$GPULEASE" -I true
kill "$outside"
holder owner
owner=$(cut -d ' ' -f 1 "$S/owner.runs")
echo "0 $owner 30000" >"$FAKE_SMI_DIR/procs"
run 'a process of a lease does not occupy the other instance' 0 "$B *" '' "$GPULEASE" \
	sh -c "$show"
release_all owner
rm "$FAKE_SMI_DIR/procs"

# --- other instances -------------------------------------------------------------------------

only_mig
run 'an instance is leased before the instances change' 0 "$A *" '' "$GPULEASE" sh -c "$show"
instances '0 0 7g.80gb MIG-cccccccc-0000'
run 'new instances in the place of old ones' 0 'MIG-cccccccc-0000 * 0:0 *' '' \
	"$GPULEASE" --max-wait 20s sh -c "$show"
try "$GPULEASE" --status
is '--status does not show the former instances' \
	sh -c '! printf "%s\n" "$1" | grep -q "1g.10gb\|3g.40gb"' - "$out"
echo Disabled >"$FAKE_SMI_DIR/mig.0"
instances
run 'when MIG is disabled the GPU is leased again' 0 '0 0 0 GPU-*' '' \
	"$GPULEASE" --max-wait 20s sh -c "$show"

only_mig
holder part -n 0.5 --gpu-ids 0:1
instances "0 0 3g.40gb $A"
run 'the free part of a missing instance is not leased' 124 '' \
	'*; GPU 0:1 is in an unknown state: nvidia-smi does not list it' \
	"$GPULEASE" -n 0.3 --gpu-ids 0:1 -I true
run 'a share of an instance that still exists is leased' 0 "$A *" '' "$GPULEASE" -n 0.3 \
	sh -c "$show"
release_all part

only_mig
holder stays
instances "0 0 3g.40gb $A" '0 1 2g.20gb MIG-dddddddd-0000'
run 'a new instance is leased beside one in use' 0 'MIG-dddddddd-0000 *' '' \
	"$GPULEASE" --max-wait 20s sh -c "$show"
release_all stays
instances
run 'without a list of instances no instance is leased' 124 '' \
	'*GPU 0:? is in an unknown state: nvidia-smi does not list it; also unknown: GPU 0:?' \
	"$GPULEASE" -I true

finish

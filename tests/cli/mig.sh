#!/bin/sh
# MIG: instances are leased, the GPU they are on is not.
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

# instances LINE…: there are these from now on, and nobody has looked before
instances() {
	rm -f "$FAKE_SMI_DIR/migs" "$GPULEASE_DIR/probe"
	[ $# -eq 0 ] || printf '%s\n' "$@" >"$FAKE_SMI_DIR/migs"
}

# --- leasing -----------------------------------------------------------------------------

only_mig
run 'CUDA gets the uuid of the instance, people its number' 0 \
	"$A $A 0:0 $A" '' "$GPULEASE" sh -c "$show"
only_mig
holder first -n 1
holder second -n 1
is 'two jobs get different instances' \
	[ "$(gpus_of first) $(gpus_of second)" = "$A $B" ]
run 'the third waits for a lease, not for the GPU they are on' 124 '' \
	'gpulease: not available at once: needs 1 GPU, none is free' "$GPULEASE" -I true
release_all second
run 'what is released is leased again' 0 "$B *" '' "$GPULEASE" sh -c "$show"
run 'two in one lease: CUDA would see one of them' 125 '' \
	'gpulease: cannot lease 2 GPUs: CUDA sees one MIG instance at a time, and there are only 0 GPUs without MIG' \
	"$GPULEASE" -n 2 true
release_all first

only_mig
gpus 2
run 'beside a whole GPU there is still no set of both' 125 '' \
	'gpulease: cannot lease 2 GPUs: CUDA sees one MIG instance at a time, and there is only 1 GPU without MIG' \
	"$GPULEASE" -n 2 true
gpus 3
run 'nor one of those that are named' 125 '' \
	'gpulease: cannot lease 2 GPUs: --gpu-ids 0:0,1 leaves only 1 of 4; CUDA sees one MIG instance at a time' \
	"$GPULEASE" --gpu-ids 0:0,1 true
run 'nor of two instances' 125 '' \
	'gpulease: cannot lease 2 GPUs: --gpu-ids 0:0,0:1 leaves none of 4; CUDA sees one MIG instance at a time' \
	"$GPULEASE" --gpu-ids 0:0,0:1 true
run 'nor where others are not to be had' 125 '' \
	'gpulease: cannot lease 2 GPUs: --allow 0-1 leaves only 1 of 4; CUDA sees one MIG instance at a time' \
	"$GPULEASE" -n 2 --allow 0-1 true
run 'one instance may be named' 0 "$B *" '' "$GPULEASE" --gpu-ids 0:1 sh -c "$show"
run 'several GPUs are those without MIG' 0 '1,2 1,2 1,2 *' '' "$GPULEASE" -n 2 sh -c "$show"

only_mig
instances "0 0 1g.5gb $OLD"
run 'the uuids of old drivers' 0 "$OLD $OLD 0:0 $OLD" '' "$GPULEASE" sh -c "$show"
run 'and again, from its file' 0 "$OLD *" '' "$GPULEASE" sh -c "$show"

only_mig
instances
run 'MIG without instances' 125 '' \
	'gpulease: no GPU is known: MIG is enabled, but no instance is there' \
	"$GPULEASE" true

# --- CUDA_VISIBLE_DEVICES ------------------------------------------------------------------

only_mig
run 'it may name an instance' 0 "$B *" '' \
	env CUDA_VISIBLE_DEVICES=MIG-bbbb "$GPULEASE" sh -c "$show"
holder inside
run 'a GPU with MIG is its first instance' 124 '' '*needs 1 GPU*' \
	env CUDA_VISIBLE_DEVICES=0 "$GPULEASE" -I true
release_all inside

# --- what is shown -------------------------------------------------------------------------

only_mig
holder shown -n 1
try "$GPULEASE" --status
is 'status shows the GPU' like '*
  0 * MIG *' "$out"
is 'and what its instances do' like "*
0:0 * leased *
0:1 * idle *" "$out"
is 'and why it is not leased itself' \
	like '*GPU 0: MIG is enabled; its instances 0:0, 0:1 are leased instead*' "$out"
try "$GPULEASE" --status --json
is 'JSON has their numbers and their GPU' sh -c 'printf %s "$1" | tr -d "\n " |
	grep -q "\"index\":0,\"instance\":1,\"parent\":\"GPU-00000000-[^\"]*\",\"uuid\":\"MIG-bbbb"' \
	- "$out"
is 'and null for a GPU' sh -c 'printf %s "$1" | tr -d "\n " |
	grep -q "\"index\":0,\"instance\":null,\"parent\":null,\"uuid\":\"GPU-"' - "$out"
release_all shown
try "$GPULEASE" --history
is 'the history calls it by its number' like '* 0:0 *' "$out"
try "$GPULEASE" --history --json
is 'its JSON by index and number' sh -c 'printf %s "$1" | tr -d "\n " |
	grep -q "\"gpus\":\[0\],\"instance\":0,"' - "$out"

# --- pauses ----------------------------------------------------------------------------------

only_mig
run 'an instance can be paused' 0 '' '' "$GPULEASE" --pause 0:0
run 'then the other one is leased' 0 "$B *" '' "$GPULEASE" sh -c "$show"
run 'the GPU stands for all its instances' 0 '' '' "$GPULEASE" --pause 0
run 'which are paused then' 124 '' '*GPU 0:? is paused*' "$GPULEASE" -I true
run 'and are resumed with it' 0 '' '' "$GPULEASE" --resume 0
run 'all of them' 0 "$A *" '' "$GPULEASE" sh -c "$show"
run 'one that is not there' 1 '' 'gpulease: there is no MIG instance 0:7' \
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
	"*GPU 0:? is used outside gpulease (it or one beside it) by pid $outside (*sleep)*" \
	"$GPULEASE" -I true
kill "$outside"
holder owner
owner=$(cut -d ' ' -f 1 "$S/owner.runs")
echo "0 $owner 30000" >"$FAKE_SMI_DIR/procs"
run 'one of a lease leaves the other instance alone' 0 "$B *" '' "$GPULEASE" sh -c "$show"
release_all owner
rm "$FAKE_SMI_DIR/procs"

# --- other instances -------------------------------------------------------------------------

only_mig
run 'before' 0 "$A *" '' "$GPULEASE" sh -c "$show"
instances '0 0 7g.80gb MIG-cccccccc-0000'
run 'new instances in the place of old ones' 0 'MIG-cccccccc-0000 * 0:0 *' '' \
	"$GPULEASE" --max-wait 20s sh -c "$show"
try "$GPULEASE" --status
is 'the old ones are gone' sh -c '! printf "%s\n" "$1" | grep -q "1g.10gb\|3g.40gb"' - "$out"
echo Disabled >"$FAKE_SMI_DIR/mig.0"
instances
run 'without MIG the GPU is back' 0 '0 0 0 GPU-*' '' \
	"$GPULEASE" --max-wait 20s sh -c "$show"

only_mig
holder part -n 0.5 --gpu-ids 0:1
instances "0 0 3g.40gb $A"
run 'what is left of one that is gone is nobodys' 124 '' \
	'*; GPU 0:1 is in an unknown state: nvidia-smi does not list it' \
	"$GPULEASE" -n 0.3 --gpu-ids 0:1 -I true
run 'there are others' 0 "$A *" '' "$GPULEASE" -n 0.3 sh -c "$show"
release_all part

only_mig
holder stays
instances "0 0 3g.40gb $A" '0 1 2g.20gb MIG-dddddddd-0000'
run 'what is leased stays so when others change' 0 'MIG-dddddddd-0000 *' '' \
	"$GPULEASE" --max-wait 20s sh -c "$show"
release_all stays
instances
run 'a list that is missing is no reason to hand on what may be gone' 124 '' \
	'*GPU 0:? is in an unknown state: nvidia-smi does not list it' \
	"$GPULEASE" -I true

finish

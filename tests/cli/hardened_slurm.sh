#!/bin/sh
# The set-group-ID form inside a Slurm allocation: the directory is the user's own, and gpulease does
# not use the group there.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/hardened_lib.sh
. "$CLI/hardened_lib.sh"
hardened 'a Slurm allocation, in the set-group-ID form' "$@"
umask 022
driver 'gpus 2'
mkdir "$S/open/1" "$S/open/2"
chown $((UID_BASE + 1)):$((UID_BASE + 1)) "$S/open/1"
chown $((UID_BASE + 2)):$((UID_BASE + 2)) "$S/open/2"
host=$(uname -n)

# slurm USER NAME=VALUE… COMMAND…: runs the command in allocation 7
slurm() {
	slurm_user=$1
	shift
	env XDG_STATE_HOME="$S/open/$slurm_user" SLURM_JOB_ID=7 SLURM_CLUSTER_NAME=c "$@"
}
own=gpulease/slurm-7-c@$host

run 'an allocation without a GPU is refused' 125 '' '*has no GPU here*' slurm 1 timeout 60 \
	"$U1" true
run 'a command has no right of the group' 0 '' '' slurm 1 SLURM_JOB_GPUS=0,1 "$U1" -n 1 \
	"$TOOLS/attack" rights "$GROUP"
is 'the directory of the allocation belongs to the user' [ \
	"$(stat -c %u:%g:%a "$S/open/1/$own")" = \
	"$((UID_BASE + 1)):$((UID_BASE + 1)):700" ]
is 'no file of the allocation has the group' [ -z "$(find "$S/open/1" -group "$GROUP")" ]
is 'the shared directory has no ticket of the allocation' [ ! -e "$M/state/tickets" ]
run 'another user has another directory' 0 0 '' slurm 2 SLURM_JOB_GPUS=0 "$U2" -n 1 \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'

# a link that a user puts there is not followed with the rights of the group
slurm 1 "$U1" -n 0 true
rm -r "$S/open/1/$own"
as 1 ln -s "$M/state" "$S/open/1/$own"
run 'a link to the shared directory is refused' 125 '' '*state directory*' \
	slurm 1 SLURM_JOB_GPUS=0 "$U1" true
rm "$S/open/1/$own"
as 1 ln -s "$M/state" "$S/open/1/gpulease/slurm-6-c@$host"
try "$U2" -n 1 true
tickets=$(stat -c %s "$M/state/tickets")
run 'a link to the shared directory is no ended allocation' 0 '' '' slurm 1 SLURM_JOB_GPUS=0 \
	"$U1" true
is 'the shared directory behind the link is not removed' [ \
	"$(stat -c %s "$M/state/tickets")" = "$tickets" ]
rm "$S/open/1/gpulease/slurm-6-c@$host"

# a live lease of the machine comes first
run 'inside a lease of the machine a job is a step of the lease' 0 1 '' "$U1" --gpu-ids 1 \
	env XDG_STATE_HOME="$S/open/1" SLURM_JOB_ID=7 SLURM_JOB_GPUS=0 "$M/bin/gpulease" \
	sh -c 'echo $CUDA_VISIBLE_DEVICES'
echo 'slurm-allocation = shared' >>/etc/gpulease.conf
run 'slurm-allocation = shared: the shared directory is used' 0 "*\"$M/state\"*" '' \
	slurm 1 "$U1" --status --json
goes_on 'after the allocations other users get GPUs'
finish

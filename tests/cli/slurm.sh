#!/bin/sh
# Inside the allocations of a real Slurm, whose device cgroups hide the cards of others.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slurm_lib.sh
. "$CLI/slurm_lib.sh"
# shellcheck source=tests/cli/slurm_bed_lib.sh
. "$CLI/slurm_bed_lib.sh"
scratch
unset GPULEASE_SIM
cards 4
if ! slurm_bed 4; then
	skip 'a real Slurm' "$slurm_why"
	finish
fi
mkdir -m 0700 "$S/shared"
echo "directory = $S/shared" >"$S/conf"
configured
export GPULEASE
own=$XDG_STATE_HOME/gpulease
host=$(uname -n)

# What every script of a job begins with.  Without cgroups the cards are those of the variables.
cat >"$S/begin" <<'END'
[ -n "$slurm_limits" ] || {
	TEST_CARDS=$(echo "${SLURM_STEP_GPUS-${SLURM_JOB_GPUS-}}" | tr , ' ')
	CUDA_VISIBLE_DEVICES=$(seq -s , 0 $(($(echo $TEST_CARDS | wc -w) - 1)))
	export TEST_CARDS CUDA_VISIBLE_DEVICES
}
eight() {
	n=0
	while [ $n -lt 8 ]; do
		"$GPULEASE" -n 1 on_card &
		n=$((n + 1))
	done
	wait
}
END
export slurm_limits S
[ -n "$slurm_limits" ] || skip 'cards hidden by a device cgroup' 'not here: by the list of Slurm'

# job NAME SCRIPT: a script for sbatch; when it has ended its exit status is in $S/NAME.N.rc
job() {
	printf '#!/bin/sh\n. "%s/begin"\n(%s)\necho $? >"%s.$1.new"\nmv "%s.$1.new" "%s.$1.rc"\n' \
		"$S" "$2" "$S/$1" "$S/$1" "$S/$1" >"$S/$1.sh"
}

# begin_job NAME N OPTION…: starts it as a job of Slurm, which is ended after a minute
begin_job() {
	begin_job_name=$1 begin_job_n=$2
	shift 2
	timeout 30 sbatch -Q -t 1 -N1 -n1 -o "$S/$begin_job_name.$begin_job_n.out" "$@" \
		"$S/$begin_job_name.sh" "$begin_job_n" >/dev/null || bail 'sbatch fails'
}

# end_job NAME N: waits for it; $out is what it has printed, $rc its exit status
end_job() {
	wait_until "[ -e '$S/$1.$2.rc' ]"
	rc=$(cat "$S/$1.$2.rc" 2>/dev/null || echo none)
	out=$(cat "$S/$1.$2.out")
}

# batched TEXT STATUS OUT NAME OPTION…: a result: the exit status and a pattern
batched() {
	batched_text=$1 batched_rc=$2 batched_out=$3 batched_name=$4
	shift 4
	begin_job "$batched_name" 1 "$@"
	end_job "$batched_name" 1
	if [ "$rc" = "$batched_rc" ] && like "$batched_out" "$out"; then
		ok "$batched_text"
	else
		not_ok "$batched_text" "status $rc" "$out"
	fi
}

# --- two allocations at once ----------------------------------------------------------------

job two 'touch "$S/here.$SLURM_JOB_ID"
	n=0
	until [ "$(ls "$S"/here.* | wc -l)" -eq 2 ] || [ $n -eq 500 ]; do
		n=$((n + 1))
		sleep 0.02
	done
	eight'
begin_job two 1 --gpus=2
begin_job two 2 --gpus=2
end_job two 1
first_rc=$rc
end_job two 2
is 'two allocations of one user end' [ "$first_rc $rc" = '0 0' ]
is '… and 16 jobs were on the cards of their leases' cards_were_right 16
# shellcheck disable=SC2012
is 'each had a directory of its own' [ "$(ls -d "$own"/slurm-*-bed@"$host" | wc -l)" -eq 2 ]
is '… and none used the one of the machine' [ ! -e "$S/shared/tickets" ]

# Steps of one allocation have cards of their own, too, and share its directory.
job steps 'printf "%s\n" ". \"$S/begin\"" eight >"$S/step.sh"
	srun --exact -n1 --gpus=1 sh "$S/step.sh" &
	srun --exact -n1 --gpus=1 sh "$S/step.sh" &
	wait'
begin_job steps 1 -n2 --gpus=2
end_job steps 1
is 'two steps of one allocation: 16 jobs on the cards of their leases' cards_were_right 16

# --- without a GPU, or not on the node --------------------------------------------------------

job none 'timeout 30 "$GPULEASE" true'
batched 'an allocation without a GPU' 125 'gpulease: Slurm job * has no GPU here*' none
# step ARGUMENT…: gpulease in an allocation of one step
step() {
	timeout 60 srun -Q -N1 -n1 "$@"
}
run '… and a step' 125 '' '*gpulease: this step of Slurm job * has no GPU*' \
	step timeout 30 "$GPULEASE" true
run '… but not for a job without one' 0 '' '' step "$GPULEASE" -n 0 true
run '… nor to look' 0 '*nobody waits*' '' step "$GPULEASE" --status
run 'salloc gpulease, where it was typed' 125 '' 'gpulease: *none of the nodes of Slurm job*' \
	timeout 60 salloc -Q -N1 -n1 --gpus=1 timeout 30 "$GPULEASE" -n 1 true
run '… with srun between them' 0 '' '' \
	timeout 60 salloc -Q -N1 -n1 --gpus=1 srun -Q sh -c \
	". '$S/begin'; exec timeout 30 '$GPULEASE' -n 1 true"
run '… without a GPU' 0 '' '' timeout 60 salloc -Q -N1 -n1 --gpus=1 "$GPULEASE" -n 0 true
run 'a step without GPUs beside one that has them' 125 '' '*' timeout 60 salloc -Q -N1 -n1 \
	--gpus=1 srun -Q --gpus=0 sh -c ". '$S/begin'; exec timeout 30 '$GPULEASE' -n 1 true"

# --- srun inside a job ----------------------------------------------------------------------------

run 'srun inside a job' 0 'inner of [1-9]*' '' step --gpus=2 sh -c ". '$S/begin'
	exec '$GPULEASE' -n 1 srun --overlap -n1 sh -c 'echo inner of \$SLURM_JOB_ID'"

# --- what is left ---------------------------------------------------------------------------------

wait_until '[ -z "$(timeout 5 squeue -h)" ]'
run 'the next job of Slurm' 0 '' '' step --gpus=1 sh -c ". '$S/begin'; exec '$GPULEASE' true"
# shellcheck disable=SC2012
is '… removes the directories of those that have ended' \
	[ "$(ls -d "$own"/slurm-*-bed@"$host" | wc -l)" -eq 1 ]
finish

#!/bin/sh
# gpulease inside the allocations of a real Slurm, whose device cgroups hide the cards of other
# jobs.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/slurm_lib.sh
. "$CLI/slurm_lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$CLI/cluster_lib.sh"
scratch
unset GPULEASE_SIM
cards 4
if ! cluster_of_cards 4; then
	skip 'a real Slurm' "$cluster_why"
	finish
fi
mkdir -m 0700 "$S/shared"
echo "directory = $S/shared" >"$S/conf"
configured
export GPULEASE
own=$XDG_STATE_HOME/gpulease
host=$(uname -n)

# The beginning of every job script.  Without cgroups the variables of Slurm say which cards the job
# sees.
cat >"$S/begin" <<'END'
[ -n "$cluster_limits" ] || {
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
export cluster_limits S
[ -n "$cluster_limits" ] || skip 'cards hidden by a device cgroup' 'no device cgroups: the variables of Slurm choose the cards'

# job NAME SCRIPT: a script for sbatch; when the job has ended, $S/NAME.N.rc has its exit status
job() {
	printf '#!/bin/sh\n. "%s/begin"\n(%s)\necho $? >"%s.$1.new"\nmv "%s.$1.new" "%s.$1.rc"\n' \
		"$S" "$2" "$S/$1" "$S/$1" "$S/$1" >"$S/$1.sh"
}

# begin_job NAME N OPTION…: starts the script as a job of Slurm, which is ended after a minute
begin_job() {
	begin_job_name=$1 begin_job_n=$2
	shift 2
	timeout 30 sbatch -Q -t 1 -N1 -n1 -o "$S/$begin_job_name.$begin_job_n.out" "$@" \
		"$S/$begin_job_name.sh" "$begin_job_n" >/dev/null || bail 'sbatch fails'
}

# end_job NAME N: waits for the job; sets $out to its output and $rc to its exit status
end_job() {
	wait_until "[ -e '$S/$1.$2.rc' ]"
	rc=$(cat "$S/$1.$2.rc" 2>/dev/null || echo none)
	out=$(cat "$S/$1.$2.out")
}

# batched TEXT STATUS OUT NAME OPTION…: a result, good if the job's exit status and output fit
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
is 'two allocations: 16 jobs on the cards of their leases' cards_were_right 16
# shellcheck disable=SC2012
is 'each allocation has a state directory of its own' [ "$(ls -d "$own"/slurm-*-testbed@"$host" | wc -l)" -eq 2 ]
is 'no allocation uses the state directory of the machine' [ ! -e "$S/shared/tickets" ]

# Steps of one allocation also have cards of their own, but share its state directory.
job steps 'printf "%s\n" ". \"$S/begin\"" eight >"$S/step.sh"
	srun --exact -n1 --gpus=1 sh "$S/step.sh" &
	srun --exact -n1 --gpus=1 sh "$S/step.sh" &
	wait'
begin_job steps 1 -n2 --gpus=2
end_job steps 1
is 'two steps of one allocation: 16 jobs on the cards of their leases' cards_were_right 16

# --- without a GPU, or not on the node --------------------------------------------------------

job none 'timeout 30 "$GPULEASE" true'
batched 'a job in an allocation without a GPU is refused' 125 'gpulease: Slurm job * has no GPU here*' none
# step ARGUMENT…: the command in an allocation of one step
step() {
	timeout 60 srun -Q -N1 -n1 "$@"
}
run 'a job in a step without a GPU is refused' 125 '' '*gpulease: this step of Slurm job * has no GPU*' \
	step timeout 30 "$GPULEASE" true
run '-n 0 works in a step without a GPU' 0 '' '' step "$GPULEASE" -n 0 true
run '--status works in a step without a GPU' 0 '*no job waits*' '' step "$GPULEASE" --status
run 'gpulease on the login node of salloc is refused' 125 '' 'gpulease: *not a node of Slurm job*' \
	timeout 60 salloc -Q -N1 -n1 --gpus=1 timeout 30 "$GPULEASE" -n 1 true
run 'gpulease below srun in salloc gets a GPU' 0 '' '' \
	timeout 60 salloc -Q -N1 -n1 --gpus=1 srun -Q sh -c \
	". '$S/begin'; exec timeout 30 '$GPULEASE' -n 1 true"
run '-n 0 works on the login node of salloc' 0 '' '' timeout 60 salloc -Q -N1 -n1 --gpus=1 "$GPULEASE" -n 0 true
run 'a step without GPUs in an allocation with GPUs is refused' 125 '' '*' timeout 60 salloc -Q -N1 -n1 \
	--gpus=1 srun -Q --gpus=0 sh -c ". '$S/begin'; exec timeout 30 '$GPULEASE' -n 1 true"

# --- srun inside a job ----------------------------------------------------------------------------

run 'srun works inside a job of gpulease' 0 'inner of [1-9]*' '' step --gpus=2 sh -c ". '$S/begin'
	exec '$GPULEASE' -n 1 srun --overlap -n1 sh -c 'echo inner of \$SLURM_JOB_ID'"

# Our srun in that job has the GPUs of the lease, and the id of Slurm's job, of which Slurm's srun
# makes a step.
plain=$(sed -n 's/^exec "\([^"]*\)".*/\1/p' "$GPULEASE")
ln -s "$plain" "$S/srun"
cat >"$S/both.sh" <<'END'
sorted() { "$@" | sort; }
sorted "$S/srun" -n 2 sh -c 'echo "ours $SLURM_PROCID of $SLURM_NTASKS: $CUDA_VISIBLE_DEVICES, $SLURM_JOB_ID"'
sorted srun --overlap -n 2 sh -c 'echo "theirs $SLURM_PROCID of $SLURM_NTASKS: $SLURM_JOB_ID"'
sorted "$S/srun" -n 2 srun --overlap -n 1 sh -c 'echo "theirs in ours $SLURM_PROCID of $SLURM_NTASKS: $SLURM_JOB_ID"'
sorted srun --overlap -n 1 "$S/srun" -n 2 sh -c 'echo "ours in theirs $SLURM_PROCID of $SLURM_NTASKS: $SLURM_JOB_ID"'
echo "job: $SLURM_JOB_ID"
END
job ours '"$GPULEASE" -n 2 sh "$S/both.sh"'
begin_job ours 1 -n2 --gpus=2
end_job ours 1
id=${out##*: }
is 'both sruns work in a job of gpulease in an allocation' [ "$out" = "ours 0 of 2: 0,1, $id
ours 1 of 2: 0,1, $id
theirs 0 of 2: $id
theirs 1 of 2: $id
theirs in ours 0 of 1: $id
theirs in ours 0 of 1: $id
ours in theirs 0 of 2: $id
ours in theirs 1 of 2: $id
job: $id" ]

# --- directories of ended jobs -----------------------------------------------------------

wait_until '[ -z "$(timeout 5 squeue -h)" ]'
run 'a later job of Slurm gets a GPU' 0 '' '' step --gpus=1 sh -c ". '$S/begin'; exec '$GPULEASE' true"
# shellcheck disable=SC2012
is 'a later job of Slurm removes the directories of ended jobs' \
	[ "$(ls -d "$own"/slurm-*-testbed@"$host" | wc -l)" -eq 1 ]
finish

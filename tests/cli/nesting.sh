#!/bin/sh
# gpulease, srun and sbatch inside each other, and inside an allocation of Slurm.  Variables imitate
# the allocation; slurm.sh has the same with a real Slurm.
# shellcheck disable=SC2016 # code of jobs

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
for folder in bin lib lib/gpulease lib/gpulease/bin work; do
	mkdir "$S/$folder"
done
install -m 0755 "$GPULEASE" "$S/bin/gpulease"
install -m 0755 "$(dirname "$GPULEASE")/gpulease-slurm" "$S/lib/gpulease/gpulease-slurm"
ln -s ../../../bin/gpulease "$S/lib/gpulease/bin/srun"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/sbatch"
for each in $(env | sed -n 's/^\(SBATCH_[A-Z_]*\)=.*/\1/p'); do
	unset "$each"
done
# a process of a job: where it comes from, the task, the GPUs, and the job of Slurm if it is not ours
cat >"$S/bin/show" <<'END'
#!/bin/sh
job=${SLURM_JOB_ID-none}
[ "$job" != "$GPULEASE_ID" ] || job=own
echo "$1: ${SLURM_PROCID-no task} of ${SLURM_NTASKS-none}, $CUDA_VISIBLE_DEVICES, $job"
END
# whether this process belongs to the job $outer
cat >"$S/bin/same" <<'END'
#!/bin/sh
[ "$GPULEASE_ID" = "$outer" ] && echo same || echo "$GPULEASE_ID, not $outer"
END
chmod +x "$S"/bin/*
export PATH="$S/lib/gpulease/bin:$S/bin:$PATH"
cd "$S/work" || bail 'no directory'

# --- in a lease ----------------------------------------------------------------------------

# script FILE LINE…: a job script with four GPUs and two tasks
script() {
	script_file=$1
	shift
	printf '%s\n' '#!/bin/sh' '#SBATCH --gpus=4 --ntasks=2 -o out' \
		'export outer=$GPULEASE_ID' 'exec 2>&1' "$@" >"$script_file"
}

# in_script TEXT OUT LINE…: a result, good if the lines print OUT in a job script
in_script() {
	in_script_text=$1 in_script_out=$2
	shift 2
	script job "$@"
	try sbatch -Q --wait job
	out=$(grep -v '^gpulease: job ' out | sort)
	if like "$in_script_out" "$out"; then
		ok "$in_script_text"
	else
		not_ok "$in_script_text" "$out" "$err"
	fi
}

in_script 'gpulease in a job script has the GPUs of the job' 'a: no task of none, ?,?,?,?, none' 'gpulease show a'
in_script 'gpulease -n 2 has the first two' 'a: no task of none, ?,?, none' 'gpulease -n 2 show a'
in_script 'more than the job has is refused' 'gpulease: cannot use 5 GPUs: *has 4' 'gpulease -n 5 show a'
in_script 'srun has the tasks of the script' 'a: 0 of 2, ?,?,?,?, own
a: 1 of 2, ?,?,?,?, own' 'srun show a'
in_script 'gpulease in a task of srun' 'a: no task of none, ?, none' 'srun -n 1 gpulease -n 1 show a'
in_script 'srun in a gpulease in a script' 'a: 0 of 2, ?,?,?,?, own
a: 1 of 2, ?,?,?,?, own' 'gpulease srun -n 2 show a'
in_script 'a step has the lease of its job' 'same
same
same' same 'gpulease same' 'srun -n 1 gpulease same'
in_script 'sbatch in a job script submits another job' 'a: 0 of none, ?, own
same' 'gpulease same' 'sbatch -Q --wait --gpus=1 -o inner --wrap "show a"' 'grep ^a: inner'
run 'a job script in a lease is a job of its own' 0 'a: 0 of none, [1-7],[1-7], own' '' \
	"$GPULEASE" --gpu-ids 0 sh -c 'sbatch -Q --wait --gpus=2 -o lease.out --wrap "show a"; grep ^a: lease.out'
printf '%s\n' '#!/bin/sh' 'gpulease -n 1 show a' 'srun -n 2 show b' >plain
run 'a script of the shell in a lease' 0 'a: no task of none, 2, none
b: [01] of 2, 2,3, own
b: [01] of 2, 2,3, own' '' "$GPULEASE" --gpu-ids 2,3 sh plain

# --- in an allocation of Slurm -----------------------------------------------------------------

with_driver
unset GPULEASE_DIR
gpus 4
# slurm COMMAND…: in the first task of a step of job 70
slurm() {
	env SLURM_JOB_ID=70 SLURM_JOBID=70 SLURM_CLUSTER_NAME=c SLURM_JOB_GPUS=1,2,3 SLURM_PROCID=0 \
		SLURM_NTASKS=5 SLURM_STEP_ID=3 SLURM_NODELIST="$(uname -n)" timeout 60 "$@"
}
own=$XDG_STATE_HOME/gpulease/slurm-70-c@$(uname -n)
run 'srun of gpulease in an allocation has the GPUs that it asks for' 0 'a: [01] of 2, 1,2, 70
a: [01] of 2, 1,2, 70' '' slurm srun --gpus=2 -n 2 show a
is 'it uses the directory of the allocation' [ -s "$own/tickets" ]
run 'srun in a gpulease in an allocation' 0 'a: [01] of 2, 1,2, 70
a: [01] of 2, 1,2, 70' '' slurm "$GPULEASE" --gpu-ids 1,2 srun -n 2 show a
run 'srun with a GPU less in a gpulease in an allocation' 0 'a: no task of none, 1, 70' '' \
	slurm "$GPULEASE" --gpu-ids 1,2 srun --gpus=1 show a
run 'more GPUs than the lease, but not than the allocation: refused' 125 '' 'gpulease: cannot use 3 GPUs: *has 2' \
	slurm "$GPULEASE" --gpu-ids 1,2 srun --gpus=3 show a
printf '%s\n' '#!/bin/sh' '#SBATCH --gpus=3 --ntasks=2 -o out' 'show a' 'srun show b' \
	'srun -n 1 --gpus=1 show c' 'gpulease -n 2 show d' >job
run 'a job script of gpulease in an allocation' 0 '' '' slurm sbatch -Q --wait job
run 'its steps have its tasks' 0 'a: 0 of 2, 1,2,3, 70
b: 0 of 2, 1,2,3, 70
b: 1 of 2, 1,2,3, 70
c: 0 of 1, 1, 70
d: no task of none, 1,2, 70' '' sh -c 'grep -v "^gpulease: " out | sort'
finish

#!/bin/sh
# Job scripts of the shapes that the tutorials of training libraries have, with one node.  Programs
# stand in for python, torchrun and accelerate, and print what the libraries read.
# shellcheck disable=SC2016 # code of scripts

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 8
if ! command -v bash >/dev/null 2>&1; then
	skip 'tutorials' 'no bash'
	finish
fi

# --- as it is installed, with the links ----------------------------------------------------

for folder in bin lib lib/gpulease lib/gpulease/bin stand-ins work home; do
	mkdir "$S/$folder"
done
install -m 0755 "$GPULEASE" "$S/bin/gpulease"
install -m 0755 "$(dirname "$GPULEASE")/gpulease-slurm" "$S/lib/gpulease/gpulease-slurm"
ln -s ../../../bin/gpulease "$S/lib/gpulease/bin/srun"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/sbatch"
if "$S/lib/gpulease/gpulease-slurm" scontrol show hostnames a >/dev/null 2>&1; then
	ln -s ../gpulease-slurm "$S/lib/gpulease/bin/scontrol"
else
	# a list of one host is the host
	printf '#!/bin/sh\n[ "$1" = show ] && echo "${3-$SLURM_JOB_NODELIST}"\n' >"$S/stand-ins/scontrol"
fi
cat >"$S/stand-ins/python" <<'END'
#!/bin/sh
# what the libraries read: rank, number of ranks, rank on the node, rank of the node, ranks of the
# node, the first host, and whether the id of the job is a number, of which they make a port
host=$(scontrol show hostname "$SLURM_NODELIST" | head -n 1)
[ "$host" = "$node" ] && host=here
[ "$SLURM_JOB_ID" -gt 0 ] && [ "$SLURM_JOB_ID" = "$SLURM_JOBID" ] && host="$host, a number"
echo "${0##*/} $*: $SLURM_PROCID of $SLURM_NTASKS, $SLURM_LOCALID on $SLURM_NODEID of" \
	"$SLURM_NTASKS_PER_NODE, $SLURM_JOB_NAME, $CUDA_VISIBLE_DEVICES, $host"
END
chmod +x "$S"/stand-ins/*
for each in torchrun accelerate; do
	ln -s python "$S/stand-ins/$each"
done
for each in $(env | sed -n 's/^\(SBATCH_[A-Z_]*\)=.*/\1/p'); do
	unset "$each"
done
node=$(uname -n)
node=${node%%.*}
export node HOME="$S/home" PATH="$S/lib/gpulease/bin:$S/stand-ins:$PATH"
cd "$S/work" || bail 'no directory'

# script FILE: stdin is a script for sbatch
script() {
	cat >"$1"
}

# printed FILE: what the job has printed, sorted
# shellcheck disable=SC2317 # run calls it
printed() {
	grep -v '^gpulease: ' "$1" | sort
}

# --- PyTorch, torchtitan: the hosts, the address of the first, torchrun ---------------------

script torchrun.slurm <<'END'
#!/bin/bash
#SBATCH --job-name=ddp
#SBATCH --nodes=1

#SBATCH --ntasks=1
#SBATCH --gpus-per-task=8
#SBATCH --cpus-per-task=96
#SBATCH --partition=train

hosts=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
list=($hosts)
first=${list[0]}
address=$(srun --nodes=1 --ntasks=1 -w "$first" echo 10.0.0.1)
export LOGLEVEL=INFO
srun torchrun --nnodes ${#hosts[@]} --nproc_per_node 8 --rdzv_id 7 --rdzv_backend c10d \
	--rdzv_endpoint "$address:29500" train.py 50 10 "$@"
END
run 'a script that starts torchrun with the address of the first host' 0 'Submitted batch job 1' '' \
	sbatch --wait torchrun.slurm more
run 'torchrun runs once, with all GPUs' 0 "torchrun --nnodes 1 --nproc_per_node 8 --rdzv_id 7 --rdzv_backend c10d \
--rdzv_endpoint 10.0.0.1:29500 train.py 50 10 more: 0 of 1, 0 on 0 of 1, ddp, 0,1,2,3,4,5,6,7, here, a number" \
	'' printed slurm-1.out

# --- Lightning: a task for each GPU, in a login shell ----------------------------------------

echo "PATH=$S/stand-ins:/usr/local/bin:/usr/bin:/bin" >"$S/home/.bash_profile"
script lightning.slurm <<'END'
#!/bin/bash -l
#SBATCH --nodes=1             # as many as the trainer has
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=4
#SBATCH --mem=0
#SBATCH --time=0-02:00:00

source activate $1
export NCCL_DEBUG=INFO PYTHONFAULTHANDLER=1
echo "$# $1 $(basename "$0" | wc -w) $(command -v srun | grep -c "^$S/")"
srun python train.py
END
printf 'echo environment "$1"\n' >"$S/stand-ins/activate"
export S
echo >train.py
run 'a script for a login shell, whose profile sets PATH anew' 0 'Submitted batch job 2' '*' \
	sbatch --wait lightning.slurm env
run 'each task has a rank, and all GPUs' 0 '1 env 1 1
environment env
python train.py: 0 of 4, 0 on 0 of 4, lightning.slurm, 0,1,2,3, here, a number
python train.py: 1 of 4, 1 on 0 of 4, lightning.slurm, 0,1,2,3, here, a number
python train.py: 2 of 4, 2 on 0 of 4, lightning.slurm, 0,1,2,3, here, a number
python train.py: 3 of 4, 3 on 0 of 4, lightning.slurm, 0,1,2,3, here, a number' '' printed slurm-2.out
script status.slurm <<'END'
#!/bin/bash -le
#SBATCH --gpus=1
false
END
run 'the options of a login shell count' 1 'Submitted batch job 3' '*' sbatch --wait status.slurm
script sh.slurm <<'END'
#!/bin/sh -l
#SBATCH --gpus=1
exit 6
END
run 'a login shell gives its status' 6 'Submitted batch job 4' '*' sbatch --wait sh.slurm
rm "$S/home/.bash_profile"

# --- mmengine: srun without a script ----------------------------------------------------------

cat >"$S/sorted" <<'END'
#!/bin/sh
"$@" >"$S/unsorted"
code=$?
sort "$S/unsorted"
exit $code
END
chmod +x "$S/sorted"
script launch <<'END'
#!/usr/bin/env bash
GPUS=${GPUS:-2} GPUS_PER_NODE=${GPUS_PER_NODE:-2} CPUS_PER_TASK=${CPUS_PER_TASK:-5} SRUN_ARGS=${SRUN_ARGS:-""}
srun -p $1 --job-name=$2 --gres=gpu:${GPUS_PER_NODE} --ntasks=${GPUS} --ntasks-per-node=${GPUS_PER_NODE} \
	--cpus-per-task=${CPUS_PER_TASK} --kill-on-bad-exit=1 ${SRUN_ARGS} python -u train.py ${@:3} --launcher="slurm"
END
run 'srun with a task for each GPU' 0 'python -u train.py config --launcher=slurm: 0 of 2, 0 on 0 of 2, fit, 0,1, here, a number
python -u train.py config --launcher=slurm: 1 of 2, 1 on 0 of 2, fit, 0,1, here, a number' '*' \
	"$S/sorted" bash launch part fit config
rm train.py

# --- Accelerate: one task, output with patterns -------------------------------------------------

script accelerate.slurm <<'END'
#!/bin/bash
#SBATCH --job-name=multi
#SBATCH -D .
#SBATCH --output=O-%x.%j
#SBATCH --error=E-%x.%j
#SBATCH --nodes=1                   # number of nodes
#SBATCH --ntasks-per-node=1         # number of tasks
#SBATCH --gres=gpu:4                # GPUs of a node
#SBATCH --cpus-per-task=160
#SBATCH --time=01:59:00             # HH:MM:SS

source setEnvironment.sh
export EACH=4
export LAUNCHER="accelerate launch \
    --num_processes $((SLURM_NNODES * EACH)) \
    --num_machines $SLURM_NNODES \
    --main_process_ip $(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1 | wc -w) \
    "
srun $LAUNCHER script.py
END
run 'a script that starts accelerate' 0 'Submitted batch job [1-9]' '*' sbatch --wait accelerate.slurm
job=${out##* }
run 'accelerate runs once, with all GPUs' 0 'accelerate launch --num_processes 4 --num_machines 1 --main_process_ip 1 script.py: 0 of 1, 0 on 0 of 1, multi, 0,1,2,3, here, a number' \
	'' printed "O-multi.$job"
run 'its errors are in a file of their own' 0 '*setEnvironment.sh*' '' cat "E-multi.$job"

# --- Megatron: a script from stdin, numbered lines ----------------------------------------------

script megatron <<'END'
#!/bin/bash
COMMAND="
cd $S;
export PYTHONPATH=$S:\${PYTHONPATH};
python pretrain.py --bf16"
sbatch --wait <<EOF
#!/bin/bash
#SBATCH --job-name=gpt
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --gres=gpu:2
#SBATCH --time=4:00:00
#SBATCH --exclusive
#SBATCH --dependency=singleton
srun --mpi=pmix -l bash -c "${COMMAND}" 2>/dev/null | tee log.\${SLURM_JOB_ID}
EOF
END
run 'a script that is made by a script' 0 'Submitted batch job [1-9]*' '*' bash megatron
job=${out##* }
run 'the lines of its tasks have numbers' 0 '0: python pretrain.py --bf16: 0 of 2, 0 on 0 of 2, gpt, 0,1, here, a number
1: python pretrain.py --bf16: 1 of 2, 1 on 0 of 2, gpt, 0,1, here, a number' '' printed "log.$job"
finish

#!/bin/sh
# In the place of srun: lines of training scripts, what is honoured, ignored and refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
mkdir "$S/work"
cd "$S/work" || bail "no directory"

# What a training script would be: prints its words and its GPUs.
cat >"$S/work/train" <<'EOF'
#!/bin/sh
echo "$(echo "$CUDA_VISIBLE_DEVICES" | tr , '\n' | grep -c .) $*"
EOF
chmod +x train
PATH=$S/work:$PATH
ln -s train torchrun
ln -s train python
ln -s train accelerate
ln -s train deepspeed
srun() { "$GPULEASE" "$@"; }

# --- ten lines of training scripts -------------------------------------------------------

run 'torchrun' 0 '4 --nproc_per_node=4 train.py' '' \
	"$GPULEASE" -n 4 torchrun --nproc_per_node=4 train.py
run 'one task with its GPUs, CPUs and memory' 0 '4 train.py --epochs 3' '' \
	"$GPULEASE" --gres=gpu:4 --ntasks=1 --cpus-per-task=8 --mem=64G -p gpu -t 2:00:00 \
	python train.py --epochs 3
run 'accelerate' 0 '2 launch train.py' '' \
	"$GPULEASE" -N1 -n1 --gpus=2 --job-name=sft accelerate launch train.py
run 'deepspeed' 0 '8 --num_gpus 8 run.py' '' \
	"$GPULEASE" --nodes=1 --ntasks-per-node=1 --gpus-per-node=8 deepspeed --num_gpus 8 run.py
run 'lightning' 0 '1 fit.py' '' \
	"$GPULEASE" --gpus-per-task=1 -c 4 --cpu-bind=none --mpi=none python fit.py
run 'unbuffered, labelled, killed on a bad exit' 0 '1 -u main.py' '' \
	"$GPULEASE" -u -l -K -G 1 python -u main.py
run 'a partition, an account and a quality of service' 0 '2 a.py' '' \
	"$GPULEASE" -p a100 -A lab -q high --gres=gpu:2 python a.py
run 'with a terminal' 0 '1 -i' '' "$GPULEASE" --pty --gres=gpu:1 -t 60 python -i
run 'overlapping, waiting and hinted' 0 '1 b.py' '' \
	"$GPULEASE" --overlap --wait=60 --hint=nomultithread --export=ALL python b.py
run 'bound, commented and mailed' 0 '2 e.py' '' \
	"$GPULEASE" -G 2 --gpu-bind=closest --cpus-per-gpu 8 -m block --threads-per-core=1 --exact \
	-k -s --comment='a b' --nice=5 --propagate --mail-type=END --mail-user=a --open-mode=truncate \
	python e.py
run 'exclusive, as one user has it' 0 '1 d.py' '' \
	"$GPULEASE" --exclusive=user -G 1 python d.py
run 'a kind of GPU' 0 '2 c.py' '' "$GPULEASE" --gpus=simulated:2 python c.py

# --- honoured ----------------------------------------------------------------------------

run 'another directory' 0 '/' '' "$GPULEASE" -D / sh -c pwd
run 'one that is not there' 125 '' "gpulease: cannot change to '/no/such': *" \
	"$GPULEASE" --chdir=/no/such true
run 'output to a file' 0 '' '' "$GPULEASE" -J fit -o 'log-%x-%j.txt' sh -c 'echo out; echo err >&2'
is 'stdout and stderr are there' \
	[ "$(cat "$S/work"/log-fit-*.txt)" = "out
err" ]
run 'errors to another' 0 '' '' "$GPULEASE" -o o -e 'e-%u' sh -c 'echo out; echo err >&2'
is 'each has its own' [ "$(cat o e-*)" = "out
err" ]
ln -s both.txt another
: >both.txt
for each in both.txt ./both.txt "$PWD/both.txt" another; do
	run "errors to the same file as $each" 0 '' '' "$GPULEASE" -o both.txt -e "$each" \
		sh -c 'echo one; echo two >&2; echo three; echo four >&2'
	is 'neither writes over the other' [ "$(cat both.txt)" = "one
two
three
four" ]
done
run 'nothing of the environment but what is named' 0 '1  3' '' \
	env A=1 B=2 "$GPULEASE" --export=A,C=3 sh -c 'echo "$A ${B-} $C"'
run 'input from a file' 0 'out' '' "$GPULEASE" -i o cat
run 'a file that cannot be opened' 125 '' "gpulease: cannot open '/no/such': *" \
	"$GPULEASE" -o /no/such true
holder all -n 8
for option in -i -o -e; do
	run "not after a wait either: $option" 125 '' "gpulease: cannot open '/no/such': *" \
		"$GPULEASE" "$option" /no/such true
done
run 'nor with what is looked after' 125 '' "gpulease: cannot open '/no/such': *" \
	"$GPULEASE" --retries 2 -o /no/such true
run 'not at once' 124 '' '*not available at once*' "$GPULEASE" -I --gres=gpu:1 true
release_all all

# --- told with -v ------------------------------------------------------------------------

run 'what is ignored is told with -v' 0 '' '*--mem is accepted and ignored*' \
	"$GPULEASE" -v --mem=4G true

# --- refused -----------------------------------------------------------------------------

for line in '-N 2' '--nodes=2' '-w host' '--nodelist=host' '-x host' '--exclude=host' '-a 1' \
	'--multi-prog' '--jobid=5' '--ntasks-per-gpu=1' '--open-mode=append' '-n 4 --gres=gpu:4' '-n 2 -G 4' '--ntasks=2' \
	'--export=NONE,A' '--gres=shard:1' '--gpus=2 --gres=gpu:4' '-d afternotok:1' '-d singleton' \
	'-d after:1' '-d afterany:' '--dependency=afterok:1?afterok:2'; do
	# shellcheck disable=SC2086 # words of a line
	run "refused: $line" 125 '' "gpulease: *" "$GPULEASE" $line true
done
run 'a dependency that is not supported is explained' 125 '' \
	"gpulease: -d: 'aftercorr:7' is not supported; write singleton, afterany:ID or *" \
	"$GPULEASE" -d aftercorr:7 true
run 'tasks are explained' 125 '' '*gpulease starts one process, not 4 tasks*' \
	"$GPULEASE" -n 4 --gres=gpu:4 true
run 'a kind that is not there' 125 '' \
	'gpulease: cannot lease 1 GPU*h100*' \
	"$GPULEASE" --gpus=h100:1 true

finish

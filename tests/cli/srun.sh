#!/bin/sh
# Options of srun: lines of training scripts, and which options are honoured, ignored and refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
mkdir "$S/work"
cd "$S/work" || bail "no directory"

# In the place of a training script: prints the number of its GPUs and its words.
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
for script in train fit main a b c d e; do
	: >$script.py
done
srun() { "$GPULEASE" "$@"; }

# --- ten lines of training scripts -------------------------------------------------------

run 'a line with torchrun' 0 '4 --nproc_per_node=4 train.py' '' \
	"$GPULEASE" -n 4 torchrun --nproc_per_node=4 train.py
run 'a line with one task, GPUs, CPUs, memory and partition' 0 '4 train.py --epochs 3' '' \
	"$GPULEASE" -Q --gres=gpu:4 --ntasks=1 --cpus-per-task=8 --mem=64G -p gpu -t 2:00:00 \
	python train.py --epochs 3
run 'a line with accelerate' 0 '2 launch train.py' '' \
	"$GPULEASE" -N1 -n1 --gpus=2 --job-name=sft accelerate launch train.py
run 'a line with deepspeed' 0 '8 --num_gpus 8 run.py' '' \
	"$GPULEASE" --nodes=1 --ntasks-per-node=1 --gpus-per-node=8 deepspeed --num_gpus 8 run.py
run 'a line for lightning' 0 '1 fit.py' '' \
	"$GPULEASE" -Q --gpus-per-task=1 -c 4 --cpu-bind=none --mpi=none python fit.py
run 'a line with -u, -l and -K' 0 '0: 1 -u main.py' '' \
	"$GPULEASE" -Q -u -l -K -G 1 python -u main.py
run 'a line with a partition, an account and a quality of service' 0 '2 a.py' '' \
	"$GPULEASE" -p a100 -A lab -q high --gres=gpu:2 python a.py
run 'a line with --pty' 0 '1 -i' '' "$GPULEASE" --pty --gres=gpu:1 -t 60 python -i
run 'a line with --overlap, --wait and --hint' 0 '1 b.py' '' \
	"$GPULEASE" -Q --overlap --wait=60 --hint=nomultithread --export=ALL python b.py
run 'a line with binding, comment and mail' 0 '2 e.py' '' \
	"$GPULEASE" -Q -G 2 --gpu-bind=closest --cpus-per-gpu 8 -m block --threads-per-core=1 --exact \
	-k -s --comment='a b' --nice=5 --propagate --mail-type=END --mail-user=a --open-mode=truncate \
	python e.py
run 'a line with --exclusive=user' 0 '1 d.py' '' \
	"$GPULEASE" --exclusive=user -G 1 python d.py
run 'a line with a kind of GPU' 0 '2 c.py' '' "$GPULEASE" --gpus=simulated:2 python c.py

# --- honoured ----------------------------------------------------------------------------

run '-D changes the directory' 0 '/' '' "$GPULEASE" -D / sh -c pwd
run 'a directory that does not exist is refused' 125 '' "gpulease: cannot change to 'no/such': *" \
	"$GPULEASE" --chdir=no/such true
run '-o writes the output to a file' 0 '' '' "$GPULEASE" -J fit -o 'log-%x-%j.txt' sh -c 'echo out; echo err >&2'
is 'the file of -o has stdout and stderr' \
	[ "$(cat "$S/work"/log-fit-*.txt)" = "out
err" ]
run '-e writes the errors to a file' 0 '' '' "$GPULEASE" -o o -e 'e-%u' sh -c 'echo out; echo err >&2'
is 'the files of -o and -e have their own output' [ "$(cat o e-*)" = "out
err" ]
ln -s both.txt another
: >both.txt
for each in both.txt ./both.txt "$PWD/both.txt" another; do
	run "-e may name the file of -o as $each" 0 '' '' "$GPULEASE" -o both.txt -e "$each" \
		sh -c 'echo one; echo two >&2; echo three; echo four >&2'
	is 'stdout and stderr do not overwrite each other' [ "$(cat both.txt)" = "one
two
three
four" ]
done
run '--export passes only the named variables' 0 '1  3' '' \
	env A=1 B=2 "$GPULEASE" --export=A,C=3 sh -c 'echo "$A ${B-} $C"'
run '-i reads the input from a file' 0 'out' '' "$GPULEASE" -i o cat
: >no
run 'an output file that cannot be opened is refused' 125 '' "gpulease: cannot open 'no/such': *" \
	"$GPULEASE" -o no/such true
run 'before there is an id the message has the name as it was given' 125 '' \
	"gpulease: cannot open 'no/such.%j': *" "$GPULEASE" -o no/such.%j true
holder all -n 8
for option in -i -o -e; do
	run "a file that cannot be opened is refused before a wait: $option" 125 '' "gpulease: cannot open 'no/such': *" \
		"$GPULEASE" "$option" no/such true
done
run 'a file that cannot be opened is refused under a supervisor' 125 '' "gpulease: cannot open 'no/such': *" \
	"$GPULEASE" --retries 2 -o no/such true
run 'missing folders of an output are made' 0 '' '' sh -c \
	'umask 0377; exec "$0" -n 0 -o "new/of 1/o" -e new/of-2//e echo ok' "$GPULEASE"
is 'with mode 0755, whatever the umask' [ "$(stat -c %a new 'new/of 1' new/of-2 | sort -u)" = 755 ]
is 'and the output is there' [ "$(cat 'new/of 1/o')" = ok ]
run 'folders whose names have the id' 0 '' '' "$GPULEASE" -n 0 -o 'job/%j/%x' sh -c 'echo "$GPULEASE_ID"'
is 'are made when the file is opened' [ "$(cat job/*/sh)" = "$(ls job)" ]
run 'nothing is made where a job is refused' 125 '' 'gpulease: *' "$GPULEASE" -n 99 -o never/o true
is 'not even its folder' [ ! -e never ]
mkdir closed
chmod 0555 closed
if [ "$(id -u)" -ne 0 ]; then
	run 'a folder that cannot be made is named' 125 '' \
		"gpulease: cannot make the folder 'closed/a': Permission denied" \
		"$GPULEASE" -n 0 -o closed/a/b/o true
	run 'also where its name has the id' 125 '' \
		"gpulease: cannot make the folder 'closed/*': Permission denied" \
		"$GPULEASE" -n 0 -o closed/%j/b/o true
	run 'a file that can be written needs no folder that can be' 0 '' '' \
		"$GPULEASE" -n 0 -o /dev/null echo ok
else
	skip 'a folder that cannot be made is named' 'for root there is none'
fi
run '-I gives up at once' 124 '' '*not available at once*' "$GPULEASE" -I --gres=gpu:1 true
release_all all

# --- -v -----------------------------------------------------------------------------------

run '-v names the options that are ignored' 0 '' '*--qos is accepted and ignored*' \
	"$GPULEASE" -v --qos=high true

# --- what is promised and not done --------------------------------------------------------

# unmet NAME REASON OPTION…: the line about these options, which -Q silences
unmet() {
	unmet_text=$1 unmet_reason=$2
	shift 2
	run "$unmet_text says what is not done" 0 x "gpulease: no effect here: $unmet_text ($unmet_reason)" \
		"$GPULEASE" "$@" echo x
	run "-Q silences it: $unmet_text" 0 x '' "$GPULEASE" -Q "$@" echo x
}

memory='host memory, as in srun; for GPU memory give --vram SIZE'
for each in --mem --mem-per-gpu --mem-per-cpu; do
	unmet "$each" "$memory" "$each" 8000
done
for each in --cpus-per-task --cpus-per-gpu --threads-per-core; do
	unmet "$each" 'no CPUs are reserved' "$each" 8
done
for each in --mem-bind --cpu-bind --hint; do
	unmet "$each" '--bind keeps the job near its GPUs' "$each" none
done
unmet --nice 'to let other jobs go first give --priority=-N' --nice=5
unmet --constraint 'for a kind of GPU give --model TEXT or --min-vram SIZE' -C a100
for each in --cpu-freq --gpu-freq; do
	unmet "$each" 'no clock is set' "$each" high
done
unmet '--mail-type, --mail-user' 'no mail is sent' --mail-user=a --mail-type=END
run 'one line for several options, each reason once' 0 x \
	"gpulease: no effect here: --cpus-per-task (no CPUs are reserved), --mem, --mem-per-gpu ($memory)" \
	"$GPULEASE" --mem 4G -p gpu --mem-per-gpu=1G -c 8 echo x
run 'options that only say where a job goes on a cluster are quiet' 0 x '' \
	"$GPULEASE" -p gpu -A lab -q high --comment=a -K -m block --mpi=none --overlap -s --exact -W 60 \
	-k --propagate --open-mode=truncate -N 1 --ntasks-per-node=1 echo x
run 'a background job says it once' 0 '[0-9]*' 'gpulease: no effect here: --mem (*)' \
	"$GPULEASE" --submit --mem 4G true
# what would change when or where the job runs is refused, with the way out
for each in '--deadline=noon|--deadline: *--max-wait*--time*' \
	'--test-only|unknown option *--dry-run*'; do
	# shellcheck disable=SC2086 # words of a line
	run "refused, with the way out: ${each%|*}" 125 '' "gpulease: ${each#*|}" \
		"$GPULEASE" ${each%|*} true
done

# --- refused -----------------------------------------------------------------------------

for line in '-N 2' '--nodes=2' '-w host' '--nodelist=host' '-x host' '--exclude=host' '-a 1' \
	'--multi-prog' '--jobid=5' '--open-mode=other' '-n 0 --gres=gpu:4' \
	'--export=NONE,A' '--gres=shard:1' '--gpus=2 --gres=gpu:4' '-d afternotok:1' '-d singleton' \
	'-d after:1+5' '-d after:x' '-d afterany:' '--dependency=afterok:1?afterok:2'; do
	# shellcheck disable=SC2086 # words of a line
	run "refused: $line" 125 '' "gpulease: *" "$GPULEASE" $line true
done
run 'the refusal of a dependency explains itself' 125 '' \
	"gpulease: -d: 'aftercorr:7' is not supported; write singleton, after:ID, afterany:ID or *" \
	"$GPULEASE" -d aftercorr:7 true
run 'a kind of GPU that does not exist is refused' 125 '' \
	'gpulease: cannot lease 1 GPU*h100*' \
	"$GPULEASE" --gpus=h100:1 true

finish

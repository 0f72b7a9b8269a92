#!/bin/sh
# Job scripts of sbatch: their options, their environment, their steps, and what is refused.
# shellcheck disable=SC2016 # code of scripts

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch

# shellcheck source=tests/cli/job_lib.sh
. "$(dirname "$0")/job_lib.sh"

# --- a script, end to end ----------------------------------------------------------------

script fit.slurm <<'EOF'
#SBATCH --job-name="a name"      # with a comment
#SBATCH --gres=gpu:2 --ntasks-per-node=2
#SBATCH -c 3 --time=01:00:00
#SBATCH --partition=a100 --account=lab --qos=high --mem=64G --mail-type=END,FAIL
#SBATCH --constraint='a&b' --reservation=r --nice --requeue

echo "$# $1 $2"
echo "$CUDA_VISIBLE_DEVICES $PWD"
echo $SLURM_JOB_NAME, $SLURM_NTASKS $SLURM_NPROCS $SLURM_NTASKS_PER_NODE $SLURM_TASKS_PER_NODE
echo $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE $SLURM_GPUS_ON_NODE $SLURM_NNODES \
	$SLURM_JOB_NUM_NODES $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID
echo $SLURM_JOB_NODELIST $SLURM_NODELIST $SLURMD_NODENAME $SLURM_SUBMIT_DIR
[ "$SLURM_JOB_ID" = "$GPULEASE_ID" ] && [ "$SLURM_JOBID" = "$GPULEASE_ID" ] && echo ids
tail -n 1 "$0"
exit 3 # the end
EOF
run 'a script is submitted; --wait gives its exit status' 3 'Submitted batch job 1' \
	'gpulease: no effect here: --mail-type (no mail is sent), --nice (it waits as others do)' \
	"$SBATCH" --wait fit.slurm 'a b' c
run 'its output is in slurm-ID.out: its arguments, GPUs and variables' 0 "2 a b c
0,1 $S/work
a name, 2 2 2 2
3 6 2 1 1 0 0 0
$node $node $node $S/work
ids
exit 3 # the end" '' printed slurm-1.out
run 'the history shows the script and its arguments' 0 "*fit.slurm 'a b' c" '*' "$GPULEASE" --history
run '-v lists the options without effect, and -Q keeps quiet' 0 '' '' "$SBATCH" -Q --wrap true
run '-v lists them' 0 'Submitted*' '*--partition is accepted and ignored*--mem-per-cpu*' \
	"$SBATCH" -v -G 1 --mem-per-cpu=1 -p gpu --wrap true
run '--parsable prints the id alone' 0 4 '' "$SBATCH" --parsable --gpus=1 --wrap true
run 'under the name gpulease-slurm, sbatch is the first word' 0 5 '' \
	"$S/lib/gpulease/gpulease-slurm" sbatch --parsable --gpus=1 --wrap true

# --- where options come from -------------------------------------------------------------

script order <<'EOF'
#SBATCH -J first --gpus=1
#SBATCH -J second -o out-%x
echo "$SLURM_JOB_NAME ${SLURM_NTASKS-none} $SLURM_TASKS_PER_NODE"
#SBATCH -J late
EOF
run 'a later line wins, and no line counts after a command' 0 '?' '' \
	"$SBATCH" --wait --parsable order
is '-o names the file, and tasks are not told unless asked for' \
	[ "$(printed out-second)" = 'second none 1' ]
run 'SBATCH_JOB_NAME wins over the script' 0 '?' '' \
	env SBATCH_JOB_NAME=third SBATCH_WAIT=yes "$SBATCH" --parsable order
is 'the name is that of SBATCH_JOB_NAME' [ "$(printed out-third)" = 'third none 1' ]
run 'the command line wins over SBATCH_JOB_NAME' 0 '?' '' \
	env SBATCH_JOB_NAME=third SBATCH_OUTPUT=no "$SBATCH" -W --parsable -J fourth -o out4 order
is 'the name is that of the command line' [ "$(printed out4)" = 'fourth none 1' ]
run 'a script from stdin' 0 '?' '' \
	sh -c '(echo "#!/bin/sh"; echo "echo \$SLURM_JOB_NAME \$1") | "$@"' sh \
	"$SBATCH" -W --parsable -G 1 -o stdin.out - word
is 'its name is sbatch, and it has its arguments' [ "$(printed stdin.out)" = 'sbatch word' ]
run '--wrap makes a script' 0 '??' '' \
	"$SBATCH" -W --parsable -G 1 -o wrap.out --wrap 'echo "$SLURM_JOB_NAME  $0" | tr "/" "\n" | head -n 1'
is 'its name is wrap' [ "$(printed wrap.out)" = 'wrap  ' ]
mkdir sub
run '-D changes the directory, -e separates the errors, --export filters' 0 '??' '' env A=a B=b \
	"$SBATCH" -W --parsable -G 1 -D sub -o out -e err --export=A,C=c \
	--wrap 'echo "$SLURM_SUBMIT_DIR $PWD $A$B$C"; echo e >&2'
is 'the files are in the new directory' \
	[ "$(printed sub/out) $(printed sub/err)" = "$S/work $S/work/sub ac e" ]
# --- login shells ------------------------------------------------------------------------

mkdir "$S/home"
# logs_in SHELL: a script for this shell, whose profile sets another GPU
logs_in() {
	printf '%s\n' "#!$1" 'echo "$CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"' \
		'echo "$# $2 $(env | grep -c "^GPULEASE_AGAIN\|gpulease_")"; exit 4' >shell.sh
	run "a script of $1" 4 '*' '' env HOME="$S/home" "$SBATCH" -W -Q --parsable --gpus=2 -o shell.out shell.sh 'a b' c
	is "the profile does not take the lease away from $1" like '[0-7],[0-7] [0-7],[0-7] PCI_BUS_ID
2 c 0' "$(printed shell.out)"
	is "one line of $1 says so" [ "$(grep -c "^gpulease: the login shell has set variables of the job, which are \
set again: CUDA_VISIBLE_DEVICES ('9', now '[0-7],[0-7]'), CUDA_DEVICE_ORDER ('FASTEST_FIRST', now 'PCI_BUS_ID')\$" shell.out)" = 1 ]
}
echo 'export CUDA_VISIBLE_DEVICES=9 CUDA_DEVICE_ORDER=FASTEST_FIRST' >"$S/home/.profile"
for each in '/bin/bash -l' '/bin/bash --login' '/bin/sh -l' '/usr/bin/env -S bash -l'; do
	logs_in "$each"
done

script login <<'EOF'
echo "$USER $LOGNAME $HOME $SHELL$A"
echo "$SLURM_EXPORT_ENV $(srun -n 1 sh -c 'echo $USER $SLURM_EXPORT_ENV')"
exec "$1" -W -Q -G 1 -o login2.out --wrap 'echo "<$SLURM_EXPORT_ENV>"'
EOF
run '--export=NONE leaves the variables of a login' 0 '??' '' env -u USER -u LOGNAME -u HOME -u SHELL \
	A=a "$SBATCH" -W --parsable -G 1 -o login.out --export=NONE login "$SBATCH"
login=$(getent passwd "$(id -u)")
shell=${login##*:}
login=${login%:*}
is 'they are those of the user' [ "$(printed login.out)" = "$(id -un) $(id -un) ${login##*:} $shell
NONE $(id -un) NONE" ]
is 'a job that the script submits exports all again' [ "$(printed login2.out)" = '<>' ]
run 'what --export sets wins' 0 '??' '' env -u USER "$SBATCH" -W --parsable -G 1 -o login.out \
	--export=USER=ann,B --wrap 'echo "$USER $LOGNAME $SLURM_EXPORT_ENV"'
is 'the other variables are those of the user' \
	[ "$(printed login.out)" = "ann ${LOGNAME:-$(id -un)} USER=ann,B" ]
run '--export=ALL adds none' 0 '??' '' env -u USER "$SBATCH" -W --parsable -G 1 -o login.out \
	--export=ALL --wrap 'echo "<$USER$SLURM_EXPORT_ENV>"'
is 'there is none' [ "$(printed login.out)" = '<>' ]
run 'without a GPU option the job gets no GPU, and one line says so' 0 '??' \
	'gpulease: the script asks for no GPU and gets none*' \
	"$SBATCH" -W --parsable -o none.out --wrap 'echo "<$CUDA_VISIBLE_DEVICES>"'
is 'it has none' [ "$(printed none.out)" = '<>' ]

run '-d singleton takes the name of the script' 0 '??' '' \
	"$SBATCH" -W --parsable -G 1 -d singleton --wrap true
run '--signal without a time limit has no effect, and one line says so' 0 '??' \
	'gpulease: --signal has no effect without a time limit*' \
	"$SBATCH" -W --parsable -G 1 --signal=B:USR1@60 --wrap true
echo 'trap "echo warned; exit 0" USR1; while :; do sleep 0.1; done' | script warned
run '--signal with a time limit reaches the script' 0 '??' '' \
	"$SBATCH" -W --parsable -G 1 -t 2s --signal=B:USR1@1s -o warned.out warned
is 'its trap runs' [ "$(printed warned.out)" = warned ]
run '--signal without B: is not sent to the script' 0 '??' '' \
	"$SBATCH" -W --parsable -G 1 -t 20s --signal=USR1@19990ms -o warned.out --wrap 'sleep 0.2; echo whole'
is 'the script ends by itself' [ "$(printed warned.out)" = whole ]
is 'its log says that no step ran' grep -qx 'gpulease: job [0-9]*: no step runs, so none gets signal USR1' warned.out

echo 'srun sh -c "echo \"<\$CUDA_VISIBLE_DEVICES>\""' | script none
run 'a step of a script without GPUs has none' 0 '??' '*asks for no GPU*' \
	"$SBATCH" -W --parsable -o none.out none
is 'its step sees no GPU' [ "$(printed none.out)" = '<>' ]
echo 'srun --ntasks-per-gpu=1 sh -c "echo \$SLURM_NTASKS"' | script pergpu
run 'tasks for each GPU of a step without a number of GPUs' 0 '??' '' \
	"$SBATCH" -W --parsable --gres=gpu:2 -o pergpu.out pergpu
is 'there is one for each GPU of the job' [ "$(printed pergpu.out | tr '\n' ' ')" = '2 2 ' ]

# --- variables of the user, and a folder of the job ---------------------------------------

script mine <<'EOF'
env | grep '^\(SLURM_TMPDIR\|SLURM_MINE\|SLURM_PROCID\|SLURM_NTASKS\|SLURM_STEP_ID\|SLURM_ARRAY_JOB_ID\|TMPDIR\)=' |
	sort | tr '\n' ' '
srun env | grep '^SLURM_MINE\|^SLURM_TMPDIR'
EOF
run 'variables of the user that begin with SLURM_ reach the script, and those of another job do not' 0 '*' '' \
	env SLURM_MINE=1 SLURM_TMPDIR=/scratch/me SLURM_PROCID=9 SLURM_NTASKS=9 SLURM_STEP_ID=9 SLURM_ARRAY_JOB_ID=9 \
	"$SBATCH" -W -Q -G1 -o mine.out mine
is 'TMPDIR is that of the submission' [ "$(sort mine.out | tr '\n' ';')" = \
	"SLURM_MINE=1 SLURM_PROCID=0 SLURM_TMPDIR=/scratch/me TMPDIR=$S/tmp SLURM_MINE=1;SLURM_TMPDIR=/scratch/me;" ]
run 'so it is without a TMPDIR' 0 '*' '' env -u TMPDIR "$SBATCH" -W -Q -G1 -o mine.out \
	--wrap 'echo "${TMPDIR-none}"; rmdir "$SLURM_TMPDIR" && case $SLURM_TMPDIR in /tmp/slurm-*) echo folder ;; esac'
is 'the folder of the job is in /tmp then' [ "$(printed mine.out | tr '\n' ' ')" = 'none folder ' ]

export S
# the folder is made with this mode, and goes with all that the job has put there and nothing else
folder='[ "${SLURM_TMPDIR%/slurm-*}" = "$TMPDIR" ] && ls -ld "$SLURM_TMPDIR" | cut -c 1-10
cd "$SLURM_TMPDIR" && ls -A && mkdir -p a/b && touch a/b/c && chmod 0 a && ln -s "$S/work" link && ln "$S/work/mine" hard
srun sh -c "echo \"\$SLURM_TMPDIR\"" | sed "s|^$SLURM_TMPDIR\$|the same|"; echo "$SLURM_TMPDIR" >"$S/work/folder.name"'
has_folder_gone() {
	wait_until '[ ! -e "$(cat folder.name)" ]'
}
for mask in 022 0 0777; do
	rm -f folder.name
	run "a job has a folder of its own, with the umask $mask" 0 '*' '' env S="$S" sh -c 'umask "$1"; shift; exec "$@"' sh $mask \
		"$SBATCH" -W -Q -G1 -o "$S/work/folder.out" --wrap "umask 022; $folder"
	chmod u+r folder.out
	is 'it is empty, and its user may enter it' [ "$(printed folder.out | tr '\n' ' ')" = 'drwx------ the same ' ]
	is 'it is gone with the job' has_folder_gone
	is 'what it led to is there' [ -e mine ]
	rm -f folder.out
done
rm -f folder.name
limit=1h
waits_in_folder='echo "$SLURM_TMPDIR" >"$S/work/folder.new"; mv "$S/work/folder.new" "$S/work/folder.name"; exec sleep 1000'
# ends_with_folder HOW COMMAND…: a job that this ends; $id is its id
ends_with_folder() {
	ends_how=$1
	shift
	rm -f folder.name
	id=$(TMPDIR="$S/work" "$SBATCH" -Q --parsable -G1 -t $limit -o ends.out --wrap "$waits_in_folder")
	is "a folder is named ($ends_how)" wait_until '[ -s folder.name ]'
	"$@" >/dev/null 2>&1
	is "it is gone with a job that ends so: $ends_how" has_folder_gone
}
ends_with_folder 'a cancel' eval '"$GPULEASE" --cancel "$id"'
ends_with_folder 'a KILL of its process' eval '"$GPULEASE" --signal-job "$id" KILL'
limit=1s
ends_with_folder 'a time limit' true
run 'a job that a job submits has a folder of its own' 0 '*' '' "$SBATCH" -W -Q -G1 -o outer.out \
	--wrap 'echo "$SLURM_TMPDIR"; sbatch -W -Q -G0 -o inner.out --wrap "echo \$SLURM_TMPDIR"'
is 'it is another one' [ "$(sort -u outer.out inner.out | grep -c /slurm-)" = 2 ]
rm folder.name
id=$("$SBATCH" -Q --parsable -G1 -o left.out --wrap 'sh -c "echo \$\$ >left.new; mv left.new left.pid; exec sleep 1000" &
	until [ -s left.pid ]; do sleep 0.1; done; echo $$ >script.pid; echo "$SLURM_TMPDIR" >folder.name')
wait_until '[ -s folder.name ] && [ ! -e "/proc/$(cat script.pid)" ]'
is 'what a job has left keeps the folder' [ -d "$(cat folder.name)" ]
kill "$(cat left.pid)"
is 'it goes with the last process' has_folder_gone

# --- the number of GPUs ------------------------------------------------------------------

# gpus EXPECTED OPTION…
gpus_are() {
	expected=$1
	shift
	run "$* gives $expected" 0 '*' '' "$SBATCH" -W --parsable -o gpus.out "$@" --wrap \
		'echo "${SLURM_GPUS_ON_NODE-no} ${SLURM_NTASKS-none}"'
	is "these are there: $*" [ "$(printed gpus.out)" = "$expected" ]
}
gpus_are '3 none' --gpus=3
gpus_are 'no none' --gpus=0
gpus_are '2 none' --gres=gpu:simulated:2
gpus_are '2 4' --gpus-per-node=2 -n 4
gpus_are '6 3' --gpus-per-task=2 -n 3
gpus_are '2 4' --ntasks-per-gpu=2 -n 4
gpus_are '2 4' --ntasks-per-gpu=2 --gpus=2

# --- steps -------------------------------------------------------------------------------

script steps <<'EOF'
#SBATCH -n 2 --gpus-per-task=1 -J fit -c 3
show='echo $SLURM_PROCID/$SLURM_NTASKS $CUDA_VISIBLE_DEVICES $SLURM_JOB_NAME $SLURM_CPUS_PER_TASK'
srun sh -c "$show" | sort
srun -n 1 sh -c "$show"
srun -n 1 --gpus=2 sh -c "$show"
srun --ntasks=2 --gpus=2 -l sh -c 'echo $CUDA_VISIBLE_DEVICES' | sort
"$GPULEASE" -n 1 sh -c 'echo ${SLURM_PROCID-none}'
EOF
run 'steps of a script' 0 '*' '' env CUDA_VISIBLE_DEVICES=0,1 "$SBATCH" -W --parsable -o steps.out steps
run 'srun runs the tasks of the script, with the GPUs of a task each' 0 \
	'0/2 0 fit 3
1/2 1 fit 3
*' '' printed steps.out
run 'variables of options that scripts pass on' 0 '??' '' "$SBATCH" -W --parsable \
	--gpus=2 --gpus-per-node=2 -o told.out --wrap 'echo $SLURM_GPUS $SLURM_GPUS_PER_NODE $SLURM_JOB_GPUS | cut -c 1-4'
is 'they are those of the options' [ "$(printed told.out)" = '2 2 ' ]
run 'srun has options of its own; gpulease sets nothing' 0 '*
0/1 0 fit 3
0/1 0,1 fit 3
0: 0,1
1: 0,1
none' '' printed steps.out
script two <<'EOF'
#SBATCH --gpus=2 --ntasks-per-gpu=1
srun sh -c 'echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES' | sort
EOF
run 'a script with --ntasks-per-gpu' 0 '*' '' \
	env CUDA_VISIBLE_DEVICES=0,1 "$SBATCH" -W --parsable -o two.out two
is 'its tasks have a GPU each' [ "$(printed two.out)" = '0 0
1 1' ]
script again <<'EOF'
#SBATCH --gpus=1 -o again.out
[ -n "${1-}" ] || sbatch -W --parsable -o second.out "$0" second
echo "$GPULEASE_ID $1"
EOF
run 'a script submits itself' 0 '*' '' "$SBATCH" -W --parsable again
is 'that is a job of its own' like '[0-9]* second' "$(printed second.out)"

# --- dependencies ------------------------------------------------------------------------

bad=$("$SBATCH" --parsable --gpus=1 --wrap 'exit 1')
is 'afterany: the job starts' "$SBATCH" -W -Q --gpus=1 -d "afterany:$bad" --wrap true
run 'afterok: the job does not start' 124 'Submitted*' '' \
	"$SBATCH" -W --gpus=1 -d "afterok:$bad" --wrap true

run 'afternotok: the job starts after one that failed' 0 '' '' \
	"$SBATCH" -W -Q --gpus=1 -d "afternotok:$bad" --wrap true
good=$("$SBATCH" --parsable --gpus=1 --wrap true)
run 'afternotok: the job does not start after one that did not fail' 124 '' '' \
	"$SBATCH" -W -Q --gpus=1 -o notok.out -d "afterany:$bad,afternotok:$bad:$good" --wrap 'echo ran'
run 'its output says why' 0 "gpulease: gave up: job $good has ended with status 0" '' \
	cat notok.out
run 'so also for an array' 124 '' '' \
	"$SBATCH" -W -Q --gpus=1 -a 0-1 -d "afternotok:$good" --wrap 'echo ran'

id=$("$SBATCH" --parsable --gpus=8 --wrap 'until [ -e go ]; do sleep 0.05; done')
last=$("$SBATCH" --parsable --gpus=8 --wrap true)
run 'after: the job starts beside one that runs' 0 '' '' \
	"$SBATCH" -W -Q -d "after:$id" --wrap true
begun=$("$SBATCH" --parsable -d "after:$last" --wrap true)
run 'after: the job waits for one that has not started' 124 '' '' \
	"$GPULEASE" -Q --max-wait 10ms --wait-for "$begun"
: >go
run 'after: it starts then' 0 '' '' "$GPULEASE" --wait-for "$begun"
run 'after: the job starts when that has ended' 0 '' '' "$SBATCH" -W -Q -d "after:$last:$id" --wrap true

# --- CPUs ----------------------------------------------------------------------------------

run 'the CPUs of a node are those that were asked for' 0 '*' '' "$SBATCH" -W -Q -G 2 \
	--cpus-per-gpu=3 -o cpus.out --wrap 'echo $SLURM_CPUS_ON_NODE $SLURM_CPUS_PER_GPU'
is 'for each GPU' [ "$(cat cpus.out)" = '6 3' ]

# --- other ways to write it --------------------------------------------------------------

run 'long options can be abbreviated' 0 '*' '' \
	"$SBATCH" --wait --pars --gpus-per-n=1 --outp short.out --job_n j --wra 'echo "$SLURM_JOB_NAME"'
is 'they have their effect' [ "$(cat short.out)" = j ]
printf '#SBATCH --gpu-b=none --gpus-per-n 2 --out=lines.out\necho $SLURM_GPUS_ON_NODE' | script lines
run 'also in the script' 0 '*' '' "$SBATCH" -W -Q lines
is 'with their effect' [ "$(cat lines.out)" = 2 ]
script blanks <<'EOF'
#SBATCH --gpus=1 -J a\ b --begin=2020-01-01\ 9:00 # more
#SBATCH -o blanks\ %x
echo ran
EOF
run 'a backslash keeps a blank' 0 'Submitted*' '' "$SBATCH" --wait blanks
is 'in a name, a time and a file' [ "$(printed 'blanks a b')" = ran ]
run 'a value that looks like an abbreviation is a value' 0 '*' '' \
	"$SBATCH" -W -Q -G 1 -J --wra --comment --out -o value.out --wrap 'echo "$SLURM_JOB_NAME"'
is 'it is the name' [ "$(cat value.out)" = --wra ]
run 'another host to leave out has no effect, and one line says so' 0 '' \
	'gpulease: no effect here: --exclude (this machine is the only one)' \
	sh -c '"$@" >/dev/null' sh "$SBATCH" -W -G 1 -x other --wrap true

echo old >mode.out
for mode in append a; do
	"$SBATCH" -W -Q -G 1 -o mode.out --open-mode=$mode --wrap 'echo new; echo err >&2'
done
is '--open-mode=append keeps what is there' [ "$(tr '\n' ' ' <mode.out)" = 'old new err new err ' ]
for mode in truncate t; do
	"$SBATCH" -W -Q -G 1 -o mode.out --open-mode=$mode --wrap "echo $mode"
done
is '--open-mode=truncate writes anew, as without it' [ "$(cat mode.out)" = t ]
"$SBATCH" -W -Q -G 1 -o mode.out --wrap 'echo new'
is 'without it, too' [ "$(cat mode.out)" = new ]
run 'several tasks append' 0 '' '' \
	"$GPULEASE" --gpus=1 -n 2 -o tasks.%t --open-mode=append sh -c 'echo $SLURM_PROCID'
run 'and append again' 0 '' '' \
	"$GPULEASE" --gpus=1 -n 2 -o tasks.%t --open-mode=append sh -c 'echo $SLURM_PROCID'
is 'their files have both' [ "$(cat tasks.0 tasks.1 | tr '\n' ' ')" = '0 0 1 1 ' ]

run 'gpulease --submit --script' 0 'Submitted batch job *' '' \
	"$GPULEASE" --submit -J named --script=order word
is 'it reads the lines of the script' wait_until 'grep -q "named none 1" out-named 2>/dev/null'
run 'its errors are those of sbatch' 125 '' "gpulease: cannot read the script 'missing': *" \
	"$GPULEASE" --submit --script missing
run 'it needs a file' 125 '' 'gpulease: --script needs a value: --script FILE' \
	"$GPULEASE" --submit --script
for each in '--array 0' '-a 0' '--array=0 --parsable' '--requeue -A me' --wait; do
	# shellcheck disable=SC2086 # words of a line
	run "options of sbatch alone: $each" 0 '*[0-9]' '' "$GPULEASE" --submit $each -G1 --script order
done
run 'a command may have an option --script' 125 '' "gpulease: unknown option '--array'; did you mean *" \
	"$GPULEASE" --submit --array=0 "$SBATCH" --script order

# --- what gpulease writes into the output ------------------------------------------------

holder all -n 8
run '--test-only: a job that would wait' 0 '' 'would wait, *needs 8 GPUs*' \
	"$SBATCH" --test-only --gpus=8 --parsable --wait order
plain=$("$SBATCH" --parsable -G 1 -o plain.out --wrap 'echo only; exit 3')
wait_until '"$GPULEASE" --queue | grep -q wrap'
release all
ended all
run 'a job waits, and fails' 3 '' '' "$GPULEASE" --wait-for "$plain"
is 'its output has only what it printed' [ "$(cat plain.out)" = only ]
run 'a job reaches its time limit' 124 '*' '' \
	"$SBATCH" -W -Q -G 1 -t 1s -o limit.out --wrap 'exec sleep 1000'
is 'its output has one line about that' like 'gpulease: job * has reached its time limit of 1s*' \
	"$(cat limit.out)"
ended=$("$SBATCH" --parsable -G 1 -o cancel.out --wrap 'echo runs; exec sleep 1000')
wait_until 'grep -q runs cancel.out 2>/dev/null'
"$GPULEASE" -Q --cancel "$ended"
"$GPULEASE" --wait-for "$ended"
is 'that of a job that was cancelled says who did it' \
	like "runs gpulease: job $ended 'wrap' ended: cancelled by *" "$(tr '\n' ' ' <cancel.out)"
is 'in one line' [ "$(wc -l <cancel.out)" -eq 2 ]

# --- what is refused ---------------------------------------------------------------------

before=$(queued) copies_before=$(copies)
# refused PATTERN WORD…
refused() {
	pattern=$1
	shift
	run "refused: $*" 125 '' "gpulease: $pattern" "$SBATCH" "$@"
	is "one line: $*" [ "$(printf '%s\n' "$err" | wc -l)" -eq 1 ]
}
refused "cannot read the script 'missing': No such file*" missing
refused "cannot read the script '/': *" /
echo 'echo hi' >plain
refused "sbatch: plain: its first line must name the interpreter*" plain
: >empty
refused 'sbatch: empty: it is empty' empty
printf '#!/bin/sh\r\n#SBATCH -J a\r\n' >dos
refused 'sbatch: dos: its lines end as in DOS*' dos
printf '#!/bin/sh\na\0b\n' >nul
refused 'sbatch: nul: it has a NUL*' nul
echo '#SBATCH --gpus=1 --foo' | script unknown
refused "sbatch: unknown:2: unknown option '--foo'; see gpulease-srun(7)" unknown
printf '\n# c\n#SBATCH --gpus\n#SBATCH -J a\n' | script valueless
refused 'sbatch: valueless:4: --gpus needs a value*' valueless
echo '#SBATCH --gpus=1 stray' | script stray
refused "sbatch: stray:2: 'stray' is no option" stray
echo '#SBATCH -J "open' | script quote
refused 'sbatch: quote:2: the quote " is not closed' quote
echo '#SBATCH --array=0-1000000' | script array
refused "sbatch: array:2: --array: '0-1000000' has more than 1000 tasks*" array
printf '#SBATCH --gpus=1\n#SBATCH --time=soon\n' | script soon
echo '#SBATCH --mem=much' | script memory
refused "sbatch: memory:2: --mem: 'much' is not a size; *" memory
refused "sbatch: soon:3: --time: 'soon' is not*" soon
echo '#SBATCH --ntas=2' | script abbreviated
refused "sbatch: abbreviated:2: option '--ntas' is ambiguous: --ntasks, --ntasks-per-node*" abbreviated
refused "unknown option '--foo'; see gpulease-srun(7)" --foo order
refused "unknown option '-Z'; see gpulease-srun(7)" -Z order
refused "option '--no' is ambiguous: --nodes,*" --no=1 order
refused '--gpus needs a value*' --gpus
refused '--nodes: *' -N 2 order
refused '-L: *' -L matlab order
refused "--begin: 'soon' is not a time to begin; *" --begin=soon order
refused "--dependency: 'afterok:1?afterany:2': *write commas*" -d 'afterok:1?afterany:2' order
refused "--dependency: 'aftercorr:1': *write afterok:ID*" -d aftercorr:1 order
refused "--dependency: 'after:1+5': *leave '+5' out" -d after:1+5 order
refused "--dependency: '1x' is not the id of a job*" -d after:1x order
refused "--dependency: 7 jobs are too many: there can be 6 *" -d afterok:1:2:3:4:5:6:7 order
refused "--dependency: '9_1': no array of yours has the id 9" -d afterok:9_1 order
refused "--dependency: '9_\[1-2\]' is not the id of a job*" -d 'afterok:9_[1-2]' order
refused "--dependency: 'other:1' is not supported*" -d other:1 order
refused "--dependency: '' is not the id of a job*" -d afternotok: order
refused "--open-mode: 'other' is not append or truncate" --open-mode=other order
refused "--time: 'soon' is not*" -t soon order
for each in cpus-per-task=abc cpus-per-task=0 cpus-per-gpu=1k; do
	refused "--${each%=*}: '${each#*=}' is not a number of CPUs; write 1 or more" "--$each" order
done
for each in mem=abc mem=1.5G mem=1GiB mem=1B mem=-1 mem-per-cpu=G mem-per-gpu=1GBs; do
	refused "--${each%=*}: '${each#*=}' is not a size; write 500M, 64G or 0" "--$each" order
done
for each in 0 500 1K 64g 64GB 1Tb 1m ''; do
	run "--mem=$each" 0 '' '*' "$SBATCH" --test-only --gpus=1 "--mem=$each" --wrap true
done
for each in job-name gpus gres gpus-per-task ntasks cpus-per-task cpus-per-gpu dependency signal array \
	wrap; do
	refused "--$each needs a value: --$each *" "--$each=" order
done
refused '--wrap needs a value: --wrap COMMAND' --wrap ''
refused "--wrap takes no script, not 'order'" --wrap true order
refused '*this machine has 8*' --gpus=9 order
: >blocked
refused "cannot open 'blocked/%x-%j.out': *" --gpus=1 -o blocked/%x-%j.out order
run '--test-only: a job that would start' 0 '' 'would start now on GPU [0-7],[0-7]*' \
	"$SBATCH" --test-only --gpus=2 order
run '--test-only: a task of an array' 0 '' 'would start now on GPU [0-7]*' \
	"$SBATCH" --test-only --gpus=1 --array=0-1 --wrap true
refused '*this machine has 8*' --test-only --gpus=9 order
refused "sbatch: soon:3: --time: 'soon' is not*" --test-only soon
run 'refused: no folder for the copy of the script' 125 '' \
	"gpulease: cannot copy the script to '$PWD/order/gpulease/scripts': Not a directory; *" \
	env XDG_STATE_HOME="$PWD/order" "$SBATCH" --gpus=1 order
run 'refused: no home' 125 '' 'gpulease: HOME is not set, so there is no folder *' \
	env -u HOME -u XDG_STATE_HOME "$SBATCH" --gpus=1 order
run 'refused: a variable' 125 '' 'gpulease: SBATCH_CLUSTERS: *' \
	env SBATCH_CLUSTERS=other "$SBATCH" order
is 'nothing is queued' [ "$(queued)" -eq "$before" ]
is 'no copy is left of what was refused' [ "$(copies)" -eq "$copies_before" ]

run 'an id that cannot be printed: the job is cancelled' 125 '' \
	'*cannot print the id of job *, which is therefore cancelled*' \
	sh -c '"$1" --gpus=1 --wrap "exec sleep 1000" >/dev/full' sh "$SBATCH"
last=${err#*job } last=${last%%,*}
run 'that job has ended' 143 '' '*' timeout "$DEADLINE" "$GPULEASE" --wait-for "$last"

# --- copies ------------------------------------------------------------------------------

# one submission removes 64 old copies at most
rm -f "$XDG_STATE_HOME"/gpulease/scripts/*
is 'an earlier submission' "$SBATCH" -Q --gpus=0 --wait --wrap true
echo 'read -r line <'"$S/hold"'; tail -n 1 "$0"' | script holds
mkfifo "$S/hold"
id=$("$SBATCH" --parsable --gpus=8 -o holds.out holds)
waiting=$("$SBATCH" --parsable --gpus=8 -o waiting.out holds)
rm holds
touch -d '2 hours ago' "$XDG_STATE_HOME"/gpulease/scripts/*
is 'a later submission' "$SBATCH" -Q --gpus=0 --wait --wrap true
if [ -r /proc/1/cmdline ]; then
	is 'it removes the old copies, but not those that are needed' [ "$(copies)" -eq 3 ]
else
	skip 'it removes the old copies, but not those that are needed' '/proc hides processes'
fi
run 'the copies are for the user alone' 0 '-rwx------' '' \
	sh -c 'ls -l "$1" | sed "1d; /^l/d" | cut -c 1-10 | sort -u' sh "$XDG_STATE_HOME/gpulease/scripts"
for each in $id $waiting; do
	timeout "$DEADLINE" sh -c 'echo go >"$1"' sh "$S/hold"
	"$GPULEASE" --wait-for "$each" >/dev/null
done
is 'the jobs ran the script as it was submitted' like '*tail -n 1 "$0"tail*' \
	"$(printed holds.out | tr -d '\n')$(printed waiting.out | tr -d '\n')tail"

# --- variables of srun -------------------------------------------------------------------

# in_script STATUS OUTPUT LINE…: a result, good if a script with LINE… ends and prints so
in_script() {
	in_script_rc=$1 in_script_out=$2
	shift 2
	printf '%s\n' "$@" | script variables
	"$SBATCH" -W -Q --gpus=2 -n 2 -o variables.out variables
	in_script_is=$?
	if [ $in_script_is = "$in_script_rc" ] && like "$in_script_out" "$(sort variables.out)"; then
		ok "in a script: $1"
	else
		not_ok "in a script: $1" "status: $in_script_is" "$(cat variables.out)"
	fi
}
in_script 0 '0: hi
1: hi' 'export SLURM_LABELIO=1' 'srun echo hi'
in_script 0 'hi
hi' 'export SLURM_LABELIO=0 SLURM_UNBUFFEREDIO=1' 'srun echo hi'
ends='srun sh -c "[ \$SLURM_PROCID = 0 ] || exec sleep 1000; exit 3"'
in_script 143 '*task 1: *' 'export SLURM_KILL_BAD_EXIT=1' "$ends"
in_script 143 '*task 1: *' 'export SLURM_KILL_BAD_EXIT=' "$ends"
in_script 143 '*task 1: *' 'export SLURM_WAIT=1' "$ends"
in_script 143 '*task 1: *' 'export SLURM_WAIT=1000' "srun --wait=1 ${ends#srun }"
in_script 125 "gpulease: SLURM_WAIT: 'x' is not a number*" 'export SLURM_WAIT=x' 'srun echo hi'
in_script 125 "gpulease: SLURM_KILL_BAD_EXIT: *" 'export SLURM_KILL_BAD_EXIT=2' 'srun echo hi'
# as with Slurm, they reach the script from where it is submitted
export SLURM_LABELIO=1
in_script 0 '0: hi
1: hi' 'srun echo hi'
unset SLURM_LABELIO
run 'without a script they have no effect' 0 'hi
hi' '' env SLURM_LABELIO=1 SLURM_WAIT=x "$S/lib/gpulease/bin/srun" --gpus=1 -n 2 echo hi

finish

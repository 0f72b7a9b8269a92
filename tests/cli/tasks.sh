#!/bin/sh
# Several tasks, as srun starts them: their number, their environment, their GPUs, output, input,
# signals and ends.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
cd "$S" || bail "no directory"
export S
srun() { "$GPULEASE" "$@"; }
# what a task prints, sorted, because no order is promised
sorted() { "$@" | sort; }
# as $GPULEASE, but its output is sorted
cat >"$S/sorted" <<'EOF'
#!/bin/sh
out=$("$GPULEASE" "$@")
status=$?
echo "$out" | sort
exit $status
EOF
chmod +x "$S/sorted"
export GPULEASE
# shellcheck disable=SC2016 # for the shells of the tasks
where='echo $SLURM_PROCID/$SLURM_NTASKS $CUDA_VISIBLE_DEVICES'

# --- number, GPUs and environment --------------------------------------------------------

run 'each task sees all GPUs' 0 '0/2 0,1
1/2 0,1' '' "$S/sorted" --gpus=2 --gpu-ids 0,1 -n 2 sh -c "$where"
run '--gpus-per-task gives each task its own' 0 '0/2 0,1
1/2 2,3' '' "$S/sorted" --gpus-per-task=2 --gpu-ids 0-3 --ntasks 2 sh -c "$where"
run '--ntasks-per-gpu: two tasks on each GPU' 0 '0/4 0
1/4 0
2/4 1
3/4 1' '' "$S/sorted" --gpus=2 --gpu-ids 0,1 --ntasks-per-gpu=2 sh -c "$where"
run '--gpu-bind=map_gpu chooses' 0 '0/2 1
1/2 0' '' "$S/sorted" --gpus=2 --gpu-ids 0,1 -n 2 --gpu-bind=map_gpu:1,0 sh -c "$where"
run 'a GPU that --gpu-bind=map_gpu names must be there: refused before there is a job' 125 '' \
	"gpulease: --gpu-bind: 'map_gpu:0,2' has GPU 2, and there are 2, from 0 on" \
	"$GPULEASE" --gpus=2 -n 2 --gpu-bind=map_gpu:0,2 true
run 'more GPUs than the tasks have by --gpu-bind: refused' 125 '' '*task 1 would have GPU number 3 of 2*' \
	"$GPULEASE" --gpus=2 -n 2 --gpu-bind=per_task:2 true
run 'without a GPU option -n is the number of GPUs' 0 'none 0,1,2,3' '' \
	"$GPULEASE" -n 4 --gpu-ids 0-3 sh -c 'echo ${SLURM_PROCID-none} $CUDA_VISIBLE_DEVICES'
# shellcheck disable=SC2016 # for the shells of the tasks
run 'a task has the variables of Slurm' 0 "1 1 0 2 2 1 1 2 2 0 $(hostname -s) $S 3 1 fit" '' \
	"$GPULEASE" -Q -G 1 -n 2 -c 3 -J fit -o 1 sh -c '[ "$SLURM_JOB_ID" = "$GPULEASE_ID" ] &&
	[ "$SLURM_JOBID" = "$GPULEASE_ID" ] && [ "$SLURM_NODELIST" = "$SLURM_JOB_NODELIST" ] &&
	[ "$SLURMD_NODENAME" = "$SLURM_NODELIST" ] && [ "$SLURM_LAUNCH_NODE_IPADDR" = 127.0.0.1 ] &&
	[ "$SLURM_SRUN_COMM_HOST" = 127.0.0.1 ] && echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID \
	$SLURM_NTASKS $SLURM_NPROCS $SLURM_NNODES $SLURM_JOB_NUM_NODES $SLURM_NTASKS_PER_NODE \
	$SLURM_TASKS_PER_NODE $SLURM_STEP_ID $SLURM_JOB_NODELIST $SLURM_SUBMIT_DIR \
	$SLURM_CPUS_PER_TASK $SLURM_GPUS_ON_NODE $SLURM_JOB_NAME'
run 'one task has none of them' 0 '' '' "$GPULEASE" -G 1 -n 1 sh -c 'env | grep ^SLURM_; :'
run 'one ticket and one lease for all tasks' 0 2 '' "$GPULEASE" -G 2 -n 2 -o 0 sh -c \
	'"$GPULEASE" --status | grep -c " leased "'
run 'a set-up runs once, before the tasks' 0 'set up
a
a' '' "$GPULEASE" -G 1 -n 2 --setup 'echo set up; export A=a' sh -c 'echo $A'
# shellcheck disable=SC2016 # a line for the shells of the tasks
run '--setup before a line for a shell' 0 '0: a
1: a' '' "$S/sorted" -G 1 -n 2 -l --setup 'export A=a' 'echo $A; true'

# --- output and input --------------------------------------------------------------------

# shellcheck disable=SC2016 # for the shells of the tasks
run '-l begins each line with the number of its task' 0 '0: a
0: b
1: a
1: b' '' "$S/sorted" -G 1 -n 2 -l printf 'a\nb\n'
run '-l: a last line without an end gets one' 0 '0: a
1: a' '' "$S/sorted" -G 1 -n 2 -l printf a
run '-l numbers the lines of one task, too' 0 '0: a' '' "$GPULEASE" -G 1 -l echo a
run 'lines of the tasks do not mix' 0 '200 aaaaaaaaaa bbbbbbbbbb' '' \
	"$GPULEASE" -G 1 -n 1 sh -c '"$GPULEASE" --ntasks 2 sh -c '\''
	for i in 1 2 3 4 5 6 7 8 9 10; do for j in 1 2 3 4 5 6 7 8 9 10; do
	case $SLURM_PROCID in 0) printf aaaaa; printf "aaaaa\n" ;; 1) printf bbbbb; printf "bbbbb\n" ;; esac
	done; done'\'' | sort | uniq -c | awk "{ n += \$1; words = words \" \" \$2 } END { print n words }"'
run 'stdin reaches each task' 0 '0: a
0: b
1: a
1: b' '' sh -c 'printf "a\nb\n" | "$1" -G 1 -n 2 -l cat' sh "$S/sorted"
run '-i 1: stdin reaches task 1 alone' 0 '1: a' '' \
	sh -c 'echo a | "$1" -G 1 -n 2 -l -i 1 cat' sh "$S/sorted"
echo file >in
echo other >in.1
mv in in.0
run '-i FILE.%t: each task reads a file of its own' 0 '0: file
1: other' '' "$S/sorted" -G 1 -n 2 -l -i in.%t cat
mv in.0 in
run '-i FILE: each task reads the file' 0 'file
file' '' "$GPULEASE" -G 1 -n 2 -i in cat
run 'a megabyte passes through each task' 0 2000000 '' \
	sh -c 'head -c 1000000 /dev/zero | "$GPULEASE" -G 1 -n 2 cat | wc -c'
run 'tasks that do not read do not hold up the others' 0 'done
done' '' sh -c 'head -c 10000 /dev/zero | "$GPULEASE" -G 1 -n 2 echo done'
run '-o with %t is a file for each task' 0 '' '' \
	"$GPULEASE" -G 1 -n 2 -J fit -o 'out-%x-%t' sh -c 'echo $SLURM_PROCID; echo err >&2'
is 'the files have the output of their tasks' [ "$(cat out-fit-0 out-fit-1)" = '0
err
1
err' ]
run '-o all is no file' 0 'a
a' '' "$GPULEASE" -G 1 -n 2 -o all echo a
run '-o FILE is one file for all' 0 '' '' "$GPULEASE" -G 1 -n 2 -o one -e 'err-%t' \
	sh -c 'echo $SLURM_PROCID; echo err >&2'
is 'the file has the lines of all tasks' [ "$(sort one)" = '0
1' ]
is '-e with %t is a file for each task' [ "$(cat err-0 err-1)" = 'err
err' ]
run '-o none throws the output away' 0 '' '' "$GPULEASE" -G 1 -n 2 -o none echo a
run '-o in a folder that does not exist makes it' 0 '' '' "$GPULEASE" -G 1 -n 2 -o new/%t/o echo a
is 'a folder for each task' [ "$(cat new/0/o new/1/o)" = "a
a" ]
: >no
run '-o in a folder that cannot be made is refused' 125 '' "gpulease: cannot open 'no/such': *" \
	"$GPULEASE" -G 1 -n 2 -o no/such echo a
run 'a reader that ends ends the tasks' 0 y '' sh -c '"$GPULEASE" -Q -G 1 -n 2 yes | head -n 1'

run 'a full disk is told, and is a failure' 125 '' "gpulease: cannot write the output: No space left on device" \
	sh -c '"$GPULEASE" -Q -G 1 -n 2 sh -c '\''trap "" PIPE; echo a 2>/dev/null; :'\'' >/dev/full'
run 'a file on a full disk, too' 125 '' "gpulease: cannot write '/dev/full': No space left on device" \
	"$GPULEASE" -Q -G 1 -n 2 -o /dev/full sh -c 'trap "" PIPE; echo a 2>/dev/null; :'
run 'without stdin, stdout and stderr' 0 '' '' sh -c '"$GPULEASE" -G 1 -n 2 sh -c '\''
	cat; echo a; echo b >&2; echo c >"$S/closed.$SLURM_PROCID"'\'' <&- >&- 2>&-'
is 'the tasks ran' [ -s "$S/closed.0" ]
run 'gpulease-slurm without stdin, stdout and stderr' 0 '' '' sh -c \
	'"$(dirname "$GPULEASE")/gpulease-slurm" tasks --ntasks 2 -- true <&- >&- 2>&-'
run 'more tasks than the soft limit of open files, which they keep' 0 ' 40 64' '' sh -c \
	'ulimit -Sn 64; "$GPULEASE" -G 1 -n 40 sh -c "ulimit -Sn" | uniq -c | sed "s/^ */ /"'
run 'more than the hard limit: no task starts' 125 '' \
	'gpulease: cannot start 40 tasks: their pipes and files are more than the hard limit of 128 open files (ulimit -Hn); raise it, or run fewer tasks' \
	sh -c 'ulimit -n 128; "$GPULEASE" -G 1 -n 40 echo started'
run 'the files of tasks count, too' 125 '' 'gpulease: cannot start 60 tasks: * the hard limit of 128 open files *' \
	sh -c 'cd "$S" && ulimit -n 128 && "$GPULEASE" -G 1 -n 60 -i none -o many-%t -e many-e-%t echo started'
run 'without pipes as many start' 0 '60' '' \
	sh -c 'ulimit -n 128; "$GPULEASE" -u -G 1 -n 60 -i none echo started | wc -l'

# Task 0 writes more than the fifo takes, but not more than fifo and pipe together, and leaves a
# process that keeps its stdout open.
mkfifo fifo || bail 'no fifo'
"$GPULEASE" -Q -G 1 -n 2 sh -c '[ $SLURM_PROCID = 0 ] || exit 0
	head -c 120000 /dev/zero; sleep 1000 & echo $! $$ >"$S/left"' >fifo 2>&1 </dev/null &
parent=$!
exec 3<fifo
wait_until '[ -s "$S/left" ]' || bail 'the task does not end'
# shellcheck disable=SC2034 # for wait_until
read -r rest task <left
wait_until '[ ! -e "/proc/$task" ]' || bail 'the task does not end'
cat <&3 >was-read
exec 3<&-
wait "$parent"
is 'what a task has written is read, and who still holds its pipe is not waited for' \
	[ "$?.$(wc -c <was-read)" = 0.120000 ]
kill "$rest"

# --- ends --------------------------------------------------------------------------------

run 'the highest status counts, and each is told' 3 '' 'gpulease: task 1: exit status 3' \
	"$GPULEASE" -G 1 -n 2 sh -c '[ $SLURM_PROCID = 0 ] || exit 3'
run 'a signal counts as 128 and its number' 143 '' 'gpulease: task 1: ended by SIGTERM' \
	"$GPULEASE" -G 1 -n 2 sh -c '[ $SLURM_PROCID = 0 ] || kill -TERM $$'
run '-Q is silent about it' 3 '' '' "$GPULEASE" -Q -G 1 -n 2 sh -c 'exit 3'
run 'a program that is missing: 127' 127 '' "gpulease: command 'no-such-program' was not found*" \
	"$GPULEASE" -G 1 -n 2 no-such-program
printf '#!/no/such/interpreter\n' >script
chmod +x script
run 'a task that cannot be executed says its number' 127 '' "*gpulease: task 0: cannot execute * its interpreter *" \
	"$GPULEASE" -G 1 -n 2 ./script
echo 'echo no interpreter' >script
run 'a script without #! is run by sh' 0 'no interpreter
no interpreter' '' "$GPULEASE" -G 1 -n 2 ./script
run '-K: one bad status ends all' 143 '' '*task 1: exit status 4*task 0: ended by SIGTERM' \
	"$GPULEASE" -G 1 -n 2 -K sh -c '[ $SLURM_PROCID = 0 ] || exit 4; exec sleep 1000'
run '-K0 does not' 4 'done' '*task 1: exit status 4' \
	"$GPULEASE" -G 1 -n 2 -K0 sh -c '[ $SLURM_PROCID = 0 ] || exit 4; echo done'
run '-W ends the others some time after the first' 143 '' '*task 0: ended by SIGTERM' \
	"$GPULEASE" -G 1 -n 2 -W 1 sh -c '[ $SLURM_PROCID = 0 ] || exit 0; exec sleep 1000'
run 'a time limit ends all tasks' 143 '' '*: ended by SIGTERM' \
	"$GPULEASE" -G 1 -n 2 -t 1s sleep 1000

run 'tasks that have left the group end, too' 143 '' '*task 0: exit status 4*task 1: ended by SIGTERM' \
	"$GPULEASE" -G 1 -n 2 -K sh -c '[ $SLURM_PROCID = 1 ] || {
		until [ -e "$S/apart" ]; do sleep 0.05; done; exit 4; }
	exec setsid sh -c ": >$S/apart; exec sleep 1000"'
run 'no task can be started' 125 '' '*task 0 would have GPU number 2 of 1' \
	"$GPULEASE" -G 1 -n 2 --gpu-bind=per_task:9 true

# --- signals -----------------------------------------------------------------------------

# A task that says when it runs, and which signals it gets.
cat >"$S/listen" <<'EOF'
#!/bin/sh
for each in TERM USR1 INT; do
	trap "echo $each >>'$S/got.$SLURM_PROCID'" $each
done
echo $$ >"$S/up.$SLURM_PROCID"
until [ -e "$S/end" ]; do
	sleep 0.05
done
EOF
chmod +x "$S/listen"
"$GPULEASE" -G 1 -n 2 "$S/listen" >"$S/listen.out" 2>&1 </dev/null &
parent=$!
wait_until '[ -s "$S/up.0" ] && [ -s "$S/up.1" ]' || bail 'the tasks do not start'
for each in USR1 TERM; do
	kill "-$each" "$parent"
	wait_until "grep -q $each '$S/got.0' 2>/dev/null && grep -q $each '$S/got.1' 2>/dev/null"
	is "$each reaches each task" [ $? = 0 ]
done
: >"$S/end"
wait "$parent"
is 'tasks that handle signals end with their own status' [ $? = 0 ]
rm -f "$S"/up.* "$S"/got.* "$S/end"

"$GPULEASE" -G 1 -n 2 "$S/listen" >"$S/listen.out" 2>&1 </dev/null &
parent=$!
wait_until '[ -s "$S/up.0" ] && [ -s "$S/up.1" ]' || bail 'the tasks do not start'
kill -KILL "$parent"
# shellcheck disable=SC2016 # for wait_until
wait_until '(for pid in $(cat "$S/up.0" "$S/up.1"); do
	like "[ZX]" "$(process_state "$pid")" || [ ! -e "/proc/$pid" ] || exit 1; done)'
is 'a killed parent leaves no task' [ $? = 0 ]
rm -f "$S"/up.* "$S"/got.*

run 'Ctrl-C says what runs, and a second one ends the tasks' 0 '' '' "$TOOLS/jobcontrol" \
	see:ready see:ready 'type:^C' 'see:tasks 0-1 still run' 'type:^C' end:130 -- \
	"$GPULEASE" -G 1 -n 2 sh -c 'echo ready; exec sleep 1000'
run '-X: the first Ctrl-C reaches the tasks' 0 '' '' "$TOOLS/jobcontrol" \
	see:ready see:ready 'type:^C' 'see:got INT' 'see:got INT' end:3 -- \
	"$GPULEASE" -X -G 1 -n 2 sh -c 'trap "echo got INT; exit 3" INT; echo ready; while :; do sleep 0.1; done'
run 'Ctrl-Z suspends the tasks, fg continues them' 0 '' '' "$TOOLS/jobcontrol" \
	see:ready see:ready 'type:^Z' stop:STOP asleep fg 'type:word^J' 'see:got word' \
	'see:got word' end:0 -- \
	"$GPULEASE" -G 1 -n 2 sh -c 'echo ready; read -r word; echo got $word'

# with_pty TEXT STEP…: two tasks of which one has the terminal
mkfifo "$S/other"
with_pty() {
	pty_text=$1
	shift
	run "--pty: $pty_text" 0 '' '' "$TOOLS/jobcontrol" see:ready "$@" -- \
		"$GPULEASE" -Q -G 1 -n 2 --pty sh -c '
		[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : <"$S/other" && exec "$1" --listen
		(: </dev/tty) 2>/dev/null && : >"$S/tty"
		trap "" TERM; : >"$S/other"; exec cat' sh "$TOOLS/jobcontrol"
}
with_pty 'task 0 alone reads the terminal' 'type:word^J' 'see:read word' 'count:1:read word' 'type:exit 4^J' end:4
with_pty 'Ctrl-C reaches task 0 once, and nothing is said' 'type:^C' 'see:got INT' asleep 'type:^C' \
	'count:0:still run' 'type:exit 0^J' end:0
with_pty 'Ctrl-\ reaches it once' 'type:^\' 'see:got QUIT' asleep 'count:1:got QUIT' 'type:exit 0^J' end:0
with_pty 'Ctrl-Z suspends it, fg continues it' 'type:^Z' stop:TSTP asleep fg \
	'see:got CONT' 'type:word^J' 'see:read word' 'count:1:got CONT' 'type:exit 0^J' end:0
with_pty 'after Ctrl-Z and bg it stops where it reads' 'type:^Z' stop:TSTP bg 'see:got CONT' \
	stop:TTIN fg 'type:exit 0^J' end:0
with_pty 'INT from kill(1) reaches it, also after a Ctrl-C' 'type:^C' 'see:got INT' asleep \
	kill:INT 'see:got INT' 'type:exit 0^J' end:0
with_pty 'a signal to the group reaches it once' killpg:TERM 'see:got TERM' asleep \
	'count:1:got TERM' 'type:exit 0^J' end:0
with_pty 'TERM reaches it' kill:TERM 'see:got TERM' 'type:exit 0^J' end:0
run '--pty with a file for the output is refused' 0 '' '' "$TOOLS/jobcontrol" see:--pty end:125 -- \
	"$GPULEASE" -Q -G 1 -n 2 --pty -o file true
run '--pty: an interactive shell has jobs of its own, and can suspend itself' 0 '' '' env PS1='prompt: ' \
	"$TOOLS/jobcontrol" see:prompt: "type:echo g''o; cat^J" see:go 'type:word^J' see:word see:word \
	'type:^Z' see:Stopped see:prompt: 'type:fg^J' see:fg see:cat 'type:again^J' see:again see:again \
	'type:^C' see:prompt: 'type:suspend^J' stop:STOP fg 'type:exit 4^J' end:4 -- \
	"$GPULEASE" -Q -G 1 -n 2 --pty bash --norc --noprofile -i
run '--pty: once task 0 has ended, Ctrl-C ends the others as without --pty' 0 '' '' "$TOOLS/jobcontrol" \
	see:ready asleep 'type:^C' 'see:task 1 still runs' 'type:^C' end:130 -- "$GPULEASE" -G 1 -n 2 --pty \
	sh -c '[ $SLURM_PROCID = 0 ] || exec sleep 1000; echo ready'
is '--pty: an interactive shell as another task finds no terminal to wait for' [ ! -e "$S/tty" ]

# --- with everything else ----------------------------------------------------------------

run 'in the background' 0 '[0-9]*' '' "$GPULEASE" --submit -G 1 -n 2 -l echo a
job=$out
run 'the background job ends' 0 '*' '*' "$GPULEASE" --wait-for "$job"
for each in 'log.%t|log.0 ... log.1' 'log.all|log.all'; do
	other=$("$GPULEASE" --submit -G 1 -n 2 -o "${each%|*}" echo a)
	run "a background job with -o ${each%|*} ends" 0 '*' '*' "$GPULEASE" --wait-for "$other"
	run "its log says where its output is" 0 "gpulease: the tasks write to $PWD/${each#*|}*" '' \
		"$GPULEASE" --log "$other"
done
run 'its log has the lines of its tasks' 0 '[01]: a
[01]: a
*' '' "$GPULEASE" --log "$job"
run 'the history has the command of the user' 0 '*finished * echo a
*' '*' "$GPULEASE" --history
run 'with retries' 3 'a
a
a
a' '*' "$GPULEASE" --retries 1 -G 1 -n 2 sh -c 'echo a; exit 3'
run '--dry-run' 0 '*' '' "$GPULEASE" --dry-run -G 2 -n 2 true
run 'in a lease, a step has tasks, too' 0 '0/2 0,1
1/2 0,1' '' "$S/sorted" --gpu-ids 0,1 sh -c '"$GPULEASE" --ntasks 2 sh -c "$1"' sh "$where"
ln -s "$GPULEASE" "$S/srun"
run 'srun in a lease: -n counts tasks, which have the whole lease' 0 '0/2 0,1,2
1/2 0,1,2' '' "$S/sorted" --gpu-ids 0-2 sh -c '"$S/srun" -n 2 sh -c "$1"' sh "$where"
run 'srun outside: -n counts GPUs, which is said' 0 'none 0,1' 'gpulease: -n counts GPUs here*' \
	"$S/srun" -n 2 --gpu-ids 0,1 sh -c 'echo ${SLURM_PROCID-none} $CUDA_VISIBLE_DEVICES'
run 'srun without a GPU option gets one, which is said' 0 1 'gpulease: srun without a GPU option gets one*' \
	"$S/srun" sh -c 'echo ${#CUDA_VISIBLE_DEVICES}'
run 'a line for GPUs says nothing' 0 1 '' "$S/srun" --gres=gpu:1 sh -c 'echo ${#CUDA_VISIBLE_DEVICES}'
finish

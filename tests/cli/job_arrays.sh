#!/bin/sh
# Arrays of sbatch: their tasks and files, the limit, cancelling and waiting by N_i, and what
# becomes of them when their processes are killed.
# shellcheck disable=SC2016,SC2317 # code of scripts, and functions that others call

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/job_lib.sh
. "$(dirname "$0")/job_lib.sh"
ln -s "$S/lib/gpulease/gpulease-slurm" "$S/scontrol"
ln -s "$S/lib/gpulease/gpulease-slurm" "$S/squeue"

# The tasks of "$SBATCH … held" note that they run in starts and wait for go.I; status.I is theirs.
script held <<'EOF'
echo "$SLURM_ARRAY_TASK_ID" >>starts
until [ -e "go.$SLURM_ARRAY_TASK_ID" ]; do sleep 0.05; done
echo "$SLURM_ARRAY_TASK_ID" >>ends
exit "$(cat "status.$SLURM_ARRAY_TASK_ID" 2>/dev/null || echo 0)"
EOF

anew() {
	rm -f starts ends go.* status.*
	: >starts
	: >ends
}

# started COUNT: so many tasks have started.
started() {
	wait_until "[ \$(wc -l <starts) -ge $1 ]"
}

# starts FILE: its numbers, in order
numbers() {
	sort -n "$1" | tr '\n' ' '
}

go() {
	for each in "$@"; do
		: >"go.$each"
	done
}

# --- an array, end to end ----------------------------------------------------------------

script fit <<'EOF'
#SBATCH --array=1,3,5-9:2%2 --gpus=1 -J train
echo $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX \
	$SLURM_ARRAY_TASK_STEP $SLURM_ARRAY_JOB_ID $SLURM_JOB_NAME $#
[ "$SLURM_JOB_ID" = "$GPULEASE_ID" ] && [ "$SLURM_JOB_ID" != "$SLURM_ARRAY_JOB_ID" ] && echo ids
echo $SLURM_GPUS_ON_NODE
exit "$SLURM_ARRAY_TASK_ID"
EOF
run 'an array is submitted; --wait gives the highest exit status' 9 'Submitted batch job 1' '' \
	"$SBATCH" --wait fit 'a b' c
for each in 1 3 5 7 9; do
	run "task $each has its variables and its file" 0 "$each 5 1 9 2 1 train 2
ids
1" '' printed "slurm-1_$each.out"
done
run 'the log of the array names the tasks that failed' 0 \
	'*exit status is not 0: 1 (1), 3 (3), 5 (5), 7 (7), 9 (9)*' '' "$GPULEASE" --log 1
run 'the history has the tasks by their names' 0 '*1_9 *fit*a b*' '' "$GPULEASE" --history
# ended_tasks EXPECTED ID: squeue knows the tasks, but lists them only with -t all
ended_tasks() {
	run "squeue: ended tasks are known as $2" 0 '' '' "$S/squeue" -h -j "$2"
	run "squeue -t all: $2" 0 "$1" '' "$S/squeue" -h -t all -o '%i %j %t' -j "$2"
}
ended_tasks '1_3 train F' 1_3
ended_tasks '1_3 train F
1_5 train F' '1_[3-6]'
ended_tasks '1_1 train F
1_3 train F
1_5 train F
1_7 train F
1_9 train F' '1_*'
ended_tasks '' 1_2
run 'squeue: a task of an array that there is not' 1 '' \
	'slurm_load_jobs error: Invalid job id specified' "$S/squeue" -h -j 99_1
run '%A, %a and %x in -o and -e' 0 '*' '' "$SBATCH" --wait -Q --array=2 -G 0 -J name \
	-o '%x.%A.%3a.%%' -e 'err.%a' --wrap 'echo out; echo err >&2'
is 'the files have these names' [ "$(printed name.*.002.%) $(printed err.2)" = 'out err' ]
mkdir -p of_5 of_6
echo five >of_5/in
echo six >of_6/in
run 'srun: %A and %a in -o, -e and -i are those of the array' 0 '*' '' "$SBATCH" --wait -Q \
	--array=5-6 -G 1 -J name -o /dev/null \
	--wrap 'srun -n 1 -i of_%a/in -o step.%x.%A.%3a -e of_%a/%A.err sh -c "cat; echo \$SLURM_ARRAY_JOB_ID; echo err >&2"'
for each in 5 6; do
	id=$(printed step.name.*.00$each | tail -n 1)
	is "its files have these names in task $each" \
		[ "$(head -n 1 "step.name.$id.00$each") $(printed "of_$each/$id.err")" = \
		"$(cat of_$each/in) err" ]
done
run 'the GPUs of CUDA_VISIBLE_DEVICES' 0 '*' '' env CUDA_VISIBLE_DEVICES=5 \
	"$SBATCH" --wait -Q --array=0-1 -G 1 -o seen --open-mode=append \
	--wrap 'echo "$CUDA_VISIBLE_DEVICES"'
is 'each task has this one' [ "$(printed seen | tr '\n' ' ')" = '5 5 ' ]
run '--export and -D are for the tasks' 0 '*' '' env A=a B=b "$SBATCH" --wait -Q -a 0 -G 0 \
	-D / --export=A -o "$S/work/exported" --wrap 'echo "$A$B $PWD"'
is 'they have an effect' [ "$(printed exported)" = 'a /' ]

# --- how many at a time ------------------------------------------------------------------

anew
N=$("$SBATCH" --parsable --array=0-4%2 -G 1 held)
is 'two tasks start' started 2
go 1
is 'when one ends, the next one starts' started 3
is 'they are the first ones' [ "$(numbers starts)" = '0 1 2 ' ]
run 'squeue: a task that has ended before its array' 0 '' '' "$S/squeue" -h -j "${N}_1"
run 'squeue -t all lists it' 0 "${N}_0 R
${N}_1 CD" '' "$S/squeue" -h -t all -o '%i %t' -j "${N}_[0-1]"
run 'squeue: a task that is not in the queue yet' 0 '' '' "$S/squeue" -h -j "${N}_4"
go 0 2 3 4
run 'the others follow' 0 '' '' "$GPULEASE" --wait-for "$N"
is 'each ran once' [ "$(numbers starts)$(numbers ends)" = '0 1 2 3 4 0 1 2 3 4 ' ]

anew
N=$("$SBATCH" --parsable --array=1-40 -G 1 held)
is 'without a limit the GPUs are the limit' started 8
is '16 tasks wait in the queue, no more' wait_until \
	'[ "$("$GPULEASE" --queue | grep -c "${N}_")" -eq 16 ]'
for each in $(seq 40); do
	go "$each"
done
run 'all of them run' 0 '' '' "$GPULEASE" --wait-for "$N"
is 'each of them once' [ "$(sort -n starts | uniq | wc -l) $(wc -l <ends)" = '40 40' ]

# --- ids of tasks ------------------------------------------------------------------------

anew
echo 7 >status.2
N=$("$SBATCH" --parsable --array=0-5%1 -G 1 held)
is 'the first task runs' started 1
run 'a task that is not in the queue is cancelled' 0 '' '' "$GPULEASE" --cancel "${N}_1"
run 'and several of them' 0 '' '' "$GPULEASE" --cancel "${N}_[3-4],${N}_5"
run 'a task that runs is cancelled' 0 '' '*' "$GPULEASE" --cancel "${N}_0"
run 'waiting for one gives its status' 143 '' '' "$GPULEASE" --wait-for "${N}_0"
run 'also for one that was never in the queue' 143 '' '' "$GPULEASE" --wait-for "${N}_[1,3]"
is 'another task starts' started 2
go 2
run 'waiting for a task that runs, or has ended' 7 '' '' "$GPULEASE" --wait-for "${N}_2"
run 'waiting for the array' 143 '' '' "$GPULEASE" --wait-for "$N"
is 'the tasks that were cancelled did not run' [ "$(numbers starts)" = '0 2 ' ]
run 'a task that the array does not have' 1 '' "gpulease: array $N has no task 6" \
	"$GPULEASE" --cancel "${N}_6"
run 'an array that there is not' 1 '' 'gpulease: no such job*' "$GPULEASE" --cancel 999_6
run 'the same for --wait-for' 1 '' 'gpulease: no such job*' "$GPULEASE" --wait-for 999_6

anew
N=$("$SBATCH" --parsable --array=0-2%1 -G 1 held)
is 'one task runs' started 1
"$GPULEASE" --wait-for "${N}_1" >"$S/late" 2>&1 &
late=$!
run 'so is a time to wait at most' 124 '' '' "$GPULEASE" --max-wait 10ms --wait-for "${N}_2"
go 0 1
wait "$late"
is 'waiting for a task begins before it is in the queue' [ $?"$(cat "$S/late")" = 0 ]
go 2
"$GPULEASE" --wait-for "$N"

holder other -n 8
"$GPULEASE" --name 12_3 --submit -n 1 true >"$S/id"
run 'a job with such a name is no task' 0 '' '*' "$GPULEASE" --cancel 12_3
release other
ended other

anew
N=$("$SBATCH" --parsable --array=0-5%2 -G 1 held)
is 'two tasks run' started 2
job=$(sed -n "s/^s 1 //p" "$XDG_STATE_HOME"/gpulease/scripts/*.array-"$N")
run '--status takes a task' 0 "job *$job '${N}_1'*" '' "$GPULEASE" --status "${N}_1"
run 'and tasks in JSON' 0 "*\"${N}_0\"*\"${N}_1\"*" '' "$GPULEASE" --json --status "${N}_[0-1]"
run 'one that is not in the queue yet' 1 '' "gpulease: job ${N}_5 is not in the queue yet" \
	"$GPULEASE" --status "${N}_5"
run 'one that the array does not have' 1 '' "gpulease: array $N has no task 6" \
	"$GPULEASE" --status "${N}_6"
run 'one of an array that there is not' 1 '' 'gpulease: no such job*' "$GPULEASE" --status 999_6
run 'what is no id' 125 '' "gpulease: --status: '1x' is not the id of a job*" "$GPULEASE" --status 1x
shows="JobId=$job ArrayJobId=$N ArrayTaskId=1 JobName=held *"
run 'scontrol show job: a task' 0 "$shows JobState=RUNNING *StdOut=$PWD/slurm-${N}_1.out*" '' \
	"$S/scontrol" -o show job "${N}_1"
for each in "${N}_5" "${N}_6" 999_6; do
	run "none in the queue: ${each#"$N"}" 1 '' 'slurm_load_jobs error: Invalid job id specified' \
		"$S/scontrol" show job "$each"
done
run 'several tasks' 1 '' 'scontrol_print_job error: Invalid job id specified' \
	"$S/scontrol" show job "${N}_[0-1]"
run 'the whole array is cancelled' 0 '' '*' "$GPULEASE" --cancel "$N"
run 'its status' 143 '' '' "$GPULEASE" --wait-for "$N"
run 'that of a task that ran' 143 '' '' "$GPULEASE" --wait-for "${N}_1"
run 'scontrol show job: a task that has ended' 0 "$shows JobState=CANCELLED *" '' \
	"$S/scontrol" -o show job "${N}_1"
run 'that of a task that did not' 143 '' '' "$GPULEASE" --wait-for "${N}_5"
is 'no other task has started' [ "$(numbers starts)" = '0 1 ' ]

anew
N=$("$SBATCH" --parsable --array=0-1 -G 1 held)
M=$("$SBATCH" --parsable -d "afterok:$N" --array=2-3 -G 1 held)
is 'an array starts after another one' started 2
go 0 1 2 3
run 'the second one ends' 0 '' '' "$GPULEASE" --wait-for "$M"
is 'in this order' [ "$(sort ends | tr '\n' ' ')" = '0 1 2 3 ' ]

# --- dependencies on tasks ---------------------------------------------------------------

# waiters COUNT: so many jobs wait for tasks that have no jobs
waiters() {
	[ "$("$GPULEASE" --status | grep -c 'gpulease --wait-for')" = "$1" ]
}

anew
echo 3 >status.1
N=$("$SBATCH" --parsable --array=0-3%2 -G 1 held)
is 'two tasks run' started 2
A=$("$SBATCH" --parsable -d "afterok:${N}_0" -o a.out --wrap 'echo ran')
B=$("$SBATCH" --parsable -d "afternotok:${N}_1" -o b.out --wrap 'echo ran')
run 'a task that runs has a job, which is waited for' 0 "$((N + 3)) $((N + 4))" '' echo "$A" "$B"
C=$("$SBATCH" --parsable -d "afterany:${N}_0,afternotok:${N}_2" -o c.out --wrap 'echo ran')
D=$("$SBATCH" --parsable -d "after:${N}_0,afterok:${N}_3" -o d.out --wrap 'echo ran')
run 'a task that has none yet is waited for by a job' 0 "$((N + 6)) $((N + 8))" '' echo "$C" "$D"
is 'there is one for each of them' waiters 2
run 'after: a task that has started' 0 '' '' "$SBATCH" -W -Q -d "after:${N}_0:${N}_1" --wrap true
run 'after: one that is not in the queue is refused' 125 '' \
	"gpulease: --dependency: 'after:${N}_3': this task is not in the queue yet; *" \
	"$SBATCH" -d "after:${N}_3" --wrap true
run 'after: so is a whole array' 125 '' \
	"gpulease: --dependency: 'after:$N': *write after:${N}_I for task I" \
	"$SBATCH" -d "after:$N" --wrap true
run 'a task that there is not is refused' 125 '' \
	"gpulease: --dependency: '${N}_4': the array has no task 4" \
	"$SBATCH" -d "afterok:${N}_4" --wrap true
go 0
run 'afterok: the job starts after the task' 0 '' '' "$GPULEASE" --wait-for "$A"
E=$("$SBATCH" --parsable -d "afterany:${N}_*" -o e.out --wrap 'cat ends')
go 1
run 'afternotok: the job starts after a task that failed' 0 '' '' "$GPULEASE" --wait-for "$B"
go 2 3
is 'these end with the tasks' wait_until 'waiters 0'
run 'afternotok: it does not after one that did not' 124 '' '' "$GPULEASE" --wait-for "$C"
run 'afterok: the job starts after a task that had no job' 0 '' '' "$GPULEASE" --wait-for "$D"
run 'all tasks end before a job with ID_*' 0 '' '' "$GPULEASE" --wait-for "$E"
is 'it is the last' [ "$(printed e.out | sort | tr '\n' ' ')" = '0 1 2 3 ' ]
run 'a job that waits for ended tasks starts at once' 0 '' '' \
	"$SBATCH" -W -Q -d "afterok:${N}_0:${N}_3,afternotok:${N}_1,after:${N}_2" --wrap true
run 'afterok of an array with a task that failed' 124 '' '' \
	"$SBATCH" -W -Q -d "afterok:$N" --wrap true
run 'afternotok of it' 0 '' '' "$SBATCH" -W -Q -d "afternotok:$N" --wrap true

anew
N=$("$SBATCH" --parsable --array=0-1%1 -G 1 held)
is 'one task runs' started 1
run 'a job that cannot be submitted' 125 '' '*99 GPUs*' \
	"$SBATCH" -d "afterok:${N}_1" -G 99 --wrap true
is 'it leaves no job that waits for a task' wait_until 'waiters 0'
"$GPULEASE" --cancel "${N}_1"
run 'afterany: a task that is cancelled before it has a job' 0 '' '' \
	"$SBATCH" -W -Q -d "afterany:${N}_1" --wrap true
go 0
"$GPULEASE" --wait-for "$N" 2>/dev/null
run 'after: a task that ended without a job' 0 '' '' "$SBATCH" -W -Q -d "after:${N}_1" --wrap true

# --- held, and later ---------------------------------------------------------------------

anew
N=$("$SBATCH" --parsable --hold --array=0-4%2 -G 1 held)
is 'a held array is held by its own id' wait_until \
	'"$GPULEASE" --queue | grep "is held; gpulease --release" | grep -qw "$N"'
run 'its tasks are not in the queue' 1 '' "gpulease: job ${N}_0 is not in the queue yet" \
	"$GPULEASE" --status "${N}_0"
run 'squeue says why' 0 "$N PD *JobHeldUser*" '' "$S/squeue" -h -o '%i %t %r' -j "$N"
run 'one of them can be cancelled' 0 '' '' "$GPULEASE" --cancel "${N}_1"
run 'one of them cannot be released' 1 '' \
	"scontrol: error: release: ${N}_0: an array is held as a whole; write scontrol release $N" \
	"$S/scontrol" release "1,${N}_0"
run 'one of them can be waited for' 124 '' '*' "$GPULEASE" --max-wait 10ms --wait-for "${N}_2"
run 'scontrol release lets the array go' 0 '' '' "$S/scontrol" release "$N"
is 'two tasks start' started 2
go 0 2 3 4
is 'those that come later are not held again' started 4
run 'the array ends' 143 '' '*' "$GPULEASE" --wait-for "$N"
is 'without the task that was cancelled' [ "$(numbers ends)" = '0 2 3 4 ' ]

anew
N=$("$SBATCH" --parsable -H --array=0-1 -G 1 held)
run '--release lets a held array go' 0 '' '' "$GPULEASE" --release "$N"
is 'all of its tasks' started 2
go 0 1
run 'it ends' 0 '' '' "$GPULEASE" --wait-for "$N"

anew
N=$("$SBATCH" --parsable -H --array=0-1 -G 1 held)
run 'a held array is cancelled' 0 '' '*' "$GPULEASE" --cancel "$N"
run 'its status' 143 '' '*' "$GPULEASE" --wait-for "$N"
run 'that of a task' 143 '' '' "$GPULEASE" --wait-for "${N}_0"
is 'none has started' [ ! -s starts ]

anew
N=$("$SBATCH" --parsable --begin=now+2 --array=0-2%1 -G 1 held)
is 'an array that begins later waits by its own id' \
	like "*$N*begins *" "$("$GPULEASE" --queue)"
run 'its tasks do not wait apart' 1 '' "gpulease: job ${N}_0 is not in the queue yet" \
	"$GPULEASE" --status "${N}_0"
go 0 1 2
run 'they wait once' 0 '' '' "$GPULEASE" --wait-for "$N"

# --- killed processes --------------------------------------------------------------------

# processes ARRAY: those of the array: gpulease, the watching one, the one that runs it
processes() {
	grep -lz -- "^--record=$S/" /proc/[0-9]*/cmdline 2>/dev/null | tr -dc '0-9\n' | sort -n
}

for nth in 1 2 3; do
	anew
	N=$("$SBATCH" --parsable --array=0-3%2 -G 1 held)
	is "$nth: two tasks run" started 2
	wait_until '[ "$(processes | wc -l)" -eq 3 ]'
	kill -9 "$(processes | sed -n "${nth}p")"
	go 0 1 2 3
	is "$nth: when a process of an array was killed, all tasks run" \
		wait_until '[ "$(wc -l <ends)" -eq 4 ]'
	run "$nth: the last of them is known" 0 '' '' "$GPULEASE" --wait-for "${N}_3"
	is "$nth: each ran once" [ "$(numbers starts)" = '0 1 2 3 ' ]
	is "$nth: nothing of it is left" wait_until '[ -z "$(processes)" ]'
done

anew
N=$("$SBATCH" --parsable --array=0-2%1 -G 1 held)
is 'one task runs' started 1
wait_until '[ "$(processes | wc -l)" -eq 3 ]'
runner=$(processes | sed -n 3p)
record=$(tr '\0' '\n' <"/proc/$runner/cmdline" | sed -n 's/^--record=//p')
# as if it were killed before it could record the job of task 0, and before task 1 had one
kill -STOP "$runner"
grep -v '^[js] 0 ' "$record" >"$S/record"
echo 't 1 0' >>"$S/record"
cat "$S/record" >"$record"
kill -9 "$runner"
wait_until 'grep -q "^n 1" "$record"'
go 0 1 2
run 'what a killed process has begun is found, or done' 0 '' '' "$GPULEASE" --wait-for "$N"
is 'each task ran once' [ "$(numbers starts)" = '0 1 2 ' ]

# --- what is refused ---------------------------------------------------------------------

before=$(queued) files_before=$(copies)
# refused PATTERN WORD…
refused() {
	pattern=$1
	shift
	run "refused: $*" 125 '' "gpulease: $pattern" "$SBATCH" "$@"
	is "one line: $*" [ "$(printf '%s\n' "$err" | wc -l)" -eq 1 ]
}
refused "--array: '0-1000000' has more than 1000 tasks*" --array=0-1000000 held
refused "--array: '3-1' is no list of indices*" --array=3-1 held
refused '--array needs a value: *' --array= held
: >blocked
refused "cannot open 'blocked/%A_%a.out': *" --gpus=1 --array=1 -o blocked/%A_%a.out held
refused '*this machine has 8*' --array=0-3 --gpus=9 held
run 'refused: a variable' 125 '' "gpulease: --array: 'a' is no list*" \
	env SBATCH_ARRAY_INX=a "$SBATCH" held
is 'nothing is queued' [ "$(queued)" -eq "$before" ]
is 'no file is left of what was refused' [ "$(copies)" -eq "$files_before" ]

# --- while no GPU is free ----------------------------------------------------------------

holder all -n 8
run 'an array is submitted while no GPU is free' 0 '[1-9]*' '' \
	"$SBATCH" --parsable --array=0-1 --gpus=1 -o late.%a --wrap 'echo ran'
N=$out
is 'its tasks wait' wait_until '[ "$("$GPULEASE" --queue --json | grep -c "\"name\": \"${N}_")" = 2 ]'
release_all all
run 'its tasks run then' 0 '' '' "$GPULEASE" --wait-for "$N"
is 'both of them' [ "$(cat late.0 late.1)" = 'ran
ran' ]

# --- scancel -----------------------------------------------------------------------------

scancel=$S/lib/gpulease/bin/scancel
ln -s ../gpulease-slurm "$scancel"
anew
N=$("$SBATCH" --parsable --array=0-3%2 -G 1 held)
is 'two tasks of an array run' started 2
run '-t PENDING cancels the tasks that are not submitted yet' 0 '' '' "$scancel" -t PENDING "$N"
go 0 1 2 3
"$GPULEASE" --wait-for "$N"
is 'the others run to their end' [ "$(numbers ends)" = '0 1 ' ]
anew
N=$("$SBATCH" --parsable --array=0-3%2 -G 1 held)
is 'two tasks of the next array run' started 2
run '-t RUNNING ends the tasks that run' 0 '' '' "$scancel" --me -t RUNNING
is 'the others are submitted' started 4
go 2 3
"$GPULEASE" --wait-for "$N"
is 'and run to their end' [ "$(numbers ends)" = '2 3 ' ]
script signalled <<'EOF'
trap signalled=yes USR1
echo "$SLURM_ARRAY_TASK_ID" >>starts
until [ "$signalled" ] && [ -e go.after ]; do sleep 0.05; done
echo "$SLURM_ARRAY_TASK_ID" >>ends
EOF
anew
N=$("$SBATCH" --parsable --array=0-2%2 -G 1 signalled)
is 'two tasks wait for a signal' started 2
# a task that started meanwhile would get it, too
run 'a signal to an array goes to its tasks' 0 '' '' "$scancel" -s USR1 "$N"
go after
is 'the next task starts' started 3
run 'a signal to one task' 0 '' '' "$scancel" -s USR1 "${N}_2"
run 'the array ends as its tasks do' 0 '' '' "$GPULEASE" --wait-for "$N"
is 'each has had the signal' [ "$(numbers ends)" = '0 1 2 ' ]
run 'to cancel a task that has ended is no error' 0 '' '' "$scancel" "${N}_1"
run 'nor tasks of no array' 0 '' '' "$scancel" 999_1
run '--me and another user' 1 '' 'scancel: error: --me and --user=daemon are different users' \
	"$scancel" --me -u daemon

# --- files -------------------------------------------------------------------------------

if [ -r /proc/1/cmdline ]; then
	anew
	N=$("$SBATCH" --parsable --array=0-1%1 -G 1 held)
	is 'an array runs' started 1
	touch -h -d '2 hours ago' "$XDG_STATE_HOME"/gpulease/scripts/*
	# each of them removes 64 files at most
	for each in 1 2 3; do
		"$SBATCH" -Q --gpus=0 --wait --wrap true
	done
	is 'later submissions leave its copy, its record and the link to it' \
		[ "$(find "$XDG_STATE_HOME/gpulease/scripts" -mmin +60 | wc -l)" -eq 3 ]
	go 0 1
	run 'it ends' 0 '' '' "$GPULEASE" --wait-for "$N"
else
	skip 'later submissions leave its files' '/proc hides processes'
fi
finish

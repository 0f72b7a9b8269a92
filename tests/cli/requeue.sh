#!/bin/sh
# What a handler has saved is not lost: the signal before a limit reaches the steps of a job, and a
# job that asks for it runs again under its id.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, code of commands

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/job_lib.sh
. "$(dirname "$0")/job_lib.sh"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/scontrol"
ln -s ../gpulease-slurm "$S/lib/gpulease/bin/squeue"
PATH=$S/lib/gpulease/bin:$PATH
printf 'max-priority = 1000\n' >"$S/conf"
configured
export S
sim 2

# words FILE: its words in order, in one line
words() {
	sort "$1" | tr '\n' ' ' | sed 's/ $//'
}

# --- the signal before a limit ----------------------------------------------------------------

# A task that says its name once it listens, and again when it gets the signal.  Its child has the
# default action of the signal, which would end it.
cat >listen <<'END'
#!/bin/sh
trap 'echo "$1" >>got; kill -0 $child || echo "$1-child" >>got; exit 0' USR1
sleep 1000 &
child=$!
echo "$1" >>up
until [ -e end ]; do sleep 0.02; done
kill $child
END
chmod +x listen
# one step of each kind; one of them has a step inside
script kinds <<'END'
trap 'echo script >>got' USR1
srun --overlap ./listen one &
srun --overlap -n 2 sh -c 'exec ./listen many.$SLURM_PROCID' &
srun --overlap -l ./listen labelled &
srun --exclusive -n 1 --gpus=1 ./listen alone &
srun --overlap sh -c 'trap : USR1; srun --overlap ./listen inner; true' &
until [ -e end ]; do sleep 0.02; done
srun --overlap ./listen late &
until [ -e over ]; do sleep 0.02; done
END
kinds='alone inner labelled many.0 many.1 one'
# warns SIGNAL WHO TEXT: a result; a preemptible job with all kinds of steps is warned by the signal,
# and WHO get it.  A step that starts later gets none.
warns() {
	rm -f up got end over
	"$GPULEASE" --submit --preemptible -n 2 --signal "$1@1h" -o warned.out sh kinds >id
	wait_until "[ \"\$(words up 2>/dev/null)\" = '$kinds' ]" || bail "the steps do not start: $(cat up)"
	begin high --priority 5
	wait_until "[ \"\$(words got 2>/dev/null)\" = '$2' ]"
	: >end
	wait_until 'grep -q late up' || bail 'the late step does not start'
	: >over
	wait_until 'runs high' || bail "the job does not end: $(cat warned.out)"
	release_all high
	is "$3" [ "$(words got)" = "$2" ]
	"$GPULEASE" -Q --cancel "$(cat id)"
}
warns S:USR1 "$kinds" 'S: is for each task of each step, and neither for its children nor for the script'
warns B:USR1 script 'B: is for the script alone'

echo 'srun sh -c "trap \"echo saved; exit 0\" USR1; while :; do sleep 0.02; done"' | script limited
run 'sbatch --signal without B: is for the steps' 0 '??' '' \
	"$SBATCH" -W --parsable -G 1 -t 1h --signal=USR1@3597 -o limited.out limited
is 'the step has saved' [ "$(cat limited.out)" = saved ]

# --- a job that goes back into the queue --------------------------------------------------------

# A script that notes each of its runs, and then does what the file NAME.does says, until there is
# NAME.end.  `ask` in that file requeues its own job, and notes the answer.
cat >again <<'END'
#!/bin/sh
name=$1
echo "run ${SLURM_RESTART_COUNT-first}"
echo "${SLURM_RESTART_COUNT-first}" >>"$name.runs"
ask() {
	scontrol requeue "$SLURM_JOB_ID"
	echo "asked: $?"
}
until [ -e "$name.end" ]; do
	if [ -e "$name.does" ]; then
		mv "$name.does" "$name.done"
		. "./$name.done"
	fi
	sleep 0.02
done
echo end
END
chmod +x again

# again NAME OPTION…: submits it; returns when it runs
again() {
	again_name=$1
	shift
	rm -f "$again_name".*
	id=$("$SBATCH" --parsable -Q -G 1 -o "$again_name.out" "$@" again "$again_name") || bail "cannot submit $again_name"
	ran "$again_name" first || bail "$again_name does not run: $(cat "$again_name.out")"
}

# ran NAME RUNS: whether the job has had these runs, once it has
ran() {
	wait_until "[ \"\$(cat '$1.runs' 2>/dev/null | tr '\n' ' ')\" = '$2 ' ]"
}

# does NAME CODE: the job does it, once
does() {
	echo "$2" >"$1.new"
	mv "$1.new" "$1.does"
}

# states ID: the states of its attempts
states() {
	"$GPULEASE" --history all | awk -v id="$1" '$1 == id {
		for (i = 2; i < NF && $i !~ /^(finished|failed|requeued|cancelled|lost|timed-out)$/;) i++
		printf "%s%s", sep, $i; sep = " " }'
}

again own
"$GPULEASE" --wait-for "$id" &
waits=$!
started="$started $waits"
after=$("$SBATCH" --parsable -Q -G 0 -d "afterok:$id" -o after.out --wrap 'echo after')
does own 'echo saved; ask; exit 0'
is 'a handler that requeues its own job and exits with 0 runs again' ran own 'first 1'
is '--wait-for goes on waiting' kill -0 $waits
is 'a job with afterok does, too' [ ! -s after.out ]
is 'squeue has it as running' [ "$(squeue -h -j "$id" -o %T)" = RUNNING ]
is 'scontrol knows its restarts' eval 'scontrol show job "$id" | grep -q "Restarts=1 "'
does own 'echo saved; ask; exit 3'
is 'a handler that exits with 3, too' ran own 'first 1 2'
: >own.end
wait $waits
is '--wait-for ends with the status of the last attempt' [ $? = 0 ]
is 'then the job with afterok runs' wait_until 'grep -q after after.out'
is 'the log is that of the last run, as with Slurm' [ "$(tr '\n' ' ' <own.out)" = 'run 2 end ' ]
is 'the history says requeued' [ "$(states "$id")" = 'requeued requeued finished' ]

again kept --open-mode=append
does kept 'ask; exit 0'
ran kept 'first 1'
: >kept.end
"$GPULEASE" --wait-for "$id"
is '--open-mode=append keeps the output of all runs, and the answer is heard' \
	[ "$(printed kept.out | tr '\n' ' ')" = 'run first asked: 0 run 1 end ' ]
is 'the log says that it was requeued' grep -q "job $id 'again' ended: requeued, exit status 0, " kept.out

again outside
run 'gpulease --requeue from outside' 0 '' '' "$GPULEASE" --requeue "$id"
is 'the job runs again' ran outside 'first 1'
run 'its command is ended by TERM' 0 '' '' scontrol requeue "$id"
is 'and runs once more' ran outside 'first 1 2'
: >outside.end
"$GPULEASE" --wait-for "$id"
again twice
run 'two requests at once are one' 0 '' '' sh -c '
	"$1" --requeue "$2" & "$1" --requeue "$2" & scontrol requeue "$2" & wait' - "$GPULEASE" "$id"
is 'the job runs again, once' ran twice 'first 1'
: >twice.end
"$GPULEASE" --wait-for "$id"

for each in '' '#SBATCH --requeue' '#SBATCH --no-requeue
#SBATCH --requeue'; do
	{
		printf '#!/bin/sh\n%s\n' "$each"
		sed 1d again
	} >lines
	rm -f lines.*
	id=$("$SBATCH" --parsable -Q -G 0 -o lines.out lines lines)
	ran lines first
	"$GPULEASE" --requeue "$id"
	is "with '$each' it can be requeued" ran lines 'first 1'
	: >lines.end
	"$GPULEASE" --wait-for "$id"
done
again never --no-requeue
run '--no-requeue refuses it' 1 '' "gpulease: job $id may not be requeued: it has --no-requeue" scontrol requeue "$id"
: >never.end
"$GPULEASE" --wait-for "$id"

# --- beside other ends ----------------------------------------------------------------------------

again limit -t 1s
does limit 'trap "echo saved; ask; exit 0" TERM'
is 'a job that asks for it when it reaches its limit runs again' ran limit 'first 1'
"$GPULEASE" -Q --cancel "$id"
is 'the history has no time limit' [ "$(states "$id")" = 'requeued cancelled' ]
again warned -t 1h --signal=B:USR1@3598
does warned 'trap "echo saved; ask; exit 0" USR1'
is 'one that asks for it when it is warned, too' ran warned 'first 1'
: >warned.end
"$GPULEASE" --wait-for "$id"

again stubborn
does stubborn 'trap "" TERM; : >stubborn.ready'
wait_until '[ -e stubborn.ready ]'
"$GPULEASE" --requeue "$id"
run 'a cancel after the request wins' 0 '' '*' "$GPULEASE" --cancel --grace 1s "$id"
run 'its status is that of a cancel' 137 '' '*' "$GPULEASE" --wait-for "$id"
is 'the job has run once' [ "$(cat stubborn.runs) $(states "$id")" = 'first cancelled' ]

again waits
holder other -n 1 --priority -1
begin next -n 2 --priority 1
wait_until '[ -s "$S/next.err" ]'
run 'a job that is requeued behind another one' 0 '' '' scontrol requeue "$id"
release_all other
wait_until 'runs next' || bail 'the next job does not run'
is 'waits' [ "$(squeue -h -j "$id" -o %T)" = PENDING ]
run 'a waiting job cannot be requeued' 1 '' \
	"gpulease: job $id waits already; only a running job can be requeued" scontrol requeue "$id"
run 'it can be cancelled' 0 '' '*' "$GPULEASE" --cancel "$id"
release_all next
is 'it does not run again' [ "$(cat waits.runs) $(states "$id")" = 'first requeued cancelled' ]

# its supervisor: the process of the ticket
supervisor() {
	grep -lz "^GPULEASE_ID=$1\$" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n' |
		while read -r pid; do
			sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$pid/stat"
		done 2>/dev/null | while read -r pid; do
			[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = gpulease-job ] && echo "$pid"
		done | head -n 1
}
again stopped
pid=$(supervisor "$id")
kill -STOP "$pid"
run 'a supervisor that is stopped' 1 '' "gpulease: job $id goes back once its supervisor acts again" \
	"$GPULEASE" --requeue "$id"
run 'a second request' 1 '' '*' "$GPULEASE" --requeue "$id"
kill -CONT "$pid"
is 'acts once it is continued' ran stopped 'first 1'
: >stopped.end
"$GPULEASE" --wait-for "$id"
again killed
pid=$(supervisor "$id")
after=$("$SBATCH" --parsable -Q -G 0 -d "afterok:$id" -o killed.after --wrap 'echo after')
kill -STOP "$pid"
try "$GPULEASE" --requeue "$id"
kill -KILL "$pid"
: >killed.end
try "$GPULEASE" --wait-for "$id"
is 'a job whose supervisor is killed after the request is no success' [ "$rc" -ne 0 ]
try "$GPULEASE" --wait-for "$after"
is 'no afterok runs' eval '[ "$rc" -ne 0 ] && ! grep -q "^after" killed.after'

# --- of every kind ---------------------------------------------------------------------------------

holder plain -n 1 -t 1h
id=$(id_of plain)
run 'a job without a supervisor' 1 '' \
	"gpulease: job $id has no supervisor that could run it again; start such a job with --submit or --retries N" \
	"$GPULEASE" --requeue "$id"
is 'runs on' kill -0 "$(pid_of plain)"
release_all plain
run 'a job that has ended' 1 '' "gpulease: job $id has *ed" "$GPULEASE" --requeue "$id"
run 'a job that never was' 1 '' 'gpulease: job 99999 is unknown; *' scontrol requeue 99999
run 'a name' 125 '' "gpulease: --requeue: 'python' is *" "$GPULEASE" --requeue python train.py
run 'no job' 1 '' 'too few arguments for keyword:requeue' scontrol requeue
run 'no id' 1 '' 'Invalid job id specified for job x' scontrol requeue x
# in the foreground, with a GPU and without
for each in 0 1; do
	holder front -n $each --retries 1
	id=$(id_of front)
	rm "$S/front.runs"
	run "a job in the foreground, -n $each" 0 '' '' "$GPULEASE" --requeue "$id"
	is 'runs again' wait_until 'runs front'
	is 'under its id' [ "$(id_of front)" = "$id" ]
	release_all front
	is 'and ends with its own status' [ "$rc" = 0 ]
done
printf 'sh -c '\''echo run >>batch.runs; until [ -e batch.end ]; do sleep 0.02; done'\''\n' >batch.list
rm -f batch.runs batch.end
"$GPULEASE" --batch batch.list >batch.out 2>&1 &
batch=$!
started="$started $batch"
wait_until '[ -s batch.runs ]'
run 'a job of --batch' 0 '' '' "$GPULEASE" --requeue "$(squeue -h -o %i | head -n 1)"
is 'runs again' wait_until '[ "$(grep -c run batch.runs)" = 2 ]'
: >batch.end
wait $batch
is 'and the batch ends well' [ $? = 0 ]
is 'its events say so' grep -q requeued batch.list.logs/journal.jsonl

cat >task <<'END'
#!/bin/sh
echo "$SLURM_ARRAY_TASK_ID ${SLURM_RESTART_COUNT-first}" >>task.runs
until [ -e task.end ]; do sleep 0.02; done
END
array=$("$SBATCH" --parsable -Q -G 0 -a 1-2 -o /dev/null task)
tasks() {
	wait_until "[ \"\$(words task.runs 2>/dev/null)\" = '$1' ]"
}
is 'an array runs' tasks '1 first 2 first'
run 'one of its tasks is requeued' 0 '' '' scontrol requeue "${array}_2"
is 'and runs again' tasks '1 first 2 1 2 first'
run 'the whole array' 0 '' '' scontrol requeue "$array"
is 'all tasks run again' tasks '1 1 1 first 2 1 2 2 2 first'
: >task.end
run 'the array ends well' 0 '' '' "$GPULEASE" --wait-for "$array"

finish

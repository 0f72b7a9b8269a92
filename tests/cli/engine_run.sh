#!/bin/sh
# A command in the foreground on a real Slurm cluster: what it gets, how it ends, what is printed.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"
scratch
cluster 2 2 || {
	skip 'a command on a real cluster' "$cluster_why"
	finish
}
slurm_engine
scontrol create PartitionName=closed Nodes=n1 MaxTime=1 State=UP >/dev/null

# last_job: the id of the job that came last
last_job() {
	squeue -h -t all -o %i | sort -n | tail -n 1
}

# no_jobs: whether no job waits or runs
no_jobs() {
	[ -z "$(squeue -h)" ]
}

# blocked: all GPUs are in use until unblock
blocked() {
	srun -Q -N 2 -n 2 --gpus=4 sh -c 'trap "exit 0" TERM; sleep 300 & wait' >/dev/null 2>&1 </dev/null &
	blocker=$!
	started="$started $blocker"
	wait_until '[ "$(squeue -h -t R | wc -l)" -eq 1 ]' || bail 'the GPUs are not in use'
}

unblock() {
	kill -QUIT $blocker
	wait $blocker
	wait_until no_jobs || bail 'the blocker runs'
}

# behind OPTION…: gpulease waits for a GPU, in the background, as $waiter
behind() {
	: >"$S/behind.err"
	"$GPULEASE" "$@" >"$S/behind.out" 2>"$S/behind.err" </dev/null &
	waiter=$!
	started="$started $waiter"
	wait_until 'grep -q "is in Slurm" "$S/behind.err"' || bail 'it does not wait'
}

# ended TEXT STATUS STDERR: a result: $waiter has ended so
ended() {
	wait $waiter
	rc=$?
	err=$(cat "$S/behind.err")
	if [ $rc -eq "$2" ] && like "$3" "$err"; then
		ok "$1"
	else
		not_ok "$1" "status $rc" "$err"
	fi
}

# --- what the command gets --------------------------------------------------------------

run 'a command that ends well prints what it prints' 0 out err "$GPULEASE" -n 2 \
	sh -c 'echo out; echo err >&2'
# shellcheck disable=SC2016
run 'the words arrive as they are written' 0 "$(printf '<a b>\n<>\n<$HOME>\n<c\nd>\n<"'"'"'>\n<ü>\n<-x>')" '' \
	"$GPULEASE" -- printf '<%s>\n' 'a b' '' '$HOME' 'c
d' "\"'" 'ü' -x
# shellcheck disable=SC2016
run 'it has the GPUs that it asked for' 0 '2 0,1 0,1' '' "$GPULEASE" -n 2 \
	sh -c 'echo "$@" $GPULEASE_GPUS' sh '{ngpus}' '{gpus}'
wait_until no_jobs
# shellcheck disable=SC2016
run 'several nodes: one GPU of each' 0 '1 2
1 2' '' "$GPULEASE" -N 2 sh -c 'echo {ngpus} $SLURM_NNODES'
wait_until no_jobs
# shellcheck disable=SC2016
run 'several nodes by name: one GPU of each' 0 '1 2
1 2' '' "$GPULEASE" -w n1,n2 sh -c 'echo {ngpus} $SLURM_NNODES'
run 'more nodes than GPUs' 125 '' 'gpulease: Slurm has not started the job: *--gpus < -N*' \
	"$GPULEASE" -n 1 -N 2 true
# shellcheck disable=SC2016
run 'a gpulease inside would use the GPUs of the job' 0 "$(printf 'none\nyes')" '' "$GPULEASE" \
	sh -c 'echo ${GPULEASE_ENGINE-none}; [ "$GPULEASE_ID" = "$SLURM_JOB_ID" ] && echo yes'
# shellcheck disable=SC2016
run 'variables of Slurm of the caller do not count' 0 1 '' env SLURM_NTASKS=4 SLURM_NNODES=2 \
	SLURM_GPUS=2 "$GPULEASE" sh -c 'echo $SLURM_NTASKS'
mkdir "$S/a b"
run 'it runs where it was typed' 0 "$S/a b" '' sh -c "cd '$S/a b' && exec \"\$@\"" sh "$GPULEASE" pwd
run '-D is another folder' 0 "$S/a b" '' "$GPULEASE" -D "$S/a b" pwd
# shellcheck disable=SC2016
run '--export, --setup and --inject work on the node' 0 'no 5 --gpus 0' '' env A=1 "$GPULEASE" \
	--export NONE --setup 'B=5; export B' --inject --gpus sh -c 'echo ${A-no} $B "$@"' sh

printf 'one\ntwo\n' >"$S/lines"
# try() gives a command no stdin
from_file() {
	file=$1
	shift
	"$@" <"$file"
}
run 'stdin reaches the command' 0 "$(printf 'one\ntwo')" '' from_file "$S/lines" "$GPULEASE" cat
from_none() {
	{
		"$GPULEASE" -i none true
		cat
	} <"$S/lines"
}
run '-i none leaves it to the script' 0 "$(printf 'one\ntwo')" '' from_none
run '-o, -e and -i are files' 0 '' '' "$GPULEASE" -o "$S/o.txt" -e "$S/e.txt" -i "$S/lines" \
	sh -c 'cat; echo err >&2'
is 'they have what was printed' [ "$(cat "$S/o.txt" "$S/e.txt")" = "$(printf 'one\ntwo\nerr')" ]
one_file() {
	"$@" >"$S/both" 2>&1
}
run 'stdout and stderr that are one file' 0 '' '' one_file "$GPULEASE" \
	sh -c 'for i in 1 2 3; do echo $i; echo e$i >&2; done'
is 'keep their order' [ "$(tr '\n' ' ' <"$S/both")" = '1 e1 2 e2 3 e3 ' ]

# --- its status ------------------------------------------------------------------------------

for status in 1 7 125; do
	run "exit status $status" $status '' '' "$GPULEASE" sh -c "exit $status"
done
# shellcheck disable=SC2016
run 'a signal: 128 + its number' 137 '' '' "$GPULEASE" sh -c 'kill -KILL $$'
run 'no such program: 127' 127 '' "gpulease: command 'no-such' was not found" "$GPULEASE" no-such
: >"$S/plain"
run 'no program: 126' 126 '' "gpulease: cannot execute '$S/plain': Permission denied" \
	"$GPULEASE" "$S/plain"
run 'several tasks: which has failed' 3 '' 'gpulease: n1: task 1: Exited with exit code 3' \
	"$GPULEASE" -N 1 --ntasks 2 --gpus 2 sh -c 'exit $((SLURM_PROCID * 3))'

# --- limits and attempts -----------------------------------------------------------------------

run 'a limit in seconds: 124' 124 '' \
	'gpulease: job * has reached its time limit of 1s: TERM now, KILL after 10s' \
	"$GPULEASE" -t 1s sleep 100
run 'it is killed after the grace' 124 '' '*: TERM now, KILL after <1s' "$GPULEASE" -t 500ms --grace 100ms \
	sh -c 'trap "" TERM; while :; do sleep 1; done'
# Slurm looks at the times of its jobs once a minute
[ -z "${ENGINE_MINUTE-}" ] || run 'a signal before the limit' 4 got '' "$GPULEASE" -t 1h --signal USR1@59m59s \
	sh -c 'trap "echo got; exit 4" USR1; sleep 100 & wait'
echo 'retry-delay = 40ms' >"$S/quick.conf"
chmod 0644 "$S/quick.conf"
# shellcheck disable=SC2016
run 'it is tried again' 0 "$(printf '1\n2')" 'gpulease: job * is tried again in <1s (attempt 2)' \
	"$GPULEASE" --config "$S/quick.conf" --retries 2 sh -c 'echo $GPULEASE_ATTEMPT; [ $GPULEASE_ATTEMPT = 2 ]'
run '--done-status ends the attempts' 3 '' '' "$GPULEASE" --retries 2 --done-status 3 sh -c 'exit 3'

# --- what is refused ------------------------------------------------------------------------------

run 'more GPUs than a node has' 125 '' \
	'gpulease: Slurm has not started the job: *not available; a node has 2 GPUs at most' \
	"$GPULEASE" -n 3 true
run 'more CPUs or memory than a node has: GPUs are not named' 125 '' \
	'gpulease: Slurm has not started the job: *(CPU count per node can not be satisfied)' \
	"$GPULEASE" -n 2 -c 17 true
run 'no such partition' 125 '' 'gpulease: Slurm has not started the job: *nowhere*' \
	"$GPULEASE" -p nowhere true
run 'a longer limit than the partition has' 125 '' \
	'*gpulease: Slurm cannot start job *: asks for more *than its partition *' "$GPULEASE" -n 0 -p closed -t 5 true
is 'the job does not stay' wait_until no_jobs
run 'more CPUs than its partition has' 125 '' \
	'*gpulease: Slurm cannot start job *: asks for 99 CPUs, and its partition has 32' \
	"$GPULEASE" -c 99 true
run 'more nodes than its partition has' 125 '' \
	'*gpulease: Slurm cannot start job *: asks for 3 nodes, and its partition has 2' \
	"$GPULEASE" -N 3 true
run '--dry-run: more CPUs than its partition has' 125 '' 'gpulease: Slurm would not start the job: *' \
	"$GPULEASE" --dry-run -c 99 true
is 'none of them stays' wait_until no_jobs
run 'no such type' 125 '' \
	"gpulease: --gpus: the cluster has no GPU of the type 'h100'; its types are sim" \
	"$GPULEASE" --gpus h100:1 true
run 'a type in other letters' 0 '' '' "$GPULEASE" --gpus SIM:1 true
run 'a part of a GPU, without shards' 125 '' 'gpulease: -n: a part of a GPU needs shards*' \
	"$GPULEASE" -n 0.5 true
run 'a missing folder of -o' 0 '' '' "$GPULEASE" -o "$S/none/x" true
is 'is made' [ -d "$S/none" ]
rm -r "$S/none"
run '-o /dev/null' 0 '' '' "$GPULEASE" -o /dev/null echo ok
run 'a folder as the output' 125 '' "gpulease: --output: cannot open '$S': Is a directory" \
	"$GPULEASE" -o "$S" true
run '%h is the node' 0 '' '' "$GPULEASE" -o "$S/of-%h-%%h" echo ok
is 'in the name of a file' [ "$(cat "$S/of-$(hostname -s)-%h")" = ok ]
run 'a missing folder of -D' 125 '' "gpulease: cannot change to '$S/none': No such*" \
	"$GPULEASE" -D "$S/none" true
for option in '--after 99' '--after-ok 99' --dependency=afterany:99; do
	# shellcheck disable=SC2086 # words
	run "a job to wait for that is not there: $option" 125 '' 'gpulease: job 99 is unknown; *' \
		"$GPULEASE" $option true
done
run 'a job that is not there' 125 '' 'gpulease: Slurm has not started the job: *' \
	"$GPULEASE" --jobid 999999 true
run 'without srun' 125 '' 'gpulease: the engine slurm needs srun, which is not in PATH*' \
	env PATH=/proc/nonexistent "$GPULEASE" true

run '{uuids} is refused at once' 125 '' 'gpulease: {uuids}: Slurm does not tell *' \
	"$GPULEASE" --max-wait 1ms echo '{uuids}'

# --- without gpulease on the node -------------------------------------------------------------------

mkdir -p "$S/lone"
cp "$GPULEASE" "${GPULEASE%/*}/gpulease-engine" "$S/lone"
# a node that lacks the program: it is gone once srun has the line
cat >"$S/lone/srun" <<END
#!/bin/sh
mv "$S/lone/gpulease-engine" "$S/lone/gone"
exec $(command -v srun) "\$@"
END
chmod +x "$S/lone/srun"
lone() {
	[ ! -e "$S/lone/gone" ] || mv "$S/lone/gone" "$S/lone/gpulease-engine"
	PATH=$S/lone:$PATH "$S/lone/gpulease" "$@"
}
# shellcheck disable=SC2016
run 'a shell runs the command' 5 '5 a  b' '' lone --setup 'export B=5' -t 1h sh -c 'echo $B "$@"; exit 5' \
	sh 'a  b'
run 'a signal before the limit is refused' 125 '' 'gpulease: --signal needs gpulease on the nodes*' \
	lone --signal USR1@10 -t 1h true
run 'a shell watches the limit' 124 '' '' lone -t 1s sleep 100
run 'what it cannot do is refused' 125 '' \
	'gpulease: --retries needs gpulease on the nodes, and */gpulease-engine is missing there' \
	lone --retries 2 true
run 'so are placeholders' 125 '' \
	'gpulease: {gpus} or {id} in an argument needs gpulease on the nodes, and *' lone echo '{gpus}'
# shellcheck disable=SC2016
run 'but not a variable of a shell' 0 3 '' lone sh -c 'id=3; echo ${id}'
run 'a set-up that leaves the shell does not count as the command' 125 '' \
	'gpulease: the set-up stopped before its end; the command was not run' \
	lone --setup 'exit 0' echo ran
run 'a set-up that fails' 3 '' 'gpulease: the set-up failed with status 3; the command was not run' \
	lone --setup '(exit 3)' echo ran
# shellcheck disable=SC2016
run 'the shell of the set-up runs a line' 4 'a  b' '' lone --setup 'A="a  b"' 'echo "$A"; exit 4'

# --- waiting ----------------------------------------------------------------------------------------------

run '--dry-run: it would start' 0 'would start now on n1' '' "$GPULEASE" --dry-run true
blocked
run '--dry-run: it would wait' 124 'would wait; starts about * on n*' '' "$GPULEASE" --dry-run true
run '--dry-run as JSON' 124 '*"engine": "slurm",*"can_start": false,*' '' \
	"$GPULEASE" --dry-run --json true
run '--dry-run: never' 125 '' 'gpulease: Slurm would not start the job: *' \
	"$GPULEASE" --dry-run -n 3 true
run '-I gives up: 124' 124 '' 'gpulease: not available at once: *' "$GPULEASE" -I true
run '--max-wait gives up: 124' 124 '' '*gpulease: gave up after 1s: *' \
	"$GPULEASE" --max-wait 1s true
is 'and leaves no job' wait_until '[ "$(squeue -h | wc -l)" -eq 1 ]'
"$GPULEASE" --name quiet -Q true >"$S/quiet.out" 2>"$S/quiet.err" </dev/null &
quiet=$!
started="$started $quiet"
wait_until '[ -n "$(squeue -h -n quiet)" ]'
behind true
err=$(cat "$S/behind.err")
is 'a line says why it waits' like \
	"gpulease: job * is in Slurm's queue: *" "$err"
scancel "$(last_job)"
ended 'cancelled while it waits: 143' 143 '*gpulease: job * was cancelled'
behind true
kill -TERM $waiter
ended 'TERM while it waits' 143 '*'
is 'the job has left the queue' wait_until '[ "$(squeue -h | wc -l)" -eq 2 ]'
behind true
kill -KILL $waiter
ended 'KILL while it waits' 137 '*'
is 'the job has left the queue then, too' wait_until '[ "$(squeue -h | wc -l)" -eq 2 ]'
unblock
wait $quiet
is '-Q: it waited and started without a line' [ "$?-$(cat "$S/quiet.err")" = 0- ]

behind -n 0 --after-ok "$(sbatch --parsable -o /dev/null --wrap 'sleep 300')" true
scancel -n wrap
ended 'a job that it waits for has ended otherwise: 124' 124 '*gpulease: gave up: *'

# --- signals ------------------------------------------------------------------------------------------------

# running SIGNALS: a command that tells its signals, in the background, as $waiter
running() {
	: >"$S/behind.out"
	# shellcheck disable=SC2016
	"$GPULEASE" -n 2 sh -c 'for s in "$@"; do trap "echo got $s; exit 9" $s; done
		echo ready; while :; do sleep 0.1; done' sh "$@" >"$S/behind.out" 2>"$S/behind.err" </dev/null &
	waiter=$!
	started="$started $waiter"
	wait_until 'grep -q ready "$S/behind.out"' || bail 'the command does not run'
}

for signal in TERM HUP USR1 USR2; do
	running $signal
	kill -$signal $waiter
	ended "$signal reaches the command" 9 '*' # the shell names what ended its sleep
	is "it was $signal" grep -q "got $signal" "$S/behind.out"
done
running
kill -TERM $waiter
ended 'a command that ends by it' 143 '*'
running
kill -KILL $waiter
ended 'KILL' 137 ''
is 'leaves no job' wait_until no_jobs
running
scancel "$(last_job)"
ended 'cancelled by the administrator' 143 '*gpulease: job * was cancelled'

run 'a command on a terminal has it' 0 '' '' "$TOOLS/jobcontrol" see:ready 'type:a word^J' \
	'see:read a word' 'type:^C' 'see:got INT' 'type:exit 3^J' end:3 -- \
	"$GPULEASE" "$TOOLS/jobcontrol" --listen
run 'a command with a part of it, too' 0 '' '' "$TOOLS/jobcontrol" see:ready 'type:a word^J' \
	'see:read a word' 'type:^C' 'see:got INT' 'type:exit 3^J' end:3 -- \
	sh -c 'exec "$@" 2>/dev/null' sh "$GPULEASE" "$TOOLS/jobcontrol" --listen
run 'Ctrl-C ends a command' 0 '' '' "$TOOLS/jobcontrol" see:ready 'type:^C' end:130 -- \
	sh -c 'exec "$@" 2>/dev/null' sh "$GPULEASE" sh -c 'echo ready; exec sleep 100'
run 'Ctrl-Z stops it, and fg continues it' 0 '' '' "$TOOLS/jobcontrol" see:ready 'type:^Z' stop:STOP \
	fg 'type:exit 4^J' end:4 -- \
	sh -c 'exec "$@" 2>/dev/null' sh "$GPULEASE" "$TOOLS/jobcontrol" --listen
blocked
run 'Ctrl-C while it waits' 0 '' '' "$TOOLS/jobcontrol" "see:is in Slurm's queue" 'type:^C' end:INT -- \
	"$GPULEASE" true
is 'no job is left' wait_until '[ "$(squeue -h | wc -l)" -eq 1 ]'
unblock

# --- the cluster fails ------------------------------------------------------------------------------------------

running
node=$(squeue -h -o %N)
scontrol update "NodeName=$node" State=DOWN Reason=test
ended 'its node fails: 125' 125 "*gpulease: job * was lost: its node has failed ($node)"
wait_until no_jobs

# until_told: a command that ends once $S/told exists, in the background, as $waiter
until_told() {
	rm -f "$S/told"
	: >"$S/behind.out"
	# shellcheck disable=SC2016
	"$GPULEASE" -w n1 sh -c 'echo ready; until [ -e "$1" ]; do sleep 0.1; done; echo bye' sh "$S/told" \
		>"$S/behind.out" 2>"$S/behind.err" </dev/null &
	waiter=$!
	started="$started $waiter"
	wait_until 'grep -q ready "$S/behind.out"' || bail 'the command does not run'
}

# --- an epilog that takes long ----------------------------------------------------------------------------------

# The epilog runs until $S/hold is gone; each question to squeue is a line of $S/asked.
cat >"$S/epilog" <<END
#!/bin/sh
while [ -e '$S/hold' ]; do sleep 0.1; done
END
mkdir "$S/asking"
cat >"$S/asking/squeue" <<END
#!/bin/sh
echo >>'$S/asked'
exec $(command -v squeue) "\$@"
END
chmod +x "$S/epilog" "$S/asking/squeue"
echo "Epilog=$S/epilog" >>"$SLURM_CONF"
scontrol reconfigure
wait_until 'scontrol show config | grep -q "^Epilog .*epilog"'
asking() {
	: >"$S/asked"
	: >"$S/hold"
	PATH=$S/asking:$PATH "$@"
}
for status in 0 3; do
	run "a command does not wait for an epilog: $status" $status '' '' asking "$GPULEASE" -n 0 sh -c "exit $status"
	is 'and Slurm is not asked again' [ "$(wc -l <"$S/asked")" -le 3 ]
	is 'the epilog still runs' [ -n "$(squeue -h -t CG)" ]
	rm "$S/hold"
	wait_until no_jobs
done
: >"$S/behind.out"
# shellcheck disable=SC2016
asking "$GPULEASE" -n 0 sh -c 'trap "exit 0" TERM; echo ready; while :; do sleep 0.1; done' \
	>"$S/behind.out" 2>"$S/behind.err" </dev/null &
waiter=$!
started="$started $waiter"
wait_until 'grep -q ready "$S/behind.out"'
scancel "$(last_job)"
wait_until '[ "$(wc -l <"$S/asked")" -ge 2 ]'
rm "$S/hold"
ended 'cancelled, and its own status is 0: 143' 143 '*gpulease: job * was cancelled'
wait_until no_jobs

# Slurm takes a minute to notice a limit, but not an end that it was told
running
scontrol update "JobId=$(last_job)" EndTime=now+1
ended 'the limit of Slurm: 124' 124 '*gpulease: job * has reached its time limit'

until_told
cluster_kill slurmd.n1
: >"$S/told"
ended 'slurmd is killed while the command runs: its status' 0 ''
cluster_start slurmd.n1

until_told
cluster_stop slurmctld
: >"$S/told"
wait_until 'grep -q bye "$S/behind.out"'
cluster_cont slurmctld
ended 'the controller is stopped when the command ends: its status' 0 '*' # n1 may be late

# the controller is gone when the command has ended
mkdir "$S/gone"
cat >"$S/gone/squeue" <<'END'
#!/bin/sh
echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2
exit 1
END
chmod +x "$S/gone/squeue"
gone() {
	PATH=$S/gone:$PATH "$@"
}
run 'no answer after the end: the status of a failure is certain' 3 '' \
	'gpulease: squeue has failed with status 1: *Unable to contact slurm controller*' \
	gone "$GPULEASE" sh -c 'exit 3'
run 'no answer after the end: a success is not certain' 125 '' \
	'gpulease: squeue has failed with status 1: *Unable to contact slurm controller*' \
	gone "$GPULEASE" true

until_told
cluster_stop slurmctld
: >"$S/told"
run 'a controller that does not answer: 125' 125 '' 'gpulease: * does not answer *--doctor looks for the reason' \
	"$GPULEASE" true
ended 'a success that the controller cannot confirm: 125' 125 \
	'*gpulease: job * may keep its GPUs; when Slurm answers again: gpulease --cancel [1-9]*'
cluster_cont slurmctld

finish

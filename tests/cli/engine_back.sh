#!/bin/sh
# Background jobs of the engine slurm: --submit, logs, waiting, cancelling, dependencies.

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"
scratch

cluster 2 2 || {
	skip 'background jobs on a cluster' "$cluster_why"
	finish
}
slurm_engine
STATE=$XDG_STATE_HOME/gpulease/slurm/testbed

# submit OPTION… COMMAND…: sets $id
submit() {
	id=$("$GPULEASE" --submit "$@") || bail "cannot submit: $*"
}

# state_of ID: as squeue shows it
state_of() {
	squeue -h -t all -j "$1" -o %T 2>/dev/null
}

runs_now() {
	wait_until "[ \"\$(state_of $1)\" = RUNNING ]" || bail "job $1 does not run"
}

# forget: Slurm knows no job any more, and uses the ids again
forget() {
	cluster_kill slurmctld
	wait "$(cat "$K/pid/slurmctld")" 2>/dev/null
	rm -f "$K/state/job_state" "$K/state/job_state.old"
	cluster_start slurmctld
	wait_until "[ \"\$(timeout 5 sinfo -h -N -o %T 2>/dev/null | grep -c '^idle')\" = 2 ]" ||
		bail 'slurmctld does not come back'
}

# counting: from now on $S/calls has a line for each call of squeue and sbatch
counting() {
	mkdir -p "$S/bin"
	for program in squeue sbatch; do
		printf '#!/bin/sh\necho %s >>"%s"\nexec %s "$@"\n' $program "$S/calls" \
			"$(command -v $program)" >"$S/bin/$program"
		chmod +x "$S/bin/$program"
	done
	PATH=$S/bin:$PATH
}

# --- submitting ------------------------------------------------------------------------

# shellcheck disable=SC2016
submit -n 1 -- sh -c 'printf "<%s>\n" "$@"' x 'a  b' '' "it's" '$HOME `id`' 'two
lines' 'ü' -- --not-an-option '*'
run 'a job that ends well: 0' 0 '' '' "$GPULEASE" --wait-for "$id"
run 'its words arrive as they were written' 0 "<a  b>
<>
<it's>
<\$HOME \`id\`>
<two
lines>
<ü>
<-->
<--not-an-option>
<[*]>" '' "$GPULEASE" --log "$id"
run 'stdout of --submit is the id alone' 0 '[1-9]*' '' "$GPULEASE" --submit -n 1 -- true
is 'and is a number' [ "$out" -gt 0 ]
run 'a job without GPUs' 0 '[1-9]*' '' "$GPULEASE" --submit -n 0 -- true

run 'the srun of several tasks has the CPUs of a task, too' 0 '[1-9]*' '* srun --cpus-per-task=3 *' \
	"$GPULEASE" -v --submit -n 1 -c 3 --ntasks 2 true
submit -n 1 -- sh -c 'exit 7'
run 'a job that exits with 7' 7 '' '' "$GPULEASE" --wait-for "$id"
seven=$id
# shellcheck disable=SC2016
submit -n 1 -- sh -c 'kill -9 $$'
run 'a job that a signal ends: 128+n' 137 '' '' "$GPULEASE" --wait-for "$id"
submit -n 1 -- "$S/there-is-no-such-program"
run 'a command that is not there: 127' 127 '' '' "$GPULEASE" --wait-for "$id"
run 'a job that no node can run is refused' 125 '' \
	'gpulease: Slurm refuses the job: *; a node has 2 GPUs at most' \
	"$GPULEASE" --submit -n 99 true
never=$(squeue -h -t all -O JobID,Reason | sed -n 's/ *BadConstraints *//p')
run 'Slurm keeps a record of it, by which it never started' 125 '' \
	"gpulease: job $never never started: no node has*" "$GPULEASE" --wait-for "$never"
run 'with -v --wait-for prints how a job has ended' 7 '' '*job '"$seven"' has ended with status 7*' \
	"$GPULEASE" --wait-for "$seven" -v
run 'the highest status of several' 137 '' '' "$GPULEASE" --wait-for "$seven,$((seven + 1))"

run 'a request that can never be met is refused' 125 '' 'gpulease: Slurm refuses the job: ?*' \
	"$GPULEASE" --submit -n 1 -p no-such-partition -- true
submit -n 1 -o "$S/no/where" -- echo there
run 'a job with a log in a folder that is not there' 0 '' '' "$GPULEASE" --wait-for "$id"
is 'the folder is made' grep -qx there "$S/no/where"
run 'so is a folder as the log' 125 '' "*cannot open '/': Is a directory" \
	"$GPULEASE" --submit -n 1 -o / -- true
run 'an unknown id: 1' 1 '' 'gpulease: job 99999 is unknown; --status and --history list the jobs' \
	"$GPULEASE" --wait-for 99999

run 'so is 0' 1 '' 'gpulease: job 0 is unknown; *' "$GPULEASE" --wait-for 0

# --- logs ------------------------------------------------------------------------------

run '--submit --follow prints the log, and exits like the job' 3 'out
err' 'gpulease: job [1-9]*' "$GPULEASE" --submit --follow -n 1 -- sh -c 'echo out; echo err >&2; exit 3'
submit -n 1 -o "$S/of-%j.txt" -J named -- sh -c 'echo one'
"$GPULEASE" --wait-for "$id"
is '-o names the file' [ "$(cat "$S/of-$id.txt")" = one ]
run 'and --log finds it' 0 one '' "$GPULEASE" --log "$id"
# shellcheck disable=SC2016
submit -n 1 -J talks -- sh -c 'echo first; while [ ! -e "$1" ]; do sleep 0.05; done; echo last' x "$S/go"
runs_now "$id"
"$GPULEASE" --follow talks >"$S/followed" 2>&1 &
follower=$!
is '--follow prints while the job runs' wait_until 'grep -q first "$S/followed"'
: >"$S/go"
wait "$follower"
rc=$?
is 'and ends with the job' [ $rc -eq 0 ]
is 'with all that it has printed' [ "$(cat "$S/followed")" = 'first
last' ]
run 'an unknown id has no log' 1 '' '*job 99999 is unknown*' "$GPULEASE" --log 99999
run 'nor can it be followed' 1 '' '*job 99999 is unknown*' "$GPULEASE" --follow 99999

# --- waiting jobs, cancelling -------------------------------------------------------------

submit -n 2 -J full -- sleep 100
first=$id
submit -n 2 -J full -- sleep 100
second=$id
runs_now "$second"
submit -n 2 -J stuck -- sleep 100
stuck=$id
"$GPULEASE" --follow "$stuck" >"$S/waits" 2>&1 &
follower=$!
is 'a job that waits says why' wait_until 'grep -q "job $stuck waits: " "$S/waits"'
kill "$follower"
wait "$follower"
is 'the end of --follow leaves the job' [ "$(state_of "$stuck")" = PENDING ]
run '--wait-for gives up after --max-wait' 124 '' '*gave up after *: 2 of 2 jobs have not ended' \
	"$GPULEASE" --wait-for "$stuck,$first" --max-wait 300ms
run 'a name that several jobs have' 1 '' "*'full' means several jobs*" "$GPULEASE" --wait-for full
run 'a waiting job is cancelled' 0 '' '' "$GPULEASE" --cancel "$stuck"
run 'its status is 143' 143 '' '' "$GPULEASE" --wait-for "$stuck"
run 'a running job is cancelled by its name' 0 '' 'gpulease: cancelled 2 jobs' \
	"$GPULEASE" --cancel full --yes
run 'the status of a cancelled job' 143 '' '' "$GPULEASE" --wait-for "$first"
submit -n 1 -- sh -c "trap 'exit 0' TERM; : >'$S/handles'; while :; do sleep 0.1; done"
wait_until '[ -e "$S/handles" ]'
"$GPULEASE" --cancel "$id"
run 'a cancelled job whose handler exits with 0 was cancelled' 143 '' '' "$GPULEASE" --wait-for "$id"
run 'a job that has ended' 1 '' "gpulease: job $first has finished" "$GPULEASE" --cancel "$first"

# --- later, held, longer ------------------------------------------------------------------

submit -n 1 --hold -- echo released
is 'a held job waits' wait_until '"$GPULEASE" --queue | grep -q "is held; gpulease --release ID lets it go"'
"$GPULEASE" --queue --json >"$S/out"
has_json 'the JSON says so' "$id true null" queue.0.ticket queue.0.on_hold queue.0.begin_at_unix_ms
run 'it is released' 0 '' '' "$GPULEASE" --release "$id"
run 'and runs' 0 '' '' "$GPULEASE" --wait-for "$id" --max-wait 60s
run 'a job that Slurm does not know' 1 '' 'gpulease: job 99999: *' "$GPULEASE" --release 99999
submit -n 1 --begin now+1hour -- true
is 'a job that begins later waits' wait_until '"$GPULEASE" --queue | grep -q "may not begin yet"'
"$GPULEASE" --queue --json >"$S/out"
has_json 'the JSON has its id' "$id false" queue.0.ticket queue.0.on_hold
is 'and its time' grep -q '"begin_at_unix_ms": *[1-9]' "$S/out"
"$GPULEASE" --cancel "$id"
run 'a time that is none' 125 '' "gpulease: --begin: 'elevenses' is not a time*" "$GPULEASE" --submit -n 1 --begin elevenses -- true
submit -n 1 --begin "$(LC_ALL=C date -d '+2 days' +%a) 22:00" -- true
is 'Slurm gets a day of the week as a date' eval \
	'scontrol show job "$id" | grep -q "StartTime=$(date -d "+2 days" +%F)T22:00:00"'
"$GPULEASE" --cancel "$id"
submit -n 1 -t 10 -- sleep 100
runs_now "$id"
run 'a limit is prolonged, in minutes' 0 '' '' "$GPULEASE" --extend "$id" 29m30s
is 'as squeue says' [ "$(squeue -h -j "$id" -o %l)" = 40:00 ]
mkdir "$S/denies"
printf '#!/bin/sh\necho "slurm_update error: Access/permission denied" >&2\nexit 1\n' >"$S/denies/scontrol"
chmod +x "$S/denies/scontrol"
run 'which only operators may do' 1 '' "gpulease: job $id: *denied*; Slurm lets only its operators prolong a limit" \
	env "PATH=$S/denies:$PATH" "$GPULEASE" --extend "$id" 1h
"$GPULEASE" --cancel "$id"
run 'an unknown id cannot be cancelled' 1 '' '*job 99999 is unknown*' "$GPULEASE" --cancel 99999
run 'a name that no job has' 1 '' "*no job named 'nothing' waits or runs*" "$GPULEASE" --cancel nothing
run 'a range without jobs' 1 '' 'gpulease: no job from 90000 to 90009 waits or runs' \
	"$GPULEASE" --cancel 90000-90009
run 'no job is left' 1 '' '*' "$GPULEASE" --cancel mine

# --- signals -------------------------------------------------------------------------------

# shellcheck disable=SC2016
submit -n 1 -- sh -c 'for s in USR1 TERM INT; do trap "echo $s" $s; done
	: >"$1"; while [ ! -e "$2" ]; do sleep 0.05; done; exit 4' x "$S/ready" "$S/enough"
wait_until '[ -e "$S/ready" ]'
for signal in USR1 TERM INT; do
	run "--signal-job sends $signal" 0 '' '' "$GPULEASE" --signal-job "$id" "$signal"
	is "the command gets $signal once" wait_until \
		'[ "$("$GPULEASE" --log "$id" | grep -c "^$signal\$")" = 1 ]'
done
: >"$S/enough"
run 'the signals have not ended it' 4 '' '' "$GPULEASE" --wait-for "$id"
submit -n 1 -- sleep 100
runs_now "$id"
wait_until '[ -s "$STATE/logs/$id.status" ]'
wait_until '"$GPULEASE" --signal-job "$id" KILL'
run 'KILL ends the command' 137 '' '' "$GPULEASE" --wait-for "$id"
run 'a job that has ended gets no signal' 1 '' "gpulease: job $id has finished" \
	"$GPULEASE" --signal-job "$id" TERM

# --- jobs of other users ---------------------------------------------------------------------

mine=$GPULEASE
if ! others_can_run; then
	skip 'jobs of other users' "$others_why"
else
	mkdir "$S/theirs" "$S/nobody"
	chown 65534 "$S/nobody"
	install -m 0755 "${TOOLS%/tests/tools}/gpulease" "${TOOLS%/tests/tools}/gpulease-engine" "$S/theirs"
	GPULEASE=$mine
	submit -n 0 -- sleep 100
	runs_now "$id"
	other() {
		setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_STATE_HOME="$S/nobody" \
			"$S/theirs/gpulease" "$@"
	}
	run 'the job of another user is not followed' 1 '' \
		"gpulease: job $id belongs to another user, and so does its log" other --follow "$id"
	run 'nor signalled' 1 '' "gpulease: job $id belongs to another user; only they, *" \
		other --signal-job "$id" TERM
	run 'nor cancelled' 1 '' "gpulease: job $id belongs to root; only they, *" other --cancel "$id"
	run 'its user cancels it' 0 '' '' "$GPULEASE" --cancel "$id"
fi
GPULEASE=$mine

# --- dependencies --------------------------------------------------------------------------

# shellcheck disable=SC2016
submit -n 0 -- sh -c 'while [ ! -e "$1" ]; do sleep 0.05; done; exit 5' x "$S/five"
five=$id
submit -n 0 --after "$five" -- true
after=$id
submit -n 0 --after-ok "$five" -- true
after_ok=$id
is 'a job waits for another one' [ "$(state_of "$after")" = PENDING ]
: >"$S/five"
run 'it starts once that has ended' 0 '' '' "$GPULEASE" --wait-for "$after"
run 'with --after-ok it gives up if that fails' 124 '' "*job $after_ok gave up: *" \
	"$GPULEASE" --wait-for "$after_ok" -v
run 'a dependency on an unknown job is refused' 125 '' '*job 99999 is unknown*' \
	"$GPULEASE" --submit -n 0 --after 99999 -- true
run 'so with --dependency' 125 '' '*job 99998 is unknown*' \
	"$GPULEASE" --submit -n 0 --dependency afterany:99998 -- true
run 'so for a command in the foreground' 125 '' '*job 99999 is unknown*' \
	"$GPULEASE" -n 0 --after-ok 99999 -- echo ran
run 'and with --dry-run' 125 '' '*job 99999 is unknown*' \
	"$GPULEASE" --dry-run -n 0 --after 99999 -- echo ran
# shellcheck disable=SC2016
submit -n 0 -J single -- sh -c 'while [ ! -e "$1" ]; do sleep 0.05; done' x "$S/single"
submit -n 0 -J single --singleton -- true
is 'a singleton waits for the job of its name' [ "$(state_of "$id")" = PENDING ]
: >"$S/single"
run 'and runs after it' 0 '' '' "$GPULEASE" --wait-for "$id"

# --- arrays --------------------------------------------------------------------------------

# shellcheck disable=SC2016
array=$(sbatch --parsable -n 1 -o /dev/null -J many --array 0-7%2 --export "ALL,S=$S" --wrap '
	while [ ! -e "$S/array" ] && [ ! -e "$S/array$SLURM_ARRAY_TASK_ID" ]; do sleep 0.05; done
	exit $((9 - SLURM_ARRAY_TASK_ID))')
runs_both() {
	wait_until '[ "$(squeue -h -t R -n many | wc -l)" -eq 2 ]' || bail 'the array does not run'
}
runs_both
run 'a running task is cancelled' 0 '' 'gpulease: cancelled 1 job' "$GPULEASE" --cancel "${array}_0"
run 'and has been' 143 '' '' "$GPULEASE" --wait-for "${array}_0"
runs_both
run 'a task that waits cannot be waited for' 1 '' "gpulease: '${array}_7' has not started, *: $array" \
	"$GPULEASE" --wait-for "${array}_7"
run 'but cancelled' 0 '' '*cancelled 1 job' "$GPULEASE" --cancel "${array}_[5-7]"
is 'no other task is' [ "$(squeue -h -r -n many -o %K | sort | tr '\n' ' ')" = '1 2 3 4 ' ]
run 'a task that is not there' 1 '' "gpulease: no task '${array}_8' waits or runs; *" \
	"$GPULEASE" --cancel "${array}_8"
"$GPULEASE" --wait-for "$array" &
waiter=$!
: >"$S/array2"
wait_until '[ "$(squeue -h -r -n many | wc -l)" -eq 3 ]'
is 'an array has not ended with one of its tasks' kill -0 "$waiter"
: >"$S/array"
wait "$waiter"
rc=$?
is 'and its status is the highest' [ $rc -eq 143 ]

# --- lost answers ----------------------------------------------------------------------------

mkdir "$S/lost"
PATH_BEFORE=$PATH
cat >"$S/lost/sbatch" <<END
#!/bin/sh
echo call >>"$S/lost.calls"
$(command -v sbatch) "\$@" >"$S/lost.id" || exit
echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
exit 1
END
chmod +x "$S/lost/sbatch"
PATH=$S/lost:$PATH
run 'sbatch fails, but has submitted the job: the id is found' 0 '[1-9]*' '' \
	"$GPULEASE" --submit -n 0 --comment 'of the user' -- true
is 'it is the id of the job' [ "$out" = "$(cat "$S/lost.id")" ]
is 'and the job was submitted once' [ "$(wc -l <"$S/lost.calls")" -eq 1 ]
is 'the comment of the user is kept' like 'gpulease:[0-9a-f]* of the user' \
	"$(squeue -h -t all -j "$out" -o %k)"
cat >"$S/lost/sbatch" <<END
#!/bin/sh
echo call >>"$S/lost.calls"
[ "\$(wc -l <"$S/lost.calls")" -gt 2 ] && exec $(PATH=$PATH_BEFORE command -v sbatch) "\$@"
echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller' >&2
exit 1
END
run 'an sbatch that has not submitted it is called again' 0 '[1-9]*' '' \
	"$GPULEASE" --submit -n 0 -- true
is 'once' [ "$(wc -l <"$S/lost.calls")" -eq 3 ]
PATH=$PATH_BEFORE

# --- a controller that is silent -----------------------------------------------------------------

# shellcheck disable=SC2016
submit -n 0 -- sh -c 'while [ ! -e "$1" ]; do sleep 0.05; done; exit 6' x "$S/six"
runs_now "$id"
rm -f "$STATE/poll.answer" # of the processes before this one
"$GPULEASE" --wait-for "$id" 2>"$S/silent.err" &
waiter=$!
wait_until "[ -s '$STATE/poll.answer' ]"
cluster_stop slurmctld
is '--wait-for says that the controller is silent' wait_until \
	'grep -q "Slurm does not answer; still waiting" "$S/silent.err"'
: >"$S/six"
cluster_cont slurmctld
wait "$waiter"
rc=$?
is 'and has the status of the job afterwards' [ $rc -eq 6 ]

# --- many that wait -------------------------------------------------------------------------------

# shellcheck disable=SC2016
submit -n 0 -- sh -c 'while [ ! -e "$1" ]; do sleep 0.05; done; exit 2' x "$S/many"
runs_now "$id"
counting
: >"$S/calls"
waiters=''
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	"$GPULEASE" --wait-for "$id" &
	waiters="$waiters $!"
done
: >"$S/many"
bad=0
for waiter in $waiters; do
	wait "$waiter"
	[ $? -eq 2 ] || bad=$((bad + 1))
done
is 'each of 30 processes has the status' [ $bad -eq 0 ]
is 'and they have asked together' [ "$(grep -c squeue "$S/calls")" -lt 30 ]

# --- jobs that Slurm has forgotten ------------------------------------------------------------

forget
run 'the record of a forgotten job has its status' 5 '' '' "$GPULEASE" --wait-for "$five"
run 'a forgotten job that has ended can be waited for' 0 '' 'gpulease: job [1-9]*' \
	"$GPULEASE" --submit --follow -n 0 --after "$five" -- true
run 'a forgotten job that has failed' 124 '' "gpulease: gave up: job $five has ended with status 5" \
	"$GPULEASE" --submit -n 0 --after-ok "$five" -- true
run 'a forgotten job cannot be cancelled' 1 '' "gpulease: job $five has finished" \
	"$GPULEASE" --cancel "$five"
id=0
while [ "$id" -lt "$seven" ]; do
	submit -n 0 -- echo new
done
is 'an id is used again' [ "$id" -eq "$seven" ]
run 'its job has a status of its own' 0 '' '' "$GPULEASE" --wait-for "$id"
run 'and a log of its own' 0 new '' "$GPULEASE" --log "$id"
run 'a command in the foreground gives up after a forgotten job that has failed' 124 '' \
	"gpulease: gave up: job $five has ended with status 5" \
	"$GPULEASE" -n 0 --after-ok "$five" -- echo ran
run 'it runs after it in any case' 0 ran '' "$GPULEASE" -n 0 --after "$five" -- echo ran
run 'with afterok of --dependency' 124 '' "gpulease: gave up: job $five has ended with status 5" \
	"$GPULEASE" -n 0 -d "afterany:$five,afterok:$five" -- echo ran
run 'with afternotok it runs' 0 ran '' "$GPULEASE" -n 0 -d "afternotok:$five" -- echo ran
run 'with one of several conditions it runs' 0 ran '' \
	"$GPULEASE" -n 0 -d "afterok:$five?afternotok:$five" -- echo ran

finish

#!/bin/sh
# --notify: the command that is run when something happens to a job.
# shellcheck disable=SC2016,SC2034,SC2089,SC2090,SC2154,SC2317 # commands for other shells; functions called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
sim 2
program=$GPULEASE view=${GPULEASE%/*}/gpulease-view
events=$S/events

# the command appends "EVENT STATE STATUS TEXT" to $events
tell='echo "$GPULEASE_EVENT $GPULEASE_STATE ${GPULEASE_STATUS:-?} $GPULEASE_TEXT" >>'"$events"

# forget: once no notifier is left
forget() {
	wait_until '[ -z "$(notifiers)" ]'
	rm -f "$events"
}

# tells PATTERN: waits until the last event is one like this
tells() {
	tells_pattern=$1
	wait_until 'like "$tells_pattern" "$(tail -n 1 "$events" 2>/dev/null)"' ||
		{ sed 's/^/# /' "$events"; false; }
}

# count NAME: how often this event was told
count() {
	grep -c "^$1 " "$events"
}

# notifiers: the pids of the notifiers of this script
notifiers() {
	for notifier in $(strays); do
		! grep -qsx gpulease-notify "/proc/$notifier/comm" || echo "$notifier"
	done
}

# --- a plain job -------------------------------------------------------------------------

run 'a job with --notify has the output and the status of its command' 3 'out' 'err' \
	"$GPULEASE" --name train --notify "$tell" sh -c 'echo out; echo err >&2; exit 3'
is 'its end is told, with its status' tells \
	"ended failed 3 job 1 'train' ended: exit status 3, after *"
is 'its start was told before' [ "$(head -n 1 "$events")" = \
	"started running ? job 1 'train' has started on GPU 0" ]
is 'nothing else was told' [ "$(wc -l <"$events")" -eq 2 ]
is 'the notifier has ended' wait_until '[ -z "$(notifiers)" ]'


forget
GPULEASE_NOTIFY=$tell
export GPULEASE_NOTIFY
run 'GPULEASE_NOTIFY is the value of --notify' 0 '' '' "$GPULEASE" -n 0 true
is 'the end of a job without GPUs is told' tells 'ended finished 0 job 2 ended: exit status 0, after *'
forget
run '--dry-run tells nothing' 0 '*' '' "$GPULEASE" --dry-run true
run '--notify wins over GPULEASE_NOTIFY' 0 '' '' "$GPULEASE" --notify "echo own >>$events" true
is 'and is run instead' tells own
forget
run '--notify : tells nothing' 0 '' '' "$GPULEASE" --notify : true
unset GPULEASE_NOTIFY
run 'the next job' 0 '' '' "$GPULEASE" --notify "$tell" true
is 'is the first that tells something' wait_until '[ "$(paste -sd " " "$events" | cut -c 1-7)" = started ]'

run 'the command has no child' 0 '' '' "$GPULEASE" --notify true \
	sh -c 'read -r children <"/proc/self/task/$$/children"; echo "$children"; exec 3</dev/null'
run 'the status does not depend on a command that fails' 0 '' '' "$GPULEASE" --notify 'exit 7' true
# a pipe would not show what is said after the end of the job
"$GPULEASE" -v --notify 'exit 7' true 2>"$S/said"
is 'with -v it is said that the command has failed' wait_until \
	'grep -q "the command failed at .ended., with status 7" "$S/said"'
"$GPULEASE" --notify 'exit 7; no-such-program' true 2>"$S/said"
wait_until '[ -z "$(notifiers)" ]'
is 'without -v nothing is said' [ ! -s "$S/said" ]

# --- what the command gets ---------------------------------------------------------------

forget
look='if [ "$GPULEASE_EVENT" = started ]; then
	readlink /proc/$$/fd/* >'"$S/fds"'
	{ echo "$GPULEASE_ID:$GPULEASE_NAME:$GPULEASE_GPUS:$GPULEASE_RAN"
	echo "${GPULEASE_TOKEN-no token}:${GPULEASE_NOTIFY-no notify}"
	read -r pid comm state parent group session rest </proc/self/stat
	[ "$group" = "$$" ] && echo own group
	sed -n "s/^Max file locks *\([a-z0-9]*\) .*/\1/p" /proc/self/limits
	pwd; cat; } >'"$S/look.new"'
	mv '"$S/look.new $S/look"'
fi'
holder job -n 2 --name 'a b' --notify "$look"
wait_until '[ -e "$S/look" ]'
is 'the command gets id, name and GPUs, no token, no tag, its own group, an empty stdin' \
	[ "$(paste -sd ' ' "$S/look")" = "$(id_of job):a b:0,1:0 no token:no notify own group unlimited $PWD" ]
is 'and no descriptor but its own' [ "$(grep -v -e '^/dev/null$' -e '/fds$' "$S/fds")" = "$S/job.err" ]
is 'the notifier is no child of the job' [ -z "$(cat "/proc/$(pid_of job)/task/$(pid_of job)/children")" ]
release job
ended job
is 'the job ends' [ "$rc" -eq 0 ]

# --- a command that takes long -----------------------------------------------------------

forget
# open here, too: no side waits to open them, and no word is lost
mkfifo "$S/gate" "$S/inner"
exec 8<>"$S/inner" 9<>"$S/gate"
slow='if [ "$GPULEASE_EVENT" = started ]; then echo waits >>'"$events"'; read -r go <'"$S/gate"'; fi; '"$tell"
run 'a job ends while the command for its start runs' 5 '' '' "$GPULEASE" --notify "$slow" \
	sh -c "until grep -qs waits $events; do sleep 0.02; done; exit 5"
run 'and its GPUs are free' 0 '' '' "$GPULEASE" -n 2 -I true
is 'its end is not told yet' [ "$(count ended)" -eq 0 ]
echo go >&9
is 'its end is told after its start' tells 'ended failed 5 *'
is 'in this order' [ "$(cut -d ' ' -f 1 "$events" | paste -sd ' ')" = 'waits started ended' ]

forget
try sh -c 'exec "$0" --notify "$1" true 2>&1 | cat' "$GPULEASE" "read -r go <$S/gate; $tell"
is 'the reader of stderr does not wait for the command' [ "$rc$out" = 0 ]
is 'which still runs' [ ! -e "$events" ]
echo go >&9
is 'and goes on' tells 'started *'
echo go >&9
is 'up to the end' tells 'ended *'

# the notifier alone, with a scaled clock: at once it waits long, the command is killed after 0.2 s
forget
now=$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)
rm -f "$S/hangs"
{
	printf '%s\n' "s 9 $now 0 0" "e 9 $((now + 5000)) 0  "
} | GPULEASE_NOTIFY="$tell; echo \$\$ >>$S/hangs; sleep 1000 & sleep 1000" \
	"$view" notify 1 '' 1 200 2>"$S/said.new"
is 'the notifier kills a command that hangs, and runs the next one' [ "$(count started)$(count ended)" = 11 ]
is 'and all of its group' [ "$(pgrep -c -g "$(paste -sd , "$S/hangs")")" -eq 0 ]
is 'it says so with -v' [ "$(grep -c 'was killed' "$S/said.new")" -eq 2 ]

forget
{
	echo "q 9 $now 0 "
	# until the long wait was told
	wait_until '[ -e "$events" ]'
	echo "s 9 $((now + 500)) 0 1"
	echo "r 9 $((now + 600)) 0 "
	echo "e 9 $((now + 900)) 143 cancel bob"
} | GPULEASE_NOTIFY=$tell "$view" notify 0 '' 1
is 'a long wait is told' like 'waits-long waiting [?] job 9 has waited for *' "$(head -n 1 "$events")"
is 'once' [ "$(count waits-long)" -eq 1 ]
is 'the end has the name of the canceller' tells \
	'ended cancelled 143 job 9 was cancelled by bob, while it waited to start again'
echo "q 9 $now 0 " | GPULEASE_NOTIFY=$tell "$view" notify 0 '' 900000
is 'the end of its input ends the notifier without a word' [ "$(wc -l <"$events")" -eq 3 ]

# --- the ways to end ---------------------------------------------------------------------

forget
holder job --notify "$tell"
run 'a running job is cancelled' 0 '' '' "$GPULEASE" --cancel "$(id_of job)"
ended job
is 'that is told' tells "ended cancelled 143 job $(id_of job) was cancelled by *, after *"
forget
holder job -n 0 --notify "$tell"
run 'a job without GPUs is cancelled' 0 '' '' "$GPULEASE" --cancel "$(id_of job)"
ended job
is 'that is told, too' tells "ended cancelled 143 job $(id_of job) was cancelled by *, after *"

holder all -n 2
forget
waiter job --notify "$tell"
run 'a waiting job is cancelled' 0 '' '' "$GPULEASE" --cancel "$(ticket_of job)"
is 'that is told, without a start' tells "ended cancelled 143 job $(ticket_of job) was cancelled by *, before it started"
ended job
is 'its status is that of a cancelled job' [ "$rc" -eq 143 ]
forget
waiter job --notify "$tell"
kill -TERM "$(pid_of job)"
is 'a waiting job that a signal ends' tells "ended failed 143 job $(ticket_of job) ended: exit status 143, before it started"
ended job
is 'it dies of the signal' [ "$rc" -eq 143 ]
forget
run 'a job that gives up' 124 '' '*gave up*' "$GPULEASE" --max-wait 0 --notify "$tell" true
is 'that is told' tells 'ended failed 124 job * ended: exit status 124, before it started'
release_all all

forget
try "$GPULEASE" -t 2s --notify "$tell" sleep 1000
is 'a job that reaches its limit' tells 'ended timed-out 143 job * was ended at its time limit, after 2s'
is 'this was told before' [ "$(sed -n 's/^limit-soon running ? job [0-9]* //p' "$events")" = 'reaches its time limit in 1s' ]

# The limit after --extend counts: with a watchdog, with a supervisor, and in a process that holds a
# lease alone.
forget
soon='[ "$GPULEASE_EVENT" != limit-soon ] || echo "$GPULEASE_RAN" >>'"$S"
holder plain -n 0.3 -t 3s --notify "$soon/plain.soon"
holder tried -n 0.3 -t 3s --retries 1 --notify "$soon/tried.soon"
"$GPULEASE" --lease-only -n 0.3 -t 3s --notify "$soon/held.soon" >"$S/held" 2>&1 &
started="$started $!"
wait_until '[ -s "$S/held" ]'
for each in "$(id_of plain)" "$(id_of tried)" "$(sed -n 's/.* job \([0-9]*\) .*/\1/p' "$S/held")"; do
	run 'a limit is made longer' 0 '' '*, 4s in all' "$GPULEASE" --extend "$each" 1s
done
ended plain
ended tried
wait_until '[ -z "$(notifiers)" ]'
for each in plain tried held; do
	is "$each: it is told once, when it is near" [ "$(cat "$S/$each.soon")" = 3 ]
done

# --- supervised jobs ---------------------------------------------------------------------

forget
delay 1ms
configured
try "$GPULEASE" --retries 2 --notify "$tell" sh -c 'exit 4'
is 'a job that is tried again ends once' tells 'ended failed 4 *'
is 'and starts with each attempt' [ "$(count started)$(count ended)$(wc -l <"$events")" = 314 ]
GPULEASE=$program

forget
id=$("$GPULEASE" --submit --notify "$tell" true)
is 'a job in the background' tells "ended finished 0 job $id ended: *"
forget
id=$("$GPULEASE" --submit --notify 'echo from the command >&2' true)
is 'the log has what the command says' wait_until \
	'[ "$("$GPULEASE" --log "$id" | grep -c "from the command")" -eq 2 ]'

forget
printf '%s\n' 'exit 1' 'exit 2' >"$S/jobs"
GPULEASE_NOTIFY=$tell "$GPULEASE" --batch "$S/jobs" >"$S/out" 2>&1
is 'each job of a batch' wait_until '[ "$(count ended)" -eq 2 ]'
is 'with its own status' [ "$(sed -n 's/^ended failed \([0-9]\) .*/\1/p' "$events" | sort | paste -sd ' ')" = '1 2' ]

forget
echo 'max-priority = 1000' >"$S/conf"
configured
holder all -n 2 --preemptible --notify "$tell"
rm -f "$S/all.runs"
begin high --priority 5
is 'a job that is sent back' wait_until '[ "$(count preempted)" -eq 1 ]'
wait_until 'runs high'
is 'the one that it gives way to is named' like \
	"preempted waiting [?] job * was sent back into the queue, for job $(id_of high), after *" \
	"$(grep '^preempted' "$events")"
release_all high
wait_until 'runs all'
is 'it starts again' wait_until '[ "$(count started)" -eq 2 ]'
release_all all
is 'and ends once' tells 'ended finished 0 *'
GPULEASE=$program

# --- a killed process --------------------------------------------------------------------

forget
holder job --report --notify "$tell"
wait_until '[ -n "$(notifiers)" ]'
kill -KILL "$(pid_of job)"
is 'a killed supervisor takes its notifier with it' wait_until '[ -z "$(notifiers)" ]'
is 'and nothing more is told' [ "$(count ended)" -eq 0 ]
# its command still runs
kill -KILL "$(cut -d ' ' -f 1 "$S/job.runs")"

forget
holder job --report --notify "$tell"
wait_until '[ -n "$(notifiers)" ]'
kill -KILL "$(notifiers)"
release_all job
is 'a killed notifier does not hurt the job' [ "$rc" -eq 0 ]
holder job --notify "$tell"
wait_until '[ -n "$(notifiers)" ]'
kill -KILL "$(notifiers)"
release_all job
is 'nor a plain one' [ "$rc" -eq 0 ]
is 'its end is in the history' wait_until '"$GPULEASE" --history | grep -q "finished.* 0 "'

# --- another job around it ---------------------------------------------------------------

forget
holder outer --report
run 'a step has no notifier of its own' 125 '' '*leave --notify out' env \
	GPULEASE_TOKEN="$(tr '\0' '\n' <"/proc/$(cut -d ' ' -f 1 "$S/outer.runs")/environ" |
		sed -n 's/^GPULEASE_TOKEN=//p')" "$GPULEASE" --notify "$tell" true
release_all outer
run 'GPULEASE_NOTIFY is for the job, not for a step' 0 '' '' env GPULEASE_NOTIFY="$tell" \
	"$GPULEASE" "$GPULEASE" true
is 'its end is told' tells 'ended finished 0 *'
is 'the step tells nothing' [ "$(wc -l <"$events")" -eq 2 ]

# a submitted job in a job that is cancelled: its notifier is no process of the job around it
forget
"$GPULEASE" --report -- sh -c '"$1" --submit -n 0 --notify "$2" sh -c "read -r go <$3" >"$4"
	echo "$GPULEASE_ID" >"$5"
	exec sleep 1000' sh "$GPULEASE" "$tell" "$S/inner" "$S/inner.id" "$S/outer.id" 2>"$S/outer.err" &
echo $! >"$S/outer.pid"
started="$started $!"
is 'a job that a job has submitted' tells 'started *'
wait_until '[ -s "$S/outer.id" ]'
run 'the job around it is cancelled' 0 '' '' "$GPULEASE" --cancel "$(cat "$S/outer.id")"
ended outer
echo go >&8
is 'its end is told after the job around it was ended' tells 'ended finished 0 *'

# --- leases without a command ------------------------------------------------------------

forget
"$GPULEASE" --lease-only --notify "$tell" >"$S/held.out" 2>&1 </dev/null &
echo $! >"$S/held.pid"
started="$started $!"
is 'a lease without a command' tells 'started running [?] job * has started on GPU 0'
kill -TERM "$(pid_of held)"
is 'its end' tells 'ended finished 0 *'
forget
run 'a lease for a shell' 0 0 '*' sh -c 'eval "$("$0" --shell --notify "$1")"; echo "$CUDA_VISIBLE_DEVICES"' \
	"$GPULEASE" "$tell"
is 'ends with the shell' tells 'ended * job * ended*'
run 'a process that has its GPUs already' 125 '' '*exclude each other*' "$GPULEASE" --lease-only \
	--pid $$ --notify "$tell"

# --- old kernels -------------------------------------------------------------------------

forget
without_pidfds
run 'without pidfds' 3 '' '' "$GPULEASE" --notify "$tell" sh -c 'exit 3'
is 'the end of a job is told all the same' tells 'ended * job * ended*'
GPULEASE=$program

# --- a command that cannot be started ----------------------------------------------------

forget
printf '#!/no/such/interpreter\n' >"$S/broken"
chmod +x "$S/broken"
run 'a command that cannot be executed' 127 '' '*interpreter*' "$GPULEASE" --notify "$tell" "$S/broken"
is 'that is told as an end' tells 'ended failed 127 *'

# --- GPUs that are not used ----------------------------------------------------------------

forget
# shellcheck source=tests/cli/unused_lib.sh
. "$CLI/unused_lib.sh"
for kind in '' --report; do
	machine 2
	sed -i '/record-ends/d' "$S/conf"
	forget
	# shellcheck disable=SC2086 # an option, or none
	holder job $kind --notify "$tell"
	is "a job that does not use its GPUs ($kind)" tells \
		"idle running [?] job $(id_of job) has not used GPU 0 for 1s*"
	release_all job
	is 'then ends' tells 'ended finished 0 *'
done
GPULEASE=$program
unset GPULEASE_DIR

# --- when it was, and how --------------------------------------------------------------------

forget
sim 2
run 'a command that a signal ends' 137 '' '' sh -c '
	"$1" --notify "$2" sh -c "kill -9 \$\$" 2>/dev/null' - "$GPULEASE" 'echo "$GPULEASE_EVENT $GPULEASE_RAN" >>'"$events"
is 'the end is told' tells 'ended *'
"$GPULEASE" --history 1 --json >"$S/out"
is 'with the time that the job ran, whenever that is told' \
	[ "$(sed -n 's/^ended //p' "$events")" -le $(($("$TOOLS/jsoncheck" jobs.0.ran_at_most_ms <"$S/out") / 1000)) ]

# the shell goes on and ends with 0, which is no status of the job
forget
sh -c 'eval "$("$1" --notify "$2" --shell)"; "$1" --cancel "$GPULEASE_ID"; exit 0' - "$GPULEASE" \
	"$tell" 2>/dev/null
is 'the end of the lease of a shell that was cancelled' tells 'ended cancelled [?] job * was cancelled by *'
sh -c 'eval "$("$1" --notify "$2" --time 1s --shell)"; echo "$GPULEASE_ID" >"$3"; sleep 1000; exit 0' \
	- "$GPULEASE" "$tell" "$S/shell" 2>/dev/null
is 'of one that reached its time limit' tells 'ended timed-out [?] job *'
run 'which is no success' 124 '' '' "$GPULEASE" --wait-for "$(cat "$S/shell")"

# --- without a notifier ------------------------------------------------------------------

mkdir "$S/alone"
cp "$program" "$S/alone/gpulease"
run 'without gpulease-view the job runs all the same' 6 '' '*needs gpulease-view*' \
	"$S/alone/gpulease" --notify "$tell" sh -c 'exit 6'
finish

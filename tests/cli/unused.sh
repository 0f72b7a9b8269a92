#!/bin/sh
# Jobs that do not use their GPUs: how they are told, shown, warned and ended, and what is never
# ended.  The clock is scaled: a sample each 200 ms, told after 1 s, ended after 3 s.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
# lines of the sample child would end in the test's own jobs
program=$GPULEASE
configured
unset COLUMNS

# settings LINE…: the scaled keys, then these lines
settings() {
	printf '%s\n' 'record-ends = yes' 'idle-interval = 200ms' 'idle-after = 1s' \
		'idle-end = 3s' 'probe-deadline = 1s' "$@" >"$S/conf"
}

# machine N: a fresh machine with N idle GPUs
machine() {
	fresh
	gpus "$1"
	settings
}

# busy GPU PERCENT
busy() {
	echo "$2" >"$FAKE_SMI_DIR/util.$1.new" && mv "$FAKE_SMI_DIR/util.$1.new" "$FAKE_SMI_DIR/util.$1"
}

# shown GPU MEMBER: a member of the first lease of the GPU in --status --json
shown() {
	"$GPULEASE" --status --json | "$TOOLS/jsoncheck" "gpus.$1.leases.0.$2"
}

# span_of GPU MEMBER: the same of a time, 0 if it is null
span_of() {
	shown "$1" "$2" 2>/dev/null | sed 's/[^0-9].*/0/'
}

# status_says TEXT
status_says() {
	"$GPULEASE" --status | grep -q "$1"
}

# sees N: until N more samples of the use were taken
seen_at() {
	sed -n 's/.* seen=\([0-9]*\) .*/\1/p' "$GPULEASE_DIR"/live/*.use 2>/dev/null | sort -n | tail -n 1
}
sees() {
	sees_from=$(seen_at)
	wait_until '[ "$(($(seen_at) + 0))" -ge $((${sees_from:-0} + '"$1"' * 200)) ]'
}

# told NAME TEXT: how many lines with the text its stderr has
told() {
	grep -c "$2" "$S/$1.err"
}

# past ID MEMBER: a member of the ended job in --history --json, without quotes
past() {
	"$GPULEASE" --history all --json | tr -d ' \n' | tr '{' '\n' |
		sed -n "s/^\"ticket\":$1,.*\"$2\":\"*\([^\",]*\).*/\1/p"
}

# ended_as ID: "HOW STATE STATUS" in the history
ended_as() {
	echo "$(past "$1" how) $(past "$1" state) $(past "$1" status)"
}

# guards: the pids of the watchdogs of this script
guards() {
	for pid in $(strays); do
		! grep -sqx gpulease-limit "/proc/$pid/comm" || echo "$pid"
	done
}

# strays_run NAME: whether a process of this script runs that program
strays_run() {
	for pid in $(strays); do
		! grep -sqx "$1" "/proc/$pid/comm" || return 0
	done
	return 1
}

# --- told and shown ------------------------------------------------------------------------

machine 2
holder one -n 1
id=$(id_of one)
is 'an unused job is told' wait_until '[ -s "$S/one.err" ]'
is 'the line names the job, the GPU, the time, and the way to give it back' like \
	"gpulease: job $id has not used GPU 0 for 1s; to give it back: gpulease --cancel $id" \
	"$(cat "$S/one.err")"
is '--status names the job and its GPU' status_says "^GPU 0: job $id has not used it for [1-9]"
is '--json says unused' [ "$(shown 0 unused)" = true ]
is '--json says watched' [ "$(shown 0 watched)" = true ]
is '--json has the time of the GPU' [ "$(span_of 0 unused_for_ms)" -ge 1000 ]
is '--json has the time in all' [ "$(span_of 0 unused_ms)" -ge 500 ]
is '--json has the mean' [ "$(shown 0 utilization_mean_percent)" = 0 ]
is '--json has no longer time' [ "$(shown 0 unused_ok) $(shown 0 unused_ok_ms)" = 'false null' ]
run '--json is JSON' 0 '' '' sh -c '"$0" --status --json | "$1"' "$GPULEASE" "$TOOLS/jsoncheck"
wait_until '[ "$(span_of 0 unused_for_ms)" -ge 4000 ]'
is 'it is told once' [ "$(wc -l <"$S/one.err")" -eq 1 ]
is 'without a waiting job it is not ended' kill -0 "$(pid_of one)"
busy 0 70
is 'a job that uses its GPU is not shown' wait_until '! status_says "has not used"'
is 'its time begins anew' [ "$(span_of 0 unused_for_ms)" -eq 0 ]
is 'its time in all stays' [ "$(span_of 0 unused_ms)" -ge 3000 ]
is 'the mean counts all samples' wait_until '[ "$(shown 0 utilization_mean_percent)" -ge 5 ]'
busy 0 0
is 'it is told again when it does not use it again' wait_until \
	'[ "$(told one "has not used")" -eq 2 ]'
release_all one
is 'the history has an end by itself' wait_until "[ \"\$(ended_as $id)\" = 'ended finished 0' ]"
is '--history --json has the time at 0 %' [ "$(past "$id" unused_ms)" -ge 3000 ]
is '--history has the column' like '*AT 0%*' "$("$GPULEASE" --history all)"
is '--accounting has the column' like '*AT 0%*' "$("$GPULEASE" --accounting)"
is 'nothing is left of the use once another job has come' sh -c \
	'"$0" true; "$0" true; [ "$(ls "$1/live" | grep -c "\.use$")" -le 1 ]' "$GPULEASE" "$GPULEASE_DIR"

# --- only while another job waits for its GPUs -----------------------------------------------

machine 2
busy 1 90
holder one -n 1 --gpu-ids 0
holder two -n 1 --gpu-ids 1
waiter next -n 1 --gpu-ids 1
id=$(id_of one)
wait_until '[ "$(span_of 0 unused_for_ms)" -ge 4000 ]'
is 'a waiting job that wants another GPU ends no job' [ "$(told one 'other jobs wait')" -eq 0 ]
is '--queue does not call a used GPU unused' like '*' "$("$GPULEASE" --queue)"
waiter both -n 2
is 'it is warned' wait_until '[ "$(told one "other jobs wait: it ends in")" -ge 1 ]'
ended one
is 'an unused job is ended while a job waits for its GPUs' [ "$rc" -eq 143 ]
is 'it is warned twice' [ "$(told one 'other jobs wait: it ends in .* unless it uses the GPU; to give it back: gpulease --cancel')" -eq 2 ]
is 'it is told the end' [ "$(told one 'and other jobs wait: TERM now')" -eq 1 ]
is 'the history says how' wait_until "[ \"\$(ended_as $id)\" = 'unused timed-out 143' ]"
is '--history says why' like '*timed-out, unused*' "$("$GPULEASE" --history all)"
is '--history --json has the time at the end' [ "$(past "$id" unused_at_end_ms)" -ge 3000 ]
is 'the busy job runs' kill -0 "$(pid_of two)"
is 'the busy job was told nothing' [ ! -s "$S/two.err" ]
release_all two
wait_until 'runs next'
release_all next
wait_until 'runs both'
release_all both

machine 1
busy 0 99
holder one
waiter next
sees 20
is 'a busy job is not ended while a job waits' kill -0 "$(pid_of one)"
is 'a busy job is told nothing' [ ! -s "$S/one.err" ]
busy 0 0
wait_until '[ "$(told one "it ends in")" -ge 1 ]'
busy 0 5
sees 8
is 'a warned job that uses its GPU again is not ended' kill -0 "$(pid_of one)"
is 'it had no second warning, or it had no end' [ "$(told one 'TERM now')" -eq 0 ]
busy 0 0
ended one
is 'later it is ended' [ "$rc" -eq 143 ]
is 'with two warnings before that end' [ "$(told one 'it ends in')" -ge 3 ]
wait_until 'runs next'
is 'the waiting job starts' runs next
release_all next

machine 1
holder one
waiter next
wait_until 'like "*; unused: GPU 0 of job $(id_of one) for *" "$("$GPULEASE" --queue)"'
is 'WHY of the head names the unused lease' like "*; unused: GPU 0 of job $(id_of one) for *" \
	"$("$GPULEASE" --queue)"
kill -TERM "$(pid_of next)"
ended next
ended_ms=$(span_of 0 unused_for_ms)
wait_until '[ "$(span_of 0 unused_for_ms)" -ge $((ended_ms + 3000)) ]'
is 'a waiting job that gives up ends no job' kill -0 "$(pid_of one)"
release_all one

# --- supervised jobs -------------------------------------------------------------------------

machine 1
id=$("$GPULEASE" --submit --retries 2 -o "$S/log" -- sleep 1000)
is 'a background job is told in its log' wait_until \
	'grep -sq "job $id has not used GPU 0 for 1s; to give" "$S/log"'
waiter next
is 'a background job is ended' wait_until '[ "$(ended_as "$id")" = "unused timed-out 124" ]'
is 'its log has two warnings' [ "$(grep -c 'it ends in' "$S/log")" -eq 2 ]
is 'its log has the end' [ "$(grep -c 'TERM now' "$S/log")" -eq 1 ]
wait_until 'runs next'
run 'it is not tried again' 0 'no job waits*' '' "$GPULEASE" --queue
release_all next
run '--wait-for tells its status' 124 '*' '*' "$GPULEASE" --wait-for "$id"

machine 1
holder one --report
waiter next
ended one
is 'a supervised job in the foreground exits with 124' [ "$rc" -eq 124 ]
is '--report says why it has ended' like '*GPU not used, *' "$(cat "$S/one.err")"
is '--report has the time at 0 %' like '*; at 0 % for *' "$(cat "$S/one.err")"
wait_until 'runs next'
release_all next

# --- --idle-ok -------------------------------------------------------------------------------

for way in '--idle-ok' '--idle-ok=1h'; do
	machine 1
	holder one "$way"
	waiter next
	wait_until '[ "$(span_of 0 unused_for_ms)" -ge 4000 ]'
	is "$way: the job is not ended" kill -0 "$(pid_of one)"
	is "$way: it is told nothing" [ ! -s "$S/one.err" ]
	is "$way: --status does not name it" eval '! status_says "has not used"'
	is "$way: --json says so" [ "$(shown 0 unused_ok) $(shown 0 unused)" = 'true false' ]
	release_all one
	release_all next
done
run '--idle-ok needs a time' 125 '' '*--idle-ok*' "$GPULEASE" --idle-ok=soon true

# --- what is never ended -----------------------------------------------------------------------

# survives TEXT: results, good if job `one` is not ended and not told, although `next` waits
survives() {
	sees_many=$(calls)
	wait_until '[ "$(calls)" -ge $((sees_many + 25)) ]'
	is "$1: the job is not ended" kill -0 "$(pid_of one)"
	is "$1: the job is told nothing" [ ! -s "$S/one.err" ]
	is "$1: --status does not call it unused" eval '! status_says "has not used"'
	is "$1: --json does not call it unused" [ "$(shown "${2-0}" unused)" = false ]
}
calls() {
	grep -c gpus "$FAKE_SMI_DIR/count"
}

machine 1
holder one -n 0.5
waiter next -n 1
survives 'a share'
is 'a share is watched' [ "$(shown 0 watched)" = true ]
release_all one
wait_until 'runs next'
release_all next

machine 1
echo Enabled >"$FAKE_SMI_DIR/mig.0"
echo '0 0 3g.40gb MIG-aaaaaaaa-0000' >"$FAKE_SMI_DIR/migs"
holder one -n 1
waiter next -n 1
survives 'a MIG instance' 1
release_all one
wait_until 'runs next'
release_all next

machine 1
echo '[N/A]' >"$FAKE_SMI_DIR/util.0"
holder one
waiter next
survives 'a GPU whose use is not shown'
release_all one
wait_until 'runs next'
release_all next

machine 1
holder one
waiter next
sees 3
echo 9 >"$FAKE_SMI_DIR/exit"
: >"$FAKE_SMI_DIR/gpus.raw"
survives 'an nvidia-smi that fails'
rm "$FAKE_SMI_DIR/exit" "$FAKE_SMI_DIR/gpus.raw"
is 'once nvidia-smi answers, the job is told' wait_until '[ "$(told one "has not used")" -ge 1 ]'
release_all one
wait_until 'runs next'
release_all next

machine 1
holder one
sees 1
: >"$FAKE_SMI_DIR/hang"
wait_until 'strays_run sleep' # the nvidia-smi that hangs
id=$(id_of one)
release_all one
is 'a hanging sample does not delay the end of the job' wait_until "[ \"\$(ended_as $id)\" = 'ended finished 0' ]"
is 'no watchdog is left' wait_until '[ -z "$(guards)" ]'
is 'no sample is left' wait_until '! strays_run gpulease'
is 'no nvidia-smi is left' wait_until '! strays_run sleep'
rm "$FAKE_SMI_DIR/hang"
run 'the GPU is free' 0 '' '' "$GPULEASE" -I true

machine 1
"$GPULEASE" --submit -o "$S/log" sleep 1000 >/dev/null
wait_until '[ "$(seen_at)" ]'
: >"$FAKE_SMI_DIR/hang"
wait_until 'strays_run nvidia-smi || [ "$(calls)" -ge 3 ]'
"$GPULEASE" --cancel all --yes >/dev/null 2>&1
rm "$FAKE_SMI_DIR/hang"
is 'a hanging sample does not delay the end of a background job' wait_until \
	'"$GPULEASE" -I true 2>/dev/null'
is 'no sample of it is left' wait_until '[ -z "$(strays)" ]'

# --- a watchdog that is gone -------------------------------------------------------------------

machine 1
holder one
id=$(id_of one)
waiter next
sees 3
kill -KILL "$(guards)"
is 'a killed watchdog: --status says so' wait_until "status_says '^GPU 0: job $id is not watched any more'"
is 'a killed watchdog: --json says so' [ "$(shown 0 watched) $(shown 0 unused)" = 'false false' ]
is 'a killed watchdog: the job runs' kill -0 "$(pid_of one)"
is 'a killed watchdog: there is no end' [ "$(told one 'TERM now')" -eq 0 ]
release_all one
wait_until 'runs next'
release_all next

# as after a suspend: no process took samples for a while
machine 1
holder one
waiter next
wait_until '[ "$(told one "it ends in")" -ge 1 ]' # a second later it would be ended
guard=$(guards)
kill -STOP "$guard"
seen=$(seen_at)
wait_until '[ "$(($(cut -d . -f 1 /proc/uptime) * 1000))" -ge $((seen + 3000)) ]'
kill -CONT "$guard"
sees 2
is 'after a gap the time begins anew' [ "$(span_of 0 unused_for_ms)" -lt 2500 ]
is 'after a gap the job runs' kill -0 "$(pid_of one)"
ended one
is 'then it is warned twice again' [ "$(told one 'it ends in')" -ge 3 ]
wait_until 'runs next'
release_all next

# --- many jobs, one nvidia-smi -------------------------------------------------------------------

machine 30
sed -i 's/idle-interval.*/idle-interval = 1s/; s/idle-end.*/idle-end = none/' "$S/conf"
many=
for each in $(seq 30); do
	begin "m$each" --gpu-ids $((each - 1))
	many="$many m$each"
done
for each in $many; do
	wait_until "runs $each" || bail "$each: $(cat "$S/$each.err")"
done
watched() {
	"$GPULEASE" --status --json | tr -d ' \n' | tr '{' '\n' | grep -c '"unused_ms":[1-9]'
}
wait_until '[ "$(watched)" -eq 30 ]'
read -r from _ </proc/uptime
before=$(calls)
wait_until '[ $(($(cut -d . -f 1 /proc/uptime) - ${from%.*})) -ge 10 ]'
after=$(calls)
read -r to _ </proc/uptime
seconds=$((${to%.*} - ${from%.*} + 2))
is '30 jobs need one nvidia-smi in each interval' [ $((after - before)) -le $((seconds * 3 / 2)) ]
echo "# $((after - before)) calls in $seconds s"
is 'all of 30 jobs are watched' [ "$(watched)" -eq 30 ]
# shellcheck disable=SC2086 # one word each
release_all $many

# --- jobs of other kinds -------------------------------------------------------------------------

machine 1
sed -i 's/idle-end.*/idle-end = none/' "$S/conf"
holder one
id=$(id_of one)
"$GPULEASE" --join "$id" -- sleep 1000 2>/dev/null &
started="$started $!"
wait_until '[ "$(told one "has not used")" -eq 1 ]'
is 'a job with a step is told once' [ "$(told one 'has not used')" -eq 1 ]
release_all one

machine 1
sleep 1000 &
adopted=$!
started="$started $adopted"
"$GPULEASE" --lease-only --pid "$adopted" >"$S/out" 2>"$S/err"
is 'an adopted process is watched' wait_until '[ "$(shown 0 watched) $(shown 0 unused)" = "true true" ]'
waiter next
wait_until 'runs next'
is 'an adopted process is ended' eval '! kill -0 "$adopted" 2>/dev/null'
release_all next

# --- the stderr of a job -------------------------------------------------------------------------

machine 1
"$GPULEASE" sleep 1000 2>&- &
closed=$!
started="$started $closed"
wait_until 'status_says "has not used"'
is 'a job without stderr runs' kill -0 "$closed"
waiter next
wait "$closed"
is 'a job without stderr is ended' [ $? -eq 143 ]
wait_until 'runs next'
release_all next

machine 1
mkfifo "$S/pipe"
cat "$S/pipe" >/dev/null &
reader=$!
"$GPULEASE" sleep 1000 2>"$S/pipe" &
piped=$!
started="$started $piped"
kill -KILL "$reader"
wait_until 'status_says "has not used"'
is 'a job whose stderr has no reader runs' kill -0 "$piped"
waiter next
wait "$piped"
is 'a job whose stderr has no reader is ended' [ $? -eq 143 ]
wait_until 'runs next'
release_all next

machine 1
(exec script -qefc "'$GPULEASE' sleep 1000" "$S/typescript" >/dev/null 2>&1) &
started="$started $!"
if command -v script >/dev/null 2>&1; then
	is 'a job on a terminal is told there' wait_until \
		'grep -aq "has not used GPU 0 for 1s; to give it back" "$S/typescript"'
else
	skip 'a job on a terminal is told there' 'script is not installed'
fi

# --- --sample ------------------------------------------------------------------------------------

machine 1
settings
sed -i 's/idle-interval.*/idle-interval = 1h/' "$S/conf"
holder one
id=$(id_of one)
run '--sample needs an id' 125 '' '*--sample*' "$GPULEASE" --sample
run '--sample of no number is refused' 125 '' '*' "$GPULEASE" --sample name
run '--sample of an unknown job does nothing' 1 '' '*' "$GPULEASE" --sample 999
is 'nothing was written' [ "$(ls "$GPULEASE_DIR/live" | grep -c '\.use$')" -eq 0 ]
run '--sample of a job prints its record' 0 'use/1 seen=*' '' "$GPULEASE" --sample "$id"
is 'one file was written' [ "$(ls "$GPULEASE_DIR/live" | grep -c '\.use$')" -eq 1 ]
release_all one
run '--sample of a finished job does nothing' 1 '' '*' "$GPULEASE" --sample "$id"
finish

#!/bin/sh
# Jobs that do not use their GPUs: how they are told, shown, warned and ended.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # conditions, functions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
# shellcheck source=tests/cli/unused_lib.sh
. "$CLI/unused_lib.sh"

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
is 'the history has an end by itself' wait_until "has_ended $id ended finished 0"
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
"$GPULEASE" --queue >"$S/queue"
is 'WHY of the head names no GPU that it may not have' eval '! grep -q "unused" "$S/queue"'
waiter both -n 2
is 'it is warned' wait_until '[ "$(told one "other jobs wait: it ends in")" -ge 1 ]'
ended one
is 'an unused job is ended while a job waits for its GPUs' [ "$rc" -eq 143 ]
is 'it is warned twice' [ "$(told one 'other jobs wait: it ends in .* unless it uses the GPU; to give it back: gpulease --cancel')" -eq 2 ]
is 'it is told the end' [ "$(told one 'and other jobs wait: TERM now')" -eq 1 ]
is 'the history says how' wait_until "has_ended $id unused timed-out 124"
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
stop next
sees 20
is 'a stopped job that waits ends no job' kill -0 "$(pid_of one)"
is 'and warns none' [ "$(told one 'it ends in')" -eq 0 ]
wake next
is 'it counts again once it goes on' wait_until '[ "$(told one "it ends in")" -ge 1 ]'
kill -TERM "$(pid_of next)"
ended next
release_all one

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
is 'a background job is ended' wait_until "has_ended $id unused timed-out 124"
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
is '--report has the time at 0 %' like '*1 GPU, * GPU-seconds, [23].* GPU-seconds at 0 %*' \
	"$(cat "$S/one.err")"
wait_until 'runs next'
release_all next

machine 2
busy 1 50
holder one -n 2 --report
wait_until '[ "$(span_of 0 unused_ms)" -ge 500 ]'
release_all one
is '--report does not call the GPU that was used unused' \
	eval 'grep -q "GPU-seconds at 0 %" "$S/one.err" && ! grep -q "GPU 1.*at 0 %" "$S/one.err"'

# --- --idle-ok -------------------------------------------------------------------------------

for way in '--idle-ok' '--idle-ok=1h'; do
	machine 1
	holder one "$way"
	waiter next
	wait_until '[ "$(span_of 0 unused_for_ms)" -ge 4000 ]'
	is "$way: the job is not ended" kill -0 "$(pid_of one)"
	is "$way: it is told nothing" [ ! -s "$S/one.err" ]
	is "$way: --status says that it may" status_says \
		"^GPU 0: job $(id_of one) has not used it for [0-9]*s, as its --idle-ok allows$"
	is "$way: --json says so" [ "$(shown 0 unused_ok) $(shown 0 unused)" = 'true false' ]
	release_all one
	release_all next
done
run '--idle-ok needs a time' 125 '' '*--idle-ok*' "$GPULEASE" --idle-ok=soon true
finish

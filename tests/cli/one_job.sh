#!/bin/sh
# --status ID: what it shows of jobs that wait, run or have ended.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# of ID PATH…: the values of --status ID --json at these paths of the job, in one line
of() {
	of_id=$1
	shift
	for each in "$@"; do
		"$GPULEASE" --status "$of_id" --json | "$TOOLS/jsoncheck" "jobs.0.$each"
	done | tr '\n' ' ' | sed 's/ $//'
}

# state ID WANTED: whether that is the job's state
state() {
	[ "$(of "$1" state)" = "$2" ]
}

running() {
	holder a -n 2 --name train -t 4h
	id=$(id_of a)
	run 'a running job' 0 "job        $id 'train'
state      running on GPU 0,1
user       $me
command    sh -c *
needs      2 GPUs
started    ??:??:??, *s ago
limit      4h00m, 3h59m left
pid        $(pid_of a)
GPU 0      0.0/24.0G in use*
GPU 1      0.0/24.0G in use*
log        $S/a.out" '' "$GPULEASE" --status "$id"
	is 'a running job as JSON' [ "$(of "$id" ticket state log running.name running.pid gpus.0 gpus.1 waiting)" = \
		"$id running $S/a.out train $(pid_of a) 0 1 null" ]
	holder half -n 0.5 --vram 8G
	holder other -n 0.25
	run 'a job that shares its GPU' 0 '*state      running on GPU 2
*needs      0.5 and 8G of a GPU
*GPU 2 *in use by 2 jobs*' '' "$GPULEASE" --status "$(id_of half)"
	holder bare -n 0 -t 1h
	run 'a job without a GPU' 0 '*state      running without a GPU
*limit      1h00m, 59m left
*' '' "$GPULEASE" --status "$(id_of bare)"
	release_all half other bare
}

waiting() {
	waiter b -n 4 --name next --priority=-3 -t 2h
	next=$(ticket_of b)
	run 'a waiting job' 0 "job        $next 'next'
state      waiting, 1st in the queue
why        needs 4 GPUs, 2 are free*
user       $me
command    sh -c *
needs      4 GPUs
priority   -3
queued     ??:??:??, *s ago
limit      2h00m" '' "$GPULEASE" --status "$next"
	is 'a waiting job as JSON' [ "$(of "$next" state waiting.position waiting.gpus running gpus log)" = \
		'waiting 1 4 null [] null' ] ||
		of "$next" state waiting.position waiting.gpus running log
	waiter c -n 1 --after "$id"
	run 'a job that comes after another one' 0 "*why        comes after job $id, *
after      $id
*" '' "$GPULEASE" --status "$(ticket_of c)"
	run 'several jobs, in the order in which they are named' 0 "job        $next *

job        $id *" '' "$GPULEASE" --status "$next" "$id,$next"
	release_all a b c
}

has_ended() {
	run 'a job that has ended' 0 "job        $id 'train'
state      ended*
user       $me
command    sh -c *
on GPU     0,1
waited     *s
started    ??:??:??
ended      ??:??:??, *s ago*" '' sh -c '"$1" --status "$2" | sed s/finished,/ended,/' sh \
		"$GPULEASE" "$id"
	is 'a job that has ended as JSON' [ "$(of "$id" running waiting ended.0.ticket ended.0.name)" = \
		"null null $id train" ]
}

retried() {
	id=$("$GPULEASE" --submit -Q -n 1 --retries 1 --name fails -- sh -c 'echo output; exit 3')
	is 'a job is tried again' wait_until '[ "$(of "$id" ended.0.attempt)" = 1 ]'
	is 'a job whose next attempt waits or runs is not over' \
		like '[wr]*' "$(of "$id" state)"
	"$GPULEASE" --wait-for "$id" 2>/dev/null
	log=$(state_dir)/logs/$id.log
	run 'a background job with two attempts' 0 "job        $id 'fails'
state      failed, exit status 3, ran *
user       $me
command    sh -c 'echo output; exit 3'
on GPU *
log        $log
attempt    2
attempt 1  failed, exit status 3, ran *" '' "$GPULEASE" --status "$id"
	run 'the number of its second ticket means the same job' 0 "job        $id *" '' \
		"$GPULEASE" --status $((id + 1))
	is 'the attempts as JSON' [ "$(of "$id" state log ended.0.attempt ended.1.attempt ended.1.status)" = \
		"failed $log 1 2 3" ]
	# the log of an older job with this id does not belong to this job
	touch -d 2001-01-01 "$log"
	is 'an older log is not shown' [ "$(of "$id" log)" = null ]
	"$GPULEASE" -Q -n 0 -- sh -c 'echo "$GPULEASE_ID"' >"$S/bare"
	run 'a job of which nothing was recorded' 0 'job *
state      ended; how is not recorded' '' "$GPULEASE" --status "$(cat "$S/bare")"
}

commands() {
	many=$(awk 'BEGIN { for (i = 1000; i < 1500; i++) printf "%d ", i }')
	# shellcheck disable=SC2086 # many words
	"$GPULEASE" -n 4 -- sleep 1000 $many 2>/dev/null &
	started="$started $!"
	wait_until '"$GPULEASE" --status | grep -q "sleep 1000"' || bail 'the job does not start'
	# shellcheck disable=SC2086
	"$GPULEASE" -n 4 -- sleep 1001 --of $many 2>"$S/long.err" &
	started="$started $!"
	wait_until 'grep -q waits "$S/long.err"' || bail 'the job does not wait'
	id=$(ticket_of long)
	for each in "$id" $((id - 1)); do
		"$GPULEASE" --status "$each" >"$S/out"
		is 'a long command is shown whole' grep -q 'sleep 100.* 1000 1001 .* 1498 1499 *$' "$S/out"
		"$TOOLS/onterminal" 80 "$GPULEASE" --status "$each" >"$S/out"
		is 'a long command is folded at 80 columns' awk 'length > 80 { exit 1 }' "$S/out"
		is 'and still whole' grep -q '^           .* 1499 *$' "$S/out"
	done
	"$GPULEASE" --cancel "$id" $((id - 1)) >/dev/null 2>&1
}

batches() {
	printf '%s\n' '[name=first] exec sleep 1000' 'false' >"$S/jobs.txt"
	"$GPULEASE" -Q -n 1 --batch "$S/jobs.txt" >"$S/batch.out" 2>&1 &
	runner=$!
	started="$started $runner"
	wait_until '"$GPULEASE" --status | grep -q first' || bail 'the batch does not start'
	id=$("$GPULEASE" --status --json | "$TOOLS/jsoncheck" gpus.0.ticket)
	run 'a job of a batch' 0 "job        $id 'first'
state      running on GPU 0
*log        $S/jobs.txt.logs/1-*.log" '' "$GPULEASE" --status "$id"
	kill "$runner"
	wait "$runner"
	is 'it has ended with its runner' wait_until '! state "$id" running'
}

# With a new ticket file the numbers start again from 1.
another_queue() {
	rm "$(state_dir)/tickets"
	holder a -n 1 --name newer
	is 'an attempt of an earlier job with that id is none of the job' \
		[ "$(of 1 running.name ended.0)" = "newer nothing at 'jobs.0.ended.0'" ] ||
		of 1 running.name ended.0
	release_all a
}

unknown() {
	no='gpulease: job 4711 is unknown; --status and --history list the jobs'
	run 'a job that does not exist' 1 '' "$no" "$GPULEASE" --status 4711
	run 'a job that does not exist, beside another one' 1 'job *' "$no" "$GPULEASE" --status 4711 1
	run 'a job that does not exist, as JSON' 1 '*"jobs": [[][]]*' "$no" "$GPULEASE" --status 4711 --json
	run 'what is no id' 125 '' "gpulease: --status: 'x' is not the id of a job*" "$GPULEASE" --status x
	run 'without a state there is no job' 1 '' 'gpulease: job 1 is unknown*' \
		env XDG_STATE_HOME="$S/nowhere" "$GPULEASE" --status 1
}

scratch
sim 4
me=$(id -un)
running
waiting
has_ended
retried
commands
batches
unknown
another_queue
finish

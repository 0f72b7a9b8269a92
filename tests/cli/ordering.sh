#!/bin/sh
# When a job starts: priorities, jobs that come after others, the protected head and the jobs that
# may go past it, limits, pauses, and what --dry-run says of all these.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/users_lib.sh
. "$(dirname "$0")/users_lib.sh"
scratch
with_driver
conf=$S/conf
program=$GPULEASE
configured
show='echo $CUDA_VISIBLE_DEVICES'
not_now='gpulease: not available at once:'

# conf LINE…: writes the configuration that is in force from now on
conf() {
	printf '%s\n' "$@" >"$conf"
}

# usual: every user who runs this script may ask for a higher priority.
usual() {
	conf 'max-priority = 1000'
}
usual

cards() {
	fresh
	rm -f "$S"/*.runs
	gpus "$1"
}

# waits NAME: whether the job has printed that it waits, and still waits
waits() {
	[ -s "$S/$1.err" ] && ! runs "$1"
}

said() {
	cat "$S/$1.err"
}

# leased FIELD: the values of this field in the leases on GPU 0
leased() {
	tr '\0' '\n' <"$GPULEASE_DIR/gpu/slot.0" | grep -o " $1=[^ ]*" | tr -d '\n'
}

# in_order TEXT NAME…: a result, good if the waiting jobs run in this order, one at a time, as
# each is released.
in_order() {
	in_order_text=$1 in_order_bad=''
	shift
	for each in "$@"; do
		wait_until 'runs "$each"' || in_order_bad="$in_order_bad $each does not run;"
		for other in "$@"; do
			[ "$other" = "$each" ] || ! runs "$other" ||
				in_order_bad="$in_order_bad $other runs beside $each;"
		done
		release_all "$each"
		rm -f "$S/$each.runs"
	done
	is "$in_order_text" [ -z "$in_order_bad" ]
}

# --- priority ----------------------------------------------------------------------------

cards 1
holder first
waiter low --priority -5
waiter plain
waiter high --priority 7
waiter same --priority=7
waiter zero --priority 0
is 'a later job of a higher priority waits for the lease' like \
	'gpulease: job 4 waits, 1st in the queue: needs 1 GPU, none is free' "$(said high)"
is 'a later job of the same priority waits behind the earlier one' like \
	'gpulease: job 5 waits, 2nd in the queue: behind job 4, which waits for 1 GPU' \
	"$(said same)"
release_all first
in_order 'jobs of higher priority start first, equal ones in order of arrival' high same plain \
	zero low
run "--priority '' is refused" 125 '' 'gpulease: --priority needs a value: --priority N' \
	"$GPULEASE" --priority= true
for each in x 1.5 1000001 -1000001 99999999999999999999 +1 --1; do
	run "--priority '$each' is refused" 125 '' \
		"gpulease: --priority: '$each' is not a priority; *" \
		"$GPULEASE" "--priority=$each" true
done
run 'in a queue of their own a user may ask for any priority' 0 0 '' env -u GPULEASE_DIR \
	GPULEASE_SIM=1 "$program" --priority 1000000 sh -c "$show"

# A job with a share and a high priority, and a job with a whole GPU and a lower priority.
cards 1
holder half -n 0.5
waiter whole
waiter high -n 0.75 --priority 1
run 'the job of the highest priority is the head' 124 '' \
	'*behind job 3, which waits for 0.75 of a GPU' \
	"$GPULEASE" -n 0.5 -I true
run 'a job of a still higher priority starts first' 0 0 '' \
	"$GPULEASE" -n 0.5 --priority 2 -I sh -c "$show"
release_all half
is 'the share of the high priority starts next' wait_until 'runs high'
is 'the whole GPU of the lower priority waits beside the share' waits whole
release_all high
is 'the whole GPU of the lower priority starts last' wait_until 'runs whole'
release_all whole

# --- the protected head ------------------------------------------------------------------

cards 2
holder half -n 0.5 --time 1h --grace 1m
waiter head -n 2
is 'the head says when it starts at the latest' like \
	'*needs 2 GPUs, 1 is free; at the latest about *' \
	"$(said head)"
run 'the other GPU is kept for the head' 124 '' \
	'*behind job 2, which waits for 2 GPUs until about *' "$GPULEASE" -I true
run 'the rest of the shared GPU is kept for the head' 124 '' '*behind job 2, *' \
	"$GPULEASE" -n 0.5 -I true
run 'a job that could run past the head'"'"'s start does not start' 124 '' '*behind job 2, *' \
	"$GPULEASE" -n 0.5 --time 2h -I true
# The lease of a job with a limit is over a moment later, once its watchdog has ended.
run 'a job that ends before the head'"'"'s start goes past the head' 0 0 '' \
	"$GPULEASE" -n 0.5 --time 30m -I sh -c "$show"
run 'a job that declares memory goes past the head, too' 0 0 '*' \
	"$GPULEASE" --vram 1G --time 30m --max-wait 20s sh -c "$show"
run 'the free GPU is leased to a job that ends before the head'"'"'s start' 0 1 '*' \
	"$GPULEASE" --time 30m --max-wait 20s sh -c "$show"
holder past --time 30m --grace 1m
release_all half
is 'the head waits for the job that went past it' waits head
release_all past
is 'the head starts when the job that went past it has ended' wait_until 'runs head'
release_all head

cards 2
holder half -n 0.5
waiter head -n 2
run 'no job goes past a head without a known start' 124 '' \
	'*behind job 2, which waits for 2 GPUs' "$GPULEASE" -n 0.1 --time 1m -I true
release_all half head

# A process that a job has left may end at any moment: its GPU is kept for the head as well.
cards 3
holder long --time 10h --gpu-ids 0
mkfifo "$S/left.hold"
run 'a job leaves a process' 0 '' '' "$GPULEASE" --gpu-ids 1 \
	sh -c 'cat "$1" >/dev/null 2>&1 & ' sh "$S/left.hold"
waiter head -n 2 --time 1h
is 'the head'"'"'s latest start does not count on the process left' like \
	'*1 is free; GPU 1 is kept by processes *; at the latest about *' "$(said head)"
begin past --time 5h
wait_until '[ -s "$S/past.err" ] || runs past'
is 'a job that would run past the head'"'"'s latest start waits' waits past
echo >"$S/left.hold"
is 'the head starts once the process left has ended' wait_until 'runs head'
release_all long head past

# For a moment after its end, the memory of one of several jobs on a GPU is still in use.
conf 'max-priority = 1000' 'settle-time = 10m'
cards 1
holder one -n 0.5
holder other -n 0.5
echo 20000 >"$FAKE_SMI_DIR/base.0"
waiter head -n 0.5
release_all other
wait_until '"$GPULEASE" --queue | grep -q "was just left by a job, but its memory is still held "'
is 'a head that waits for memory of an ended job says so' [ "$?" -eq 0 ]
run 'a head that waits for memory stays the head' 124 '' \
	'*behind job 3, which waits for 0.5 of a GPU' \
	"$GPULEASE" --vram 10G -I true
run 'the head stays protected after a later look at the GPU' 124 '' '*behind job 3, *' \
	"$GPULEASE" -n 0.2 -I true
rm "$FAKE_SMI_DIR/base.0"
is 'the head starts when the memory is free' wait_until 'runs head'
release_all one head
usual

cards 1
holder year --time 365d
waiter head
is 'the latest start in another year has its date' like \
	'*at the latest about 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9] ??:??' "$(said head)"
release_all year head

# The head needs a part of a GPU: the rest of the GPU is not kept for it.
cards 1
holder most -n 0.7 --time 1h
waiter head -n 0.5
run 'beside a head that wants a share the rest is free' 0 0 '' \
	"$GPULEASE" -n 0.3 -I sh -c "$show"
holder beside -n 0.3
release_all most
is 'a job beside the head does not delay it' wait_until 'runs head'
release_all beside head
holder most -n 0.4 --time 1h
holder other -n 0.4
waiter head -n 0.6
run 'a share that the head needs is not leased' 124 '' \
	'*behind job *, which waits for 0.6 of a GPU *' \
	"$GPULEASE" -n 0.2 -I true
release_all most other head

cards 2
run 'a GPU is paused' 0 '' '' "$GPULEASE" --pause 1 --reason 'a new fan'
waiter head -n 2
is 'a head that waits for a paused GPU says so' like \
	'*needs 2 GPUs, 1 is free; GPU 1 is paused by *: a new fan' "$(said head)"
run 'a head that waits for a pause keeps no share from other jobs' 0 0 '' "$GPULEASE" -n 0.5 \
	-I sh -c "$show"
run 'a head that waits for a pause keeps no GPU from other jobs' 0 0 '' "$GPULEASE" -I \
	sh -c "$show"
run 'the pause ends' 0 '' '' "$GPULEASE" --resume 1
is 'the head starts when the pause ends' wait_until 'runs head'
release_all head

# --- a pause in the middle ---------------------------------------------------------------

cards 1
holder half -n 0.5
waiter whole
run 'a GPU is paused while a job runs and a job waits' 0 '' '' "$GPULEASE" --pause 0
run 'no share of the paused GPU is leased' 124 '' '*GPU 0 is paused by *' "$GPULEASE" -n 0.5 \
	-I true
is 'the job on the paused GPU goes on' wait_until '[ "$(process_state "$(pid_of half)")" = S ]'
waiter next -n 0.5
release_all half
run 'the paused GPU is not leased when the job has ended' 124 '' '*GPU 0 is paused by *' \
	"$GPULEASE" -I true
is 'the waiting jobs wait for the end of the pause' waits whole
run 'the paused GPU is resumed' 0 '' '' "$GPULEASE" --resume 0
is 'after the resume the first waiting job starts' wait_until 'runs whole'
is 'after the resume the second job waits for the first' waits next
release_all whole next

# --- after others --------------------------------------------------------------------------

cards 2
holder first
waiter second --after "$(id_of first)"
is '--after: the waiter names the job that it waits for' like \
	'gpulease: job 2 waits, 1st in the queue: comes after job 1, which has not ended' \
	"$(said second)"
run '--after: the waiter keeps no GPU from other jobs' 0 1 '' "$GPULEASE" -I sh -c "$show"
release_all first
is '--after: the waiter starts when that job has ended' wait_until 'runs second'
release second 3
ended second
run '--after with ended jobs starts at once' 0 '?' '' "$GPULEASE" --after 1,2 -I sh -c "$show"
run '-d afterany with ended jobs starts at once' 0 '?' '' "$GPULEASE" -d afterany:1:2 -I \
	sh -c "$show"

cards 2
holder first -n 0.5
holder second -n 0.5
waiter both --after 1,2 -n 0.5
release_all first
is '--after several jobs: does not start after one of them' waits both
release_all second
is '--after several jobs: starts after all of them' wait_until 'runs both'
release_all both

cards 2
holder first -n 2
waiter second -n 2
waiter third -n 0 -d "after:1:$(ticket_of second)"
is '-d after: the waiter names the job that has not started' like \
	'gpulease: job 3 waits, 2nd in the queue: comes after job 2, which has not started' \
	"$(said third)"
release_all first
is '-d after: the waiter starts when that job has started' wait_until 'runs third'
is '-d after: that job has not ended then' kill -0 "$(pid_of second)"
run '-d after of a job that runs starts at once' 0 '' '' "$GPULEASE" -d after:2 -n 0 -I true
waiter fourth -n 1
waiter fifth -n 0 -d after:5
"$GPULEASE" --cancel 5
ended fourth
is '-d after: the waiter starts when that job was cancelled' wait_until 'runs fifth'
release_all second third fifth
run '-d after of jobs that have ended starts at once' 0 '' '' \
	"$GPULEASE" -d after:2:5 -n 0 -I true

after_ok() {
	cards 2
	holder good
	waiter ok --after-ok "$(id_of good)"
	release_all good
	is '--after-ok: starts after a job that ends with status 0' wait_until 'runs ok'
	release_all ok
	holder bad
	bad=$(id_of bad)
	waiter never --after-ok "$bad"
	release bad 3
	ended bad
	ended never
	is '--after-ok: gives up after a job that has failed' [ "$rc" -eq 124 ]
	is '--after-ok: the message has the status of the failed job' like \
		"*gpulease: gave up: job $bad has ended with status 3" "$(said never)"
	# The process that ended the job has a moment to record its end.
	wait_until '"$GPULEASE" --history --json | grep -q "\"status\": *3\>"'
	run '--after-ok of a job that failed before gives up' 124 '' \
		"*gpulease: gave up: job $bad has ended with status 3" \
		"$GPULEASE" --after-ok "$bad" true
	run '--dependency=afterok of a job that failed before gives up' 124 '' \
		"*gave up: job $bad has ended with status 3" \
		"$GPULEASE" --dependency=afterok:"$bad" true
	run '--after starts after a job that has failed' 0 '?' '' "$GPULEASE" --after "$bad" \
		-I sh -c "$show"
}

# From Linux 6.15 on, a process other than the parent can learn the exit status of a process.
cards 2
conf 'record-ends = yes'
"$GPULEASE" true
wait_until '[ -s "$GPULEASE_DIR/history" ]' || bail 'the end of a job is not recorded'
if grep -q ' status=0 ' "$GPULEASE_DIR/history"; then
	after_ok
else
	skip '--after-ok: starts after a job that ends with status 0' \
		'the kernel does not report how a process has ended'
fi
usual

cards 2
run 'a job ends, and its status is not recorded' 0 1 '' "$GPULEASE" sh -c 'echo $GPULEASE_ID'
run '--after-ok of a job without a recorded status gives up' 124 '' \
	'*gpulease: gave up: the exit status of job 1 is not recorded: it needs *--report' "$GPULEASE" --after-ok 1 true

cards 2
holder first
for option in --after --after-ok; do
	run "$option refuses a job that has never been" 125 '' 'gpulease: job 99 is unknown; --status and --history list the jobs' \
		"$GPULEASE" $option 1,99 true
	run "$option refuses the job's own id" 125 '' 'gpulease: job 2 is unknown; --status and --history list the jobs' "$GPULEASE" $option 2 true
	run "$option refuses 0" 125 '' "gpulease: $option: '0' is not the id of a job; they begin at 1" \
		"$GPULEASE" $option 0 true
	run "$option refuses too many jobs" 125 '' \
		"gpulease: $option: * names too many jobs; at most 6*" \
		"$GPULEASE" $option 1,1,1,1,1,1,1 true
	for each in x '' '1,' ',1' 1-2 -1 '1 2' 99999999999999999999; do
		run "$option '$each' is refused" 125 '' "gpulease: $option*: *" "$GPULEASE" \
			"$option=$each" true
	done
done
run 'a job without GPUs waits for --after' 124 '' '*comes after job 1, which has not ended' \
	"$GPULEASE" -n 0 --after 1 -I true
release_all first

# A chain: each job waits for the job before it, and a killed job has ended.
cards 2
holder a
waiter b --after 1
waiter c --after 2
waiter d --after 3
kill -KILL "$(pid_of b)"
ended b
is 'a job that is killed while it waits has ended for --after' wait_until 'runs c'
is 'the next job in the chain waits for the job before it' waits d
run 'a waiting job in the chain is cancelled' 0 '' '*' "$GPULEASE" --cancel 3
is 'a job that is cancelled while it waits has ended for --after' wait_until 'runs d'
release_all a d
cards 2

# A cancelled job ends while the jobs that wait for it are looking: none of them may miss the end.
holder 1
each=1
while [ "$each" -lt 24 ]; do
	waiter $((each + 1)) --after "$each"
	each=$((each + 1))
done
each=0 missed=''
while [ $((each += 1)) -lt 24 ]; do
	"$GPULEASE" -Q --cancel "$each"
	wait_until "runs $((each + 1))" || missed="$missed $each"
	[ -z "$missed" ] || break
done
is 'no job in a chain of 24 misses the end of the job before it' [ -z "$missed" ]

# --- singletons ----------------------------------------------------------------------------

cards 2
holder one --name nightly --singleton -n 0.25
waiter two --name nightly --singleton -n 0.25
is '--singleton: only one job of a name runs at a time' like \
	'gpulease: job 2 waits, 1st in the queue: job 1 of the same name comes first' \
	"$(said two)"
waiter three --name nightly --singleton -n 0.25
run '--singleton: a job of another name runs at once' 0 0 '' \
	"$GPULEASE" --name daily --singleton -n 0.25 -I sh -c "$show"
run 'a job of the same name without --singleton does not wait' 0 0 '' "$GPULEASE" \
	--name nightly -n 0.25 -I sh -c "$show"
release_all one
in_order '--singleton: jobs of one name run one after the other' two three
run '--singleton without a name is refused' 125 '' 'gpulease: *--name*' "$GPULEASE" \
	--singleton true
holder one --name nightly
run '-d singleton waits for any job of its name' 124 '' \
	'*job * of the same name comes first' "$GPULEASE" -J nightly -d singleton -I true
release_all one
holder one -n 0 --name nightly
for gpus in 0 1; do
	run '--singleton waits for a job of its name without a GPU' 124 '' \
		"*job $(id_of one) of the same name comes first" \
		"$GPULEASE" -n $gpus --name nightly --singleton -I true
done
waiter two -n 0 --name nightly --singleton
release_all one
is '--singleton: the waiting job starts after the running one' wait_until 'runs two'
release_all two
holder one -n 2
waiter full
waiter two --name nightly
run '--singleton waits for a job of its name that still waits' 124 '' \
	'*job * of the same name comes first' \
	"$GPULEASE" -n 0 --name nightly --singleton -I true
release_all one full two

# A job of the same name is before the singleton in the order, but comes after it by --after.
cards 1
holder first
waiter low --name nightly --singleton --priority -5
waiter next --name nightly --after 2
release_all first
in_order 'a singleton does not wait for a job that comes after it' low next
conf 'retry-delay = 0s'
cards 1
mkfifo "$S/tried.hold"
"$GPULEASE" --name nightly --singleton --retries 1 -- sh -c '
	[ "$GPULEASE_ATTEMPT" = 1 ] || { echo again >"$1.again"; exit 0; }
	exec 3<>"$1.hold"
	echo "$$ $GPULEASE_ID" >"$1.new"
	mv "$1.new" "$1.runs"
	read -r status <&3
	exit "$status"' job "$S/tried" 2>"$S/tried.err" &
echo $! >"$S/tried.pid"
started="$started $!"
wait_until 'runs tried' || bail 'the job does not start'
waiter next --name nightly --after "$(id_of tried)"
release tried 1
is 'a singleton that is tried again does not wait for such a job' wait_until 'runs next'
is 'which waits for the last attempt' [ -e "$S/tried.again" ]
release_all next
usual

# --- limits --------------------------------------------------------------------------------

cards 2
conf 'all-gpus = 1'
holder half -n 0.5
holder other -n 0.5
run 'a limit of GPUs counts shares' 124 '' "$not_now limit: 1 GPU for all, 1 in use" \
	"$GPULEASE" -n 0.5 -I true
waiter third -n 0.5
is 'a waiter names the limit that it waits for' like '*limit: 1 GPU for all, 1 in use' \
	"$(said third)"
run 'a job without GPUs is not bound by all-gpus' 0 '' '' "$GPULEASE" -n 0 -I true
release_all half
is 'a waiter starts once the limit has room' wait_until 'runs third'
release_all other third
run 'all-gpus: a job that needs more is refused' 125 '' \
	'gpulease: cannot lease 2 GPUs: all-gpus in the configuration allows 1 at once' \
	"$GPULEASE" -n 2 true
cards 3
conf 'all-gpus = 2'
holder one --gpu-ids 0
run 'a GPU is paused while a limit is in force' 0 '' '' "$GPULEASE" --pause 2
waiter broken --gpu-ids 1,2
is 'a waiter for a paused GPU names the pause and not the limit' like '*GPU 2 is paused by *' \
	"$(said broken)"
run 'a waiter for a paused GPU holds no other job back' 0 1 '' "$GPULEASE" -I sh -c "$show"
run 'the GPU that was paused under a limit is resumed' 0 '' '' "$GPULEASE" --resume 2
release_all one
is 'the job with the GPU that was paused starts' wait_until 'runs broken'
release_all broken
cards 5
conf 'all-gpus = 5'
holder first --gpu-ids 0
waiter head --gpu-ids 0-2
run 'no job takes the head'"'"'s part of a limit' 124 '' \
	"$not_now behind job 2, which waits for 3 GPUs" "$GPULEASE" -n 2 -I true
run 'a job that goes past the head may use the rest of the limit' 0 3 '' "$GPULEASE" -I \
	sh -c "$show"
release_all first
is 'the head starts at once, in spite of the limit' wait_until 'runs head'
release_all head

# --- the second in line ------------------------------------------------------------------

# GPU 0 is leased for days, and the head waits for it.
conf ''
cards 3
holder days --gpu-ids 0
holder one --gpu-ids 1 --time 1h
waiter head --gpu-ids 0
waiter big --gpu-ids 1,2
is 'the second in the queue waits for its own GPUs' like \
	'gpulease: job 4 waits, 2nd in the queue: needs 2 GPUs, 1 is free; starts *' "$(said big)"
run 'no small job goes past the second in the queue' 124 '' \
	"$not_now behind job 4, which waits for 2 GPUs" \
	"$GPULEASE" --gpu-ids 2 -I true
run 'no job on any GPU goes past the first in the queue' 124 '' \
	"$not_now behind job 3, which waits for 1 GPU" \
	"$GPULEASE" -I true
run 'a job that ends in time goes past the second in the queue' 0 2 '' "$GPULEASE" --time 30m \
	-I sh -c "$show"
release_all one
is 'the second in the queue starts when its GPUs are free' wait_until 'runs big'
is 'the head still waits when the second has started' waits head
release_all days
is 'the head starts when its own GPU is free' wait_until 'runs head'
release_all big head

cards 2
conf 'all-jobs = 2'
holder half -n 0.1
holder other -n 0.1
run 'all-jobs: a job waits for the limit of all jobs' 124 '' \
	"$not_now limit: 2 jobs for all, 2 running" \
	"$GPULEASE" -n 0.1 -I true
release_all half other
conf 'default-time = 1h'
run 'a job without a time limit gets default-time' 0 ' limit=3600000' '' "$GPULEASE" -I sh -c \
	"tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[0-9]*'"
conf 'default-time = 1s'
run 'a job is ended at default-time' 143 '' '*' "$GPULEASE" sleep 1000
run '--on-limit requeue counts for default-time, too' 124 '' \
	'*job * has reached its time limit *job * has reached its time limit *' \
	"$GPULEASE" --on-limit requeue --max-requeues 1 sleep 1000
run 'a job with its own time limit does not get default-time' 0 ' limit=7200000' '' \
	"$GPULEASE" --time 2h sh -c \
	"tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[0-9]*'"
run 'a bare number in --time is minutes' 0 ' limit=36000000' '' "$GPULEASE" --time 600 sh -c \
	"tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[0-9]*'"
for none in 0 UNLIMITED; do
	run "a job with --time $none does not get default-time" 0 '' '' "$GPULEASE" -t "$none" \
		-n 1 sh -c \
		"tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[1-9]*' || :"
done
conf 'default-time = 1h'
run '-v says that the time limit is from default-time' 0 '' \
	'*the time limit is 1h00m: default-time in the configuration*' "$GPULEASE" -v -n 1 true
run '--grace goes together with default-time' 0 '' '' "$GPULEASE" --grace 5s true
usual
run '--grace without any time limit is refused' 125 '' \
	'gpulease: --grace is the time from TERM to KILL after *' \
	"$GPULEASE" --grace 5s true
conf 'all-waiting = 2'
holder all -n 2
waiter first
waiter second
run 'all-waiting: a job above the limit is refused' 125 '' \
	'gpulease: all-waiting allows at most 2 jobs in the queue' "$GPULEASE" true
run 'all-waiting: --dry-run says that the job would be refused' 125 '' \
	'gpulease: all-waiting allows at most 2 jobs in the queue' "$GPULEASE" --dry-run true
release_all all first second
usual

# --- what --dry-run says -------------------------------------------------------------------

cards 2
run '--dry-run: a job would start' 0 'would start now on GPU 0,1' '' "$GPULEASE" -n 2 \
	--dry-run touch "$S/ran"
run '--dry-run: a share would start' 0 'would start now on GPU 0' '' "$GPULEASE" -n 0.5 \
	--dry-run touch "$S/ran"
run '--dry-run: a job without GPUs would start' 0 'would start now, without GPUs' '' \
	"$GPULEASE" -n 0 --dry-run touch "$S/ran"
holder half -n 0.5
waiter head -n 2
run '--dry-run: a job would wait' 124 \
	'would wait, 2nd in the queue: behind job 2, which waits for 2 GPUs' '' \
	"$GPULEASE" -n 0.5 --dry-run touch "$S/ran"
run '--dry-run: a job of a higher priority would start' 0 'would start now on GPU 0' '' \
	"$GPULEASE" -n 0.5 --priority 1 --dry-run touch "$S/ran"
run '--dry-run: a job with --after would wait' 124 \
	'would wait, * in the queue: comes after job 1, which has not ended' '' \
	"$GPULEASE" --after 1 --dry-run touch "$S/ran"
run '--dry-run: a job with too many GPUs is refused' 125 '' \
	'gpulease: cannot lease 3 GPUs: this machine has 2' \
	"$GPULEASE" -n 3 --dry-run touch "$S/ran"
run '--dry-run: a job after an unknown job is refused' 125 '' 'gpulease: job 99 is unknown; --status and --history list the jobs' \
	"$GPULEASE" --after 99 --dry-run touch "$S/ran"
is '--dry-run runs no command' [ ! -e "$S/ran" ]
release_all half head
run '--dry-run takes no ticket' 0 3 '' "$GPULEASE" sh -c 'echo $GPULEASE_ID'

# --- several users -------------------------------------------------------------------------

users() {
	group_users 54330
	install -m 0755 "$CLI/../bin/nvidia-smi" "$S/bin/nvidia-smi"
	PATH=$S/bin:$PATH
	conf '' && chmod 0644 "$conf"
}

among_users() {
	shared 1
	run 'a user leases a GPU' 0 0 '' "$U1" -I sh -c "$show"
	run 'a user may ask for a lower priority' 0 '?' '' "$U1" --priority -3 sh -c "$show"
	run 'a user may not ask for a higher priority' 125 '' \
		'gpulease: priority 1 is too high: users may have 0 at most (max-priority in the configuration)' \
		"$U1" --priority 1 true
	conf 'max-priority = 10'
	run 'max-priority lets a user ask for a higher priority' 0 '?' '' "$U1" --priority 10 \
		sh -c "$show"
	run 'a user may not ask for more than max-priority' 125 '' \
		'gpulease: priority 11 is too high: users may have 10 at most *' \
		"$U1" --priority 11 true
	by 1 holder running
	by 1 waiter low --priority -1
	by 2 waiter plain
	by 1 waiter high --priority 10
	waiter root --priority 11
	run 'a user may not set more than max-priority' 125 '' \
		'gpulease: priority 11 is too high: users may have 10 at most *' \
		"$U1" --set-priority "$(ticket_of low)" 11
	run 'a user may not change the priority of the job of another' 1 '' \
		"gpulease: job $(ticket_of plain) belongs to *; only they and root may change the priority of it" \
		"$U1" --set-priority "$(ticket_of plain)" 1
	run 'a user may change the priority of a job of their own' 0 '' '' \
		"$U1" --set-priority "$(ticket_of high)" 9
	run 'root may set any priority of any job' 0 '' '' \
		"$GPULEASE" --set-priority "$(ticket_of plain)" 1000
	"$GPULEASE" --set-priority "$(ticket_of plain)" 0
	release_all running
	in_order 'jobs of several users start in the order of their priorities' root high \
		plain low

	shared 1
	conf 'fair-share = 1h/7d/24h'
	by 1 holder running
	by 1 waiter first --time 9h
	by 1 waiter second
	by 2 waiter other
	release_all running
	in_order 'fair-share: a job of a user who asks for little passes one of a user who asks for much' \
		first other second
	is 'the hours of each user are counted apart' wait_until \
		'[ "$(tr " " "\n" <"$GPULEASE_DIR/usage" | grep -c ^uid=)" = 2 ]'

	shared 2
	conf 'user-gpus = 1' 'user-jobs = 1' 'max-time = 1s' 'max-priority = 0'
	run 'limits of users do not bind root' 0 0,1 '' \
		"$GPULEASE" -n 2 --time 1h --priority 9 -I sh -c "$show"
	conf 'user-gpus = 1'
	by 1 holder half -n 0.5
	by 1 holder other -n 0.5
	by 1 waiter third -n 0.5
	is 'user-gpus: a job waits for the limit of its user' like \
		'*limit: 1 GPU per user, 1 in use' "$(said third)"
	run 'user-gpus: another user is not bound by that limit' 0 1 '' "$U2" -I sh -c "$show"
	run 'user-gpus: a job that needs more is refused' 125 '' \
		'gpulease: cannot lease 2 GPUs: user-gpus in the configuration allows 1 at once' \
		"$U2" -n 2 true
	release_all half
	is 'user-gpus: the waiting job starts once there is room' wait_until 'runs third'
	release_all other third
	conf 'user-jobs = 1'
	by 1 holder one -n 0.1
	run 'user-jobs: a job waits for the limit of its user' 124 '' \
		"$not_now limit: 1 job per user, 1 running" \
		"$U1" -n 0.1 -I true
	run 'user-jobs: another user is not bound by that limit' 0 0 '' "$U2" -n 0.1 -I \
		sh -c "$show"
	release_all one

	conf 'max-time = 2h' 'default-time = 1h'
	run 'a time limit above max-time is refused' 125 '' \
		'gpulease: a time limit of 3h00m is too long: max-time in the configuration allows 2h00m' \
		"$U1" --time 3h true
	limit="tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[0-9]*'"
	run 'a time limit of max-time is accepted' 0 ' limit=7200000' '' "$U1" --time 2h \
		sh -c "$limit"
	run 'a job of a user without a time limit gets default-time' 0 ' limit=3600000' '' \
		"$U1" sh -c "$limit"
	conf 'max-time = 2h'
	run 'without default-time a job gets max-time' 0 ' limit=7200000' '' "$U1" sh -c "$limit"
	run 'a job with --time 0 gets max-time' 0 ' limit=7200000' '' "$U1" -t 0 sh -c "$limit"
	run 'max-time does not bind root' 0 ' limit=10800000' '' "$GPULEASE" --time 3h \
		sh -c "$limit"

	conf ''
	by 1 holder one --name same -n 0.1
	# The job gets the GPU of the other job, which is either of the two: the GPUs of the last jobs
	# may still settle.
	run '--singleton does not wait for a job of another user' 0 "$(gpus_of one)" '' "$U2" \
		--name same --singleton -n 0.1 -I sh -c "$show"
	run '--singleton waits for a job of the same user' 124 '' \
		'*of the same name comes first' \
		"$U1" --name same --singleton -n 0.1 -I true
	by 2 waiter after --after "$(id_of one)"
	release_all one
	is '--after takes the job of another user' wait_until 'runs after'
	release_all after
}

if [ "$(id -u)" -ne 0 ]; then
	skip 'a user leases a GPU' 'not root'
elif ! command -v setpriv >/dev/null 2>&1; then
	skip 'a user leases a GPU' 'setpriv is not installed'
else
	users
	among_users
fi

finish

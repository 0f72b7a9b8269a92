#!/bin/sh
# When a job starts: priorities, jobs that come after others, the protected head and who may go
# past it, limits, pauses, and what --dry-run says of it all.
# shellcheck disable=SC2016,SC2317 # functions and conditions that are called by others

# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
scratch
with_driver
conf=$S/conf
program=$GPULEASE
configured
show='echo $CUDA_VISIBLE_DEVICES'
not_now='gpulease: not available at once:'

# conf LINE…: the configuration from now on
conf() {
	printf '%s\n' "$@" >"$conf"
}

# Anybody who runs this script may ask for a higher priority.
usual() {
	conf 'max-priority = 1000'
}
usual

cards() {
	fresh
	rm -f "$S"/*.runs
	gpus "$1"
}

# waits NAME: whether it has said that it waits, and does
waits() {
	[ -s "$S/$1.err" ] && ! runs "$1"
}

said() {
	cat "$S/$1.err"
}

# leased FIELD: the values of it in the leases on GPU 0
leased() {
	tr '\0' '\n' <"$GPULEASE_DIR/gpu/slot.0" | grep -o " $1=[^ ]*" | tr -d '\n'
}

# in_order TEXT NAME…: a result, good if the waiting jobs run in this order, one at a time, as
# each is let go.
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
is 'who comes later and before others waits for the lease' like \
	'gpulease: ticket 4 waits, 1st in the queue: needs 1 GPU, none is free' "$(said high)"
is 'and behind his like' like \
	'gpulease: ticket 5 waits, 2nd in the queue: behind ticket 4, which waits for 1 GPU' \
	"$(said same)"
release_all first
in_order 'higher ones first, each in the order of arrival' high same plain zero low
for each in x '' 1.5 1000001 -1000001 99999999999999999999 +1 --1; do
	run "--priority '$each'" 125 '' "gpulease: --priority: '$each' is not a priority; *" \
		"$GPULEASE" "--priority=$each" true
done

# A share of a high priority and a whole GPU of a lower one.
cards 1
holder half -n 0.5
waiter whole
waiter high -n 0.75 --priority 1
run 'the head is the highest' 124 '' '*behind ticket 3, which waits for 0.75 of a GPU' \
	"$GPULEASE" -n 0.5 -I true
run 'who is higher still goes first' 0 0 '' \
	"$GPULEASE" -n 0.5 --priority 2 -I sh -c "$show"
release_all half
is 'the high one is next' wait_until 'runs high'
is 'beside it the other does not fit' waits whole
release_all high
is 'it comes last' wait_until 'runs whole'
release_all whole

# --- the protected head ------------------------------------------------------------------

cards 2
holder half -n 0.5 --time 1h --grace 1m
waiter head -n 2
is 'when it starts at the latest' like '*needs 2 GPUs, 1 is free; at the latest about *' \
	"$(said head)"
run 'the other GPU is kept for the head' 124 '' \
	'*behind ticket 2, which waits for 2 GPUs until about *' "$GPULEASE" -I true
run 'and what is left of the shared one' 124 '' '*behind ticket 2, *' \
	"$GPULEASE" -n 0.5 -I true
run 'from who could run for longer, too' 124 '' '*behind ticket 2, *' \
	"$GPULEASE" -n 0.5 --time 2h -I true
# A job with a limit is over once its watchdog has let go of it, a moment later.
run 'not from who has ended by then' 0 0 '' \
	"$GPULEASE" -n 0.5 --time 30m -I sh -c "$show"
run 'whatever he declares' 0 0 '*' \
	"$GPULEASE" --vram 1G --time 30m --max-wait 20s sh -c "$show"
run 'nor the free one' 0 1 '*' "$GPULEASE" --time 30m --max-wait 20s sh -c "$show"
holder past --time 30m --grace 1m
release_all half
is 'the head waits for who went past it' waits head
release_all past
is 'and then starts' wait_until 'runs head'
release_all head

cards 2
holder half -n 0.5
waiter head -n 2
run 'nobody goes past a head if nobody knows when it starts' 124 '' \
	'*behind ticket 2, which waits for 2 GPUs' "$GPULEASE" -n 0.1 --time 1m -I true
release_all half head

# What a job has left behind may be gone at any moment: that is kept for the head as well.
cards 3
holder long --time 10h --gpu-ids 0
mkfifo "$S/left.hold"
run 'a job leaves a process behind' 0 '' '' "$GPULEASE" --gpu-ids 1 \
	sh -c 'cat "$1" >/dev/null 2>&1 & ' sh "$S/left.hold"
waiter head -n 2 --time 1h
is 'the promise is the one without it' like \
	'*1 is free; GPU 1 is kept by processes *; at the latest about *' "$(said head)"
begin past --time 5h
wait_until '[ -s "$S/past.err" ] || runs past'
is 'nobody who would still be there goes past the head' waits past
echo >"$S/left.hold"
is 'which starts once that has ended' wait_until 'runs head'
release_all long head past

# The memory of one of several jobs on a GPU, for a moment after its end.
conf 'max-priority = 1000' 'settle-time = 10m'
cards 1
holder one -n 0.5
holder other -n 0.5
echo 20000 >"$FAKE_SMI_DIR/base.0"
waiter head -n 0.5
release_all other
wait_until '"$GPULEASE" --queue | grep -q "was just left by a job, whose memory is still held$"'
is 'the reason why the head waits is not somebody outside' [ "$?" -eq 0 ]
run 'the head stays one' 124 '' '*behind ticket 3, which waits for 0.5 of a GPU' \
	"$GPULEASE" --vram 10G -I true
run 'also for who comes after the last look at the GPU' 124 '' '*behind ticket 3, *' \
	"$GPULEASE" -n 0.2 -I true
rm "$FAKE_SMI_DIR/base.0"
is 'and starts when the memory is free' wait_until 'runs head'
release_all one head
usual

cards 1
holder year --time 365d
waiter head
is 'the same day of another year is not today' like \
	'*at the latest about 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9] ??:??' "$(said head)"
release_all year head

# The head needs a part of a GPU: the rest of it is nobody's to keep.
cards 1
holder most -n 0.7 --time 1h
waiter head -n 0.5
run 'beside a head that wants a share the rest is free' 0 0 '' \
	"$GPULEASE" -n 0.3 -I sh -c "$show"
holder beside -n 0.3
release_all most
is 'and does not keep it waiting' wait_until 'runs head'
release_all beside head
holder most -n 0.4 --time 1h
holder other -n 0.4
waiter head -n 0.6
run 'as long as it is the rest' 124 '' '*behind ticket *, which waits for 0.6 of a GPU *' \
	"$GPULEASE" -n 0.2 -I true
release_all most other head

cards 2
run 'a GPU is paused' 0 '' '' "$GPULEASE" --pause 1 --reason 'a new fan'
waiter head -n 2
is 'a head that waits for no lease' like \
	'*needs 2 GPUs, 1 is free; GPU 1 is paused by *: a new fan' "$(said head)"
run 'keeps nothing for itself' 0 0 '' "$GPULEASE" -n 0.5 -I sh -c "$show"
run 'nor from anybody' 0 0 '' "$GPULEASE" -I sh -c "$show"
run 'the pause ends' 0 '' '' "$GPULEASE" --resume 1
is 'and it starts' wait_until 'runs head'
release_all head

# --- a pause in the middle ---------------------------------------------------------------

cards 1
holder half -n 0.5
waiter whole
run 'paused while a job runs and one waits' 0 '' '' "$GPULEASE" --pause 0
run 'no share is leased any more' 124 '' '*GPU 0 is paused by *' "$GPULEASE" -n 0.5 -I true
is 'the one that runs runs on' wait_until '[ "$(process_state "$(pid_of half)")" = S ]'
waiter next -n 0.5
release_all half
run 'nor a whole one when it has ended' 124 '' '*GPU 0 is paused by *' "$GPULEASE" -I true
is 'those that wait wait on' waits whole
run 'resumed' 0 '' '' "$GPULEASE" --resume 0
is 'the first of them starts' wait_until 'runs whole'
is 'and no other' waits next
release_all whole next

# --- after others --------------------------------------------------------------------------

cards 2
holder first
waiter second --after "$(id_of first)"
is 'after a job: for which it waits' like \
	'gpulease: ticket 2 waits, 1st in the queue: comes after job 1, which has not ended' \
	"$(said second)"
run 'it keeps nothing from others' 0 1 '' "$GPULEASE" -I sh -c "$show"
release_all first
is 'it starts when that has ended' wait_until 'runs second'
release second 3
ended second
run 'after one that has ended long ago' 0 '?' '' "$GPULEASE" --after 1,2 -I sh -c "$show"
run 'with srun'"'"'s words' 0 '?' '' "$GPULEASE" -d afterany:1:2 -I sh -c "$show"

cards 2
holder first -n 0.5
holder second -n 0.5
waiter both --after 1,2 -n 0.5
release_all first
is 'after several: not after one of them' waits both
release_all second
is 'after all of them' wait_until 'runs both'
release_all both

after_ok() {
	cards 2
	holder good
	waiter ok --after-ok "$(id_of good)"
	release_all good
	is 'after one that ends well' wait_until 'runs ok'
	release_all ok
	holder bad
	bad=$(id_of bad)
	waiter never --after-ok "$bad"
	release bad 3
	ended bad
	ended never
	is 'after one that does not: never' [ "$rc" -eq 124 ]
	is 'and why' like "*gpulease: gave up: job $bad has ended with status 3" "$(said never)"
	# Who ended it has a moment to write that down.
	wait_until '"$GPULEASE" --history --json | grep -q "\"status\": *3\>"'
	run 'nor if that is known from the start' 124 '' \
		"*gpulease: gave up: job $bad has ended with status 3" \
		"$GPULEASE" --after-ok "$bad" true
	run 'afterok as srun has it' 124 '' "*gave up: job $bad has ended with status 3" \
		"$GPULEASE" --dependency=afterok:"$bad" true
	run 'however it ends' 0 '?' '' "$GPULEASE" --after "$bad" -I sh -c "$show"
}

# From Linux 6.15 on the status of a process is told to others than its parent.
cards 2
conf 'record-ends = yes'
"$GPULEASE" true
wait_until '[ -s "$GPULEASE_DIR/history" ]' || bail 'the end of a job is not recorded'
if grep -q ' status=0 ' "$GPULEASE_DIR/history"; then
	after_ok
else
	skip 'after one that ends well' 'nobody is told how a process has ended'
fi
usual

cards 2
run 'one of whose end nobody knows' 0 1 '' "$GPULEASE" sh -c 'echo $GPULEASE_ID'
run 'cannot be known to have ended well' 124 '' \
	'*gpulease: gave up: how job 1 has ended is not recorded' "$GPULEASE" --after-ok 1 true

cards 2
holder first
for option in --after --after-ok; do
	run "$option: a job that has never been" 125 '' 'gpulease: there is no job 99' \
		"$GPULEASE" $option 1,99 true
	run "$option: itself" 125 '' 'gpulease: there is no job 2' "$GPULEASE" $option 2 true
	run "$option: no job" 125 '' "gpulease: $option: '0' is not the id of a job; they begin at 1" \
		"$GPULEASE" $option 0 true
	run "$option: too many" 125 '' "gpulease: $option: * names too many jobs; at most 6*" \
		"$GPULEASE" $option 1,1,1,1,1,1,1 true
	for each in x '' '1,' ',1' 1-2 -1 '1 2' 99999999999999999999; do
		run "$option '$each'" 125 '' "gpulease: $option: *" "$GPULEASE" "$option=$each" true
	done
done
run 'no GPU, and after a job' 124 '' '*comes after job 1, which has not ended' \
	"$GPULEASE" -n 0 --after 1 -I true
release_all first

# A chain: each waits for the one before it, and a killed one has ended.
cards 2
holder a
waiter b --after 1
waiter c --after 2
waiter d --after 3
kill -KILL "$(pid_of b)"
ended b
is 'one that is killed as it waits has ended' wait_until 'runs c'
is 'what comes after another waits for that' waits d
run 'cancelled is ended' 0 '' '*' "$GPULEASE" --cancel 3
is 'so it starts' wait_until 'runs d'
release_all a d
cards 2

# Cancelled, a job ends while those that wait for it are looking: none of them may miss it.
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
is 'nobody misses an end' [ -z "$missed" ]

# --- singletons ----------------------------------------------------------------------------

cards 2
holder one --name nightly --singleton -n 0.25
waiter two --name nightly --singleton -n 0.25
is 'one at a time of one name' like \
	'gpulease: ticket 2 waits, 1st in the queue: job 1 of the same name comes first' \
	"$(said two)"
waiter three --name nightly --singleton -n 0.25
run 'another name is another job' 0 0 '' \
	"$GPULEASE" --name daily --singleton -n 0.25 -I sh -c "$show"
run 'who is no singleton does not wait' 0 0 '' "$GPULEASE" --name nightly -n 0.25 -I sh -c "$show"
release_all one
in_order 'one after the other' two three
run 'without a name' 125 '' 'gpulease: *--name*' "$GPULEASE" --singleton true
holder one --name nightly
run 'and waits for any of its name, as srun has it' 124 '' \
	'*job * of the same name comes first' "$GPULEASE" -J nightly -d singleton -I true
release_all one
holder one -n 0 --name nightly
for gpus in 0 1; do
	run 'also for one that runs without a GPU' 124 '' \
		"*job $(id_of one) of the same name comes first" \
		"$GPULEASE" -n $gpus --name nightly --singleton -I true
done
waiter two -n 0 --name nightly --singleton
release_all one
is 'until that has ended' wait_until 'runs two'
release_all two
holder one -n 2
waiter full
waiter two --name nightly
run 'also for one that waits behind others' 124 '' '*job * of the same name comes first' \
	"$GPULEASE" -n 0 --name nightly --singleton -I true
release_all one full two
long=a-name-of-more-than-thirty-two-bytes
run 'a name that would be cut' 125 '' "gpulease: --singleton: '$long' has 36 bytes, *" \
	"$GPULEASE" --name $long --singleton true
run 'is one of a job that is none' 0 '' '' "$GPULEASE" --name $long -I true

# Before it in the order is one of its name that comes after it.
cards 1
holder first
waiter low --name nightly --singleton --priority -5
waiter next --name nightly --after 2
release_all first
in_order 'a singleton does not wait for who waits for it' low next
conf 'retry-delay = 0s'
cards 1
mkfifo "$S/tried.hold"
"$GPULEASE" --name nightly --singleton --retries 1 -- sh -c '
	[ "$GPULEASE_ATTEMPT" = 1 ] || exit 0
	exec 3<>"$1.hold"
	echo "$$ $GPULEASE_ID" >"$1.runs"
	read -r status <&3
	exit "$status"' job "$S/tried" 2>"$S/tried.err" &
echo $! >"$S/tried.pid"
started="$started $!"
wait_until 'runs tried' || bail 'the job does not start'
waiter next --name nightly --after "$(id_of tried)"
release_all tried 1
is 'nor when it is tried again' wait_until 'runs next'
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
is 'who waits is told' like '*limit: 1 GPU for all, 1 in use' "$(said third)"
run 'who needs none is not bound' 0 '' '' "$GPULEASE" -n 0 -I true
release_all half
is 'and starts once there is room' wait_until 'runs third'
release_all other third
run 'more than it ever allows' 125 '' \
	'gpulease: cannot lease 2 GPUs: all-gpus in the configuration allows 1 at once' \
	"$GPULEASE" -n 2 true
cards 3
conf 'all-gpus = 2'
holder one --gpu-ids 0
run 'a GPU is out of service' 0 '' '' "$GPULEASE" --pause 2
waiter broken --gpu-ids 1,2
is 'who waits for it is told so and not of the limit' like '*GPU 2 is paused by *' "$(said broken)"
run 'and holds nobody back within that' 0 1 '' "$GPULEASE" -I sh -c "$show"
run 'it is back' 0 '' '' "$GPULEASE" --resume 2
release_all one
is 'and it starts' wait_until 'runs broken'
release_all broken
cards 5
conf 'all-gpus = 5'
holder first --gpu-ids 0
waiter head --gpu-ids 0-2
run 'who is let past leaves the first in the queue its part of a limit' 124 '' \
	"$not_now behind ticket 2, which waits for 3 GPUs" "$GPULEASE" -n 2 -I true
run 'and may have the rest' 0 3 '' "$GPULEASE" -I sh -c "$show"
release_all first
is 'so that it starts at once' wait_until 'runs head'
release_all head

# --- the second in line ------------------------------------------------------------------

# GPU 0 is leased for days, and the head waits for it.
conf ''
cards 3
holder days --gpu-ids 0
holder one --gpu-ids 1 --time 1h
waiter head --gpu-ids 0
waiter big --gpu-ids 1,2
is 'the second in line waits for its own GPUs' like \
	'gpulease: ticket 4 waits, 2nd in the queue: needs 2 GPUs, 1 is free; starts *' "$(said big)"
run 'no small job passes it' 124 '' "$not_now behind ticket 4, which waits for 2 GPUs" \
	"$GPULEASE" --gpu-ids 2 -I true
run 'on whatever GPU' 124 '' "$not_now behind ticket 3, which waits for 1 GPU" \
	"$GPULEASE" -I true
run 'unless it is gone before' 0 2 '' "$GPULEASE" --time 30m -I sh -c "$show"
release_all one
is 'it starts when its GPUs are free' wait_until 'runs big'
is 'while the head still waits' waits head
release_all days
is 'for its own' wait_until 'runs head'
release_all big head

cards 2
conf 'all-jobs = 2'
holder half -n 0.1
holder other -n 0.1
run 'a limit of jobs' 124 '' "$not_now limit: 2 jobs for all, 2 running" \
	"$GPULEASE" -n 0.1 -I true
release_all half other
conf 'default-time = 1h'
run 'a job without a time limit gets that' 0 ' limit=3600000' '' "$GPULEASE" -I sh -c \
	"tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[0-9]*'"
conf 'default-time = 1s'
run 'and is ended at it' 143 '' '*' "$GPULEASE" sleep 1000
run 'not one that has its own' 0 ' limit=7200000' '' "$GPULEASE" --time 2h sh -c \
	"tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[0-9]*'"
for none in 0 UNLIMITED; do
	run "nor one that asks for none by $none" 0 '' '' "$GPULEASE" -t "$none" -n 1 sh -c \
		"tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[1-9]*' || :"
done
conf 'default-time = 1h'
run 'with -v it is told where the limit is from' 0 '' \
	'*the time limit is 1h00m: default-time in the configuration*' "$GPULEASE" -v -n 1 true
run 'a grace of its own goes with it' 0 '' '' "$GPULEASE" --grace 5s true
usual
run 'but not without any limit' 125 '' 'gpulease: --grace is the time from TERM to KILL after *' \
	"$GPULEASE" --grace 5s true
conf 'all-waiting = 2'
holder all -n 2
waiter first
waiter second
run 'no more may wait' 125 '' \
	'gpulease: all-waiting allows no more jobs in the queue than 2' "$GPULEASE" true
run 'as it is foreseen' 125 '' \
	'gpulease: all-waiting allows no more jobs in the queue than 2' "$GPULEASE" --dry-run true
release_all all first second
usual

# --- what would be -------------------------------------------------------------------------

cards 2
run 'would start' 0 'would start now on GPU 0,1' '' "$GPULEASE" -n 2 --dry-run touch "$S/ran"
run 'a share, too' 0 'would start now on GPU 0' '' "$GPULEASE" -n 0.5 --dry-run touch "$S/ran"
run 'without a GPU' 0 'would start now, without GPUs' '' "$GPULEASE" -n 0 --dry-run touch "$S/ran"
holder half -n 0.5
waiter head -n 2
run 'would wait' 124 'would wait, 2nd in the queue: behind ticket 2, which waits for 2 GPUs' '' \
	"$GPULEASE" -n 0.5 --dry-run touch "$S/ran"
run 'would come first' 0 'would start now on GPU 0' '' \
	"$GPULEASE" -n 0.5 --priority 1 --dry-run touch "$S/ran"
run 'would wait for a job' 124 'would wait, * in the queue: comes after job 1, which has not ended' '' \
	"$GPULEASE" --after 1 --dry-run touch "$S/ran"
run 'could never be' 125 '' 'gpulease: cannot lease 3 GPUs: this machine has 2' \
	"$GPULEASE" -n 3 --dry-run touch "$S/ran"
run 'could not either' 125 '' 'gpulease: there is no job 99' \
	"$GPULEASE" --after 99 --dry-run touch "$S/ran"
is 'nothing runs of it' [ ! -e "$S/ran" ]
release_all half head
run 'and no number is taken' 0 3 '' "$GPULEASE" sh -c 'echo $GPULEASE_ID'

# --- several users -------------------------------------------------------------------------

# Members of a group that trust each other, by bare numbers.
UID_BASE=54330

users() {
	end_all
	umask 0
	chmod 0777 "$S" "$S/tmp"
	mkdir "$S/bin"
	cp "$program" "$S/bin/gpulease"
	cp "$CLI/../bin/nvidia-smi" "$S/bin/nvidia-smi"
	PATH=$S/bin:$PATH
	for user in 1 2; do
		printf '#!/bin/sh\nexec setpriv --reuid=%d --regid=%d --clear-groups -- %s --config %s "$@"\n' \
			$((UID_BASE + user)) $UID_BASE "$S/bin/gpulease" "$conf" >"$S/user$user"
		chmod 0755 "$S/user$user"
	done
	conf '' && chmod 0644 "$conf"
	U1=$S/user1 U2=$S/user2
}

# shared N: a state directory for them, and so many GPUs
shared() {
	cards "$1"
	chgrp $UID_BASE "$GPULEASE_DIR"
	chmod 2770 "$GPULEASE_DIR"
	chmod 0777 "$FAKE_SMI_DIR"
	: >"$FAKE_SMI_DIR/count"
	chmod 0666 "$FAKE_SMI_DIR/count"
}

# by N FUNCTION…: with the gpulease of that user
by() {
	by_before=$GPULEASE
	GPULEASE=$S/user$1
	shift
	"$@"
	GPULEASE=$by_before
}

among_users() {
	shared 1
	run 'a user leases a GPU' 0 0 '' "$U1" -I sh -c "$show"
	run 'and may ask for less priority' 0 '?' '' "$U1" --priority -3 sh -c "$show"
	run 'not for more' 125 '' \
		'gpulease: priority 1 is too high: users may have 0 at most (max-priority in the configuration)' \
		"$U1" --priority 1 true
	conf 'max-priority = 10'
	run 'but where it is configured' 0 '?' '' "$U1" --priority 10 sh -c "$show"
	run 'up to there' 125 '' 'gpulease: priority 11 is too high: users may have 10 at most *' \
		"$U1" --priority 11 true
	by 1 holder running
	by 1 waiter low --priority -1
	by 2 waiter plain
	by 1 waiter high --priority 10
	waiter root --priority 11
	release_all running
	in_order 'users in the order of their priorities' root high plain low

	shared 2
	conf 'user-gpus = 1' 'user-jobs = 1' 'max-time = 1s' 'max-priority = 0'
	run 'limits of users do not bind root' 0 0,1 '' \
		"$GPULEASE" -n 2 --time 1h --priority 9 -I sh -c "$show"
	conf 'user-gpus = 1'
	by 1 holder half -n 0.5
	by 1 holder other -n 0.5
	by 1 waiter third -n 0.5
	is 'a limit of one user' like '*limit: 1 GPU per user, 1 in use' "$(said third)"
	run 'is not that of another' 0 1 '' "$U2" -I sh -c "$show"
	run 'more than it ever allows' 125 '' \
		'gpulease: cannot lease 2 GPUs: user-gpus in the configuration allows 1 at once' \
		"$U2" -n 2 true
	release_all half
	is 'then there is room for the third' wait_until 'runs third'
	release_all other third
	conf 'user-jobs = 1'
	by 1 holder one -n 0.1
	run 'a limit of jobs' 124 '' "$not_now limit: 1 job per user, 1 running" \
		"$U1" -n 0.1 -I true
	run 'of another none' 0 0 '' "$U2" -n 0.1 -I sh -c "$show"
	release_all one

	conf 'max-time = 2h' 'default-time = 1h'
	run 'a time limit that is too long' 125 '' \
		'gpulease: a time limit of 3h00m is too long: max-time in the configuration allows 2h00m' \
		"$U1" --time 3h true
	limit="tr '\\0' '\\n' <\$GPULEASE_DIR/gpu/slot.\$CUDA_VISIBLE_DEVICES | grep -o ' limit=[0-9]*'"
	run 'one that is not' 0 ' limit=7200000' '' "$U1" --time 2h sh -c "$limit"
	run 'none: the default' 0 ' limit=3600000' '' "$U1" sh -c "$limit"
	conf 'max-time = 2h'
	run 'without a default the longest' 0 ' limit=7200000' '' "$U1" sh -c "$limit"
	run 'also for who asks for none' 0 ' limit=7200000' '' "$U1" -t 0 sh -c "$limit"
	run 'which does not bind root' 0 ' limit=10800000' '' "$GPULEASE" --time 3h sh -c "$limit"

	conf ''
	by 1 holder one --name same -n 0.1
	run 'a name is that of one user' 0 0 '' "$U2" --name same --singleton -n 0.1 -I sh -c "$show"
	run 'as ever' 124 '' '*of the same name comes first' \
		"$U1" --name same --singleton -n 0.1 -I true
	by 2 waiter after --after "$(id_of one)"
	release_all one
	is 'the job of another may be waited for' wait_until 'runs after'
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
